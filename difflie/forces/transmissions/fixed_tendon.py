"""Fixed tendons: lengths that are linear in the coordinates of joints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...groups.components import Scalar
from ...system.fields import Numbers, number
from ...system.kinematic_tree import Tree
from ...system.system import System
from ...system.topology import Topology
from ...system.validation import format_value, nearest
from .transmission import CoordinateTransmission


def _names(joints: str | Sequence[str]) -> tuple[str, ...]:
    return (joints,) if isinstance(joints, str) else tuple(joints)


class FixedTendon(CoordinateTransmission):
    """A length that is linear in the coordinates of joints: g (l_0 + sum of c_i x_i).

    joints: the names of n joints with one degree of freedom and a coordinate; coefficients c (n,)
    in m/rad, or without unit; offset l_0 in m; gear g without unit, both scalars. It is the
    `fixed` tendon of MuJoCo.
    """

    joints: tuple[str, ...] = eqx.field(static=True, converter=_names)
    coefficients: Numbers = eqx.field(converter=number(unit="m/rad or 1", shape=None))
    offset: jax.Array = eqx.field(converter=number(unit="m"), default=0.0, kw_only=True)
    gear: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)

    @property
    def label(self) -> str:
        return self.joints[-1]

    def problems(self) -> list[str]:
        if jnp.shape(self.coefficients) != (len(self.joints),):
            return [
                f"coefficients has shape {jnp.shape(self.coefficients)}; it needs one number for "
                f"each of its {len(self.joints)} joints"
            ]
        return super().problems()

    def incompatibilities(self, system: System) -> list[str]:
        t, found = system.topology, []
        for name in self.joints:
            if name not in system.joint_names:
                near = nearest(str(name), system.joint_names)
                found.append(f"no joint that moves by itself is named {format_value(name)}{near}")
            elif len(t.kinds[b := t.joints.index(name)]) != 1 or not t.manifolds[b].plain:
                found.append(f"the joint {name!r} has no single coordinate; leave it out")
        return found

    def lever(
        self, tree: Tree, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, ""], Float[Array, " n_dofs"]]:
        return self.along(tree.topology, tree.coordinates(q))

    def along(
        self, t: Topology, x: Float[Array, " n_dofs"]
    ) -> tuple[Float[Array, ""], Float[Array, " n_dofs"]]:
        """The length () in m and its moment arm (n_dofs,) at the dofs' coordinates (n_dofs,)."""
        dofs, coefficients = self.dofs(t), self.gear * self.coefficients
        length = self.gear * self.offset + jnp.sum(coefficients * x[dofs])
        return length, jnp.zeros_like(x).at[dofs].add(coefficients)

    def of(self, coordinates: Iterable[Scalar]) -> Scalar:
        """The length () in m at the next n of the coordinates (), those of its joints."""
        pairs = zip(self.coefficients, coordinates, strict=False)
        return self.gear * (self.offset + sum(c * x for c, x in pairs))

    def motion(
        self, tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        dofs, coefficients = self.dofs(tree.topology), self.gear * self.coefficients
        length = self.gear * self.offset + jnp.sum(coefficients * tree.coordinates(q)[dofs])
        return length, jnp.sum(coefficients * tree.rates(v)[dofs])

    def dofs(self, t: Topology) -> np.ndarray:
        """The dofs (n,) of its joints."""
        return np.array([t.dof_start[t.joints.index(name)] for name in self.joints], dtype=int)

    def __str__(self) -> str:
        return f"FixedTendon ({', '.join(map(repr, self.joints))})"


def moment_arms(t: Topology, tendons: Sequence[FixedTendon]) -> Float[Array, "n n_dofs"]:
    """The moment arms (n, n_dofs) of n fixed tendons along all dofs."""
    rows = [np.full(len(tendon.joints), k) for k, tendon in enumerate(tendons)]
    dofs = np.concatenate([tendon.dofs(t) for tendon in tendons])
    arms = jnp.concatenate([tendon.gear * tendon.coefficients for tendon in tendons])
    places = np.concatenate(rows) * t.n_dofs + dofs
    # A gather, for which small programs have no loop, unlike a scatter.
    if len(np.unique(places)) == len(places):
        order = np.full(len(tendons) * t.n_dofs, len(places))
        order[places] = np.arange(len(places))
        return jnp.append(arms, 0)[order].reshape(len(tendons), t.n_dofs)
    return jnp.zeros((len(tendons), t.n_dofs), arms.dtype).at[np.concatenate(rows), dofs].add(arms)


def linear_motions(
    tree: Tree, tendons: Sequence[FixedTendon], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> list[tuple[Float[Array, ""], Float[Array, ""]]]:
    """The length () in m and its rate () of each of several fixed tendons."""
    if not tendons:
        return []
    arms = moment_arms(tree.topology, tendons)
    offsets = jnp.stack([tendon.gear * tendon.offset for tendon in tendons])
    lengths = offsets + jnp.sum(arms * tree.coordinates(q), axis=1)
    rates = jnp.sum(arms * tree.rates(v), axis=1)
    return list(zip(lengths, rates, strict=True))
