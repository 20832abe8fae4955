"""A system in natural coordinates: the origin and the three directors of every moving body.

A body is an array (4, 3) with the rows (r, d1, d2, d3), its frame's origin and axes in the world.
In these coordinates the mass matrix is constant, a point or direction fixed in a body is a fixed
combination of the rows, and joints are equations between scalar products of such vectors, at most
quadratic (Garcia de Jalon and Bayo 1994, chapter 4; Betsch and Steinmann 2001). The world is one
more body that does not move, (0, e1, e2, e3).

Every joint with a degree of freedom carries one body, in the order of the bodies; bodies on fixed
joints are merged into their parents. A body's frame is that of the last dof of its joint: its third
director is the axis of the joint's last turn.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...groups import directors, quaternion
from ...groups.components import Matrix, Vector
from ...solvers.linear import product
from ...spatial import Force
from ...system.kinematic_tree import Tree
from ..kinematics import dof_poses, dof_twists
from .equations import (
    Equations,
    JointsOfKind,
    Products,
    fixed,
    orientation,
    position,
    reciprocal,
)
from .layout import BALL, FREE, Layout, check, layout


class Arms(NamedTuple):
    """The geometry of the joints during one step.

    turns (n, 3): for each turning dof the vector whose scalar product with the relative spin of the
    two bodies is the rate of the dof. middle (nb, 4, 3): the mean coordinates of the step.
    """

    turns: jax.Array
    middle: jax.Array


class NaturalCoordinates(eqx.Module):
    """What the equations of motion of a system need in natural coordinates.

    mass (nb, 4, 4): the pseudo-inertias [[m, m c], [m c, E]], E the second moment of the mass about
    the origin, so that kinetic energy is sum P_kl Q'_k . Q'_l / 2 over all bodies.
    constraints: the equations of the joints; that the directors are orthonormal is not among them.
    slides: the coordinates of the prismatic dofs.
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
    tree: Tree

    @property
    def layout(self) -> Layout:
        return layout(self.tree.topology)

    def bodies(self, q: Float[Array, " nq"]) -> Float[Array, "nb 4 3"]:
        """The coordinates (nb, 4, 3) at the configuration q (nq,)."""
        poses = _at(dof_poses(self.tree, q), self.layout.last)
        axes = poses.rotation.transpose().to_array()
        return jnp.concatenate((poses.translation.to_array()[:, None], axes), axis=1)

    def velocities(
        self, bodies: Float[Array, "nb 4 3"], q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, "nb 4 3"]:
        """The rates (nb, 4, 3) of the coordinates at q (nq,), v (nv,)."""
        twists = _at(dof_twists(self.tree, q, v), self.layout.last)
        parts = twists.angular.to_array(), twists.linear.to_array()
        rates = [_apply(bodies[:, 1:], part) for part in parts]
        return directors.motion(bodies, jnp.concatenate(rates, axis=1))

    def coordinates(
        self, bodies: Float[Array, "nb 4 3"], before: Float[Array, " nq"]
    ) -> Float[Array, " nq"]:
        """The configuration q (nq,) at the coordinates (nb, 4, 3).

        before (nq,): a configuration near it. Angles are continued from it over full turns, within
        half a turn, and quaternions are on its side.
        """
        where = self.layout
        axes, parent = bodies[:, 1:], _with_world(bodies)[where.parent]
        base = product(jnp.swapaxes(self.frame, 1, 2), parent[:, 1:])
        turn = product(base, jnp.swapaxes(axes, 1, 2))

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
        anchor = parent[where.free, 0] + _apply(parent[where.free, 1:], self.anchor[where.free])
        positions = product(base[where.free], (bodies[where.free, 0] - anchor)[..., None])
        parts = angles, self.slides(bodies), attitudes.ravel(), positions.ravel()
        return jnp.concatenate(parts)[where.coordinate_order]

    def arms(
        self, middle: Float[Array, "nb 4 3"], rates: Float[Array, "nb 6"], h: jax.Array | float
    ) -> Arms:
        """The geometry of the joints during a step of length h (s) at the rates (nb, 6).

        With g = h w / 2, the angle by which a joint turns about its mean axis a is 2 arctan(s / (1
        + g_A . g_B)), for bodies with the Cayley rates g_A and g_B = g_A + s a: this is the
        composition of rotations in Rodrigues parameters. With this arm the rate of the dof is
        exactly this angle over h, and the work of a torque is torque times angle. A universal joint
        turns about one axis between its parent and its cross, and about the other between the cross
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
        dual, other = reciprocal(first, last)
        cross = parent[j] + jnp.sum(dual * (g[j] - parent[j]), axis=1, keepdims=True) * first
        double = arm(dual, parent[j], cross), arm(other, cross, g[j])
        turns = (single, *double, axes[where.grouped].reshape(-1, 3))
        return Arms(jnp.concatenate(turns), middle)

    def joint_rates(self, arms: Arms, rates: Float[Array, "nb 6"]) -> Float[Array, " nv"]:
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

    def joint_load(self, arms: Arms, tau: Float[Array, " nv"]) -> Float[Array, "nb 6"]:
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

    def _lever(self, bodies: Float[Array, "nb 4 3"]) -> Float[Array, "n 3"]:
        """(n, 3) from the origin of their parents to that of the bodies on free joints."""
        j = self.layout.free
        return bodies[j, 0] - _with_world(bodies)[self.layout.parent[j], 0]

    def weight(self, middle: Float[Array, "nb 4 3"]) -> Float[Array, "nb 6"]:
        """The loads (nb, 6) of gravity."""
        g = self.tree.gravity.to_array()
        return directors.load(middle, self.mass[:, 0, :, None] * g[None, None])

    def body_load(
        self, middle: Float[Array, "nb 4 3"], wrench: Float[Array, "n_bodies 6"]
    ) -> Float[Array, "nb 6"]:
        """The loads (nb, 6) of wrenches (nb of the system, 6) on the bodies, in body frames."""
        on_dofs = _at(self.tree.dof_forces(wrench), self.layout.last)
        parts = on_dofs.moment.to_array(), on_dofs.force.to_array()
        return jnp.concatenate([_apply(middle[:, 1:], part) for part in parts], axis=1)

    def body_momentum(
        self, bodies: Float[Array, "nb 4 3"], velocities: Float[Array, "nb 4 3"]
    ) -> Float[Array, "n_bodies 6"]:
        """The momenta (nb of the system, 6) of the bodies, as wrenches in body frames.

        Those of bodies on fixed joints are with the parents, and zero for themselves.
        """
        where = self.layout
        load = directors.load(bodies, product(self.mass, velocities))
        parts = [product(bodies[:, 1:], load[:, i : i + 3, None])[..., 0] for i in (0, 3)]
        frames = _at(self.tree.offset, where.moving)
        wrench = frames.inverse_force(Force.from_array(jnp.concatenate(parts, axis=1)))
        return _sum_at(where.moving, wrench.to_array(), len(self.tree.topology.bodies))

    def attached(
        self, body: np.ndarray, points: Float[Array, "n 3"]
    ) -> Float[Array, "n world_too 4"]:
        """The combinations (n, nb + 1, 4) that are points (n, 3) of bodies, in their frames.

        body (n,): their indices in `body_names`, the number of these for the world.
        """
        pose = _at(self.tree.offset, body)
        inner = pose.rotation @ Vector.from_array(points) + pose.translation
        return fixed(self.layout.merged_into[body], inner.to_array(), len(self.layout.parent), 1)

    def attitudes(self, bodies: Float[Array, "nb 4 3"], body: np.ndarray) -> Matrix:
        """The attitudes (n,) of bodies of the system, as above, with their directors as columns."""
        axes = _with_world(bodies)[self.layout.merged_into[body], 1:]
        return Matrix.from_array(axes).transpose() @ _at(self.tree.offset, body).rotation

    def kinetic_energy(self, velocities: Float[Array, "nb 4 3"]) -> Float[Array, ""]:
        """sum P_kl Q'_k . Q'_l / 2 (), in J, at the rates (nb, 4, 3) of the coordinates."""
        return jnp.sum(velocities * product(self.mass, velocities)) / 2

    def momentum(
        self, bodies: Float[Array, "nb 4 3"], velocities: Float[Array, "nb 4 3"]
    ) -> Float[Array, "6"]:
        """sum P_kl Q_k x Q'_l, angular about the world origin in N m s, and linear in N s, (6,)."""
        p = product(self.mass, velocities)
        return jnp.concatenate((jnp.sum(jnp.cross(bodies, p), (0, 1)), jnp.sum(p[:, 0], 0)))


