"""The pseudo-inertia of a rigid body, and its log-Cholesky numbers (Rucker and Wensing 2022).

With the mass m, the centre of mass c and the second moments S of mass about it, which the inertia I
about it gives,

    S = tr(I) / 2 - I,    I = tr(S) - S,    J = [[S + m c c^T, m c], [m c^T, m]]  (4, 4)

some mass distribution in a volume has these parameters if, and only if, the pseudo-inertia J is
positive definite (Wensing, Kim and Slotine 2018). They are then physically consistent: the
principal moments are positive and satisfy the triangle inequality strictly. The logarithmic
Cholesky parameters theta (10,) = (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3), any real numbers,
are those of

    J = U U^T,    U = e^alpha [[e^d1, s12, s13, t1],
                               [   0, e^d2, s23, t2],
                               [   0,    0, e^d3, t3],
                               [   0,    0,    0,  1]]

Its last column gives m = e^(2 alpha) and c = t, and the block before it S / m = F F^T, so the
inertial parameters follow from theta without cancellation. J is linear in the inertial parameters
(m, m c, I about the frame's origin), see `pseudo_inertias`.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

# The order of the entries of symmetric matrices: xx, xy, xz, yy, yz, zz.
_ROW, _COLUMN = np.triu_indices(3)
_SIX = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])


def _basis() -> np.ndarray:
    found = np.zeros((10, 4, 4))
    found[0, 3, 3] = 1
    for k in range(3):
        found[1 + k, 3, k] = found[1 + k, k, 3] = 1
    for k, (i, j) in enumerate(zip(_ROW, _COLUMN, strict=True)):
        inertia = np.zeros((3, 3))
        inertia[i, j] = inertia[j, i] = 1
        found[4 + k, :3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
    return found


# The pseudo-inertias (10, 4, 4) of single inertial parameters: J = sum_k pi_k BASIS_k.
BASIS = _basis()


def pseudo_inertias(pi: np.ndarray) -> np.ndarray:
    """J (nb, 4, 4) of inertial parameters (nb, 10), about the frames' origins."""
    return np.einsum("bk,kij->bij", pi, BASIS)


def parameters_of(pseudo: np.ndarray) -> np.ndarray:
    """The inertial parameters (nb, 10) of J (nb, 4, 4)."""
    second = pseudo[:, :3, :3]
    inertia = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    return np.concatenate((pseudo[:, 3:, 3], pseudo[:, 3, :3], inertia[:, _ROW, _COLUMN]), axis=1)


def pseudo_inertia(
    mass: ArrayLike, com: ArrayLike, inertia: ArrayLike
) -> Float[Array, "*batch 4 4"]:
    """The pseudo-inertia J (..., 4, 4) in kg m^2, kg m and kg; positive definite for any body.

    mass (...,) in kg, com (..., 3) in m, inertia (..., 3, 3) about the centre of mass in kg m^2.
    """
    mass, com = jnp.asarray(mass), jnp.asarray(com)
    first = mass[..., None] * com
    origin = second_moments(jnp.asarray(inertia)) + first[..., :, None] * com[..., None, :]
    above = jnp.concatenate((origin, first[..., None]), axis=-1)
    below = jnp.concatenate((first, mass[..., None]), axis=-1)
    return jnp.concatenate((above, below[..., None, :]), axis=-2)


