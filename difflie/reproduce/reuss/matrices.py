"""Section 6.4 of Reuss 2002: the mass matrix and its inverse from global matrices, (44) to (63)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from .chain import Chain, Posture
from .recursions import subspaces

Array = np.ndarray


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
