"""Forces at joints: drag, Stribeck friction, springs and dampers of higher order, and stops."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..system.fields import number
from ..system.joints import Free, Spherical
from ..system.protocols import ForceElement
from ..system.system import Joints, System
from ..system.topology import Topology
from ..system.validation import ModelError, nearest
from .at_joint import AtJoint, JointCoupling
from .compliance import Compliance
from .names_of_couplings import title
from .polynomials import higher_damper, higher_energy, higher_spring


class JointDrag(AtJoint, JointCoupling):
    """Air or another fluid at rest that a joint with one degree of freedom moves a body through.

        effort = -drag v^2 tanh(v / v0)

    in N m or N, with v the joint's rate: -drag v |v|, made smooth at rest over the joint's own
    `friction_velocity` v0, as Coulomb friction is. drag in N m s^2 or N s^2/m^2, a scalar: half the
    fluid's density times a drag coefficient, times the area's third moment about the axis (or the
    area). It always dissipates. Where a joint carries another, only the rate between the two
    counts. name: as of `Coupling`. Batchelor 1967, chapter 5.
    """

    joint: str = eqx.field(static=True)
    drag: jax.Array = eqx.field(converter=number(unit="N m s^2 or N s^2/m^2", nonnegative=True))

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        k = self.dof(t)
        v = rate[k]
        effort = -self.drag * v**2 * jnp.tanh(v / joints.friction_velocity[k])
        return jnp.zeros_like(rate).at[k].set(effort)


class Stribeck(AtJoint, JointCoupling):
    """The Stribeck friction of a joint, which fades with speed, added to its Coulomb friction.

        effort = -breakaway exp(-(v / v_s)^2) tanh(v / v0)

    at a joint with one degree of freedom. breakaway in N m or N: by how much friction near zero
    velocity exceeds that at high speed. v_s = stribeck_velocity in rad/s or m/s, over which it
    fades; both are scalars. v0 is the joint's own `friction_velocity`, over which its Coulomb
    friction rises, so that both are one curve. It always dissipates. Where v0 is not well below v_s
    the peak is less than breakaway. name: as of `Coupling`. Armstrong-Hélouvry, Dupont and Canudas
    de Wit 1994, section 2.
    """

    joint: str = eqx.field(static=True)
    breakaway: jax.Array = eqx.field(converter=number(unit="N m or N", nonnegative=True))
    stribeck_velocity: jax.Array = eqx.field(converter=number(unit="rad/s or m/s", positive=True))

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        k = self.dof(t)
        v = rate[k]
        fading = jnp.exp(-((v / self.stribeck_velocity) ** 2))
        effort = -self.breakaway * fading * jnp.tanh(v / joints.friction_velocity[k])
        return jnp.zeros_like(rate).at[k].set(effort)


class PolynomialForce(AtJoint, JointCoupling):
    """A spring and a damper of higher order at a joint, added to its linear ones.

        effort = -(a x^2 + b x^3) - (c v |v| + d v^3)

    at a joint with one degree of freedom, in N m or N. x is its coordinate less the joint's own
    `spring_reference`, v its rate. stiffness (2,): a and b, in N m/rad^n or N/m^n; damping (2,): c
    and d, likewise by the rate. The linear parts are the joint's own `stiffness` and `damping`. At
    a spherical or a free joint the damping acts on the rotation about each axis of the body by
    itself, and stiffness must be 0: springs there are those of a `Bushing`, and damping of a free
    joint's translation is that of a `PointDamping`. name: as of `Coupling`. They are the springs
    and dampers of MuJoCo 4 with several numbers.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(), mass=2.0)])
    >>> system = dl.attach(cart, dl.PolynomialForce("cart", stiffness=(0, 8.0), damping=(3.0, 0)))
    >>> print(dl.passive_force(system, [0.5], [-2.0]))  # -8 0.5^3 + 3 2^2, in N
    [11.]
    """

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(
        converter=number(unit="N m/rad^n or N/m^n", shape=(2,)), default=(0.0, 0.0), kw_only=True
    )
    damping: jax.Array = eqx.field(
        converter=number(unit="N m s^n/rad^n or N s^n/m^n", shape=(2,)),
        default=(0.0, 0.0),
        kw_only=True,
    )

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        t = system.topology
        if not self._turns(t):
            return super().incompatibilities(system, there) or self.needs_coordinate(system)
        if any(isinstance(other, PolynomialForce) and other.joint == self.joint for other in there):
            return ["the joint has one already; change its numbers"]
        if isinstance(self.stiffness, Tracer) or not np.any(np.asarray(self.stiffness)):
            return []
        return ["the joint has no coordinate; set stiffness to 0, and attach a dl.Bushing"]

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        k = self.dof(t)
        if self._turns(t):
            turning = slice(k, k + 3)
            force = higher_damper(self.damping, rate[turning])
            return jnp.zeros_like(rate).at[turning].set(-force)
        stretch, v = x[k] - joints.spring_reference[k], rate[k]
        force = higher_spring(self.stiffness, stretch) + higher_damper(self.damping, v)
        return jnp.zeros_like(rate).at[k].set(-force)

    def energy(self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"]) -> Float[Array, ""]:
        k = self.dof(t)
        if self._turns(t):
            return jnp.zeros((), x.dtype)
        return higher_energy(self.stiffness, x[k] - joints.spring_reference[k])

    def _turns(self, t: Topology) -> bool:
        """Whether its joint is a spherical or a free one, whose rotation comes first."""
        if self.joint not in t.joints:
            return False
        return isinstance(t.types[t.joints.index(self.joint)], Spherical | Free)


class WorldArmature(AtJoint, JointCoupling):
    """Lets the armature of a free joint's translation act along the axes of the world.

        force = -armature (w x v)

    in N, in the axes of the body, with its angular velocity w and the velocity v of its origin. A
    joint's armature multiplies the rates of v in the axes of the body; with this force it is that
    of a point mass without weight at the origin, which must be the same along all axes. It does no
    work. joint: its name. name: as of `Coupling`. It is the armature of free joints in MuJoCo.
    """

    joint: str = eqx.field(static=True)

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        t, joint = system.topology, self.joint
        if joint not in system.joint_names:
            near = nearest(str(joint), system.joint_names)
            return [f"no joint that moves by itself is named {joint!r}{near}"]
        if not isinstance(t.types[t.joints.index(joint)], Free):
            return ["the joint is no free joint; leave it out"]
        if any(isinstance(other, WorldArmature) and other.joint == joint for other in there):
            return ["the joint has one already"]
        armature = system.joints.armature
        if isinstance(armature, Tracer) or not np.ptp(np.asarray(armature)[self._along(t)]):
            return []
        return ["the armature along the joint is not the same in all directions; make it so"]

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        along = self._along(t)
        turning = slice(along.start - 3, along.start)
        force = -joints.armature[along] * jnp.cross(rate[turning], rate[along])
        return jnp.zeros_like(rate).at[along].set(force)

    def _along(self, t: Topology) -> slice:
        """The dofs of the translation, which follow those of the rotation."""
        return slice(self.dof(t) + 3, self.dof(t) + 6)


def _names(joints: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if joints is None:
        return None
    names = (joints,) if isinstance(joints, str) else joints
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"the joints of a JointStop are {joints!r}; give their names")
    return tuple(names)


class JointStop(Compliance, JointCoupling):
    """Compliant stops at the position limits of joints, with the contact law of `Compliance`.

    stiffness k in N m/rad^p or N/m^p, a scalar. joints: their names, or None for all that have a
    limit; the limits are the leaves `lower` and `upper` of `system.joints`, and an infinite limit
    has no stop. exponent p (1 or more), dissipation d in s/rad or s/m, smoothing eps in rad or m,
    scalars. name: as of `Coupling`. Attach further JointStops for joints with other numbers.
    """

    stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad^p or N/m^p", nonnegative=True))
    joints: tuple[str, ...] | None = eqx.field(static=True, converter=_names, default=None)
    exponent: jax.Array = eqx.field(converter=number(least=1), default=1.0, kw_only=True)
    dissipation: jax.Array = eqx.field(
        converter=number(unit="s/rad or s/m", nonnegative=True), default=0.0, kw_only=True
    )
    smoothing: jax.Array = eqx.field(
        converter=number(unit="rad or m", nonnegative=True), default=0.0, kw_only=True
    )

    def incompatibilities(self, system: System, there: Sequence[ForceElement]) -> list[str]:
        t = system.topology
        unknown = [name for name in self.joints or () if name not in t.joints]
        if unknown:
            return [f"no joint is named {name!r}{nearest(name, t.joints)}" for name in unknown]
        limits = system.joints.lower, system.joints.upper
        if any(isinstance(a, Tracer) for a in limits):
            return []
        limited = np.isfinite(limits).any(axis=0) & (t.dof_coordinate >= 0)
        stopped = {t.joints[b] for b in t.dof_body[limited]}
        if self.joints is None and not stopped:
            return ["no joint has a limit; give one a lower or an upper limit"]
        return [
            f"the joint {name!r} has no limit; give it a lower or an upper limit (on "
            "spherical and free joints, which have no plain coordinate, there are none)"
            for name in self.joints or ()
            if name not in stopped
        ]

    def dofs(self, t: Topology) -> np.ndarray:
        """A mask (n_dofs,) of the dofs it acts on; those of spherical and free joints have none."""
        named = [self.joints is None or t.joints[b] in self.joints for b in t.dof_body]
        return np.array(named, dtype=bool) & (t.dof_coordinate >= 0)

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        (below, opens_below), (above, opens_above) = self._gaps(t, joints, x)
        push = jnp.where(opens_below, self.pressure(below, rate), 0)
        return push - jnp.where(opens_above, self.pressure(above, -rate), 0)

    def energy(self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"]) -> Float[Array, ""]:
        (below, opens_below), (above, opens_above) = self._gaps(t, joints, x)
        stored = jnp.where(opens_below, self.potential(below), 0)
        return jnp.sum(stored + jnp.where(opens_above, self.potential(above), 0))

    def _gaps(self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"]):
        """The gaps to the lower and the upper limit (n_dofs,), and whether each limit exists."""
        dofs = self.dofs(t)
        for gap in (x - joints.lower, joints.upper - x):
            exists = dofs & jnp.isfinite(gap)
            yield jnp.where(exists, gap, 1), exists

    def __str__(self) -> str:
        which = "all joints" if self.joints is None else ", ".join(map(repr, self.joints))
        return f"{title(self)} ({which})"
