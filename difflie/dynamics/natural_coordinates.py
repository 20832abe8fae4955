"""A system in natural coordinates: the origin and the three directors of every moving body.

A body is an array (4, 3) with the rows (r, d1, d2, d3), its frame's origin and axes in the world.
In these coordinates the mass matrix is constant, a point or direction fixed in a body is a fixed
combination of the rows, and joints are equations between scalar products of such vectors, at most
quadratic (Garcia de Jalon and Bayo 1994, chapter 4; Betsch and Steinmann 2001). The world is one
more body that does not move, (0, e1, e2, e3).

Every joint with a degree of freedom carries one body, in the order of the bodies; bodies on fixed
joints are lumped into their carrier. A body's frame is that of the last row of its joint: its third
director is the axis of the joint's last turn.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..groups import directors, quaternion
from ..groups.components import Matrix, Vector
from ..spatial import Force
from ..system.linkage import Linkage, carriers
from ..system.topology import Topology
from .kinematics import row_twists, row_world_poses


class Products(eqx.Module):
    """Scalar products of vectors that are fixed in bodies: (first Q) . (second Q) - constant.

    first, second (m, nb + 1, 4): combinations of the rows of all bodies, the world's last;
    constant (m,).
    """

    first: jax.Array
    second: jax.Array
    constant: jax.Array

    def __call__(self, bodies: jax.Array) -> jax.Array:
        """The values (m,) at the coordinates (nb, 4, 3)."""
        a, b = combined(self.first, bodies), combined(self.second, bodies)
        return jnp.sum(a * b, axis=1) - self.constant

    def rates(self, bodies: jax.Array, velocities: jax.Array) -> jax.Array:
        """The rates (m,) of the values when the coordinates change at the rates (nb, 4, 3)."""
        a, b = combined(self.first, bodies), combined(self.second, bodies)
        da, db = changed(self.first, velocities), changed(self.second, velocities)
        return jnp.sum(da * b + a * db, axis=1)

    def force(self, bodies: jax.Array, f: jax.Array) -> jax.Array:
        """sum f_i grad value_i (nb, 4, 3), for f (m,)."""
        a, b = combined(self.first, bodies), combined(self.second, bodies)
        return spread(self.first, f[:, None] * b) + spread(self.second, f[:, None] * a)


def combined(rows: jax.Array, bodies: jax.Array) -> jax.Array:
    """The vectors (m, 3) that the combinations (m, nb + 1, 4) are at the coordinates (nb, 4, 3)."""
    return changed(rows, bodies) + rows[:, -1, 1:]


def changed(rows: jax.Array, velocities: jax.Array) -> jax.Array:
    """The rates (m, 3) of these vectors."""
    return _einsum("mbk,bkx->mx", rows[:, :-1], velocities)


def spread(rows: jax.Array, forces: jax.Array) -> jax.Array:
    """The forces (nb, 4, 3) on the coordinates that forces (m, 3) on these vectors are."""
    return _einsum("mbk,mx->bkx", rows[:, :-1], forces)


class Arms(NamedTuple):
    """How the joints move during one step.

    turns (n, 3): for each turning row the vector whose scalar product with the difference of the
    two bodies' spins is the row's rate. middle (nb, 4, 3): the mean coordinates of the step.
    """

    turns: jax.Array
    middle: jax.Array


class NaturalCoordinates(eqx.Module):
    """What the equations of motion of a system need in natural coordinates.

    mass (nb, 4, 4): the pseudo-inertias [[m, m c], [m c, E]], E the second moment of the mass about
    the origin, so that kinetic energy is sum P_kl Q'_k . Q'_l / 2 over all bodies.
    constraints: the equations of the joints; that the directors are orthonormal is not among them.
    slides: the coordinates of the prismatic rows.
    anchor (nb, 3), frame (nb, 3, 3): where each joint sits in its parent, and the axes there from
    which its turns are counted. second (nb, 3, 3): the axes of a universal joint's second turn in
    those of its first; the identity for other joints.
    """

    mass: jax.Array
    constraints: Products
    slides: Products
    anchor: jax.Array
    frame: jax.Array
    second: jax.Array
    linkage: Linkage

    @property
    def layout(self) -> Layout:
        return layout(self.linkage.topology)

    def bodies(self, q: jax.Array) -> jax.Array:
        """The coordinates (nb, 4, 3) at the configuration q (nq,)."""
        poses = _at(row_world_poses(self.linkage, q), self.layout.last)
        axes = poses.rotation.transpose().to_array()
        return jnp.concatenate((poses.translation.to_array()[:, None], axes), axis=1)

    def velocities(self, bodies: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        """The rates (nb, 4, 3) of the coordinates at q (nq,), v (nv,)."""
        twists = _at(row_twists(self.linkage, q, v), self.layout.last)
        parts = twists.angular.to_array(), twists.linear.to_array()
        rates = [_apply(bodies[:, 1:], part) for part in parts]
        return directors.motion(bodies, jnp.concatenate(rates, axis=1))

    def coordinates(self, bodies: jax.Array, before: jax.Array) -> jax.Array:
        """The configuration q (nq,) at the coordinates (nb, 4, 3).

        before (nq,): a configuration near it. Angles are continued from it over full turns, within
        half a turn, and quaternions are on its side.
        """
        where = self.layout
        axes, parent = bodies[:, 1:], _with_world(bodies)[where.parent]
        base = _product(jnp.swapaxes(self.frame, 1, 2), parent[:, 1:])
        turn = _product(base, jnp.swapaxes(axes, 1, 2))

        one, two = turn[where.single], turn[where.double]
        seen, axis = two[:, :, 2], self.second[where.double][:, :, 2]
        back, other = two[:, 2, :], self.second[where.double][:, 2, :]
        cosines = (
            one[:, 0, 0] + one[:, 1, 1],
            axis[:, 0] * seen[:, 0] + axis[:, 1] * seen[:, 1],
            other[:, 0] * back[:, 0] + other[:, 1] * back[:, 1],
        )
        sines = (
            one[:, 1, 0] - one[:, 0, 1],
            axis[:, 0] * seen[:, 1] - axis[:, 1] * seen[:, 0],
            other[:, 1] * back[:, 0] - other[:, 0] * back[:, 1],
        )
        c, s = jnp.concatenate(cosines), jnp.concatenate(sines)
        old = before[where.angles]
        c0, s0 = jnp.cos(old), jnp.sin(old)
        angles = old + jnp.arctan2(s * c0 - c * s0, c * c0 + s * s0)

        p0, p = quaternion.from_matrix_components(Matrix.from_array(turn[where.grouped]))
        attitudes = jnp.concatenate((p0[:, None], p.to_array()), axis=1)
        old = before[where.attitudes]
        side = jnp.sum(attitudes * old, axis=1, keepdims=True)
        attitudes = attitudes * jnp.where(side < 0, -jnp.ones_like(side), jnp.ones_like(side))
        place = parent[where.free, 0] + _apply(parent[where.free, 1:], self.anchor[where.free])
        positions = _product(base[where.free], (bodies[where.free, 0] - place)[..., None])
        parts = angles, self.slides(bodies), attitudes.ravel(), positions.ravel()
        return jnp.concatenate(parts)[where.coordinate_order]

    def arms(self, middle: jax.Array, rates: jax.Array, h: jax.Array) -> Arms:
        """How the joints move during a step of length h with the rates (nb, 6).

        With g = h w / 2 the angle by which a joint turns about its mean axis a, of bodies with the
        Cayley rates g_A and g_B = g_A + s a, is 2 arctan(s / (1 + g_A . g_B)): the composition of
        rotations in Rodrigues' parameters. The arm makes this angle over h the rate of the row,
        exactly, and so the work of a torque the torque times the angle. A universal joint turns
        about the one axis between its parent and its cross, and about the other between the cross
        and its body.
        """
        where = self.layout
        g = (h / 2) * rates[:, :3]
        parent = jnp.concatenate((g, jnp.zeros_like(g[:1])))[where.parent]
        axes = middle[:, 1:]

        def arm(dual: jax.Array, start: jax.Array, end: jax.Array) -> jax.Array:
            s = jnp.sum(dual * (end - start), axis=1)
            p0 = 1 + jnp.sum(start * end, axis=1)
            return dual * (quaternion.vector_ratio_components(p0, s * s) / 2)[:, None]

        j = where.single
        axis = axes[j, 2]
        single = arm(axis / jnp.sum(axis * axis, axis=1, keepdims=True), parent[j], g[j])

        j = where.double
        first = _apply(_with_world(middle)[where.parent[j], 1:], self.frame[j][:, :, 2])
        last = axes[j, 2]
        dual, other = _dual(first, last)
        cross = parent[j] + jnp.sum(dual * (g[j] - parent[j]), axis=1, keepdims=True) * first
        double = arm(dual, parent[j], cross), arm(other, cross, g[j])
        turns = (single, *double, axes[where.grouped].reshape(-1, 3))
        return Arms(jnp.concatenate(turns), middle)

    def joint_rates(self, arms: Arms, rates: jax.Array) -> jax.Array:
        """The mean velocity v (nv,) of a step with the rates (nb, 6).

        For all joints but spherical and free ones, h v is the difference of the coordinates; for
        these it is the mean body-fixed velocity up to O(h^2).
        """
        where = self.layout
        parent = jnp.concatenate((rates, jnp.zeros_like(rates[:1])))[where.parent]
        relative = rates[:, :3] - parent[:, :3]
        turning = jnp.sum(arms.turns * relative[where.turning], axis=1)
        j = where.free
        lever = self._lever(arms.middle)
        drift = rates[j, 3:] - parent[j, 3:] - jnp.cross(parent[j, :3], lever)
        moving = jnp.sum(arms.middle[j, 1:] * drift[:, None], axis=2).ravel()
        sliding = self.slides.rates(arms.middle, directors.motion(arms.middle, rates))
        return jnp.concatenate((turning, moving, sliding))[where.velocity_order]

    def joint_load(self, arms: Arms, tau: jax.Array) -> jax.Array:
        """The loads (nb, 6), as in `directors.load`, of the generalised force tau (nv,).

        The transpose of `joint_rates`. A joint acts on its two bodies with opposite forces in one
        line, so that the loads together have neither force nor moment.
        """
        where = self.layout
        n, k = len(where.turning), 3 * len(where.free)
        tau = tau[where.velocities]
        moment = _sum_at(where.turning, tau[:n, None] * arms.turns, len(where.parent))
        axes = arms.middle[where.free, 1:]
        pull = jnp.sum(axes * tau[n : n + k].reshape(-1, 3, 1), axis=1)
        force = _sum_at(where.free, pull, len(where.parent))
        lever = _sum_at(where.free, jnp.cross(self._lever(arms.middle), pull), len(where.parent))
        own = jnp.concatenate((moment, force), axis=1)
        back = jnp.concatenate((moment + lever, force), axis=1)
        sliding = directors.load(arms.middle, self.slides.force(arms.middle, tau[n + k :]))
        return own - _sum_at(where.parent, back, len(where.parent)) + sliding

    def _lever(self, bodies: jax.Array) -> jax.Array:
        """(n, 3) from the origin of their parents to that of the bodies on free joints."""
        j = self.layout.free
        return bodies[j, 0] - _with_world(bodies)[self.layout.parent[j], 0]

    def weight(self, middle: jax.Array) -> jax.Array:
        """The loads (nb, 6) of gravity."""
        g = self.linkage.gravity.to_array()
        return directors.load(middle, self.mass[:, 0, :, None] * g)

    def body_load(self, middle: jax.Array, wrench: jax.Array) -> jax.Array:
        """The loads (nb, 6) of wrenches (nb of the system, 6) on the bodies, in body frames."""
        rows = _at(self.linkage.row_forces(wrench), self.layout.last)
        parts = rows.moment.to_array(), rows.force.to_array()
        return jnp.concatenate([_apply(middle[:, 1:], part) for part in parts], axis=1)

    def body_momentum(self, bodies: jax.Array, velocities: jax.Array) -> jax.Array:
        """The momenta (nb of the system, 6) of the bodies, as wrenches in body frames.

        The lumped bodies' are with their carriers, and zero for themselves.
        """
        where = self.layout
        load = directors.load(bodies, _product(self.mass, velocities))
        parts = [_product(bodies[:, 1:], load[:, i : i + 3, None])[..., 0] for i in (0, 3)]
        frames = _at(self.linkage.offset, where.moving)
        wrench = frames.inverse_force(Force.from_array(jnp.concatenate(parts, axis=1)))
        return _sum_at(where.moving, wrench.to_array(), len(self.linkage.topology.bodies))

    def attached(self, body: np.ndarray, points: jax.Array) -> jax.Array:
        """The combinations (n, nb + 1, 4) that are points (n, 3) of bodies, in their frames.

        body (n,): their indices in `body_names`, the number of these for the world.
        """
        place = _at(self.linkage.offset, body)
        inner = place.rotation @ Vector.from_array(points) + place.translation
        return _fixed(self.layout.carrier[body], inner.to_array(), len(self.layout.parent), 1)

    def attitudes(self, bodies: jax.Array, body: np.ndarray) -> Matrix:
        """The attitudes (n,) of bodies of the system, as above, with their directors as columns."""
        axes = _with_world(bodies)[self.layout.carrier[body], 1:]
        return Matrix.from_array(axes).transpose() @ _at(self.linkage.offset, body).rotation

    def kinetic_energy(self, velocities: jax.Array) -> jax.Array:
        """sum P_kl Q'_k . Q'_l / 2 (), in J, at the rates (nb, 4, 3) of the coordinates."""
        return jnp.sum(velocities * _product(self.mass, velocities)) / 2

    def momentum(self, bodies: jax.Array, velocities: jax.Array) -> jax.Array:
        """sum P_kl Q_k x Q'_l, angular about the world origin in N m s, and linear in N s, (6,)."""
        p = _product(self.mass, velocities)
        return jnp.concatenate((jnp.sum(jnp.cross(bodies, p), (0, 1)), jnp.sum(p[:, 0], 0)))


