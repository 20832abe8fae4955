"""Bodies under constraints: two machines, and their motion by one of the transition maps.

The constraints are solved in the form of index 1 (11) and stabilised in no way. A step is that of
the classical Runge-Kutta tableau on the local model. Body-fixed twists belong to SE(3), mixed
twists (w in the body, dr/dt in the world) to SO(3) x R^3; both fields come from one acceleration,
d^2r/dt^2 = R (dv/dt + w x v).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...constraints import (
    Frame,
    JointConstraint,
    RevoluteConstraint,
    SphericalConstraint,
    constrain,
)
from ...constraints.equations import equations
from ...constraints.motion import constrained_acceleration
from ...dynamics import body_poses, body_twists
from ...groups import Euclidean, Product, quaternion
from ...groups.components import Vector
from ...integrators import RKMK4, RKMK8, single_step
from ...simulate import simulate
from ...system import Body, Free, Revolute, Spherical, System, chain, tree
from ...system.kinematic_tree import Tree
from .transition import LOCAL, TRANSITION_MAPS, RotationVector, with_quaternion, with_vector


class Machine(NamedTuple):
    """A machine of bodies on free joints under constraints, from a state on that to the exact end.

    joints: the same bodies under one constraint only, by what to call it. start: poses (nb, 7) and
    body twists (nb, 6) of the reference frames. end (nb, 7): the poses after `duration` in s, from
    a simulation in joint coordinates by a method of order 8.
    """

    free: System
    joints: dict[str, System]
    start: tuple[jax.Array, jax.Array]
    end: jax.Array
    duration: float


def heavy_top() -> Machine:
    """A top of 15 kg, 1 m above its pivot, with its reference frame in the centre of mass."""
    top = Body(
        name="top",
        joint=Spherical(),
        mass=15.0,
        com=(0, 1, 0),
        inertia=np.diag([0.234375, 0.46875, 0.234375]),
    )
    joints = {"ground joint": SphericalConstraint(Frame(), Frame("top", (0, -1, 0)))}
    return _machine("heavy top", [top], [(0, 1, 0)], joints, (0.0, 150.0, -4.61538), 0.2)


def revolute_chain() -> Machine:
    """Two links on revolute joints with skew axes.

    The reference frames lie neither in the joints nor in the centres of mass.
    """
    first, second = (1.0, 0.0, 0.0), (0.0, 0.6, 0.8)
    elbow, offset = np.array([0.1, 0.0, -0.5]), np.array([[0.15, 0.1, -0.1], [0.1, -0.2, 0.05]])
    links = [
        Body(
            name="link 1",
            joint=Revolute(axis=first),
            mass=2.0,
            com=(0.0, 0.05, -0.25),
            inertia=np.diag([0.05, 0.04, 0.03]),
        ),
        Body(
            name="link 2",
            joint=Revolute(axis=second),
            position=elbow,
            mass=1.0,
            com=(0.2, 0.0, -0.1),
            inertia=np.diag([0.01, 0.03, 0.025]),
        ),
    ]
    joints = {
        "ground joint": RevoluteConstraint(
            Frame(axis=first), Frame("link 1", -offset[0], axis=first)
        ),
        "inner joint": RevoluteConstraint(
            Frame("link 1", elbow - offset[0], axis=second),
            Frame("link 2", -offset[1], axis=second),
        ),
    }
    return _machine("revolute chain", links, offset, joints, (3.0, -8.0), 1.0)


def _machine(
    name: str,
    bodies: list[Body],
    offset: Any,
    joints: Mapping[str, JointConstraint],
    v: tuple[float, ...],
    duration: float,
) -> Machine:
    """offset (nb, 3): of the reference frames, in m in the frames of the bodies on joints; v (nv,):
    with which these start from the neutral position."""
    loose = [
        replace(b, joint=Free(), position=(0, 0, 0), com=np.subtract(b.com, o))
        for b, o in zip(bodies, offset, strict=True)
    ]
    free, jointed = tree(loose, name=name), chain(bodies, name=f"{name} on joints")

    def frames(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        T, V, o = body_poses(jointed, q), body_twists(jointed, q, v), jnp.asarray(offset, q.dtype)
        r = T[:, :3, 3] + jnp.einsum("bij,bj->bi", T[:, :3, :3], o)
        attitudes = jax.vmap(quaternion.from_matrix)(T[:, :3, :3])
        return jnp.hstack((attitudes, r)), V.at[:, 3:].add(jnp.cross(V[:, :3], o))

    run = simulate(
        jointed,
        jointed.neutral(),
        jnp.asarray(v),
        dt=duration / 1000,
        steps=1000,
        save_every=1000,
        method=RKMK8(),
    )
    start, (end, _) = map(frames, run.q, run.v)
    alone = {joint: constrain(free, constraint) for joint, constraint in joints.items()}
    return Machine(constrain(free, *joints.values()), alone, start, end, duration)


MACHINES = {"heavy top": heavy_top, "revolute chain": revolute_chain}

# Times this a quaternion turns back.
CONJUGATED = np.array([1.0, -1.0, -1.0, -1.0])


@eqx.filter_jit
def march(
    name: str, system: System, start: tuple[jax.Array, jax.Array], h: Any, rows: int, stride: Any
) -> tuple[jax.Array, jax.Array]:
    """The motion under the map `name`, by steps of h (s), every `stride`th state of rows of them.

    start: poses (nb, 7) and body twists (nb, 6); returned likewise (rows, nb, ...). Poses have the
    quaternions that the steps lead to, whose length nothing corrects. h and stride are traced.
    """
    model, n, tau = Tree.of(system), len(start[0]), TRANSITION_MAPS[name]
    vectors, mixed = isinstance(tau, RotationVector), LOCAL[name[1]].group != "SE(3)"
    manifold = Product((*(tau,) * n, Euclidean(6 * n)))
    no_force = jnp.zeros(6 * n, start[0].dtype)

    def state(y: tuple) -> tuple[jax.Array, jax.Array]:
        poses = jnp.stack([with_quaternion(q) if vectors else q for q in y[:-1]])
        rate = y[-1].reshape(n, 6)
        return poses, turned(poses[:, :4] * CONJUGATED, rate) if mixed else rate

    def field(t: jax.Array, y: tuple) -> tuple:
        poses, twists = state(y)
        a, _ = constrained_acceleration(model, poses.ravel(), twists.ravel(), no_force)
        if mixed:
            own = jnp.cross(twists[:, :3], twists[:, 3:])
            a = turned(poses[:, :4], a.reshape(n, 6).at[:, 3:].add(own)).ravel()
        return (*y[-1].reshape(n, 6), a)

    def step(_: Any, y: tuple) -> tuple:
        return single_step(RKMK4(), manifold, field, 0.0, y, h)

    def row(y: tuple, _: None) -> tuple[tuple, tuple]:
        y = jax.lax.fori_loop(0, stride, step, y)
        return y, state(y)

    poses, twists = start
    rate = turned(poses[:, :4], twists) if mixed else twists
    y = (*(with_vector(pose) if vectors else pose for pose in poses), rate.ravel())
    return jax.lax.scan(row, y, length=rows)[1]


def turned(attitudes: jax.Array, twists: jax.Array) -> jax.Array:
    """Twists (..., 6) with the second half turned by quaternions (..., 4): body twists as mixed
    ones, and mixed ones as body twists where the quaternions are conjugated."""
    imaginary, v = Vector.from_array(attitudes[..., 1:]), Vector.from_array(twists[..., 3:])
    v = quaternion.to_matrix_components(attitudes[..., 0], imaginary) @ v
    return jnp.concatenate((twists[..., :3], v.to_array()), axis=-1)


@eqx.filter_jit
def violation(system: System, poses: Any, twists: Any) -> jax.Array:
    """The largest |g| and |A v| of a motion (2,): in m and m/s, or rad and rad/s.

    poses (m, nb, 7), body twists (m, nb, 6).
    """

    def largest(q: jax.Array, v: jax.Array) -> jax.Array:
        constrained = equations(Tree.of(system), q.ravel())
        both = constrained.residual(), constrained.rate(v.ravel())
        return jnp.stack([jnp.max(jnp.abs(a)) for a in both])

    return jnp.max(jax.vmap(largest)(poses, twists), axis=0)
