"""Couplings: forces and moments at points of bodies.

A coupling is a path and a law for the forces at its points. With the world positions x_i of the
points, the segments s_j = x_{j+1} - x_j of lengths l_j and directions u_j = s_j / l_j, and the
length of the path y = sum l_j, a tension T along the path pulls each point to its neighbours:

    f_i = T (u_i - u_{i-1}),    power -T dy/dt

With two points a spring is mono-articular, with more of them on several bodies multi-articular
(Goetz 2024). Where the points of a segment coincide it has no direction, and u_j is zero.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..deprecated import renamed
from ..groups.components import Matrix, Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number_faults
from ..system.protocols import ForceElement
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import format_value
from .names_of_couplings import Named, title
from .path import Path, unknown_frames

# Annotations are evaluated in this file: otherwise Equinox takes an AbstractVar for a field.

# The fewest and the most points of a path.
_POINTS = {
    "one point": (1, 1),
    "two points": (2, 2),
    "one point or more": (1, np.inf),
    "two points or more": (2, np.inf),
}


@renamed(faults="problems", misfits="incompatibilities")
class Coupling(Named):
    """Forces and moments on bodies: a path, and a law for the wrenches at its n points.

    name: by which its numbers have paths, "name/stiffness", and `System.coupling` finds it; None
    for none. Its numbers are fields whose converter is `number`. needs: how many points the path
    must have: "one point", "two points", "one point or more", or "two points or more". A coupling
    with a potential defines `energy`.
    """

    needs: ClassVar[str] = "two points or more"

    path: eqx.AbstractVar[Path]

    def problems(self) -> list[str]:
        """The faults of its path, numbers and law, each with the fix; a subclass may add to it."""
        return [*self._wrong_path(), *number_faults(self)] or self._wrong_law()

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        """Why it cannot be attached to a system beside the couplings there; empty if it can."""
        return unknown_frames(system, self.path.bodies)

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> "Coupling":
        """The same coupling on another path, whose points stood in other frames before.

        rotations (n, 3, 3): of those frames in the bodies of the path. `attach` calls this where a
        path names frames of the system; a subclass with directions in the frames of its points
        turns these.
        """
        return eqx.tree_at(lambda coupling: coupling.path, self, path)

    def _wrong_path(self) -> list[str]:
        count, points = len(self.path.bodies), self.path.points
        if self.needs not in _POINTS:
            return [f"the class says that it needs {self.needs!r}; let it say {', '.join(_POINTS)}"]
        fewest, most = _POINTS[self.needs]
        if not fewest <= count <= most:
            return [f"its path has {count} points; give it {self.needs}"]
        if jnp.shape(points) != (count, 3):
            return [f"points has shape {jnp.shape(points)}, needed is {(count, 3)}"]
        if not isinstance(points, Tracer) and not np.all(np.isfinite(points)):
            return [f"points is {np.asarray(points).tolist()}; it must be finite"]
        return []

    def _wrong_law(self) -> list[str]:
        """The faults of the shapes that its law returns."""
        n = len(self.path.bodies)
        frames, twists = at_points(n)
        x, at = frames.translation, frames.translation.x
        output = jax.eval_shape(lambda *given: self.wrenches(*given), frames, twists)
        needed = jax.tree.map(lambda a: a.shape, Force(x, x))
        if jax.tree.map(lambda a: a.shape, output) != needed:
            return [
                f"its law returns {format_value(output)}; let it return a Force, or of a "
                f"PointCoupling a Vector, with components of shape ({n},), one for each point"
            ]
        stored = jax.eval_shape(lambda at: self.energy(at), frames) if self.stores_energy else at
        if self.stores_energy and getattr(stored, "shape", None) != ():
            return [
                f"its energy is {format_value(stored)}; let energy return one number, of shape ()"
            ]
        return []

    def energy(self, frames: Transform) -> Float[Array, ""] | None:
        """The potential energy () in J with the points at these frames (n,) in the world.

        The forces are minus its gradient, as far as they do not dissipate. None where there is no
        potential; a subclass that has one overrides this.
        """
        return None

    @property
    def stores_energy(self) -> bool:
        """Whether it has a potential energy."""
        return type(self).energy is not Coupling.energy

    @abc.abstractmethod
    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        """The wrenches (n,) in N m and N on the bodies, about the points, in world coordinates.

        frames (n,): the points in the world, with the attitudes of their bodies; twists (n,): the
        angular velocities of the bodies and the velocities of the points, in world coordinates.
        """

    def __str__(self) -> str:
        return f"{title(self)} ({self.path})"


def at_points(n: int) -> tuple[Transform, Motion]:
    """The shapes of what a law at n points gets: the frames (n,) and the twists (n,)."""
    at = jax.ShapeDtypeStruct((n,), jnp.result_type(float))
    x: Vector = Vector(at, at, at)  # pyright: ignore[reportArgumentType]
    return Transform(Matrix(*[at] * 9), x), Motion(x, x)  # pyright: ignore[reportArgumentType]


class Conservative(Coupling):
    """A coupling given by its potential `energy`; its wrenches are minus the gradient.

    name: as of `Coupling`.
    """

    @abc.abstractmethod
    def energy(self, frames: Transform) -> Float[Array, ""]:
        """The energy () in J with the points at these frames (n,) in the world."""

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        def moved(step: Motion) -> jax.Array:
            # To first order, as only the first derivative is needed.
            turn = frames.rotation + Matrix.skew(step.angular) @ frames.rotation
            at = Transform(turn, frames.translation + step.linear)
            return called(self.energy, at)

        still = jax.tree.map(jnp.zeros_like, frames.translation)
        slope = jax.grad(moved)(Motion(still, still))
        return Force(-slope.angular, -slope.linear)


class PointCoupling(Coupling):
    """A coupling of forces without moments, which depend on the motion of its n points only.

    name: as of `Coupling`.
    """

    @abc.abstractmethod
    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        """The forces (n,) in N on the bodies at the points, in world coordinates.

        frames (n,): the points in the world, with the attitudes of their bodies; velocities (n,)
        of the points in the world.
        """

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        forces = called(self.forces, frames, twists.linear)
        return Force(jax.tree.map(jnp.zeros_like, forces), forces)

    def mean_forces(
        self, start: Vector, end: Vector, middle: Transform, velocities: Vector
    ) -> Vector:
        """The mean forces (n,) in N over a step, in world coordinates; by default those midway.

        start, end (n,): the points at the ends of the step; middle (n,): their means, with the mean
        orientations of their bodies; velocities (n,): (end - start) / h. A coupling that stores
        energy overrides this, so that the work of the forces is the change of energy; see
        `springs.py`.
        """
        return called(self.forces, middle, velocities)
