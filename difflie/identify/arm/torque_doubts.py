"""Sentences on torques that suit a machine badly: their scale and their offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..torque_rows import TorqueModel
from .equations import Equations

# The torques that the file's bodies need tell a scale where they explain so much of the others.
_EXPLAINED = 0.8
# Files are wrong by less than this, and units and gears by more.
_OTHER_SCALE = 5.0
# An offset that is so large beside the deviation of the torque, and beside its error.
_LARGE, _CERTAIN = 0.5, 3.0


def doubts(
    model: TorqueModel, equations: Equations, told: Mapping[str, tuple[float, float]]
) -> Iterator[str]:
    """The sentences on torques; told: the numbers found, with their standard errors, by name."""
    ratio = _scale(model, equations)
    if not 1 / _OTHER_SCALE < ratio < _OTHER_SCALE:
        yield (
            f"the torques are {ratio:.3g} times those that the file's bodies need; are they in "
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
        bias, error = told.get(f"{joint}/torque_bias", (0.0, 0.0))
        offset = -bias
        if abs(offset) > max(_LARGE * spread, _CERTAIN * error):
            yield (
                f"the torque of {joint} has the offset {offset:.3g} {unit}, beside a deviation of "
                f"{spread:.3g}; was its sensor set to zero?"
            )


def _scale(model: TorqueModel, equations: Equations) -> float:
    """The torques over those of the file's bodies, the median of joints that tell it; or 1."""
    inertial = equations.columns[:, :, : model.inertial]
    needed = inertial @ model.file_numbers()[: model.inertial]
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
