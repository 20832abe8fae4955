"""What stands at one joint, and at no point in space."""

from __future__ import annotations

import equinox as eqx

from ..system.fields import number_faults
from ..system.system import System
from ..system.topology import Topology
from ..system.validation import ModelError, nearest


class AtJoint(eqx.Module):
    """What belongs to a joint of one degree of freedom; its numbers have paths "joint/number"."""

    joint: eqx.AbstractVar[str]

    def faults(self) -> list[str]:
        """What is wrong with its numbers, each with the fix; a subclass may add to it."""
        return number_faults(self)

    def row(self, t: Topology) -> int:
        """The row of its joint."""
        return int(t.row_start[t.joints.index(self.joint)])

    def coordinate(self, t: Topology) -> int:
        """The index of its joint's coordinate in q."""
        return int(t.row_coordinate[self.row(t)])

    def velocity(self, t: Topology) -> int:
        """The index of its joint's velocity in v."""
        return int(t.row_velocity[self.row(t)])

    def __str__(self) -> str:
        return f"{type(self).__name__} ({self.joint!r})"


def check_joint(system: System, there: tuple[eqx.Module, ...], added: AtJoint, where: str) -> None:
    """Raises `ModelError` for a joint that is none, or not one for it, or has one already."""
    t, joint = system.topology, added.joint
    if joint not in system.joint_names:
        near = nearest(joint, system.joint_names)
        raise ModelError(f"{where}: no joint that moves by itself is named {joint!r}{near}")
    if len(t.kinds[t.joints.index(joint)]) != 1:
        raise ModelError(f"{where}: the joint has several degrees of freedom; it must have one")
    if any(type(other) is type(added) and other.joint == joint for other in there):
        raise ModelError(f"{where}: the joint has one already; change its numbers")
