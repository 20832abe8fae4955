"""Transmissions at a frame of a body: a moment and a force, in its axes or those of another."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...groups import so3
from ...groups.components import Vector
from ...spatial import Force, Transform
from ...system.fields import number
from ...system.frame import Frame, as_frame
from ...system.system import System
from ..path import Path
from .transmission import PointTransmission, stacked


class SiteTransmission(PointTransmission):
    """A moment and a force `gear` (6,) at a frame of a body, for a force of one.

    site: a `Frame`, or a body's name. gear: the moment, then the force, in the axes of the site,
    about its origin. The length is 0, as no length belongs to such a force.

    With a reference, another `Frame`, both are in the axes of the reference, which they push back
    against: only the joints between the two bodies are driven. The length is the product of the
    gear with the rotation vector and the position of the site in the reference. `System`s refuse
    it until `common` is the name of the body from which both bodies branch off, None for the world;
    see `branching`. It is the transmission `site` of MuJoCo.
    """

    site: Frame = eqx.field(converter=as_frame)
    gear: jax.Array = eqx.field(converter=number(unit="1 or m", shape=(6,)))
    reference: Frame | None = eqx.field(default=None, kw_only=True)
    common: str | None = eqx.field(static=True, default=None, kw_only=True)

    @property
    def path(self) -> Path:
        if self.reference is None:
            return Path(self.site.position[None], (self.site.body,))
        points = jnp.stack((self.site.position, self.reference.position, jnp.zeros(3)))
        return Path(points, (self.site.body, self.reference.body, self.common))

    @property
    def label(self) -> str:
        return str(self.site.body)

    def incompatibilities(self, system: System) -> list[str]:
        found = super().incompatibilities(system)
        if found or self.reference is None:
            return found
        common = branching(system, self.site.body, self.reference.body)
        if common != self.common:
            return [f"both bodies branch off from {common!r}; give it common={common!r}"]
        return []

    def lever(self, frames: Transform) -> tuple[Float[Array, ""], Force]:
        moment, force = (Vector.from_array(part) for part in (self.gear[:3], self.gear[3:]))
        at = [jax.tree.map(lambda a, i=i: a[i], frames) for i in range(len(self.path.bodies))]
        turn = at[0].rotation @ self.site.pose.rotation
        if self.reference is None:
            wrench = Force(stacked([turn @ moment]), stacked([turn @ force]))
            return jnp.zeros_like(turn.xx), wrench
        axes = at[1].rotation @ self.reference.pose.rotation
        apart = at[0].translation - at[1].translation
        rotation = so3.log_components(axes.transpose() @ turn)
        length = rotation.dot(moment) + axes.transposed_times(apart).dot(force)
        moment, force = axes @ moment, axes @ force
        # The two forces are a moment together, which would turn the bodies below the branching.
        back = force.cross(apart)
        nothing = force * 0.0
        return length, Force(stacked([moment, -moment, back]), stacked([force, -force, nothing]))


def branching(system: System, first: str | None, second: str | None) -> str | None:
    """The last body that carries both bodies, or is one of them; None for the world."""

    def carriers(body: str | None) -> list[str]:
        t, found = system.topology, []
        b = -1 if body is None else t.bodies.index(body)
        while b >= 0:
            found.append(t.bodies[b])
            b = t.parents[b]
        return found

    others = carriers(second)
    return next((body for body in carriers(first) if body in others), None)
