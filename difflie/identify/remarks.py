"""Remarks on a fit, in sentences: what was done, what is doubtful, and what to measure next.

Of numbers that a machine can hardly have, of how a fit starts and ends, of what an arm's log does
not tell, and of the scale and offsets of its torques.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..parameters import Parameters, SharedParameters
from ..system.checks import impossible_inertias
from ..system.system import System
from ..system.topology import WORLD
from ..system.validation import warn
from ..view.estimates import Estimated
from .arm_equations import Equations, HeldOut, Logs, Solution
from .consistency import Consistent
from .statistics import listed
from .torque_rows import Friction, TorqueModel

# Beyond its link by more than this (m), a centre of mass is not plausible.
_BEYOND = 0.25
# So many times the mass at the start, or a part as small, is not plausible.
_MASSES = 3.0
_LEAST_SCALE, _MOST_SCALE = 0.5, 2.0


def far_centres(system: System, centres: Mapping[int, NDArray]) -> Iterator[str]:
    """Bodies whose centre of mass is far beyond the joints between which they are.

    system: as in its file; centres: found (3,) in m, in the bodies' frames, by the bodies' index.
    """
    t, position = system.topology, np.asarray(system.joints.position, float)
    for b, centre in centres.items():
        ends = [position[c] for c, parent in enumerate(t.parents) if parent == b != WORLD]
        before = np.asarray(system.bodies.com, float)[b]
        size = max(np.linalg.norm(end) for end in (*ends, before))
        if np.linalg.norm(centre) > size + _BEYOND:
            yield (
                f"{system.body_names[b]}: the centre of mass is {np.linalg.norm(centre):.2g} m "
                f"from its joint, beyond the link of {size:.2g} m: this body has what another has, "
                "or a load that the file lacks"
            )


def implausible(start: System, found: System) -> Iterator[str]:
    """What is hardly so of a machine that was found, beside that at the start."""
    before, after = np.asarray(start.bodies.com, float), np.asarray(found.bodies.com, float)
    yield from far_centres(
        start, {int(b): after[b] for b in np.flatnonzero((before != after).any(axis=1))}
    )
    masses = zip(
        start.body_names, np.asarray(start.bodies.mass), np.asarray(found.bodies.mass), strict=True
    )
    for name, was, mass in masses:
        if was > 0 and not was / _MASSES < mass < was * _MASSES:
            yield (
                f"{name}: its mass is {mass:.3g} kg, and {was:.3g} kg at the start: do motions "
                "tell it only together with others, or is a load not in the file?"
            )
    was, now = (np.asarray(s.bodies.inertia, float) for s in (start, found))
    for b, fault in impossible_inertias(now).items():
        if (was[b] != now[b]).any():
            name = found.body_names[b]
            yield f"{name}: {fault}; declare {name}/inertia, which stays what a body can have"
    for actuator in found.actuators:
        scale = getattr(actuator, "torque_scale", None)
        if scale is not None and scale < 0:
            yield f"{actuator.label}: torque_scale is {scale:.3g}; is the sign of tau turned round?"
        elif scale is not None and not _LEAST_SCALE < scale < _MOST_SCALE:
            yield (
                f"{actuator.label}: torque_scale is {scale:.3g}; are measured torques in N m, and "
                "at the joint's side of the gear?"
            )


# Warn beyond so many deviations from a prior.
_FAR = 3.0


def warn_of_small_starts(parameters: Parameters | SharedParameters) -> None:
    """Warns of zero damping, friction and armature, which start at a small value instead."""
    start = np.asarray(parameters.values(parameters.start))
    rows = zip(parameters.names, start, np.asarray(parameters.initial), strict=True)
    leaves = "damping", "friction", "armature"
    small = ", ".join(
        f"{name} at {s:.3g}"
        for name, s, first in rows
        if s > 0 and first == 0 and name.rpartition("/")[2].startswith(leaves)
    )
    if small:
        warn(
            f"{parameters.title}: zero has no logarithm, and the fit starts {small} (SI "
            "units); give `start` for another"
        )


def warn_of_ends(
    parameters: Parameters | SharedParameters, x: NDArray, values: NDArray, at_bound: NDArray
) -> None:
    """Warns of each estimate that is far from its prior or at a bound.

    x (n,): the free numbers; values and at_bound (p,): the estimates, and whether they are there.
    """
    for name, off in zip(parameters.prior_names, np.asarray(parameters.residual(x)), strict=True):
        if abs(off) > _FAR:
            warn(f"{name} is {abs(off):.3g} deviations from its prior; is this right?")
    for k in np.flatnonzero(at_bound):
        value, name = values[k], parameters.names[k]
        bound = min((limit[k] for limit in parameters.limits), key=lambda bound: abs(value - bound))
        warn(f"{name} is {value:.4g}, at its bound {bound:.4g}; is this right?")


# The first kind whose words begin a number's last name is its.
_KINDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("load_friction",),
        "motions to and fro with light and with heavy loads, so that friction is separated from "
        "its growth with the load",
    ),
    (
        ("damping", "friction", "drag", "breakaway", "stribeck", "slip"),
        "motions to and fro at several constant speeds, slow and fast ones, so that friction is "
        "separated from damping",
    ),
    (
        ("armature", "inertia", "I_", "second"),
        "motions that speed up and slow down hard, in several postures",
    ),
    (
        ("mass", "com", "moment"),
        "rest and slow motions in postures far apart, with and without a known load: of single "
        "masses motions tell little",
    ),
    (
        ("torque_scale", "kp", "kd", "gain", "constant"),
        "motions with a known load, as all torques scale alike without one",
    ),
    (("torque_bias", "position_bias", "bias"), "rest in several postures far apart"),
    (("delay",), "commands that change fast, logged at a high rate"),
    (("stiffness", "spring", "rest"), "rest and slow motion over the whole range"),
)
_OTHERS = "motions that differ more in posture, speed and acceleration"


def advice(names: Sequence[str]) -> Iterator[str]:
    """A sentence for each kind among poorly identified numbers: what would identify them."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        told = (motion for words, motion in _KINDS if name.rpartition("/")[2].startswith(words))
        kinds.setdefault(next(told, _OTHERS), []).append(name)
    for motion, several in kinds.items():
        yield f"to tell {listed(several)}: {motion}"
    if kinds:
        yield "motions that tell most within a robot's limits: difflie.identify.excitation"


