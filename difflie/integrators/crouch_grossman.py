"""Crouch-Grossman methods: a product of exponentials, one for each earlier stage.

Park and Chung 2005, (28) and (46): with h the step and k_j the rates of the stages,

    y_i = y . exp(h a_i1 k_1) ... exp(h a_i,i-1 k_i-1),    k_i = field(t + c_i h, y_i)
    y'  = y . exp(h b_1 k_1) ... exp(h b_s k_s)

Products grow to the right because rates are body-fixed. All stages run through one loop, so that a
step evaluates the whole product of s factors once for each stage and once for the update, with
zeros where the tableau ends: s (s + 1) exponentials, twice as many as the method has.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from . import tableaux
from .method import FieldMethod, Scalar, State, VectorField, in_precision_of, square, stage_rates
from .tableaux import ButcherTableau


class CrouchGrossman(FieldMethod):
    """The Crouch-Grossman method of a tableau, which must meet the order conditions of a group."""

    tableau: ButcherTableau = eqx.field(static=True)

    @property
    def order(self) -> int:
        return self.tableau.order

    @property
    def stages(self) -> int:
        return self.tableau.stages

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        manifold, field, y = problem.manifold, problem.field, state.y
        t, h = in_precision_of(y, t, h)
        tableau = self.tableau

        def product(rates: Any, row: jax.Array) -> Any:
            """y . exp(h a_1 k_1) . exp(h a_2 k_2) ..."""

            def factor(y: Any, term: tuple) -> tuple[Any, None]:
                a, k = term
                return manifold.retract(y, jax.tree.map(lambda k: h * a * k, k)), None

            return jax.lax.scan(factor, y, (row, rates))[0]

        def rate(rates: Any, a: jax.Array, c: jax.Array) -> Any:
            return field(t + c * h, product(rates, a))

        a = square(tableau.a, tableau.stages)
        rates = stage_rates(rate, a, tableau.c, jax.eval_shape(field, t, y), h.dtype)
        return State(product(rates, jnp.asarray(tableau.b, h.dtype))), True


class CG2(CrouchGrossman):
    """Order 2, 2 stages, 3 exponentials (6 evaluated).

    Crouch and Grossman 1993, on Heun's tableau.
    """

    tableau: ClassVar[ButcherTableau] = tableaux.CG2


class CG3(CrouchGrossman):
    """Order 3, 3 stages, 6 exponentials (12 evaluated).

    Crouch and Grossman 1993; Park and Chung, Table I(a).
    """

    tableau: ClassVar[ButcherTableau] = tableaux.CG3


class CG4(CrouchGrossman):
    """Order 4, 5 stages, 15 exponentials (30 evaluated).

    Owren and Marthinsen 1999; Jackiewicz, Marthinsen and Owren 2000; Park and Chung, Table I(b).
    """

    tableau: ClassVar[ButcherTableau] = tableaux.CG4
