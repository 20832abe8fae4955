"""Numbers that a machine can hardly have, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ..system.system import System
from ..system.topology import WORLD

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
    moved = np.flatnonzero((before != after).any(axis=1))
    yield from far_centres(start, {int(b): after[b] for b in moved})
    masses = zip(
        start.body_names, np.asarray(start.bodies.mass), np.asarray(found.bodies.mass), strict=True
    )
    for name, was, mass in masses:
        if was > 0 and not was / _MASSES < mass < was * _MASSES:
            yield (
                f"{name}: its mass is {mass:.3g} kg, and {was:.3g} kg at the start: do motions "
                "tell it only together with others, or is a load not in the file?"
            )
    for actuator in found.actuators:
        scale = getattr(actuator, "torque_scale", None)
        if scale is not None and scale < 0:
            yield f"{actuator.label}: torque_scale is {scale:.3g}; is the sign of tau turned round?"
        elif scale is not None and not _LEAST_SCALE < scale < _MOST_SCALE:
            yield (
                f"{actuator.label}: torque_scale is {scale:.3g}; are measured torques in N m, and "
                "at the joint's side of the gear?"
            )