_ILL_CONDITIONED = 300.0
# What the file holds, by its part in the variance.
_HELD = 0.9
# The least part of the time in which a joint that moves both ways moves the rarer way.
_BOTH_WAYS = 0.02
_MOST_NAMES = 6
# So few periods of the fastest motion, as its spectrum tells them, are one at most; and the part of
# the joints that may move one way only, beyond which blocks of a log are alike.
_ONE_PERIOD, _MOST_ONE_WAY = 2.5, 0.5


def too_short(logs: Logs, motion: NDArray | float) -> str | None:
    """A sentence where blocks of the logs are alike, so that none can be judged by the others.

    motion (nv,): the bandwidths in Hz.
    """
    seconds = sum(float(np.ptp(s.recording.t)) for s in logs.samples)
    one_way = _rarer_way(logs)
    if seconds * float(np.max(motion)) < _ONE_PERIOD:
        why = "are about one period of its motion"
    elif one_way.mean() >= _MOST_ONE_WAY:
        why = f"have {int(one_way.sum())} of {len(one_way)} joints move one way only"
    else:
        return None
    return (
        f"the log is too short to judge by: its {seconds:.3g} s {why}, so that held-out samples "
        "are like those fitted; record a motion in which all joints go to and fro several times, "
        "such as difflie.identify.excitation designs"
    )


def notes(
    model: TorqueModel,
    base: Solution,
    best: Consistent,
    friction: Friction,
    estimates: Mapping[str, Estimated],
    logs: Logs,
    held_out: HeldOut,
) -> Iterator[str]:
    """The sentences; estimates: what is known of each number, by name."""
    motion, both = logs.samples[0].cutoffs
    slowest, fastest = (f"{end:.3g}" for end in (motion.min(), motion.max()))
    each = slowest if slowest == fastest else f"{slowest} to {fastest}"
    yield f"positions are low-passed at {each} Hz, both sides of the equations at {both:.3g} Hz"
    if base.condition > _ILL_CONDITIONED:
        yield (
            f"the condition number of the base parameters is {base.condition:.3g}: the motion "
            "identifies some of them poorly; see which are not essential, and measure a designed "
            "motion"
        )
    one_way = [j for j, v in zip(model.joints, _rarer_way(logs).tolist(), strict=True) if v]
    if one_way:
        yield (
            f"these joints move one way only, which does not separate friction from an offset: "
            f"{_listed(one_way)}; measure motions to and fro"
        )
    faded = [j for j, v in zip(model.joints, friction.fading, strict=True) if np.isfinite(v)]
    if faded:
        yield f"friction grows at low speed (Stribeck): {_listed(faded)}"
    if model.load:
        loads = model.joint_numbers(best.x, "load_friction")
        named = [f"{j} {x:.3g}" for j, x in zip(model.joints, loads, strict=True) if x > 0]
        yield f"friction grows with the load: {', '.join(named) or 'at no joint'}"
    if len(best.active):
        yield f"at their bound, 0: {_listed([model.names[k] for k in best.active])}"
    held = [name for name, p in estimates.items() if (p.prior_share or 0.0) > _HELD]
    if held:
        yield (
            f"{len(held)} of {len(estimates)} numbers are held by the nominal ones, as the motion "
            f"identifies combinations of them at best: {_listed(held)}"
        )
    yield from far_centres(model.system, _centres(model, best.x))
    ends = (
        (
            model.couplings,
            "motors that turn with sums of joint rates have inertia and friction that simulations "
            "of the arm leave out",
        ),
        (
            not best.converged,
            "the consistent numbers are not converged, and have no standard errors; is a body's "
            "estimate far off, or a torque's unit another?",
        ),
        (
            held_out.unconverged,
            f"{held_out.unconverged} fits to all but one block are not converged, which makes the "
            "weight of the nearness and the scores of held-out samples doubtful",
        ),
    )
    yield from (said for there, said in ends if there)


