"""The `Linkage`: a system in the form the recursive algorithms run on.

Every degree of freedom gets a frame of its own whose z axis is the axis of the motion, so that the
pattern of its screw is structure while its direction is a number, hidden in the placement of the
frame. Bodies on fixed joints are lumped into the body that carries them. All this is done with
arrays over bodies and rows, once for each system, and differentiated through.
"""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import quaternion, so3
from ..groups.components import Matrix, Vector
from ..solvers.linear import product
from ..spatial import Force, Inertia, Motion, Screw, Symmetric, Transform
from .rows import take
from .system import Bodies, System
from .topology import Topology

_X, _Y, _Z = np.eye(3)
# The frames of a group joint's rows: its body frame with the axes exchanged in a circle.
_CIRCLE = {
    0: np.stack((_Y, _Z, _X), axis=1),
    1: np.stack((_Z, _X, _Y), axis=1),
    2: np.stack((_X, _Y, _Z), axis=1),
}


class Linkage(eqx.Module):
    """One frame for each row, in the order of visits; shapes are (n_rows,) unless said.

    placement: the frame of a row in that of the row before it (the parent's last, or the world)
    while its coordinate is zero. pitch: of the helical rows, None where there are none. inertia: of
    the bodies carried by a row, about its frame; zero within a joint of several rows. offset
    (nb + 1,): each body's frame in that of the row that carries it; the last entry is the world;
    None where no algorithm needs it. armature: inertia along the row.
    multiplier, shift: the laws of mimic joints, 1 and 0 elsewhere, None where there are none.
    """

    placement: Transform
    pitch: jax.Array | None
    inertia: Inertia
    offset: Transform | None
    armature: jax.Array
    multiplier: jax.Array | None
    shift: jax.Array | None
    gravity: Vector
    topology: Topology = eqx.field(static=True)

    @property
    def screw(self) -> Screw:
        """The axis of each row; what the joint types fix of it is known at trace time."""
        dtype = self.gravity.x.dtype
        angular, linear = (p.astype(dtype) for p in _patterns(self.topology))
        if self.pitch is None:
            return Screw(angular, linear)
        return Screw(angular, jnp.asarray(linear) + self.pitch)

    @property
    def rest(self) -> Motion:
        """The motion of the world at rest."""
        zero = jnp.zeros_like(self.gravity.x)
        return Motion(Vector(zero, zero, zero), Vector(zero, zero, zero))

    @property
    def free_fall(self) -> Motion:
        """The acceleration of the world that stands for gravity: -g."""
        return Motion(self.rest.angular, -self.gravity)

    def structured(self) -> Linkage:
        """The same numbers, those of them that the joint types fix known at trace time."""
        t = self.topology
        carrying = np.isin(np.arange(t.n_rows), carriers(t))
        k = (np.arange(t.n_rows) - t.row_start[t.row_body])[t.order]
        grouped = np.array([t.group[b] is not None for b in t.row_body], dtype=bool)[t.order]
        turn = np.array([_CIRCLE[(i - 1) % 3].T @ _CIRCLE[i % 3] for i in k]).reshape(-1, 3, 3)
        turn = [turn[:, i, j] for i in range(3) for j in range(3)]

        def fixed(a: jax.Array, where: np.ndarray, value: np.ndarray | float) -> jax.Array:
            return jnp.where(where, jnp.asarray(value, a.dtype), a)

        r = self.placement.rotation
        entries = (*(r.xx, r.xy, r.xz), *(r.yx, r.yy, r.yz), *(r.zx, r.zy, r.zz))
        rotation = [fixed(a, grouped & (k > 0), c) for a, c in zip(entries, turn, strict=True)]
        translation = jax.tree.map(lambda a: fixed(a, k > 0, 0.0), self.placement.translation)
        return replace(
            self,
            placement=Transform(Matrix(*rotation), translation),
            inertia=jax.tree.map(lambda a: fixed(a, ~carrying, 0.0), self.inertia),
        )

    def rows(self, v: Float[Array, " nv"]) -> Float[Array, " n_rows"]:
        """Velocities or accelerations (nv,) as rates of the rows (n_rows,)."""
        rates = take(v, self.topology.row_velocity[self.topology.order])
        return rates if self.multiplier is None else rates * self.multiplier

    def generalised(self, efforts: Float[Array, " n_rows"]) -> Float[Array, " nv"]:
        """Efforts of the rows (n_rows,) as a generalised force (nv,)."""
        t = self.topology
        if self.multiplier is None:
            return take(efforts, t.place)
        efforts = take(efforts * self.multiplier, t.place)
        return jax.ops.segment_sum(efforts, t.row_velocity, num_segments=t.nv)

    def poses(self, q: Float[Array, " nq"]) -> Transform:
        """The frame of each row in that of the row before it, at the configuration q (nq,)."""
        t = self.topology
        screw, entry = self.screw, t.row_coordinate[t.order]
        x = take(q, np.maximum(entry, 0))
        if self.multiplier is not None:
            x = x * self.multiplier + jnp.asarray(self.shift)
        x = jnp.where(entry >= 0, x, jnp.zeros_like(x)) if np.any(entry < 0) else x
        turning = screw.angular == 1
        cos, sin = jnp.cos(x), jnp.sin(x)
        if not turning.all():
            cos = jnp.where(turning, cos, jnp.ones_like(x))
            sin = jnp.where(turning, sin, jnp.zeros_like(x))
        r, p = self.placement.rotation, self.placement.translation
        rotation = Matrix(
            *(r.xx * cos + r.xy * sin, r.xy * cos - r.xx * sin, r.xz),
            *(r.yx * cos + r.yy * sin, r.yy * cos - r.yx * sin, r.yz),
            *(r.zx * cos + r.zy * sin, r.zy * cos - r.zx * sin, r.zz),
        )
        if self.pitch is None and not np.any(screw.linear):
            poses = Transform(rotation, p)
        else:
            d = x * jnp.asarray(screw.linear, x.dtype)
            poses = Transform(rotation, p + Vector(r.xz, r.yz, r.zz) * d)
        for b, group in enumerate(t.group):
            if group is not None:
                first = int(t.place[t.row_start[b]])
                start = int(t.coordinate_start[b])
                motion = _group_motion(q[start : start + group.point_size])
                turned = Transform(
                    _constant(_CIRCLE[0], q.dtype), Vector(*[jnp.zeros((), q.dtype)] * 3)
                )
                pose = jax.tree.map(lambda a, i=first: a[i], self.placement) @ motion @ turned
                poses = jax.tree.map(lambda a, new, i=first: _put(a, i, new), poses, pose)
        return poses

    def group_bracket(self, rates: Float[Array, " n_rows"]) -> Motion | None:
        """What ad(V) S v lacks when a group joint's rows are taken one by one (n_rows,).

        The velocity-product term of a joint is ad(V) V_J with the body's full velocity V; summing
        ad(V_k) S_k v_k over its rows leaves out the rows after k. Added at the joint's last row.
        """
        t = self.topology
        if not any(t.group):
            return None
        zero = jnp.zeros_like(rates)
        parts = [zero] * 6
        for b, group in enumerate(t.group):
            if group is None:
                continue
            rows = [int(i) for i in t.place[t.row_start[b] : t.row_start[b + 1]]]
            w = Vector(*(rates[i] for i in rows[:3]))
            lacking = [-w.y * w.z, w.z * w.x, -w.x * w.y]
            if group.tangent_size == 6:
                linear = Vector(*(rates[i] for i in rows[3:])).cross(w)
                lacking += [linear.x, linear.y, linear.z]
            for k, value in enumerate(lacking):
                parts[k] = _put(parts[k], rows[-1], value)
        return Motion(Vector(*parts[:3]), Vector(*parts[3:]))

    @property
    def completes(self) -> np.ndarray | None:
        """(n_rows,) 1 where a row completes the motion of its joint, 0 where others follow.

        The rows of joints in series move one after the other, and each completes its own motion.
        None where all rows do.
        """
        t = self.topology
        if not any(t.group):
            return None
        return (_joint_places(t) == np.arange(t.n_rows)).astype(self.gravity.x.dtype)

    @property
    def begins(self) -> np.ndarray | None:
        """(n_rows,) 1 where the motion of a joint begins, 0 at its other rows; None as above."""
        t = self.topology
        if not any(t.group):
            return None
        grouped = np.array([t.group[b] is not None for b in t.row_body], dtype=bool)
        begins = ~grouped | np.isin(np.arange(t.n_rows), t.row_start[:-1])
        return begins[t.order].astype(self.gravity.x.dtype)

    def along_joints(self, motions: Motion) -> Motion:
        """The motion (n_rows,) at the row that completes each joint, seen from each of its rows."""
        t = self.topology
        if not any(t.group):
            return motions
        whole = jax.tree.map(lambda a: take(a, _joint_places(t)), motions)
        k = (np.arange(t.n_rows) - t.row_start[t.row_body])[t.order] % 3
        grouped = np.array([t.group[b] is not None for b in t.row_body], dtype=bool)[t.order]
        first, second = grouped & (k == 0), grouped & (k == 1)

        def turned(v: Vector) -> Vector:
            def entry(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
                return jnp.where(first, y, jnp.where(second, z, x))

            return Vector(entry(v.x, v.y, v.z), entry(v.y, v.z, v.x), entry(v.z, v.x, v.y))

        return Motion(turned(whole.angular), turned(whole.linear))

    def row_forces(self, wrench: Float[Array, "nb 6"]) -> Force:
        """Wrenches on the bodies (nb, 6), in body frames, as wrenches on the rows (n_rows,)."""
        t = self.topology
        offset = jax.tree.map(lambda a: a[:-1], self.offset)
        return _lump(offset.force(Force.from_array(wrench)), t)

    def body_values(self, values: Transform | Motion, world: Transform | Motion):
        """The value of the row that carries each body (nb,), `world` for bodies fixed to it."""
        carrier = carriers(self.topology)
        return jax.tree.map(
            lambda a, w: jnp.concatenate((a, jnp.asarray(w, a.dtype)[None]))[carrier], values, world
        )


def _joint_places(t: Topology) -> np.ndarray:
    """(n_rows,) the place of the row that completes the motion of each row's joint."""
    grouped = np.array([t.group[b] is not None for b in t.row_body], dtype=bool)
    return t.place[np.where(grouped, t.row_start[t.row_body + 1] - 1, np.arange(t.n_rows))][t.order]


def carriers(t: Topology) -> np.ndarray:
    """(nb,) the place of the row that carries each body; n_rows for the world."""
    return np.array([t.n_rows if r < 0 else t.place[r] for r in t.last_row], dtype=int)


@jax.jit
def linkage(system: System) -> Linkage:
    """Brings a system into the form the recursive algorithms run on.

    Compiled by itself, and so only once for all of them.
    """
    t, bodies, joints = system.topology, system.bodies, system.joints
    dtype = joints.position.dtype
    moving = np.array([bool(kinds) for kinds in t.kinds])
    placement = so3.exp_components(Vector.from_array(joints.rotation)).to_array(), joints.position
    align = alignments(t, joints.axis).to_array()

    # Each body's frame in the frame of its carrier, one level of fixed joints after the other.
    n_bodies = len(t.bodies)
    last = np.maximum(t.row_start[1:] - 1, 0)
    identity = jnp.broadcast_to(jnp.eye(3, dtype=dtype), (n_bodies, 3, 3))
    turned = identity if not t.n_rows else jnp.swapaxes(align[last], -1, -2)
    turned = jnp.where(moving[:, None, None], turned, identity)
    offset = jnp.concatenate((turned, identity[:1])), jnp.zeros((n_bodies + 1, 3), dtype)
    parents = np.array(t.parents)
    for level in _fixed_levels(t):
        below = _compose((offset[0][parents], offset[1][parents]), placement)
        chosen = np.append(level, False)[:, None]
        offset = (
            jnp.where(chosen[..., None], jnp.concatenate((below[0], identity[:1])), offset[0]),
            jnp.where(chosen, jnp.concatenate((below[1], offset[1][:1])), offset[1]),
        )

    # Each row's frame in that of the row before it. The first row of a group joint keeps the joint
    # frame: the group motion comes in between.
    body = t.row_body
    first = np.isin(np.arange(t.n_rows), t.row_start[:-1][moving])
    grouped = np.array([t.group[b] is not None for b in body], dtype=bool)
    above = parents[body]
    start = _compose((offset[0][above], offset[1][above]), (placement[0][body], placement[1][body]))
    inner = product(jnp.swapaxes(align[np.maximum(np.arange(t.n_rows) - 1, 0)], -1, -2), align)
    outer = jnp.where(grouped[:, None, None], start[0], product(start[0], align))
    rotation = jnp.where(first[:, None, None], outer, inner)[t.order]
    translation = jnp.where(first[:, None], start[1], jnp.zeros_like(start[1]))[t.order]

    pitch = multiplier = shift = None
    helical = np.array([k == "helical" for kinds in t.kinds for k in kinds], dtype=bool)
    if helical.any():
        pitch = jnp.where(helical, joints.pitch, jnp.zeros_like(joints.pitch))[t.order]
    if t.mimic_rows.size:
        rows = t.place[t.mimic_rows]
        multiplier = jnp.ones(t.n_rows, dtype).at[rows].set(joints.multiplier)
        shift = jnp.zeros(t.n_rows, dtype).at[rows].set(joints.offset)
    return Linkage(
        placement=Transform(Matrix.from_array(rotation), Vector.from_array(translation)),
        pitch=pitch,
        inertia=_lumped_inertia(t, bodies, offset),
        offset=Transform(Matrix.from_array(offset[0]), Vector.from_array(offset[1])),
        armature=joints.armature[t.order],
        multiplier=multiplier,
        shift=shift,
        gravity=Vector.from_array(system.gravity),
        topology=t,
    )


def _lumped_inertia(t: Topology, bodies: Bodies, offset: tuple[jax.Array, jax.Array]) -> Inertia:
    """The inertias of the bodies each row carries, about its frame (Steiner's theorem)."""
    rotation, position = offset[0][:-1], offset[1][:-1]
    mass = bodies.mass[:, None]
    com = product(rotation, bodies.com[..., None])[..., 0] + position
    symmetric = (bodies.inertia + jnp.swapaxes(bodies.inertia, -1, -2)) / 2
    central = product(product(rotation, symmetric), jnp.swapaxes(rotation, -1, -2))
    square = jnp.sum(com * com, axis=-1)[:, None, None]
    steiner = square * jnp.eye(3, dtype=com.dtype) - com[:, :, None] * com[:, None, :]
    second = (central + mass[..., None] * steiner).reshape(-1, 9)
    each = jnp.concatenate((mass, mass * com, second), axis=1)
    carried = jnp.zeros((t.n_rows + 1, 13), each.dtype).at[carriers(t)].add(each)[:-1]
    return Inertia(
        carried[:, 0],
        Vector.from_array(carried[:, 1:4]),
        Symmetric.from_array(carried[:, 4:].reshape(-1, 3, 3)),
    )


def _compose(
    a: tuple[jax.Array, jax.Array], b: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """Poses (n, 3, 3), (n, 3) of b's inner frames in a's outer frames."""
    return product(a[0], b[0]), product(a[0], b[1][..., None])[..., 0] + a[1]


def _patterns(t: Topology) -> tuple[np.ndarray, np.ndarray]:
    """The angular and linear components of the screws, as far as the joint types fix them."""
    kinds = np.array([k for kinds in t.kinds for k in kinds])[t.order]
    return (kinds != "prismatic").astype(float), (kinds == "prismatic").astype(float)


def _put(a: jax.Array, index: int, value: jax.Array) -> jax.Array:
    """a with one entry replaced, elementwise: a scatter cannot be part of a native call."""
    return jnp.where(np.arange(a.shape[0]) == index, value, a)


def _lump(values, t: Topology):
    """The sums over the bodies that each row carries; bodies fixed to the world are left out."""
    carrier = carriers(t)
    return jax.tree.map(lambda a: jnp.zeros(t.n_rows + 1, a.dtype).at[carrier].add(a)[:-1], values)


def _fixed_levels(t: Topology) -> list[np.ndarray]:
    """Masks (nb,) of the bodies on fixed joints, by the number of fixed joints up to a carrier."""
    depth = np.zeros(len(t.bodies), dtype=int)
    for b, parent in enumerate(t.parents):
        if not t.kinds[b]:
            depth[b] = 1 + (depth[parent] if parent >= 0 else 0)
    return [depth == d for d in range(1, depth.max(initial=0) + 1)]


def _constant(m: np.ndarray, dtype) -> Matrix:
    return Matrix(*(jnp.asarray(x, dtype) for x in m.ravel()))


def _group_motion(point: jax.Array) -> Transform:
    """The motion of a spherical (4,) or free (7,) joint."""
    rotation = quaternion.to_matrix_components(point[0], Vector(point[1], point[2], point[3]))
    zero = jnp.zeros_like(point[0])
    position = (point[4], point[5], point[6]) if point.shape[0] == 7 else (zero, zero, zero)
    return Transform(rotation, Vector(*position))


def alignments(t: Topology, axis: jax.Array) -> Matrix:
    """The rotation (n_rows,) that takes z to each row's axis; for group rows a fixed exchange.

    For an axis below the horizontal the rotation starts from -z, which keeps both charts regular;
    which one is used changes the frame in which a body is computed, never a result.
    """
    grouped = np.array([t.group[b] is not None for b in t.row_body], dtype=bool)
    safe = jnp.where(grouped[:, None], jnp.asarray([0.0, 0.0, 1.0], axis.dtype), axis)
    a = Vector.from_array(safe)
    a = a * (1 / jnp.sqrt(a.square()))
    sign = jnp.where(a.z < 0, -jnp.ones_like(a.z), jnp.ones_like(a.z))
    k = 1 / (1 + sign * a.z)
    least = Matrix(
        *(1 - a.x * a.x * k, -sign * a.x * a.y * k, a.x),
        *(-a.x * a.y * k, sign * (1 - a.y * a.y * k), a.y),
        *(-sign * a.x, -a.y, a.z),
    )
    if not grouped.any():
        return least
    position = np.arange(t.n_rows) - t.row_start[:-1][t.row_body]
    fixed = np.stack([_CIRCLE[int(p) % 3] for p in position]).astype(axis.dtype)
    exchange = Matrix(*(fixed[:, i, j] for i in range(3) for j in range(3)))
    return jax.tree.map(lambda e, a: jnp.where(grouped, e, a), exchange, least)
