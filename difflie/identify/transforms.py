"""Bijections between free numbers and values that have a meaning.

A transform takes free numbers x, any real ones, to one value: the damping of a joint, the inertial
parameters of a body. Every x gives a value that a machine can have, and every such value has one x.
A transform of a manifold has its free numbers in the tangent space at the value at the start.

Positive numbers are exponentials, so that equal steps of x are equal ratios, whatever the unit and
the size of the number; the alternative, softplus, has a scale: 1 in whatever the unit is.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..groups import quaternion, so3
from ..solvers.linear import product
from ..system.fields import Number
from .pseudo_inertia import (
    factor,
    from_log_cholesky,
    from_six,
    inconsistency,
    inertia_of,
    log_cholesky,
    second_moments,
    squared,
    to_six,
)

Shape = tuple[int, ...]
_XYZ = ("_x", "_y", "_z")
_INERTIA = ("I_xx", "I_xy", "I_xz", "I_yy", "I_yz", "I_zz")
_INERTIAL = ("mass", *("com" + i for i in _XYZ), *_INERTIA)


class Transform(eqx.Module):
    """A bijection of free numbers x (size,) and one value of the given shape.

    `start` is the value of that shape which the machine has at first; transforms of manifolds count
    from there, the others make no use of it.
    """

    @abc.abstractmethod
    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        """The value of the free numbers x (size,)."""

    @abc.abstractmethod
    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        """The free numbers (size,) of a value; not a number where `fault` finds one."""

    def table(self, x: jax.Array, start: jax.Array) -> jax.Array:
        """The numbers (size,) that stand for the value in tables."""
        return self.value(x, start).ravel()

    def of_table(self, numbers: jax.Array, start: jax.Array) -> jax.Array:
        """The value that numbers (size,) of tables stand for."""
        return numbers.reshape(start.shape)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        """The names (size,) of these numbers, for a leaf with values of this shape."""
        if shape == (3,):
            return tuple(leaf + i for i in _XYZ)
        return tuple(leaf + (str(list(i)) if i else "") for i in np.ndindex(shape))

    @property
    def limits(self) -> tuple[Any, Any]:
        """Which numbers of tables, or all, they never reach: below and above, of their shape."""
        return -np.inf, np.inf

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        """The units (size,) of these numbers, for a leaf with values in this unit."""
        return (unit,) * len(self.labels("", shape))

    def suits(self, kind: str, shape: Shape) -> bool:
        """Whether it is one for values of this kind (see `difflie.number`) and shape."""
        return kind not in ("inertia", "inertial", "semidefinite")

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        """Why a concrete value has no free numbers, with the mend; "" if it has them.

        Where only the rounding of a file is amiss it has them.
        """
        return ""


class Identity(Transform):
    """The value itself."""

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return x.reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return value.ravel()


class Above(Transform):
    """Values above a limit: lower + e^x, x (size,). `lower` in the value's unit, of its shape."""

    lower: Any = eqx.field(converter=np.asarray)

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.asarray(self.lower, x.dtype) + jnp.exp(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.log(value - jnp.asarray(self.lower, value.dtype)).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.lower, np.inf

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value > self.lower):
            return ""
        return f"is {value.tolist()}, and must be above {self.lower.tolist()}; {_GIVE}"


class Below(Transform):
    """Values below a limit: upper - e^x, x (size,). `upper` in the value's unit, of its shape."""

    upper: Any = eqx.field(converter=np.asarray)

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.asarray(self.upper, x.dtype) - jnp.exp(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.log(jnp.asarray(self.upper, value.dtype) - value).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return -np.inf, self.upper

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value < self.upper):
            return ""
        return f"is {value.tolist()}, and must be below {self.upper.tolist()}; {_GIVE}"


class Interval(Transform):
    """Values between limits: lower + (upper - lower) / (1 + e^-x), x (size,).

    lower and upper in the value's unit and of its shape, or numbers. Raises ValueError where lower
    is not below upper.
    """

    lower: Any = eqx.field(converter=np.asarray)
    upper: Any = eqx.field(converter=np.asarray)

    def __check_init__(self) -> None:
        if not np.all(self.lower < self.upper):
            raise ValueError(
                f"the lower bound {self.lower.tolist()} is not below the upper bound "
                f"{self.upper.tolist()}; exchange them, or fix the parameter"
            )

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, x.dtype), jnp.asarray(self.upper, x.dtype)
        return lower + (upper - lower) * jax.nn.sigmoid(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, value.dtype), jnp.asarray(self.upper, value.dtype)
        return (jnp.log(value - lower) - jnp.log(upper - value)).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.lower, self.upper

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value > self.lower) and np.all(value < self.upper):
            return ""
        return (
            f"is {value.tolist()}, and must lie between {self.lower.tolist()} and "
            f"{self.upper.tolist()}; {_GIVE}"
        )


