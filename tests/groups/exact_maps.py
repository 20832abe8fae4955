"""Exact maps to compare with: values, first and second derivatives to about 70 digits.

Every map is evaluated from its definition as a matrix function of hat(x) or ad(x) (a power series,
an inverse), with none of the closed forms of the package. The arithmetic is fixed point: Python
integers in units of 2^-BITS in numpy arrays of objects, exact to the last unit and ten times
faster than multi-precision floats. A `Jet` carries a matrix together with its first and second
derivatives, by the product rule, so that no differencing enters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import mpmath as mp
import numpy as np

BITS = 240
ONE = 1 << BITS
DIGITS = 80

Array = np.ndarray


def fixed(a: Array) -> Array:
    """Fixed-point integers of floating-point numbers, exact down to 2^-BITS."""
    ratios = (v.as_integer_ratio() for v in np.asarray(a, dtype=float).ravel().tolist())
    return np.array([(n << BITS) // d for n, d in ratios], dtype=object).reshape(np.shape(a))


def to_float(a: Array) -> Array:
    """The nearest double of every entry."""
    return np.array([v / ONE for v in a.ravel()], dtype=float).reshape(a.shape)


def product(a: Array, b: Array) -> Array:
    return (a @ b) >> BITS


pairs = cache(np.triu_indices)


@dataclass
class Jet:
    """A matrix (n, m), its derivatives (k, n, m) and second derivatives (k (k + 1) / 2, n, m).

    k is the number of variables; with k = 0 only the value is computed. Second derivatives are
    stored for the pairs i <= j.
    """

    value: Array
    first: Array
    second: Array

    def __add__(self, o: Jet) -> Jet:
        return Jet(self.value + o.value, self.first + o.first, self.second + o.second)

    def __sub__(self, o: Jet) -> Jet:
        return Jet(self.value - o.value, self.first - o.first, self.second - o.second)

    def __matmul__(self, o: Jet) -> Jet:
        value = product(self.value, o.value)
        if not len(self.first):
            return Jet(value, self.first, self.second)
        first = product(self.first, o.value) + product(self.value, o.first)
        i, j = pairs(len(first))
        second = product(self.second, o.value)
        second = second + product(self.first[i], o.first[j]) + product(self.first[j], o.first[i])
        if o.second.any():  # a linear factor has none, and this is the dearest term
            second = second + product(self.value, o.second)
        return Jet(value, first, second)

    def map(self, f: Callable[[Array], Array]) -> Jet:
        """A linear function of the matrix, given on arrays (..., n, m)."""
        return Jet(f(self.value), f(self.first), f(self.second))

    def derivatives(self) -> tuple[Array, Array]:
        """The first and second derivatives as (n, m, k) and (n, m, k, k)."""
        k = len(self.first)
        i, j = pairs(k)
        pair = np.zeros((k, k), dtype=int)
        pair[i, j] = pair[j, i] = np.arange(len(i))
        return np.moveaxis(self.first, 0, -1), np.moveaxis(self.second[pair], (0, 1), (-2, -1))


def linear(basis: Array, x: Array, derivatives: bool = True) -> Jet:
    """sum_i x_i basis_i as a jet in x; `basis` (k, n, n) holds small integers."""
    k = len(x) if derivatives else 0
    value = constant(np.tensordot(x, basis, axes=1), k)
    return Jet(value.value, basis[:k] * ONE, value.second)


def constant(a: Array, k: int) -> Jet:
    zeros = [np.zeros((count, *a.shape), dtype=object) for count in (k, k * (k + 1) // 2)]
    return Jet(a, *zeros)


def identity(like: Jet) -> Jet:
    return constant(unit(like.value.shape[0]), len(like.first))


def unit(n: int) -> Array:
    return np.eye(n, dtype=int).astype(object) * ONE


def columns(jets: list[Jet]) -> Jet:
    """The matrix with the given columns."""
    parts = zip(*((j.value, j.first, j.second) for j in jets), strict=True)
    return Jet(*(np.stack(part, axis=-1) for part in parts))


def power_series(a: Jet, shift: int) -> Jet:
    """sum_j A^j / (j + shift)!: the exponential for shift 0, (exp(A) - I) / A for shift 1."""
    term = total = identity(a)
    j = 0
    # Rounding is downwards, so that terms settle a few units below zero, not at zero.
    while j < 3 or max(_size(term.value), _size(term.first), _size(term.second)) > 99:
        j += 1
        term = (term @ a).map(lambda m, j=j: m // (j + shift))
        total = total + term
    return total


def _size(a: Array) -> int:
    return abs(a).max() if a.size else 0


def inverse(a: Jet) -> Jet:
    """The inverse matrix: Newton's iteration from the floating-point inverse."""
    y = fixed(np.linalg.inv(to_float(a.value)))
    for _ in range(6):
        y = product(y, 2 * unit(len(y)) - product(a.value, y))
    left = product(y, a.first)
    first = -product(left, y)
    i, j = pairs(len(first))
    mixed = product(left[i], first[j]) + product(left[j], first[i])
    return Jet(y, first, -(mixed + product(product(y, a.second), y)))


_UNIT = np.eye(3, dtype=int)
HAT3 = np.array([np.cross(e, _UNIT).T for e in _UNIT]).astype(object)
_ZERO3 = np.zeros((3, 3), dtype=int)
HAT4 = np.zeros((6, 4, 4), dtype=int)
HAT4[:3, :3, :3] = HAT3
HAT4[3:, :3, 3] = _UNIT
HAT4 = HAT4.astype(object)
AD6 = np.array(
    [np.block([[h, _ZERO3], [_ZERO3, h]]) for h in HAT3]
    + [np.block([[_ZERO3, _ZERO3], [h, _ZERO3]]) for h in HAT3]
)


