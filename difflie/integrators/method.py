"""The protocol of all integrators: `init` and `step`, with one signature for all families.

A method names the form of the equations of motion that it integrates, `equations`: a vector field
on a manifold, a discrete action, or equations in descriptor form. An instance of that class is the
problem that `init` and `step` get; `difflie.formulations` makes it from a machine.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..deprecated import renamed
from ..groups import Manifold

Scalar = jax.Array | float
Field = Callable[[jax.Array, Any], Any]
Stage = Callable[[jax.Array, Any, Any], Any]
FreeStep = Callable[[jax.Array, Any, jax.Array], Any]


class State(NamedTuple):
    """The state of a method, a pytree of arrays.

    y: the point, in the variables of the problem; for a machine configuration and velocity (q, v).
    memory: what the method keeps from step to step.
    """

    y: Any
    memory: Any = None


@renamed(finer="refined")
class Method(eqx.Module):
    """A one-step method: what `simulate` takes.

    Methods of one class with equal settings compare equal. A method may be closed over or passed
    through any transformation.

    equations: the class of the problems that it integrates, such as `VectorField`, or a
    `difflie.formulations.Formulation` of its own. time_symmetric: whether a step -h leads from the
    end of a step back to its start, up to rounding. implicit: whether a step solves equations.
    steps_alike: whether its memory serves steps of the same length only; before a shorter one it
    then begins anew.
    """

    equations: ClassVar[type]
    time_symmetric: ClassVar[bool] = False
    implicit: ClassVar[bool] = False
    steps_alike: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """The order p: over a fixed time the error falls with h^p."""

    @property
    def name(self) -> str:
        """The name that `by_name` knows."""
        return type(self).__name__

    @property
    def stability(self) -> tuple[float, float] | None:
        """How far an explicit step h holds: h d of what decays at the rate d, h w of what swings.

        Beyond these numbers an error grows from step to step. None where there is no limit, as of
        implicit and adaptive methods, or none is known.
        """
        return None

    def refined(self, n: int) -> Method:
        """The method for steps n times as short, whose error must be far smaller.

        The method itself, unless its error depends on tolerances.
        """
        return self

    def init(self, problem: Any, t: Scalar, y: Any, h: Scalar) -> Any:
        """The state before the first step of length h, from the point y at the time t.

        A `State`, or another pytree of arrays with an attribute y.
        """
        return State(y)

    @abc.abstractmethod
    def step(self, problem: Any, t: Scalar, state: Any, h: Scalar) -> tuple[Any, Any]:
        """The state at t + h, from that at t, and whether the step was solved ().

        The result has the shapes and the precision of the state. If the step was not solved, its
        value does not matter: `simulate` stops there.
        """


class VectorField(eqx.Module):
    """The problem dy/dt = y . hat(field(t, y)) on any manifold.

    Points y are arrays, or tuples of them, in the shapes of `manifold`; field(t, y) is the
    body-fixed rate of y, a tangent, in units of y per unit of t.

    free_step(t, y, h): of a mechanical system with points y = (q, v), the point after a step h of
    first order that keeps the momentum of free bodies; None where the field is enough.

    stage(t, y, at_start): the field for a method that says whether (t, y) is where its step starts,
    at_start (), so that what is known there is not computed again; None where nothing is.
    """

    manifold: Manifold
    field: Field
    free_step: FreeStep | None = None
    stage: Stage | None = None

    def rate(self, t: jax.Array, y: Any, at_start: jax.Array | bool) -> Any:
        """field(t, y), a tangent; at_start (): whether it is where the step starts."""
        return self.field(t, y) if self.stage is None else self.stage(t, y, at_start)


class FieldMethod(Method):
    """A method for any `VectorField`.

    reads_once: whether a step evaluates the field only once, at its start. keeps_momentum: whether
    it takes the field's `free_step` where there is one. partitioned: whether points are pairs
    (q, v), v the rate of q, which it moves one after the other.
    """

    equations: ClassVar[type] = VectorField
    reads_once: ClassVar[bool] = False
    keeps_momentum: ClassVar[bool] = False
    partitioned: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def stages(self) -> int:
        """The number of evaluations of the field in a step, or of points that it solves for."""


class TableauMethod(FieldMethod):
    """A `FieldMethod` whose order and stages are those of its tableau of coefficients."""

    tableau: eqx.AbstractVar[Any]

    @property
    def order(self) -> int:
        return self.tableau.order

    @property
    def stability(self) -> tuple[float, float] | None:
        return self.tableau.stability

    @property
    def stages(self) -> int:
        return self.tableau.stages


def single_step(
    method: Method, manifold: Manifold, field: Field, t: Scalar, y: Any, h: Scalar
) -> Any:
    """The point at t + h after one step of a method along a field, from the point y at t.

    y is an array, or a tuple of them, in the shapes of the manifold.
    """
    problem = VectorField(manifold, field)
    return method.step(problem, t, method.init(problem, t, y, h), h)[0].y


def chosen(which: jax.Array, yes: Any, no: Any) -> Any:
    """One of two pytrees of arrays of equal shapes, by a boolean scalar."""
    return jax.tree.map(lambda yes, no: jnp.where(which, yes, no), yes, no)


def combination(h: jax.Array, coefficients: jax.Array, rates: Any) -> Any:
    """h sum_j c_j k_j, for coefficients (s,) and rates whose leaves have a leading axis (s,)."""

    def weighted(k: jax.Array) -> jax.Array:
        c = coefficients.reshape((-1,) + (1,) * (k.ndim - 1))
        return h * jnp.sum(c * k, axis=0)

    return jax.tree.map(weighted, rates)


def zero_tangent(manifold: Manifold, y: Any) -> Any:
    """The zero tangent at y."""
    shapes = jax.eval_shape(manifold.difference, y, y)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def stage_rates(
    evaluate: Callable[[Any, jax.Array, jax.Array, jax.Array], Any],
    a: Any,
    c: Any,
    like: Any,
    dtype: Any,
) -> Any:
    """The rates k_i = evaluate(k, a_i, c_i, i == 0) of all stages, leaves with an axis (s,).

    evaluate gets the rates of the earlier stages, and zeros for the others. It is traced once for
    any number of stages: a method of order 8 compiles as fast as one of order 2. like: a rate.
    """
    stages = len(c)
    empty = jax.tree.map(lambda k: jnp.zeros((stages, *k.shape), k.dtype), like)

    def stage(rates: Any, row: tuple) -> tuple[Any, None]:
        i, a, c = row
        is_stage = jnp.arange(stages) == i
        rate = evaluate(rates, a, c, i == 0)

        def store(all_rates: jax.Array, one: jax.Array) -> jax.Array:
            return jnp.where(is_stage.reshape((-1,) + (1,) * one.ndim), one, all_rates)

        return jax.tree.map(store, rates, rate), None

    rows = (jnp.arange(stages), jnp.asarray(a, dtype), jnp.asarray(c, dtype))
    return jax.lax.scan(stage, empty, rows)[0]


def square(rows: Sequence[Sequence[float]], size: int) -> np.ndarray:
    """Ragged rows as an array (len(rows), size), padded with zeros."""
    filled = np.zeros((len(rows), size))
    for i, row in enumerate(rows):
        filled[i, : len(row)] = row
    return filled


def in_precision_of(y: Any, *scalars: Scalar) -> tuple[jax.Array, ...]:
    """The scalars as arrays () of the floating type of y, so that they never promote it."""
    dtype = jnp.result_type(float, *jax.tree.leaves(y))
    return tuple(jnp.asarray(s, dtype) for s in scalars)
