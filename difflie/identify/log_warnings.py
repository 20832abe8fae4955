"""Plausibility of recordings: warnings of units, signs, stops, and what tells nothing.

Columns of a wrong sign or in a wrong order are found by the torques that the motion needs. Each
possible fault (a sign of q or tau turned round, two columns exchanged) is undone, and the
torques are compared with those of the machine as it is before the fit:

    tau = c0 + c1 (M(q) a + bias(q, v)) + c2 v + c3 sign(v),    c1, c2, c3 >= 0

joint by joint, by non-negative least squares (Lawson and Hanson 1974). Masses may be far off, but
no mass and no friction is negative, so that a fault leaves a joint unexplained.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..dynamics.rnea import rnea
from ..sensors.sensor import to_true
from ..system.arguments import check_system
from ..system.joints import UNITS
from ..system.kinematic_tree import Tree
from ..system.system import System
from .recordings import Recording, as_recordings, check_recording, savitzky_golay

# Rows that are compared, and the time (s) over which positions are smoothed for it.
_ROWS = 256
_SPAN = 0.03
# How much more of the variances of all torques a fault must explain, and what is as good.
_BETTER = 0.4
_ALIKE = 0.1
# The share of the largest speed below which friction grows with the speed.
_SLOW = 0.05


class _Change(NamedTuple):
    """What undoes a fault: columns of q or tau in another order (nv,), times signs (nv,)."""

    said: str
    quantity: str
    order: NDArray
    signs: NDArray


def mixed_columns(system: System, recording: Recording) -> list[str]:
    """A sentence on the sign or the order of columns that the torques contradict, if there is one.

    Needs q (n, nv) and tau (n, nv) of a machine without actuators and constraints, whose joints
    have one coordinate for each velocity; nothing is said of others.
    """
    motion = _motion(system, recording)
    if motion is None:
        return []
    q, v, a, tau = motion
    parts = {"q": (q, v, a), "tau": (tau,)}

    def explained(change: _Change) -> NDArray:
        changed = tuple(change.signs * x[:, change.order] for x in parts[change.quantity])
        found = parts | {change.quantity: changed}
        return _explained(system, *found["q"], *found["tau"])

    # What stands still tells nothing, and may be exchanged for anything.
    moving = [j for j in range(system.nv) if np.ptp(tau[:, j]) > 0 and np.ptp(q[:, j]) > 0]
    nothing, *changes = _changes(recording, system.nv, moving)
    before = explained(nothing)
    found = [(float((explained(c) - before).sum()), c.said) for c in changes]
    best = max((gain for gain, _ in found), default=0.0)
    if best < _BETTER:
        return []
    said = " or ".join(text for gain, text in found if gain > best - _ALIKE)
    worst = int(np.argmin(before))
    joint = system.topology.velocity_labels[worst][0]
    return [
        f"{recording.name}: the torques suit the motion far better with {said}, as they explain "
        f"{before[worst]:.0%} of the torque of {joint!r} now; are columns.q and columns.tau in "
        'the order of the joints and of their signs ("-tau2" turns one round)?'
    ]


def _changes(recording: Recording, nv: int, moving: Sequence[int]) -> Iterator[_Change]:
    """First none, then each that undoes one fault of the joints that move."""
    same, signs, column = np.arange(nv), np.ones(nv), recording.column
    yield _Change("", "q", same, signs)
    for j, of in itertools.product(moving, ("tau", "q")):
        said = f"the sign of {column(of, j)} turned round"
        yield _Change(said, of, same, np.where(same == j, -1.0, 1.0))
    for (i, j), of in itertools.product(itertools.combinations(moving, 2), ("tau", "q")):
        swapped = same.copy()
        swapped[[i, j]] = j, i
        yield _Change(f"{column(of, i)} and {column(of, j)} exchanged", of, swapped, signs)


def _motion(
    system: System, recording: Recording
) -> tuple[NDArray, NDArray, NDArray, NDArray] | None:
    """q, v, a and tau (k, nv) of rows that are spread over the recording; None for too few."""
    q, tau = recording.q, recording.tau
    if q is None or tau is None or system.nq != system.nv or system.actuators or system.constraints:
        return None
    if q.shape[1] != system.nv or tau.shape != q.shape:
        return None
    v, a = recording.v, recording.a
    if a is None or v is None:
        step = float(np.median(np.diff(recording.t)))
        window = max(5, 2 * int(_SPAN / step) + 1)
        if window > len(q) or np.isnan(q).any():
            return None
        q, v, a = savitzky_golay(window, 3, step).derivatives(q)
    there = np.flatnonzero(~np.isnan(np.column_stack((q, v, a, tau))).any(axis=1))
    if len(there) < 10 * system.nv:
        return None
    rows = there[np.linspace(0, len(there) - 1, _ROWS).astype(int)]
    read = to_true(system, *(jnp.asarray(x[rows], system.dtype) for x in (q, v, a)))
    q, v, a = (np.asarray(x) for x in read)
    return q, v, a, tau[rows]


def _explained(system: System, q: NDArray, v: NDArray, a: NDArray, tau: NDArray) -> NDArray:
    """The share (nv,) of the variance of each torque that the machine explains; 1 of none."""
    from scipy.optimize import nnls

    model = np.asarray(_needed(system, *(jnp.asarray(x, system.dtype) for x in (q, v, a))))
    shares = np.ones(system.nv)
    for j in range(system.nv):
        fast = np.abs(v[:, j]).max()
        friction = np.tanh(v[:, j] / (_SLOW * fast)) if fast > 0 else v[:, j]
        measured = tau[:, j] - tau[:, j].mean()
        columns = np.stack((model[:, j], v[:, j], friction), axis=1)
        columns = columns - columns.mean(axis=0)
        sizes = np.linalg.norm(columns, axis=0)
        size = float(np.linalg.norm(measured))
        if size > 0 and sizes.any():
            _, left = nnls(columns / np.where(sizes > 0, sizes, 1), measured)
            shares[j] = 1 - (left / size) ** 2
    return shares


@jax.jit
def _needed(system: System, q: jax.Array, v: jax.Array, a: jax.Array) -> jax.Array:
    """The torques (k, nv) of inertia and gravity."""
    tree = Tree.of(system)
    return jax.vmap(lambda *row: rnea(tree, *row))(q, v, a)


# More than three turns to either side; joints with limits are checked by these.
_FAR = 20.0
_OUTSIDE = 0.1
# Steps (s) that no machine is sampled at, by the unit which they would have instead.
_UNITS_OF_TIME = ((5e5, "ns", 1e-9), (500.0, "us", 1e-6), (0.5, "ms", 1e-3))
# A stop ends a motion within this time (s), near a limit, this much faster than all else.
_STOP_TIME, _STOP_NEAR, _STOP_HARDER = 0.02, 0.02, 3.0
# Motions of less than this, in rad or m, tell nothing.
_STILL = 1e-3
_OTHER_RATE = 1.2
# Steps so many times larger than all but a few in a hundred, and than this (rad or m), are jumps.
_JUMP, _JUMP_LEAST, _OFTEN = 10.0, 0.05, 0.98


def log_warnings(system: System, recording: Recording) -> list[str]:
    """A sentence for each implausible feature of a recording; none if all seems well.

    Checked are the steps of t (n,) in s, signals that are constant, the angles in q (n, nq) in rad
    (of joints with one number for each velocity), how many of the n rows are outside the limits of
    a joint, whether one jumps or runs into a stop, whether v (n, nv) is the rate of q, whether
    anything moves, and whether signs and order of columns suit the torques, see `mixed_columns`.
    """
    check_system(system)
    check_recording(recording)
    name, warnings = recording.name, list(_of_time(recording))
    q, v = recording.q, recording.v
    if system.nq != system.nv or q is None or q.shape[1] != system.nv:
        return warnings
    rates = () if v is None or v.shape != q.shape else (jnp.asarray(v),)
    q, *rates = (np.asarray(x) for x in to_true(system, jnp.asarray(q), *rates))
    if np.nanmax(np.nanmax(q, axis=0) - np.nanmin(q, axis=0)) < _STILL:
        return [
            *warnings,
            f"{name}: no joint moves more than {_STILL:g} rad or m, which tells little but "
            "weights; record a motion in which all move, such as di.excitation designs",
        ]
    units = [*_outside(system, recording, q)]
    for v in rates:
        units += _of_rates(system, recording, q, v)
    warnings += [
        *units,
        *_constant(recording),
        *_stops(system, recording, q),
        *_jumps(recording, q),
    ]
    # Other units and rates would be taken for wrong signs.
    return warnings if units else [*warnings, *mixed_columns(system, recording)]


def rate_warnings(recordings: Sequence[Recording]) -> list[str]:
    """A sentence where recordings have different steps, which counts and smooths them unlike."""
    recordings = as_recordings(recordings)
    steps = [float(np.median(np.diff(r.t))) for r in recordings]
    if not steps or max(steps) < _OTHER_RATE * min(steps):
        return []
    slow, fast = recordings[int(np.argmax(steps))], recordings[int(np.argmin(steps))]
    return [
        f"{slow.name} has a row every {max(steps):.4g} s, but {fast.name} one every "
        f"{min(steps):.4g} s, and so counts for more; give all one step (data.resample)"
    ]


def _of_time(recording: Recording) -> Iterator[str]:
    step = float(np.median(np.diff(recording.t)))
    for least, unit, factor in _UNITS_OF_TIME:
        if step > least:
            written = recording.columns.get("time", ("time",))[0]
            yield (
                f"{recording.name}: rows are {step:.4g} s apart; are the times in {unit}? Then "
                f'give time = "{written} * {factor:g}"'
            )
            return


def _constant(recording: Recording) -> Iterator[str]:
    """Of columns of tau, and of q beside others that move, that have one number throughout."""
    for quantity in ("q", "tau"):
        values = getattr(recording, quantity)
        if values is None:
            continue
        for j in range(values.shape[1]):
            there = values[~np.isnan(values[:, j]), j]
            if len(there) == 0:
                yield (
                    f"{recording.name}: {recording.column(quantity, j)} is empty in all rows; name "
                    f"another column of {quantity}, or leave {quantity} out"
                )
            elif np.ptp(there) == 0:
                yield (
                    f"{recording.name}: {recording.column(quantity, j)} is {there[0]:.6g} in all "
                    f"rows; was {quantity} recorded there? Name another column, or lock the joint"
                )


def _jumps(recording: Recording, q: NDArray) -> Iterator[str]:
    """Of positions that are elsewhere from one row to the next."""
    for k, step in enumerate(np.abs(np.diff(q, axis=0)).T):
        there = step[~np.isnan(step)]
        if not len(there) or not np.ptp(there):
            continue
        jumps = np.flatnonzero(step > max(_JUMP * np.quantile(there, _OFTEN), _JUMP_LEAST))
        if len(jumps):
            more = f" and at {len(jumps) - 1} other places" if len(jumps) > 1 else ""
            yield (
                f"{recording.name}: {recording.column('q', k)} jumps by "
                f"{step[jumps[0]]:.4g} rad or m at {recording.t[jumps[0]]:.6g} s{more}; cut the "
                "run there (from, to), or leave these cells empty"
            )


def other_units(system: System, recording: Recording) -> list[str]:
    """Sentences on joints that turn or move further than they can, as in degrees or mm.

    One for all joints of a unit; none where q has other columns than one for each velocity.
    """
    q = recording.q
    if system.nq != system.nv or q is None or q.shape[1] != system.nv:
        return []
    (true,) = to_true(system, jnp.asarray(q))
    return list(_outside(system, recording, np.asarray(true)))


def _outside(system: System, recording: Recording, q: NDArray) -> Iterator[str]:
    """Of joints that turn further than they can, in a sentence for angles and one for lengths."""
    limits: dict[bool, list[str]] = {True: [], False: []}
    turning = []
    for joint, k, lower, upper, angle in _coordinates(system):
        column = q[:, k][~np.isnan(q[:, k])]
        outside = (column < lower) | (column > upper)
        limited = np.isfinite((lower, upper)).any()
        where = f"{recording.column('q', k)} of {joint!r}"
        if limited and len(column) and outside.mean() > _OUTSIDE:
            limits[angle].append(f"{where} ({outside.mean():.0%} of the rows)")
        elif angle and not limited and np.abs(column).max(initial=0) > _FAR:
            turning.append(f"{where} turns to {np.abs(column).max():.4g} rad")
    keys = [key for key in ("q", "v", "a") if getattr(recording, key) is not None]
    for angle, several in limits.items():
        unit, scale = ("degrees", "0.0174533") if angle else ("mm", "0.001")
        said = [f"outside of its limits is {', '.join(several)}"] if several else []
        said += turning if angle else []
        if said:
            fix = ", ".join(f"scale.{key} = {scale}" for key in keys)
            yield f"{recording.name}: {', '.join(said)}; is its q in {unit} ({fix})?"


def _of_rates(system: System, recording: Recording, q: NDArray, v: NDArray) -> Iterator[str]:
    """Of velocities that are not those of the positions beside them."""
    for joint, k, *_ in _coordinates(system):
        ratio = _ratio(recording.t, q[:, k], v[:, k])
        if 0.5 < ratio < 2:
            continue
        said = recording.column("v", k)
        others = [_ratio(recording.t, q[:, j], v[:, k]) for j in range(system.nv)]
        fits = [j for j, other in enumerate(others) if j != k and 0.8 < other < 1.25]
        if -2 < ratio < -0.5:
            hint = "is the sign of one of them turned round?"
        elif len(fits) == 1:
            hint = f"it is that of {recording.column('q', fits[0])}; are columns exchanged?"
        else:
            hint = "are both in SI units and of this joint, or does q wrap around?"
        yield (
            f"{recording.name}, column {said}: the v of {joint!r} is {ratio:.3g} times the rate at "
            f"which its q changes; {hint}"
        )


def _stops(system: System, recording: Recording, q: NDArray) -> Iterator[str]:
    """Of joints that are stopped near a limit, harder than they ever speed up or slow down."""
    t = recording.t
    rows = max(1, round(_STOP_TIME / float(np.median(np.diff(t)))))
    if len(t) < 6 * rows:
        return
    v = (q[rows:] - q[:-rows]) / (t[rows:] - t[:-rows])[:, None]
    for joint, k, lower, upper, _ in _coordinates(system):
        if not np.isfinite((lower, upper)).any() or np.isnan(q[:, k]).any():
            continue
        before, after = v[: -2 * rows, k], v[2 * rows :, k]
        at = q[2 * rows : 2 * rows + len(before), k]
        room = _STOP_NEAR * (upper - lower if np.isfinite(upper - lower) else 1)
        near = np.where(before > 0, upper - at < room, at - lower < room)
        lost = np.abs(before - after)
        ends = near & (before * after <= 0.1 * before**2) & (lost > 0)
        elsewhere = np.quantile(lost[~near], 0.999) if (~near).any() else np.inf
        struck = np.flatnonzero(ends & (lost > _STOP_HARDER * elsewhere))
        if len(struck):
            first = t[2 * rows + struck[0]]
            yield (
                f"{recording.name}, column {recording.column('q', k)}: {joint!r} runs into a stop "
                f"near its limit at {first:.4g} s, where torques are not those of the motion; cut "
                "the run there (to, or from)"
            )


def _coordinates(system: System) -> Iterator[tuple[str, int, float, float, bool]]:
    """Joint, place in v, lower and upper limit of each coordinate, and whether it is an angle."""
    t = system.topology
    lower, upper = np.asarray(system.joints.lower), np.asarray(system.joints.upper)
    for dof, b in enumerate(t.dof_body):
        if dof not in t.mimic_dofs:
            angle = UNITS[t.kinds[b][dof - int(t.dof_start[b])]] == "rad"
            # Files write limits of 0 and 0, or none, for joints that turn on and on.
            ends = (lower[dof], upper[dof]) if lower[dof] < upper[dof] else (-np.inf, np.inf)
            yield t.joints[b], int(t.dof_velocity[dof]), float(ends[0]), float(ends[1]), angle


def _ratio(t: NDArray, q: NDArray, v: NDArray) -> float:
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
