"""Floating-point types, and the coefficients of elementary functions in them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

HALF_PI = Fraction("1.570796326794896619231321691639751442098584699687552910487472296153908203")
LOG_2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393622")


def parts(value: Fraction, number: int, kind: type[np.floating]) -> list[float]:
    """Numbers of a kind whose sum is the value: of what is left, the leading digits, cut off.

    None is negative, which products with zero would show.
    """
    parts: list[float] = []
    for _ in range(number):
        rest = value - sum(map(Fraction, parts))
        part = kind(float(rest))
        parts.append(float(part if Fraction(float(part)) <= rest else np.nextafter(part, kind(0))))
    return parts


@dataclass(frozen=True)
class Format:
    """A floating-point type and the constants that depend on it.

    Polynomials are given from the highest coefficient to the lowest.
    """

    name: str
    kind: type[np.floating]
    farthest: float  # argument that multiples of pi / 2 are taken from here, not in libm
    sin: tuple[float, ...]  # of (r - sin r) / r^3 in r^2
    cos: tuple[float, ...]  # of (cos r - 1 + r^2 / 2) / r^4 in r^2
    exp: tuple[float, ...]  # of (exp r - 1 - r) / r^2 in r, |r| <= log(2) / 2
    exp_ends: tuple[float, float]  # exp is 0 below them and infinite above
    tanh_end: float  # tanh is 1 from here on


FORMATS = {
    # sin, cos: fdlibm, k_sin.c and k_cos.c; exp: minimax by Remez' algorithm, relative to r
    "f64": Format(
        name="f64",
        kind=np.float64,
        farthest=1e9,
        sin=(
            *(-1.58969099521155010221e-10, 2.50507602534068634195e-08, -2.75573137070700676789e-06),
            *(1.98412698298579493134e-04, -8.33333333332248946124e-03, 1.66666666666666324348e-01),
        ),
        cos=(
            *(-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07),
            *(2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02),
        ),
        exp=(
            *(2.0924155184315092e-09, 2.5108678217588848e-08, 2.755724384829348e-07),
            *(2.7557245320405557e-06, 2.4801587359027062e-05, 0.00019841269884920127),
            *(0.0013888888888867808, 0.008333333333322162, 0.0416666666666667),
            *(0.16666666666666677, 0.5),
        ),
        exp_ends=(-746.0, 710.0),
        tanh_end=19.1,
    ),
    # sin, cos: Cephes, sinf.c
    "f32": Format(
        name="f32",
        kind=np.float32,
        farthest=1e5,
        sin=(1.9515295891e-4, -8.3321608736e-3, 1.6666654611e-1),
        cos=(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
        exp=(0.00019913648, 0.0013940312, 0.008333274, 0.041666366, 0.16666667, 0.5),
        exp_ends=(-104.0, 89.0),
        tanh_end=9.1,
    ),
}
