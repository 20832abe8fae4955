"""The stops at limits of a system as MuJoCo's soft limits of joints and tendons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....forces import JointStop
from ....system import System
from ....system.shown import some
from ..softness import soft_law
from .bodies import JointElement
from .draft import Draft

_MOST = 4  # names in a remark


def write_limits(draft: Draft, joints: list[JointElement]) -> Iterator[str]:
    """Notes the stops whose stiffness the file has; what other programs read otherwise.

    joints: those of the file.
    """
    found: dict[str, list[Any]] = {joint.name: [] for joint in joints}
    free = []
    for joint, lower, upper in _limited(draft.system, joints):
        if np.isfinite([lower, upper]).any():
            found[joint.name] = [s for s in _stops(draft.system) if _holds(s, draft, joint)]
            free += [] if found[joint.name] else [joint.name]
    for name, stop in draft.stopped_balls:
        found[name].append(stop)
    tendons = [(name, part) for part, name in draft.stopped]
    plain, others = [], []
    for name, stops in found.items():
        if len(stops) == 1 and float(stops[0].exponent) == 1 and not np.any(stops[0].smoothing):
            (stop,) = stops
            plain.append(("joint", name, float(stop.stiffness), float(stop.dissipation)))
        elif stops:
            others.append(name)
    for name, part in tendons:
        numbers = float(part.stop_stiffness), float(part.stop_dissipation)
        plain.append(("tendon", name, *numbers))
    draft.soft_limits += plain
    if plain:
        yield "stops at limits are MuJoCo's soft ones in other programs, as stiff as these at rest"
    if others:
        yield f"stops at limits of {some(others, _MOST)} have MuJoCo's own stiffness"
    if free:
        yield f"limits of {some(free, _MOST)} stop these in MuJoCo, and do not here"


def write_limit_softness(draft: Draft, model: Any) -> list[str]:
    """Writes the stiffness and dissipation of stops, by the weights of the file as compiled.

    model: MuJoCo's. The joints and tendons whose dissipation is more than critical damping.
    """
    over = []
    for kind, name, stiffness, dissipation in draft.soft_limits:
        if kind == "joint":
            weight = model.dof_invweight0[model.jnt_dofadr[model.joint(name).id]]
        else:
            weight = model.tendon_invweight0[model.tendon(name).id]
        solref, solimp, more = soft_law(stiffness, dissipation, float(weight))
        over += [name] if more else []
        draft.soften(kind, name, solref, solimp)
    return over


def _stops(system: System) -> list[JointStop]:
    return [part for part in system.couplings if isinstance(part, JointStop)]


def _holds(stop: JointStop, draft: Draft, joint: JointElement) -> bool:
    """Whether a stop is at the limits of a joint of the file."""
    return stop.joints is None or draft.system.topology.joints[joint.body] in stop.joints


def _limited(
    system: System, joints: list[JointElement]
) -> Iterator[tuple[JointElement, float, float]]:
    """The hinges and slides of the file with their limits."""
    t = system.topology
    for joint in joints:
        if joint.dof is not None:
            k = int(t.dof_start[joint.body]) + joint.dof
            yield joint, float(system.joints.lower[k]), float(system.joints.upper[k])
