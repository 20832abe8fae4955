"""Couplings: springs, dampers and forces at points of bodies.

A coupling is a path and a law for the forces at its points. With the world positions x_i of the
points, the segments s_j = x_{j+1} - x_j of lengths l_j and directions u_j = s_j / l_j, and the
length of the path y = sum l_j, a tension T along the path pulls each point to its neighbours:

    f_i = T (u_i - u_{i-1}),    power -T dy/dt

With two points a spring is mono-articular, with more of them on several bodies multi-articular
(Goetz 2024). Where the points of a segment coincide it has no direction, and u_j is zero.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..groups.components import Matrix, Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number, number_faults
from ..system.system import System
from ..system.validation import nearest, shown
from .discrete_gradient import mean_slope
from .path import Path, as_path, inverse, segments

# The fewest and the most points of the paths that there are.
_POINTS = {
    "one point": (1, 1),
    "two points": (2, 2),
    "one point or more": (1, np.inf),
    "two points or more": (2, np.inf),
}


class Coupling(eqx.Module):
    """What acts on points of bodies: a path, and a law for the wrenches at its n points.

    Its numbers are fields whose converter is `number`. needs: how many points the path must have,
    "one point", "two points", "one point or more", or "two points or more". One that stores energy
    has a method `energy`.
    """

    needs: ClassVar[str] = "two points or more"

    path: eqx.AbstractVar[Path]

    def faults(self) -> list[str]:
        """What is wrong with its path, numbers and law, each with the fix; a subclass may add."""
        return [*self._wrong_path(), *number_faults(self)] or self._wrong_law()

    def misfits(self, system: System, there: Sequence[eqx.Module]) -> list[str]:
        """Why it cannot be put on a system beside what is there; nothing if it can."""
        names = system.body_names
        return [
            f"no body is named {name!r}{nearest(name, names)}"
            for name in self.path.bodies
            if name is not None and name not in names
        ]

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
        """What of its law has another shape than it must."""
        n = len(self.path.bodies)
        at = jax.ShapeDtypeStruct((n,), jnp.result_type(float))
        x = Vector(at, at, at)
        frames, twists = Transform(Matrix(*[at] * 9), x), Motion(x, x)
        found = jax.eval_shape(lambda *given: self.wrenches(*given), frames, twists)
        needed = jax.tree.map(lambda a: a.shape, Force(x, x))
        if jax.tree.map(lambda a: a.shape, found) != needed:
            return [
                f"its law returns {shown(found)}; let it return a Force, or of a PointCoupling a "
                f"Vector, with components of shape ({n},), one for each point"
            ]
        stored = jax.eval_shape(lambda at: self.energy(at), frames) if self.stores_energy else at
        if self.stores_energy and getattr(stored, "shape", None) != ():
            return [f"its energy is {shown(stored)}; let energy return one number, of shape ()"]
        return []

    def energy(self, frames: Transform) -> Float[Array, ""] | None:
        """The energy () in J with the points at these frames (n,) in the world.

        Its forces are minus the slope of it, as far as they do not dissipate. None where there is
        no potential; a subclass that has one overrides this.
        """
        return None

    @property
    def stores_energy(self) -> bool:
        """Whether `energy` is that of a potential."""
        return type(self).energy is not Coupling.energy

    @abc.abstractmethod
    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        """The wrenches (n,) in N m and N on the bodies, about the points, in world coordinates.

        frames (n,): the points in the world, with the attitudes of their bodies; twists (n,): the
        angular velocities of the bodies and the velocities of the points, in world coordinates.
        """

    def __str__(self) -> str:
        return f"{type(self).__name__} ({self.path})"


class Conservative(Coupling):
    """A coupling with a potential: its law is `energy`, and its wrenches are minus the slope."""

    @abc.abstractmethod
    def energy(self, frames: Transform) -> Float[Array, ""]:
        """The energy () in J with the points at these frames (n,) in the world."""

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        def moved(step: Motion) -> jax.Array:
            # To first order, as only the slope is taken.
            turn = frames.rotation + Matrix.skew(step.angular) @ frames.rotation
            return self.energy(Transform(turn, frames.translation + step.linear))

        still = jax.tree.map(jnp.zeros_like, frames.translation)
        slope = jax.grad(moved)(Motion(still, still))
        return Force(-slope.angular, -slope.linear)


class PointCoupling(Coupling):
    """A coupling of forces without moments, which depend on the motion of its n points only."""

    @abc.abstractmethod
    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        """The forces (n,) in N on the bodies at the points, in world coordinates.

        frames (n,): the points in the world, with the attitudes of their bodies; velocities (n,)
        of the points in the world.
        """

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        forces = self.forces(frames, twists.linear)
        return Force(jax.tree.map(jnp.zeros_like, forces), forces)

    def mean_forces(
        self, start: Vector, end: Vector, middle: Transform, velocities: Vector
    ) -> Vector:
        """The forces (n,) in N over a step, in world coordinates: those of its middle.

        start, end (n,): the points at the ends of the step; middle (n,): the means of these, with
        the mean attitudes of their bodies; velocities (n,): (end - start) / h. One that stores
        energy overrides this, so that their work is what it stores; see `discrete_gradient.py`.
        """
        return self.forces(middle, velocities)


class Elastic(PointCoupling):
    """A spring: a law potential(y) in J of the length y of its path, and its derivative tension(y).

    Both are elementwise in y.
    """

    @abc.abstractmethod
    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The energy in J at lengths of the path in m, shapes alike."""

    @abc.abstractmethod
    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The tension in N there, the derivative of `potential`; negative where it pushes."""

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """The energy () in J with the points at these frames (n,) in the world."""
        _, square, length = segments(frames.translation)
        if len(self.path.bodies) > 2:
            return self.potential(jnp.sum(length))
        apart, (square, length) = square[0] != 0, (square[0], length[0])
        # The same to second order in the segment where its points coincide; smooth if the spring
        # is at rest then.
        start = (
            self.potential(jnp.zeros_like(length)) + self._initial_stiffness(length) * square / 2
        )
        return jnp.where(apart, self.potential(length), start)

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        step, square, length = segments(frames.translation)
        density = self.tension(jnp.sum(length)) * inverse(length)
        if len(self.path.bodies) == 2:
            density = jnp.where(square == 0, self._initial_stiffness(length), density)
        return pulled(step * density)

    def mean_forces(
        self, start: Vector, end: Vector, middle: Transform, velocities: Vector
    ) -> Vector:
        (s0, _, l0), (s1, _, l1) = segments(start), segments(end)
        tension = mean_slope(self.potential, self.tension, jnp.sum(l0), jnp.sum(l1))
        return pulled((s0 + s1) * (inverse(l0 + l1) * tension))

    def _initial_stiffness(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        zero = jnp.zeros_like(length)
        return jax.jvp(self.tension, (zero,), (jnp.ones_like(zero),))[1]


def pulled(tensions: Vector) -> Vector:
    """The forces (n,) at the points of the tensions (n - 1,) of its segments, as vectors."""

    def sums(a: jax.Array) -> jax.Array:
        zero = jnp.zeros_like(a[:1])
        return jnp.concatenate((a, zero)) - jnp.concatenate((zero, a))

    return jax.tree.map(sums, tensions)


class Spring(Elastic):
    """A linear spring that pulls and pushes: energy k (y - y_r)^2 / 2 of the path's length y.

    path: two or more pairs (body, point (3,) in m in its frame), body None for the world.
    stiffness k in N/m and rest_length y_r in m, scalars.
    """

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))

    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch = length - self.rest_length
        return self.stiffness * stretch * stretch / 2

    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return self.stiffness * (length - self.rest_length)


class Rope(Elastic):
    """An elastic rope, slack below its rest length: energy k max(y - y_r, 0)^2 / 2.

    Arguments as of `Spring`. Where it becomes taut the tension has a kink, and the derivative of
    the taut side is taken.
    """

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))

    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch = self._stretch(length)
        return self.stiffness * stretch * stretch / 2

    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return self.stiffness * self._stretch(length)

    def _stretch(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch = length - self.rest_length
        return jnp.where(stretch < 0, jnp.zeros_like(stretch), stretch)


class SmoothRope(Elastic):
    """An elastic rope that becomes taut gradually, within `smoothing` d of its rest length.

    Arguments as of `Spring`; smoothing d in m, a scalar. The tension is 0 below y_r - d and k (y -
    y_r) above y_r + d; between them its slope is k (3 x^2 - 2 x^3), x = (y - y_r + d) / 2 d, so
    that it has two continuous derivatives.
    """

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))
    smoothing: jax.Array = eqx.field(converter=number(unit="m", positive=True, fix="or use Rope"))

    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        d = self.smoothing
        stretch, x = self._blend(length)
        taut = stretch * stretch / 2 + d * d / 10
        rising = d * d * x * x * x * x * (1 - 2 * x / 5)
        return self.stiffness * jnp.where(stretch > d, taut, rising)

    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch, x = self._blend(length)
        rising = 2 * self.smoothing * x * x * x * (1 - x / 2)
        return self.stiffness * jnp.where(stretch > self.smoothing, stretch, rising)

    def _blend(self, length: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """y - y_r, and x, held at the ends of its interval."""
        stretch, d = length - self.rest_length, self.smoothing
        x = (stretch + d) / (2 * d)
        x = jnp.where(stretch < -d, jnp.zeros_like(x), jnp.where(stretch > d, jnp.ones_like(x), x))
        return stretch, x


class SpringDamper(Spring):
    """A `Spring` and a `Damper` in one: the tension k (y - y_r) + c dy/dt.

    Arguments as of `Spring`; damping c in N s/m, a scalar. Where two points coincide it has no
    direction, and does not damp.
    """

    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return super().forces(frames, velocities) + self._damping(frames, velocities)

    def mean_forces(
        self, start: Vector, end: Vector, middle: Transform, velocities: Vector
    ) -> Vector:
        elastic = super().mean_forces(start, end, middle, velocities)
        return elastic + self._damping(middle, velocities)

    def _damping(self, frames: Transform, velocities: Vector) -> Vector:
        return Damper(self.path, self.damping).forces(frames, velocities)


class Viscous(PointCoupling):
    """A damper: a law tension(y, dy/dt) in N of the length y of its path and the rate of it."""

    @abc.abstractmethod
    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The tension () in N at a length () in m and a rate () in m/s; it never gives energy."""

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        step, _, length = segments(frames.translation)
        direction = step * inverse(length)
        spread = jax.tree.map(lambda a: a[1:] - a[:-1], velocities)
        rate = jnp.sum(direction.dot(spread))
        return pulled(direction * self.tension(jnp.sum(length), rate))


