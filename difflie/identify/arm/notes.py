"""Sentences on what was done to identify an arm, and on what is not known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..consistency import Consistent
from ..plausibility import far_centres
from ..torque_rows import Friction, TorqueModel
from .equations import Logs
from .held_out import HeldOut
from .weighted_least_squares import Solution

_ILL_CONDITIONED = 300.0
# What the file holds, by its part in the variance.
_HELD = 0.9
# The least part of the time in which a joint that moves both ways moves the rarer way.
_BOTH_WAYS = 0.02
_MOST_NAMES = 6


def notes(
    model: TorqueModel,
    base: Solution,
    best: Consistent,
    friction: Friction,
    shares: Mapping[str, float],
    logs: Logs,
    held_out: HeldOut,
) -> Iterator[str]:
    """The sentences; shares: of the file's numbers in what is known of each number, by name."""
    motion, both = logs.samples[0].cutoffs
    slowest, fastest = (f"{end:.3g}" for end in (motion.min(), motion.max()))
    each = slowest if slowest == fastest else f"{slowest} to {fastest}"
    yield f"positions are low-passed at {each} Hz, both sides of the equations at {both:.3g} Hz"
    if base.condition > _ILL_CONDITIONED:
        yield (
            f"the condition number of the base parameters is {base.condition:.3g}: the motion "
            "tells some of them badly; see which are not essential, and measure a designed motion"
        )
    one_way = [j for j, v in zip(model.joints, _rarer_way(logs).tolist(), strict=True) if v]
    if one_way:
        yield (
            f"these joints move one way only, which does not tell friction from an offset: "
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
    held = [name for name, share in shares.items() if share > _HELD]
    if held:
        yield (
            f"{len(held)} of {len(shares)} numbers are held by the file's, as the motion tells "
            f"combinations of them at best: {_listed(held)}"
        )
    yield from far_centres(model.system, _centres(model, best.x))
    if model.couplings:
        yield (
            "motors that turn with sums of joint rates have inertia and friction that simulations "
            "of the arm leave out"
        )
    if not best.converged:
        yield (
            "the consistent numbers are not converged, and have no standard errors; is a body's "
            "estimate far off, or a torque's unit another?"
        )
    if held_out.unconverged:
        yield (
            f"{held_out.unconverged} fits to all but one block are not converged, which makes the "
            "weight of the nearness and the scores of rows not fitted doubtful"
        )


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
