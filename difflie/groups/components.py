"""Three-vectors and 3x3 matrices as scalar components.

The inner loops of rigid-body dynamics run on scalars, not on small arrays: under `jax.vmap` every
component becomes one contiguous vector over the batch, and no tiny matrix product is left for the
compiler to launch. These two classes give the components their algebra, so that formulas still
read like the page of a book. A component may be a Python float or an array of any shape; all
operations are elementwise in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

Components = TypeVar("Components")
Scalar = Any  # a float or an array; every component of one object has the same shape


def components(cls: type[Components]) -> type[Components]:
    """Registers a dataclass as a pytree whose children are its fields."""
    return jax.tree_util.register_dataclass(cls, [f.name for f in fields(cast(Any, cls))], [])


class Componentwise:
    """Sums, differences and multiples of a dataclass with slots, component by component."""

    __slots__: tuple[str, ...] = ()

    def _of(self, values: Iterable[Any]) -> Self:
        cls: Any = type(self)
        return cls(*values)

    def __add__(self, o: Self) -> Self:
        return self._of(getattr(self, name) + getattr(o, name) for name in self.__slots__)

    def __sub__(self, o: Self) -> Self:
        return self._of(getattr(self, name) - getattr(o, name) for name in self.__slots__)

    def __neg__(self) -> Self:
        return self._of(-getattr(self, name) for name in self.__slots__)

    def __mul__(self, s: Scalar) -> Self:
        return self._of(getattr(self, name) * s for name in self.__slots__)

    __rmul__ = __mul__


@components
@dataclass(frozen=True, slots=True)
class Vector(Componentwise):
    """A vector of R^3 with scalar components x, y, z."""

    x: Scalar
    y: Scalar
    z: Scalar

    @staticmethod
    def from_array(a: jax.Array) -> Vector:
        """The components of an array of shape (..., 3)."""
        return Vector(a[..., 0], a[..., 1], a[..., 2])

    def to_array(self) -> jax.Array:
        """The array of shape (..., 3)."""
        return jnp.stack((self.x, self.y, self.z), axis=-1)

    def dot(self, o: Vector) -> Scalar:
        return self.x * o.x + self.y * o.y + self.z * o.z

    def cross(self, o: Vector) -> Vector:
        return Vector(
            self.y * o.z - self.z * o.y,
            self.z * o.x - self.x * o.z,
            self.x * o.y - self.y * o.x,
        )

    def outer(self, o: Vector) -> Matrix:
        """self o^T (3, 3)."""
        return Matrix(
            *(self.x * o.x, self.x * o.y, self.x * o.z),
            *(self.y * o.x, self.y * o.y, self.y * o.z),
            *(self.z * o.x, self.z * o.y, self.z * o.z),
        )

    def square(self) -> Scalar:
        """The squared length."""
        return self.dot(self)


@components
@dataclass(frozen=True, slots=True)
class Matrix(Componentwise):
    """A 3x3 matrix with nine scalar components, row by row."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yx: Scalar
    yy: Scalar
    yz: Scalar
    zx: Scalar
    zy: Scalar
    zz: Scalar

    @staticmethod
    def from_array(a: jax.Array) -> Matrix:
        """The components of an array of shape (..., 3, 3)."""
        return Matrix(*(a[..., i, j] for i in range(3) for j in range(3)))

    def to_array(self) -> jax.Array:
        """The array of shape (..., 3, 3)."""
        e = jnp.stack(jax.tree.leaves(self), axis=-1)
        return e.reshape((*e.shape[:-1], 3, 3))

    @staticmethod
    def scaled_identity(s: Scalar) -> Matrix:
        """s I (3, 3)."""
        o = s * 0
        return Matrix(s, o, o, o, s, o, o, o, s)

    @staticmethod
    def skew(v: Vector) -> Matrix:
        """The matrix of the cross product: skew(v) u = v x u."""
        o = v.x * 0
        return Matrix(o, -v.z, v.y, v.z, o, -v.x, -v.y, v.x, o)

    def axial(self) -> Vector:
        """Twice the axial vector of the skew part: (m_zy - m_yz, m_xz - m_zx, m_yx - m_xy)."""
        return Vector(self.zy - self.yz, self.xz - self.zx, self.yx - self.xy)

    def transpose(self) -> Matrix:
        return Matrix(
            *(self.xx, self.yx, self.zx), *(self.xy, self.yy, self.zy), *(self.xz, self.yz, self.zz)
        )

    def __matmul__(self, o: Any) -> Any:
        """The product with a Vector or a Matrix."""
        if isinstance(o, Vector):
            return Vector(
                self.xx * o.x + self.xy * o.y + self.xz * o.z,
                self.yx * o.x + self.yy * o.y + self.yz * o.z,
                self.zx * o.x + self.zy * o.y + self.zz * o.z,
            )
        columns = [
            self @ Vector(*column)
            for column in ((o.xx, o.yx, o.zx), (o.xy, o.yy, o.zy), (o.xz, o.yz, o.zz))
        ]
        (a, b, c) = columns
        return Matrix(a.x, b.x, c.x, a.y, b.y, c.y, a.z, b.z, c.z)

    def transposed_times(self, v: Vector) -> Vector:
        """self^T v, without forming the transpose."""
        return Vector(
            self.xx * v.x + self.yx * v.y + self.zx * v.z,
            self.xy * v.x + self.yy * v.y + self.zy * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )


def across(n: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors, components () as of n, orthogonal to a unit vector n and to each other."""
    # By the smallest rotation from z, or from -z in the lower half.
    up = n.z >= 0
    a = 1 / (1 + jnp.where(up, n.z, -n.z))
    sign = jnp.where(up, 1.0, -1.0).astype(jnp.result_type(n.z))
    x = Vector(1 - n.x * n.x * a, -n.x * n.y * a, -n.x * sign)
    y = Vector(-n.x * n.y * a, 1 - n.y * n.y * a, -n.y * sign)
    return x, y


def checked(a: ArrayLike, shape: tuple[int, ...], where: str) -> jax.Array:
    """`a` as a floating-point array of this shape; integers are converted.

    Raises ValueError for another shape; the message names the module and the fix.
    """
    a = jnp.asarray(a)
    if a.shape != shape:
        raise ValueError(
            f"difflie.{where}: expected an array of shape {shape}, got {a.shape}; "
            "for a batch use jax.vmap"
        )
    return a if jnp.issubdtype(a.dtype, jnp.floating) else a.astype(float)