class Layout(NamedTuple):
    """Where everything is: indices, fixed by the topology.

    By body with a joint of its own, in their order ("number" below), nb for the world: moving, the
    index in the system; last, the place of its last row in the order of visits; parent, the number
    of the body it hangs on. carrier: the number of the body that carries each body of the system,
    the world's last. single, double: the numbers of joints with one and with two turns;
    grouped, free: of those that are spherical or free, and free.
    turning: the number of each turning row, in the order single, first of double, second of double,
    grouped. velocities: the entry in v of these, of the translations of the free joints and of the
    slides. angles, attitudes (n, 4): entries in q. The orders put what is computed in this order
    into v and q.
    """

    moving: np.ndarray
    last: np.ndarray
    parent: np.ndarray
    carrier: np.ndarray
    single: np.ndarray
    double: np.ndarray
    grouped: np.ndarray
    free: np.ndarray
    turning: np.ndarray
    velocities: np.ndarray
    velocity_order: np.ndarray
    angles: np.ndarray
    attitudes: np.ndarray
    coordinate_order: np.ndarray


_BALL = ("revolute",) * 3
_FREE = _BALL + ("prismatic",) * 3
_SERIES = {
    ("revolute",),
    ("prismatic",),
    ("revolute", "revolute"),
    ("prismatic", "revolute"),
    ("prismatic", "prismatic"),
    ("prismatic", "prismatic", "revolute"),
}