def positive() -> Above:
    """Positive numbers e^x: `Above` zero, in any unit; x (size,) is the logarithm."""
    return Above(0.0)


class Scaled(Transform):
    """The value at the start times e^x: one free number, whatever its shape. Tables have e^x.

    What is physically consistent stays so, such as an inertia of a known distribution.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.exp(x[0]) * start

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return (jnp.log(jnp.sum(value * start)) - jnp.log(jnp.sum(start * start)))[None]

    def table(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.exp(x)

    def of_table(self, numbers: jax.Array, start: jax.Array) -> jax.Array:
        return numbers[0] * start

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return (f"{leaf}_factor",)

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return ("",)

    def suits(self, kind: str, shape: Shape) -> bool:
        return True

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if not np.any(start):
            return f"is zero at the start, which no factor changes; {_GIVE}"
        factor = float(np.sum(value * start) / np.sum(start * start))
        if factor > 0 and _alike(value, factor * start):
            return ""
        return (
            f"is {value.tolist()}, which is no positive multiple of {start.tolist()}, the value at "
            f"the start; {_GIVE}, or another transform than Scaled"
        )


class SecondMoments(Transform):
    """An inertia (3, 3) about the centre of mass, of a body whose mass stays: 6 free numbers.

    (d1, d2, d3, s12, s23, s13) of the Cholesky factor of its second moments of mass, as in
    `pseudo_inertia` but not divided by the mass: physically consistent for all of them.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return inertia_of(squared(jnp.concatenate((jnp.exp(x[:3]), x[3:]))))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        f = factor(second_moments(value))
        return jnp.concatenate((jnp.log(f[:3]), f[3:]))

    def table(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return to_six(self.value(x, start))

    def of_table(self, numbers: jax.Array, start: jax.Array) -> jax.Array:
        return from_six(numbers)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return _INERTIA

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "inertia"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        return inconsistency(value)


class InertiaRatios(Transform):
    """An inertia (3, 3) up to its scale: I_xx stays as it was at the start; 5 free numbers.

    They are those of `SecondMoments` over e^d1: (d2 - d1, d3 - d1, (s12, s23, s13) / e^d1). Motions
    without torques tell no more. Tables have the other entries over I_xx.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        shape = inertia_of(squared(jnp.concatenate((jnp.ones_like(x[:1]), jnp.exp(x[:2]), x[2:]))))
        return start[0, 0] / shape[0, 0] * shape

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        f = factor(second_moments(value))
        return jnp.concatenate((jnp.log(f[1:3] / f[0]), f[3:] / f[0]))

    def table(self, x: jax.Array, start: jax.Array) -> jax.Array:
        inertia = self.value(x, start)
        return to_six(inertia)[1:] / inertia[0, 0]

    def of_table(self, numbers: jax.Array, start: jax.Array) -> jax.Array:
        return start[0, 0] * from_six(jnp.concatenate((jnp.ones_like(numbers[:1]), numbers)))

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return tuple(f"{name}/I_xx" for name in _INERTIA[1:])

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return ("",) * len(self.labels("", shape))

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "inertia"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        fault = inconsistency(value)
        if fault or _alike(value[0, 0], start[0, 0]):
            return fault
        return (
            f"has I_xx = {value[0, 0]:.6g} kg m^2, which stays {start[0, 0]:.6g} as at the start; "
            f"multiply it by {start[0, 0] / value[0, 0]:.6g}, or take SecondMoments"
        )


class LogCholesky(Transform):
    """All inertial parameters of a body by the logarithmic Cholesky factor of its pseudo-inertia.

    The value (10,) is the mass, the centre of mass and the inertia about it, (xx, xy, xz, yy, yz,
    zz); the free numbers are theta of `pseudo_inertia.log_cholesky`. Rucker and Wensing 2022.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return _packed(*from_log_cholesky(x))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return log_cholesky(value[0], value[1:4], from_six(value[4:]))

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return _INERTIAL

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return ("kg", *3 * ("m",), *6 * ("kg m^2",))

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "inertial"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if value[0] <= 0:
            return f"has the mass {value[0]:.4g} kg, which must be positive; {_GIVE}, or fix it"
        return inconsistency(np.asarray(from_six(jnp.asarray(value[4:]))))


class WithinEllipsoid(LogCholesky):
    """All inertial parameters of a body whose mass lies within an ellipsoid.

    semi_axes (3,) in m, along the axes of a frame at `center` (3,) in m turned by `rotation` (3,),
    a rotation vector in rad, in the body's frame. In coordinates y in which the ellipsoid is the
    unit ball, the mass can lie in it if, and only if, the mean of |y|^2 is at most 1: tr(J Q) >= 0
    (Wensing, Kim and Slotine 2018). With the factor F of the second moments and the centre of mass
    c, both in these coordinates and F for a unit mass, that mean is |F|^2 + |c|^2. So the nine
    numbers of F and c lie in a ball, which w / sqrt(1 + |w|^2) fills for w in the nine dimensions
    and where the diagonal of F stays positive: w = (e^d, s, t), and x = (alpha, d, s, t).
    """

    semi_axes: Any = eqx.field(converter=np.asarray)
    center: Any = eqx.field(converter=np.asarray, default=(0.0, 0.0, 0.0))
    rotation: Any = eqx.field(converter=np.asarray, default=(0.0, 0.0, 0.0))

    def __check_init__(self) -> None:
        for name in ("semi_axes", "center", "rotation"):
            given = getattr(self, name)
            if given.shape != (3,) or not np.all(np.isfinite(given)):
                raise ValueError(f"an ellipsoid's {name} is {given.tolist()}; give three numbers")
        if not np.all(self.semi_axes > 0):
            raise ValueError(
                f"an ellipsoid has the semi-axes {self.semi_axes.tolist()} m; they must be positive"
            )

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        center, turn = self._frame(x.dtype)
        w = jnp.concatenate((jnp.exp(x[1:4]), x[4:]))
        u = w / jnp.sqrt(1 + jnp.sum(w * w))
        moments = product(product(turn, squared(u[:6])), turn.T)
        mass = jnp.exp(2 * x[0])
        return _packed(mass, center + product(turn, u[6:]), mass * inertia_of(moments))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        u = self._ball(value)
        w = u / jnp.sqrt(1 - jnp.sum(u * u))
        return jnp.concatenate((jnp.log(value[:1]) / 2, jnp.log(w[:3]), w[3:]))

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        fault = super().fault(value, start)
        if fault:
            return fault
        mean = float(jnp.sum(self._ball(jnp.asarray(value)) ** 2))
        if mean < 1:
            return ""
        return (
            "has mass outside of its ellipsoid: make this larger by more than the factor "
            f"{math.sqrt(mean):.4g}, or move it"
        )

    def _frame(self, dtype: Any) -> tuple[jax.Array, jax.Array]:
        """The ellipsoid's center, and the matrix that makes it of the unit ball."""
        turn = so3.exp(jnp.asarray(self.rotation, dtype)) * jnp.asarray(self.semi_axes, dtype)
        return jnp.asarray(self.center, dtype), turn

    def _ball(self, value: jax.Array) -> jax.Array:
        """The numbers (9,) of F and c, in the coordinates in which the ellipsoid is a ball."""
        center, turn = self._frame(value.dtype)
        back = turn.T / jnp.asarray(self.semi_axes, value.dtype)[:, None] ** 2
        moments = second_moments(from_six(value[4:])) / value[0]
        f = factor(product(product(back, moments), back.T))
        return jnp.concatenate((f, product(back, value[1:4] - center)))


class Rotation(Transform):
    """A rotation vector (3,) in rad: exp(value) = exp(start) exp(x), up to a turn by pi."""

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return quaternion.log(quaternion.multiply(quaternion.exp(start), quaternion.exp(x)))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return quaternion.log(quaternion.multiply(quaternion.exp(-start), quaternion.exp(value)))

    def suits(self, kind: str, shape: Shape) -> bool:
        return shape == (3,)


class Direction(Transform):
    """A direction (3,): the start turned by x (2,) rad about two axes normal to it, up to pi.

    Its length stays, as it means nothing. Tables have the two angles.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return product(so3.exp(product(self._normals(start), x)), start)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        n, u = start / jnp.linalg.norm(start), value / jnp.linalg.norm(value)
        least = quaternion.log(jnp.concatenate(((1 + jnp.sum(n * u))[None], jnp.cross(n, u))))
        return product(self._normals(start).T, least)

    def table(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return x

    def of_table(self, numbers: jax.Array, start: jax.Array) -> jax.Array:
        return self.value(numbers, start)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return (f"{leaf}_turn_1", f"{leaf}_turn_2")

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return "rad", "rad"

    def suits(self, kind: str, shape: Shape) -> bool:
        return shape == (3,)

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if not np.any(value):
            return f"is zero, which is no direction; {_GIVE}"
        along = float(value @ start / np.linalg.norm(value) / np.linalg.norm(start))
        if along > -1 + np.finfo(value.dtype).eps:
            return ""
        return f"is opposite to the start, which has no shortest way there; {_GIVE}"

    def _normals(self, start: jax.Array) -> jax.Array:
        """Two unit vectors (3, 2) that are normal to it and to each other (Duff et al. 2017)."""
        x, y, z = start / jnp.linalg.norm(start)
        sign = jnp.where(z < 0, -jnp.ones_like(z), jnp.ones_like(z))
        a = -1 / (sign + z)
        b = x * y * a
        first = (1 + sign * x * x * a, sign * b, -sign * x)
        return jnp.stack([jnp.stack(first), jnp.stack((b, sign + y * y * a, -y))], axis=1)


class Definite(Transform):
    """A symmetric matrix (n, n) with positive eigenvalues: n (n + 1) / 2 free numbers.

    It is L L^T with the triangular Cholesky factor L, of whose diagonal the free numbers are the
    logarithms. Tables have the entries on and above the diagonal, row by row. Pinheiro and Bates
    1996.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        n = start.shape[0]
        diagonal, below = np.diag_indices(n), np.tril_indices(n, -1)
        factor = jnp.zeros_like(start).at[diagonal].set(jnp.exp(x[:n])).at[below].set(x[n:])
        return product(factor, factor.T)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        n = start.shape[0]
        factor = jnp.linalg.cholesky((value + value.T) / 2)
        return jnp.concatenate((jnp.log(jnp.diag(factor)), factor[np.tril_indices(n, -1)]))

    def table(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return self.value(x, start)[np.triu_indices(start.shape[0])]

    def of_table(self, numbers: jax.Array, start: jax.Array) -> jax.Array:
        upper = jnp.zeros_like(start).at[np.triu_indices(start.shape[0])].set(numbers)
        return upper + jnp.triu(upper, 1).T

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return tuple(f"{leaf}[{i}, {j}]" for i, j in zip(*np.triu_indices(shape[0]), strict=True))

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "semidefinite"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        least = float(np.linalg.eigvalsh((value + value.T) / 2).min())
        if least > 0:
            return ""
        return f"has the eigenvalue {least:.3g}, and all must be positive; {_GIVE}, or fix it"


_GIVE = "give another `start`"
_OF_KINDS: dict[str, Transform] = {
    "plain": Identity(),
    "rotation": Rotation(),
    "direction": Direction(),
    "inertia": SecondMoments(),
    "inertial": LogCholesky(),
    "semidefinite": Definite(),
}


def natural(about: Number) -> Transform:
    """The transform that keeps values what they are declared to be; `Identity` for most."""
    if about.positive:
        return positive()
    if np.isfinite(about.least):
        finite = np.isfinite(about.most)
        return Interval(about.least, about.most) if finite else Above(about.least)
    return _OF_KINDS[about.kind]


def within(bounds: Iterable[Any]) -> Transform:
    """The transform of bounds (lower, upper), numbers or of the value's shape; None for no bound.

    Raises ValueError for other than two of them and for limits that are not finite.
    """
    given = tuple(bounds)
    if len(given) != 2 or given == (None, None):
        raise ValueError(f"the bounds are {given}; give (lower, upper), None where there is none")
    if not all(b is None or np.all(np.isfinite(b)) for b in given):
        raise ValueError(f"the bounds {given} are not finite; give None where there is none")
    lower, upper = given
    if upper is None:
        return Above(lower)
    return Below(upper) if lower is None else Interval(lower, upper)


def _packed(mass: jax.Array, com: jax.Array, inertia: jax.Array) -> jax.Array:
    return jnp.concatenate((mass[None], com, to_six(inertia)))


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether arrays are the same in half of their digits."""
    return bool(np.abs(a - b).max() <= np.sqrt(np.finfo(a.dtype).eps) * np.abs(b).max())
