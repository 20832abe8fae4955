"""Runge-Kutta-Munthe-Kaas methods: a Runge-Kutta method in local coordinates.

Park and Chung 2005, (32) and (47): with h the step, y(t) = y . exp(theta(t)) turns the equation
into d theta/dt = dexp_{-theta}^-1 field(t, y(t)) on the Lie algebra, a vector space,

    theta_i = h sum_j a_ij f_j,    f_i = dexp_{-theta_i}^-1 field(t + c_i h, y . exp(theta_i))
    y'      = y . exp(h sum_i b_i f_i)

where a Runge-Kutta method keeps its order, whatever it is. The inverse of dexp is exact, or the
part of its series up to a number of nested brackets, with the Bernoulli numbers B_k:

    dexp_{-theta}^-1 xi = sum_k (-1)^k B_k / k! ad_theta^k xi
                        = xi + [theta, xi] / 2 + [theta, [theta, xi]] / 12 - ...

A method of order p keeps its order with p - 2 brackets, and with p - 3 where that one has the
coefficient zero (odd from 3 on); it loses it with fewer.

Other coordinates psi can replace exp, with the inverse of their own dpsi. Cayley coordinates
need no trigonometric functions and no series. Hairer, Lubich and Wanner 2006, IV.8.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups import Cayley, Chart, Exponential, Manifold
from . import tableaux
from .method import (
    FieldMethod,
    Scalar,
    Stage,
    State,
    TableauMethod,
    VectorField,
    combination,
    in_precision_of,
    square,
    stage_rates,
    zero_tangent,
)
from .tableau import ButcherTableau

_CHARTS: dict[str, Chart] = {"exp": Exponential(), "cay": Cayley()}


class MuntheKaas(FieldMethod):
    """A method on a vector space, in local coordinates of a manifold.

    coordinates: "exp" uses those of the manifold, which are exponential by default; "cay" uses
    Cayley coordinates for attitudes and poses, where an attitude must turn by less than pi in a
    step. Raises ValueError for another name. Raises TypeError, in the first step, for "cay" on
    rotation matrices.
    """

    coordinates: str = eqx.field(static=True, default="exp", kw_only=True)

    def __check_init__(self):
        if self.coordinates not in _CHARTS:
            raise ValueError(
                f"{self.name}: coordinates is {self.coordinates!r}; it must be "
                f"{' or '.join(map(repr, _CHARTS))}"
            )

    def local(self, manifold: Manifold) -> Manifold:
        """The manifold in the coordinates of the method."""
        if self.coordinates == "exp":
            return manifold
        return manifold.in_chart(_CHARTS[self.coordinates])


class RungeKuttaMuntheKaas(MuntheKaas, TableauMethod):
    """The Munthe-Kaas method of any explicit Runge-Kutta tableau.

    brackets: the number of nested brackets kept in the series of the inverse of dexp; None is
    exact. coordinates: as of `MuntheKaas`. Raises ValueError for fewer than 0 brackets, and for
    brackets with coordinates other than exponential ones.
    """

    tableau: ButcherTableau = eqx.field(static=True)
    brackets: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.brackets is None:
            return
        if self.brackets < 0:
            raise ValueError(f"{self.name}: brackets is {self.brackets}; it must be 0 or more")
        if self.coordinates != "exp":
            raise ValueError(
                f"{self.name}: brackets={self.brackets} cuts off the series of the inverse of "
                f"dexp, which is not that of coordinates={self.coordinates!r}; leave brackets out, "
                "the inverse is exact then, or take coordinates='exp'"
            )

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        y = state.y
        t, h = in_precision_of(y, t, h)
        manifold = self.local(problem.manifold)
        if self.brackets is not None and manifold != manifold.in_chart(Exponential()):
            raise ValueError(
                f"{self.name}: brackets={self.brackets} cuts off the series of the inverse of "
                "dexp, and the manifold is in other coordinates than exponential ones; leave "
                "brackets out, the inverse is exact then"
            )
        slopes = chart_rates(self.tableau, manifold, problem.rate, t, y, h, self.brackets)
        b = jnp.asarray(self.tableau.b, h.dtype)
        return State(manifold.retract(y, combination(h, b, slopes))), True


def chart_rates(
    tableau: ButcherTableau,
    manifold: Manifold,
    field: Stage,
    t: jax.Array,
    y: Any,
    h: jax.Array,
    brackets: int | None = None,
) -> Any:
    """The rates f_i of all stages in the chart at y, leaves with a leading axis (s,)."""

    def slope(slopes: Any, a: jax.Array, c: jax.Array, at_start: jax.Array) -> Any:
        theta = combination(h, a, slopes)
        rate = field(t + c * h, manifold.retract(y, theta), at_start)
        if brackets is None:
            return manifold.dexp_inv(theta, rate)
        return truncated_dexp_inv(manifold, theta, rate, brackets)

    a = square(tableau.a, tableau.stages)
    return stage_rates(slope, a, tableau.c, zero_tangent(manifold, y), h.dtype)


def truncated_dexp_inv(manifold: Manifold, theta: Any, xi: Any, brackets: int) -> Any:
    """The terms of dexp_{-theta}^-1 xi with at most so many nested brackets.

    theta, xi and the result are tangents, in the shapes of the manifold.
    """
    coefficients = dexp_inv_coefficients(brackets)
    total = nested = xi
    for coefficient in coefficients[1:]:
        nested = manifold.bracket(theta, nested)
        if coefficient:
            c = float(coefficient)
            total = jax.tree.map(lambda s, x, c=c: s + c * x, total, nested)
    return total


def dexp_inv_coefficients(brackets: int) -> tuple[Fraction, ...]:
    """(-1)^k B_k / k! for k = 0, 1, ..., up to the last that is not zero."""
    b: list[Fraction] = []
    for n in range(brackets + 1):
        # sum_k binomial(n + 1, k) B_k = 0 for n > 0.
        known = sum((math.comb(n + 1, k) * x for k, x in enumerate(b)), Fraction(0))
        b.append(((n == 0) - known) / (n + 1))
    while len(b) > 1 and not b[-1]:
        b.pop()
    return tuple((-1) ** k * x / math.factorial(k) for k, x in enumerate(b))


class RKMK2(RungeKuttaMuntheKaas):
    """Order 2, 2 stages. Munthe-Kaas 1999, on Heun's tableau.

    Arguments as of `RungeKuttaMuntheKaas`.
    """

    tableau: ClassVar[ButcherTableau] = tableaux.HEUN


class RKMK3(RungeKuttaMuntheKaas):
    """Order 3, 3 stages. Munthe-Kaas 1999; Park and Chung, Table III(a).

    Arguments as of `RungeKuttaMuntheKaas`.
    """

    tableau: ClassVar[ButcherTableau] = tableaux.RK3


class RKMK4(RungeKuttaMuntheKaas):
    """Order 4, 4 stages: the classical tableau. Munthe-Kaas 1999; Park and Chung, Table III(b).

    Arguments as of `RungeKuttaMuntheKaas`.
    """

    tableau: ClassVar[ButcherTableau] = tableaux.RK4


class RKMK5(RungeKuttaMuntheKaas):
    """Order 5, 6 stages. Munthe-Kaas 1999, on the tableau of Dormand and Prince 1980.

    Arguments as of `RungeKuttaMuntheKaas`.
    """

    tableau: ClassVar[ButcherTableau] = tableaux.DORMAND_PRINCE5


class RKMK6(RungeKuttaMuntheKaas):
    """Order 6, 7 stages. Munthe-Kaas 1999, on the tableau of Butcher 1964.

    Arguments as of `RungeKuttaMuntheKaas`.
    """

    tableau: ClassVar[ButcherTableau] = tableaux.BUTCHER6


class RKMK8(RungeKuttaMuntheKaas):
    """Order 8, 11 stages. Munthe-Kaas 1999, on the tableau of Cooper and Verner 1972.

    Arguments as of `RungeKuttaMuntheKaas`.
    """

    tableau: ClassVar[ButcherTableau] = tableaux.COOPER_VERNER8
