"""The problem of one machine in a fit of several, which share numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..parameters import Parameters, SharedParameters
from ..system.validation import format_value
from .problem import Layout, LogNumber, Problem
from .recordings import DataError


class OfMachine(Problem):
    """A problem of the machine with this name in `SharedParameters`, such as its recordings.

    residual(systems, own) = problem.residual(systems[machine], own), and all else is the problem's.
    """

    machine: str = eqx.field(static=True)
    problem: Problem

    def residual(self, system: Any, own: jax.Array) -> Float[Array, " k"]:
        """Of all systems by name, instead of one; see `Problem.residual`."""
        return self.problem.residual(system[self.machine], own)

    @property
    def own(self) -> Float[Array, " m"]:
        return self.problem.own

    @property
    def measured(self) -> Bool[Array, " k"]:
        return self.problem.measured

    @property
    def layout(self) -> Layout | None:
        return self.problem.layout

    @property
    def log_numbers(self) -> tuple[LogNumber, ...]:
        return self.problem.log_numbers

    @property
    def is_prior(self) -> bool | NDArray:
        return self.problem.is_prior

    @property
    def is_scaled(self) -> bool | NDArray:
        return self.problem.is_scaled

    @property
    def windows(self) -> NDArray:
        return self.problem.windows


def check_machines(parameters: Parameters | SharedParameters, problems: Sequence[Problem]) -> None:
    """Raises DataError unless each problem says of which machine it is, where there are several."""
    if not isinstance(parameters, SharedParameters):
        for problem in (p for p in problems if isinstance(p, OfMachine)):
            raise DataError(
                f"{parameters.title} is one machine; give the {type(problem.problem).__name__} "
                f"without OfMachine({problem.machine!r}, ...), or take SharedParameters"
            )
        return
    for problem in problems:
        if not isinstance(problem, OfMachine):
            raise DataError(
                f"{type(problem).__name__} does not say of which of the machines "
                f"{parameters.title} it is; give OfMachine({parameters.machines[0]!r}, ...)"
            )
        if problem.machine not in parameters.machines:
            raise DataError(
                f"no machine is named {format_value(problem.machine)}; there are {parameters.title}"
            )
