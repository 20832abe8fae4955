"""Configuration manifolds, as an integrator sees them.

Every manifold here is a Lie group. Points are flat arrays or tuples of them. Tangents are flat
vectors in the Lie algebra, left-trivialised (body-fixed): a motion y(t) with the rate xi(t) obeys
dy/dt = y . hat(xi).

Steps are taken in local coordinates psi: exp, and on `UnitQuaternion` and `Pose` any `Chart`. Every
step normalises its point, because the tiny rounding errors of products would otherwise accumulate.
Derivatives with respect to the coordinates of a point are therefore along the manifold.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .charts import Chart, Exponential


class Manifold(eqx.Module):
    """A configuration space with points y and tangents xi, eta, theta.

    Each manifold's docstring gives their shapes. Lengths are in m, angles in rad.
    """

    @abc.abstractmethod
    def retract(self, y: Any, xi: Any) -> Any:
        """y . psi(xi); with psi = exp the point reached at the constant rate xi in unit time."""

    @abc.abstractmethod
    def difference(self, y0: Any, y1: Any) -> Any:
        """The tangent xi of least rotation with retract(y0, xi) = y1."""

    @abc.abstractmethod
    def dexp_inv(self, theta: Any, xi: Any) -> Any:
        """dpsi_{-theta}^-1 xi: d theta/dt when y0 . psi(theta(t)) moves at the rate xi."""

    @abc.abstractmethod
    def magnitude(self, y: Any) -> Any:
        """The scale of relative errors at y, a tangent: |coordinates|, and 1 rad for attitudes."""

    @abc.abstractmethod
    def bracket(self, xi: Any, eta: Any) -> Any:
        """The Lie bracket [xi, eta] = ad_xi eta of two tangents."""

    def in_chart(self, chart: Chart) -> Manifold:
        """The same points and tangents with other local coordinates.

        Raises TypeError where the manifold has none but the exponential.
        """
        if chart == Exponential():
            return self
        raise TypeError(
            f"{type(self).__name__} has exponential coordinates only, not those of {chart}; use "
            "UnitQuaternion, Pose or a product of these and Euclidean"
        )


class FlatManifold(Manifold):
    """A manifold whose points (point_size,) and tangents (tangent_size,) are single arrays.

    Lengths are in m, angles in rad, as of `Manifold`.
    """

    point_size: ClassVar[int]
    tangent_size: ClassVar[int]
    # Whether coordinates are plain numbers and tangents their time derivatives.
    plain: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each coordinate of a point; empty if they are only numbered."""
        return ()

    @abc.abstractmethod
    def identity(self) -> np.ndarray:
        """The neutral point (point_size,), at which the coordinates are zero."""

    def defect(self, y: jax.Array) -> jax.Array:
        """The distance of a point y (point_size,) from the manifold, a scalar in its own units."""
        return jnp.zeros((), y.dtype)

    def fault(self, y: np.ndarray) -> tuple[str, int, str]:
        """The words of an error message about a point y (point_size,) off the manifold.

        A noun, the number of leading coordinates that it stands for, and the fault with its fix.
        """
        off = float(self.defect(jnp.asarray(y)))
        return "point", self.point_size, f"is {off:.6g} off its manifold; take one that is on it"

    @abc.abstractmethod
    def adjoint(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        """Ad_{psi(theta)} xi: the rate at y that corresponds to xi at retract(y, theta)."""

    @abc.abstractmethod
    def halfway(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        """(1 + Ad_g)^-1 xi, g . g = psi(theta); with exp dexp_{theta/2} dexp_theta^-1 xi / 2.

        The rate of the point halfway between y and retract(y, theta) when y moves at the rate xi
        and the other end is fixed. When the other end moves at the rate xi and y is fixed, the rate
        is xi minus this. It is linear in xi.
        """


class Euclidean(FlatManifold):
    """R^n, n = size: points and tangents are arrays (n,), or of any one shape."""

    size: int = eqx.field(static=True)

    plain = True

    def identity(self) -> np.ndarray:
        return np.zeros(self.size)

    @property
    def point_size(self) -> int:
        """n."""
        return self.size

    @property
    def tangent_size(self) -> int:
        """n."""
        return self.size

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        _check_equal_shapes(y, xi)
        return y + xi

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        _check_equal_shapes(y0, y1)
        return y1 - y0

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        _check_equal_shapes(theta, xi)
        return xi

    def magnitude(self, y: jax.Array) -> jax.Array:
        return jnp.abs(y)

    def bracket(self, xi: jax.Array, eta: jax.Array) -> jax.Array:
        _check_equal_shapes(xi, eta)
        return jnp.zeros_like(eta)

    def in_chart(self, chart: Chart) -> Euclidean:
        return self

    def adjoint(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return xi

    def halfway(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return xi / 2


def _check_equal_shapes(a: ArrayLike, b: ArrayLike) -> None:
    if jnp.shape(a) != jnp.shape(b):
        raise ValueError(
            f"difflie.manifold: expected two arrays of one shape, got {jnp.shape(a)} and "
            f"{jnp.shape(b)}"
        )
