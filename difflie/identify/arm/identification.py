"""The identification of an arm from its file and its logs, from base parameters to a verdict.

1. Base parameters by weighted least squares, with the shape of each joint's friction.
2. Physically consistent numbers of all bodies near the file's; the weight of the distance is that
   which predicts blocks best that are held out.
3. Where gears have load friction, the equations are linearised there again.
4. The judgement of each joint beside that of least squares without bounds and of the file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ...system.system import System
from ..consistency import Distance, Nominal, consistent
from ..fitting import Fit
from ..log_warnings import log_warnings, rate_warnings
from ..reading.columns import DataError
from ..recordings import Recording
from ..samples import bandwidth, samples
from ..torque_rows import Friction, RateCoupling, TorqueModel
from .arm_fit import fitted_arm
from .assessment import ArmAssessment
from .equations import Equations, Logs
from .friction_choice import chosen_friction, with_load
from .held_out import WEIGHTS, HeldOut, held_out
from .machine import nearest_start
from .notes import notes
from .torque_doubts import doubts
from .verdict import JointScore, scores
from .weighted_least_squares import Solution, solved

_ROUNDS = 2


@dataclasses.dataclass(frozen=True)
class ArmSettings:
    """How an arm is identified.

    offsets: whether measured torques have offsets. stribeck: whether friction grows at low speed;
    None where the recordings say so. load_friction: whether it grows with the load. distance and
    weight of the nearness to the file's numbers; None: the weight that predicts held-out blocks
    best, of which each recording has `blocks`. bandwidth of the motion in Hz, by default that of
    the recordings.
    """

    offsets: bool = True
    stribeck: bool | None = None
    load_friction: bool = False
    distance: Distance = "entropic"
    weight: float | None = None
    blocks: int = 5
    bandwidth: float | None = None
    couplings: tuple[RateCoupling, ...] = ()

    def __post_init__(self) -> None:
        for name in ("weight", "bandwidth"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise ValueError(f"{name} is {value}; it must be positive and finite")
        if self.distance not in get_args(Distance):
            raise ValueError(
                f"distance is {self.distance!r}; it must be one of {', '.join(get_args(Distance))}"
            )
        if self.blocks < 2:
            raise ValueError(f"blocks is {self.blocks}; it must be 2 or more")


def identify_arm(
    system: System,
    recordings: Recording | Sequence[Recording],
    validate: Recording | Sequence[Recording] = (),
    settings: ArmSettings = ArmSettings(),
) -> Fit:
    """The numbers of an arm that explain its measured torques, near those of its file.

    The fit's parameters are all numbers of the arm, with offsets of torques and load friction as
    those of drives; how each joint is predicted is in `Fit.assessment`. What does not suit the
    machine is said in `Fit.assessment.notes`: units, signs and exchanged columns as
    by `log_warnings`, the scale of all torques and large offsets.

    system: its geometry is taken as known, and its bodies' numbers as estimates. recordings: with q
    and tau at all joints (and v and a where they were measured or smoothed); validate: others, by
    which it is judged only.

    Raises DataError for machines other than trees of joints with one coordinate on a fixed base,
    for single precision, and for recordings that lack columns or are too short. Gautier 1990, 1997;
    Wensing, Kim and Slotine 2018; Lee, Wensing and Park 2020.
    """
    recordings = [recordings] if isinstance(recordings, Recording) else list(recordings)
    validate = [validate] if isinstance(validate, Recording) else list(validate)
    if not recordings:
        raise DataError(f"{system.name}: there are no recordings to fit")
    if system.dtype != np.float64:
        raise DataError(
            f"{system.name} has single precision, in which base parameters cannot be told apart; "
            'write jax.config.update("jax_enable_x64", True) before it is loaded, for double '
            "precision"
        )
    model = TorqueModel.of(system, settings.couplings, offsets=settings.offsets)
    motion = settings.bandwidth or np.max([bandwidth(r) for r in recordings], axis=0)
    logs = Logs.of(model, [samples(system, r, motion) for r in recordings])
    friction = chosen_friction(logs, model, settings.stribeck)
    model, about = with_load(logs, model, friction) if settings.load_friction else (model, None)
    equations = logs.equations(model, friction, about)
    _check_count(model, equations)
    base = solved(equations, model.names)
    start, said = nearest_start(model)
    scales = equations.scales(base.deviations)[model.inertial :]
    near = Nominal.of(start, len(model.bodies), scales), model.nonnegative
    weights = WEIGHTS if settings.weight is None else (settings.weight,)
    blocks = held_out(
        equations,
        base.deviations,
        *near,
        weights=weights,
        distance=settings.distance,
        count=settings.blocks,
    )
    triangle = equations.triangle(base.deviations)
    best = consistent(triangle, *near, blocks.best, settings.distance)
    for _ in range(_ROUNDS if model.load else 0):
        equations = logs.equations(model, friction, best.x)
        triangle = equations.triangle(base.deviations)
        best = consistent(triangle, *near, blocks.best, settings.distance)
    near = base.deviations, start, best, blocks.best, settings.distance
    fit = fitted_arm(logs, model, friction, equations, *near)
    judged = _Judged(model, friction, base, best.x)
    judged.fitted(logs, equations, blocks)
    for recording in validate:
        judged.others(Logs.of(model, [samples(system, recording, motion)]))
    said += [text for r in (*recordings, *validate) for text in log_warnings(system, r)]
    said += rate_warnings(recordings)
    told = zip(fit.values.tolist(), fit.standard_errors.tolist(), strict=True)
    said += doubts(model, equations, dict(zip(fit.names, told, strict=True)))
    shares = dict(zip(fit.names, fit.prior_share.tolist(), strict=True))
    said += notes(model, base, best, friction, shares, logs, blocks)
    bodies = (system.body_names[b] for b in model.bodies)
    assessment = ArmAssessment(
        model=model,
        friction=friction,
        base=base,
        held_out=blocks,
        distances=dict(zip(bodies, best.distances.tolist(), strict=True)),
        scores=tuple(judged.scores),
        predictions=tuple(judged.predictions),
        notes=tuple(said),
    )
    return dataclasses.replace(fit, assessment=assessment)


def _check_count(model: TorqueModel, equations: Equations) -> None:
    rank = np.linalg.matrix_rank(equations.columns.reshape(-1, equations.columns.shape[2]))
    count = int(equations.counts.sum())
    if count <= rank:
        raise DataError(
            f"{model.system.name}: {count} rows of torque are fewer than the {rank} numbers they "
            "depend on; give longer recordings"
        )


@dataclasses.dataclass
class _Judged:
    """Scores and predictions of recordings by the numbers x (p,), the floor's and the file's."""

    model: TorqueModel
    friction: Friction
    base: Solution
    x: NDArray
    scores: list[JointScore] = dataclasses.field(default_factory=list)
    predictions: list[tuple[str, Equations, NDArray]] = dataclasses.field(default_factory=list)

    def fitted(self, logs: Logs, equations: Equations, blocks: HeldOut) -> None:
        """Of recordings that were fitted, and block by block of fits to the others."""
        off, floor, file = self._residuals(equations)
        for k, log in enumerate(logs.samples):
            rows, name = equations.of == k, log.recording.name
            uses = ("fitted", off, floor), ("held out", blocks.residuals, blocks.floor)
            for use, own, least in uses:
                self._add(name, use, equations.torque[rows], own[rows], least[rows], file[rows])
            self.predictions.append((name, equations.where(rows), off[rows]))

    def others(self, logs: Logs) -> None:
        """Of a recording that was not fitted."""
        equations = logs.equations(self.model, self.friction, self.x)
        name, residuals = logs.samples[0].recording.name, self._residuals(equations)
        self._add(name, "validation", equations.torque, *residuals)
        self.predictions.append((f"{name} (not fitted)", equations, residuals[0]))

    def _residuals(self, equations: Equations) -> list[NDArray]:
        file = self.model.file_numbers()
        return [equations.residual(numbers) for numbers in (self.x, self.base.x, file)]

    def _add(self, name: str, use: str, torque: NDArray, *residuals: NDArray) -> None:
        self.scores += scores(name, use, self.model.joints, self.model.forces, torque, residuals)
