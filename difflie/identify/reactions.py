"""Closed contacts of a log, and the motions that they leave, along which reactions do no work.

A robot that stands on the ground is carried by forces f that nobody measures,

    M(q) a + bias(q, v) - passive(q, v) = effort + J^T f

where J v are the velocities of its closed contact points. Whatever f is, it has no part along the
motions u that leave these points where they are: J u = 0, so u . J^T f = 0. So the error of torque
is projected on these motions. Forces of closed contacts are arbitrary here: with friction or
without, from soft ground or hard; open contacts have none. In standard deviations D of the torques,
the rows of `left` are V = U^T D^-1, with the columns of U orthonormal and J D^-1 U = 0: of white
noise they have the variance 1. Mistry, Buchli and Schaal 2010.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from ..collision.pairs import Pair
from ..forces.contact_report import contact_of
from ..forces.points import point_motions
from ..forces.shape_contact import OF_PAIRS, ShapeContact
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .recordings import DataError, Recording


def with_closed_contacts(system: System, recording: Recording, gap: float = 2e-3) -> Recording:
    """The recording with `Recording.closed`, from the gaps of the shapes that touch, in m.

    A pair of shapes in contact (`difflie.touching`) is closed in the rows in which the measured
    configuration has it less than `gap` apart. Take about the accuracy of the kinematics: a foot
    that is taken as closed costs information, and one that is taken as open has no force. Rows
    without q have none. Raises DataError where nothing touches, q is missing, or no pair is ever
    closed.
    """
    contact = _contact(system)
    if recording.q is None:
        raise DataError(f"{recording.name}: q is not measured; name its columns")
    q = np.where(np.isnan(recording.q), np.asarray(system.neutral()), recording.q)
    apart = np.asarray(_points(system, contact.pairs, jnp.asarray(q, system.dtype))[0])
    near = (apart < gap) & ~np.isnan(recording.q).any(axis=1, keepdims=True)
    closed = {pair: near[:, k] for k, pair in enumerate(contact.pairs) if near[:, k].any()}
    if not closed:
        least = float(np.min(apart))
        raise DataError(
            f"{recording.name}: no contact is ever closed; the least gap is {least:.4g} m, give a "
            f"gap above it"
        )
    return dataclasses.replace(recording, closed=closed)


def closed_pairs(
    system: System, recordings: Sequence[Recording], q: Float[Array, "n nq"]
) -> tuple[list[Pair], NDArray]:
    """The pairs (m,) of shapes that are ever closed, and in which rows (n, m) they are.

    A name alone is that of a shape, and closes the nearest of its contacts. Raises DataError for
    names and pairs that do not touch.
    """
    contact = _contact(system)
    known = {frozenset(pair): pair for pair in contact.pairs}
    of: dict[str, list[Pair]] = {}
    for pair in contact.pairs:
        for name in pair:
            of.setdefault(name, []).append(pair)
    pairs: dict[Pair, int] = {}
    for recording in recordings:
        for key in recording.closed:
            there = _named(key, of, known)
            if not there:
                near = nearest(key, of) if isinstance(key, str) else ""
                raise DataError(
                    f"{recording.name}: {format_value(key)} is closed, and touches nothing{near}; "
                    "let it by dl.touching"
                )
            pairs.update((pair, len(pairs)) for pair in there if pair not in pairs)
    apart = np.asarray(_points(system, tuple(pairs), q)[0])
    rows = np.cumsum([0, *(len(r.t) for r in recordings)])
    found = np.zeros((len(q), len(pairs)), bool)
    for recording, first, last in zip(recordings, rows[:-1], rows[1:], strict=True):
        for key, mask in recording.closed.items():
            at = np.array([pairs[pair] for pair in _named(key, of, known)])
            nearest_one = at[np.argmin(apart[first:last][:, at], axis=1)]
            found[first:last] |= mask[:, None] & (nearest_one[:, None] == np.arange(len(pairs)))
    return list(pairs), found


def _named(
    key: str | Pair, of: Mapping[str, list[Pair]], known: Mapping[frozenset[str], Pair]
) -> list[Pair]:
    """The pairs that a name or a pair of names means, none if it is not known."""
    if isinstance(key, str):
        return of.get(key, [])
    return [known[frozenset(key)]] if frozenset(key) in known else []


def motions_left(
    system: System,
    pairs: Sequence[Pair],
    closed: NDArray,
    q: Float[Array, "n nq"],
    there: NDArray,
    deviation: NDArray,
) -> NDArray:
    """V (n, nv, nv): in each row the motions that closed contacts leave, and then zeros.

    closed (n, m): which of the pairs are; there (n, nv): which torques are known, in these standard
    deviations (n, nv). Neighbouring rows are as alike as they can be.
    """
    _, numbers, valid, jacobian = (np.asarray(x) for x in _points(system, tuple(pairs), q))
    acts = closed[:, numbers] & valid
    n, _, nv = there.shape[0], numbers.size, there.shape[1]
    rows = np.where(acts[:, :, None, None], jacobian, 0).reshape(n, -1, nv) / deviation[:, None]
    unknown = np.where(there, 0.0, 1.0)[:, :, None] * np.eye(nv)
    sizes = np.abs(rows).max(axis=(1, 2), initial=0)[:, None, None]
    rows = np.concatenate((rows / np.where(sizes > 0, sizes, 1), unknown), axis=1)
    _, s, across = np.linalg.svd(rows)
    rank = (s > np.sqrt(np.finfo(jacobian.dtype).eps) * s.max(axis=1, keepdims=True)).sum(axis=1)
    left = np.zeros((n, nv, nv))
    before = np.zeros((0, nv))
    for k in range(n):
        basis = across[k, rank[k] :]
        if len(basis) == len(before):
            turn, _, back = np.linalg.svd(before @ basis.T)
            basis = turn @ back @ basis
        left[k, : len(basis)] = before = basis
    return left / deviation[:, None]


def without_contacts(system: System) -> System:
    """The system without the forces of shapes that touch."""
    others = tuple(c for c in system.couplings if not isinstance(c, ShapeContact))
    return dataclasses.replace(system, couplings=others)


def _contact(system: System) -> ShapeContact:
    try:
        return contact_of(system)
    except ModelError as error:
        raise DataError(str(error)) from None


@eqx.filter_jit
def _points(
    system: System, pairs: tuple[Pair, ...], q: Float[Array, "n nq"]
) -> tuple[jax.Array, ...]:
    """The gaps (n, m) in m of pairs, and of their contact points (r,) the numbers of their pairs.

    With these whether each is one (n, r), and the velocity of the second shape against the first
    there by those of the joints (n, r, 3, nv).
    """
    tree, whole = Tree.of(system), contact_of(system)
    at = np.array([whole.pairs.index(pair) for pair in pairs])
    own = {name: getattr(whole, name)[at] for name in OF_PAIRS}
    contact = dataclasses.replace(whole, pairs=pairs, **own)

    def velocities(v: jax.Array, q: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        ((frames, twists),) = point_motions(tree, [contact.path], q, v)
        found, gaps, valid, numbers = [], [], [], []
        for meeting in contact.meetings(frames):
            points = meeting.points
            place = points.middle
            sides = []
            for who in (meeting.first, meeting.second):
                ends = frames.translation, twists
                origin, twist = jax.tree.map(lambda a, who=who: a[who][:, None], ends)
                sides.append(twist.linear + twist.angular.cross(place - origin))
            found.append((sides[1] - sides[0]).to_array().reshape(-1, 3))
            gaps.append(jnp.min(points.gap, axis=1) - contact.margin[meeting.index])
            valid.append(points.valid.ravel())
            numbers.append(np.repeat(meeting.index, points.gap.shape[1]))
        order = np.argsort(np.concatenate([m.index for m in contact.meetings(frames)]))
        each = jnp.concatenate(gaps)[order], jnp.concatenate(valid), np.concatenate(numbers)
        return jnp.concatenate(found), tuple(map(jnp.asarray, each))

    def row(q: jax.Array) -> tuple[jax.Array, ...]:
        zero = jnp.zeros(system.nv, q.dtype)
        jacobian, (gaps, valid, numbers) = jax.jacfwd(velocities, has_aux=True)(zero, q)
        return gaps, numbers, valid, jacobian

    return jax.vmap(row, out_axes=(0, None, 0, 0))(q)
