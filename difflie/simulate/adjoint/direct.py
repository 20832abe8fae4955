"""The derivative of the steps, with the state at the start of each of them kept."""

from __future__ import annotations

from typing import Any

import jax

from .adjoint import Adjoint, Steps, rows_of_steps


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
