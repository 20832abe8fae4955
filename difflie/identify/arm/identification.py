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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...system.system import System
from ...system.validation import warn
from ..reading.columns import DataError
from ..recordings import Recording
from .confidence import standard_errors
from .consistent import Consistent, Distance, Nominal, consistent
from .equations import Equations, Logs
from .friction_choice import chosen_friction, with_load
from .held_out import HeldOut, held_out
from .machine import joint_values, machine, nearest_start
from .samples import bandwidth, samples
from .torque_model import Friction, RateCoupling, TorqueModel
from .verdict import JointScore, scores, verdict
from .weighted_least_squares import Solution, solved

_ILL_CONDITIONED = 300.0


@dataclasses.dataclass(frozen=True)
class ArmSettings:
    """How an arm is identified.

    offsets: whether torques have offsets. stribeck, load_friction: whether friction grows at low
    speed and with the load; None where the log says so. distance and weight of the nearness to the
    file's bodies; None: the weight that predicts held-out blocks best, of which each recording has
    `blocks`. bandwidth of the motion in Hz, by default that of the recordings.
    """

    offsets: bool = True
    stribeck: bool | None = None
    load_friction: bool | None = False
    distance: Distance = "entropic"
    weight: float | None = None
    blocks: int = 5
    bandwidth: float | None = None
    couplings: tuple[RateCoupling, ...] = ()


