"""What every integrator is: one step on a manifold."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..groups import Manifold

Scalar = jax.Array | float
Field = Callable[[jax.Array, Any], Any]


class Method(eqx.Module):
    """A one-step method: what `simulate` takes.

    It compares equal to every other of its kind and settings, and may be closed over or passed
    through any transformation. time_symmetric says whether a step -h leads from the end of a step
    to its start, up to rounding.
    """

    time_symmetric: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """The order p: over a fixed time the error falls with h^p."""

    @property
    def name(self) -> str:
        """What `by_name` calls it."""
        return type(self).__name__


class FieldMethod(Method):
    """A one-step method for dy/dt = y . hat(field(t, y)) on any manifold.

    An explicit method defines `step` alone; one that keeps something from step to step defines
    `start` and `advance` as well.
    """

    @property
    @abc.abstractmethod
    def stages(self) -> int:
        """How often a step evaluates the field."""

    @abc.abstractmethod
    def step(self, manifold: Manifold, field: Field, t: Scalar, y: Any, h: Scalar) -> Any:
        """The point at t + h, from the point y at t.

        Points are arrays, or tuples of them, in the shapes of `manifold`; field(t, y) is the
        body-fixed rate of y, a tangent, in units of y per unit of t. The step h (unit of t) may be
        traced. The result has the shapes and the precision of y.
        """

    def start(self, manifold: Manifold, field: Field, t: Scalar, y: Any, h: Scalar) -> Any:
        """The memory with which the first step, from y at t, begins: a pytree of arrays."""
        return None

    def advance(
        self, manifold: Manifold, field: Field, t: Scalar, y: Any, h: Scalar, memory: Any
    ) -> tuple[Any, Any, Any]:
        """The point at t + h, the memory for the next step, and whether the step is solved ()."""
        return self.step(manifold, field, t, y, h), memory, True


class ImplicitMethod(FieldMethod):
    """A method that solves equations in every step, as `advance` says.

    A step that it cannot solve, because it is too large, leaves the point where it is and says so.
    """

    def step(self, manifold: Manifold, field: Field, t: Scalar, y: Any, h: Scalar) -> Any:
        return self.advance(manifold, field, t, y, h, self.start(manifold, field, t, y, h))[0]

    @abc.abstractmethod
    def advance(
        self, manifold: Manifold, field: Field, t: Scalar, y: Any, h: Scalar, memory: Any
    ) -> tuple[Any, Any, Any]:
        pass


def chosen(which: jax.Array, yes: Any, no: Any) -> Any:
    """One of two pytrees of arrays of equal shapes, by a boolean scalar."""
    return jax.tree.map(lambda yes, no: jnp.where(which, yes, no), yes, no)


def combination(h: jax.Array, coefficients: jax.Array, rates: Any) -> Any:
    """h sum_j c_j k_j, for coefficients (s,) and rates whose leaves have a leading axis (s,)."""

    def weighted(k: jax.Array) -> jax.Array:
        c = coefficients.reshape((-1,) + (1,) * (k.ndim - 1))
        return h * jnp.sum(c * k, axis=0)

    return jax.tree.map(weighted, rates)


def stage_rates(
    evaluate: Callable[[Any, jax.Array, jax.Array], Any],
    a: Any,
    c: Any,
    like: Any,
    dtype: Any,
) -> Any:
    """The rates k_i = evaluate(k, a_i, c_i) of all stages, leaves with a leading axis (s,).

    evaluate sees the rates of the stages before, zero for the others. It is traced once, whatever
    the number of stages: a method of order 8 compiles as fast as one of order 2.
    """
    stages = len(c)
    empty = jax.tree.map(lambda k: jnp.zeros((stages, *k.shape), k.dtype), like)

    def stage(rates: Any, row: tuple) -> tuple[Any, None]:
        i, a, c = row
        here = jnp.arange(stages) == i
        rate = evaluate(rates, a, c)

        def store(all_rates: jax.Array, one: jax.Array) -> jax.Array:
            return jnp.where(here.reshape((-1,) + (1,) * one.ndim), one, all_rates)

        return jax.tree.map(store, rates, rate), None

    rows = (jnp.arange(stages), jnp.asarray(a, dtype), jnp.asarray(c, dtype))
    return jax.lax.scan(stage, empty, rows)[0]


def square(rows: Sequence[Sequence[float]], size: int) -> np.ndarray:
    """Ragged rows as an array (len(rows), size), filled up with zeros."""
    filled = np.zeros((len(rows), size))
    for i, row in enumerate(rows):
        filled[i, : len(row)] = row
    return filled


def in_precision_of(y: Any, *scalars: Scalar) -> tuple[jax.Array, ...]:
    """The scalars as arrays () of the floating type of y, so that they never promote it."""
    dtype = jnp.result_type(float, *jax.tree.leaves(y))
    return tuple(jnp.asarray(s, dtype) for s in scalars)
