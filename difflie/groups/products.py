"""Products of manifolds: with points and tangents as tuples, or as flat arrays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .charts import Chart
from .components import checked
from .manifold import FlatManifold, Manifold


class Product(Manifold):
    """The product of manifolds: points and tangents are tuples, one entry for each factor."""

    factors: tuple[Manifold, ...]

    def retract(self, y: tuple[Any, ...], xi: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._each("retract", y, xi)

    def difference(self, y0: tuple[Any, ...], y1: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._each("difference", y0, y1)

    def dexp_inv(self, theta: tuple[Any, ...], xi: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._each("dexp_inv", theta, xi)

    def magnitude(self, y: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._each("magnitude", y)

    def bracket(self, xi: tuple[Any, ...], eta: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._each("bracket", xi, eta)

    def in_chart(self, chart: Chart) -> Product:
        return Product(tuple(m.in_chart(chart) for m in self.factors))

    def _each(self, method: str, *parts: Sequence[Any]) -> tuple:
        """The results of one method of every factor, applied to its parts of the arguments."""
        arguments = zip(self.factors, *parts, strict=True)
        return tuple(getattr(factor, method)(*own) for factor, *own in arguments)


class FlatProduct(FlatManifold):
    """The product of flat factors: points (nq,) and tangents (nv,), concatenated.

    The joints of this package use `Euclidean`, `UnitQuaternion` and `Pose`.
    """

    factors: tuple[FlatManifold, ...]

    @property
    def point_size(self) -> int:
        """nq, the sum over the factors."""
        return sum(m.point_size for m in self.factors)

    @property
    def tangent_size(self) -> int:
        """nv, the sum over the factors."""
        return sum(m.tangent_size for m in self.factors)

    def identity(self) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(m.identity() for m in self.factors)])

    def defect(self, y: jax.Array) -> jax.Array:
        off = self._each("defect", self._points(y))
        return jnp.max(jnp.stack([jnp.zeros((), y.dtype), *off]))

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.point_size}"]:
        return _join(self._each("retract", self._points(y), self._tangents(xi)), y)

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return _join(self._each("difference", self._points(y0), self._points(y1)), y0)

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self._of_tangents("dexp_inv", theta, xi)

    def magnitude(self, y: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return _join(self._each("magnitude", self._points(y)), y)

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self._of_tangents("bracket", xi, eta)

    def in_chart(self, chart: Chart) -> FlatProduct:
        factors: Any = tuple(m.in_chart(chart) for m in self.factors)
        return FlatProduct(factors)

    def adjoint(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self._of_tangents("adjoint", theta, xi)

    def halfway(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self._of_tangents("halfway", theta, xi)

    def _each(self, method: str, *parts: Sequence[Any]) -> list[Any]:
        """The results of one method of every factor, of equal ones as a batch."""
        results: list[Any] = [None] * len(self.factors)
        for places in _equal(self.factors):
            apply = getattr(self.factors[places[0]], method)
            own = [[part[k] for k in places] for part in parts]
            if len(places) == 1:
                results[places[0]] = apply(*(x for (x,) in own))
            else:
                found = jnp.unstack(jax.vmap(apply)(*map(jnp.stack, own)))
                for k, x in zip(places, found, strict=True):
                    results[k] = x
        return results

    def _of_tangents(self, method: str, theta: ArrayLike, xi: ArrayLike) -> jax.Array:
        return _join(self._each(method, self._tangents(theta), self._tangents(xi)), theta)

    def _points(self, y: ArrayLike) -> list[jax.Array]:
        return _split(y, [m.point_size for m in self.factors])

    def _tangents(self, xi: ArrayLike) -> list[jax.Array]:
        return _split(xi, [m.tangent_size for m in self.factors])


def _equal(factors: Sequence[Any]) -> list[list[int]]:
    """The places of factors, those of equal ones together; one with numbers is like no other."""
    found: dict[Any, list[int]] = {}
    for k, factor in enumerate(factors):
        leaves, structure = jax.tree.flatten(factor)
        found.setdefault((structure, k if leaves else None), []).append(k)
    return list(found.values())


def _split(a: ArrayLike, sizes: list[int]) -> list[jax.Array]:
    a = checked(a, (sum(sizes),), "manifold")
    ends = list(itertools.accumulate(sizes))
    return [a[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _join(parts: Sequence[jax.Array], like: ArrayLike) -> jax.Array:
    if len(parts) == 1:
        return parts[0]
    return jnp.concatenate(parts) if parts else jnp.zeros(0, jnp.result_type(like))
