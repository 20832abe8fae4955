"""SO(3): rotations.

A rotation vector w (3,) in rad stands for the rotation exp(w) (3, 3) by |w| about w. `dexp` is
right-trivialised: d/dt exp(w) = hat(dexp(w) dw/dt) exp(w), so the body-fixed angular velocity is
dexp(-w) dw/dt. A Cayley vector c = tan(|w|/2) w/|w| stands for the same rotation as cay(c).

Functions take one element; batches are `jax.vmap`. The result has the precision of the argument.
Formulas: Park and Chung 2005, (10)-(20); Mueller, section 5.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from . import coefficients as co
from . import quaternion
from .components import Matrix, Scalar, Vector, checked


def quadratic(one: Scalar, a: Scalar, b: Scalar, w: Vector) -> Matrix:
    """The component form of one * I + a hat(w) + b hat(w)^2."""
    x, y, z = b * w.x, b * w.y, b * w.z
    return Matrix(
        *(one - (y * w.y + z * w.z), x * w.y - a * w.z, x * w.z + a * w.y),
        *(x * w.y + a * w.z, one - (x * w.x + z * w.z), y * w.z - a * w.x),
        *(x * w.z - a * w.y, y * w.z + a * w.x, one - (x * w.x + y * w.y)),
    )


def exp_components(w: Vector) -> Matrix:
    """Component form of `exp`: (3,) -> (3, 3)."""
    x = w.square()
    return quadratic(jnp.ones_like(x), co.alpha(x), co.half_beta(x), w)


@jax.custom_jvp
def log_components(r: Matrix) -> Vector:
    """Component form of `log`: (3, 3) -> (3,).

    The derivative is as in `quaternion.log_components`.
    """
    return quaternion.log_components(*quaternion.from_matrix_components(r))


@log_components.defjvp
def _(primals: tuple[Matrix], tangents: tuple[Matrix]) -> tuple[Vector, Vector]:
    (r,), (dr,) = primals, tangents
    w = log_components(r)
    return w, quaternion.rotation_vector_rate(w, (r.transpose() @ dr).axial() * 0.5)


def orthonormalized_components(r: Matrix) -> Matrix:
    """One Newton step towards the nearest rotation (3, 3): errors e become O(e^2)."""
    error = Matrix.scaled_identity(jnp.ones_like(r.xx)) - r.transpose() @ r
    return r + r @ (error * 0.5)


def dexp_components(w: Vector) -> Matrix:
    """Component form of `dexp`: (3,) -> (3, 3)."""
    x = w.square()
    return quadratic(jnp.ones_like(x), co.half_beta(x), co.k_c(x), w)


def dexp_inv_components(w: Vector) -> Matrix:
    """Component form of `dexp_inv`: (3,) -> (3, 3)."""
    x = w.square()
    return quadratic(jnp.ones_like(x), jnp.full_like(x, -0.5), co.k_g(x), w)


def cay_components(c: Vector) -> Matrix:
    """Component form of `cay`: (3,) -> (3, 3)."""
    s = 2 / (1 + c.square())
    return quadratic(jnp.ones_like(s), s, s, c)


def cay_inv_components(r: Matrix) -> Vector:
    """Component form of `cay_inv`: (3, 3) -> (3,)."""
    p0, p = quaternion.from_matrix_components(r)
    return p * (1 / p0)


def dcay_components(c: Vector) -> Matrix:
    """Component form of `dcay`: (3,) -> (3, 3)."""
    s = 2 / (1 + c.square())
    return quadratic(s, s, jnp.zeros_like(s), c)


def half_one_plus_cay_components(c: Vector) -> Matrix:
    """(I - hat(c))^-1 = (I + cay(c)) / 2 = (I + hat(c) + c c^T) / (1 + |c|^2)."""
    s = 1 / (1 + c.square())
    return Matrix.scaled_identity(s) + Matrix.skew(c * s) + c.outer(c * s)


def dcay_inv_components(c: Vector) -> Matrix:
    """Component form of `dcay_inv`: (I - hat(c) + c c^T) / 2, which has no cancellation."""
    half = jnp.full_like(c.x, 0.5)
    return Matrix.scaled_identity(half) - Matrix.skew(c * 0.5) + c.outer(c * 0.5)


def hat(w: ArrayLike) -> Float[Array, "3 3"]:
    """The skew matrix of a vector, in its unit: hat(w) u = w x u.

    Shapes: (3,) -> (3, 3).
    """
    return Matrix.skew(_vector(w)).to_array()


def vee(m: ArrayLike) -> Float[Array, "3"]:
    """The vector of a skew matrix m, vee(hat(w)) = w; of any other m that of its skew part.

    Shapes: (3, 3) -> (3,), in the unit of m.
    """
    return (_matrix(m).axial() * 0.5).to_array()


def exp(w: ArrayLike) -> Float[Array, "3 3"]:
    """The rotation by |w| rad about w: the matrix exponential of hat(w).

    Shapes: (3,) -> (3, 3). Park and Chung 2005, (12).

    >>> rotation = dl.so3.exp(np.array([0.0, 0.0, np.pi / 2]))
    >>> print((rotation @ np.array([1.0, 2.0, 3.0])).round(3))
    [-2.  1.  3.]
    """
    return exp_components(_vector(w)).to_array()


def log(r: ArrayLike) -> Float[Array, "3"]:
    """The rotation vector of least length, exp(log(r)) = r, of length at most pi rad.

    Shapes: (3, 3) -> (3,). Accurate up to and at pi, where both signs stand for the same rotation
    and the derivative is that of the branch returned. The rotation must be orthogonal to rounding;
    derivatives are those along the group.

    >>> print(dl.so3.log(dl.so3.exp(np.array([0.1, 0.2, 0.3]))).round(6))
    [0.1 0.2 0.3]
    """
    return log_components(_matrix(r)).to_array()


def dexp(w: ArrayLike) -> Float[Array, "3 3"]:
    """The right-trivialised differential: d exp(w) = hat(dexp(w) dw) exp(w).

    Shapes: (3,) -> (3, 3). w in rad. Park and Chung 2005, (18).
    """
    return dexp_components(_vector(w)).to_array()


def dexp_inv(w: ArrayLike) -> Float[Array, "3 3"]:
    """The inverse of `dexp`; singular only at |w| = 2 pi k rad, k >= 1.

    Shapes: (3,) -> (3, 3). Park and Chung 2005, (19).
    """
    return dexp_inv_components(_vector(w)).to_array()


def cay(c: ArrayLike) -> Float[Array, "3 3"]:
    """The Cayley map (I - hat(c))^-1 (I + hat(c)); c = tan(t/2) times the axis, t the angle.

    Shapes: (3,) -> (3, 3), c without unit. It never reaches a rotation by pi rad.
    """
    return cay_components(_vector(c)).to_array()


def cay_inv(r: ArrayLike) -> Float[Array, "3"]:
    """The Cayley vector of a rotation, cay(cay_inv(r)) = r; singular at rotations by pi rad.

    Shapes: (3, 3) -> (3,). The rounding of r is felt |c| times as strongly in c near pi.
    """
    return cay_inv_components(_matrix(r)).to_array()


def dcay(c: ArrayLike) -> Float[Array, "3 3"]:
    """The right-trivialised differential: d cay(c) = hat(dcay(c) dc) cay(c).

    Shapes: (3,) -> (3, 3). c is without unit, as of `cay`.
    """
    return dcay_components(_vector(c)).to_array()


def dcay_inv(c: ArrayLike) -> Float[Array, "3 3"]:
    """The inverse of `dcay`, (I - hat(c) + c c^T) / 2; regular everywhere.

    Shapes: (3,) -> (3, 3). c is without unit, as of `cay`.
    """
    return dcay_inv_components(_vector(c)).to_array()


def _vector(w: ArrayLike) -> Vector:
    return Vector.from_array(checked(w, (3,), "so3"))


def _matrix(m: ArrayLike) -> Matrix:
    return Matrix.from_array(checked(m, (3, 3), "so3"))
