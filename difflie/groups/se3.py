"""SE(3): rigid motions.

A twist V = (w, v) (6,) has its angular part first, in rad and m. A pose is a matrix
T = [[R, r], [0, 1]] (4, 4) that takes body to world coordinates. `dexp` is right-trivialised:
d/dt exp(V) = hat(dexp(V) dV/dt) exp(V), so the body-fixed twist is dexp(-V) dV/dt.

Functions take one element; batches are `jax.vmap`. The result has the precision of the argument.
Formulas: Park and Chung 2005, (13)-(24); Mueller, section 5.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from . import coefficients as co
from . import so3
from .components import Matrix, Scalar, Vector, checked


def exp_translation_components(w: Vector, v: Vector) -> Vector:
    """The translation (3,) dexp_w v of exp(w, v)."""
    x = w.square()
    return v * co.alpha(x) + w * (co.k_c(x) * w.dot(v)) + w.cross(v) * co.half_beta(x)


def dexp_corner_components(w: Vector, v: Vector) -> Matrix:
    """The lower-left block (3, 3) of dexp: the derivative of dexp_w in the direction v."""
    x, wv = w.square(), w.dot(v)
    return _corner(wv * co.k_d(x), wv * co.k_e(x), co.half_beta(x), co.k_c(x), w, v)


def dexp_inv_corner_components(w: Vector, v: Vector) -> Matrix:
    """The lower-left block (3, 3) of dexp^-1: the derivative of dexp_w^-1 in the direction v."""
    x, wv = w.square(), w.dot(v)
    half = jnp.full_like(x, -0.5)
    return _corner(jnp.zeros_like(x), wv * co.k_h(x), half, co.k_g(x), w, v)


def _corner(a: Scalar, b: Scalar, c: Scalar, d: Scalar, w: Vector, v: Vector) -> Matrix:
    """a hat(w) + b hat(w)^2 + c hat(v) + d (hat(v) hat(w) + hat(w) hat(v))."""
    square = so3.quadratic(jnp.zeros_like(a), a, b, w)
    mixed = v.outer(w) + w.outer(v) - Matrix.scaled_identity(2 * w.dot(v))
    return square + Matrix.skew(v * c) + mixed * d


def hat(V: ArrayLike) -> Float[Array, "4 4"]:
    """The matrix [[hat(w), v], [0, 0]] of a twist V = (w, v), in its units.

    Shapes: (6,) -> (4, 4).
    """
    w, v = twist_components(V)
    return _homogeneous(Matrix.skew(w), v, 0.0)


def vee(m: ArrayLike) -> Float[Array, "6"]:
    """The twist of a matrix m: vee(hat(V)) = V; only the skew part of the upper left block counts.

    Shapes: (4, 4) -> (6,).
    """
    r, v = pose_components(m)
    return twist_array(r.axial() * 0.5, v)


def exp(V: ArrayLike) -> Float[Array, "4 4"]:
    """The rigid motion along the screw V: the matrix exponential of hat(V).

    Shapes: (6,) -> (4, 4). Park and Chung 2005, (13).

    >>> pose = dl.se3.exp(np.array([0.0, 0.0, np.pi / 2, 1.0, 0.0, 0.0]))
    >>> print((pose @ np.array([1.0, 2.0, 3.0, 1.0])).round(3))
    [-1.363  1.637  3.     1.   ]
    """
    w, v = twist_components(V)
    return pose_array(so3.exp_components(w), exp_translation_components(w, v))


def log(T: ArrayLike) -> Float[Array, "6"]:
    """The screw of least rotation, exp(log(T)) = T, its angle at most pi rad.

    Shapes: (4, 4) -> (6,). Accurate up to and at pi, as `so3.log`.
    """
    r, p = pose_components(T)
    w = so3.log_components(r)
    return twist_array(w, so3.dexp_inv_components(w) @ p)


def dexp(V: ArrayLike) -> Float[Array, "6 6"]:
    """The right-trivialised differential: d exp(V) = hat(dexp(V) dV) exp(V).

    Shapes: (6,) -> (6, 6). Park and Chung 2005, (21).
    """
    w, v = twist_components(V)
    diagonal = so3.dexp_components(w)
    return _lower(diagonal, dexp_corner_components(w, v), diagonal)


def dexp_inv(V: ArrayLike) -> Float[Array, "6 6"]:
    """The inverse of `dexp` at V = (w, v); singular only at |w| = 2 pi k rad, k >= 1.

    Shapes: (6,) -> (6, 6). Park and Chung 2005, (24).
    """
    w, v = twist_components(V)
    diagonal = so3.dexp_inv_components(w)
    return _lower(diagonal, dexp_inv_corner_components(w, v), diagonal)


def cay(X: ArrayLike) -> Float[Array, "4 4"]:
    """The Cayley map (I - hat(X))^-1 (I + hat(X)) of X = (c, d), c = tan(t/2) times the axis.

    Shapes: (6,) -> (4, 4). c is without unit, d in m: half the translation where c = 0. Mueller,
    (62).
    """
    c, d = twist_components(X)
    return pose_array(so3.cay_components(c), so3.half_one_plus_cay_components(c) @ (d * 2))


def cay_inv(T: ArrayLike) -> Float[Array, "6"]:
    """The extended Rodrigues parameters, cay(cay_inv(T)) = T; singular at rotations by pi rad.

    Shapes: (4, 4) -> (6,).
    """
    r, p = pose_components(T)
    c = so3.cay_inv_components(r)
    return twist_array(c, (p - c.cross(p)) * 0.5)


def dcay(X: ArrayLike) -> Float[Array, "6 6"]:
    """The right-trivialised differential: d cay(X) = hat(dcay(X) dX) cay(X).

    Shapes: (6,) -> (6, 6). X as of `cay`.
    """
    c, d = twist_components(X)
    diagonal = so3.dcay_components(c)
    return _lower(diagonal, Matrix.skew(d) @ diagonal, so3.half_one_plus_cay_components(c) * 2)


def dcay_inv(X: ArrayLike) -> Float[Array, "6 6"]:
    """The inverse of `dcay`; regular everywhere.

    Shapes: (6,) -> (6, 6). X as of `cay`. Mueller, (63).
    """
    c, d = twist_components(X)
    half = (Matrix.scaled_identity(jnp.ones_like(c.x)) - Matrix.skew(c)) * 0.5
    return _lower(so3.dcay_inv_components(c), -(half @ Matrix.skew(d)), half)


def Ad(T: ArrayLike) -> Float[Array, "6 6"]:
    """The adjoint: hat(Ad(T) V) = T hat(V) T^-1, a twist in the frame that T maps to.

    Shapes: (4, 4) -> (6, 6).
    """
    r, p = pose_components(T)
    return _lower(r, Matrix.skew(p) @ r, r)


def ad(V: ArrayLike) -> Float[Array, "6 6"]:
    """The Lie bracket: hat(ad(V) U) = hat(V) hat(U) - hat(U) hat(V).

    Shapes: (6,) -> (6, 6).
    """
    w, v = twist_components(V)
    return _lower(Matrix.skew(w), Matrix.skew(v), Matrix.skew(w))


def inverse(T: ArrayLike) -> Float[Array, "4 4"]:
    """The inverse [[R^T, -R^T r], [0, 1]] of a pose T = [[R, r], [0, 1]], r in m.

    Shapes: (4, 4) -> (4, 4).
    """
    r, p = pose_components(T)
    return pose_array(r.transpose(), -r.transposed_times(p))


def twist_components(V: ArrayLike) -> tuple[Vector, Vector]:
    """The angular and the linear part of a twist (6,)."""
    V = checked(V, (6,), "se3")
    return Vector.from_array(V[:3]), Vector.from_array(V[3:])


def twist_array(w: Vector, v: Vector) -> Float[Array, "6"]:
    """The twist (6,) of its angular and its linear part, w and v (3,), in their units."""
    return jnp.concatenate((w.to_array(), v.to_array()))


def pose_components(T: ArrayLike) -> tuple[Matrix, Vector]:
    """The rotation and the position of a pose (4, 4)."""
    T = checked(T, (4, 4), "se3")
    return Matrix.from_array(T[:3, :3]), Vector.from_array(T[:3, 3])


def pose_array(r: Matrix, p: Vector) -> Float[Array, "4 4"]:
    """The pose (4, 4) of its rotation r (3, 3) and its position p (3,) in m."""
    return _homogeneous(r, p, 1.0)


def _homogeneous(r: Matrix, p: Vector, corner: float) -> Float[Array, "4 4"]:
    top = jnp.concatenate((r.to_array(), p.to_array()[:, None]), axis=1)
    bottom = jnp.asarray([[0.0, 0.0, 0.0, corner]], dtype=top.dtype)
    return jnp.concatenate((top, bottom), axis=0)


def _lower(a: Matrix, corner: Matrix, b: Matrix) -> Float[Array, "6 6"]:
    top = jnp.concatenate((a.to_array(), jnp.zeros_like(a.to_array())), axis=1)
    return jnp.concatenate((top, jnp.concatenate((corner.to_array(), b.to_array()), axis=1)))
