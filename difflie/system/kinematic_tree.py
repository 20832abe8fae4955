"""The `Tree`: a system in the form that all algorithms run on.

Every degree of freedom gets a frame of its own whose z axis is the axis of the motion, so that the
pattern of its screw is structure while its direction is a number, hidden in the placement of the
frame. Bodies on fixed joints are merged into the body that carries them. All this is done with
arrays over bodies and dofs, once for each system, and differentiated through.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import so3
from ..groups.components import Matrix, Vector
from ..solvers.linear import product
from ..spatial import Force, Inertia, Motion, Screw, Symmetric, Transform
from .frozen import frozen, is_frozen, thawed
from .joints import Joint
from .system import Bodies, Joints, System
from .topology import WORLD, Topology
from .traverse import for_each, in_one
from .whole_joints import (
    Numbers,
    Whole,
    between_dofs,
    brackets,
    check_constant,
    dof_frames,
    varying,
    wholes,
)


class Tree(eqx.Module):
    """A system, and what follows from its bodies and joints; shapes are (n_dofs,) unless said.

    There is one frame for each dof. placement: the frame of a dof in that of the dof before it (the
    parent's last, or the world) while its coordinate is zero. pitch: of the helical dofs, None
    where there are none. inertia: of the bodies carried by a dof, about its frame; zero within a
    joint of several dofs. offset (nb + 1,): each body's frame in that of the dof that carries it;
    the last entry is the world. multiplier, shift: the laws of mimic joints, 1 and 0 elsewhere,
    None where there are none.
    """

    system: System
    placement: Transform
    pitch: jax.Array | None
    inertia: Inertia
    offset: Transform
    multiplier: jax.Array | None
    shift: jax.Array | None

    @staticmethod
    def of(system: System) -> Tree:
        """Brings a system into the form that all algorithms run on; of a frozen one, frozen."""
        if is_frozen(system):
            return _of_constants(system)
        return Tree(system, *_follows(system.bodies, system.joints, system.topology))

    @property
    def topology(self) -> Topology:
        return self.system.topology

    @property
    def constraints(self) -> tuple[eqx.Module, ...]:
        return self.system.constraints

    @property
    def dtype(self) -> np.dtype:
        return self.system.gravity.dtype

    @property
    def gravity(self) -> Vector:
        """In m/s^2 and world coordinates."""
        return Vector.from_array(self.system.gravity)

    @property
    def armature(self) -> Float[Array, " n_dofs"]:
        """Inertia along the dof."""
        return self.system.joints.armature

    @property
    def _numbers(self) -> Numbers:
        """Those that joint types declare, as in `Joints`."""
        return self.system.joints.numbers

    def with_constraints(self, constraints: tuple[eqx.Module, ...]) -> Tree:
        """The same with other constraints."""
        return replace(self, system=self.system.with_constraints(constraints))

    def weightless(self) -> Tree:
        """The same without gravity."""
        gravity = np.zeros(self.system.gravity.shape, self.dtype)
        return replace(self, system=replace(self.system, gravity=gravity))

    @property
    def _axes(self) -> Screw:
        """The axis of each dof; what the joint types fix of it is known at trace time."""
        angular, linear = (p.astype(self.dtype) for p in _patterns(self.topology))
        if self.pitch is None:
            return Screw(angular, linear)
        return Screw(angular, jnp.asarray(linear) + self.pitch)

    @property
    def zero_twist(self) -> Motion:
        """The motion of the world at rest."""
        zero = jnp.zeros((), self.dtype)
        return Motion(Vector(zero, zero, zero), Vector(zero, zero, zero))

    @property
    def base_acceleration(self) -> Motion:
        """The acceleration of the world that stands for gravity: -g."""
        return Motion(self.zero_twist.angular, -self.gravity)

    def structured(self) -> Tree:
        """The same numbers, those of them that the joint types fix known at trace time."""
        t = self.topology
        carrying = np.isin(np.arange(t.n_dofs), carriers(t))
        later = t.motion_start != np.arange(t.n_dofs)
        inside = np.arange(t.n_dofs) != t.dof_start[t.dof_body]
        frames = dof_frames(t)
        turn = np.swapaxes(frames[np.maximum(t.dof_parent, 0)], 1, 2) @ frames
        turn = [turn[:, i, j] for i in range(3) for j in range(3)]

        def fixed(a: jax.Array, where: np.ndarray, value: np.ndarray | float) -> jax.Array:
            return jnp.where(where, jnp.asarray(value, a.dtype), a)

        r = self.placement.rotation
        entries = (*(r.xx, r.xy, r.xz), *(r.yx, r.yy, r.yz), *(r.zx, r.zy, r.zz))
        rotation = [fixed(a, later, c) for a, c in zip(entries, turn, strict=True)]
        translation = jax.tree.map(lambda a: fixed(a, inside, 0.0), self.placement.translation)
        return replace(
            thawed(self),
            placement=Transform(Matrix(*rotation), translation),
            inertia=jax.tree.map(lambda a: fixed(a, ~carrying, 0.0), self.inertia),
        )

    def coordinates(self, q: Float[Array, " nq"]) -> Float[Array, " n_dofs"]:
        """The coordinate of each dof (n_dofs,), mimic joints included; 0 where it has none."""
        entry = self.topology.dof_coordinate
        x = q[np.maximum(entry, 0)]
        if self.multiplier is not None:
            x = x * self.multiplier + jnp.asarray(self.shift)
        return jnp.where(entry >= 0, x, jnp.zeros_like(x)) if np.any(entry < 0) else x

    def rates(self, v: Float[Array, " nv"]) -> Float[Array, " n_dofs"]:
        """Velocities or accelerations (nv,) as those of the dofs (n_dofs,)."""
        rates = v[self.topology.dof_velocity]
        return rates if self.multiplier is None else rates * self.multiplier

    def generalised(self, efforts: Float[Array, " n_dofs"]) -> Float[Array, " nv"]:
        """Efforts of the dofs (n_dofs,) as a generalised force (nv,)."""
        t = self.topology
        if self.multiplier is None:
            return efforts
        return jax.ops.segment_sum(efforts * self.multiplier, t.dof_velocity, num_segments=t.nv)

    def poses(self, q: Float[Array, " nq"]) -> Transform:
        """The frame of each dof in that of the dof before it, at the configuration q (nq,)."""
        t = self.topology
        screw, x = self._axes, self.coordinates(q)
        x = jnp.where(t.whole_dofs, jnp.zeros_like(x), x) if t.whole_dofs.any() else x
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
        for whole in wholes(t):
            first = whole.dofs[:, 0]
            before = jax.tree.map(lambda a, i=first: a[i], self.placement)
            points = whole.points(q, self.coordinates(q))
            T = whole.evaluate(lambda joint, y: joint.transform(y), self._numbers, points)
            motion = Transform(Matrix.from_array(T[:, :3, :3]), Vector.from_array(T[:, :3, 3]))
            motion = before @ motion
            motion = replace(motion, rotation=motion.rotation @ _constant(whole.frames[0], q.dtype))
            poses = jax.tree.map(lambda a, new, i=first: a.at[i].set(new), poses, motion)
        return poses

    def screws(self, q: Float[Array, " nq"]) -> Screw | Motion:
        """The unit twist of each dof in its own frame, at the configuration q (nq,).

        Screws about z where all joints have constant subspaces, or else motions.
        """
        screw = self._axes
        if not varying(self.topology):
            return screw
        zero = jnp.zeros_like(self.armature)
        columns = screw.add_to(Motion(Vector(zero, zero, zero), Vector(zero, zero, zero)))
        for whole, S in self._subspaces(q):
            values = Motion.from_array(jnp.swapaxes(S, 1, 2).reshape(-1, 6))
            at = whole.dofs.ravel()
            columns = jax.tree.map(lambda a, new, i=at: a.at[i].set(new), columns, values)
        return columns

    @property
    def fixed_screws(self) -> Screw:
        """The screws where all joints have constant subspaces. Raises ValueError elsewhere."""
        check_constant(self.topology, "a discrete motion")
        return self._axes

    def bias(self, q: Float[Array, " nq"], rates: Float[Array, " n_dofs"]) -> Motion | None:
        """The bias acceleration of the joints (n_dofs,), in the frames of their last dofs.

        The velocity-product term of a joint is ad(V) S v + (dS/dt) v, with V the twist of the body;
        summing ad(V_k) S_k v_k dof by dof lacks (dS/dt) v and the sum over i < j of
        ad(S_j v_j) S_i v_i. None where there is nothing to add.
        """
        t, subspaces = self.topology, self._subspaces(q)
        added = []
        for whole in wholes(t):
            v = rates[whole.dofs]
            if whole.columns is not None:
                parts = [jnp.zeros_like(v[:, 0])] * 6
                terms = brackets(whole.columns)
                for c, i, j, s in terms:
                    parts[c] = parts[c] + s * v[:, i] * v[:, j]
                if terms:
                    added.append((whole, parts))
        for whole, S in subspaces:
            v = rates[whole.dofs]
            points = whole.points(q, self.coordinates(q))
            own = whole.evaluate(lambda joint, y, v: joint.bias(y, v), self._numbers, points, v)
            added.append((whole, own.T + between_dofs(jnp.swapaxes(S, 0, 1), v)))
        if not added:
            return None
        zero = jnp.zeros_like(rates)
        total = Motion(Vector(zero, zero, zero), Vector(zero, zero, zero))
        for whole, parts in added:
            angular, linear = Vector(*parts[:3]), Vector(*parts[3:])
            if not np.array_equal(whole.frames[-1], np.eye(3)):
                turn = _constant(whole.frames[-1], rates.dtype)
                angular, linear = turn.transposed_times(angular), turn.transposed_times(linear)
            here, at = Motion(angular, linear), whole.dofs[:, -1]
            total = jax.tree.map(lambda a, new, i=at: a.at[i].set(new), total, here)
        return total

    def subspace_gradients(self, q: Float[Array, " nq"]) -> Motion | None:
        """The derivative of the screw of dof i as dof j moves (n_dofs, n_dofs), in i's frame.

        None where all subspaces are constant.
        """
        if not varying(self.topology):
            return None
        n = self.topology.n_dofs
        total = jnp.zeros((n, n, 6), q.dtype)

        def gradient(joint: Joint, y: jax.Array) -> jax.Array:
            zero = jnp.zeros(joint.manifold.tangent_size, y.dtype)

            def subspace(xi: jax.Array) -> jax.Array:
                return joint.motion_subspace(joint.manifold.retract(y, xi))

            return jnp.moveaxis(jax.jacfwd(subspace)(zero), 0, 2)

        for whole, _ in self._subspaces(q):
            points = whole.points(q, self.coordinates(q))
            found = whole.evaluate(gradient, self._numbers, points)
            total = total.at[whole.dofs[:, :, None], whole.dofs[:, None]].set(found)
        return Motion.from_array(total)

    def _subspaces(self, q: jax.Array) -> list[tuple[Whole, jax.Array]]:
        """S (n, 6, k) of the joints whose subspace varies."""
        found = []
        for whole in wholes(self.topology):
            if whole.columns is None:
                points = whole.points(q, self.coordinates(q))
                S = whole.evaluate(lambda joint, y: joint.motion_subspace(y), self._numbers, points)
                found.append((whole, S))
        return found

    def along_joints(self, motions: Motion) -> Motion:
        """The motion (n_dofs,) at the last dof of each joint, seen from each of its dofs."""
        t = self.topology
        if not t.whole_dofs.any():
            return motions
        end, frames = t.motion_end, dof_frames(t)
        complete = jax.tree.map(lambda a: a[end], motions)
        turn = np.swapaxes(frames, 1, 2) @ frames[end]
        seen = Matrix(
            *(turn[:, i, j].astype(self.armature.dtype) for i in range(3) for j in range(3))
        )
        return Motion(seen @ complete.angular, seen @ complete.linear)

    def dof_forces(self, wrench: Float[Array, "nb 6"]) -> Force:
        """Wrenches on the bodies (nb, 6), in body frames, as wrenches on the dofs (n_dofs,)."""
        t = self.topology
        offset = jax.tree.map(lambda a: a[:-1], self.offset)
        return _merge(offset.force(Force.from_array(wrench)), t)

    def body_values(self, values: Transform | Motion, world: Transform | Motion):
        """The value of the dof that carries each body (nb,), `world` for bodies fixed to it."""
        carrier = carriers(self.topology)
        return jax.tree.map(
            lambda a, w: jnp.concatenate((a, jnp.asarray(w, a.dtype)[None]))[carrier], values, world
        )


def carriers(t: Topology) -> np.ndarray:
    """(nb,) the dof that carries each body; n_dofs for the world."""
    return np.where(t.last_dof == WORLD, t.n_dofs, t.last_dof)


@functools.lru_cache
def _of_constants(system: System) -> Tree:
    """The tree of a frozen system, in double precision and rounded once.

    What of a rotation is zero as far as angles in the system's precision say is zero.
    """
    dtype = system.dtype
    given = jax.tree.map(lambda a: np.asarray(a, float), (system.bodies, system.joints))

    def rounded(path: tuple, a: jax.Array) -> jax.Array:
        exact = np.asarray(a)
        if jax.tree_util.GetAttrKey("rotation") in path:
            exact = np.where(np.abs(exact) < 2 * np.finfo(dtype).eps, 0.0, exact)
        return jnp.asarray(exact.astype(dtype))

    with jax.ensure_compile_time_eval():
        # A copy, with arrays of its own: jax keeps the types that arrays had in single precision.
        with jax.enable_x64(True):
            exact = _follows(*jax.tree.map(jnp.asarray, given), replace(system.topology))
        return frozen(Tree(system, *jax.tree_util.tree_map_with_path(rounded, exact)))


@functools.partial(jax.jit, static_argnums=2)
def _follows(bodies: Bodies, joints: Joints, t: Topology) -> tuple:
    """The fields of a `Tree` after the first.

    Compiled by itself, and so only once for all algorithms. What is alike for all bodies or dofs
    is a batch of kernels, which are the same for every machine.
    """
    joint = for_each(_rotation)(joints.rotation), joints.position
    aligned = for_each(least_rotation)(_safe(joints.axis, t))
    offset, factors = in_one(t, functools.partial(_factors, t))(joint, aligned)
    frames = for_each(_dof_frame)(*factors)
    seen_from = jax.tree.map(lambda a: a[:-1], offset)
    inertias = for_each(_seen_inertia)(seen_from, bodies.mass, bodies.com, bodies.inertia)
    return in_one(t, functools.partial(_fields, t))(joints, offset, frames, inertias)


_Pose = tuple[jax.Array, jax.Array]


def _rotation(vector: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    return so3.exp_components(Vector.from_array(vector)).to_array()


def _factors(
    t: Topology, joint: _Pose, aligned: Float[Array, "n_dofs 3 3"]
) -> tuple[_Pose, tuple[_Pose, _Pose, jax.Array]]:
    """The frames of the bodies in those of their carriers, and what `_dof_frame` puts together.

    joint: the frames (nb,) of the joints in those of the parents. aligned: of the dofs in those of
    their joints, where these are in series.
    """
    whole = t.whole_dofs[:, None, None]
    aligned = jnp.where(whole, dof_frames(t).astype(aligned.dtype), aligned)
    identity = jnp.eye(3, dtype=aligned.dtype)

    # The world's is the last one. Bodies on fixed joints follow one level after the other.
    n_bodies, moving = len(t.bodies), np.array([bool(kinds) for kinds in t.kinds])
    offset = (
        jnp.broadcast_to(identity, (n_bodies + 1, 3, 3)),
        jnp.zeros((n_bodies + 1, 3), aligned.dtype),
    )
    ends = aligned[t.dof_start[1:][moving] - 1]
    offset = offset[0].at[np.flatnonzero(moving)].set(jnp.swapaxes(ends, 1, 2)), offset[1]
    parents = np.array(t.parents)
    for level in _fixed_levels(t):
        above, here = ((a[0][i], a[1][i]) for a, i in ((offset, parents[level]), (joint, level)))
        poses = jax.vmap(_composed)(above, here)
        offset = offset[0].at[level].set(poses[0]), offset[1].at[level].set(poses[1])

    # The first dof of a joint starts at the frame of the parent. Where the joint moves as a whole
    # it keeps the joint frame: its transform comes in between.
    body, dof = t.dof_body, np.arange(t.n_dofs)
    first = (dof == t.dof_start[body])[:, None]
    before = jnp.swapaxes(aligned[np.maximum(dof - 1, 0)], 1, 2)
    above = parents[body]
    carrier = (
        jnp.where(first[..., None], offset[0][above], before),
        jnp.where(first, offset[1][above], 0.0),
    )
    frame = (
        jnp.where(first[..., None], joint[0][body], identity),
        jnp.where(first, joint[1][body], 0.0),
    )
    return offset, (carrier, frame, jnp.where(first[..., None] & whole, identity, aligned))


def _fixed_levels(t: Topology) -> list[np.ndarray]:
    """The bodies on fixed joints, by the number of fixed joints up to a carrier."""
    depth = np.zeros(len(t.bodies), dtype=int)
    for b, parent in enumerate(t.parents):
        if not t.kinds[b]:
            depth[b] = 1 + (depth[parent] if parent >= 0 else 0)
    return [np.flatnonzero(depth == d) for d in range(1, depth.max(initial=0) + 1)]


def _composed(a: _Pose, b: _Pose) -> _Pose:
    """The pose (3, 3), (3,) of b's inner frame in a's outer frame."""
    return product(a[0], b[0]), product(a[0], b[1]) + a[1]


def _dof_frame(carrier: _Pose, joint: _Pose, aligned: Float[Array, "3 3"]) -> _Pose:
    """The frame of a dof in that of the dof before it."""
    rotation, translation = _composed(carrier, joint)
    return product(rotation, aligned), translation


def _seen_inertia(
    pose: _Pose, mass: jax.Array, com: jax.Array, inertia: jax.Array
) -> Float[Array, " 13"]:
    """Mass, first and second moment of a body about another frame (Steiner's theorem)."""
    rotation, position = pose
    com = product(rotation, com) + position
    central = product(product(rotation, (inertia + inertia.T) / 2), rotation.T)
    steiner = jnp.sum(com * com) * jnp.eye(3, dtype=com.dtype) - com[:, None] * com
    second = central + mass * steiner
    return jnp.concatenate((mass[None], mass * com, second.ravel()))


def _fields(
    t: Topology, joints: Joints, offset: _Pose, frames: _Pose, inertias: Float[Array, "nb 13"]
) -> tuple:
    dtype = joints.position.dtype
    pitch = multiplier = shift = None
    helical = np.array([k == "helical" for kinds in t.kinds for k in kinds], dtype=bool)
    if (helical & ~t.whole_dofs).any():
        pitch = jnp.where(helical & ~t.whole_dofs, joints.pitch, jnp.zeros_like(joints.pitch))
    if t.mimic_dofs.size:
        multiplier = jnp.ones(t.n_dofs, dtype).at[t.mimic_dofs].set(joints.multiplier)
        shift = jnp.zeros(t.n_dofs, dtype).at[t.mimic_dofs].set(joints.offset)
    carried = _merge(inertias, t)
    return (
        Transform(Matrix.from_array(frames[0]), Vector.from_array(frames[1])),
        pitch,
        Inertia(
            carried[:, 0],
            Vector.from_array(carried[:, 1:4]),
            Symmetric.from_array(carried[:, 4:].reshape(-1, 3, 3)),
        ),
        Transform(Matrix.from_array(offset[0]), Vector.from_array(offset[1])),
        multiplier,
        shift,
    )


def _patterns(t: Topology) -> tuple[np.ndarray, np.ndarray]:
    """The angular and linear components of the screws, as far as the joint types fix them."""
    kinds = np.array([k for kinds in t.kinds for k in kinds])
    angular, linear = (kinds != "prismatic").astype(float), (kinds == "prismatic").astype(float)
    for whole in wholes(t):
        linear[whole.dofs] += [dof.pitch for dof in whole.joint.dofs()]
    return angular, linear


def _merge(values, t: Topology):
    """The sums over the bodies that each dof carries; bodies fixed to the world are left out."""

    def merged(a: jax.Array) -> jax.Array:
        return jnp.zeros((t.n_dofs + 1, *a.shape[1:]), a.dtype).at[carriers(t)].add(a)[:-1]

    return jax.tree.map(merged, values)


def _constant(m: np.ndarray, dtype) -> Matrix:
    return Matrix(*(jnp.asarray(x, dtype) for x in m.ravel()))


def _safe(axis: Float[Array, "n_dofs 3"], t: Topology) -> Float[Array, "n_dofs 3"]:
    """The axes of the dofs in series; z where a joint moves as a whole, whose dofs have none."""
    return jnp.where(t.whole_dofs[:, None], jnp.asarray([0.0, 0.0, 1.0], axis.dtype), axis)


def least_rotation(axis: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """The rotation that takes z to an axis.

    For an axis below the horizontal it starts from -z, which keeps both charts regular.
    """
    a = Vector.from_array(axis)
    a = a * (1 / jnp.sqrt(a.square()))
    sign = jnp.where(a.z < 0, -jnp.ones_like(a.z), jnp.ones_like(a.z))
    k = 1 / (1 + sign * a.z)
    return Matrix(
        *(1 - a.x * a.x * k, -sign * a.x * a.y * k, a.x),
        *(-a.x * a.y * k, sign * (1 - a.y * a.y * k), a.y),
        *(-sign * a.x, -a.y, a.z),
    ).to_array()
