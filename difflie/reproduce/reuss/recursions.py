"""Section 6 of Reuss 2002: recursions along the chain, equations (33) to (43).

Index j runs over the bodies from 0, with S_0 the identity (6, 6) and w_0 the twist of body 0.

Section 6.4: the mass matrix and its inverse from global matrices, equations (44) to (63).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from .chain import Chain, Posture
from .rigid_body import ad

Array = np.ndarray


class Motion(NamedTuple):
    """Twists V, their bias gamma (34) and rates dV, each (n + 1, 6)."""

    V: Array
    gamma: Array
    dV: Array


def subspaces(machine: Chain) -> list[Array]:
    """S_0 (6, 6) and S_j (6, 1): (26)."""
    return [np.eye(6), *machine.screws[:, :, None]]


def parts(machine: Chain, w: Array) -> list[Array]:
    """w_0 (6,) and w_j (1,) of w (6 + n,)."""
    return [w[:6], *w[6:, None]]


def outward(machine: Chain, at: Posture, w: Array, dw: Array, gravity: Array) -> Motion:
    """(33) to (35), from w and dw/dt (6 + n,). gravity (3,) in the inertial frame, m/s^2."""
    S, rates, changes = subspaces(machine), parts(machine, w), parts(machine, dw)
    V, gamma, dV = [w[:6]], [np.zeros(6)], [np.array(dw[:6])]
    dV[0][3:] -= at.f0[:3, :3].T @ gravity
    for j in range(1, machine.n + 1):
        V.append(at.X[j] @ V[-1] + S[j] @ rates[j])
        gamma.append(-ad(S[j] @ rates[j]) @ V[-1])
        dV.append(at.X[j] @ dV[-1] + S[j] @ changes[j] + gamma[-1])
    return Motion(np.array(V), np.array(gamma), np.array(dV))


def inward(machine: Chain, at: Posture, motion: Motion, tip: Array) -> Array:
    """tau (6 + n,) by (36), (37). tip (6,): what the last body exerts on others, in its frame."""
    S, tau = subspaces(machine), []
    X, F, J = [*at.X, np.eye(6)], tip, machine.J
    for j in reversed(range(machine.n + 1)):
        V = motion.V[j]
        F = X[j + 1].T @ F + J[j] @ motion.dV[j] - ad(V).T @ (J[j] @ V)
        tau.append(S[j].T @ F)
    return np.concatenate(tau[::-1])


def inverse_dynamics(
    machine: Chain, at: Posture, w: Array, dw: Array, gravity: Array, tip: Array | None = None
) -> Array:
    """tau (6 + n,) of the couple of recursions (33) to (37)."""
    tip = np.zeros(6) if tip is None else tip
    return inward(machine, at, outward(machine, at, w, dw, gravity), tip)


def jacobians(machine: Chain, at: Posture) -> Array:
    """The Jacobians (n + 1, 6, 6 + n) of the twists of the bodies: the rows of G S in (50)."""
    J = np.zeros((machine.n + 1, 6, 6 + machine.n))
    J[0, :, :6] = np.eye(6)
    for j in range(1, machine.n + 1):
        J[j] = at.X[j] @ J[j - 1]
        J[j, :, 5 + j] = machine.screws[j - 1]
    return J


def mass_and_bias(machine: Chain, at: Posture, w: Array) -> tuple[Array, Array]:
    """D (6 + n, 6 + n) and H (6 + n,) of (30), as section 6.1 has it, with 6 + n columns."""
    rest, still = np.zeros(3), np.zeros_like(w)
    columns = [inverse_dynamics(machine, at, still, e, rest) for e in np.eye(len(w))]
    return np.array(columns).T, -inverse_dynamics(machine, at, w, still, machine.gravity)


class Composite(NamedTuple):
    """The articulated inertias (38) (n + 1, 6, 6) and the wrenches delta (41) (n + 1, 6)."""

    inertia: Array
    delta: Array


def composite(
    machine: Chain,
    at: Posture,
    w: Array,
    tau: Array,
    tip: Array | None = None,
    printed: str = "",
) -> Composite:
    """(38) to (41), from the tip to body 0.

    tau (6 + n,); tip (6,) as for `inward`. printed: "(38)", or "start" for B_{n+1} = F_{n+1},
    delta_{n+1} = 0, to take these as they are printed.
    """
    n, S, J, efforts = machine.n, subspaces(machine), machine.J, parts(machine, tau)
    motion = outward(machine, at, w, np.zeros_like(w), np.zeros(3))
    inertia, delta = np.zeros((n + 2, 6, 6)), np.zeros((n + 2, 6))
    if tip is not None and printed != "start":
        delta[n + 1] = tip
    for j in reversed(range(n + 1)):
        last = j == n
        X = np.eye(6) if last else at.X[j + 1]
        dual = X if printed == "(38)" else X.T
        IA, d = inertia[j + 1], delta[j + 1]
        through, push = IA, d
        if not last:
            s = S[j + 1][:, 0]
            along = IA @ s / (s @ IA @ s)
            through = (np.eye(6) - np.outer(along, s)) @ IA
            push = d + along * (efforts[j + 1][0] - s @ d)
        V = motion.V[j]
        inertia[j] = J[j] + dual @ through @ X
        beta = -ad(V).T @ (J[j] @ V)
        delta[j] = inertia[j] @ motion.gamma[j] + X.T @ push + beta
    return Composite(inertia[:-1], delta[:-1])


def forward_dynamics(
    machine: Chain, at: Posture, w: Array, tau: Array, parts_: Composite, turned: bool = False
) -> Array:
    """dw/dt (6 + n,) by (42) and (43).

    turned: with dV_{-1} = (0, -Theta_0^-1 g), as section 6.3 is printed, instead of (0, -g).
    """
    S, efforts = subspaces(machine), parts(machine, tau)
    gamma = outward(machine, at, w, np.zeros_like(w), np.zeros(3)).gamma
    fall = at.f0[:3, :3].T @ machine.gravity if turned else machine.gravity
    dV = np.concatenate((np.zeros(3), -fall))
    rates: list[Any] = []
    for j in range(machine.n + 1):
        IA, d = parts_.inertia[j], parts_.delta[j]
        carried = at.X[j] @ dV
        free = efforts[j] - S[j].T @ (IA @ carried + d)
        rates.append(np.linalg.solve(S[j].T @ IA @ S[j], free))
        dV = carried + S[j] @ rates[-1] + gamma[j]
    return np.concatenate(rates)


class Global(NamedTuple):
    """The matrices of the whole chain: sigma = 6 + n rows for joints, xi = 6 + 6 n for bodies."""

    S: Array
    J: Array
    IA: Array
    Gamma: Array
    G: Array
    Omega: Array
    Phi: Array
    Pi: Array
    N: Array
    Y: Array

    def mass(self, inertia: Array) -> Array:
        """(50): S^T G^T inertia G S."""
        return self.S.T @ self.G.T @ inertia @ self.G @ self.S

    def factorised_mass(self) -> Array:
        """D (sigma, sigma) by (54)."""
        L = np.eye(len(self.Omega)) + self.S.T @ self.G.T @ self.Pi
        return L @ self.Omega @ L.T

    def factorised_inverse(self) -> Array:
        """D^-1 (sigma, sigma) by (58)."""
        L = np.eye(len(self.Omega)) - self.S.T @ self.Y @ self.Pi
        return L.T @ np.linalg.inv(self.Omega) @ L


def global_matrices(machine: Chain, at: Posture, articulated: Array) -> Global:
    """(44) to (56) with the articulated inertias (n + 1, 6, 6) of (38)."""
    n = machine.n
    blocks = subspaces(machine), machine.J, articulated
    S, J, IA = (np.asarray(block_diag(*each)) for each in blocks)
    Gamma = np.zeros((6 * (n + 1), 6 * (n + 1)))
    for j in range(1, n + 1):
        Gamma[6 * j : 6 * j + 6, 6 * j - 6 : 6 * j] = at.X[j]
    Omega = S.T @ IA @ S
    Phi = np.linalg.solve(Omega, S.T @ IA)
    N = (np.eye(len(S)) - S @ Phi) @ Gamma
    return Global(
        S=S,
        J=J,
        IA=IA,
        Gamma=Gamma,
        G=powers(Gamma, n),
        Omega=Omega,
        Phi=Phi,
        Pi=Gamma.T @ Phi.T,
        N=N,
        Y=powers(N.T, n),
    )


def powers(A: Array, n: int) -> Array:
    """1 + A + ... + A^n: the inverse of 1 - A in (49) and (56)."""
    total = term = np.eye(len(A))
    for _ in range(n):
        term = A @ term
        total = total + term
    return total


def transforms_between(machine: Chain, at: Posture) -> Array:
    """(48), entry by entry: the Ad of f_{i,j}^-1 in row j and column i."""
    n = machine.n
    G = np.eye(6 * (n + 1))
    for i in range(n + 1):
        X = np.eye(6)
        for j in range(i + 1, n + 1):
            X = at.X[j] @ X
            G[6 * j : 6 * j + 6, 6 * i : 6 * i + 6] = X
    return G


def block_recursion(machine: Chain, at: Posture) -> tuple[Array, Array, Array]:
    """(59) to (63): the articulated inertias (n + 1, 6, 6), Pi (xi, sigma) and N^T (xi, xi)."""
    n, S = machine.n, subspaces(machine)
    inertia = np.zeros((n + 1, 6, 6))
    Pi, N_T = np.zeros((6 * (n + 1), 6 + n)), np.zeros((6 * (n + 1), 6 * (n + 1)))
    IA = np.zeros((6, 6))
    N_k = np.zeros((6, 6))
    for j in reversed(range(n + 1)):
        IA = machine.J[j] + N_k @ IA @ N_k.T
        inertia[j] = IA
        Omega = S[j].T @ IA @ S[j]
        Phi_T = IA @ S[j] @ np.linalg.inv(Omega)
        N_k = at.X[j].T @ (np.eye(6) - Phi_T @ S[j].T)
        if j:
            rows = slice(6 * j - 6, 6 * j)
            Pi[rows, 5 + j] = (at.X[j].T @ Phi_T)[:, 0]
            N_T[rows, 6 * j : 6 * j + 6] = N_k
    return inertia, Pi, N_T
