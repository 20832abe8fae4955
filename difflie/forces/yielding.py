"""Springs that yield: beyond an elastic stretch their rest moves along (ideal plasticity).

    force = -(k s + a s^2 + b s^3),    s clipped to [-y, y]

for a stretch s, with stiffness (3,): k, a and b, and elastic_stretch y. The rest is an internal
state z, which moves at the rate of s where s is at y or -y and would leave the range, and stays
elsewhere. What a spring lets go is dissipated. z has a return map, the least move of the rest that
takes s back into the range, as of radial return in plasticity (Simo and Hughes 1998, section 1.4),
so that all methods take them; derivatives where a spring begins to yield are those of one side.
They are the `springyield` of MuJoCo 4, which moves the rest after each time step.
"""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups import quaternion, so3
from ..groups.components import Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from ..system.system import Joints
from ..system.topology import Topology
from .actuators.actuator import between
from .bushing import both, pair, turned_frame
from .internal_states import StatefulCoupling, StatefulJointCoupling, StatefulJointForce
from .path import Path, as_path, inverse, root
from .polynomials import higher_energy, higher_spring
from .tendons import AlongFixedTendon, AlongTendon
from .transmissions import FixedTendon, PointTransmission

# Annotations are evaluated in this file: otherwise Equinox takes an AbstractVar for a field.


class YieldingLaw(eqx.Module):
    """The force of a spring that yields, and where it does."""

    stiffness: eqx.AbstractVar[jax.Array]
    elastic_stretch: eqx.AbstractVar[jax.Array]

    def elastic(self, stretch: Float[Array, ""]) -> Float[Array, ""]:
        """The force () against a stretch () that is elastic."""
        return self.stiffness[0] * stretch + higher_spring(self.stiffness[1:], stretch)

    def stored(self, stretch: Float[Array, ""]) -> Float[Array, ""]:
        """The energy () in J at a stretch ()."""
        s = between(stretch, -self.elastic_stretch, self.elastic_stretch)
        return self.stiffness[0] * s * s / 2 + higher_energy(self.stiffness[1:], s)

    def excess(self, stretch: Float[Array, ""]) -> Float[Array, ""]:
        """What of a stretch () is not elastic."""
        return stretch - between(stretch, -self.elastic_stretch, self.elastic_stretch)

    def slip(self, stretch: Float[Array, ""], rate: Float[Array, ""]) -> Float[Array, ""]:
        """The rate () of the rest, at a stretch () that changes at this rate ()."""
        # At the bound but for rounding.
        most = self.elastic_stretch * (1 - float(jnp.finfo(stretch.dtype).eps) ** 0.5)
        yields = ((stretch >= most) & (rate > 0)) | ((stretch <= -most) & (rate < 0))
        return jnp.where(yields, rate, jnp.zeros_like(rate))


class YieldingSpring(YieldingLaw, StatefulJointForce):
    """A spring at a joint that yields; its stretch is s = x - z.

        force = -(k s + a s^2 + b s^3),    s clipped to [-y, y]

    x is the joint's coordinate, and z its rest, in rad or m, which moves at the rate of s where s
    is at y or -y and would leave the range. joint: its name, with one degree of freedom; stiffness
    (3,): k, a and b, in N m/rad^n or N/m^n; elastic_stretch y in rad or m, a scalar. z0 (1,): the
    rest at the start. name: as of `Coupling`.
    """

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad^n or N/m^n", shape=(3,)))
    elastic_stretch: jax.Array = eqx.field(converter=number(unit="rad or m", nonnegative=True))

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        return (("rest", "rad or m"),)

    def law(
        self, x: Float[Array, ""], v: Float[Array, ""], z: Float[Array, "1"]
    ) -> tuple[Float[Array, ""], Float[Array, "1"]]:
        stretch = x - z[0]
        return -self.elastic(stretch), self.slip(stretch, v)[None]

    def return_map(self, x: Float[Array, ""], z: Float[Array, "1"]) -> Float[Array, "1"]:
        return z + self.excess(x - z[0])

    def potential(self, x: Float[Array, ""]) -> Float[Array, ""]:
        return self.stored(x - self.z[0])


