"""The formulas of sections 5 and 6 of Reuss 2002 on random chains, against difflie's algorithms."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from numpy.random import Generator
from scipy.linalg import expm_frechet

from ...constraints import (
    Frame,
    SphericalConstraint,
    constrain,
    constrained_dynamics,
    constraint_bias,
    constraint_jacobian,
)
from ...dynamics import (
    bias_force,
    body_poses,
    body_twists,
    forward_dynamics,
    inverse_dynamics,
    mass_matrix,
)
from ...groups import se3
from ...system import System
from . import recursions
from .chain import (
    Chain,
    Posture,
    at_state,
    held_point,
    multipliers,
    poses,
    random_chain,
    random_posture,
    saddle_point,
)
from .check import Check, largest, residual
from .rigid_body import element, log

Array = np.ndarray


class State(NamedTuple):
    """A random chain and state, with efforts tau (6 + n,) and the wrench tip (6,) it exerts."""

    machine: Chain
    system: System
    at: Posture
    w: Array
    dw: Array
    tau: Array
    tip: Array

    @property
    def external(self) -> Array:
        """The wrenches (n + 1, 6) on the bodies."""
        return np.vstack((np.zeros((self.machine.n, 6)), -self.tip))


def checks(rng: Generator, samples: int, joints: str) -> list[Check]:
    """Sections 5 and 6 on `samples` random chains with such joints, as of `random_chain`."""
    states = [_random(rng, joints) for _ in range(samples)]
    r = largest([{**_newton(s), **_forward(s), **_matrices(s), **_held(s)} for s in states])
    lost = "delta_n+1 = F_n+1"
    turned = "(0, -g)"
    rotated = r["(43) turned"], r["(42)"]
    return [
        Check("(26)", "f = KK exp(S q), poses", None, r["(26)"], "S_k has 6 entries"),
        Check("(29)", "rates of the coordinates", r["(29)"]),
        Check("(30)", "D dw/dt = tau + H", r["(30)"]),
        Check("(33)", "twists of the bodies", r["(33)"]),
        Check("(34)", "bias of the joints", r["(34)"]),
        Check("(35)", "rates of the twists", r["(35)"]),
        Check("(36)", "wrenches and efforts, (37)", r["(36)"]),
        Check("6.1", "D from n recursions", r["6.1 n"], r["6.1"], "6 + n recursions"),
        Check("(38)", "articulated inertias", r["(38) printed"], r["(38)"], "Ad* on the left"),
        Check("6.2", "start at the tip", r["6.2 printed"], r["(42)"], lost),
        Check("(39)", "wrenches delta, (40), (41)", r["(39)"]),
        Check("6.3", "start dV_{-1}", *rotated, turned),
        Check("(42)", "forward dynamics, (43)", r["(42)"]),
        Check("(48)", "entries of G", r["(48)"]),
        Check("(49)", "sum of powers of Gamma", r["(49)"]),
        Check("(50)", "D of articulated inertias", r["(50) printed"], r["(50)"], "link inertia J"),
        Check("6.4", "kinetic energy w^T D w", r["energy printed"], r["energy"], "half of it"),
        Check("(54)", "factorised D, (51) to (53)", r["(54)"]),
        Check("(56)", "sum of powers, with (55)", r["(56)"]),
        Check("(57)", "link inertia J", r["(57)"]),
        Check("(58)", "factorised inverse of D", r["(58)"]),
        Check("(59)", "block recursion, to (63)", r["(59)"]),
        Check("(27)", "Jacobian of a held point", r["(27)"]),
        Check("(28)", "dPsi/dt w", r["(28)"]),
        Check("(32)", "multipliers", r["(32) printed"], r["(32)"], "- dPsi/dt w"),
    ]


def _random(rng: Generator, joints: str) -> State:
    machine = random_chain(rng, joints)
    w, dw, tau = rng.normal(size=(3, 6 + machine.n))
    return State(
        machine, machine.system(), random_posture(rng, machine), w, dw, tau, rng.normal(size=6)
    )


def _newton(s: State) -> dict[str, float]:
    """(26) to (37)."""
    machine, at, g = s.machine, s.at, s.machine.gravity
    system = s.system
    q, w = at_state(at.q, s.w)
    placed = poses(machine, at)
    motion = recursions.outward(machine, at, s.w, s.dw, g)
    D, H = recursions.mass_and_bias(machine, at, s.w)
    dw = forward_dynamics(system, q, w, s.tau, 0 * s.external)
    tau = recursions.inverse_dynamics(machine, at, s.w, s.dw, g, s.tip)
    right = mass_matrix(system, q)
    first = D.copy()
    first[:, :6] = 0
    X = log(at.f0)
    rates = np.asarray(se3.dexp_inv(-X)) @ s.w[:6]
    moved = expm_frechet(element(X), element(rates), compute_expm=False)
    V, dV = _accelerations(system, at, s.w, s.dw, placed, g)
    free = recursions.outward(machine, at, s.w, np.zeros_like(s.w), np.zeros(3))
    return {
        "(26)": residual(placed, body_poses(system, q)),
        "(29)": residual(np.linalg.inv(at.f0) @ moved, element(s.w[:6])),
        "(30)": residual(D @ np.asarray(dw), s.tau + H) + residual(-H, bias_force(system, q, w)),
        "(33)": residual(motion.V, V),
        "(34)": residual(free.dV, _accelerations(system, at, s.w, 0 * s.dw, placed, 0 * g)[1]),
        "(35)": residual(motion.dV, dV),
        "(36)": residual(tau, inverse_dynamics(system, q, w, s.dw, s.external)),
        "6.1 n": residual(first, right),
        "6.1": residual(D, right),
    }


def _accelerations(system, at, w, dw, placed, g):
    """The twists of the bodies (n + 1, 6) and their rates, by differentiation along the motion."""
    q, w = at_state(at.q, w)
    V, dV = _twists_along(system, q, w, jax.numpy.asarray(dw))
    fall = np.array([T[:3, :3].T @ g for T in placed])
    return np.asarray(V), np.asarray(dV) - np.hstack((np.zeros_like(fall), fall))


@jax.jit
def _twists_along(system, q, w, dw):
    def twists(t):
        return body_twists(system, system.manifold.retract(q, t * w), w + t * dw)

    return jax.jvp(twists, (0.0,), (1.0,))


def _forward(s: State) -> dict[str, float]:
    """(38) to (43)."""
    machine, at = s.machine, s.at
    q, w = at_state(at.q, s.w)
    right = np.asarray(forward_dynamics(s.system, q, w, s.tau, s.external))

    def wrong(printed: str = "", turned: bool = False) -> float:
        parts = recursions.composite(machine, at, s.w, s.tau, s.tip, printed)
        return residual(recursions.forward_dynamics(machine, at, s.w, s.tau, parts, turned), right)

    # The rate of the twist of body 0 with the other joints free is what (38) to (41) stand for.
    parts = recursions.composite(machine, at, s.w, s.tau, s.tip)
    fall = np.concatenate((np.zeros(3), -at.f0[:3, :3].T @ machine.gravity))
    force = parts.inertia[0] @ (right[:6] + fall) + parts.delta[0]
    inverse = np.linalg.inv(np.asarray(mass_matrix(s.system, q)))[:6, :6]
    return {
        "(38)": residual(np.linalg.inv(parts.inertia[0]), inverse),
        "(38) printed": wrong("(38)"),
        "6.2 printed": wrong("start"),
        "(39)": residual(force, s.tau[:6]),
        "(43) turned": wrong(turned=True),
        "(42)": wrong(),
    }


def _matrices(s: State) -> dict[str, float]:
    """(44) to (63)."""
    machine, at = s.machine, s.at
    q, w = at_state(at.q, s.w)
    D = np.asarray(mass_matrix(s.system, q))
    articulated = recursions.composite(machine, at, s.w, s.tau).inertia
    m = recursions.global_matrices(machine, at, articulated)
    inertia, Pi, N_T = recursions.block_recursion(machine, at)
    one = np.eye(len(m.Gamma))
    V = np.asarray(body_twists(s.system, q, w))
    energy = sum(V[k] @ machine.J[k] @ V[k] for k in range(len(V))) / 2
    return {
        "(48)": residual(recursions.transforms_between(machine, at), m.G),
        "(49)": residual(m.G @ (one - m.Gamma), one),
        "(50) printed": residual(m.mass(m.IA), D),
        "(50)": residual(m.mass(m.J), D),
        "energy printed": residual(s.w @ D @ s.w, energy),
        "energy": residual(s.w @ D @ s.w / 2, energy),
        "(54)": residual(m.factorised_mass(), D),
        "(56)": residual(m.Y @ (one - m.N.T), one),
        "(57)": residual(m.IA - m.N.T @ m.IA @ m.N, m.J),
        "(58)": residual(m.factorised_inverse(), np.linalg.inv(D)),
        "(59)": residual(inertia, articulated) + residual(Pi, m.Pi) + residual(N_T, m.N.T),
    }


def _held(s: State) -> dict[str, float]:
    """(27), (28) and (32), for a point of the last body that is held in space."""
    machine, at, n = s.machine, s.at, s.machine.n
    point, still = np.array([0.2, -0.1, 0.3]), np.zeros(3)
    pose, columns = poses(machine, at)[n], recursions.jacobians(machine, at)[n]

    def held(w: Array):
        free = recursions.outward(machine, at, w, np.zeros_like(w), still)
        return held_point(pose, columns, free.V[n], free.dV[n], point)

    # A velocity that the constraint allows.
    Psi = held(s.w).Psi
    w = s.w - np.linalg.pinv(Psi) @ Psi @ s.w
    here = held(w)
    D, H = recursions.mass_and_bias(machine, at, w)
    known = s.tau + H
    acceleration, reaction = saddle_point(D, known, Psi, here.drift)
    found = multipliers(D, known, Psi, here.drift)
    printed = multipliers(D, known, Psi, Psi @ w)
    fixed = SphericalConstraint(Frame(None, here.place), Frame(f"C{n}", point))
    system = constrain(s.system, fixed)
    q, v = at_state(at.q, w)
    A = np.asarray(constraint_jacobian(system, q))
    a, force = constrained_dynamics(system, q, v, s.tau)
    accelerations = residual(acceleration, a) + residual(Psi.T @ found, A.T @ np.asarray(force))
    return {
        "(27)": residual(Psi @ s.w, A @ s.w),
        "(28)": residual(here.drift, constraint_bias(system, q, v)),
        "(32) printed": residual(printed, reaction),
        "(32)": residual(found, reaction) + accelerations,
    }
