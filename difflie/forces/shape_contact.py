"""Compliant contacts between shapes, with friction.

Every contact point of two shapes carries the force of `contacts.py`, halfway between the surfaces.
It may carry moments, too: with the angular velocity w of the second shape relative to the first,
its part w_n = n . w along the normal and the rest w_t,

    m = -mu_s f_n w_n n / sqrt(w_n^2 + ws^2) - mu_r f_n w_t / sqrt(|w_t|^2 + ws^2)

the friction against spinning and against rolling, with arms mu_s and mu_r in m.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..collision.meetings import Meetings, meetings, rotations
from ..collision.pairs import Pair
from ..collision.shapes import Shape
from ..groups import so3
from ..groups.components import Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from ..system.frame import Frame
from .compliance import Compliance
from .contacts import resistance
from .coupling import Coupling
from .path import Path


class Touch(NamedTuple):
    """What acts at the points (m, k) where m pairs of the same kinds meet.

    place: where it acts; slip: the velocity of the second shape against the first there, across
    the normal, in m/s; pressure: the normal force in N; force: that on the second shape, with
    friction, in N; moment: that on the second shape, in N m; all in world coordinates.
    """

    meeting: Meetings
    place: Vector
    slip: Vector
    pressure: jax.Array
    force: Vector
    moment: Vector


class ShapeContact(Compliance, Coupling):
    """Contacts between pairs of shapes, see `difflie.touching`, which makes it.

    geometry: the shapes by name; pairs: the m pairs of names. For each pair: stiffness (m,) in
    N/m^p and dissipation (m,) in s/m of each contact point, friction mu (m,), spinning mu_s (m,)
    and rolling mu_r (m,) in m, margin (m,) in m, by which the surfaces stand out. For all: exponent
    p, slip_velocity vs in m/s, spin_velocity ws in rad/s, smoothing in m, as of `Contact`. name: as
    of `Coupling`.
    """

    needs: ClassVar[str] = "two points or more"

    geometry: dict[str, Shape]
    pairs: tuple[Pair, ...] = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=number(unit="N/m^p", shape=None, nonnegative=True))
    dissipation: jax.Array = eqx.field(converter=number(unit="s/m", shape=None, nonnegative=True))
    friction: jax.Array = eqx.field(converter=number(shape=None, nonnegative=True))
    spinning: jax.Array = eqx.field(converter=number(unit="m", shape=None, nonnegative=True))
    rolling: jax.Array = eqx.field(converter=number(unit="m", shape=None, nonnegative=True))
    margin: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    exponent: jax.Array = eqx.field(converter=number(least=1), default=1.0, kw_only=True)
    slip_velocity: jax.Array = eqx.field(
        converter=number(unit="m/s", positive=True), default=1e-2, kw_only=True
    )
    spin_velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s", positive=True), default=1e-1, kw_only=True
    )
    smoothing: jax.Array = eqx.field(
        converter=number(unit="m", nonnegative=True), default=0.0, kw_only=True
    )

    @property
    def shapes(self) -> dict[str, Any]:
        """The shapes by name."""
        return self.geometry

    @property
    def path(self) -> Path:
        """The origins of the frames of the shapes, in the order of their names."""
        frames = [self.geometry[name].frame for name in sorted(self.geometry)]
        return Path(jnp.stack([f.position for f in frames]), tuple(f.body for f in frames))

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> ShapeContact:
        moved = {}
        for k, name in enumerate(sorted(self.geometry)):
            shape = self.geometry[name]
            turn = so3.log(rotations[k] @ so3.exp(shape.frame.rotation))
            frame = Frame(path.bodies[k], path.points[k], turn)
            moved[name] = replace(shape, frame=frame)
        return replace(self, geometry=moved)

    def problems(self) -> list[str]:
        m = len(self.pairs)
        for name in ("stiffness", "dissipation", "friction", "spinning", "rolling", "margin"):
            if jnp.shape(getattr(self, name)) != (m,):
                return [f"{name} has shape {jnp.shape(getattr(self, name))}, needed is {(m,)}"]
        faults = [f"{n}: {text}" for n, s in self.geometry.items() for text in s.problems()]
        return faults or super().problems()

    def touches(self, frames: Transform, twists: Motion) -> Iterator[Touch]:
        """The contact points, a `Touch` for each two kinds of shapes; arguments of `wrenches`."""
        for meeting in self.meetings(frames):
            _, first, second, points = meeting
            law = self._law(meeting.index)
            place = (points.first + points.second) * 0.5
            one, other = (_moving(frames, twists, who, place) for who in (first, second))
            relative, spin = other.linear - one.linear, other.angular - one.angular
            normal = points.normal
            rate = normal.dot(relative)
            pressure = jnp.where(points.valid, law.pressure(points.gap, rate), 0)
            slip = relative - normal * rate
            force = normal * pressure + resistance(
                slip, law.friction * pressure, self.slip_velocity
            )
            about = normal * normal.dot(spin)
            moment = resistance(about, law.spinning * pressure, self.spin_velocity) + resistance(
                spin - about, law.rolling * pressure, self.spin_velocity
            )
            yield Touch(meeting, place, slip, pressure, force, moment)

    def meetings(self, frames: Transform) -> Iterator[Meetings]:
        """The contact points at frames (n,) as of `wrenches`; gaps are less by the margin."""
        shapes = [self.geometry[name] for name in sorted(self.geometry)]
        poses = Transform(frames.rotation @ rotations(shapes), frames.translation)
        for found in meetings(self.geometry, self.pairs, poses):
            points = found.points
            gap = points.gap - self.margin[found.index][:, None]
            yield found._replace(points=replace(points, gap=gap))

    def _law(self, index: np.ndarray) -> ShapeContact:
        """The law with the numbers (m, 1) of some pairs."""
        names = "stiffness", "dissipation", "friction", "spinning", "rolling"
        return replace(self, **{name: getattr(self, name)[index][:, None] for name in names})

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        total = jax.tree.map(jnp.zeros_like, Force(frames.translation, frames.translation))
        n = len(self.geometry)
        for touch in self.touches(frames, twists):
            for who, sign in ((touch.meeting.first, -1.0), (touch.meeting.second, 1.0)):
                force = touch.force * sign
                arm = touch.place - _of(frames.translation, who)
                moment = arm.cross(force) + touch.moment * sign
                wrench = Force(moment, force)
                sums = jax.tree.map(
                    lambda a, who=who: jax.ops.segment_sum(jnp.sum(a, axis=1), who, n), wrench
                )
                total = total + sums
        return total

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """The energy () in J that the contacts store, with the shapes at these frames (n,)."""
        stored = jnp.zeros((), frames.translation.x.dtype)
        for meeting in self.meetings(frames):
            each = self._law(meeting.index).potential(meeting.points.gap)
            stored = stored + jnp.sum(jnp.where(meeting.points.valid, each, 0))
        return stored

    def __str__(self) -> str:
        return f"{type(self).__name__} of {len(self.pairs)} pairs of {len(self.geometry)} shapes"


def _of(values: Any, who: np.ndarray) -> Any:
    """The values (m, 1) of some shapes."""
    return jax.tree.map(lambda a: a[who][:, None], values)


def _moving(frames: Transform, twists: Motion, who: np.ndarray, place: Vector) -> Motion:
    """The angular velocities (m, 1) of some shapes, and their velocities at points (m, k)."""
    twist, origin = _of((twists, frames.translation), who)
    return Motion(twist.angular, twist.linear + twist.angular.cross(place - origin))