class YieldingRotation(YieldingLaw, StatefulCoupling):
    """A spring between the attitudes of two bodies that yields, as of a ball joint.

        theta = log(Z^T R_1^T R_2),    s = |theta|

    A moment as the force of `YieldingSpring` acts on the second body against theta, and its
    opposite on the first; no force acts. The rest Z is the rotation of a quaternion z (4,), (w, x,
    y, z), which turns towards R_1^T R_2 where the spring yields. path: two pairs (body, point (3,)
    in m in its frame), body None for the world; only the bodies matter. stiffness (3,): k, a and b,
    in N m/rad^n; elastic_stretch y in rad, a scalar; first_rotation (3,), rotation vector in rad of
    the first frame in its body. z0 (4,): the rest at the start. |theta| is at most pi, where its
    axis jumps. name: as of `Coupling`.
    """

    needs: ClassVar[str] = "two points"

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad^n", shape=(3,)))
    elastic_stretch: jax.Array = eqx.field(converter=number(unit="rad", nonnegative=True))
    first_rotation: jax.Array = eqx.field(
        converter=number(unit="rad", shape=(3,), kind="rotation"), default=(0, 0, 0), kw_only=True
    )
    z0: jax.Array | None = eqx.field(
        converter=number(shape=(4,)), default=(1.0, 0.0, 0.0, 0.0), kw_only=True
    )

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"rest {part}", "") for part in "wxyz")

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> "YieldingRotation":
        turned = so3.log(rotations[0] @ so3.exp(self.first_rotation) @ rotations[1].T)
        z = jnp.concatenate([self.z[:1], rotations[1] @ self.z[1:]])
        return replace(self, path=path, first_rotation=turned, z0=z)

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """U () in J with the points at these frames (2,) in the world."""
        return self.stored(root(self._turn(frames, self.z)[0].square()))

    def law(
        self, frames: Transform, twists: Motion, z: Float[Array, "4"]
    ) -> tuple[Force, Float[Array, "4"]]:
        theta, seen = self._turn(frames, z)
        by = root(theta.square())
        axis = theta * inverse(by)
        first, second = both(twists)
        rate = axis.dot(seen.rotation.transposed_times(second.angular - first.angular))
        moment = seen.rotation @ (axis * -self.elastic(by))
        none = jax.tree.map(jnp.zeros_like, moment)
        turning = axis * (self.slip(by, rate) / 2)
        w, v = quaternion.multiply_components(z[0], Vector.from_array(z[1:]), 0 * rate, turning)
        return pair(Force(-moment, none), Force(moment, none)), jnp.append(w, v.to_array())

    def return_map(self, frames: Transform, z: Float[Array, "4"]) -> Float[Array, "4"]:
        theta, _ = self._turn(frames, z)
        by = root(theta.square())
        turn = quaternion.exp_components(theta * (inverse(by) * self.excess(by)))
        w, v = quaternion.multiply_components(z[0], Vector.from_array(z[1:]), *turn)
        return jnp.append(w, v.to_array())

    def _turn(self, frames: Transform, z: Float[Array, "4"]) -> tuple[Vector, Transform]:
        """theta in rad, in the axes of the first frame at the rest, and this frame."""
        first, second = both(frames)
        rest = quaternion.to_matrix_components(z[0], Vector.from_array(z[1:]))
        first = turned_frame(first, self.first_rotation)
        first = Transform(first.rotation @ rest, first.translation)
        return so3.log_components(first.rotation.transpose() @ second.rotation), first


