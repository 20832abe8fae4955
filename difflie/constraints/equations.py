"""The equations of all constraints of a system at one state, and their derivatives.

    g(q) = 0        of the holonomic ones,
    A(q) v = 0      of all: the derivative of g along v, and the velocity constraints,
    A a + c = 0     the derivative of that, c = (dA/dt) v.

The reaction A^T lambda is the generalised force that acts ON the system. The multipliers lambda are
forces in N where equations are lengths, moments in N m where they are directions.

With the screws of all dofs in one frame (`dynamics/screws.py`) the Jacobians of all frames are one
masked array, and A a sum of products of small matrices; only the poses need a recursion.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.kinematics import world_frame
from ..dynamics.screws import Screws, generalised_columns, masks, screws, total
from ..solvers.linear import product
from ..spatial import Motion, Transform
from ..system.kinematic_tree import Tree
from ..system.protocols import ConstraintElement
from ..system.system import System
from ..system.topology import Topology
from ..system.traverse import tree_algorithm
from .constraint import (
    Constraint,
    CoordinateConstraint,
    FrameConstraint,
    MixedConstraint,
    moved_along,
)


class Equations(eqx.Module):
    """The constraints of a system at a configuration.

    frames (k,): all frames of all constraints, in the world. seen (k,): the same in the frames of
    their trees, for motions. coordinates (n_dofs,): those of the dofs.
    """

    tree: Tree
    screws: Screws
    frames: Transform
    seen: Transform
    coordinates: jax.Array

    def residual(self) -> Float[Array, " p"]:
        """The residuals g (p,) of the p holonomic equations."""
        return _stacked(
            [x for c, about, _ in self.each() for x in c.residual(*about)], self.coordinates
        )

    @jax.jit
    def jacobian(self) -> Float[Array, "m nv"]:
        """A (m, nv)."""
        t, dofs = self.tree.topology, _dofs_of_frames(self.tree.system)
        moves = np.concatenate((t.ancestor_mask, np.zeros((1, t.n_dofs), dtype=bool)))[dofs]
        frame, dof = np.nonzero(moves)
        seen, axes = (
            jax.tree.map(lambda a, at=at: a[at], x)
            for x, at in ((self.seen, frame), (self.screws.axes, dof))
        )
        columns = jax.tree.map(
            lambda a: jnp.zeros(moves.shape, a.dtype).at[frame, dof].set(a),
            seen.inverse_motion(axes),
        )
        bodies = jax.vmap(lambda j: generalised_columns(self.tree, j))(columns)
        unit = jnp.eye(t.nv, dtype=self.coordinates.dtype)
        rates = jax.vmap(self.tree.rates)(unit)
        blocks = []
        for c, about, own in self.each():
            if isinstance(c, MixedConstraint):
                joints = [row[None] for row in _of_joints(t, c, rates.T)]
                columns = jnp.concatenate([bodies[own].reshape(-1, t.nv), *joints])
                single = jnp.eye(len(columns), dtype=unit.dtype)
            elif isinstance(c, FrameConstraint):
                columns = bodies[own].reshape(-1, t.nv)
                single = jnp.eye(6 * len(about), dtype=unit.dtype).reshape(-1, len(about), 6)
            else:
                columns = jnp.stack(_of_joints(t, c, rates.T))
                single = tuple(jnp.eye(len(about), dtype=unit.dtype))
            block = jax.vmap(functools.partial(_rate, c, about), out_axes=1)(single)
            blocks.append(product(block, columns))
        return jnp.concatenate([unit[:0], *blocks])

    def rate(self, v: Float[Array, " nv"]) -> Float[Array, " m"]:
        """A v (m,) for a velocity v (nv,)."""
        return self._with_bias(v)[0]

    def bias(self, v: Float[Array, " nv"]) -> Float[Array, " m"]:
        """c = (dA/dt) v (m,)."""
        return self._with_bias(v)[1]

    @jax.jit
    def _with_bias(self, v: Float[Array, " nv"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        t = self.tree.topology
        rates = self.tree.rates(v)
        moving, own = self.screws.motion(rates, jnp.zeros_like(rates))
        twists = self._of_frames(moving).to_array()
        accelerations = self._of_frames(total(masks(t).ancestor_mask, own)).to_array()
        values, changes = [], []
        for c, about, own in self.each():
            if isinstance(c, FrameConstraint):
                motion, change = twists[own], accelerations[own]
                pairs = zip(about, motion, strict=False)  # frames come first
                moved = tuple(moved_along(frame, Motion.from_array(w)) for frame, w in pairs)
                if isinstance(c, MixedConstraint):
                    joints = _of_joints(t, c, rates)
                    moved += joints
                    motion = jnp.append(motion, jnp.stack(joints)) if joints else motion.ravel()
                    change = jnp.append(change, jnp.zeros(len(joints), v.dtype))
            else:
                motion = moved = _of_joints(t, c, rates)
                change = jax.tree.map(jnp.zeros_like, motion)
            rate = functools.partial(_rate, c)
            value, drift = jax.jvp(rate, (about, motion), (moved, change))
            values.append(value)
            changes.append(drift)
        return jnp.concatenate([v[:0], *values]), jnp.concatenate([v[:0], *changes])

    def _of_frames(self, motions: Motion) -> Motion:
        """The motions of the frames, from those of the dofs (n_dofs,), both in tree frames."""
        dofs, zero = _dofs_of_frames(self.tree.system), self.tree.zero_twist
        chosen = jax.tree.map(lambda a, w: jnp.append(a, w)[dofs], motions, zero)
        return self.seen.inverse_motion(chosen)

    def each(self) -> Iterator[tuple[Constraint, tuple, slice]]:
        """Every constraint, its frames and coordinates, and the slice of its frames among all."""
        stop = 0
        for c in self.tree.system.constraints:
            if isinstance(c, FrameConstraint):
                start, stop = stop, stop + len(c.frames)
                about = tuple(_entry(self.frames, k) for k in range(start, stop))
                if isinstance(c, MixedConstraint):
                    about += _of_joints(self.tree.topology, c, self.coordinates)
                yield c, about, slice(start, stop)
            elif isinstance(c, CoordinateConstraint):
                yield c, _of_joints(self.tree.topology, c, self.coordinates), slice(stop, stop)


@jax.jit  # an assembly, a step and its projection are traced with the same equations
def equations(tree: Tree, q: Float[Array, " nq"]) -> Equations:
    """The equations at the configuration q (nq,)."""
    system, s = tree.system, screws(tree, q)
    dofs = _dofs_of_frames(system)
    body = np.array([_body(system, f.body) for f in _frames(system)], dtype=int)
    world = world_frame(q.dtype)
    poses = jax.tree.map(lambda a, w: jnp.append(a, w)[dofs], s.poses, world)
    origin = jax.tree.map(lambda a: jnp.append(a, 0.0)[dofs], s.origin)
    offset = jax.tree.map(lambda a: a[body], tree.offset)
    inner = [f.pose for f in _frames(system)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *inner) if inner else offset
    seen = poses @ offset @ stacked
    frames = Transform(seen.rotation, seen.translation + origin)
    return Equations(tree, s, frames, seen, tree.coordinates(q))


# The Jacobian A (m, nv) of a tree at q (nq,).
compiled_jacobian = jax.jit(tree_algorithm(lambda tree, q: equations(tree, q).jacobian()))


def holonomic(constraints: tuple[ConstraintElement, ...]) -> np.ndarray:
    """A mask (m,) of the holonomic equations."""
    return np.array([k < c.positions for c in constraints for k in range(c.size)], dtype=bool)


def labels(constraints: tuple[ConstraintElement, ...]) -> list[str]:
    """The names (m,) of all equations, with their constraint, for messages."""
    return [f"{e} of constraint {k}, {c}" for k, c in enumerate(constraints) for e in c.equations]


def position_labels(constraints: tuple[ConstraintElement, ...]) -> list[str]:
    """The names (p,) of the position constraints."""
    pairs = zip(labels(constraints), holonomic(constraints), strict=True)
    return [label for label, of_positions in pairs if of_positions]


def largest(values: np.ndarray, names: list[str]) -> str:
    """The names of the largest few of the values (k,), for messages."""
    worst = np.argsort(-np.abs(values))[:3]
    return ", ".join(f"{names[k]} ({values[k]:.3g})" for k in worst if values[k])


def dofs_of(system: System, c: ConstraintElement) -> np.ndarray:
    """(k,) the dofs of the joints of a constraint, or those that move its frames last."""
    t, joints = system.topology, np.zeros(0, int)
    if isinstance(c, CoordinateConstraint | MixedConstraint):
        joints = np.array([t.dof_start[t.joints.index(name)] for name in c.joints], int)
    bodies = [_body(system, f.body) for f in getattr(c, "frames", ())]
    dofs = np.append(t.body_dof, t.n_dofs)[bodies].astype(int)
    return np.concatenate((joints, dofs[dofs < t.n_dofs]))


def _frames(system: System) -> list:
    return [f for c in system.constraints if isinstance(c, FrameConstraint) for f in c.frames]


def _body(system: System, name: str | None) -> int:
    return -1 if name is None else system.body_names.index(name)


def _dofs_of_frames(system: System) -> np.ndarray:
    """The dof that moves each frame (k,), n_dofs for the world."""
    t = system.topology
    dofs = np.append(t.body_dof, t.n_dofs)
    return dofs[[_body(system, f.body) for f in _frames(system)]].astype(int)


def _rate(c: Constraint, about: tuple, motion: Any) -> Float[Array, " m"]:
    """The velocity residuals (m,) of a constraint, linear in the motion.

    motion: the twists (k, 6) of the frames, or the rates of the coordinates, as in `about`; both
    in one array (6 k + j,) of a constraint between frames and coordinates.
    """
    if isinstance(c, MixedConstraint):
        count = 6 * len(c.frames)
        moved = [Motion.from_array(motion[i : i + 6]) for i in range(0, count, 6)]
        return _stacked(c.rate(about, (*moved, *motion[count:])), motion)
    if isinstance(c, FrameConstraint):
        twists = tuple(Motion.from_array(motion[i]) for i in range(len(about)))
        return _stacked(c.rate(about, twists), motion)
    return _stacked(jax.jvp(lambda *x: c.residual(*x), about, motion)[1], motion[0])


def _of_joints(t: Topology, c: Any, values: jax.Array) -> tuple:
    return tuple(values[int(t.dof_start[t.joints.index(name)])] for name in c.joints)


def _entry(values: Any, k: Any) -> Any:
    return jax.tree.map(lambda a: a[k], values)


def _stacked(values: list, like: jax.Array) -> jax.Array:
    return jnp.stack([jnp.asarray(x, like.dtype) for x in values]) if values else like.ravel()[:0]
