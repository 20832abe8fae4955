"""Jacobi's elliptic functions, for the motions that have a closed form.

With the means a_0 = 1, b_0 = sqrt(1 - m), a_n+1 = (a_n + b_n) / 2, b_n+1 = sqrt(a_n b_n) and
c_n = (a_n - b_n) / 2 the amplitude is found backwards from phi_N = 2^N a_N u by

    sin(2 phi_n-1 - phi_n) = c_n / a_n sin(phi_n)

Abramowitz and Stegun 1964, 16.4 and 17.6.
"""

from __future__ import annotations

import numpy as np


def amplitude(u: np.ndarray | float, m: float) -> np.ndarray:
    """am(u | m) in rad for 0 <= m < 1, without jumps in u."""
    means, ratios = _means(m)
    phi = 2.0 ** len(ratios) * means * np.asarray(u, float)
    for ratio in reversed(ratios):
        phi = (phi + np.arcsin(ratio * np.sin(phi))) / 2
    return phi


def functions(u: np.ndarray | float, m: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """sn, cn and dn of u."""
    phi = amplitude(u, m)
    return np.sin(phi), np.cos(phi), np.sqrt(1 - m * np.sin(phi) ** 2)


def quarter_period(m: float) -> float:
    """K(m), where the amplitude is a right angle."""
    return np.pi / (2 * _means(m)[0])


def _means(m: float) -> tuple[float, list[float]]:
    """The arithmetic-geometric mean of 1 and sqrt(1 - m), and c_n / a_n from n = 1 on."""
    a, b, ratios = 1.0, float(np.sqrt(1 - m)), []
    while abs(a - b) > 4e-16 * a:
        a, b, c = (a + b) / 2, float(np.sqrt(a * b)), (a - b) / 2
        ratios.append(c / a)
        if len(ratios) == 40:
            break
    return a, ratios