def quaternion_matrix(q: Array) -> Array:
    """The matrix of p -> q p, linear in q (4,)."""
    w, x, y, z = q
    return np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])


QUATERNION4 = np.array([quaternion_matrix(e) for e in np.eye(4, dtype=int)[1:]]).astype(object)


def hat(x: Array, derivatives: bool = True) -> Jet:
    return linear(HAT3 if len(x) == 3 else HAT4, x, derivatives)


def vee(m: Array) -> Array:
    """(..., 3, 3) -> (..., 3) or (..., 4, 4) -> (..., 6) of matrices that are hats."""
    w = (m[..., 2, 1], m[..., 0, 2], m[..., 1, 0])
    v = (m[..., 0, 3], m[..., 1, 3], m[..., 2, 3]) if m.shape[-1] == 4 else ()
    return np.stack((*w, *v), axis=-1)


def ad(x: Array, derivatives: bool = True) -> Jet:
    return linear(HAT3 if len(x) == 3 else AD6, x, derivatives)


def exp(x: Array, derivatives: bool = True) -> Jet:
    """sum_j hat(x)^j / j!."""
    return power_series(hat(x, derivatives), 0)


def quaternion_exp(w: Array, derivatives: bool = True) -> Jet:
    """The exponential of the pure quaternion w / 2."""
    matrix = power_series(linear(QUATERNION4, w, derivatives).map(lambda m: m // 2), 0)
    return matrix.map(lambda m: m[..., 0])


def dexp(x: Array, derivatives: bool = True) -> Jet:
    """sum_j ad(x)^j / (j + 1)!."""
    return _dexp(tuple(x), derivatives)


@cache  # the dearest series, asked for again by its inverse
def _dexp(x: tuple[int, ...], derivatives: bool) -> Jet:
    return power_series(ad(np.array(x, dtype=object), derivatives), 1)


def dexp_inv(x: Array, derivatives: bool = True) -> Jet:
    return inverse(dexp(x, derivatives))


def cay(x: Array, derivatives: bool = True) -> Jet:
    """(I - hat(x))^-1 (I + hat(x))."""
    x_hat = hat(x, derivatives)
    return inverse(identity(x_hat) - x_hat) @ (identity(x_hat) + x_hat)


def dcay(x: Array, derivatives: bool = True) -> Jet:
    """Column i is vee(d cay(x)/dx_i cay(x)^-1) = vee(2 (I - hat(x))^-1 E_i (I + hat(x))^-1)."""
    x_hat = hat(x, derivatives)
    left, right = inverse(identity(x_hat) - x_hat), inverse(identity(x_hat) + x_hat)
    basis = hat(x).first
    return columns([(left @ constant(2 * e, len(x_hat.first)) @ right).map(vee) for e in basis])


def dcay_inv(x: Array, derivatives: bool = True) -> Jet:
    return inverse(dcay(x, derivatives))


def along_group(x: Array, rate: Callable[[Array], Jet]) -> Jet:
    """The jet at u = 0 of the coordinates of g(x) exp(u), with rate(-x) u = d coordinates.

    The second derivative along a curve of constant u is that of the rate along itself; the mixed
    ones follow since they are symmetric.
    """
    jet = rate(-x)
    first, _ = jet.derivatives()
    second = np.moveaxis(-product(first, jet.value), 0, -1)  # [column i, direction j, row]
    i, j = pairs(len(x))
    return Jet(x, jet.value.T, (second[i, j] + second[j, i]) // 2)


def rotation_nearest(r: Array) -> Array:
    """The orthogonal factor of a matrix that is orthogonal up to its rounding."""
    for _ in range(6):
        r = product(r, 3 * unit(3) - product(r.T, r)) >> 1
    return r


@mp.workdps(DIGITS)
def log(g: Array) -> Array:
    """The rotation vector or the screw of a rounded rotation or pose, by the angle's definition."""
    r = rotation_nearest(g[:3, :3])
    axis = vee(r - r.T) // 2  # sin(t) times the axis
    sine, cosine = mp.sqrt(mp.mpf(int(axis @ axis))), mp.mpf(int(np.trace(r) - ONE)) / 2
    assert sine or cosine > 0, "an exact half turn has two logarithms"
    factor = mp.atan2(sine, cosine) / sine * ONE if sine else mp.mpf(1)
    w = np.array([int(factor * int(a)) for a in axis], dtype=object)
    if g.shape == (3, 3):
        return w
    return np.concatenate((w, product(dexp_inv(w, False).value, g[:3, 3])))


def cay_inv(g: Array) -> Array:
    """The Cayley vector of a rounded rotation or pose."""
    r = rotation_nearest(g[:3, :3])
    c = ONE * vee(r - r.T) // (ONE + np.trace(r))
    if g.shape == (3, 3):
        return c
    p = g[:3, 3]
    return np.concatenate((c, (p - product(hat(c, False).value, p)) // 2))


@mp.workdps(DIGITS)
def quaternion_log(q: Array) -> Array:
    """The rotation vector of least length of a quaternion of any length."""
    q = q if q[0] >= 0 else -q
    norm = mp.sqrt(mp.mpf(int(q[1:] @ q[1:])))
    factor = 2 * mp.atan2(norm, int(q[0])) / norm if norm else mp.mpf(2) / int(q[0])
    return np.array([int(mp.nint(factor * int(a) * ONE)) for a in q[1:]], dtype=object)
