"""The `Tree`: a system in the form that all algorithms run on.

Every degree of freedom gets a frame of its own whose z axis is the axis of the motion. The pattern
of its screw is then known at trace time, while its direction is part of the placement of the frame.
Bodies on fixed joints are merged into their parent link. All this is done with arrays over bodies
and dofs, once for each system, and is differentiable.

The dof that carries a body is the last dof of its joint, or on a fixed joint that of its parent.
The frames, and what must hold of them, are drawn at the head of `whole_joints`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Matrix, Vector
from ..spatial import Force, Inertia, Motion, Screw, Transform
from .frozen import frozen, is_frozen, unfreeze
from .joints import Joint
from .protocols import ConstraintElement, InertiaElement
from .system import System, carried_tree, carrying
from .topology import Topology
from .tree_numbers import merged, tree_numbers
from .whole_joints import (
    JointsOfType,
    between_dofs,
    brackets,
    check_constant,
    dof_frames,
    joints_by_type,
    screw_patterns,
    varying,
)


class Tree(eqx.Module):
    """A system, and what follows from its bodies and joints; shapes are (n_dofs,) unless said.

    There is one frame for each dof. placement: the pose of a dof's frame in that of the dof before
    it (the parent's last, or the world) while its coordinate is zero. pitch: of the helical dofs;
    None without any. inertia: of all bodies that a dof carries, about its frame; zero but for the
    last dof of a joint. offset (nb + 1,): the pose of each body's frame in that of the dof that
    carries it; the last entry is the world. multiplier, shift: the laws of mimic joints, 1 and 0
    for other dofs; None without mimic joints.
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
        """The tree of a system; frozen if the system is."""
        if is_frozen(system):
            return _of_constants(system)
        if (tree := carried_tree(system)) is not None:
            return tree
        return Tree(system, *tree_numbers(system.bodies, system.joints, system.topology))

    def carried(self) -> System:
        """The system, which carries this tree: `Tree.of` it is this one, and not made again."""
        return self.system if is_frozen(self.system) else carrying(self.system, self)

    @property
    def topology(self) -> Topology:
        return self.system.topology

    @property
    def constraints(self) -> tuple[ConstraintElement, ...]:
        return self.system.constraints

    @property
    def dtype(self) -> np.dtype:
        return self.system.gravity.dtype

    @property
    def gravity(self) -> Vector:
        """(3,) in m/s^2, world coordinates."""
        return Vector.from_array(self.system.gravity)

    @property
    def armature(self) -> Float[Array, " n_dofs"]:
        """The rotor inertia along each dof (kg m^2 or kg)."""
        return self.system.joints.armature

    @property
    def inerters(self) -> list[InertiaElement]:
        """What has inertia along lengths."""
        return [part for part in self.system.couplings if isinstance(part, InertiaElement)]

    @property
    def independent(self) -> bool:
        """Whether M factors along the tree; mimic joints and inerters couple its branches."""
        return self.multiplier is None and not self.inerters

    def with_constraints(self, constraints: tuple[ConstraintElement, ...]) -> Tree:
        """The same tree with other constraints."""
        return replace(self, system=self.system.with_constraints(constraints))

    def weightless(self) -> Tree:
        """The same tree without gravity."""
        gravity = np.zeros(self.system.gravity.shape, self.dtype)
        return replace(self, system=replace(self.system, gravity=gravity))

    @property
    def _axes(self) -> Screw:
        """The screw axis of each dof; what the joint types fix of it is known at trace time."""
        angular, linear = (p.astype(self.dtype) for p in screw_patterns(self.topology))
        if self.pitch is None:
            return Screw(angular, linear)
        return Screw(angular, jnp.asarray(linear) + self.pitch)

    @property
    def zero_twist(self) -> Motion:
        """The twist of the world: zero."""
        return Motion.zero(jnp.zeros((), self.dtype))

    @property
    def base_acceleration(self) -> Motion:
        """The acceleration -g of the world, which stands for gravity."""
        return Motion(self.zero_twist.angular, -self.gravity)

    def structured(self) -> Tree:
        """The same tree; numbers that the joint types fix are known at trace time."""
        t = self.topology
        carrying = np.isin(np.arange(t.n_dofs), t.body_dof)
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
            unfreeze(self),
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
        """Forces along the dofs (n_dofs,) as a generalised force (nv,): `rates` transposed."""
        t = self.topology
        if self.multiplier is None:
            return efforts
        return jax.ops.segment_sum(efforts * self.multiplier, t.dof_velocity, num_segments=t.nv)

    @jax.jit  # traced once for all algorithms
    def poses(self, q: Float[Array, " nq"]) -> Transform:
        """The pose of each dof's frame in that of the dof before it, at q (nq,)."""
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
        for whole in joints_by_type(t):
            first = whole.dofs[:, 0]
            before = jax.tree.map(lambda a, i=first: a[i], self.placement)
            T = self._evaluated(whole, lambda joint, y: joint.transform(y), q)
            motion = Transform(Matrix.from_array(T[:, :3, :3]), Vector.from_array(T[:, :3, 3]))
            motion = before @ motion
            motion = replace(motion, rotation=motion.rotation @ _constant(whole.frames[0], q.dtype))
            poses = jax.tree.map(lambda a, new, i=first: a.at[i].set(new), poses, motion)
        return poses

    def screws(self, q: Float[Array, " nq"]) -> Screw | Motion:
        """The unit twist of each dof in its own frame, at q (nq,).

        Screws about z if all joints have constant subspaces, otherwise motions.
        """
        screw = self._axes
        if not varying(self.topology):
            return screw
        columns = screw.add_to(Motion.zero(jnp.zeros_like(self.armature)))
        for whole, S in self._subspaces(q):
            values = Motion.from_array(jnp.swapaxes(S, 1, 2).reshape(-1, 6))
            at = whole.dofs.ravel()
            columns = jax.tree.map(lambda a, new, i=at: a.at[i].set(new), columns, values)
        return columns

    @property
    def fixed_screws(self) -> Screw:
        """The screws, if all joints have constant subspaces. Raises ValueError if not."""
        check_constant(self.topology, "a discrete motion")
        return self._axes

    def bias(self, q: Float[Array, " nq"], rates: Float[Array, " n_dofs"]) -> Motion | None:
        """The joint bias acceleration (n_dofs,), in the frames of the joints' last dofs.

        The velocity-product term of a joint is ad(V) S v + (dS/dt) v, with V the twist of the body.
        The sum of ad(V_k) S_k v_k over its dofs does not contain (dS/dt) v and the sum over i < j
        of ad(S_j v_j) S_i v_i: these are the bias. None if it is zero for all joints.
        """
        t, subspaces = self.topology, self._subspaces(q)
        added = []
        for whole in joints_by_type(t):
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
            own = self._evaluated(whole, lambda joint, y, v: joint.bias(y, v), q, v)
            added.append((whole, own.T + between_dofs(jnp.swapaxes(S, 0, 1), v)))
        if not added:
            return None
        total = Motion.zero(jnp.zeros_like(rates))
        for whole, parts in added:
            angular, linear = Vector(*parts[:3]), Vector(*parts[3:])
            if not np.array_equal(whole.frames[-1], np.eye(3)):
                turn = _constant(whole.frames[-1], rates.dtype)
                angular, linear = turn.transposed_times(angular), turn.transposed_times(linear)
            own, at = Motion(angular, linear), whole.dofs[:, -1]
            total = jax.tree.map(lambda a, new, i=at: a.at[i].set(new), total, own)
        return total

    def subspace_gradients(self, q: Float[Array, " nq"]) -> Motion | None:
        """(n_dofs, n_dofs) d(screw of dof i)/d(dof j) in the frame of dof i; None if all vanish."""
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
            gradients = self._evaluated(whole, gradient, q)
            total = total.at[whole.dofs[:, :, None], whole.dofs[:, None]].set(gradients)
        return Motion.from_array(total)

    def _subspaces(self, q: jax.Array) -> list[tuple[JointsOfType, jax.Array]]:
        """S (n, 6, k) of the joints whose subspace is not constant."""
        return [
            (whole, self._evaluated(whole, lambda joint, y: joint.motion_subspace(y), q))
            for whole in joints_by_type(self.topology)
            if whole.columns is None
        ]

    def _evaluated(
        self, whole: JointsOfType, f: Callable[..., jax.Array], q: jax.Array, *args: jax.Array
    ) -> jax.Array:
        """f(joint, coordinates, ...) of all joints of one type, with arguments (n, ...)."""
        numbers = self.system.joints.numbers
        return whole.evaluate(f, numbers, whole.points(q, self.coordinates(q)), *args)

    @property
    def body_frames(self) -> Transform:
        """The pose of each body's frame (nb,) in that of the dof that carries it."""
        return jax.tree.map(lambda a: a[:-1], self.offset)

    def along_joints(self, motions: Motion) -> Motion:
        """The motion (n_dofs,) of each joint's last dof, in the frames of all its dofs."""
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
        return merged(self.body_frames.force(Force.from_array(wrench)), self.topology)

    def body_values(self, values: Transform | Motion, world: Transform | Motion):
        """The value (nb,) of the dof that carries each body, `world` for bodies fixed to it."""
        dof = self.topology.body_dof
        return jax.tree.map(
            lambda a, w: jnp.concatenate((a, jnp.asarray(w, a.dtype)[None]))[dof], values, world
        )


@functools.lru_cache
def _of_constants(system: System) -> Tree:
    """The tree of a frozen system, computed in double precision and rounded once.

    Rotation entries that are zero to the system's precision are set to zero.
    """
    dtype = system.dtype
    numbers = jax.tree.map(lambda a: np.asarray(a, float), (system.bodies, system.joints))

    def rounded(path: tuple, a: jax.Array) -> jax.Array:
        exact = np.asarray(a)
        if jax.tree_util.GetAttrKey("rotation") in path:
            exact = np.where(np.abs(exact) < 2 * np.finfo(dtype).eps, 0.0, exact)
        return jnp.asarray(exact.astype(dtype))

    with jax.ensure_compile_time_eval():
        # A copy with new arrays: jax caches the types that arrays had in single precision.
        with jax.enable_x64(True):
            exact = tree_numbers(*jax.tree.map(jnp.asarray, numbers), replace(system.topology))
        return frozen(Tree(system, *jax.tree_util.tree_map_with_path(rounded, exact)))


def _constant(m: np.ndarray, dtype) -> Matrix:
    return Matrix(*(jnp.asarray(x, dtype) for x in m.ravel()))