def log_cholesky(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Float[Array, "*batch 10"]:
    """theta (..., 10) of mass (...,) in kg, com (..., 3) in m and inertia (..., 3, 3) about it.

    alpha is half the logarithm of the mass in kg; d, s and t are those of lengths in m. NaN where
    the parameters are not physically consistent; `inconsistency` says why.
    """
    mass, com = jnp.asarray(mass), jnp.asarray(com)
    f = factor(second_moments(jnp.asarray(inertia)) / mass[..., None, None])
    alpha = jnp.log(mass)[..., None] / 2
    return jnp.concatenate((alpha, jnp.log(f[..., :3]), f[..., 3:], com), axis=-1)


def from_log_cholesky(
    theta: ArrayLike,
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch 3"], Float[Array, "*batch 3 3"]]:
    """mass (...,), com (..., 3) and inertia (..., 3, 3) about it, from theta (..., 10).

    The inverse of `log_cholesky`, in kg, m and kg m^2.
    """
    theta = jnp.asarray(theta)
    mass = jnp.exp(2 * theta[..., 0])
    f = jnp.concatenate((jnp.exp(theta[..., 1:4]), theta[..., 4:7]), axis=-1)
    return mass, theta[..., 7:], mass[..., None, None] * inertia_of(squared(f))


def second_moments(inertia: Float[Array | np.ndarray, "*batch 3 3"]) -> Float[Array, "*batch 3 3"]:
    """S = tr(I) / 2 - I of the symmetric part of an inertia (..., 3, 3), about the same point."""
    symmetric = (inertia + jnp.swapaxes(inertia, -1, -2)) / 2
    trace = jnp.trace(inertia, axis1=-2, axis2=-1)[..., None, None]
    return trace / 2 * jnp.broadcast_to(jnp.eye(3, dtype=inertia.dtype), inertia.shape) - symmetric


def inertia_of(moments: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3 3"]:
    """I = tr(S) - S of second moments (..., 3, 3), the inverse of `second_moments`."""
    xx, xy, xz, yy, yz, zz = jnp.moveaxis(to_six(moments), -1, 0)
    return from_six(jnp.stack((yy + zz, -xy, -xz, xx + zz, -yz, xx + yy), axis=-1))


def factor(moments: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 6"]:
    """The factor F of S = F F^T (..., 3, 3): (f11, f22, f33, f12, f23, f13), diagonal positive.

    F is upper triangular. NaN unless S is positive definite.
    """
    xx, xy, xz, yy, yz, zz = jnp.moveaxis(to_six(moments), -1, 0)
    f33 = jnp.sqrt(zz)
    f13, f23 = xz / f33, yz / f33
    f22 = jnp.sqrt(yy - f23 * f23)
    f12 = (xy - f13 * f23) / f22
    f11 = jnp.sqrt(xx - f12 * f12 - f13 * f13)
    return jnp.stack((f11, f22, f33, f12, f23, f13), axis=-1)


def squared(f: Float[Array, "*batch 6"]) -> Float[Array, "*batch 3 3"]:
    """S = F F^T (..., 3, 3) from its `factor` (..., 6)."""
    f11, f22, f33, f12, f23, f13 = jnp.moveaxis(f, -1, 0)
    xx, yy, zz = f11 * f11 + f12 * f12 + f13 * f13, f22 * f22 + f23 * f23, f33 * f33
    return from_six(jnp.stack((xx, f12 * f22 + f13 * f23, f13 * f33, yy, f23 * f33, zz), axis=-1))


def to_six(symmetric: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 6"]:
    """(xx, xy, xz, yy, yz, zz) (..., 6) of symmetric matrices (..., 3, 3)."""
    return symmetric[..., _ROW, _COLUMN]


def from_six(six: Float[Array, "*batch 6"]) -> Float[Array, "*batch 3 3"]:
    """The symmetric matrices (..., 3, 3) of (xx, xy, xz, yy, yz, zz) (..., 6)."""
    return six[..., _SIX]


def inconsistency(inertia: np.ndarray) -> str:
    """Why no rigid body has this inertia (3, 3) about its centre of mass, with the fix; else "".

    The least second moment must exceed the rounding of the largest.
    """
    off = np.abs(inertia - inertia.T).max()
    if off > np.sqrt(np.finfo(inertia.dtype).eps) * np.abs(inertia).max():
        return f"is not symmetric, by {off:.2g} kg m^2; give its symmetric part"
    a, b, c = (float(moment) for moment in np.linalg.eigvalsh((inertia + inertia.T) / 2))
    least = (a + b - c) / 2
    needed = 16 * float(np.finfo(inertia.dtype).eps) * abs(a + b + c)
    if least > needed:
        return ""
    # Adding x to the diagonal of I adds x / 2 to the diagonal of S.
    hint = f"add {2.2 * (needed - least):.2g} kg m^2 to its diagonal" if c > 0 else "give it one"
    return (
        f"is not physically consistent: the principal moments of inertia {a:.4g}, {b:.4g}, {c:.4g} "
        "kg m^2 must each be less than the sum of the others, but a second moment of mass is "
        f"{least:.2g} kg m^2; {hint}, or fix it"
    )


_WATER = 1000.0  # kg/m^3


def nearest_consistent(mass: float, inertia: np.ndarray) -> np.ndarray:
    """The inertia (3, 3) of a rigid body that is nearest to this one; itself where one has it.

    mass in kg, positive; inertia (3, 3) about the centre of mass in kg m^2, of which the symmetric
    part counts. Of the second moments S = tr(I) / 2 - I of mass the eigenvalues are clipped from
    below at those of a solid ball of water of this mass,

        m r^2 / 5,    r = (3 m / (4 pi 1000 kg/m^3))^(1/3),

    so the result is that of the S nearest in the Frobenius norm of all with no lesser eigenvalue
    (Higham 1988, "Computing a nearest symmetric positive semidefinite matrix", theorem 2.1, for
    S less the bound). Zero inertia becomes the ball's, 2 m r^2 / 5 about each axis.
    """
    symmetric = (np.asarray(inertia) + np.asarray(inertia).T) / 2
    if not inconsistency(symmetric):
        return symmetric
    moments, axes = np.linalg.eigh(np.trace(symmetric) / 2 * np.eye(3) - symmetric)
    clipped = np.maximum(moments, _ball(mass))
    result = (axes * (clipped.sum() - clipped)) @ axes.T
    return ((result + result.T) / 2).astype(symmetric.dtype)


def _ball(mass: float) -> float:
    """The second moment of mass in kg m^2 of a solid ball of water, about each plane through it."""
    radius = (3 * mass / (4 * np.pi * _WATER)) ** (1 / 3)
    return mass * radius**2 / 5
