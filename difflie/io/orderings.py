"""States in the orderings of other libraries: the place and the meaning of each entry.

Pinocchio sorts the joints, puts linear parts and positions first, writes quaternions (x, y, z, w),
represents the angle of continuous and planar joints by cosine and sine, and gives planar joints a
body-fixed velocity instead of the derivatives of their coordinates. MuJoCo puts positions first,
measures hinges and slides from `ref`, and gives free joints a linear velocity in world coordinates.
In both, mimic joints have coordinates of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..groups import quaternion
from ..system.system import System
from ..system.validation import nearest
from .mjcf import joint_names as mujoco_joint_names


@dataclass(frozen=True)
class _Place:
    """The place of a joint in another library: the starts and sizes of its parts of q and v."""

    q: int
    nq: int
    v: int
    nv: int


class _Convention:
    """How another library writes the coordinates and velocities of one joint; here as difflie does.

    The velocities differ by a rotation or permutation, so forces convert in the same way.
    """

    def point(self, q: jax.Array) -> jax.Array:
        """Their coordinates."""
        return q

    def from_point(self, x: jax.Array) -> jax.Array:
        """Ours."""
        return x

    def basis(self, q: jax.Array) -> jax.Array | None:
        """The orthogonal matrix (nv, nv) that takes our velocity to theirs; None the identity."""
        return None


class _Angle(_Convention):
    """Pinocchio's unbounded angle: its cosine and sine."""

    def point(self, q):
        return jnp.stack((jnp.cos(q[0]), jnp.sin(q[0])))

    def from_point(self, x):
        return jnp.arctan2(x[1], x[0])[None]


class _Planar(_Convention):
    """Pinocchio's planar joint: x, y, the angle's cosine and sine; body-fixed velocity."""

    def point(self, q):
        return jnp.stack((q[0], q[1], jnp.cos(q[2]), jnp.sin(q[2])))

    def from_point(self, x):
        return jnp.stack((x[0], x[1], jnp.arctan2(x[3], x[2])))

    def basis(self, q):
        c, s, one = jnp.cos(q[2]), jnp.sin(q[2]), jnp.ones_like(q[2])
        zero = jnp.zeros_like(one)
        rows = ((c, s, zero), (-s, c, zero), (zero, zero, one))
        return jnp.stack([jnp.stack(row) for row in rows])


class _LastScalar(_Convention):
    """Pinocchio's ball joint: the quaternion (x, y, z, w)."""

    def point(self, q):
        return jnp.roll(q, -1)

    def from_point(self, x):
        return jnp.roll(x, 1)


class _LinearFirst(_Convention):
    """Pinocchio's free joint: position, quaternion (x, y, z, w); linear velocity first."""

    def point(self, q):
        return jnp.concatenate((q[4:], q[1:4], q[:1]))

    def from_point(self, x):
        return jnp.concatenate((x[6:], x[3:6], x[:3]))

    def basis(self, q):
        return jnp.roll(jnp.eye(6, dtype=q.dtype), 3, axis=0)


class _WorldLinear(_Convention):
    """MuJoCo's free joint: position, quaternion; world linear, then body angular velocity."""

    def point(self, q):
        return jnp.concatenate((q[4:], q[:4]))

    def from_point(self, x):
        return jnp.concatenate((x[3:], x[:3]))

    def basis(self, q):
        zero, one = jnp.zeros((3, 3), q.dtype), jnp.eye(3, dtype=q.dtype)
        return jnp.block([[zero, quaternion.to_matrix(q[:4])], [one, zero]])


