"""Section 2 and 4 of Reuss 2002: displacements, twists, wrenches and the single rigid body.

Twists (omega, v) and wrenches (N, F) are (6,), in the moving frame; displacements are (4, 4).
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from scipy.linalg import expm, expm_frechet, logm

from ...groups import se3, so3
from .check import Check, largest, residual

Array = np.ndarray


def hat(a: Array) -> Array:
    """The matrix (3, 3) of the cross product with a (3,)."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def element(V: Array) -> Array:
    """The matrix (4, 4) of a twist V (6,): the argument of (6)."""
    g = np.zeros((4, 4))
    g[:3, :3], g[:3, 3] = hat(V[:3]), V[3:]
    return g


def exp(V: Array) -> Array:
    """The displacement (4, 4) of V (6,) = (a, l): (8) and (10)."""
    theta = np.linalg.norm(V[:3])
    if theta == 0:
        return np.eye(4) + element(V)
    u = hat(V[:3] / theta)
    s, c = np.sin(theta), np.cos(theta)
    f = np.eye(4)
    f[:3, :3] += s * u + (1 - c) * u @ u
    f[:3, 3] = (np.eye(3) + (1 - c) / theta * u + (1 - s / theta) * u @ u) @ V[3:]
    return f


def log(f: Array) -> Array:
    """(a, l) (6,) of a displacement f (4, 4) by less than half a turn: (9) and (11)."""
    R = f[:3, :3]
    theta = np.arccos((np.trace(R) - 1) / 2)
    a = theta / (2 * np.sin(theta)) * np.array([R[2, 1], R[0, 2], R[1, 0]])
    a -= theta / (2 * np.sin(theta)) * np.array([R[1, 2], R[2, 0], R[0, 1]])
    u = hat(a / theta)
    squared = 1 - theta * (1 + np.cos(theta)) / (2 * np.sin(theta))
    return np.concatenate((a, (np.eye(3) - theta / 2 * u + squared * u @ u) @ f[:3, 3]))


def inverse(f: Array) -> Array:
    """f^-1 (4, 4) of f (4, 4): (4)."""
    R, b = f[:3, :3], f[:3, 3]
    back = np.eye(4)
    back[:3, :3], back[:3, 3] = R.T, -R.T @ b
    return back


def Ad(f: Array) -> Array:
    """The matrix (6, 6) of (17), which takes twists from the second frame of f (4, 4) to its first.

    Its transpose is Ad*.
    """
    R, b = f[:3, :3], f[:3, 3]
    return _lower(R, hat(b) @ R)


def ad(V: Array) -> Array:
    """The matrix (6, 6) of (21), the bracket with V (6,). Its transpose is ad*."""
    return _lower(hat(V[:3]), hat(V[3:]))


def _lower(a: Array, corner: Array) -> Array:
    # Faster than np.block, which takes most of the time of a motion.
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = a
    matrix[3:, :3] = corner
    return matrix


def spatial_inertia(mass: float, r: Array, central: Array) -> Array:
    """J (6, 6) in (23): mass in kg, its centre r (3,) in m, inertia (3, 3) about it in kg m^2."""
    r = hat(r)
    return np.block([[central - mass * r @ r, mass * r], [-mass * r, mass * np.eye(3)]])


def displacement(rng: Generator, turn: float = 3.0) -> Array:
    """A random displacement (4, 4), by at most `turn` rad."""
    a = rng.normal(size=3)
    a *= rng.uniform(0.1, turn) / np.linalg.norm(a)
    return exp(np.concatenate((a, rng.normal(size=3))))


def checks(rng: Generator, samples: int) -> list[Check]:
    """Every formula of sections 2 and 4 at `samples` random states."""
    groups = largest([_group(rng) for _ in range(samples)])
    bodies = largest([_body(rng) for _ in range(samples)])
    r = {**groups, **bodies}
    near = "by the quaternion"
    fixed = "fixed axis only"
    return [
        Check("(4)", "f^-1 f = 1", r["4"]),
        Check("(5)", "u u^T = 1 + u^2", r["5"]),
        Check("(6)", "(8), (10): matrix exponential", r["6"]),
        Check("(7)", "(9), (11): matrix logarithm", r["7"]),
        Check("(8)", "Rodrigues' formula, and trace", r["8"]),
        Check("(9)", "rotation vector up to 3 rad", r["9"]),
        Check("(9)", "1e-6 rad from half a turn", r["9 near"], r["9 stable"], near),
        Check("(10)", "translation of the exponential", r["10"]),
        Check("(11)", "inverse of (10)", r["11"]),
        Check("(12)", "f^-1 df/dt is a twist", r["12"]),
        Check("(13)", "angular velocity", r["13 printed"], r["13"], "Theta^T dTheta/dt"),
        Check("(14)", "linear velocity", r["14"]),
        Check("(15)", "size of the angular velocity", r["15 printed"], r["15"], fixed),
        Check("(17)", "twists change frames", r["17"]),
        Check("(18)", "and back", r["18"]),
        Check("(19)", "wrenches, powers stay", r["19"]),
        Check("(20)", "and back", r["20"]),
        Check("(21)", "bracket of matrices", r["21"]),
        Check("(22)", "dual of the bracket, both forms", r["22"]),
        Check("(23)", "kinetic energy of 12 particles", r["23"]),
        Check("(24)", "forces on 12 particles", r["24"]),
    ]


