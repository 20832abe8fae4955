"""The `System`: a tree of rigid bodies, as data."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import FlatProduct
from .fields import declared, number
from .frozen import frozen, is_frozen, thawed
from .topology import Topology
from .validation import ModelError, real_numbers


class Bodies(eqx.Module):
    """The mass properties of nb bodies, each in its body frame.

    mass (nb,) in kg; com (nb, 3) the centre of mass in m; inertia (nb, 3, 3) ABOUT THE CENTRE OF
    MASS in kg m^2, of which the symmetric part counts.
    """

    mass: jax.Array = eqx.field(converter=number(unit="kg", shape=None, nonnegative=True))
    com: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    inertia: jax.Array = eqx.field(converter=number(unit="kg m^2", shape=None, kind="inertia"))


class Joints(eqx.Module):
    """The numbers of the joints; one joint for each body, one entry of a leaf for each dof.

    position (nb, 3) in m and rotation (nb, 3), a rotation vector in rad: the joint frame in the
    parent body's frame; it is the body frame while the coordinate is zero.
    axis (dofs, 3), of a length from 1e-9 to 1e9: the directions of the degrees of freedom in the
    joint frame; only the dofs of joints in series are used. pitch (dofs,) in m/rad: helical dofs
    only.
    armature, damping, friction (dofs,): inertia, viscous and Coulomb friction at the joint.
    friction_velocity (dofs,): the velocity over which Coulomb friction rises smoothly.
    stiffness, spring_reference (dofs,): a linear spring and the coordinate at which it is at rest;
    dofs whose coordinates are no plain numbers have none.
    lower, upper, max_velocity, max_effort (dofs,): limits, infinite where there are none.
    multiplier, offset (n_mimic,): the laws of the mimic joints.
    numbers: what joint types declare beyond these, by the type's name in small letters and the
    field, (n, ...) stacked over the joints of the type: numbers["wheel"]["radius"].
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
    multiplier: jax.Array = eqx.field(converter=number(shape=None))
    offset: jax.Array = eqx.field(converter=number(unit="rad or m", shape=None))
    numbers: dict[str, dict[str, jax.Array]] = eqx.field(default_factory=dict)


class System(eqx.Module):
    """A tree of rigid bodies on joints. Every array is a differentiable, batchable leaf.

    gravity (3,) in m/s^2 and world coordinates. couplings: springs, dampers and the like between
    bodies, and actuators, as `difflie.attach` puts them there; constraints: closed loops and the
    like, as `difflie.constrain` does; sensors: how its motion is read, as
    `difflie.identify.with_encoders` does; no motion depends on them. Build a system with
    `difflie.load`, `difflie.chain` or `difflie.tree`; `frozen` makes constants of its numbers.
    """

    bodies: Bodies
    joints: Joints
    gravity: jax.Array = eqx.field(converter=number(unit="m/s^2", shape=None))
    topology: Topology = eqx.field(static=True)
    couplings: tuple[eqx.Module, ...] = ()
    constraints: tuple[eqx.Module, ...] = ()
    sensors: tuple[eqx.Module, ...] = ()
    actuators: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return self.topology.name

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
        """The length of a control: one number for each actuator, or without any that of v."""
        return len(self.actuators) or self.nv

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """The actuators, in the order of a control; none where that is the generalised force."""
        return tuple(a.label for a in self.actuators)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Every body, in the order of `body_poses`, bodies on fixed joints included."""
        return self.topology.bodies

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that have entries in q and v, in that order: neither fixed nor mimic."""
        return tuple(self.topology.joints[b] for b in self.topology.coordinate_joints)

    @property
    def manifold(self) -> FlatProduct:
        """The configuration manifold of q (nq,), with tangents v (nv,)."""
        return self.topology.manifold

    @property
    def dtype(self) -> np.dtype:
        return self.bodies.mass.dtype

    def neutral(self) -> Float[Array, " {self.nq}"]:
        """The configuration (nq,) with all coordinates zero and all attitudes the identity."""
        return jnp.asarray(self.manifold.identity(), self.dtype)

    def astype(self, dtype: Any) -> System:
        """The same system with all numbers in another floating precision."""
        if is_frozen(self):
            with jax.ensure_compile_time_eval():
                return frozen(thawed(self).astype(dtype))
        return jax.tree.map(lambda a: a.astype(dtype), self)

    def frozen(self) -> System:
        """The same system with its numbers as constants of the programs that it is part of.

        Zeros, ones and all that depends on numbers alone are computed beforehand, in double
        precision and rounded once, which about halves the code of a step. The frozen system can be
        used as this one, inside and outside of `jax.jit`, `jax.vmap` and `jax.grad`, but it is a
        pytree without leaves: equal to those with equal numbers, for which nothing is compiled
        again, while each other machine takes programs of its own. Nothing is differentiated with
        respect to its numbers, and no batch is made of them: for `jax.grad` it is an argument
        without numbers, whose gradient is the system itself. `replace`, `astype`, `attach` and the
        like give frozen systems. Raises TypeError for traced numbers, also by these, and ValueError
        for a batch of systems.
        """
        if np.ndim(self.bodies.mass) != 1:
            raise ValueError(
                f"{self.name}: this is a batch of systems, and the numbers of a frozen one are "
                "constants; freeze one of them: jax.tree.map(lambda a: a[0], system).frozen()"
            )
        return frozen(self)

    def with_constraints(self, constraints: tuple[eqx.Module, ...]) -> System:
        """The same system with other constraints."""
        return dataclasses.replace(self, constraints=constraints)

    def replace(self, **leaves: Any) -> System:
        """A copy with some leaves replaced, by name: `system.replace(mass=..., gravity=...)`.

        Names are the fields of `bodies`, `joints` and `gravity`; a new value has the old one's
        shape, except for leading batch axes under `jax.vmap`. Raises TypeError for an unknown name
        (with the nearest known one) and what are no real numbers, ValueError for another shape and
        for concrete numbers that no machine has, such as a negative mass.
        """
        owners = {
            **{name: "bodies" for name in Bodies.__dataclass_fields__},
            **{name: "joints" for name in Joints.__dataclass_fields__ if name != "numbers"},
        }
        system = self
        for name, value in leaves.items():
            if name != "gravity" and name not in owners:
                near = difflib.get_close_matches(name, [*owners, "gravity"], 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise TypeError(f"System.replace: there is no leaf {name!r}{hint}")
            group = owners.get(name)
            owner = system if group is None else getattr(system, group)
            old = getattr(owner, name)
            new = real_numbers("System.replace", name, value).astype(self.dtype)
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


# What the leaves of a system without couplings and constraints say of themselves, by name.
NUMBERS = declared(Bodies) | declared(Joints) | declared(System)
