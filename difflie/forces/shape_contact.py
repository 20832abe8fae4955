"""Compliant contacts between shapes, with friction.

Every contact point of two shapes carries the force of `contacts.py`, halfway between the surfaces.
It may carry moments, too: with the angular velocity w of the second shape relative to the first,
its part w_n = n . w along the normal and the rest w_t,

    m = -mu_s f_n w_n n / sqrt(w_n^2 + ws^2) - mu_r f_n w_t / sqrt(|w_t|^2 + ws^2)

the friction against spinning and against rolling, with arms mu_s and mu_r in m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..collision.distances.heights import REACH
from ..collision.distances.table import is_closed_form
from ..collision.distances.witness import Witness
from ..collision.meetings import Meetings, meetings, rotations
from ..collision.pairs import Pair
from ..collision.shapes import HeightField, Shape
from ..groups import so3
from ..groups.components import Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from ..system.frame import Frame
from .compliance import Compliance
from .contacts import resistance
from .coupling import Coupling
from .path import Path

# The numbers that each pair has of its own.
OF_PAIRS = "stiffness", "dissipation", "friction", "spinning", "rolling", "margin"


class Ends(NamedTuple):
    """The origins of the frames of two shapes in the world, and their twists there."""

    first: Vector
    second: Vector
    first_twist: Motion
    second_twist: Motion


class Touch(NamedTuple):
    """What acts at the contact points (k,) of a pair.

    place: where it acts; slip: the velocity of the second shape against the first there, across
    the normal, in m/s; pressure: the normal force in N; force: that on the second shape, with
    friction, in N; moment: that on the second shape, in N m; all in world coordinates.
    """

    points: Witness
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
        for name in OF_PAIRS:
            if jnp.shape(getattr(self, name)) != (m,):
                return [f"{name} has shape {jnp.shape(getattr(self, name))}, needed is {(m,)}"]
        faults = [f"{n}: {text}" for n, s in self.geometry.items() for text in s.problems()]
        faults = faults or [text for pair in self.pairs for text in self._on_heights(*pair)]
        return faults or super().problems()

    def _on_heights(self, first: str, second: str) -> list[str]:
        """Why two shapes do not touch, one of which is a height field."""
        shapes = self.geometry[first], self.geometry[second]
        fields = [shape for shape in shapes if isinstance(shape, HeightField)]
        if not fields:
            return []
        if not is_closed_form(*(shape.kind for shape in shapes)):
            return [
                f"{first!r} and {second!r}: a height field touches spheres, capsules, boxes and "
                "hulls; make the other shape one of these, or leave out the pair by `without`"
            ]
        radius = max(getattr(shape, "radius", 0.0) for shape in shapes)
        most = REACH * fields[0].cells.min()
        if isinstance(radius > most, Tracer) or radius <= most:
            return []
        return [
            f"{first!r} and {second!r}: a radius of {float(radius):g} m is more than {REACH} cells "
            f"of the height field ({float(most):g} m); give fewer heights, or smaller balls"
        ]

    def touches(self, frames: Transform, twists: Motion) -> Iterator[tuple[np.ndarray, Touch]]:
        """The numbers (m,) of pairs of the same kinds, and what acts on them (m, k).

        frames, twists: as of `wrenches`.
        """
        for pairs in self.meetings(frames):
            yield pairs.index, jax.vmap(self._touch(pairs))(*self._rows(pairs, frames, twists))

    def meetings(self, frames: Transform) -> Iterator[Meetings]:
        """The pairs by their kinds, at frames (n,) as of `wrenches`."""
        shapes = [self.geometry[name] for name in sorted(self.geometry)]
        poses = Transform(frames.rotation @ rotations(shapes), frames.translation)
        return meetings(self.geometry, self.pairs, poses)

    def _rows(self, pairs: Meetings, frames: Transform, twists: Motion) -> tuple[Any, ...]:
        """What `_touch` takes, (m, ...) each."""
        numbers = {name: getattr(self, name)[pairs.index] for name in OF_PAIRS}
        sides = pairs.first, pairs.second
        ends = [
            jax.tree.map(lambda a, who=who: a[who], values)
            for values in (frames.translation, twists)
            for who in sides
        ]
        return numbers, pairs.given, Ends(*ends)

    def _touch(self, pairs: Meetings) -> Callable[..., Touch]:
        """What acts at the contact points of one pair: a function of a row of `_rows`."""

        def touch(numbers: dict[str, Any], given: tuple[Any, ...], ends: Ends) -> Touch:
            law, points = replace(self, **numbers), pairs.meet(*given)
            points = replace(points, gap=points.gap - law.margin)
            place = points.middle
            one, other = ends.first_twist, ends.second_twist
            relative = (other.linear + other.angular.cross(place - ends.second)) - (
                one.linear + one.angular.cross(place - ends.first)
            )
            spin, normal = other.angular - one.angular, points.normal
            rate = normal.dot(relative)
            pressure = jnp.where(points.valid, law.pressure(points.gap, rate), 0)
            slip = relative - normal * rate
            rubbing = resistance(slip, law.friction * pressure, law.slip_velocity)
            about = normal * normal.dot(spin)
            moment = resistance(about, law.spinning * pressure, law.spin_velocity) + resistance(
                spin - about, law.rolling * pressure, law.spin_velocity
            )
            return Touch(points, place, slip, pressure, normal * pressure + rubbing, moment)

        return touch

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        total = jax.tree.map(jnp.zeros_like, Force(frames.translation, frames.translation))
        for pairs in self.meetings(frames):
            touch = self._touch(pairs)
            ends = [who[:, None] == np.arange(len(self.geometry)) for who in pairs[1:3]]

            # A loop that carries all that it makes, so that programs need not write it out.
            def add(total: Force, row: Any, touch: Any = touch) -> tuple[Force, None]:
                given, masks, reach = row
                if reach is None:
                    return _added(total, touch(*given), given[2], masks), None
                step = given[2].second - given[2].first
                far = step.square() > reach * reach
                return jax.lax.cond(
                    far, lambda: total, lambda: _added(total, touch(*given), given[2], masks)
                ), None

            reach = None if pairs.balls is None else pairs.balls + self.margin[pairs.index]
            rows = self._rows(pairs, frames, twists), tuple(map(jnp.asarray, ends)), reach
            total, _ = jax.lax.scan(add, total, rows)
        return total

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """The energy () in J that the contacts store, with the shapes at these frames (n,)."""
        stored = jnp.zeros((), frames.translation.x.dtype)
        for pairs in self.meetings(frames):
            points, at = pairs.points, pairs.index
            law = replace(self, stiffness=self.stiffness[at][:, None])
            each = law.potential(points.gap - self.margin[at][:, None])
            stored = stored + jnp.sum(jnp.where(points.valid, each, 0))
        return stored

    def __str__(self) -> str:
        return f"{type(self).__name__} of {len(self.pairs)} pairs of {len(self.geometry)} shapes"


def _added(total: Force, touch: Touch, ends: Ends, masks: tuple[jax.Array, ...]) -> Force:
    """The wrenches (n,) with those of a pair; masks (n,): which are of its first, its second."""
    for on, origin, sign in zip(masks, ends[:2], (-1.0, 1.0), strict=True):
        force = touch.force * sign
        moment = (touch.place - origin).cross(force) + touch.moment * sign
        wrench = jax.tree.map(jnp.sum, Force(moment, force))
        total = jax.tree.map(lambda a, b, on=on: a + jnp.where(on, b, 0), total, wrench)
    return total
