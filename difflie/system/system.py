"""The `System`: a tree of rigid bodies, as data."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from ..groups import FlatProduct
from .fields import declared, number
from .frame import Frame, FrameLike, as_frame, composed
from .frozen import frozen, is_frozen, unfreeze
from .named_states import KeptState, NamedState
from .protocols import (
    ActuatorElement,
    ConstraintElement,
    ForceElement,
    SensorElement,
    ShapeElement,
)
from .shown import still_idle, system_html, system_text
from .topology import Topology
from .validation import ModelError, as_array, format_value, in_precision, nearest, real_numbers


class Bodies(eqx.Module):
    """The mass properties of nb bodies, each in its body frame.

    mass (nb,) in kg; com (nb, 3), the centre of mass in m; inertia (nb, 3, 3) ABOUT THE CENTRE OF
    MASS in kg m^2, of which only the symmetric part counts.
    """

    mass: jax.Array = eqx.field(converter=number(unit="kg", shape=None, nonnegative=True))
    com: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    inertia: jax.Array = eqx.field(converter=number(unit="kg m^2", shape=None, kind="inertia"))


class Joints(eqx.Module):
    """The numbers of the joints: one joint for each body, one entry for each of its dofs.

    position (nb, 3) in m and rotation (nb, 3), a rotation vector in rad: the joint frame in the
    parent's body frame. It is the body frame while the coordinate is zero. axis (dofs, 3), of a
    length from 1e-9 to 1e9: the directions of the dofs in the joint frame, used for joints in
    series only. pitch (dofs,) in m/rad: used for helical dofs only.

    armature, damping, friction (dofs,): rotor inertia, viscous and Coulomb friction at the joint.
    friction_velocity (dofs,): the velocity over which Coulomb friction rises smoothly. stiffness,
    spring_reference (dofs,): a linear spring and the coordinate at which it has no force; only for
    dofs whose coordinates are plain numbers. lower, upper, max_velocity, max_effort (dofs,):
    limits, infinite where there are none. min_effort (dofs,): the lower limit of the effort, which
    is -max_effort where this is infinite; see `effort_limits`.

    multiplier, offset (n_mimic,): the laws of the mimic joints. numbers: the numbers that joint
    types declare of their own, by type name in small letters and field, stacked over the joints of
    the type (n, ...): numbers["wheel"]["radius"].
    """

    position: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    rotation: jax.Array = eqx.field(converter=number(unit="rad", shape=None, kind="rotation"))
    axis: jax.Array = eqx.field(converter=number(shape=None, kind="direction"))
    pitch: jax.Array = eqx.field(converter=number(unit="m/rad", shape=None))
    armature: jax.Array = eqx.field(
        converter=number(unit="kg m^2 or kg", shape=None, nonnegative=True)
    )
    damping: jax.Array = eqx.field(
        converter=number(unit="N m s/rad or N s/m", shape=None, nonnegative=True)
    )
    friction: jax.Array = eqx.field(converter=number(unit="N m or N", shape=None, nonnegative=True))
    friction_velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s or m/s", shape=None, positive=True)
    )
    stiffness: jax.Array = eqx.field(
        converter=number(unit="N m/rad or N/m", shape=None, nonnegative=True)
    )
    spring_reference: jax.Array = eqx.field(converter=number(unit="rad or m", shape=None))
    lower: jax.Array = eqx.field(converter=number(unit="rad or m", shape=None, finite=False))
    upper: jax.Array = eqx.field(converter=number(unit="rad or m", shape=None, finite=False))
    max_velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s or m/s", shape=None, least=0, finite=False)
    )
    max_effort: jax.Array = eqx.field(
        converter=number(unit="N m or N", shape=None, least=0, finite=False)
    )
    min_effort: jax.Array = eqx.field(
        converter=number(unit="N m or N", shape=None, most=0, finite=False)
    )
    multiplier: jax.Array = eqx.field(converter=number(shape=None))
    offset: jax.Array = eqx.field(converter=number(unit="rad or m", shape=None))
    numbers: dict[str, dict[str, jax.Array]] = eqx.field(default_factory=dict)

    @property
    def effort_limits(self) -> tuple[jax.Array, jax.Array]:
        """The least and the greatest effort (dofs,) in N m or N, infinite where there is none."""
        least = jnp.where(jnp.isinf(self.min_effort), -self.max_effort, self.min_effort)
        return least, self.max_effort


class System(eqx.Module):
    """A tree of rigid bodies on joints. Every array is a differentiable, batchable leaf.

    Its state is q (nq,) in rad and m, with quaternions (w, x, y, z), and v (nv,) in rad/s and m/s,
    body-fixed and angular part first at ball and free joints; joints are in the order of
    `joint_names`.

    bodies: mass (nb,) in kg, com (nb, 3) in m and inertia (nb, 3, 3) in kg m^2 about it, in body
    frames. joints: position (nb, 3) in m and rotation (nb, 3), a rotation vector in rad, in the
    parents' frames, and the numbers of all degrees of freedom as of `Joint`. topology: names and
    parents, which are no leaves. gravity (3,) in m/s^2, world coordinates. couplings: springs,
    dampers and the like between bodies, and actuators, added by `difflie.attach`. constraints:
    closed loops and the like, added by `difflie.constrain`. sensors: how the motion is measured,
    added by `difflie.identify.with_sensors`; they do not affect the motion. frames: named frames on
    bodies, such as the tip of a tool, added by `with_frames`; their names stand wherever that of a
    body does, and where a body has the same name it is meant. states: named states, such as the
    keyframes of a file, see `state`. idle_shapes: the `shapes` that are in no contact, added by
    `with_shapes`. Build a system with
    `difflie.load`, `difflie.chain` or `difflie.tree`; `frozen` makes constants of its numbers.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(), mass=2.0)])
    >>> heavy = lift.replace(mass=2 * lift.bodies.mass)
    >>> heavy.body_names, float(dl.total_mass(heavy))
    (('lift',), 4.0)
    """

    # What is carried along, see `carried`: beside the fields, so that nothing else reads it.
    __slots__ = ("_carried",)

    bodies: Bodies
    joints: Joints
    gravity: jax.Array = eqx.field(converter=number(unit="m/s^2", shape=None))
    topology: Topology = eqx.field(static=True)
    couplings: tuple[ForceElement, ...] = ()
    constraints: tuple[ConstraintElement, ...] = ()
    sensors: tuple[SensorElement, ...] = ()
    actuators: tuple[ActuatorElement, ...] = ()
    frames: dict[str, Frame] = eqx.field(default_factory=dict)
    states: dict[str, KeptState] = eqx.field(default_factory=dict)
    idle_shapes: dict[str, ShapeElement] = eqx.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the machine, for messages."""
        return self.topology.name

    @property
    def not_modelled(self) -> tuple[str, ...]:
        """What of its file would change the motion and is not in the system, a text for each."""
        t = self.topology
        return (*still_idle(t.not_touching, self.idle_shapes), *t.not_modelled)

    @property
    def nq(self) -> int:
        """The number of coordinates: the length of q."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """The number of velocities: the length of v, a and tau."""
        return self.topology.nv

    @property
    def nu(self) -> int:
        """The length of a control: the number of actuators, or nv without actuators."""
        return len(self.actuators) or self.nv

    @property
    def nz(self) -> int:
        """The number of internal states of actuators and couplings; see `difflie.Stateful`."""
        return sum(len(part.states) for part in (*self.actuators, *self.couplings))

    @property
    def state_labels(self) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each internal state (nz,), such as ("valve/flow", "m^3/s").

        Those of the actuators come first, then those of the couplings.
        """
        parts: list[tuple[str, Any]] = [(a.label, a) for a in self.actuators]
        for i, part in enumerate(self.couplings):
            parts.append((part.name or getattr(part, "joint", None) or f"couplings/{i}", part))
        return tuple((f"{label}/{name}", u) for label, part in parts for name, u in part.states)

    @property
    def shapes(self) -> dict[str, ShapeElement]:
        """The shapes of the bodies and of the world by name, those in contact included.

        See `with_shapes`, and `difflie.touching`, which lets them touch.
        """
        in_contact = [coupling.shapes for coupling in self.couplings]
        return {n: each for group in (self.idle_shapes, *in_contact) for n, each in group.items()}

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """The actuators in the order of a control; empty if that is the generalised force."""
        return tuple(a.label for a in self.actuators)

    def coupling(self, name: str) -> Any:
        """The coupling that was attached with this name, see `difflie.attach`.

        Raises ValueError for an unknown name, with the nearest one.
        """
        for coupling in self.couplings:
            if coupling.name == name:
                return coupling
        known = [c.name for c in self.couplings if c.name is not None]
        near = nearest(str(name), known) or f"; named are {', '.join(known) or 'none'}"
        raise ValueError(f"{self.name}: no coupling is named {format_value(name)}{near}")

    def frame(self, name: str) -> Frame:
        """The frame of this name: the own frame of a body, or one of `frames`.

        Where both have the name it is the body's; "site:NAME" is that of `frames` in any case.
        Raises `ModelError` for an unknown name, with the nearest one.
        """
        if name in self.body_names:
            return Frame(name)
        known = self.frames.get(name, self.frames.get(str(name).removeprefix("site:")))
        if known is not None:
            return known
        if name in self.topology.joints:
            moved = self.body_names[self.topology.joints.index(name)]
            near = f"; the joint of that name moves {moved!r}"
        else:
            near = nearest(str(name), [*self.body_names, *self.frames])
        no_frame = ", and no frame" if self.frames else ""
        raise ModelError(f"{self.name}: no body is named {format_value(name)}{no_frame}{near}")

    def state(self, name: str) -> NamedState:
        """The state of this name, such as that of a keyframe: (q, v, command).

        q (nq,), v (nv,) in rad and m and the same per s; command (nu,), None where the state says
        nothing on the actuators of the system; those it does not name are given 0. Raises
        ValueError for an unknown name, with the nearest one.

        >>> arm = dl.chain([dl.Body(name="arm", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0))])
        >>> arm = arm.with_state("up", q=[1.5])
        >>> print(arm.state("up").q, arm.state("up").v)
        [1.5] [0.]
        """
        kept, command = self._kept(name), None
        if any(label in kept.commands for label in self.actuator_names):
            zero = jnp.zeros((), self.dtype)
            command = jnp.stack([kept.commands.get(n, zero) for n in self.actuator_names])
        return NamedState(kept.q, kept.v, command)

    def internal_state(self, name: str) -> Float[Array, " nz"]:
        """The internal states (nz,) in a named state, such as the activations of a keyframe.

        They are the z0 of a simulation. Those on which the state says nothing are the z0 of their
        parts. Raises ValueError for an unknown name, with the nearest one.
        """
        kept, labels = self._kept(name).internal, iter(self.state_labels)
        parts: list[Any] = [part for part in (*self.actuators, *self.couplings) if part.states]
        held: list[jax.Array] = [value for part in parts for value in part.z0]
        found = [kept.get(next(labels)[0], value) for value in held]
        return jnp.stack(found) if found else jnp.zeros(0, self.dtype)

    def _kept(self, name: str) -> KeptState:
        if name not in self.states:
            known = ", ".join(self.states) or "none"
            near = nearest(str(name), self.states) or f"; there are {known}"
            raise ValueError(f"{self.name}: no state is named {format_value(name)}{near}")
        return self.states[name]

    def with_state(
        self,
        name: str,
        q: ArrayLike,
        v: ArrayLike | None = None,
        commands: Mapping[str, ArrayLike] | None = None,
        internal: Mapping[str, ArrayLike] | None = None,
    ) -> System:
        """The same system with a named state, added or in place of the one of this name.

        q (nq,); v (nv,), at rest by default; commands: those of actuators, by name; internal:
        internal states, by their names in `state_labels`. Raises ValueError for another shape, and
        for numbers that are not finite.
        """
        numbers = {"q": (q, self.nq), "v": (np.zeros(self.nv) if v is None else v, self.nv)}
        kept = []
        for what, (value, size) in numbers.items():
            array = in_precision(real_numbers(self.name, what, value), self.dtype)
            if array.shape != (size,) or not (
                isinstance(array, Tracer) or np.isfinite(array).all()
            ):
                raise ValueError(
                    f"{self.name}: {what} of the state {format_value(name)} has shape "
                    f"{array.shape}; give {size} finite numbers"
                )
            kept.append(array)
        given = ({} if each is None else each for each in (commands, internal))
        scalars = [{k: jnp.asarray(x, self.dtype) for k, x in each.items()} for each in given]
        state = KeptState(*kept, *scalars)
        return dataclasses.replace(self, states={**self.states, name: state})

    def with_frames(self, frames: Mapping[str, FrameLike]) -> System:
        """The same system with named frames added to those it has, and replaced where it has them.

        frames: by name, each a `Frame` on a body, on the world or on a named frame, also one before
        it.
        Raises `ModelError` for a name that is empty, and a frame on an unknown body.

        >>> arm = dl.chain([dl.Body(name="arm", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0))])
        >>> arm = arm.with_frames({"tip": dl.Frame("arm", position=(1, 0, 0))})
        >>> print(dl.pose(arm, [np.pi / 2], "tip")[:3, 3].round(3))
        [0. 1. 0.]
        """
        system = self
        for name, frame in frames.items():
            if not isinstance(name, str) or not name:
                raise ModelError(
                    f"{self.name}: a frame is named {format_value(name)}; give it a name"
                )
            added = as_frame(frame)
            if added.body is not None:
                added = composed(system.frame(added.body), added)
            added = jax.tree.map(lambda a: jnp.asarray(a, self.dtype), added)
            system = dataclasses.replace(system, frames={**system.frames, name: added})
        return system

    def with_shapes(self, shapes: Mapping[str, ShapeElement]) -> System:
        """The same system with shapes added to those it has, by name.

        shapes: such as `difflie.Sphere("foot", 0.02)`, each on a body, a named frame or the world.
        They touch nothing, see `difflie.touching`. Raises `ModelError` for a name that is empty or
        taken, for an unknown body, and for faults of their numbers.

        >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Free(), mass=1.0)])
        >>> ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
        >>> list(ball.shapes)
        ['ball', 'ground']
        """
        added = dict(self.idle_shapes)
        for name, shape in shapes.items():
            said = f"{self.name}: the shape {format_value(name)}"
            if not isinstance(name, str) or not name:
                raise ModelError(f"{said} has no name; give it one")
            if name in self.shapes:
                raise ModelError(f"{said} is there already; give it another name")
            if not isinstance(shape, ShapeElement):
                raise ModelError(
                    f"{said} is {format_value(shape)}; give a shape, such as dl.Sphere(body, 0.1)"
                )
            for fault in shape.problems():
                raise ModelError(f"{said}: {fault}")
            if shape.frame.body is not None:
                frame = composed(self.frame(shape.frame.body), shape.frame)
                shape = eqx.tree_at(lambda s: s.frame, shape, frame)
            added[name] = jax.tree.map(lambda a: jnp.asarray(a, self.dtype), shape)
        return dataclasses.replace(self, idle_shapes=added)

    @property
    def body_names(self) -> tuple[str, ...]:
        """All bodies in the order of `body_poses`, including those on fixed joints."""
        return self.topology.bodies

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints with entries in q and v, in that order; no fixed and no mimic joints."""
        return tuple(self.topology.joints[b] for b in self.topology.coordinate_joints)

    @property
    def manifold(self) -> FlatProduct:
        """The configuration manifold of q (nq,), with tangents v (nv,)."""
        return self.topology.manifold

    @property
    def dtype(self) -> np.dtype:
        """The floating precision of its numbers."""
        return self.bodies.mass.dtype

    def neutral(self) -> Float[Array, " {self.nq}"]:
        """The configuration (nq,) with all coordinates zero and all attitudes the identity."""
        return as_array(self.manifold.identity().astype(self.dtype))

    def astype(self, dtype: DTypeLike) -> System:
        """The same system with all numbers in another floating precision.

        Raises TypeError for another type, such as int, in which numbers would be lost.
        """
        if not jnp.issubdtype(dtype, jnp.floating):
            raise TypeError(
                f"{self.name}: astype({format_value(dtype)}) is no floating-point type; give "
                "float32 or float64"
            )
        if is_frozen(self):
            with jax.ensure_compile_time_eval():
                return frozen(unfreeze(self).astype(dtype))
        return jax.tree.map(lambda a: a.astype(dtype), self)

    def frozen(self) -> System:
        """The same system with its numbers as compile-time constants.

        Everything that depends on numbers alone is computed in advance, in double precision and
        rounded once. This about halves the code of a step. The frozen system can be used like this
        one, also in `jax.jit`, `jax.vmap` and `jax.grad`, but it is a pytree without leaves:
        nothing is differentiated with respect to its numbers, and they are never batched. It equals
        every frozen system with equal numbers, for which nothing is compiled again; every other one
        needs programs of its own. The gradient with respect to a frozen system is that system
        itself.

        `replace`, `astype`, `attach` and the like give frozen systems. Raises TypeError for traced
        numbers, also in these, and ValueError for a batch of systems.
        """
        if np.ndim(self.bodies.mass) != 1:
            raise ValueError(
                f"{self.name}: this is a batch of systems, and the numbers of a frozen one are "
                "constants; freeze one of them: jax.tree.map(lambda a: a[0], system).frozen()"
            )
        return frozen(self)

    def with_constraints(self, constraints: tuple[ConstraintElement, ...]) -> System:
        """The same system with other constraints."""
        return dataclasses.replace(self, constraints=constraints)

    def replace(self, **leaves: Any) -> System:
        """A copy with some leaves replaced, by name: `system.replace(mass=..., gravity=...)`.

        Names are the fields of `bodies`, `joints` and `gravity`. A new value has the shape of the
        old one, except for leading batch axes under `jax.vmap`. Raises TypeError for an unknown
        name, with the nearest known one, and for values that are not real numbers. Raises
        ValueError for another shape and for concrete numbers that no machine has, such as a
        negative mass.
        """
        owners = {
            **{name: "bodies" for name in Bodies.__dataclass_fields__},
            **{name: "joints" for name in Joints.__dataclass_fields__ if name != "numbers"},
        }
        system = self
        for name, value in leaves.items():
            if "/" in name:
                raise TypeError(
                    f"System.replace takes names of leaves, such as mass, and {name!r} is a path; "
                    f"use dl.Parameters(system, [{name!r}]).with_values([...])"
                )
            if name in self.__dataclass_fields__ and name != "gravity":
                raise TypeError(
                    f"System.replace takes numbers, and {name} are parts of a system; use "
                    f"`import dataclasses` and dataclasses.replace(system, {name}=...)"
                )
            if name != "gravity" and name not in owners:
                near = difflib.get_close_matches(name, [*owners, "gravity"], 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                if name in (*self.body_names, *self.joint_names):
                    field = "mass" if name in self.body_names else "damping"
                    hint = f"; use dl.Parameters(system, ['{name}/{field}']).with_values([...])"
                raise TypeError(f"System.replace: there is no leaf {name!r}{hint}")
            group = owners.get(name)
            owner = system if group is None else getattr(system, group)
            old = getattr(owner, name)
            new = in_precision(real_numbers("System.replace", name, value), self.dtype)
            if new.shape != old.shape:
                raise ValueError(
                    f"System.replace: {name} has shape {old.shape}, got {new.shape}; "
                    "to batch over machines, call replace inside jax.vmap"
                )
            fault = NUMBERS[name].fault(name, new)
            if fault:
                raise ModelError(f"System.replace: {fault}")
            owner = dataclasses.replace(owner, **{name: new})
            system = owner if group is None else dataclasses.replace(system, **{group: owner})
        return system

    def __repr__(self) -> str:
        return system_text(self) or super().__repr__()

    def _repr_html_(self) -> str | None:
        return system_html(self)


# The declarations of the numeric leaves of a system without couplings and constraints, by name.
NUMBERS = declared(Bodies) | declared(Joints) | declared(System)


def carrying(system: System, tree: Any) -> System:
    """The same system with its tree, so that what gets it need not make the tree again.

    The tree belongs to one object: it is no field, and copies of a system, such as those with other
    numbers, and what comes out of a pytree, carry none. So it never disagrees with the numbers.
    """
    made = object.__new__(type(system))
    vars(made).update(vars(system))
    object.__setattr__(made, "_carried", tree)
    return made


def carried_tree(system: System) -> Any:
    """The tree that a system carries; None if it carries none."""
    return getattr(system, "_carried", None)
