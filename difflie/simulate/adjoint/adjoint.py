"""The adjoint protocol: a way to run a time loop so that it can be differentiated.

The direct one, which keeps the state at the start of each step, and forward mode alone.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp

from ... import native
from ...integrators import Method
from ..result import Reconstruction


class Steps(Protocol):
    """The body of a time loop; a state is a pytree of arrays, a row the inputs of one step."""

    @property
    def small(self) -> bool:
        """Whether a loop of these steps is compiled as one native call."""
        ...

    def step(self, state: Any, row: Any) -> Any:
        """The state after a step."""

    def back(self, state: Any, row: Any) -> Any:
        """The state before a step, by the method with the step -h."""

    def read(self, state: Any) -> Any:
        """The part of a state that is saved."""


class Adjoint(eqx.Module):
    """A way to run a loop of steps so that it can be differentiated."""

    def check(self, method: Method, symmetric: bool, remembering: Sequence[Any] = ()) -> None:
        """Raises ValueError for a method or machine that this adjoint does not support.

        symmetric: whether the method is symmetric in time for this system; remembering: what has a
        memory, of the system's actuators and a sampled control.
        """

    @abc.abstractmethod
    def loop(self, steps: Steps, start: Any, inputs: Any, shape: tuple[int, int]) -> Any:
        """The state at the end, and what is saved after every k-th of m k steps; shape is (m, k).

        The inputs have leading axes (m, k), the saved arrays a leading axis (m,).
        """

    def reconstruction(
        self, steps: Steps, start: Any, end: Any, inputs: Any, shape: tuple[int, int]
    ) -> Reconstruction | None:
        """How well stepping back from the end recovers the start; None if not checked."""
        return None


def rows_of_steps(
    turn: Callable[[Any, Any], Any],
    steps: Steps,
    start: Any,
    inputs: Any,
    shape: tuple[int, int],
    forward_only: bool = False,
) -> Any:
    """The loop of `Adjoint.loop`, same shapes (m, k), as two nested loops of turn(state, row)."""
    saved, every = shape
    if steps.small:

        def one(state: Any, row: Any) -> tuple[Any, Any]:
            state = turn(state, row)
            return state, steps.read(state)

        rows = jax.tree.map(lambda x: x.reshape((saved * every, *x.shape[2:])), inputs)
        return native.scan(one, start, rows, saved * every, every=every, forward_only=forward_only)

    def save(state: Any, rows: Any) -> tuple[Any, Any]:
        turns = lambda s, row: (turn(s, row), None)  # noqa: E731
        state = jax.lax.scan(turns, state, rows, length=every)[0]
        return state, steps.read(state)

    return jax.lax.scan(save, start, inputs, length=saved)


class Direct(Adjoint):
    """The derivative of the discrete steps themselves, exact in forward and reverse mode.

    Reverse mode keeps the state at the start of every step, so that memory grows linearly with the
    number of steps; intermediate values of a step are recomputed. Higher derivatives work too, such
    as Hessian-vector products, forward over reverse mode.
    """

    def loop(self, steps: Steps, start: Any, inputs: Any, shape: tuple[int, int]) -> Any:
        # A native loop recomputes intermediate values by itself.
        step = steps.step if steps.small else jax.checkpoint(steps.step)
        return rows_of_steps(step, steps, start, inputs, shape)


class Forward(Adjoint):
    """Forward mode, as by `jax.jvp` and `jax.jacfwd`: for derivatives along few parameters.

    No states are kept: memory does not grow with the number of steps; time grows with the number of
    directions. Reverse mode raises a TypeError.
    """

    def loop(self, steps: Steps, start: Any, inputs: Any, shape: tuple[int, int]) -> Any:
        found = rows_of_steps(steps.step, steps, start, inputs, shape, forward_only=True)
        return jax.tree.map(_forward_only, found)


def _forward_only(x: jax.Array) -> jax.Array:
    return _identity(x) if jnp.issubdtype(x.dtype, jnp.inexact) else x


@jax.custom_jvp
def _identity(x: jax.Array) -> jax.Array:
    return x


@_identity.defjvp
def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return primals[0], _linear(tangents[0])


def _transpose(cotangent: Any, x: Any) -> Any:
    raise TypeError(
        "simulate: adjoint=Forward() has no reverse mode; differentiate with jax.jvp or "
        "jax.jacfwd, or take Direct() or RecursiveCheckpoint()"
    )


_linear = native.linear_identity("forward_tangent", _transpose)
