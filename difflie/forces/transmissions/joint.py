"""Transmissions at one joint: a gear of one, three or six numbers."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...groups import quaternion
from ...system.fields import Numbers, number
from ...system.joints import Free, Spherical
from ...system.kinematic_tree import Tree
from ...system.system import System
from ...system.validation import format_value, nearest
from .transmission import CoordinateTransmission, entry


class JointTransmission(CoordinateTransmission):
    """A gear at a joint: of a hinge or slide the length n (x + x_0), and the moment arm n.

    joint: its name. gear: n (1,) at a joint with one degree of freedom, without unit, and
    reference x_0 in rad or m. At a spherical joint gear (3,) is the axis of a moment, fixed in the
    child's frame, or in the parent's with in_parent; the length is its product with the rotation
    vector of the joint. At a free joint gear (6,) is a moment, likewise, and a force along the axes
    of the world; there the length is 0. A unit of force is then the moment and the force `gear`.

    These are the transmissions `joint` and `jointinparent` of MuJoCo.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> geared = dl.JointTransmission("cart", gear=50.0)
    >>> system = dl.attach(cart, dl.Drive(transmission=geared))
    >>> print(dl.step(system, [0.0], [0.0], dt=0.1, control=[0.1]).v.round(3))  # 50 0.1 / 2 0.1
    [0.25]
    """

    joint: str = eqx.field(static=True)
    gear: Numbers = eqx.field(converter=number(shape=None), default=1.0)
    reference: jax.Array = eqx.field(converter=number(unit="rad or m"), default=0.0, kw_only=True)
    in_parent: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def label(self) -> str:
        return self.joint

    def incompatibilities(self, system: System) -> list[str]:
        t = system.topology
        if self.joint not in system.joint_names:
            near = nearest(str(self.joint), system.joint_names)
            return [f"no joint that moves by itself is named {format_value(self.joint)}{near}"]
        b = t.joints.index(self.joint)
        kind, size = t.types[b], len(t.kinds[b])
        if size > 1 and not isinstance(kind, Spherical | Free):
            return [
                f"the joint has {size} degrees of freedom; name one of them, joint="
                f"{f'{self.joint}[0]'!r}, as the joint of the actuator"
            ]
        if jnp.size(self.gear) != size:
            return [f"its gear has {jnp.size(self.gear)} numbers; the joint needs {size}"]
        return []

    def single_dof(self, system: System) -> int | None:
        t = system.topology
        b = t.joints.index(self.joint)
        return int(t.velocity_start[b]) if len(t.kinds[b]) == 1 else None

    def lever(
        self, tree: Tree, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, ""], Float[Array, " n_dofs"]]:
        t = tree.topology
        b = t.joints.index(self.joint)
        first, start = int(t.dof_start[b]), int(t.coordinate_start[b])
        gear = jnp.reshape(self.gear, (-1,)).astype(q.dtype)
        dofs = slice(first, first + len(t.kinds[b]))
        nothing = jnp.zeros(t.n_dofs, q.dtype)
        if len(t.kinds[b]) == 1:
            length = gear[0] * (tree.coordinates(q)[first] + self.reference)
            return length, nothing.at[dofs].set(gear)
        turned = q[start : start + 4]
        inward = quaternion.to_matrix(turned).T
        axis = inward @ gear[:3] if self.in_parent else gear[:3]
        if isinstance(t.types[b], Free):
            arm = jnp.concatenate((axis, inward @ gear[3:]))
            return jnp.zeros((), q.dtype), nothing.at[dofs].set(arm)
        return jnp.dot(quaternion.log(turned), axis), nothing.at[dofs].set(axis)

    def motion(
        self, tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        t = tree.topology
        b = t.joints.index(self.joint)
        if len(t.kinds[b]) > 1:
            return super().motion(tree, q, v)
        gear = jnp.reshape(self.gear, ()).astype(q.dtype)
        x = entry(q, int(t.coordinate_start[b])) + self.reference
        return gear * x, gear * entry(v, int(t.velocity_start[b]))

    def __str__(self) -> str:
        return f"JointTransmission ({self.joint!r})"
