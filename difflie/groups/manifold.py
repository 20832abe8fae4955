"""Configuration manifolds, as an integrator sees them.

Every manifold here is a Lie group written as points (flat arrays, or tuples of them), with flat
tangent vectors in its Lie algebra, left-trivialised (body-fixed): along a motion y(t) with rate
xi(t) holds dy/dt = y . hat(xi).

Steps are taken in local coordinates psi: exp, and on `UnitQuaternion` and `Pose` any `Chart`. What
rounding takes a point off its manifold, every step takes back: the errors of products, tiny as they
are, would collect in one direction. So derivatives with respect to a point, in its coordinates, are
along the manifold.
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
    """What an integrator may ask of a configuration space; points are y, tangents xi, eta, theta.

    Their shapes are in the docstring of each manifold. Lengths are in m and turns in rad.
    """

    @abc.abstractmethod
    def retract(self, y: Any, xi: Any) -> Any:
        """y . psi(xi); with psi = exp the point reached from y at the rate xi in unit time."""

    @abc.abstractmethod
    def difference(self, y0: Any, y1: Any) -> Any:
        """The xi of least rotation with retract(y0, xi) = y1."""

    @abc.abstractmethod
    def dexp_inv(self, theta: Any, xi: Any) -> Any:
        """dpsi_{-theta}^-1 xi: d theta/dt when y0 . psi(theta(t)) moves with the rate xi."""

    @abc.abstractmethod
    def magnitude(self, y: Any) -> Any:
        """What an error, a tangent at y, is relative to: coordinates, and 1 rad for attitudes."""

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
    """One whose points (point_size,) and tangents (tangent_size,) are single arrays."""

    point_size: ClassVar[int]
    tangent_size: ClassVar[int]
    # Whether points are plain numbers, and tangents the derivatives of these.
    plain: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """The name of each number of a point, and its unit; empty where they are counted."""
        return ()

    @abc.abstractmethod
    def identity(self) -> np.ndarray:
        """The neutral point (point_size,), at which the coordinates are zero."""

    def defect(self, y: jax.Array) -> jax.Array:
        """How far a point is off the manifold, in its own units, (): 0 where all are on it."""
        return jnp.zeros((), y.dtype)

    def fault(self, y: np.ndarray) -> tuple[str, int, str]:
        """What a point that is too far off is called, how many of its numbers it concerns, and
        what is wrong with them, with the fix."""
        off = float(self.defect(jnp.asarray(y)))
        return "point", self.point_size, f"is {off:.6g} off its manifold; take one that is on it"

    @abc.abstractmethod
    def adjoint(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        """Ad_{psi(theta)} xi: a rate at retract(y, theta), as one at y that moves both alike."""

    @abc.abstractmethod
    def halfway(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        """(1 + Ad_g)^-1 xi, g . g = psi(theta); with exp dexp_{theta/2} dexp_theta^-1 xi / 2.

        The rate of the point halfway from y to retract(y, theta) when y moves with the rate xi and
        the other end rests. When that moves and y rests, it is xi less this, linear in xi as it is.
        """


class Euclidean(FlatManifold):
    """R^n: points and tangents are arrays (n,), or of any one shape."""

    size: int = eqx.field(static=True)

    plain = True

    def identity(self) -> np.ndarray:
        return np.zeros(self.size)

    @property
    def point_size(self) -> int:
        return self.size

    @property
    def tangent_size(self) -> int:
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
