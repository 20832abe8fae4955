"""Columns of a wrong sign or in a wrong order, found by the torques that the motion needs.

Each possible fault (a sign of q or tau turned round, two columns exchanged) is undone, and the
torques are compared with those of the machine as it is before the fit:

    tau = c0 + c1 (M(q) a + bias(q, v)) + c2 v + c3 sign(v),    c1, c2, c3 >= 0

joint by joint, by non-negative least squares (Lawson and Hanson 1974). Masses may be far off, but
no mass and no friction is negative, so that a fault leaves a joint unexplained.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..dynamics.rnea import rnea
from ..system.kinematic_tree import Tree
from ..system.system import System
from .recordings import Recording
from .sensors import meant
from .smoothing import savitzky_golay

# Rows that are compared, and the time (s) over which positions are smoothed for it.
_ROWS = 256
_SPAN = 0.03
# How much more of the variances of all torques a fault must explain, and what is as good.
_BETTER = 0.4
_ALIKE = 0.1
# The share of the largest speed below which friction grows with the speed.
_SLOW = 0.05


@dataclasses.dataclass(frozen=True)
class _Change:
    """What undoes a fault: columns of q and tau in another order (nv,), times signs (nv,)."""

    said: str
    q: NDArray
    tau: NDArray
    q_signs: NDArray
    tau_signs: NDArray


def mixed_columns(system: System, recording: Recording) -> list[str]:
    """A sentence on the sign or the order of columns that the torques contradict, if there is one.

    Needs q (n, nv) and tau (n, nv) of a machine without actuators and constraints, whose joints
    have one coordinate for each velocity; nothing is said of others.
    """
    motion = _motion(system, recording)
    if motion is None:
        return []
    q, v, a, tau = motion

    def explained(change: _Change) -> NDArray:
        order, signs = change.q, change.q_signs
        turned, rate, second = (signs * x[:, order] for x in (q, v, a))
        return _explained(system, turned, rate, second, change.tau_signs * tau[:, change.tau])

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
    same, signs = np.arange(nv), np.ones(nv)
    yield _Change("", same, same, signs, signs)
    for j in moving:
        turned = np.where(same == j, -1.0, 1.0)
        name = f"the sign of {recording.column('tau', j)} turned round"
        yield _Change(name, same, same, signs, turned)
        name = f"the sign of {recording.column('q', j)} turned round"
        yield _Change(name, same, same, turned, signs)
    for i, j in itertools.combinations(moving, 2):
        swapped = same.copy()
        swapped[[i, j]] = j, i
        name = f"{recording.column('tau', i)} and {recording.column('tau', j)} exchanged"
        yield _Change(name, same, swapped, signs, signs)
        name = f"{recording.column('q', i)} and {recording.column('q', j)} exchanged"
        yield _Change(name, swapped, same, signs, signs)


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
        by = savitzky_golay(window, 3, step)
        q, v, a = by.value(q), by.rate(q), by.acceleration(q)
    there = np.flatnonzero(~np.isnan(np.column_stack((q, v, a, tau))).any(axis=1))
    if len(there) < 10 * system.nv:
        return None
    rows = there[np.linspace(0, len(there) - 1, _ROWS).astype(int)]
    read = meant(system, *(jnp.asarray(x[rows], system.dtype) for x in (q, v, a)))
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
