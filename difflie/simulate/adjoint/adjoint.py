"""The adjoint protocol: a way to run a time loop so that it can be differentiated."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import equinox as eqx
import jax

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
