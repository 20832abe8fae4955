"""How a time loop is differentiated: an argument of `simulate`."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax


class Adjoint(eqx.Module):
    """A way to run a loop of steps so that it can be differentiated."""

    @abc.abstractmethod
    def loop(self, body: Callable, start: Any, inputs: Any, length: int) -> tuple[Any, Any]:
        """`jax.lax.scan(body, start, inputs, length)`, with this way's derivatives."""


class Direct(Adjoint):
    """The derivative of the discrete steps themselves, exact in forward and reverse mode.

    Reverse mode keeps the state at the start of every step, so that memory grows linearly with the
    number of steps; what a step needs inside is computed again on the way back.
    """

    def loop(self, body: Callable, start: Any, inputs: Any, length: int) -> tuple[Any, Any]:
        return jax.lax.scan(jax.checkpoint(body), start, inputs, length=length)
