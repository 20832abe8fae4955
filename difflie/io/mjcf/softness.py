"""The stiffness of MuJoCo's soft constraints: contacts, and limits of joints and tendons.

With the impedance d and the reference k and b of solref and solimp, and the inertia m = 1 / w of
the inverse weight w at the model's initial pose, a constraint at rest carries k d^2 m / (1 - d) per
rad or m. That is the stiffness here, with d at the depth at which this load is m g. The damping
b d m / (1 - d), at most critical, is a dissipation that has it under this load.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

_GRAVITY = 9.81
_IMPEDANCE = 0.9  # of what is written
_LEAST = 1e-15  # MuJoCo's mjMINVAL
USUAL = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}  # MuJoCo's defaults


def soft_numbers(
    model: Any, solref: np.ndarray, solimp: np.ndarray, weight: float, rows: float = 1.0
) -> tuple[float, float]:
    """The stiffness in N/m or N m/rad and the dissipation in s/m or s/rad of a soft constraint.

    weight: its inverse inertia in 1/kg or 1/(kg m^2); rows: by how many constraints of this one it
    is held.
    """
    k, c = (rows * number for number in _reference(model, solref, solimp))
    if k == 0:
        return 0.0, 0.0
    start = _impedance(solimp, 0.0)
    low, high = 0.0, _GRAVITY * (1 - start) / (k * start * start)
    for _ in range(200):  # for the depth to which m g presses it; what it carries grows with that
        depth = (low + high) / 2
        d = _impedance(solimp, depth)
        low, high = (depth, high) if k * d * d * depth < _GRAVITY * (1 - d) else (low, depth)
    d = _impedance(solimp, high)
    share = d / (1 - d)
    damping = min(c * share, 2 * np.sqrt(k * d * share))
    return k * d * share / max(weight, _LEAST), float(damping / _GRAVITY)


def soft_law(
    stiffness: float, dissipation: float, weight: float
) -> tuple[list[float], list[float], bool]:
    """solref and solimp of a constraint of which `soft_numbers` are these, at any depth.

    The impedance is 0.9 throughout. MuJoCo's rest depth is that of the stiffness. A dissipation of
    more than critical damping becomes critical, which is the last.
    """
    soft, w = 1 - _IMPEDANCE, max(weight, _LEAST)
    damping, critical = _GRAVITY * dissipation, 2 * np.sqrt(stiffness * w)
    # Of MuJoCo's own motion, which is softer by the impedance.
    most = critical * np.sqrt(soft)
    over = bool(damping > critical * (1 + 1e-9))
    damping = most if damping > critical * (1 - 1e-9) else damping * soft
    return [-stiffness * w * soft, -damping], [_IMPEDANCE, _IMPEDANCE, 1e-3, 0.5, 2.0], over


def _reference(model: Any, solref: np.ndarray, solimp: np.ndarray) -> tuple[float, float]:
    """MuJoCo's k in 1/s^2 and b in 1/s of a soft constraint."""
    most = float(np.clip(solimp[1], 1e-4, 0.9999))
    first, second = map(float, solref)
    if (first > 0) != (second > 0):
        first, second = USUAL["solref"]  # as MuJoCo does, with a warning
    if first > 0:
        unsafe = importlib.import_module("mujoco").mjtDisableBit.mjDSBL_REFSAFE
        shortest = 0.0 if model.opt.disableflags & int(unsafe) else 2 * float(model.opt.timestep)
        time = max(first, shortest)
        return 1 / max((most * time * second) ** 2, _LEAST), 2 / max(most * time, _LEAST)
    return -first / most**2, -second / most


def _impedance(solimp: np.ndarray, depth: float) -> float:
    """MuJoCo's impedance d at a depth in m: from the first to the second number of solimp."""
    least, most, width, middle, power = (
        float(np.clip(x, low, high))
        for x, low, high in zip(
            solimp,
            (1e-4, 1e-4, _LEAST, 1e-4, 1),
            (0.9999, 0.9999, np.inf, 0.9999, np.inf),
            strict=True,
        )
    )
    x = min(depth / width, 1.0)
    if x <= middle:
        y = x**power / middle ** (power - 1)
    else:
        y = 1 - (1 - x) ** power / (1 - middle) ** (power - 1)
    return least + y * (most - least)
