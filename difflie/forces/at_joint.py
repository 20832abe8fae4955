"""Forces and sensors at joints: laws in joint coordinates."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..deprecated import renamed
from ..system.fields import number_faults
from ..system.protocols import ForceElement, SensorElement
from ..system.system import Joints, System
from ..system.topology import Topology
from ..system.user_functions import called
from ..system.validation import format_value, nearest, real_values
from .names_of_couplings import Named, title


@renamed(faults="problems", misfits="incompatibilities")
class AtJoint(eqx.Module):
    """A part that belongs to a joint of one degree of freedom; its paths are "joint/number"."""

    joint: eqx.AbstractVar[str]

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix; a subclass may add to it."""
        return number_faults(self)

    def incompatibilities(
        self, system: System, there: Sequence[ForceElement | SensorElement]
    ) -> list[str]:
        """Why it cannot be attached to a system beside the parts there; empty if it can."""
        t, joint = system.topology, self.joint
        if joint not in system.joint_names:
            near = nearest(str(joint), system.joint_names)
            return [f"no joint that moves by itself is named {format_value(joint)}{near}"]
        if len(t.kinds[t.joints.index(joint)]) != 1:
            return ["the joint has several degrees of freedom; it must have one"]
        alike = [other for other in there if isinstance(other, AtJoint)]
        if any(type(other) is type(self) and other.joint == joint for other in alike):
            return ["the joint has one already; change its numbers"]
        return []

    def dof(self, t: Topology) -> int:
        """The dof of its joint."""
        return int(t.dof_start[t.joints.index(self.joint)])

    def needs_coordinate(self, system: System) -> list[str]:
        """Why its joint has no single coordinate; empty if it has one."""
        if self.coordinate(system.topology) >= 0:
            return []
        return ["the joint has no coordinate that is a plain number; take one that has"]

    def coordinate(self, t: Topology) -> int:
        """The index in q of its joint's coordinate."""
        return int(t.dof_coordinate[self.dof(t)])

    def velocity(self, t: Topology) -> int:
        """The index in v of its joint's velocity."""
        return int(t.dof_velocity[self.dof(t)])

    def __str__(self) -> str:
        return f"{title(self)} ({self.joint!r})"


@renamed(faults="problems", misfits="incompatibilities")
class JointCoupling(Named):
    """A force law in joint coordinates, for all degrees of freedom at once.

    name: as of `Coupling`. Its numbers are fields whose converter is `number`. For a law at one
    joint, `JointForce` is shorter.
    """

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix; a subclass may add to it."""
        return number_faults(self)

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        """Why it cannot be attached to a system beside the parts there; empty if it can."""
        return []

    @abc.abstractmethod
    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        """The efforts (n_dofs,) in N m or N at coordinates and rates of the dofs (n_dofs,)."""

    def energy(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"]
    ) -> Float[Array, ""] | None:
        """The potential energy () in J at the dofs' coordinates (n_dofs,); None without one."""
        return None

    @property
    def stores_energy(self) -> bool:
        """Whether it has a potential energy."""
        return type(self).energy is not JointCoupling.energy

    def __str__(self) -> str:
        return title(self)


class JointForce(AtJoint, JointCoupling):
    """A force at a joint with one degree of freedom: a law effort(x, v), and potential(x) if any.

    name: as of `Coupling`.

        class Cogging(JointForce):
            joint: str = eqx.field(static=True)
            amplitude: jax.Array = eqx.field(converter=number(unit="N m"))

            def effort(self, x, v):
                return -self.amplitude * jnp.sin(12 * x)
    """

    @abc.abstractmethod
    def effort(self, x: Float[Array, ""], v: Float[Array, ""]) -> Float[Array, ""]:
        """The effort () in N m or N at the coordinate () in rad or m and its rate ()."""

    def potential(self, x: Float[Array, ""]) -> Float[Array, ""] | None:
        """The potential energy () in J, effort = -d potential / dx; None without one."""
        return None

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        """As for all parts at joints; and the joint must have a single coordinate."""
        return super().incompatibilities(system, there) or self.needs_coordinate(system)

    def problems(self) -> list[str]:
        """The faults of its numbers and of the values its law returns, each with the fix."""
        return number_faults(self) or self._wrong_law()

    def _wrong_law(self) -> list[str]:
        at = jax.ShapeDtypeStruct((), jnp.result_type(float))
        found = {"effort": jax.eval_shape(lambda *given: self.effort(*given), at, at)}
        if self.stores_energy:
            found["potential"] = jax.eval_shape(lambda at: self.potential(at), at)
        return [
            f"its {name} is {format_value(value)}; let {name} return one number, of shape ()"
            for name, value in found.items()
            if getattr(value, "shape", None) != ()
        ]

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        k = self.dof(t)
        effort = called(self.effort, x[k], rate[k])
        effort = real_values(f"the effort of {self}", effort, rate.dtype)
        return jnp.zeros_like(rate).at[k].set(effort)

    def energy(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"]
    ) -> Float[Array, ""] | None:
        return called(self.potential, x[self.dof(t)])

    @property
    def stores_energy(self) -> bool:
        return type(self).potential is not JointForce.potential