def natural_coordinates(tree: Tree) -> NaturalCoordinates:
    """A system in natural coordinates, with the shapes of `NaturalCoordinates`.

    Differentiable with respect to every number of the system. Raises ValueError as `check` does.
    """
    t = tree.topology
    check(t)
    where = layout(t)
    rotation = tree.placement.rotation.to_array()
    first = t.dof_start[where.moving]
    frame = rotation[first]
    anchor = tree.placement.translation.to_array()[first]
    second = jnp.broadcast_to(jnp.eye(3, dtype=frame.dtype), frame.shape)
    constraints, slides = Equations(), Equations()
    for kinds in sorted({t.kinds[b] for b in where.moving}):
        j = np.array([i for i, b in enumerate(where.moving) if t.kinds[b] == kinds])
        if kinds == FREE:
            continue
        # The frames of the joint's dofs in its parent while its coordinates are zero.
        steps = [rotation[first[j] + i] for i in range(len(kinds))]
        frames = list(itertools.accumulate(steps, product))
        along = [f[:, :, 2] for f in frames[: kinds.count("prismatic")]]
        turns = kinds.count("revolute")
        if kinds != BALL:
            frame = frame.at[j].set(frames[min(len(along), len(kinds) - 1)])
        if turns == 2:
            second = second.at[j].set(steps[1])
        joint = JointsOfKind(j, where.parent[j], len(where.parent), anchor[j])
        position(constraints, slides, joint, along, frames[0])
        orientation(constraints, joint, turns, frame[j], second[j])

    inertia = _at(tree.inertia, where.last)
    origin = inertia.second.matrix().to_array()
    trace = jnp.trace(origin, axis1=1, axis2=2)[:, None, None]
    moment = trace / 2 * jnp.eye(3, dtype=origin.dtype)[None] - origin
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
        tree=tree,
    )


def _with_world(bodies: jax.Array) -> jax.Array:
    world = jnp.eye(4, dtype=bodies.dtype)[:, 1:]
    return jnp.concatenate((bodies, world[None]))


def _sum_at(
    index: np.ndarray, values: Float[Array, " n *rest"], count: int
) -> Float[Array, " count *rest"]:
    """(count, ...) the sums of the values (n, ...) by index; larger indices are left out."""
    return jnp.tensordot(
        jnp.asarray(np.arange(count)[:, None] == index, values.dtype),
        values,
        axes=1,
        precision=jax.lax.Precision.HIGHEST,
    )


def _apply(
    axes: Float[Array, "*batch 3 3"], x: Float[Array, "*batch 3"]
) -> Float[Array, "*batch 3"]:
    """sum_k x_k axes_k (..., 3), for axes (..., 3, 3) with the directors as rows."""
    return jnp.sum(axes * x[..., None], axis=-2)


def _at(values, index: np.ndarray):
    return jax.tree.map(lambda a: a[index], values)
