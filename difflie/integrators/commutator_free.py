"""Commutator-free methods: few exponentials, each of a combination of the rates.

Park and Chung 2005, (29): with h the step and k_j the rates of the stages,

    y_i = y . exp(h sum_j alpha_ij^[1] k_j) . exp(h sum_j alpha_ij^[2] k_j) ...
    k_i = field(t + c_i h, y_i)
    y'  = y . exp(h sum_j beta_j^[1] k_j) . exp(h sum_j beta_j^[2] k_j) ...

Products grow to the right because rates are body-fixed. All stages run through one loop. A step
therefore evaluates the longest product, of e factors, once for each stage and once for the update,
padded with zeros: (s + 1) e exponentials, more than the method needs.

The methods of Crouch and Grossman are those whose exponents hold one rate each: a product of
exponentials, one for each earlier stage, Park and Chung 2005, (28) and (46).

    y_i = y . exp(h a_i1 k_1) ... exp(h a_i,i-1 k_i-1),    k_i = field(t + c_i h, y_i)
    y'  = y . exp(h b_1 k_1) ... exp(h b_s k_s)
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from . import tableaux
from .method import (
    Scalar,
    State,
    TableauMethod,
    VectorField,
    combination,
    in_precision_of,
    square,
    stage_rates,
    zero_tangent,
)
from .tableau import CommutatorFreeTableau


class CommutatorFree(TableauMethod):
    """The commutator-free method of a tableau, which must meet the order conditions of a group."""

    tableau: CommutatorFreeTableau = eqx.field(static=True)

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        manifold, y = problem.manifold, state.y
        t, h = in_precision_of(y, t, h)
        tableau = self.tableau
        exponents = max(len(rows) for rows in (*tableau.alpha, tableau.beta))

        def product(rates: Any, rows: jax.Array) -> Any:
            """y . exp(h sum_j row_1j k_j) . exp(h sum_j row_2j k_j) ..."""

            def factor(y: Any, row: jax.Array) -> tuple[Any, None]:
                return manifold.retract(y, combination(h, row, rates)), None

            return jax.lax.scan(factor, y, rows)[0]

        def rate(rates: Any, rows: jax.Array, c: jax.Array, at_start: jax.Array) -> Any:
            return problem.rate(t + c * h, product(rates, rows), at_start)

        def filled(rows: Any) -> np.ndarray:
            return square([*rows, *[()] * (exponents - len(rows))], tableau.stages)

        alpha = np.stack([filled(rows) for rows in tableau.alpha])
        rates = stage_rates(rate, alpha, tableau.c, zero_tangent(manifold, y), h.dtype)
        return State(product(rates, jnp.asarray(filled(tableau.beta), h.dtype))), True


class CF2(CommutatorFree):
    """Order 2, 2 stages, 3 exponentials (6 evaluated); equal to CG2."""

    tableau: ClassVar[CommutatorFreeTableau] = tableaux.CF2


class CF3(CommutatorFree):
    """Order 3, 3 stages, 3 exponentials (8 evaluated).

    Celledoni, Marthinsen and Owren 2003; Park and Chung, Table II(a).
    """

    tableau: ClassVar[CommutatorFreeTableau] = tableaux.CF3


class CF4(CommutatorFree):
    """Order 4, 4 stages, 5 exponentials (10 evaluated).

    Celledoni, Marthinsen and Owren 2003; Park and Chung, Table II(b).
    """

    tableau: ClassVar[CommutatorFreeTableau] = tableaux.CF4


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