@dataclasses.dataclass(frozen=True)
class ArmFit:
    """What is known of an arm after its identification.

    model: which numbers are free, by their names (p,); x (p,): their values in SI units, and
    standard_errors (p,), prior_share (p,): the part of the file's numbers in their variance.
    base: the base parameters. weight: of the distance from the file. scores: of each joint and use.
    notes: sentences on what was done and what is not known. system: the arm with these numbers;
    what it cannot have, the inertia of motors that turn with sums of rates, is in x alone.
    """

    model: TorqueModel
    friction: Friction
    x: NDArray
    standard_errors: NDArray
    prior_share: NDArray
    active: NDArray
    base: Solution
    weight: float
    held_out: HeldOut
    consistency: Consistent
    scores: tuple[JointScore, ...]
    notes: tuple[str, ...]
    logs: Logs
    equations: Equations

    @property
    def converged(self) -> bool:
        return self.consistency.converged

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sentences on how well rows are predicted that were not fitted."""
        validation = [s for s in self.scores if s.use == "validation"]
        return tuple(verdict(validation or [s for s in self.scores if s.use == "held out"]))

    @property
    def system(self) -> System:
        """The arm with the numbers found: offsets and load friction as drives."""
        return machine(self.model, self.friction, self.x)

    @property
    def results(self) -> dict[str, Any]:
        """The results by name, as `difflie identify` writes them."""
        return _results(self)


def identify_arm(
    system: System,
    recordings: Recording | Sequence[Recording],
    validate: Recording | Sequence[Recording] = (),
    settings: ArmSettings = ArmSettings(),
) -> ArmFit:
    """The numbers of an arm that explain its measured torques, near those of its file.

    system: its geometry is taken as known, and its bodies' numbers as estimates. recordings: with q
    and tau at all joints (and v and a where they were measured or smoothed); validate: others, by
    which it is judged only. Use double precision.

    Raises DataError for machines other than trees of joints with one coordinate on a fixed base,
    and for recordings that lack columns or are too short. Gautier 1990, 1997; Wensing, Kim and
    Slotine 2018; Lee, Wensing and Park 2020.
    """
    recordings = [recordings] if isinstance(recordings, Recording) else list(recordings)
    validate = [validate] if isinstance(validate, Recording) else list(validate)
    if not recordings:
        raise DataError(f"{system.name}: there are no recordings to fit")
    if settings.weight is not None and not 0 < settings.weight < np.inf:
        raise DataError(f"the weight is {settings.weight}; it must be positive and finite")
    model = TorqueModel.of(system, settings.couplings, offsets=settings.offsets)
    motion = settings.bandwidth or max(bandwidth(recording) for recording in recordings)
    logs = Logs.of(model, [samples(system, r, motion) for r in recordings])
    friction = chosen_friction(logs, model, settings.stribeck)
    model, about = with_load(logs, model, friction, settings.load_friction)
    equations = logs.equations(model, friction, about)
    _check_count(model, equations)
    base = solved(equations, model.names)
    start, notes = nearest_start(model)
    scales = equations.scales(base.deviations)[model.inertial :]
    nominal = Nominal.of(start, len(model.bodies), scales)
    known = nominal, model.nonnegative
    weights = None if settings.weight is None else (settings.weight,)
    blocks = held_out(
        equations,
        base.deviations,
        *known,
        **({} if weights is None else {"weights": weights}),
        distance=settings.distance,
        count=settings.blocks,
    )
    best = consistent(equations.triangle(base.deviations), *known, blocks.best, settings.distance)
    if model.load:
        equations = logs.equations(model, friction, best.x)
        triangle = equations.triangle(base.deviations)
        best = consistent(triangle, *known, blocks.best, settings.distance)
    errors, share = standard_errors(equations, base.deviations, best)
    judged = _scores(model, logs, equations, blocks, base, best.x)
    for recording in validate:
        more = Logs.of(model, [samples(system, recording, motion)])
        judged += _validated(model, friction, more, base, best.x)
    notes += _said(model, base, best, friction, logs)
    for note in notes:
        warn(note)
    return ArmFit(
        model=model,
        friction=friction,
        x=best.x,
        standard_errors=errors,
        prior_share=share,
        active=best.active,
        base=base,
        weight=blocks.best,
        held_out=blocks,
        consistency=best,
        scores=tuple(judged),
        notes=tuple(notes),
        logs=logs,
        equations=equations,
    )


def _check_count(model: TorqueModel, equations: Equations) -> None:
    rank = np.linalg.matrix_rank(equations.columns.reshape(-1, equations.columns.shape[2]))
    count = int(equations.counts.sum())
    if count <= rank:
        raise DataError(
            f"{model.system.name}: {count} rows of torque are fewer than the {rank} numbers they "
            "depend on; give longer recordings"
        )


def _scores(
    model: TorqueModel,
    logs: Logs,
    equations: Equations,
    blocks: HeldOut,
    base: Solution,
    x: NDArray,
) -> list[JointScore]:
    """The scores of the recordings: fitted, and block by block by fits to the others."""
    found, file = [], model.file_numbers()
    off, floor, own = (equations.residual(n) for n in (x, base.x, file))
    for k, log in enumerate(logs.samples):
        rows = equations.of == k
        for use, parts in (
            ("fitted", (off, floor, own)),
            ("held out", (blocks.residuals, blocks.floor, own)),
        ):
            each = tuple(part[rows] for part in parts)
            name = log.recording.name
            found += scores(name, use, model.joints, equations.torque[rows], each)
    return found


def _validated(
    model: TorqueModel, friction: Friction, logs: Logs, base: Solution, x: NDArray
) -> list[JointScore]:
    """The scores of recordings that were not fitted."""
    equations = logs.equations(model, friction, x)
    each = tuple(equations.residual(n) for n in (x, base.x, model.file_numbers()))
    (log,) = logs.samples
    return scores(log.recording.name, "validation", model.joints, equations.torque, each)


def _said(
    model: TorqueModel, base: Solution, best: Consistent, friction: Friction, logs: Logs
) -> list[str]:
    """Sentences on what was done and what is not known."""
    motion, both = logs.samples[0].cutoffs
    said = [
        f"positions are low-passed at {motion:.3g} Hz, both sides of the equations at {both:.3g} Hz"
    ]
    if base.condition > _ILL_CONDITIONED:
        said.append(
            f"the condition number of the base parameters is {base.condition:.0f}: the motion tells "
            "some of them badly; see those that are not essential, and design a motion (excitation)"
        )
    faded = [j for j, v in zip(model.joints, friction.fading, strict=True) if np.isfinite(v)]
    if faded:
        said.append(f"friction grows at low speed (Stribeck): {', '.join(faded)}")
    if model.load:
        loads = joint_values(model, best.x)["load_friction"]
        named = (f"{j} {x:.3g}" for j, x in zip(model.joints, loads, strict=True) if x > 0)
        said.append(f"friction grows with the load: {', '.join(named)}")
    if len(best.active):
        names = [model.names[k] for k in best.active]
        said.append(f"at their bound, 0: {', '.join(names)}")
    if model.couplings:
        said.append(
            "motors that turn with sums of joint rates have inertia and friction that simulations "
            "of the arm leave out"
        )
    if not best.converged:
        said.append("the consistent numbers are not converged; is a body's estimate far off?")
    return said


def _results(fit: ArmFit) -> dict[str, Any]:
    model, base = fit.model, fit.base
    start, _ = nearest_start(model)
    rows = zip(
        *(model.names, model.units, start.tolist(), fit.x.tolist()),
        *(fit.standard_errors.tolist(), fit.prior_share.tolist()),
        strict=True,
    )
    keys = "unit", "start", "value", "std_error", "prior_share"
    table = {name: dict(zip(keys, row, strict=True)) for name, *row in rows}
    for k in fit.active:
        table[model.names[k]]["at_bound"] = True
    parts = zip(
        *(base.names, base.values.tolist(), base.standard_errors.tolist()),
        *(base.relative_errors.tolist(), base.essential.tolist()),
        strict=True,
    )
    keys = "name", "value", "std_error", "relative_error", "essential"
    return {
        "parameters": table,
        "base_parameters": [dict(zip(keys, row, strict=True)) for row in parts],
        "condition": base.condition,
        "joints": [s.row for s in fit.scores],
        "nearness": {
            "weight": fit.weight,
            "weights": fit.held_out.weights.tolist(),
            "errors": fit.held_out.errors.tolist(),
            "distances": dict(
                zip(
                    (model.system.body_names[b] for b in model.bodies),
                    fit.consistency.distances.tolist(),
                    strict=True,
                )
            ),
        },
        "friction": {
            joint: {"rise": rise, "fading": None if np.isnan(fading) else fading}
            for joint, rise, fading in zip(
                model.joints, fit.friction.rise.tolist(), fit.friction.fading.tolist(), strict=True
            )
        },
        "verdict": list(fit.verdict),
        "notes": list(fit.notes),
        "converged": fit.converged,
    }
