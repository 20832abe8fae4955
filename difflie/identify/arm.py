"""The identification of an arm from its file and its logs, from base parameters to a verdict.

1. Base parameters by weighted least squares, with the shape of each joint's friction.
2. Physically consistent numbers of all bodies near the file's; the weight of the distance is that
   which predicts blocks best that are held out.
3. Where gears have load friction, the equations are linearised there again.
4. The `Fit`: the numbers found as parameters of the arm, with standard errors as of any fit.
5. The judgement of each joint beside that of least squares without bounds and of the file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..dynamics.regressor import parameters as inertial_parameters
from ..dynamics.regressor import properties
from ..forces import Drive, Stribeck, attach
from ..parameters import Parameters, entries
from ..parameters.pseudo_inertia import inconsistency, nearest_consistent
from ..system.arguments import check_system
from ..system.system import System
from ..system.validation import format_value
from .arm_equations import (
    WEIGHTS,
    Equations,
    HeldOut,
    Logs,
    chosen_friction,
    held_out,
    solved,
    with_load,
)
from .assessment import ArmAssessment, JointScore, Prediction, scores
from .consistency import Consistent, Distance, Nominal, NominalPrior, consistent
from .fitting import Fit, judged
from .joint_torques import at_joints, said_of_actuators, without_actuators
from .least_squares import Outcome
from .log_warnings import log_warnings, other_units, rate_warnings
from .losses import Squares
from .reading.columns import refuse
from .recordings import Recording, as_recordings
from .remarks import doubts, notes, too_short
from .samples import bandwidth, samples
from .torque_rows import ArmTorques, Friction, RateCoupling, TorqueModel, own_dofs

_ROUNDS = 2


@dataclasses.dataclass(frozen=True)
class ArmSettings:
    """How an arm is identified.

    offsets: whether measured torques have offsets. stribeck: whether friction grows at low speed;
    None where the recordings say so. load_friction: whether it grows with the load. commands:
    whether tau are the commands of the machine's actuators, and not torques at joints. distance and
    weight of the nearness to the file's numbers; None: the weight that predicts held-out blocks
    best, of which each recording has `blocks`. bandwidth of the motion in Hz, by default that of
    the recordings.
    """

    offsets: bool = True
    stribeck: bool | None = None
    load_friction: bool = False
    commands: bool = False
    distance: Distance = "entropic"
    weight: float | None = None
    blocks: int = 5
    bandwidth: float | None = None
    couplings: tuple[RateCoupling, ...] = ()

    def __post_init__(self) -> None:
        known = get_args(Distance)
        for name, good, needed in (
            ("weight", self.weight is None or 0 < self.weight < np.inf, "positive and finite"),
            (
                "bandwidth",
                self.bandwidth is None or 0 < self.bandwidth < np.inf,
                "positive and finite",
            ),
            ("distance", self.distance in known, f"one of {', '.join(known)}"),
            ("blocks", self.blocks >= 2, "2 or more"),
        ):
            if not good:
                raise ValueError(
                    f"{name} is {format_value(getattr(self, name))}; it must be {needed}"
                )


def identify_arm(
    system: System,
    recordings: Recording | Sequence[Recording],
    validate: Recording | Sequence[Recording] = (),
    settings: ArmSettings = ArmSettings(),
    *,
    progress: Callable[[str], None] = lambda stage: None,
) -> Fit:
    """The numbers of an arm that explain its measured torques, near those of its file.

    The fit's parameters are all numbers of the arm, with offsets of torques and load friction as
    those of drives; how each joint is predicted is in `Fit.assessment`. What does not suit the
    machine is said in `Fit.assessment.notes`: units, signs and exchanged columns as
    by `log_warnings`, the scale of all torques and large offsets.

    system: its geometry is taken as known, and its bodies' numbers as estimates. Springs and other
    forces are known, too; internal states of these follow the measured motion. Actuators are left
    aside, unless `settings.commands` says that tau are their commands (n, nu): then torques are
    what they deliver for these along the measured motion. The fitted machine is without them, and
    notes say so. recordings: with q and tau at all joints (and v and a where they were measured or
    smoothed); validate: others, by which it is judged only. progress(stage) is called with the name
    of each stage as it begins, such as "held-out block 3 of 5".

    Raises TypeError for what is no system or recording; DataError for machines other than trees of
    joints with one coordinate on a fixed base, for single precision, and for recordings that lack
    columns or are too short. Gautier 1990, 1997; Wensing, Kim and Slotine 2018; Lee, Wensing and
    Park 2020.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(), mass=2.0)])
    >>> t = np.arange(1000) / 100
    >>> q, v = np.sin(2 * t)[:, None], 2 * np.cos(2 * t)[:, None]
    >>> log = dl.identify.Recording("log", t, q, v, -4 * q, tau=3 * (9.81 - 4 * q) + 0.5 * v)
    >>> round(dl.identify.identify_arm(lift, log).estimates["lift/damping"].value, 3)  # in N s/m
    0.5
    """
    check_system(system)
    recordings, validate = as_recordings(recordings), as_recordings(validate)
    refuse(
        system.name,
        (not recordings, "there are no recordings to fit"),
        (
            system.dtype != np.float64,
            "it has single precision, in which base parameters cannot be separated; write "
            'jax.config.update("jax_enable_x64", True) before it is loaded, for double precision',
        ),
    )
    said = said_of_actuators(system, settings.commands)
    bare = without_actuators(system)
    model = TorqueModel.of(bare, settings.couplings, offsets=settings.offsets)
    recordings, validate = (
        at_joints(system, runs, settings.commands) for runs in (recordings, validate)
    )
    system = bare
    motion = settings.bandwidth or np.max([bandwidth(r) for r in recordings], axis=0)
    logs = Logs.of(model, [samples(system, r, motion) for r in recordings])
    progress("shape of friction")
    friction = chosen_friction(logs, model, settings.stribeck)
    model, about = with_load(logs, model, friction) if settings.load_friction else (model, None)
    equations = logs.equations(model, friction, about)
    _check_count(model, equations)
    base = solved(equations, model.names)
    start, repaired = nearest_start(model)
    scales = equations.scales(base.deviations)[model.inertial :]
    near = Nominal.of(start, len(model.bodies), scales), model.nonnegative
    weights = WEIGHTS if settings.weight is None else (settings.weight,)
    chosen = {"weights": weights, "distance": settings.distance, "count": settings.blocks}
    blocks = held_out(equations, base.deviations, *near, **chosen, progress=progress)
    progress("numbers near the file's")
    best = consistent(equations.triangle(base.deviations), *near, blocks.best, settings.distance)
    for _ in range(_ROUNDS if model.load else 0):
        equations = logs.equations(model, friction, best.x)
        triangle = equations.triangle(base.deviations)
        best = consistent(triangle, *near, blocks.best, settings.distance)
    near = base.deviations, start, best, blocks.best, settings.distance
    progress("standard errors")
    fit = fitted_arm(logs, model, friction, equations, *near)
    numbers = best.x, base.x, model.file_numbers()
    judged = [*_judged(model, numbers, logs, equations, blocks)]
    for recording in validate:
        log = Logs.of(model, [samples(system, recording, motion)])
        judged += _judged(model, numbers, log, log.equations(model, friction, best.x))
    said += repaired
    said += [text for r in (*recordings, *validate) for text in log_warnings(system, r)]
    said += rate_warnings(recordings)
    short = too_short(logs, motion)
    # Neither a scale nor an offset is told by a motion that is so short.
    said += doubts(model, equations, fit.estimates) if short is None else ()
    said += notes(model, base, best, friction, fit.estimates, logs, blocks)
    bodies = (system.body_names[b] for b in model.bodies)
    assessment = ArmAssessment(
        model=model,
        friction=friction,
        base=base,
        held_out=blocks,
        distances=dict(zip(bodies, best.distances.tolist(), strict=True)),
        scores=tuple(score for own, _ in judged for score in own),
        predictions=tuple(prediction for _, prediction in judged),
        notes=tuple(said),
        too_short=None if validate else short,
        units=tuple(text for r in (*recordings, *validate) for text in other_units(system, r)),
    )
    return dataclasses.replace(fit, assessment=assessment)


def _check_count(model: TorqueModel, equations: Equations) -> None:
    rank = np.linalg.matrix_rank(equations.columns.reshape(-1, equations.columns.shape[2]))
    count = int(equations.counts.sum())
    refuse(
        model.system.name,
        (
            count <= rank,
            f"{count} rows of torque are fewer than the {rank} numbers they depend on; give longer "
            "recordings",
        ),
    )


def _judged(
    model: TorqueModel,
    numbers: Sequence[NDArray],
    logs: Logs,
    equations: Equations,
    blocks: HeldOut | None = None,
) -> Iterator[tuple[list[JointScore], Prediction]]:
    """Scores and prediction of each recording: fitted and, block by block, held out; or not fitted.

    numbers: those found (p,), of the baseline and the nominal ones.
    """
    left = [equations.residual(x) for x in numbers]
    uses, mark = {"validation": left}, " (not fitted)"
    if blocks is not None:
        uses, mark = {"fitted": left}, ""
        uses["held out"] = [blocks.residuals, blocks.baseline, left[2]]
    for k, log in enumerate(logs.samples):
        rows, name, found = equations.of == k, log.recording.name, []
        for use, residuals in uses.items():
            found += scores(name, use, model, equations.torque[rows], [r[rows] for r in residuals])
        yield found, (f"{name}{mark}", equations.where(rows), left[0][rows])


def nearest_start(model: TorqueModel) -> tuple[NDArray, list[str]]:
    """The file's numbers (p,), with bodies that no mass has replaced by the nearest ones; notes."""
    bodies, notes = model.system.bodies, []
    inertia = np.asarray(bodies.inertia, float).copy()
    for b in model.bodies:
        if inconsistency((inertia[b] + inertia[b].T) / 2):
            near = nearest_consistent(float(bodies.mass[b]), inertia[b])
            before, after = (
                ", ".join(f"{m:.4g}" for m in np.linalg.eigvalsh(x)) for x in (inertia[b], near)
            )
            notes.append(
                f"{model.system.body_names[b]}: no rigid body has its principal moments of inertia "
                f"{before} kg m^2; the nearest that one has, {after}, are taken as its estimate"
            )
            inertia[b] = near
    start = model.file_numbers()
    changed = model.system.replace(inertia=jnp.asarray(inertia, model.system.dtype))
    start[: model.inertial] = np.asarray(inertial_parameters(changed.bodies), float)[
        list(model.bodies)
    ].ravel()
    return start, notes


