"""The tableaux of the methods.

Sources: Park and Chung 2005, Tables I-III, with the misprints corrected (CG3: a21 = 3/4; CG4: the
printed fractions are only good to 1e-6 and are replaced by a solution of the order conditions);
Butcher 1964; Dormand and Prince 1980; Bogacki and Shampine 1989; Cooper and Verner 1972; Hairer,
Norsett and Wanner 1993, II.7, for the Gauss methods.
"""

from __future__ import annotations

import math

from .tableau import ButcherTableau, CommutatorFreeTableau, EmbeddedTableau, SymmetricTableau

# Runge-Kutta, also the base of the Munthe-Kaas methods.

HEUN = ButcherTableau(a=((), (1,)), b=(1 / 2, 1 / 2), c=(0, 1), order=2)

RK3 = ButcherTableau(
    a=((), (1 / 3,), (0, 2 / 3)),
    b=(1 / 4, 0, 3 / 4),
    c=(0, 1 / 3, 2 / 3),
    order=3,
)

RK4 = ButcherTableau(
    a=((), (1 / 2,), (0, 1 / 2), (0, 0, 1)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    c=(0, 1 / 2, 1 / 2, 1),
    order=4,
)

# Dormand and Prince 1980, without the stage that only estimates the error.
DORMAND_PRINCE5 = ButcherTableau(
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    b=(35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    c=(0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1),
    order=5,
)

# Bogacki and Shampine 1989.
BOGACKI_SHAMPINE32 = EmbeddedTableau(
    a=((), (1 / 2,), (0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
    b=(2 / 9, 1 / 3, 4 / 9, 0),
    c=(0, 1 / 2, 3 / 4, 1),
    order=3,
    b_hat=(7 / 24, 1 / 4, 1 / 3, 1 / 8),
    order_hat=2,
)

# The classical tableau with a fifth stage that serves the estimate only.
RK43 = EmbeddedTableau(
    a=((), (1 / 2,), (0, 1 / 2), (0, 0, 1), (5 / 32, 7 / 32, 13 / 32, -1 / 32)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6, 0),
    c=(0, 1 / 2, 1 / 2, 1, 3 / 4),
    order=4,
    b_hat=(-1 / 2, 7 / 3, 7 / 3, 13 / 6, -16 / 3),
    order_hat=3,
)

DORMAND_PRINCE54 = EmbeddedTableau(
    a=(*DORMAND_PRINCE5.a, DORMAND_PRINCE5.b),
    b=(*DORMAND_PRINCE5.b, 0),
    c=(*DORMAND_PRINCE5.c, 1),
    order=5,
    b_hat=(5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
    order_hat=4,
)

# Butcher 1964, "On Runge-Kutta processes of high order".
BUTCHER6 = ButcherTableau(
    a=(
        (),
        (1 / 3,),
        (0, 2 / 3),
        (1 / 12, 1 / 3, -1 / 12),
        (-1 / 16, 9 / 8, -3 / 16, -3 / 8),
        (0, 9 / 8, -3 / 8, -3 / 4, 1 / 2),
        (9 / 44, -9 / 11, 63 / 44, 18 / 11, 0, -16 / 11),
    ),
    b=(11 / 120, 0, 27 / 40, 27 / 40, -4 / 15, -4 / 15, 11 / 120),
    c=(0, 1 / 3, 2 / 3, 1 / 3, 1 / 2, 1 / 2, 1),
    order=6,
)

# Cooper and Verner 1972, "Some explicit Runge-Kutta methods of high order".
_Q = math.sqrt(21)
COOPER_VERNER8 = ButcherTableau(
    a=(
        (),
        (1 / 2,),
        (1 / 4, 1 / 4),
        (1 / 7, (-7 - 3 * _Q) / 98, (21 + 5 * _Q) / 49),
        ((11 + _Q) / 84, 0, (18 + 4 * _Q) / 63, (21 - _Q) / 252),
        ((5 + _Q) / 48, 0, (9 + _Q) / 36, (-231 + 14 * _Q) / 360, (63 - 7 * _Q) / 80),
        (
            (10 - _Q) / 42,
            0,
            (-432 + 92 * _Q) / 315,
            (633 - 145 * _Q) / 90,
            (-504 + 115 * _Q) / 70,
            (63 - 13 * _Q) / 35,
        ),
        (1 / 14, 0, 0, 0, (14 - 3 * _Q) / 126, (13 - 3 * _Q) / 63, 1 / 9),
        (
            1 / 32,
            0,
            0,
            0,
            (91 - 21 * _Q) / 576,
            11 / 72,
            (-385 - 75 * _Q) / 1152,
            (63 + 13 * _Q) / 128,
        ),
        (
            1 / 14,
            0,
            0,
            0,
            1 / 9,
            (-733 - 147 * _Q) / 2205,
            (515 + 111 * _Q) / 504,
            (-51 - 11 * _Q) / 56,
            (132 + 28 * _Q) / 245,
        ),
        (
            0,
            0,
            0,
            0,
            (-42 + 7 * _Q) / 18,
            (-18 + 28 * _Q) / 45,
            (-273 - 53 * _Q) / 72,
            (301 + 53 * _Q) / 72,
            (28 - 28 * _Q) / 45,
            (49 - 7 * _Q) / 18,
        ),
    ),
    b=(1 / 20, 0, 0, 0, 0, 0, 0, 49 / 180, 16 / 45, 49 / 180, 1 / 20),
    c=(
        0,
        1 / 2,
        1 / 2,
        (7 + _Q) / 14,
        (7 + _Q) / 14,
        1 / 2,
        (7 - _Q) / 14,
        (7 - _Q) / 14,
        1 / 2,
        (7 + _Q) / 14,
        1,
    ),
    order=8,
)

# Crouch-Grossman. The order is that on a group, where there are more order conditions.

CG2 = HEUN

CG3 = ButcherTableau(
    a=((), (3 / 4,), (119 / 216, 17 / 108)),
    b=(13 / 51, -2 / 3, 24 / 17),
    c=(0, 3 / 4, 17 / 24),
    order=3,
)

# Thirteen conditions on fifteen coefficients leave a family; this is the member that the fractions
# of Table I(b) approximate.
CG4 = ButcherTableau(
    a=(
        (),
        (0.8177227988124851838643834,),
        (0.3199876375476426814096093, 0.06598642635560218735460323),
        (0.9214417194464946126029556, 0.4997857776773572986305806, -1.096998444837158207718267),
        (
            0.3552358559023322010541568,
            0.2390958372307325695852991,
            1.391856572420324594286737,
            -1.109297939211346510584177,
        ),
    ),
    b=(
        0.1370831520630755370295948,
        -0.01836985315640201911261089,
        0.7397813985370779989291436,
        -0.1907142565505888966977466,
        0.3322195591068373798516191,
    ),
    c=(
        0,
        0.81772279881248518386,
        0.38597406390324486876,
        0.32422905228669370352,
        0.87689032634204285434,
    ),
    order=4,
)

# Commutator-free.

CF2 = CommutatorFreeTableau(
    alpha=((), ((1,),)),
    beta=((1 / 2, 0), (0, 1 / 2)),
    order=2,
)

CF3 = CommutatorFreeTableau(
    alpha=((), ((1 / 3,),), ((0, 2 / 3),)),
    beta=((1 / 3, 0, 0), (-1 / 12, 0, 3 / 4)),
    order=3,
)

CF4 = CommutatorFreeTableau(
    alpha=((), ((1 / 2,),), ((0, 1 / 2),), ((1 / 2, 0, 0), (-1 / 2, 0, 1))),
    beta=((1 / 4, 1 / 6, 1 / 6, -1 / 12), (-1 / 12, 1 / 6, 1 / 6, 1 / 4)),
    order=4,
)

# Gauss, of the highest order that s stages can have.

GAUSS2 = SymmetricTableau(a=((1 / 2,),), b=(1,), c=(1 / 2,), order=2)

_G = math.sqrt(3) / 6
GAUSS4 = SymmetricTableau(
    a=((1 / 4, 1 / 4 - _G), (1 / 4 + _G, 1 / 4)),
    b=(1 / 2, 1 / 2),
    c=(1 / 2 - _G, 1 / 2 + _G),
    order=4,
)

_R = math.sqrt(15)
GAUSS6 = SymmetricTableau(
    a=(
        (5 / 36, 2 / 9 - _R / 15, 5 / 36 - _R / 30),
        (5 / 36 + _R / 24, 2 / 9, 5 / 36 - _R / 24),
        (5 / 36 + _R / 30, 2 / 9 + _R / 15, 5 / 36),
    ),
    b=(5 / 18, 4 / 9, 5 / 18),
    c=(1 / 2 - _R / 10, 1 / 2, 1 / 2 + _R / 10),
    order=6,
)
