"""The motion of the chain by (29) to (32) and an integrator of order 8, in stretches.

The state y (7 + n + 6 + n,) has the configuration as difflie orders it, then w. A foot, a point of
body 0, is free, sticks to the floor z = 0, or slides on it with Coulomb friction

    lambda_t = -mu lambda_n d,    d = s / |s|,    s = Psi_t w

which is put into (32) before it is solved for lambda_n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from . import recursions
from .chain import Chain, Held, Posture, held_point, multipliers, poses, posture

Array = np.ndarray

STILL = 1e-8
"""A foot slower than this has stopped, m/s."""
MOST = 20
"""Stretches of a motion."""


class Terms(NamedTuple):
    """What (30) and (32) need at a state: D, tau + H, the posture and the held point."""

    at: Posture
    w: Array
    D: Array
    known: Array
    held: Held


class Stretch(NamedTuple):
    """A part of the motion in one mode: "free", "sticks" or "slides".

    t (m,), y (m, 2 n + 13), and the multipliers (m, 3) in N, in the order x, y, z.
    """

    mode: str
    t: Array
    y: Array
    force: Array


class Reference(NamedTuple):
    """A chain, one of whose points (3,) in m in the frame of `body` may be held or touch the floor.

    friction: mu.
    """

    machine: Chain
    body: int
    point: Array
    friction: float = 0.0

    def terms(self, y: Array) -> Terms:
        n, k = self.machine.n, self.body
        at, w = posture_of(self.machine, y), y[7 + n :]
        V, J = at_rest(self.machine, at, w), recursions.jacobians(self.machine, at)
        D = np.einsum("kia,kij,kjb->ab", J, self.machine.J, J)
        bias = recursions.inward(self.machine, at, V, np.zeros(6))
        efforts = np.zeros(6 + n)
        efforts[6:] = -self.machine.stiffness * at.theta - self.machine.damping * w[6:]
        held = held_point(poses(self.machine, at)[k], J[k], V.V[k], V.dV[k], self.point)
        # The twists' rates are those relative to free fall.
        held = held._replace(drift=held.drift + self.machine.gravity)
        return Terms(at, w, D, efforts - bias, held)

    def force(self, mode: str, x: Terms, d: Array) -> tuple[Array, Array]:
        """The multipliers (3,) and the generalised force (6 + n,) in a mode.

        d (2,): the direction of sliding where the slip is zero.
        """
        Psi, drift = x.held.Psi, x.held.drift
        if mode == "free":
            return np.zeros(3), x.known
        if mode == "sticks":
            found = multipliers(x.D, x.known, Psi, drift)
            return found, x.known + Psi.T @ found
        slip = Psi[:2] @ x.w
        speed = np.linalg.norm(slip)
        d = slip / speed if speed > STILL / 10 else d
        push = np.array([*(-self.friction * d), 1.0])
        Y = np.linalg.solve(x.D, np.column_stack((Psi.T @ push, x.known)))
        normal = float((-drift[2] - Psi[2] @ Y[:, 1]) / (Psi[2] @ Y[:, 0]))
        return normal * push, x.known + Psi.T @ (normal * push)

    def rate(self, y: Array, mode: str, d: Array) -> Array:
        """dy/dt."""
        x = self.terms(y)
        _, force = self.force(mode, x, d)
        return np.concatenate((_turning(y, x), x.w[6:], np.linalg.solve(x.D, force)))

    def stretch(self, mode: str, t: Array, y: Array, d: Array, tolerance: float) -> Stretch:
        """The motion from y at t[0] to an event or to t[-1], at the times of t in between."""
        ends = _events(self, mode, d)
        # As a slip begins or ends its direction turns ever faster: stiff, and not as smooth.
        slides = mode == "slides"
        tolerance = max(tolerance, STILL) if slides else tolerance
        run = solve_ivp(
            lambda _, y: self.rate(y, mode, d),
            (t[0], t[-1]),
            y,
            method="LSODA" if slides else "DOP853",
            rtol=tolerance,
            atol=tolerance,
            events=ends,
            dense_output=True,
        )
        if not run.success:
            raise RuntimeError(f"the motion that {mode} cannot be integrated: {run.message}")
        times = np.unique(np.append(t[t < run.t[-1]], run.t[-1]))
        states = np.array([run.y[:, -1] if a == run.t[-1] else run.sol(a) for a in times])
        forces = np.array([self.force(mode, self.terms(a), d)[0] for a in states])
        return Stretch(mode, times, states, forces)

    def motion(self, t: Array, y: Array, tolerance: float = 1e-10) -> list[Stretch]:
        """The motion from y at t[0] in stretches, until the foot leaves the floor or to t[-1]."""
        done: list[Stretch] = []
        mode, d = self._next(y)
        while True:
            done.append(self.stretch(mode, t, y, d, tolerance))
            end, y, force = done[-1].t[-1], done[-1].y[-1], done[-1].force[-1]
            if end >= t[-1] or force[2] < 1e-6:
                return done
            t = np.append(end, t[t > end])
            # At the edge of the friction cone the slip begins against the force.
            if mode == "sticks":
                mode, d = "slides", -_unit(force[:2])
            else:
                y = self._stopped(y)
                mode, d = self._next(y)
            if len(done) > MOST:
                raise RuntimeError(f"the foot has stopped or slipped {MOST} times by t = {end:g} s")

    def _stopped(self, y: Array) -> Array:
        """The state with an impulse at the point that takes the rest of its velocity, about STILL.

        A rest would send the next slip into a wrong direction.
        """
        x = self.terms(y)
        Y = np.linalg.solve(x.D, x.held.Psi.T)
        impulse = np.linalg.solve(x.held.Psi @ Y, x.held.Psi @ x.w)
        return np.concatenate((y[: 7 + self.machine.n], x.w - Y @ impulse))

    def _next(self, y: Array) -> tuple[str, Array]:
        """Whether the foot sticks or slides from here, and in which direction (2,)."""
        x = self.terms(y)
        slip = x.held.Psi[:2] @ x.w
        if np.linalg.norm(slip) > 2 * STILL:
            return "slides", _unit(slip)
        needed, _ = self.force("sticks", x, np.zeros(2))
        d = -_unit(needed[:2])
        if np.linalg.norm(needed[:2]) <= self.friction * needed[2]:
            return "sticks", d
        for _ in range(100):
            _, force = self.force("slides", x, d)
            d = _unit((x.held.Psi @ np.linalg.solve(x.D, force) + x.held.drift)[:2])
        return "slides", d


def posture_of(machine: Chain, y: Array) -> Posture:
    """The posture of a state y."""
    f0 = np.eye(4)
    f0[:3, :3] = Rotation.from_quat(y[[1, 2, 3, 0]]).as_matrix()
    f0[:3, 3] = y[4:7]
    return posture(machine, f0, y[7 : 7 + machine.n])


def at_rest(machine: Chain, at: Posture, w: Array) -> recursions.Motion:
    """The twists and their rates for dw/dt = 0, under gravity."""
    return recursions.outward(machine, at, w, np.zeros_like(w), machine.gravity)


def _turning(y: Array, x: Terms) -> Array:
    """The rates (7,) of the quaternion and position of body 0: (29)."""
    a, b = y[0], y[1:4]
    omega, v = x.w[:3], x.w[3:6]
    return np.concatenate(
        ([-b @ omega / 2], (a * omega + np.cross(b, omega)) / 2, x.at.f0[:3, :3] @ v)
    )


def _events(model: Reference, mode: str, d: Array) -> list[Callable[[float, Array], float]]:
    def reserve(_: float, y: Array) -> float:
        force, __ = model.force(mode, model.terms(y), d)
        return model.friction * force[2] - float(np.linalg.norm(force[:2]))

    def speed(_: float, y: Array) -> float:
        x = model.terms(y)
        return float(np.linalg.norm(x.held.Psi[:2] @ x.w)) - STILL

    def pressure(_: float, y: Array) -> float:
        return float(model.force(mode, model.terms(y), d)[0][2])

    found = {"sticks": [reserve, pressure], "slides": [speed, pressure]}.get(mode, [])
    for event in found:
        event.terminal, event.direction = True, -1  # pyright: ignore[reportFunctionMemberAccess]
    return found


def _unit(a: Array) -> Array:
    size = np.linalg.norm(a)
    return a / size if size > 0 else a