class Damper(Viscous):
    """A viscous damper along a path: the tension c dy/dt.

    path as of `Spring`; damping c in N s/m, a scalar.
    """

    path: Path = eqx.field(converter=as_path)
    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))

    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return self.damping * rate


class TensionDamper(Viscous):
    """The damping of a rope, which cannot push: c max(dy/dt, 0) while the path is taut, y >= y_r.

    path as of `Spring`; damping c in N s/m, rest_length y_r in m, scalars; with y_r = 0 a damper
    that acts whenever its path lengthens. The tension jumps where a rope that lengthens becomes
    taut, and has a kink where it stops; the derivatives there are those of the side that pulls.
    """

    path: Path = eqx.field(converter=as_path)
    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True), default=0.0)

    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        idle = (length < self.rest_length) | (rate < 0)
        return self.damping * jnp.where(idle, jnp.zeros_like(rate), rate)


class SmoothTensionDamper(Viscous):
    """A `TensionDamper` that sets in gradually: c dy/dt E((y - y_r) / d) E(dy/dt / e).

    Arguments as of it; smoothing d in m and rate_smoothing e in m/s, scalars. With two continuous
    derivatives E(x) = 10 x^3 - 15 x^4 + 6 x^5 rises from 0 at x = 0 to 1 at x = 1. The tension is
    zero, exactly, in a slack path and in one that shortens.
    """

    path: Path = eqx.field(converter=as_path)
    damping: jax.Array = eqx.field(converter=number(unit="N s/m", nonnegative=True))
    rest_length: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))
    smoothing: jax.Array = eqx.field(
        converter=number(unit="m", positive=True, fix="or use TensionDamper")
    )
    rate_smoothing: jax.Array = eqx.field(
        converter=number(unit="m/s", positive=True, fix="or use TensionDamper")
    )

    def tension(self, length: Float[Array, "*n"], rate: Float[Array, "*n"]) -> Float[Array, "*n"]:
        taut = _engaged((length - self.rest_length) / self.smoothing)
        return self.damping * rate * taut * _engaged(rate / self.rate_smoothing)


def _engaged(x: jax.Array) -> jax.Array:
    inside = jnp.where(x < 0, jnp.zeros_like(x), jnp.where(x > 1, jnp.ones_like(x), x))
    return inside * inside * inside * (10 - 15 * inside + 6 * inside * inside)


class PointForce(PointCoupling):
    """A constant force (3,) in N, in world coordinates, at a point of a body.

    path: one pair (body, point (3,) in m in its frame). It counts as an input: `energy` has no
    potential of it.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    force: jax.Array = eqx.field(converter=number(unit="N", shape=(3,)))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return Vector.from_array(self.force[None])


class FollowerForce(PointCoupling):
    """A force (3,) in N that turns with the body it acts on, such as a thruster's.

    path: one pair (body, point (3,) in m in its frame); force in body coordinates.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    force: jax.Array = eqx.field(converter=number(unit="N", shape=(3,)))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return frames.rotation @ Vector.from_array(self.force[None])