def machine(model: TorqueModel, friction: Friction, x: NDArray) -> System:
    """The arm with the numbers x (p,); offsets and load friction are those of drives.

    Of a motor that turns with a sum of joint rates neither inertia nor friction is in it.
    """
    system, at = model.system, list(model.bodies)
    mass, com, inertia = (
        np.asarray(a, float).copy()
        for a in (system.bodies.mass, system.bodies.com, system.bodies.inertia)
    )
    mass[at], com[at], inertia[at] = (
        np.asarray(a) for a in properties(jnp.asarray(x[: model.inertial].reshape(-1, 10)))
    )
    values = {leaf: model.joint_numbers(x, leaf) for leaf in model.leaves}
    leaves = {"mass": mass, "com": com, "inertia": inertia}
    own = {leaf: np.maximum(values[leaf], 0) for leaf in ("armature", "damping", "friction")}
    for leaf, value in {**own, "friction_velocity": friction.rise}.items():
        leaves[leaf] = np.asarray(getattr(system.joints, leaf), float).copy()
        leaves[leaf][own_dofs(model.system)] = value
    system = system.replace(**{k: jnp.asarray(v, system.dtype) for k, v in leaves.items()})
    more = []
    for j, joint in enumerate(model.joints):
        if np.isfinite(friction.fading[j]):
            more.append(Stribeck(joint, max(values["breakaway"][j], 0.0), friction.fading[j]))
        offset = values["offset"][j] if model.offsets else 0.0
        load = model.joint_numbers(x, "load_friction")[j] if model.load else 0.0
        if model.offsets or model.load:
            law = {"torque_bias": -offset, "load_friction": load, "slip_velocity": friction.rise[j]}
            more.append(Drive(joint, **law))
    return attach(system, *more) if more else system