class YieldingTendonLaw(YieldingLaw):
    """A spring along a length l with a slack range that yields, as `YieldingSpring` does.

        s = max(l - z_1, 0) + min(l - z_0, 0)

    The rest z (2,) in m are the lengths between which it is slack. Both move together, but that a
    range from 0 to a length, as of a rope, grows where the spring is stretched. stiffness (3,): k,
    a and b, in N/m^n; elastic_stretch y in m, a scalar; z0 (2,): the rest at the start.
    """

    stiffness: jax.Array = eqx.field(converter=number(unit="N/m^n", shape=(3,)), kw_only=True)
    elastic_stretch: jax.Array = eqx.field(
        converter=number(unit="m", nonnegative=True), kw_only=True
    )

    @property
    def states(self) -> tuple[tuple[str, str], ...]:
        return (("shortest rest", "m"), ("longest rest", "m"))

    @staticmethod
    def stretch(length: Float[Array, ""], z: Float[Array, "2"]) -> Float[Array, ""]:
        """s () in m at a length () in m."""
        return jnp.maximum(length - z[1], 0) + jnp.minimum(length - z[0], 0)

    def tension(
        self, length: Float[Array, ""], rate: Float[Array, ""], z: Float[Array, "2"]
    ) -> tuple[Float[Array, ""], Float[Array, "2"]]:
        """The tension () in N, and dz/dt (2,), at a length () in m and its rate ()."""
        stretch = self.stretch(length, z)
        return self.elastic(stretch), self.moves(self.slip(stretch, rate), z)

    def returned(self, length: Float[Array, ""], z: Float[Array, "2"]) -> Float[Array, "2"]:
        """The rest (2,) in m at a length () in m, from that before."""
        return z + self.moves(self.excess(self.stretch(length, z)), z)

    @staticmethod
    def moves(slip: Float[Array, ""], z: Float[Array, "2"]) -> Float[Array, "2"]:
        """How both lengths (2,) of the rest move where the stretch slips () by so much."""
        pinned = (z[0] == 0) & (z[1] > 0) & (slip > 0)
        return jnp.stack((jnp.where(pinned, jnp.zeros_like(slip), slip), slip))


class YieldingTendon(YieldingTendonLaw, AlongTendon, StatefulCoupling):
    """A spring that yields along a tendon between bodies.

    transmission: a `SpatialTendon`, or another transmission between bodies. stiffness (3,): k, a
    and b, in N/m^n; elastic_stretch in m, a scalar; z0 (2,): the rest at the start, the lengths in
    m between which it is slack. name: as of `Coupling`. What else acts along the tendon, such as a
    damper, is a `Tendon`.
    """

    transmission: PointTransmission

    def energy(self, frames: Transform) -> Float[Array, ""]:
        return self.stored(self.stretch(self.transmission.lever(frames)[0], self.z))

    def law(
        self, frames: Transform, twists: Motion, z: Float[Array, "2"]
    ) -> tuple[Force, Float[Array, "2"]]:
        length, wrenches = self.transmission.lever(frames)
        tension, rates = self.tension(length, jnp.sum(twists.dot(wrenches)), z)
        return wrenches * -tension, rates

    def return_map(self, frames: Transform, z: Float[Array, "2"]) -> Float[Array, "2"]:
        return self.returned(self.transmission.lever(frames)[0], z)


class YieldingJointTendon(YieldingTendonLaw, AlongFixedTendon, StatefulJointCoupling):
    """A spring that yields along a fixed tendon, in joint coordinates.

    transmission: a `FixedTendon`. stiffness, elastic_stretch: as of `YieldingTendon`, with the unit
    of the tendon's length. z0 (2,): the rest at the start, the lengths between which it is slack.
    name: as of `Coupling`. What else acts along the tendon, such as a damper, is a `JointTendon`.
    """

    transmission: FixedTendon

    def energy(self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"]) -> Float[Array, ""]:
        return self.stored(self.stretch(self.transmission.along(t, x)[0], self.z))

    def law(
        self,
        t: Topology,
        joints: Joints,
        x: Float[Array, " n_dofs"],
        rate: Float[Array, " n_dofs"],
        z: Float[Array, "2"],
    ) -> tuple[Float[Array, " n_dofs"], Float[Array, "2"]]:
        length, arm = self.transmission.along(t, x)
        tension, rates = self.tension(length, jnp.sum(arm * rate), z)
        return -arm * tension, rates

    def return_map(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], z: Float[Array, "2"]
    ) -> Float[Array, "2"]:
        return self.returned(self.transmission.along(t, x)[0], z)