def _group(rng: Generator) -> dict[str, float]:
    """Section 2 at a random displacement that changes at a random rate."""
    V, rate = rng.normal(size=(2, 6))
    V[:3] *= rng.uniform(0.1, 3.0) / np.linalg.norm(V[:3])
    f, df = expm_frechet(element(V), element(rate))
    R, b, back = f[:3, :3], f[:3, 3], np.linalg.inv(f)
    theta, u = np.linalg.norm(V[:3]), V[:3] / np.linalg.norm(V[:3])
    g = back @ df
    omega = np.asarray(so3.dexp(-V[:3])) @ rate[:3]
    near = (np.pi - 1e-6) * u
    turned = expm(hat(near))
    naive = near @ u / (2 * np.sin(np.arccos((np.trace(turned) - 1) / 2)))
    trace = abs(np.trace(R) - 1 - 2 * np.cos(theta))
    return {
        "4": residual(inverse(f) @ f, np.eye(4)),
        "5": residual(np.outer(u, u), np.eye(3) + hat(u) @ hat(u)),
        "6": max(residual(exp(V), f), residual(np.asarray(se3.exp(V)), f)),
        "7": residual(element(log(f)), np.real(logm(f))),
        "8": max(residual(exp(V)[:3, :3], expm(hat(V[:3]))), trace),
        "9": residual(log(f)[:3], V[:3]),
        "9 near": residual(naive * (turned - turned.T), hat(near)),
        "9 stable": residual(so3.log(turned), near),
        "10": residual(exp(V)[:3, 3], b),
        "11": residual(log(f)[3:], V[3:]),
        "12": residual(g, element(np.asarray(se3.dexp(-V)) @ rate)),
        "13 printed": residual(R.T @ R, hat(omega)),
        "13": residual(R.T @ df[:3, :3], hat(omega)),
        "14": residual(R.T @ df[:3, 3], g[:3, 3]),
        "15 printed": abs(float(np.linalg.norm(omega) - u @ rate[:3])),
        "15": residual(hat(omega), R.T @ df[:3, :3]),
    }


def _body(rng: Generator) -> dict[str, float]:
    """Section 4 at a random displacement and for a random cloud of particles."""
    f = displacement(rng)
    V, W, dV, F = rng.normal(size=(4, 6))
    back = inverse(f)
    R, b = f[:3, :3], f[:3, 3]
    zero = np.zeros((3, 3))
    moved = f @ element(V) @ np.linalg.inv(f)
    first = Ad(f) @ V
    F_first = np.block([[R, hat(b) @ R], [zero, R]]) @ F
    F_second = np.block([[R.T, R.T @ hat(b).T], [zero, R.T]]) @ F_first
    printed_18 = np.block([[R.T, zero], [R.T @ hat(b).T, R.T]])
    bracket = element(V) @ element(W) - element(W) @ element(V)
    dual = -np.block([[hat(V[:3]), hat(V[3:])], [zero, hat(V[:3])]])
    J, energy, wrench = _particles(rng, V, dV)
    return {
        "17": residual(element(first), moved),
        "18": max(residual(printed_18 @ first, V), residual(printed_18, Ad(back))),
        "19": max(residual(F_first, Ad(back).T @ F), abs(F_first @ first - F @ V)),
        "20": max(residual(F_second, F), residual(F_second, Ad(f).T @ F_first)),
        "21": residual(element(ad(V) @ W), bracket),
        "22": max(abs(F @ ad(V) @ W - dual @ F @ W), residual(ad(V).T, dual)),
        "23": abs(V @ J @ V / 2 - energy) / max(1.0, energy),
        "24": residual(J @ dV - ad(V).T @ (J @ V), wrench),
    }


def _particles(rng: Generator, V: Array, dV: Array) -> tuple[Array, float, Array]:
    """J by (23), the kinetic energy, and the wrench (6,) that the motion of 12 particles needs."""
    m, x = rng.uniform(0.1, 1.0, size=12), rng.normal(size=(12, 3))
    r = m @ x / m.sum()
    away = x - r
    central = sum(-mk * hat(d) @ hat(d) for mk, d in zip(m, away, strict=True))
    speed = V[3:] + np.cross(V[:3], x)
    change = dV[3:] + np.cross(dV[:3], x) + np.cross(V[:3], speed)
    force = m[:, None] * change
    wrench = np.concatenate((np.cross(x, force).sum(0), force.sum(0)))
    J = spatial_inertia(float(m.sum()), r, np.asarray(central))
    return J, float(m @ np.sum(speed**2, axis=1) / 2), wrench
