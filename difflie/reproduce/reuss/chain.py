"""Section 5 of Reuss 2002: the free, open and unbranched chain of n + 1 bodies, figure 2.

Body 0 is free, each other one turns about or slides along the z axis of its frame. The velocity w
(6 + n,) is the twist of body 0 in its frame, then the rates of the joints.

A point of a body that is held gives constraints and multipliers, (27) to (32).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.random import Generator
from scipy.spatial.transform import Rotation

from ...system import Body, Free, Prismatic, Revolute, System, chain
from .rigid_body import Ad, displacement, exp, hat, inverse, spatial_inertia

Array = np.ndarray

REVOLUTE = np.array([0.0, 0, 1, 0, 0, 0])
PRISMATIC = np.array([0.0, 0, 0, 0, 0, 1])
"""The screws (6,) of the joints, (26); the second has five entries where it is printed."""


@dataclass(frozen=True)
class Chain:
    """The constants of a chain.

    KK (n, 4, 4): the frames of the joints in the bodies before. screws (n, 6). mass (n + 1,) in kg,
    com (n + 1, 3) in m, inertia (n + 1, 3, 3) about it in kg m^2. gravity (3,) in m/s^2. stiffness,
    damping (n,): of the joints, in N m/rad or N/m and times s.
    """

    KK: Array
    screws: Array
    mass: Array
    com: Array
    inertia: Array
    gravity: Array
    stiffness: Array
    damping: Array

    @property
    def n(self) -> int:
        return len(self.KK)

    @cached_property
    def J(self) -> Array:
        """The spatial inertias (n + 1, 6, 6)."""
        numbers = zip(self.mass, self.com, self.inertia, strict=True)
        return np.array([spatial_inertia(*body) for body in numbers])

    def system(self, name: str = "chain of bodies") -> System:
        """The same machine for difflie; bodies "C0", "C1" and so on."""
        inertias = zip(self.mass, self.com, self.inertia, strict=True)
        bodies = [
            Body(name=f"C{k}", mass=float(m), com=r, inertia=inertia)
            for k, (m, r, inertia) in enumerate(inertias)
        ]
        linked = [_on(bodies[0], Free())]
        for k, body in enumerate(bodies[1:]):
            kind = Revolute if self.screws[k] @ REVOLUTE else Prismatic
            numbers: dict[str, Any] = {"stiffness": self.stiffness[k], "damping": self.damping[k]}
            linked.append(_on(body, kind(axis=(0, 0, 1), **numbers), self.KK[k]))
        return chain(linked, name=name, gravity=self.gravity)


def _on(body: Body, joint: Any, frame: Array | None = None) -> Body:
    frame = np.eye(4) if frame is None else frame
    return Body(
        name=body.name,
        joint=joint,
        position=frame[:3, 3],
        rotation=frame[:3, :3],
        mass=body.mass,
        com=body.com,
        inertia=body.inertia,
    )


class Posture(NamedTuple):
    """A configuration of a chain, and what the recursions need of it.

    f0 (4, 4): the displacement of body 0. theta (n,): the joints in rad or m. X (n + 1, 6, 6): the
    Ad of f_{j-1,j}^-1.
    """

    f0: Array
    theta: Array
    X: Array

    @property
    def q(self) -> Array:
        """The configuration (7 + n,) for difflie."""
        turned = Rotation.from_matrix(self.f0[:3, :3]).as_quat()
        return np.concatenate((turned[[3, 0, 1, 2]], self.f0[:3, 3], self.theta))


def links(machine: Chain, f0: Array, theta: Array) -> Array:
    """The displacements f_{j-1,j} = KK_j exp(S_j theta_j) (n + 1, 4, 4), f0 (4, 4) the first."""
    joints = zip(machine.KK, machine.screws, theta, strict=True)
    return np.array([f0, *(K @ exp(S * x) for K, S, x in joints)])


def poses(machine: Chain, at: Posture) -> Array:
    """The poses (n + 1, 4, 4) of the bodies in the inertial frame."""
    placed = [np.eye(4)]
    for f in links(machine, at.f0, at.theta):
        placed.append(placed[-1] @ f)
    return np.array(placed[1:])


def posture(machine: Chain, f0: Array, theta: Array) -> Posture:
    """The posture of a chain at f0 (4, 4), theta (n,)."""
    f = links(machine, f0, theta)
    return Posture(f0, theta, np.array([Ad(inverse(a)) for a in f]))


def random_chain(rng: Generator, joints: str) -> Chain:
    """A chain with random numbers; joints: R for revolute, P for prismatic."""
    n = len(joints)
    points = rng.normal(size=(n + 1, 8, 3)) * 0.3
    # The inertia of points is one that a body can have.
    squares = np.einsum("kpi,kpj->kij", points, points)
    traces = np.trace(squares, axis1=1, axis2=2)
    return Chain(
        KK=np.array([displacement(rng) for _ in joints]),
        screws=np.array([REVOLUTE if kind == "R" else PRISMATIC for kind in joints]),
        mass=rng.uniform(0.5, 2.0, size=n + 1),
        com=rng.normal(size=(n + 1, 3)) * 0.3,
        inertia=traces[:, None, None] * np.eye(3) - squares,
        gravity=rng.normal(size=3) * 5,
        stiffness=np.zeros(n),
        damping=np.zeros(n),
    )


def random_posture(rng: Generator, machine: Chain) -> Posture:
    """The chain at a random pose of its base and random joint coordinates (n,)."""
    return posture(machine, displacement(rng), rng.normal(size=machine.n))


def at_state(q: Array, w: Array) -> tuple[Any, Any]:
    """q (7 + n,) and w (6 + n,) for difflie."""
    return jnp.asarray(q), jnp.asarray(w)


class Held(NamedTuple):
    """A point of a body, in the inertial frame.

    place (3,) in m. Psi (3, 6 + n): its velocity in m/s is Psi w. drift (3,): (dPsi/dt) w in m/s^2.
    """

    place: Array
    Psi: Array
    drift: Array


def held_point(pose: Array, columns: Array, V: Array, drift: Array, point: Array) -> Held:
    """The point (3,) in m in the frame of a body with this pose (4, 4).

    columns (6, 6 + n): the Jacobian of its twist V (6,); drift (6,): the rate of V for dw/dt = 0.
    """
    R, p = pose[:3, :3], hat(point)
    (omega, v), (d_omega, d_v) = V.reshape(2, 3), drift.reshape(2, 3)
    speed = v + np.cross(omega, point)
    change = d_v + np.cross(d_omega, point) + np.cross(omega, speed)
    return Held(R @ point + pose[:3, 3], R @ np.hstack((-p, np.eye(3))) @ columns, R @ change)


def multipliers(D: Array, known: Array, Psi: Array, drift: Array) -> Array:
    """lambda (r,) by (32), with the derivative of Psi that its last term lacks in print.

    D (s, s); known (s,): tau + H; Psi (r, s); drift (r,): (dPsi/dt) w.
    """
    Y = np.linalg.solve(D, np.column_stack((Psi.T, known)))
    return np.linalg.solve(Psi @ Y[:, :-1], -Psi @ Y[:, -1] - drift)


def saddle_point(D: Array, known: Array, Psi: Array, drift: Array) -> tuple[Array, Array]:
    """dw/dt (s,) and lambda (r,) from (28) and (30) at once."""
    r = len(Psi)
    K = np.block([[D, -Psi.T], [Psi, np.zeros((r, r))]])
    x = np.linalg.solve(K, np.concatenate((known, -drift)))
    return x[:-r], x[-r:]
