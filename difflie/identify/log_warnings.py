"""Plausibility of a recording: warnings of units other than SI."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..system.joints import UNITS
from ..system.system import System
from .recordings import Recording
from .sensors import meant

# More than three turns to either side; joints with limits are checked by these.
_FAR = 20.0
_SLOW = 0.5
_OUTSIDE = 0.1


def log_warnings(system: System, recording: Recording) -> list[str]:
    """A sentence for each implausible feature of a recording; none if all seems well.

    Checked are the steps of t (n,) in s, the angles in q (n, nq) in rad (of joints with one number
    for each velocity), how many of the n rows are outside the limits of a joint, and whether v (n,
    nv) is the rate of q.
    """
    warnings, name = [], recording.name
    step = float(np.median(np.diff(recording.t)))
    if step > _SLOW:
        warnings.append(f"{name}: rows are {step:.4g} s apart; are the times in ms?")
    t, q, v = system.topology, recording.q, recording.v
    if system.nq != system.nv or q is None or q.shape[1] != system.nv:
        return warnings
    rates = () if v is None or v.shape != q.shape else (jnp.asarray(v),)
    q, *rates = (np.asarray(x) for x in meant(system, jnp.asarray(q), *rates))
    lower, upper = np.asarray(system.joints.lower), np.asarray(system.joints.upper)
    for dof, b in enumerate(t.dof_body):
        if dof in t.mimic_dofs:
            continue
        k, joint = int(t.dof_velocity[dof]), t.joints[b]
        column = q[:, k][~np.isnan(q[:, k])]
        outside = (column < lower[dof]) | (column > upper[dof])
        limited = np.isfinite((lower[dof], upper[dof])).any()
        angle = UNITS[t.kinds[b][dof - int(t.dof_start[b])]] == "rad"
        unit = "degrees (scale.q = 0.0174533)" if angle else "mm (scale.q = 0.001)"
        if limited and len(column) and outside.mean() > _OUTSIDE:
            warnings.append(
                f"{name}: {joint!r} is outside of its limits in {outside.mean():.0%} of the rows; "
                f"is its q in {unit}?"
            )
        elif angle and not limited and np.abs(column).max(initial=0) > _FAR:
            far = np.abs(column).max()
            warnings.append(f"{name}: {joint!r} turns to {far:.4g} rad; is its q in {unit}?")
        for v in rates:
            ratio = _ratio(recording.t, q[:, k], v[:, k])
            if not 0.5 < ratio < 2:
                warnings.append(
                    f"{name}: the v of {joint!r} is {ratio:.3g} times the rate at which its q "
                    "changes; are both in SI units and of this joint, or does q wrap around?"
                )
    return warnings


def _ratio(t: np.ndarray, q: np.ndarray, v: np.ndarray) -> float:
    """The ratio of v (n,) to the differences of q (n,), over spans long enough to average noise.

    One where nothing moves.
    """
    span = max(1, len(t) // 50)
    steps = np.diff(t)
    pieces = (v[1:] + v[:-1]) / 2 * steps
    path, lost = (
        np.concatenate(([0.0], np.cumsum(x))) for x in (np.nan_to_num(pieces), np.isnan(pieces))
    )
    moved, foretold, lost = (x[span:] - x[:-span] for x in (q, path, lost))
    known = ~np.isnan(moved) & (lost == 0)
    size = float(moved[known] @ moved[known])
    return float(moved[known] @ foretold[known]) / size if size > 0 else 1.0