# A number of a joint whose torque is so small a part of the noise is none.
_NO_NUMBER = 1e-6


def fitted_arm(
    logs: Logs,
    model: TorqueModel,
    friction: Friction,
    equations: Equations,
    deviations: NDArray,
    start: NDArray,
    found: Consistent,
    weight: float,
    distance: Distance,
) -> Fit:
    """The `Fit` of consistent numbers that were found, with standard errors.

    start (p,): the file's numbers; weight and distance: of the nearness to these. Parameters are
    those numbers on which some torque depends, and the velocities of friction; what the system
    cannot have is of the log.
    """
    known = np.diag(found.hessian) > 0
    slopes, columns = logs.bends(model, friction, found.x)
    parameters = _parameters(machine(model, friction, start), model, known, columns)
    # Zero has no free numbers; what is much less than an error stands for it.
    counts, deviation = equations.counts, deviations / np.sqrt(equations.weight)[:, None]
    rows = (equations.columns / deviation[:, :, None])[counts]
    length = np.linalg.norm(rows, axis=0)
    least = np.zeros(len(length))
    signed = model.nonnegative
    least[signed] = _NO_NUMBER / np.where(length > 0, length, np.inf)[signed]
    values = np.maximum(found.x, np.where(least > 0, least, -np.inf))
    x = parameters.x_of(machine(model, friction, values))
    scales = equations.scales(deviations)
    held = model.inertial + np.flatnonzero((known & np.isfinite(scales))[model.inertial :])
    channel = np.broadcast_to(np.arange(counts.shape[1]), counts.shape)[counts]
    of, t = (np.broadcast_to(a[:, None], counts.shape)[counts] for a in (equations.of, equations.t))
    torques = ArmTorques(
        model=model,
        matrix=jnp.asarray(rows),
        slopes=jnp.asarray((slopes / deviation[:, :, None])[counts]),
        target=jnp.asarray((equations.torque / deviation)[counts]),
        near=jnp.asarray(start[held]),
        deviations=jnp.asarray(scales[held] / np.sqrt(weight)),
        velocities=jnp.asarray(np.concatenate((friction.rise, friction.fading))[columns]),
        columns=tuple(columns.tolist()),
        held=tuple(held.tolist()),
        places=(jnp.asarray(of), jnp.asarray(t), jnp.asarray(channel)),
    )
    # Its cost is half of the squares of residuals: twice the weight.
    more = {"distance": distance, "bodies": model.bodies, "is_scaled": True}
    near = NominalPrior.of(parameters.system, 2 * weight, **more)
    sums = jnp.asarray(found.x[[model.names.index(n.name) for n in model.sums]])
    message = f"{'' if found.converged else 'not '}converged after {found.steps} steps"
    best = Outcome((x, (sums, jnp.zeros(0))), found.steps, found.converged, message)
    fit = judged(parameters, (torques, near), Squares(), False, x, best)
    # Zeros of the file are its numbers, too.
    begin = np.concatenate((parameters.initial, np.zeros(len(model.sums))))
    return dataclasses.replace(fit, start=begin)


def _parameters(system: Any, model: TorqueModel, known: NDArray, velocities: NDArray) -> Parameters:
    """All numbers of an arm on which some torque depends, by the masks known (p,), velocities."""
    paths = {entry.path for entry in entries(system)}
    names = [f"{system.body_names[b]}/inertial" for b in model.bodies]
    fields = {"offset": "torque_bias"}
    summed = {n.name for n in model.sums}
    for name, there in zip(model.names[model.inertial :], known[model.inertial :], strict=True):
        joint, leaf = name.rsplit("/", 1)
        if there and name not in summed:
            names.append(_path(paths, joint, fields.get(leaf, leaf)))
    for k in velocities.tolist():
        leaf = ("friction_velocity", "stribeck_velocity")[k // len(model.joints)]
        names.append(_path(paths, model.joints[k % len(model.joints)], leaf))
    return Parameters(system, names)


def _path(paths: set[str], joint: str, leaf: str) -> str:
    """The path of a number of one degree of freedom: "joint/leaf", or "joint/leaf[1]"."""
    owner, bracket, number = joint.partition("[")
    path = f"{joint}/{leaf}"
    return path if path in paths or not bracket else f"{owner}/{leaf}[{number}"