class _Entry(eqx.Module):
    """One joint in both orderings; our coordinates with their zero are ratio * q + offset."""

    ours: _Place = eqx.field(static=True)
    theirs: _Place = eqx.field(static=True)
    convention: _Convention = eqx.field(static=True)
    follows: bool = eqx.field(static=True)
    ratio: jax.Array
    offset: jax.Array

    def own(self, q: jax.Array) -> jax.Array:
        return q[self.ours.q : self.ours.q + self.ours.nq]

    def rotated(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """Our velocity or force of this joint in their basis."""
        v = v[self.ours.v : self.ours.v + self.ours.nv]
        basis = self.convention.basis(self.own(q))
        return v if basis is None else basis @ v

    def rotated_back(self, q: jax.Array, rate: jax.Array) -> jax.Array:
        """Their velocity or force of this joint in our basis."""
        rate = rate[self.theirs.v : self.theirs.v + self.theirs.nv]
        basis = self.convention.basis(self.own(q))
        return rate if basis is None else basis.T @ rate


class Ordering(eqx.Module):
    """States of a `System` in another library's ordering, and back; see the subclasses.

    The methods are functions of flat arrays, for use with `jax.jit`, `jax.vmap` and `jax.grad`.
    difflie's are q (nq,) and v, a, tau (nv,); the other library's x, of its nq, and rate, change,
    effort, of its nv.
    """

    system: System
    entries: tuple[_Entry, ...]

    def q(self, q: Any) -> jax.Array:
        """The library's coordinates x, from difflie's configuration q (nq,)."""
        q = self._array(q)
        points = {e.theirs.q: e.convention.point(e.ratio * e.own(q) + e.offset) for e in self}
        return _joined(points, q)

    def v(self, q: Any, v: Any) -> jax.Array:
        """The library's velocity, from difflie's state q (nq,), v (nv,)."""
        q, v = self._array(q), self._array(v)
        return _joined({e.theirs.v: e.ratio * e.rotated(q, v) for e in self}, v)

    def a(self, q: Any, v: Any, a: Any) -> jax.Array:
        """The library's acceleration, from difflie's q (nq,), v (nv,) and a (nv,)."""
        return self.v(q, a) + self._turning(self._array(q), self._array(v))

    def tau(self, q: Any, tau: Any) -> jax.Array:
        """The library's force, from tau (nv,) at q (nq,); zero on mimic joints."""
        q, tau = self._array(q), self._array(tau)
        forces = {e.theirs.v: (0.0 if e.follows else 1.0) * e.rotated(q, tau) for e in self}
        return _joined(forces, tau)

    def from_q(self, x: Any) -> jax.Array:
        """q (nq,) from the library's coordinates; angles of a cosine and sine are in (-pi, pi]."""
        x = self._array(x)
        points = {}
        for e in self:
            if not e.follows:
                theirs = x[e.theirs.q : e.theirs.q + e.theirs.nq]
                points[e.ours.q] = e.convention.from_point(theirs) - e.offset
        return _joined(points, x)

    def from_v(self, x: Any, rate: Any) -> jax.Array:
        """v (nv,) from the library's coordinates and velocity."""
        q, rate = self.from_q(x), self._array(rate)
        return _joined({e.ours.v: e.rotated_back(q, rate) for e in self if not e.follows}, rate)

    def from_a(self, x: Any, rate: Any, change: Any) -> jax.Array:
        """a (nv,) from the library's coordinates, velocity and acceleration."""
        turning = self._turning(self.from_q(x), self.from_v(x, rate))
        return self.from_v(x, self._array(change) - turning)

    def from_tau(self, x: Any, effort: Any) -> jax.Array:
        """tau (nv,) from the library's force; mimic joints act on the joint that they follow."""
        q, effort = self.from_q(x), self._array(effort)
        forces: dict[int, jax.Array] = {}
        for e in self:
            own = e.ratio * e.rotated_back(q, effort)
            forces[e.ours.v] = forces[e.ours.v] + own if e.ours.v in forces else own
        return _joined(forces, effort)

    def __iter__(self):
        return iter(self.entries)

    def _array(self, values: Any) -> jax.Array:
        return jnp.asarray(values, self.system.dtype)

    def _turning(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """The rate of the library's velocity as its basis rotates, for a constant velocity here."""

        def rate(time):
            return self.v(self.system.manifold.retract(q, time * v), v)

        zero = jnp.zeros((), q.dtype)
        return jax.jvp(rate, (zero,), (jnp.ones_like(zero),))[1]


class PinocchioOrdering(Ordering):
    """States in the ordering of a `pinocchio.Model` of the same machine.

    model: that of Pinocchio. `q`, `v`, `a` and `tau` convert to its arrays, `from_q` and so on
    back. Joints are matched by name; the free joint of a base is "root_joint" in both. Raises
    ValueError for a joint that only one of the two has, or that differs in size.
    """

    def __init__(self, system: System, model: Any):
        joints = {}
        for name, joint in zip(list(model.names)[1:], list(model.joints)[1:], strict=True):
            place = _Place(joint.idx_q, joint.nq, joint.idx_v, joint.nv)
            # The mimic joints of a model that resolves them have no coordinates.
            if joint.nv:
                joints[name] = place, 0.0
        conventions = {
            (1, 1): _Convention(),
            (1, 2): _Angle(),
            (2, 2): _Convention(),
            (3, 3): _Convention(),
            (3, 4): _Planar(),
            (4, 4): _LastScalar(),
            (7, 7): _LinearFirst(),
        }
        self.system = system
        self.entries = _entries(system, joints, conventions, "Pinocchio")


class MujocoOrdering(Ordering):
    """States in the ordering of a `mujoco.MjModel` of the same machine.

    model: that of MuJoCo. `q`, `v`, `a` and `tau` convert to its arrays, `from_q` and so on back.
    Joints are matched by name, unnamed ones by the names that `read_mjcf` gives them. Raises
    ValueError for a joint that only one of the two has, or that differs in size.
    """

    def __init__(self, system: System, model: Any):
        sizes = ((7, 6), (4, 3), (1, 1), (1, 1))
        joints = {}
        for j, name in enumerate(mujoco_joint_names(model)):
            nq, nv = sizes[model.jnt_type[j]]
            start = int(model.jnt_qposadr[j])
            ref = float(model.qpos0[start]) if nq == 1 else 0.0
            joints[name] = _Place(start, nq, int(model.jnt_dofadr[j]), nv), ref
        conventions = {(1, 1): _Convention(), (4, 4): _Convention(), (7, 7): _WorldLinear()}
        self.system = system
        self.entries = _entries(system, joints, conventions, "MuJoCo")


def _entries(
    system: System,
    joints: dict[str, tuple[_Place, float]],
    conventions: dict[tuple[int, int], _Convention],
    library: str,
) -> tuple[_Entry, ...]:
    """The joints of a system, each beside its place and reference in the other library."""
    t, entries, left = system.topology, [], dict(joints)
    for b, name in enumerate(t.joints):
        source = t.mimics[b]
        if not t.kinds[b] or (source is not None and name not in joints):
            continue
        if name not in joints:
            raise ValueError(
                f"{system.name}: {library}'s model has no joint {name!r}{nearest(name, joints)}"
            )
        theirs, ref = left.pop(name)
        at = b if source is None else source
        q, v = int(t.coordinate_start[at]), int(t.velocity_start[at])
        ours = _Place(q, int(t.coordinate_start[at + 1]) - q, v, int(t.velocity_start[at + 1]) - v)
        convention = conventions.get((ours.nq, theirs.nq))
        if convention is None or ours.nv != theirs.nv:
            raise ValueError(
                f"{system.name}: the joint {name!r} has {ours.nq} coordinates and {ours.nv} "
                f"velocities, and {theirs.nq} and {theirs.nv} in {library}'s model; "
                "give the model of the same machine"
            )
        ratio, offset = jnp.ones((), system.dtype), jnp.asarray(ref, system.dtype)
        if source is not None:
            law = int(np.searchsorted(t.mimic_dofs, t.dof_start[b]))
            ratio = system.joints.multiplier[law]
            offset = system.joints.offset[law] + offset
        entries.append(_Entry(ours, theirs, convention, source is not None, ratio, offset))
    if left:
        raise ValueError(
            f"{system.name}: it has no joint {next(iter(left))!r}, which {library}'s model has"
            f"{nearest(next(iter(left)), t.joints)}"
        )
    return tuple(entries)


def _joined(parts: dict[int, jax.Array], like: jax.Array) -> jax.Array:
    """The parts in the order of the places where they start."""
    return jnp.concatenate([parts[start] for start in sorted(parts)] or [like[:0]])
