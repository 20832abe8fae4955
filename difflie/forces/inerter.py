"""Inertia along a transmission: a flywheel that its length turns."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.fields import number
from ..system.kinematic_tree import Tree
from ..system.protocols import ForceElement
from ..system.system import Joints, System
from ..system.topology import Topology
from .at_joint import JointCoupling
from .length_rows import length_rows
from .names_of_couplings import title
from .transmissions import FixedTendon, Transmission


class Inerter(JointCoupling):
    """An inertance along a transmission of the length l: its kinetic energy is b (dl/dt)^2 / 2.

    It adds b J^T J to the mass matrix, J the moment arm, as a rotor does that turns with l, and
    exerts no other force. transmission: any, such as a `FixedTendon` or a `SpatialTendon`;
    inertance b in kg, or kg m^2 where l is an angle, a scalar. name: as of `Coupling`. It is the
    armature of tendons in MuJoCo. Smith 2002. Inverse and forward dynamics have it; what needs
    coordinates that are independent, such as `mass_factorisation` and variational methods, refuses
    it.

    >>> cart = dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)
    >>> mate = dl.Body(name="mate", joint=dl.Prismatic(axis=(1, 0, 0)), mass=1.0)
    >>> apart = dl.FixedTendon(("cart", "mate"), (-1.0, 1.0))
    >>> system = dl.attach(dl.tree([cart, mate]), dl.Inerter(apart, inertance=3.0))
    >>> print(dl.mass_matrix(system, [0.0, 0.0]))
    [[ 5. -3.]
     [-3.  4.]]
    """

    transmission: Transmission
    inertance: jax.Array = eqx.field(
        converter=number(unit="kg or kg m^2", nonnegative=True), kw_only=True
    )

    def problems(self) -> list[str]:
        faults = [f"its transmission: {fault}" for fault in self.transmission.problems()]
        return faults or super().problems()

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        return self.transmission.incompatibilities(system)

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        return jnp.zeros_like(x)

    def arm(self, tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """J (nv,) at the configuration q (nq,): dl/dt is J v."""
        return length_rows(tree, [self.transmission], q)[1][0]  # pyright: ignore[reportArgumentType]

    @property
    def turns(self) -> bool:
        """Whether J depends on the configuration."""
        return type(self.transmission) is not FixedTendon

    def __str__(self) -> str:
        return f"{title(self)} ({self.transmission})"