def check(t: Topology) -> None:
    """Raises ValueError for a joint that natural coordinates do not describe, with a mend."""
    for joint, kinds, mimic, group in zip(t.joints, t.kinds, t.mimics, t.group, strict=True):
        mend = None
        if mimic is not None:
            mend = "it mimics another joint, which is no equation between scalar products"
        elif "helical" in kinds:
            mend = "the angle of a helical joint is no polynomial of the directors"
        elif kinds and group is None and kinds not in _SERIES:
            mend = f"its degrees of freedom are {', '.join(kinds)}, for which there is no equation"
        if mend is not None:
            raise ValueError(
                f"{t.name}: natural coordinates do not describe the joint {joint!r}: {mend}; use "
                "another method, or another joint"
            )
    if not t.n_rows:
        raise ValueError(f"{t.name}: natural coordinates need a body that moves")


@functools.cache
def layout(t: Topology) -> Layout:
    """The indices of a topology."""
    moving = np.array([b for b, kinds in enumerate(t.kinds) if kinds])
    last = t.place[t.row_start[moving + 1] - 1]
    number = np.full(t.n_rows + 1, len(moving))
    number[last] = np.arange(len(moving))
    carrier = np.append(number[carriers(t)], len(moving))
    kinds = [t.kinds[b] if t.group[b] is None else () for b in moving]
    sizes = [0 if t.group[b] is None else t.group[b].tangent_size for b in moving]
    turns = np.array([k.count("revolute") for k in kinds])
    single, double = np.flatnonzero(turns == 1), np.flatnonzero(turns == 2)
    grouped, free = np.flatnonzero(sizes), np.flatnonzero(np.array(sizes) == 6)
    v_start, q_start = t.velocity_start[moving], t.coordinate_start[moving]
    slides = np.array([len(k) for k in kinds]) - turns

    def entries(start: np.ndarray, skip: int, size: int) -> np.ndarray:
        return (start[:, None] + skip + np.arange(size)).ravel()

    def of_rows(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of turning and of sliding rows that are no group's."""
        turning = (start[single] + slides[single], start[double], start[double] + 1)
        sliding = [start[j] + np.arange(slides[j]) for j in range(len(moving))]
        return np.concatenate(turning), np.concatenate(sliding).astype(int)

    angles, sliding = of_rows(v_start)
    velocities = np.concatenate(
        (angles, entries(v_start[grouped], 0, 3), entries(v_start[free], 3, 3), sliding)
    )
    angles, sliding = of_rows(q_start)
    attitudes = entries(q_start[grouped], 0, 4)
    coordinates = (angles, sliding, attitudes, entries(q_start[free], 4, 3))
    return Layout(
        moving=moving,
        last=last,
        parent=carrier[np.array(t.parents)[moving]],
        carrier=carrier,
        single=single,
        double=double,
        grouped=grouped,
        free=free,
        turning=np.concatenate((single, double, double, np.repeat(grouped, 3))),
        velocities=velocities,
        velocity_order=np.argsort(velocities),
        angles=angles,
        attitudes=attitudes.reshape(-1, 4),
        coordinate_order=np.argsort(np.concatenate(coordinates)),
    )


def natural_coordinates(linkage: Linkage) -> NaturalCoordinates:
    """A system in natural coordinates.

    Differentiable with respect to every number of the system. Raises ValueError as `check` does.
    """
    t = linkage.topology
    check(t)
    where = layout(t)
    rotation = linkage.placement.rotation.to_array()
    first = t.row_start[where.moving]
    frame = rotation[t.place[first]]
    anchor = linkage.placement.translation.to_array()[t.place[first]]
    second = jnp.broadcast_to(jnp.eye(3, dtype=frame.dtype), frame.shape)
    constraints, slides = _Equations(), _Equations()
    for kinds in sorted({t.kinds[b] for b in where.moving}):
        j = np.array([i for i, b in enumerate(where.moving) if t.kinds[b] == kinds])
        if kinds == _FREE:
            continue
        # The frames of the joint's rows in its parent while its coordinates are zero.
        steps = [rotation[t.place[first[j] + i]] for i in range(len(kinds))]
        frames = list(itertools.accumulate(steps, _product))
        along = [f[:, :, 2] for f in frames[: kinds.count("prismatic")]]
        turns = kinds.count("revolute")
        if kinds != _BALL:
            frame = frame.at[j].set(frames[min(len(along), len(kinds) - 1)])
        if turns == 2:
            second = second.at[j].set(steps[1])
        joint = _Joint(j, where.parent[j], len(where.parent), anchor[j])
        _position(constraints, slides, joint, along, frames[0])
        _orientation(constraints, joint, turns, frame[j], second[j])

    inertia = _at(linkage.inertia, where.last)
    origin = inertia.second.matrix().to_array()
    trace = jnp.trace(origin, axis1=1, axis2=2)[:, None, None]
    moment = trace / 2 * jnp.eye(3, dtype=origin.dtype) - origin
    upper = jnp.concatenate((inertia.mass[:, None], inertia.first.to_array()), axis=1)
    lower = jnp.concatenate((inertia.first.to_array()[:, :, None], moment), axis=2)
    empty = jnp.zeros((0, len(first) + 1, 4), frame.dtype)
    return NaturalCoordinates(
        mass=jnp.concatenate((upper[:, None], lower), axis=1),
        constraints=constraints.products(empty),
        slides=slides.products(empty),
        anchor=anchor,
        frame=frame,
        second=second,
        linkage=linkage,
    )


class _Joint(NamedTuple):
    """Joints of one kind: the numbers of their bodies and parents (n,), of all bodies, and where
    they sit in their parents (n, 3)."""

    body: np.ndarray
    parent: np.ndarray
    count: int
    anchor: jax.Array

    def gap(self) -> jax.Array:
        """From the joint in the parent to the origin of the body."""
        origin = _fixed(self.body, jnp.zeros_like(self.anchor), self.count, 1)
        return origin - _fixed(self.parent, self.anchor, self.count, 1)

    def in_parent(self, direction: jax.Array) -> jax.Array:
        return _fixed(self.parent, direction, self.count, 0)

    def in_body(self, axis: int) -> jax.Array:
        return _fixed(self.body, self._unit(axis), self.count, 0)

    def in_world(self, axis: int) -> jax.Array:
        return _fixed(np.full(len(self.body), self.count), self._unit(axis), self.count, 0)

    def _unit(self, axis: int) -> jax.Array:
        unit = jnp.eye(3, dtype=self.anchor.dtype)[axis]
        return jnp.broadcast_to(unit, self.anchor.shape)


class _Equations:
    """Scalar products, kind of joint after kind of joint."""

    def __init__(self):
        self.parts, self.order = [], []

    def add(self, first: jax.Array, second: jax.Array, constant=None, order=None) -> None:
        zero = jnp.zeros(first.shape[0], first.dtype)
        self.parts.append((first, second, zero if constant is None else constant))
        self.order.append(np.zeros(first.shape[0], int) if order is None else order)

    def products(self, empty: jax.Array) -> Products:
        parts = [(empty, empty, empty[:, 0, 0]), *self.parts]
        order = np.argsort(np.concatenate([np.zeros(0, int), *self.order]), kind="stable")
        return Products(*(jnp.concatenate(p)[order] for p in zip(*parts, strict=True)))


def _position(
    constraints: _Equations, slides: _Equations, joint: _Joint, along: list, axes: jax.Array
) -> None:
    """The gap of a joint is spanned by the directions `along`, and its parts are the slides.

    axes (n, 3, 3): the joint's frame; its third axis is the first of the directions.
    """
    gap = joint.gap()
    if not along:
        for i in range(3):
            constraints.add(gap, joint.in_world(i))
    elif len(along) == 1:
        for i in range(2):
            constraints.add(gap, joint.in_parent(axes[:, :, i]))
    else:
        constraints.add(gap, joint.in_parent(jnp.cross(*along)))
    for i, direction in enumerate(along if len(along) < 2 else _dual(*along)):
        slides.add(gap, joint.in_parent(direction), order=2 * joint.body + i)


def _orientation(
    constraints: _Equations, joint: _Joint, turns: int, frame: jax.Array, second: jax.Array
) -> None:
    """What a joint with so many turns, from `frame` on, fixes of the relative attitude."""
    if turns == 0:
        for i in range(3):
            constraints.add(joint.in_parent(frame[:, :, i]), joint.in_body((i + 1) % 3))
    elif turns == 1:
        for i in range(2):
            constraints.add(joint.in_parent(frame[:, :, 2]), joint.in_body(i))
    elif turns == 2:
        constraints.add(joint.in_parent(frame[:, :, 2]), joint.in_body(2), second[:, 2, 2])


def _fixed(body: np.ndarray, x: jax.Array, count: int, weight: float) -> jax.Array:
    """The combinations (n, count + 1, 4) that are points (weight 1) or directions (0) x (n, 3)."""
    here = (body[:, None] == np.arange(count + 1))[..., None]
    rows = jnp.concatenate((jnp.full_like(x[:, :1], weight), x), axis=1)
    return jnp.where(here, rows[:, None], jnp.zeros_like(rows[:, None]))


def _dual(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The vectors (n, 3) in the plane of a and b with a'.a = b'.b = 1 and a'.b = b'.a = 0."""
    normal = jnp.cross(a, b)
    normal = normal / jnp.sum(normal * normal, axis=1, keepdims=True)
    return jnp.cross(b, normal), jnp.cross(normal, a)


def _with_world(bodies: jax.Array) -> jax.Array:
    world = jnp.eye(4, dtype=bodies.dtype)[:, 1:]
    return jnp.concatenate((bodies, world[None]))


def _sum_at(index: np.ndarray, values: jax.Array, count: int) -> jax.Array:
    """(count, ...) the sums of the values (n, ...) by index; those beyond are left out."""
    return jnp.tensordot(
        jnp.asarray(np.arange(count)[:, None] == index, values.dtype),
        values,
        axes=1,
        precision=jax.lax.Precision.HIGHEST,
    )


def _apply(axes: jax.Array, x: jax.Array) -> jax.Array:
    """sum_k x_k axes_k (..., 3), for axes (..., 3, 3) with the directors as rows."""
    return jnp.sum(axes * x[..., None], axis=-2)


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


_einsum = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)


def _at(values, index: np.ndarray):
    return jax.tree.map(lambda a: a[index], values)
