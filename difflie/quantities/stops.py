"""The forces of stops at the limits of joints and tendons."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces import JointStop, JointTendon, RotationStop, Tendon
from ..forces.path import root
from ..forces.points import point_motions
from ..forces.transmissions import transmitted
from ..system.joints import Spherical
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .quantity import Labels, Quantity


class StopForce(Quantity):
    """The size () in N m or N of what stops exert at the limits of a joint, or of a tendon.

    of: the name of a joint with one degree of freedom, of a spherical joint, whose stops are each a
    `RotationStop` of its body, or of a `Tendon` or `JointTendon`; the force of these is their
    tension. Raises `ModelError` for an unknown name, with the nearest. They
    are MuJoCo's `jointlimitfrc` and `tendonlimitfrc`.
    """

    of: str = eqx.field(static=True)

    @property
    def name(self) -> str:
        return f"force of the stop of {self.of!r}"

    def labels(self, system: System) -> Labels:
        return ()

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        tree, topology = Tree.of(system), system.topology
        along = [c for c in system.couplings if isinstance(c, Tendon | JointTendon)]
        for tendon in along:
            if tendon.name == self.of and isinstance(tendon, Tendon):
                ((length, rate),) = transmitted(tree, [tendon.transmission], q, v)
                return jnp.abs(tendon.stop_tension(length, rate))
            if tendon.name == self.of and isinstance(tendon, JointTendon):
                return jnp.abs(tendon.stop_tension(*tendon.transmission.motion(tree, q, v)))
        types = dict(zip(topology.joints, topology.types, strict=True))
        if isinstance(types.get(self.of), Spherical):
            return self._of_rotation(tree, q, v)
        scalar = [j for j in topology.joints if len(topology.kinds[topology.joints.index(j)]) == 1]
        if self.of not in scalar:
            names = [*scalar, *(tendon.name for tendon in along if tendon.name)]
            near = nearest(str(self.of), names)
            raise ModelError(
                f"{system.name}: no joint with stops and no tendon is named "
                f"{format_value(self.of)}{near}"
            )
        dof = int(topology.dof_start[topology.joints.index(self.of)])
        at = topology, system.joints, tree.coordinates(q), tree.rates(v)
        stops = [c for c in system.couplings if isinstance(c, JointStop)]
        force = sum((jnp.abs(stop.efforts(*at)[dof]) for stop in stops), jnp.zeros((), q.dtype))
        return jnp.asarray(force)

    def _of_rotation(
        self, tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, ""]:
        """Of the stops of a spherical joint: the sum of the sizes of their moments, in N m."""
        stops = rotation_stops(tree.system, self.of)
        force = jnp.zeros((), q.dtype)
        if not stops:
            return force
        for stop, at in zip(stops, point_motions(tree, [c.path for c in stops], q, v), strict=True):
            square = stop.wrenches(*at).moment.square()
            force = force + root(square[1])
        return force


def rotation_stops(system: System, joint: str) -> list[RotationStop]:
    """The stops of a spherical joint: those between its body and another."""
    body = system.body_names[system.topology.joints.index(joint)]
    stops = (part for part in system.couplings if isinstance(part, RotationStop))
    return [stop for stop in stops if stop.path.bodies[1] == body]
