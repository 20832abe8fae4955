"""Crouch-Grossman methods: a product of exponentials, one for each earlier stage.

Park and Chung 2005, (28) and (46): with h the step and k_j the rates of the stages,

    y_i = y . exp(h a_i1 k_1) ... exp(h a_i,i-1 k_i-1),    k_i = field(t + c_i h, y_i)
    y'  = y . exp(h b_1 k_1) ... exp(h b_s k_s)

They are the commutator-free methods whose exponents hold one rate each.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx

from . import tableaux
from .commutator_free import CommutatorFree
from .tableau import CommutatorFreeTableau


class CrouchGrossman(CommutatorFree):
    """The Crouch-Grossman method of a tableau, which must meet the order conditions of a group.

    tableau: a `ButcherTableau`, kept as the commutator-free one with an exponential for each
    coefficient.
    """

    tableau: CommutatorFreeTableau = eqx.field(
        static=True, converter=CommutatorFreeTableau.of_products
    )


class CG2(CrouchGrossman):
    """Order 2, 2 stages, 3 exponentials (6 evaluated).

    Crouch and Grossman 1993, on Heun's tableau.
    """

    tableau: ClassVar[CommutatorFreeTableau] = CommutatorFreeTableau.of_products(tableaux.CG2)


class CG3(CrouchGrossman):
    """Order 3, 3 stages, 6 exponentials (12 evaluated).

    Crouch and Grossman 1993; Park and Chung, Table I(a).
    """

    tableau: ClassVar[CommutatorFreeTableau] = CommutatorFreeTableau.of_products(tableaux.CG3)


class CG4(CrouchGrossman):
    """Order 4, 5 stages, 15 exponentials (30 evaluated).

    Owren and Marthinsen 1999; Jackiewicz, Marthinsen and Owren 2000; Park and Chung, Table I(b).
    """

    tableau: ClassVar[CommutatorFreeTableau] = CommutatorFreeTableau.of_products(tableaux.CG4)