def _rarer_way(logs: Logs) -> NDArray:
    """Whether each joint moves one way only (nv,)."""
    v = np.concatenate([np.where(s.there, s.v, 0) for s in logs.samples])
    way = np.sign(v) * (np.abs(v) > 0.05 * np.abs(v).max(axis=0))
    forth, back = (way > 0).mean(axis=0), (way < 0).mean(axis=0)
    return (np.minimum(forth, back) < _BOTH_WAYS) & (forth + back > 0)


def _centres(model: TorqueModel, x: NDArray) -> dict[int, NDArray]:
    """The centres of mass (3,) that were found, by the bodies' index."""
    return {b: x[10 * k + 1 : 10 * k + 4] / x[10 * k] for k, b in enumerate(model.bodies)}


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} others" if more > 0 else "")


# The torques that the file's bodies need tell a scale where they explain so much of the others.
_EXPLAINED = 0.8
# Files are wrong by less than this, and units and gears by more.
_OTHER_SCALE = 5.0
# An offset that is so large beside the deviation of the torque, and beside its error.
_LARGE, _CERTAIN = 0.5, 3.0


def doubts(
    model: TorqueModel, equations: Equations, estimates: Mapping[str, Estimated]
) -> Iterator[str]:
    """The sentences on torques; estimates: what is known of each number, by name."""
    ratio = _scale(model, equations)
    if not 1 / _OTHER_SCALE < ratio < _OTHER_SCALE:
        yield (
            f"the torques are {ratio:.3g} times those that the nominal bodies need; are they in "
            "another unit, or of the motors' side of the gears? Then give their factor to N m "
            "(scale.tau)"
        )
    if not model.offsets:
        return
    spreads = [
        float(np.std(tau[counts])) if counts.any() else np.inf
        for tau, counts in zip(equations.torque.T, equations.counts.T, strict=True)
    ]
    for joint, unit, spread in zip(model.joints, model.forces, spreads, strict=True):
        bias = estimates.get(f"{joint}/torque_bias", Estimated(unit, 0.0, 0.0))
        if abs(bias.value) > max(_LARGE * spread, _CERTAIN * (bias.std_error or 0.0)):
            yield (
                f"the torque of {joint} has the offset {-bias.value:.3g} {unit}, beside a "
                f"deviation of {spread:.3g}; was its sensor set to zero?"
            )


def _scale(model: TorqueModel, equations: Equations) -> float:
    """The torques over those of the file's bodies, the median of joints that tell it; or 1."""
    needed = equations.columns[:, :, : model.inertial] @ model.file_numbers()[: model.inertial]
    found = []
    for j, counts in enumerate(equations.counts.T):
        own = [model.inertial + k * len(model.joints) + j for k in range(3)]
        others = np.column_stack((equations.columns[counts][:, j, own], np.ones(counts.sum())))
        both = np.column_stack((needed[counts, j], equations.torque[counts, j]))
        # Of both what armature, friction and an offset explain is left out.
        base = np.linalg.qr(others)[0]
        need, torque = (both - base @ (base.T @ both)).T
        product, sizes = need @ torque, (need @ need, torque @ torque)
        if product > 0 and product**2 > _EXPLAINED * sizes[0] * sizes[1]:
            found.append(product / sizes[0])
    return float(np.median(found)) if found else 1.0
