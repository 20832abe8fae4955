"""The problem protocol: residuals that are zero for the true machine and perfect sensors.

`OfMachine` is the problem of one machine in a fit of several, which share numbers.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..parameters import Parameters, SharedParameters
from ..system.arguments import on_manifold
from ..system.system import System
from ..system.validation import format_value
from .recordings import DataError, Recording


class Layout(NamedTuple):
    """Where residuals (k,) stand in time, so that errors of neighbours may be alike.

    sequence (k,): errors of two sequences, such as recordings, are independent; time (k,) in s,
    within the sequence; channel (k,): what is measured, such as the degree of freedom.
    """

    sequence: NDArray
    time: NDArray
    channel: NDArray

    @staticmethod
    def of_rows(sequence: NDArray, time: NDArray, width: int) -> Layout:
        """Of rows (n,), one after the other, each with a residual for all of its channels."""
        return Layout(
            np.repeat(sequence, width), np.repeat(time, width), np.tile(np.arange(width), len(time))
        )


class LogNumber(NamedTuple):
    """An unknown that belongs to the log and not to the machine: its name, unit and bounds."""

    name: str
    unit: str = ""
    lower: float = -np.inf
    upper: float = np.inf


class Problem(eqx.Module):
    """Measurements, and the residuals of a machine's predictions, perhaps with own unknowns."""

    @abc.abstractmethod
    def residual(self, system: System, own: jax.Array) -> Float[Array, " k"]:
        """Prediction less measurement (k,), each in its standard deviations; zero at gaps.

        own (m,): the problem's own unknowns, such as the initial states of motions.
        """

    @property
    def own(self) -> Float[Array, " m"]:
        """The initial values of its own unknowns (m,)."""
        return jnp.zeros(0)

    @property
    @abc.abstractmethod
    def measured(self) -> Bool[Array, " k"]:
        """A mask (k,) of the residuals that are measurements; the others are gaps."""

    @property
    def layout(self) -> Layout | None:
        """Where its residuals stand in time: by default one sequence in steps of 1 s.

        None for residuals without an order, whose errors then count as white.
        """
        k = self.measured.size
        return Layout(np.zeros(k, int), np.arange(k, dtype=float), np.zeros(k, int))

    @property
    def log_numbers(self) -> tuple[LogNumber, ...]:
        """What its own unknowns (m,) are where a fit is to tell them with their errors, or none."""
        return ()

    @property
    def is_prior(self) -> bool | NDArray:
        """Whether its residuals are no measurements but a prior, of independent unit variances.

        Or a mask (k,) of those that are.
        """
        return False

    @property
    def is_scaled(self) -> bool | NDArray:
        """Whether the variance of its priors is estimated from their residuals, at least as 1.

        Or a mask (k,) of those whose common variance is.
        """
        return False

    @property
    def windows(self) -> NDArray:
        """The window of each residual (k,): 0, 1, ...; by default there is one.

        `own` has as many parts of equal length, in this order. A residual depends on that of its
        window and on that of the next one, so that a fit can eliminate one after the other.
        """
        return np.zeros(self.measured.shape, int)


def in_deviations(predicted: jax.Array, measured: jax.Array, deviation: jax.Array) -> jax.Array:
    """The difference of arrays (..., k) over the deviation, zero at gaps (NaN in measured)."""
    there = ~jnp.isnan(measured)
    return jnp.where(there, predicted - jnp.where(there, measured, 0), 0) / deviation


# The most that the length of a measured quaternion may differ from 1.
QUATERNION_LENGTH = 0.1


def needed(recording: Recording, widths: dict[str, int], system: System) -> dict[str, NDArray]:
    """The quantities (n, width) of a recording; raises DataError for a missing or unfit one.

    Quaternions in q are divided by their lengths, with a warning if these are not 1.
    """
    found = {}
    for quantity, width in widths.items():
        values = getattr(recording, quantity)
        if values is None:
            raise DataError(
                f"{recording.name}: {quantity} is not measured; name its columns"
                + (", or smooth q (data.smooth in a study)" if quantity in "va" else "")
            )
        if values.shape[1] != width:
            raise DataError(
                f"{recording.name}: {quantity} has {values.shape[1]} columns, the machine {width}"
            )
        found[quantity] = values
    if "q" in found:
        try:
            found["q"] = on_manifold(system, recording.name, "q", found["q"], QUATERNION_LENGTH)
        except ValueError as error:
            raise DataError(str(error)) from None
    return found


Deviation = float | Sequence[float] | NDArray | jax.Array
"""One number for all, or one for each."""


def deviations(name: str, given: Deviation, width: int, weight: float = 1.0) -> NDArray:
    """Standard deviations (width,), from one for all or one for each, over the root of a weight.

    Raises DataError where they are not positive.
    """
    values = np.asarray(given, float)
    if values.shape not in ((), (width,)) or not (values > 0).all():
        raise DataError(
            f"{name}: {given} is no standard deviation; give one positive number, or {width}"
        )
    return np.broadcast_to(values / np.sqrt(weight), width)


class OfMachine(Problem):
    """A problem of the machine with this name in `SharedParameters`, such as its recordings.

    residual(systems, own) = problem.residual(systems[machine], own), and all else is the problem's.
    """

    machine: str = eqx.field(static=True)
    problem: Problem

    def residual(self, system: Mapping[str, System], own: jax.Array) -> Float[Array, " k"]:
        """Of all systems by name, instead of one; see `Problem.residual`."""
        return self.problem.residual(system[self.machine], own)

    own = property(attrgetter("problem.own"), doc="See `Problem.own`.")
    measured = property(attrgetter("problem.measured"), doc="See `Problem.measured`.")
    layout = property(attrgetter("problem.layout"), doc="See `Problem.layout`.")
    log_numbers = property(attrgetter("problem.log_numbers"), doc="See `Problem.log_numbers`.")
    is_prior = property(attrgetter("problem.is_prior"), doc="See `Problem.is_prior`.")
    is_scaled = property(attrgetter("problem.is_scaled"), doc="See `Problem.is_scaled`.")
    windows = property(attrgetter("problem.windows"), doc="See `Problem.windows`.")


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
