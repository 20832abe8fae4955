"""What transmissions have in common: a length, and the moment arm of a force along it.

A transmission has a length l(q), in m or rad. An actuator that exerts the force f along it applies
the generalised force J^T f, in which the moment arm J (nv,) is dl/dq, or for some kinds is given
besides the length. The length changes at the rate J v. Where J follows from bodies it is a set of
wrenches F at points, one for each unit of force: J^T is the sum of their generalised forces, and
the rate J v is the sum of F . V over the twists V of the points.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...groups.components import Vector
from ...spatial import Force, Motion, Transform
from ...system.fields import number_faults
from ...system.kinematic_tree import Tree
from ...system.system import System
from ...system.traverse import tree_algorithm
from ...system.validation import nearest
from ..coupling import Coupling
from ..path import Path
from ..points import point_motions


class Transmission(eqx.Module):
    """A length as a function of the configuration, and the moment arm of a force along it.

    Derive kinds of your own from `PointTransmission` or `CoordinateTransmission`.
    """

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """The name of the joint or the body that it moves, by which its actuator is called."""

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix; a subclass may add to it."""
        return number_faults(self)

    @abc.abstractmethod
    def incompatibilities(self, system: System) -> list[str]:
        """Why it does not fit a system; empty if it does."""


class CoordinateTransmission(Transmission):
    """A transmission in the coordinates of joints: of one joint, or of several, as a fixed tendon.

    follows_bodies: whether its moment arm depends on where the bodies are.
    """

    follows_bodies: ClassVar[bool] = False

    @abc.abstractmethod
    def lever(
        self, tree: Tree, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, ""], Float[Array, " n_dofs"]]:
        """The length () in m or rad at q (nq,), and the moment arm (n_dofs,) along all dofs."""

    def motion(
        self, tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The length () in m or rad and its rate (), at q (nq,) and v (nv,)."""
        length, arm = self.lever(tree, q)
        return length, jnp.sum(arm * tree.rates(v))

    def single_dof(self, system: System) -> int | None:
        """The index in v of the one degree of freedom at which it acts; None where none is such."""
        return None


class PointTransmission(Transmission):
    """A transmission between bodies, given by the motion of n points on them."""

    @property
    @abc.abstractmethod
    def path(self) -> Path:
        """The points (n, 3) in m, each in the frame of its body, and the bodies."""

    @abc.abstractmethod
    def lever(self, frames: Transform) -> tuple[Float[Array, ""], Force]:
        """The length () in m or rad, and the wrenches (n,) at the points for a force of one.

        frames (n,): the points in the world, with the attitudes of their bodies. The wrenches are
        about the points, in world coordinates.
        """

    def incompatibilities(self, system: System) -> list[str]:
        names = system.body_names
        return [
            f"no body is named {name!r}{nearest(name, names)}"
            for name in dict.fromkeys(self.path.bodies)
            if name is not None and name not in names
        ]

    @property
    def label(self) -> str:
        named = [name for name in self.path.bodies if name is not None]
        return named[-1] if named else "the world"

    def motion(
        self, frames: Transform, twists: Motion
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The length () in m or rad and its rate (), for frames (n,) and twists (n,) in the world.

        twists: the angular velocities of the bodies and the velocities of the points.
        """
        length, wrenches = self.lever(frames)
        return length, jnp.sum(twists.dot(wrenches))


class Pull(Coupling):
    """A force () in N, or N m, along a transmission, as wrenches at its points."""

    path: Path
    transmission: PointTransmission
    force: Float[Array, ""]

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        return self.transmission.lever(frames)[1] * self.force


def transmitted(
    tree: Tree,
    transmissions: Sequence[PointTransmission],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
) -> list[tuple[Float[Array, ""], Float[Array, ""]]]:
    """The length () in m or rad and its rate () of each transmission, at q (nq,) and v (nv,)."""
    return _transmitted(tree, transmissions, q, v) if transmissions else []


@tree_algorithm
def _transmitted(
    tree: Tree, transmissions: Sequence[PointTransmission], q: jax.Array, v: jax.Array
) -> list[tuple[jax.Array, jax.Array]]:
    motions = point_motions(tree, [each.path for each in transmissions], q, v)
    return [each.motion(*at) for each, at in zip(transmissions, motions, strict=True)]


def entry(x: Float[Array, " n"], i: int) -> Float[Array, ""]:
    """x[i] () of an array (n,), which jax traces faster so."""
    return jax.lax.index_in_dim(x, i, keepdims=False)


def stacked(vectors: list[Vector]) -> Vector:
    """Vectors with components () as one with components (n,)."""
    return Vector(*(jnp.stack([getattr(v, axis) for v in vectors]) for axis in "xyz"))
