"""The same machine in absolute coordinates: every body free, every joint a constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..dynamics import body_poses, body_twists
from ..forces.at_joint import AtJoint, JointCoupling
from ..groups import quaternion, so3
from ..solvers.linear import product
from ..system import joints as types
from ..system.arguments import checked
from ..system.body import Body
from ..system.builders import tree
from ..system.frame import Frame
from ..system.named_states import KeptState
from ..system.system import System
from ..system.topology import WORLD
from ..system.tree_numbers import least_rotation
from ..system.validation import ModelError, nearest
from . import joints as pairs
from .constraint import Constraint, CoordinateConstraint, MixedConstraint, constrain
from .coupled import Gear, Transmission
from .joints import HelicalConstraint
from .lock import measurable

GROUPS = ("SE3", "SO3xR3")
# The numbers of joints that absolute coordinates cannot hold, and their neutral values.
_EXTRAS = {
    "armature": {"armature": 0.0},
    "damping": {"damping": 0.0},
    "friction": {"friction": 0.0},
    "stiffness": {"stiffness": 0.0},
    "limits": {
        **dict.fromkeys(("lower", "min_effort"), -np.inf),
        **dict.fromkeys(("upper", "max_velocity", "max_effort"), np.inf),
    },
}
# The constraint that corresponds to a joint type, and the dof that has its axis.
_PAIRS: dict[type[types.Joint], tuple[Callable[..., Constraint], int | None]] = {
    types.Fixed: (pairs.FixedConstraint, None),
    types.Revolute: (pairs.RevoluteConstraint, 0),
    types.Continuous: (pairs.RevoluteConstraint, 0),
    types.Prismatic: (pairs.PrismaticConstraint, 0),
    types.Planar: (pairs.PlanarConstraint, 2),
    types.Spherical: (pairs.SphericalConstraint, None),
    types.Translation: (pairs.TranslationConstraint, None),
}
# The rotations from z to x and from z to y.
_TO_X = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
_TO_Y = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def absolute(system: System, group: str = "SE3", *, without: Sequence[str] = ()) -> System:
    """The same machine in absolute coordinates: free bodies, and a constraint for each joint.

    Every body keeps its name, mass, com (3,), inertia (3, 3) and frame. group: "SE3" puts each body
    on a free joint, with its pose and body-fixed twist. "SO3xR3" puts it on a translation joint (of
    a massless body) and a ball joint, with separate position and orientation, the velocity of its
    origin in world axes (m/s), and its body-fixed angular velocity. Every joint becomes the
    constraint of its type between the frames of parent and child, in the order of the joints; a
    free joint becomes none. Bodies without inertia on fixed joints stay fixed. Couplings, actuators
    along axes, and constraints between frames are kept. A mimic joint becomes a `Gear`; where the
    angle it follows may exceed half a turn, so that turns would have to be counted, it becomes a
    `Transmission`. `absolute_state` converts states. The result is differentiable with respect to
    the leaves of the system.

    without: which of "armature", "damping", "friction", "stiffness" and "limits" of the joints to
    leave out. Raises `ModelError`, with names, for joints that have others of these, for bodies
    without inertia on joints that are not fixed, for constraints between joint coordinates, and for
    actuators, stops, friction and encoders at joints. For traced leaves the masses are NaN instead.

    A machine of free bodies can also be built directly:

        crank = dl.Body(name="crank", joint=dl.Free(), mass=1.0, inertia=...)
        rod = dl.Body(name="rod", joint=dl.Free(), mass=1.0, inertia=...)
        hinge, pin = dl.Frame(axis=(0, 1, 0)), dl.Frame("crank", axis=(0, 1, 0))
        machine = dl.constrain(
            dl.tree([crank, rod]),
            dl.constraints.RevoluteConstraint(hinge, pin),
            dl.constraints.SphericalConstraint(dl.Frame("crank", (1, 0, 0)), dl.Frame("rod")),
        )
    """
    if group not in GROUPS:
        raise ValueError(f"absolute: group is {group!r}; it must be 'SE3' or 'SO3xR3'")
    lost = _lost(system, without)
    for c in system.constraints:
        if isinstance(c, CoordinateConstraint | MixedConstraint) and c.joints:
            raise ModelError(
                f"{system.name}: {c} is between joint coordinates, which the absolute machine has "
                "not; take it off and put difflie.constraints.Gear there"
            )
    coupled = (*system.couplings, *system.sensors)
    standing = [
        *(c for c in coupled if isinstance(c, AtJoint | JointCoupling)),
        *(actuator for actuator in system.actuators if actuator.in_coordinates),
    ]
    for part in standing:
        raise ModelError(
            f"{system.name}: {part} stands at a joint, which the absolute machine has not; take "
            "it off"
        )
    free = _free(system)
    made = _joints(system)
    kept = [c for b, c in enumerate(made) if c is not None and free[b]]
    result = tree(
        [body for b in range(len(free)) for body in _bodies(system, b, group, free[b])],
        name=system.name,
    )
    result = result.astype(system.dtype)
    place = np.array([result.body_names.index(name) for name in system.body_names])
    staying = np.flatnonzero(~free)
    old, moved = system.joints, place[staying]
    numbers = {
        "mass": (place, jnp.where(lost, jnp.nan, system.bodies.mass)),
        "com": (place, system.bodies.com),
        "inertia": (place, system.bodies.inertia),
        "position": (moved, old.position[staying]),
        "rotation": (moved, old.rotation[staying]),
    }
    owners = {"mass": result.bodies, "com": result.bodies, "inertia": result.bodies}
    massless = np.setdiff1d(np.arange(len(result.body_names)), place)
    leaves: dict[str, Any] = {}
    for name, (where, values) in numbers.items():
        whole = getattr(owners.get(name, result.joints), name).at[where].set(values)
        leaves[name] = whole.at[massless].set(0) if name in owners else whole
    result = result.replace(gravity=system.gravity, **leaves)
    result = constrain(result, *kept, *_mimicked(system, made))
    constraints = (*result.constraints, *system.constraints)
    carried = {
        group: getattr(system, group) for group in ("couplings", "actuators", "sensors", "frames")
    }
    states = {
        name: KeptState(
            *absolute_state(result, system, state.q, state.v), state.commands, state.internal
        )
        for name, state in system.states.items()
    }
    topology = replace(result.topology, not_modelled=system.not_modelled)
    made = replace(result, topology=topology, constraints=constraints, states=states, **carried)
    return measurable(made)


def absolute_state(
    machine: System, system: System, q: ArrayLike, v: ArrayLike
) -> tuple[Float[Array, " n_coordinates"], Float[Array, " n_velocities"]]:
    """The state of `machine`, which is `absolute(system)`, for q (nq,), v (nv,) of the system.

    Returns the coordinates (7 n,), positions in m, and the velocities (6 n,) in rad/s and m/s, of n
    free bodies, in the order of the machine's q and v. Raises as `checked` does, and ValueError for
    a machine with bodies that the system does not have.
    """
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    poses, twists = body_poses(system, q), body_twists(system, q, v)
    t = machine.topology
    coordinates, velocities = [q[:0]], [v[:0]]
    for b, kind in enumerate(map(type, t.types)):
        if kind is types.Fixed:
            continue
        name = t.bodies[t.parents.index(b)] if kind is types.Translation else t.bodies[b]
        if name not in system.body_names:
            raise ValueError(
                f"absolute_state: {machine.name} has a body {name!r} and {system.name} has not; "
                "give the system of which the machine was made"
            )
        k = system.body_names.index(name)
        rotation, position, twist = poses[k, :3, :3], poses[k, :3, 3], twists[k]
        if kind is not types.Translation:
            coordinates.append(quaternion.from_matrix(rotation))
            velocities.append(twist[:3])
        if kind is types.Free:
            coordinates.append(position)
            velocities.append(twist[3:])
        if kind is types.Translation:
            coordinates.append(position)
            velocities.append(product(rotation, twist[3:]))
    return jnp.concatenate(coordinates), jnp.concatenate(velocities)


def _lost(system: System, without: Sequence[str]) -> jax.Array | bool:
    """Whether traced joints have numbers that would be lost; raises for concrete ones."""
    for name in without:
        if name not in _EXTRAS:
            raise ValueError(
                f"absolute: without has {name!r}{nearest(name, _EXTRAS)}; "
                f"known are {', '.join(_EXTRAS)}"
            )
    t, found, lost = system.topology, {}, False
    for extra, fields in _EXTRAS.items():
        for field, nothing in fields.items() if extra not in without else ():
            values = getattr(system.joints, field)
            if isinstance(values, Tracer):
                lost = lost | jnp.any(values != nothing)
                continue
            for dof in np.flatnonzero(np.asarray(values) != nothing):
                found.setdefault(extra, {})[t.joints[t.dof_body[dof]]] = None
    if found:
        what = "; ".join(f"{extra} of {', '.join(map(repr, on))}" for extra, on in found.items())
        raise ModelError(
            f"{system.name}: an absolute machine has no place for the {what}; leave them out with "
            f"without={tuple(found)!r}"
        )
    return lost


def _free(system: System) -> np.ndarray:
    """A mask (nb,) of the bodies that become free: all with inertia; others must be fixed."""
    t, bodies = system.topology, system.bodies
    free = np.ones(len(t.bodies), dtype=bool)
    if isinstance(bodies.mass, Tracer) or isinstance(bodies.inertia, Tracer):
        return free
    mass, inertia = np.asarray(bodies.mass), np.asarray(bodies.inertia)
    moments = np.linalg.eigvalsh((inertia + np.swapaxes(inertia, -1, -2)) / 2)
    heavy = (mass > 0) & (moments[:, 0] > 1e-12 * moments[:, 2])
    fixed = np.array([not kinds for kinds in t.kinds])
    if not np.all(heavy | fixed):
        names = ", ".join(repr(t.bodies[b]) for b in np.flatnonzero(~heavy & ~fixed))
        raise ModelError(
            f"{system.name}: the bodies {names} move and have no inertia of their own, so that as "
            "free bodies nothing would determine their motion; give them mass and inertia, which "
            "may be taken from bodies fixed to them"
        )
    return heavy


def _bodies(system: System, b: int, group: str, free: bool) -> list[Body]:
    """The bodies that body b becomes, with placeholder numbers."""
    t = system.topology
    name, some = t.bodies[b], {"mass": 1.0, "inertia": np.eye(3)}
    if not free:
        parent = None if t.parents[b] == WORLD else t.bodies[t.parents[b]]
        return [Body(name=name, joint=types.Fixed(), parent=parent)]
    if group == "SE3":
        return [Body(name=name, joint=types.Free(), **some)]
    mover = f"{name} (position)"
    return [
        Body(name=mover, joint=types.Translation()),
        Body(name=name, joint=types.Spherical(), parent=mover, **some),
    ]


def _joints(system: System) -> list[Constraint | None]:
    """The constraint for every joint; None for free ones."""
    t, joints = system.topology, system.joints
    turns = jax.vmap(so3.exp)(joints.rotation)
    aligned = jax.vmap(least_rotation)(joints.axis)
    made: list[Constraint | None] = []
    for b, kind in enumerate(map(type, t.types)):
        axes = aligned[int(t.dof_start[b]) : int(t.dof_start[b + 1])]
        parent = None if t.parents[b] == WORLD else t.bodies[t.parents[b]]
        made.append(_joint(system, b, kind, (parent, turns[b]), axes))
    return made


def _joint(
    system: System,
    b: int,
    kind: type[types.Joint],
    above: tuple[str | None, jax.Array],
    aligned: jax.Array,
) -> Constraint | None:
    joints, (parent, turn) = system.joints, above
    unit = jnp.eye(3, dtype=system.dtype)

    def frames(first: jax.Array, second: jax.Array) -> tuple[Frame, Frame]:
        outer = product(turn, first)
        return (
            Frame(parent, joints.position[b], outer),
            Frame(system.body_names[b], jnp.zeros_like(joints.position[b]), second),
        )

    if kind is types.Free:
        return None
    if kind is types.Universal:
        axes = joints.axis[int(system.topology.dof_start[b]) :][:2]
        a, c = (x / jnp.sqrt(jnp.sum(x * x)) for x in axes)
        sine, cosine = jnp.cross(a, c), jnp.sum(a * c)
        angle = jnp.arctan2(jnp.sqrt(jnp.sum(sine * sine)), cosine)
        both = frames(aligned[0] @ _TO_X, aligned[1] @ _TO_Y)
        return pairs.UniversalConstraint(*both, angle=angle)
    if kind is types.Helical:
        both = frames(aligned[0], aligned[0])
        pitch = joints.pitch[int(system.topology.dof_start[b])]
        still = not isinstance(pitch, Tracer) and not pitch
        return pairs.RevoluteConstraint(*both) if still else HelicalConstraint(*both, pitch=pitch)
    if kind not in _PAIRS:
        raise ModelError(
            f"{system.name}: there is no constraint like the {kind.type_name()} joint "
            f"{system.topology.joints[b]!r}, so that the absolute machine cannot have it; use "
            f"joints of the types {', '.join(cls.__name__ for cls in _PAIRS)}, Helical or Universal"
        )
    pair, along = _PAIRS[kind]
    axis = unit if along is None else aligned[along]
    return pair(*frames(axis, axis))


def _mimicked(system: System, made: list[Any]) -> list[Constraint]:
    """The constraints for the mimic joints, between the joints as constraints."""
    t, joints = system.topology, system.joints
    laws: list[Constraint] = []
    for b, source in enumerate(t.mimics):
        if source is None:
            continue
        ratio, offset = joints.multiplier[len(laws)], joints.offset[len(laws)]
        first, second = made[b], made[source]
        if _counted(system, source, first, second, ratio):
            laws.append(Gear(first, second, -ratio, offset))
        else:
            laws.append(Transmission(first, second, -ratio))
    return laws


def _counted(system: System, source: int, first: Any, second: Any, ratio: jax.Array) -> bool:
    """Whether the followed coordinate can be read from poses, as far as the law needs it."""
    if not isinstance(second, pairs.RevoluteConstraint):
        return True
    turning = isinstance(first, pairs.RevoluteConstraint)
    if turning and not isinstance(ratio, Tracer) and float(ratio).is_integer():
        return True
    dof = int(system.topology.dof_start[source])
    limits = system.joints.lower[dof], system.joints.upper[dof]
    return all(not isinstance(x, Tracer) and abs(float(x)) < np.pi for x in limits)
