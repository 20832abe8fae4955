"""Limits of what several actuators do together: at a joint, and along one transmission.

They exert no force of their own. `actuators/acting.py` keeps the sum within them.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..system.fields import number
from ..system.protocols import ForceElement
from ..system.system import Joints, System
from ..system.topology import Topology
from ..system.validation import format_value, nearest
from .at_joint import AtJoint, JointCoupling
from .names_of_couplings import title


class EffortLimit(AtJoint, JointCoupling):
    """Keeps the effort of all actuators at a joint within the joint's `min_effort`, `max_effort`.

    joint: the name of one with one degree of freedom, with a finite limit. The sum over actuators
    at the joint, along tendons and between bodies is clipped; `min_effort` is by default the
    opposite of `max_effort`. Without it these limits are only compared with. name: as of
    `Coupling`. It is `actuatorfrcrange` of a joint in MuJoCo.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(max_effort=3.0), mass=2.0)])
    >>> drives = [dl.Drive("cart", name=name) for name in ("left", "right")]
    >>> system = dl.attach(cart, *drives, dl.EffortLimit("cart"))
    >>> print(dl.step(system, [0.0], [9.81], dt=1.0, control=[4.0, 5.0]).v)  # 3 / 2, in m/s
    [1.5]
    """

    joint: str = eqx.field(static=True)

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        faults = super().incompatibilities(system, there)
        most = system.joints.max_effort
        if faults or isinstance(most, Tracer):
            return faults
        k, joints = self.dof(system.topology), system.joints
        if np.isfinite(np.asarray(most)[k]) or np.isfinite(np.asarray(joints.min_effort)[k]):
            return []
        return ["the joint has no limit of effort; give it max_effort"]

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        return jnp.zeros_like(rate)

    def bounds(self, t: Topology, joints: Joints) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The least and the largest effort () in N m or N."""
        k = self.dof(t)
        least, most = joints.effort_limits
        return least[k], most[k]


class SharedLimit(JointCoupling):
    """Keeps the sum of the forces of some actuators within a range, by reducing all alike.

    actuators: their names. force_range (2,) in N or N m: the least and the largest sum; outside of
    it all their forces are multiplied by the same number. each (n, 2) in N or N m: the least and
    the largest force of each, to which they are clipped after that; None for no limits. name: as of
    `Coupling`. It is `actuatorfrcrange` of a tendon in MuJoCo.
    """

    actuators: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    force_range: jax.Array = eqx.field(
        converter=number(unit="N or N m", shape=(2,), ascending=True)
    )
    each: jax.Array | None = eqx.field(
        converter=number(unit="N or N m", shape=None, optional=True, finite=False, ascending=True),
        default=None,
    )

    def problems(self) -> list[str]:
        names, wanted = self.actuators, (len(self.actuators), 2)
        if not names or len(set(names)) < len(names):
            return [f"actuators is {names}; name one or more, each once"]
        if self.each is not None and jnp.shape(self.each) != wanted:
            return [f"each has shape {jnp.shape(self.each)}, needed is {wanted}"]
        return super().problems()

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        names = system.actuator_names
        return [
            f"no actuator is named {format_value(name)}{nearest(str(name), names)}; attach it first"
            for name in self.actuators
            if name not in names
        ]

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        return jnp.zeros_like(rate)

    def kept(self, forces: Float[Array, " n"]) -> Float[Array, " n"]:
        """The forces (n,) in N or N m within the limits."""
        low, high = self.force_range
        total = jnp.sum(forces)
        within = jnp.clip(total, low, high)
        outside = (within != total) & (total != 0)
        forces = forces * jnp.where(outside, within / jnp.where(outside, total, 1), 1)
        return forces if self.each is None else jnp.clip(forces, self.each[:, 0], self.each[:, 1])

    def __str__(self) -> str:
        return f"{title(self)} ({', '.join(map(repr, self.actuators))})"


def sharing_limits(system: System) -> set[str]:
    """The names of the actuators that share a limit with others."""
    limits = (part for part in system.couplings if isinstance(part, SharedLimit))
    return {name for part in limits for name in part.actuators}


def shared(system: System, torques: Float[Array, " nu"]) -> Float[Array, " nu"]:
    """The torques (nu,) within the limits that actuators share."""
    for part in system.couplings:
        if isinstance(part, SharedLimit):
            those = np.array([system.actuator_names.index(name) for name in part.actuators])
            torques = torques.at[those].set(part.kept(torques[those]))
    return torques


def limited(system: System, effort: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """The effort (nv,) of all actuators within the limits of joints."""
    t = system.topology
    for part in system.couplings:
        if isinstance(part, EffortLimit):
            k = part.velocity(t)
            effort = effort.at[k].set(jnp.clip(effort[k], *part.bounds(t, system.joints)))
    return effort
