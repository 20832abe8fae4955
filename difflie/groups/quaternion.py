"""Unit quaternions (w, x, y, z): rotations without a matrix.

q and -q are the same attitude. The rotation vector w (3,) in rad and the quaternion
exp(w) = (cos(|w|/2), sin(|w|/2) w/|w|) stand for the same rotation.

Functions take one element; batches are `jax.vmap`. Formulas: Mueller, section 5.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from . import coefficients as co
from .components import Matrix, Scalar, Vector, checked


def exp_components(w: Vector) -> tuple[Scalar, Vector]:
    """Component form of `exp`: (3,) -> (4,)."""
    x = w.square()
    return co.cos_half(x), w * co.half_sinc_half(x)


@jax.custom_jvp
def log_components(p0: Scalar, p: Vector) -> Vector:
    """Component form of `log`: (4,) -> (3,).

    With p0 >= 0 the rotation angle t is at most pi. Halving it twice more, by tan(t/4) and
    tan(t/8), costs two square roots and leaves an arctangent whose series converges without a
    switch.

    The derivative is that of a body with the angular velocity of q. Differentiating the square
    roots is as accurate, but the compiler would fuse that chain into each of its uses, and the
    second derivative of a logarithm would take a thousand times as long.
    """
    return p * vector_ratio_components(p0, p.square())


def vector_ratio_components(p0: Scalar, x: Scalar) -> Scalar:
    """|log(q)| / |p|, a scalar, of a quaternion q = (p0, p) of any length, with x = |p|^2."""
    sign = jnp.where(p0 < 0, -jnp.ones_like(p0), jnp.ones_like(p0))
    quarter = sign / (jnp.sqrt(p0 * p0 + x) + sign * p0)  # tan(t/4) over |p|
    y = x * (quarter * quarter)
    eighth = 1 / (1 + jnp.sqrt(1 + y))  # tan(t/8) over tan(t/4)
    return 8 * quarter * eighth * co.arctangent_ratio(y * (eighth * eighth))


@log_components.defjvp
def _(primals: tuple[Scalar, Vector], tangents: tuple[Scalar, Vector]) -> tuple[Vector, Vector]:
    (p0, p), (dp0, dp) = primals, tangents
    w = log_components(p0, p)
    u = (dp * p0 - p * dp0 - p.cross(dp)) * (2 / (p0 * p0 + p.square()))
    return w, rotation_vector_rate(w, u)


def rotation_vector_rate(w: Vector, u: Vector) -> Vector:
    """dexp_{-w}^-1 u: dw/dt (3,) when the body has the body-fixed angular velocity u (3,)."""
    turn = w.cross(u)
    return u + turn * 0.5 + w.cross(turn) * co.k_g(w.square())


def multiply_components(a0: Scalar, a: Vector, b0: Scalar, b: Vector) -> tuple[Scalar, Vector]:
    """Component form of `multiply`: (4,), (4,) -> (4,)."""
    return a0 * b0 - a.dot(b), b * a0 + a * b0 + a.cross(b)


def normalized_components(p0: Scalar, p: Vector) -> tuple[Scalar, Vector]:
    """The unit quaternion (4,) in the direction of a nonzero quaternion (4,)."""
    scale = 1 / jnp.sqrt(p0 * p0 + p.square())
    return p0 * scale, p * scale


def to_matrix_components(p0: Scalar, p: Vector) -> Matrix:
    """Component form of `to_matrix`: (4,) -> (3, 3)."""
    s = 2 / (p0 * p0 + p.square())
    x, y, z = s * p.x, s * p.y, s * p.z
    return Matrix(
        *(1 - (y * p.y + z * p.z), x * p.y - z * p0, x * p.z + y * p0),
        *(x * p.y + z * p0, 1 - (x * p.x + z * p.z), y * p.z - x * p0),
        *(x * p.z - y * p0, y * p.z + x * p0, 1 - (x * p.x + y * p.y)),
    )


def from_matrix_components(r: Matrix) -> tuple[Scalar, Vector]:
    """Component form of `from_matrix`: (3, 3) -> (4,).

    For each i, 4 p_i times the quaternion is linear in the matrix. The candidate with the largest
    p_i has length at least 2, so normalising it is always safe (Shepperd 1978).
    """
    trace, one = r.xx + r.yy + r.zz, 1
    rows = (
        (one + trace, r.zy - r.yz, r.xz - r.zx, r.yx - r.xy),
        (r.zy - r.yz, one + r.xx - r.yy - r.zz, r.xy + r.yx, r.xz + r.zx),
        (r.xz - r.zx, r.xy + r.yx, one + r.yy - r.xx - r.zz, r.yz + r.zy),
        (r.yx - r.xy, r.xz + r.zx, r.yz + r.zy, one + r.zz - r.xx - r.yy),
    )
    sizes = (trace, r.xx, r.yy, r.zz)
    best, row = sizes[0], rows[0]
    for size, candidate in zip(sizes[1:], rows[1:], strict=True):
        better = size > best
        best = jnp.where(better, size, best)
        row = tuple(jnp.where(better, c, v) for c, v in zip(candidate, row, strict=True))
    p0, x, y, z = row
    scale = jnp.where(p0 < 0, -1, 1) / jnp.sqrt(p0 * p0 + (x * x + y * y + z * z))
    return p0 * scale, Vector(x * scale, y * scale, z * scale)


def multiply(a: ArrayLike, b: ArrayLike) -> Float[Array, "4"]:
    """The Hamilton product: to_matrix(multiply(a, b)) = to_matrix(a) to_matrix(b).

    Shapes: (4,), (4,) -> (4,), each (w, x, y, z) without unit.
    """
    return _pack(*multiply_components(*_unpack(a), *_unpack(b)))


def conjugate(q: ArrayLike) -> Float[Array, "4"]:
    """(w, -x, -y, -z): the inverse of a unit quaternion q = (w, x, y, z).

    Shapes: (4,) -> (4,).
    """
    p0, p = _unpack(q)
    return _pack(p0, -p)


def exp(w: ArrayLike) -> Float[Array, "4"]:
    """The unit quaternion (w, x, y, z) of the rotation by |w| rad about w.

    Shapes: (3,) -> (4,). to_matrix(exp(w)) = so3.exp(w).
    """
    return _pack(*exp_components(Vector.from_array(checked(w, (3,), "quaternion"))))


def log(q: ArrayLike) -> Float[Array, "3"]:
    """The rotation vector of least length, at most pi rad; log(q) = log(-q) = log(s q), s > 0.

    Shapes: (4,) -> (3,). Regular for every rotation, also at 0 and pi; singular only at q = 0, that
    is, where the square of its length underflows.
    """
    return log_components(*_unpack(q)).to_array()


def to_matrix(q: ArrayLike) -> Float[Array, "3 3"]:
    """The rotation matrix of a quaternion q = (w, x, y, z), whose length does not matter.

    Shapes: (4,) -> (3, 3), without unit.
    """
    return to_matrix_components(*_unpack(q)).to_array()


def from_matrix(r: ArrayLike) -> Float[Array, "4"]:
    """The unit quaternion (w, x, y, z), w >= 0, of a rotation matrix r.

    Shapes: (3, 3) -> (4,). Regular for every rotation; at rotations by pi the sign is arbitrary.

    >>> print(dl.quaternion.from_matrix(dl.so3.exp(np.array([0.2, 0.4, 0.4]))).round(3))
    [0.955 0.099 0.197 0.197]
    """
    return _pack(*from_matrix_components(Matrix.from_array(checked(r, (3, 3), "quaternion"))))


def _unpack(q: ArrayLike) -> tuple[Scalar, Vector]:
    q = checked(q, (4,), "quaternion")
    return q[0], Vector(q[1], q[2], q[3])


def _pack(p0: Scalar, p: Vector) -> Float[Array, "4"]:
    return jnp.stack((p0, p.x, p.y, p.z))
