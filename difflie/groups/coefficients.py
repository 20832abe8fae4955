"""The scalar coefficients of the exponential map and its differentials.

Every coefficient is a function of x = t^2, with t the rotation angle in rad, so that no square root
is taken at t = 0. Below x = 4 it is a Taylor polynomial, exact to double precision; above, the
closed form. Neither branch is evaluated outside its range. A long series with a late switch avoids
the cancellation in the closed form, and the errors it causes in first and second derivatives.

The derivative of a coefficient is a coefficient of the same kind. It is evaluated once for any
number of tangents.

This is the only file of the package with a series or a switch on an angle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import comb, factorial

import jax
import jax.numpy as jnp

Function = Callable[[jax.Array], jax.Array]

_SWITCH = 4
_NEGLIGIBLE = Fraction(1, 2**62)  # relative size of the terms left out, at the switch


def _horner(coefficients: Sequence[Fraction], x: jax.Array) -> jax.Array:
    value = jnp.full_like(x, float(coefficients[-1]))
    for c in reversed(coefficients[:-1]):
        value = value * x + float(c)
    return value


def _derived(coefficients: Sequence[Fraction]) -> tuple[Fraction, ...]:
    return tuple(k * c for k, c in enumerate(coefficients))[1:]


def _with_derivative(evaluate: Function, make_derivative: Callable[[], Function]) -> Function:
    """`evaluate` with a derivative of its own, which is built when it is first needed.

    Both are traced once for each shape: a step of a Runge-Kutta method needs them dozens of times.
    """
    ruled = jax.custom_jvp(evaluate)
    f = jax.jit(ruled)
    derivative = cache(make_derivative)

    @ruled.defjvp
    def _(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
        (x,), (dx,) = primals, tangents
        return f(x), derivative()(x) * dx

    return f


def _polynomial(coefficients: Sequence[Fraction]) -> Function:
    return _with_derivative(
        lambda x: _horner(coefficients, jnp.asarray(x)),
        lambda: _polynomial(_derived(coefficients)),
    )


def _piecewise(coefficients: Sequence[Fraction], closed: Function) -> Function:
    """The Taylor polynomial below the switch, `closed(x)` above it."""

    def evaluate(x: jax.Array) -> jax.Array:
        x = jnp.asarray(x)
        small = x < _SWITCH
        series = _horner(coefficients, jnp.where(small, x, jnp.zeros_like(x)))
        return jnp.where(small, series, closed(jnp.where(small, jnp.full_like(x, _SWITCH), x)))

    def closed_derivative(x: jax.Array) -> jax.Array:
        return jax.jvp(closed, (x,), (jnp.ones_like(x),))[1]

    return _with_derivative(evaluate, lambda: _piecewise(_derived(coefficients), closed_derivative))


def _taylor(term: Callable[[int], Fraction]) -> tuple[Fraction, ...]:
    terms = [term(0)]
    while abs(terms[-1]) * _SWITCH ** len(terms) > abs(terms[0]) * _NEGLIGIBLE:
        terms.append(term(len(terms)))
    return tuple(terms)


def _bernoulli(count: int) -> list[Fraction]:
    b = [Fraction(1)]
    for m in range(1, count):
        b.append(-sum((comb(m + 1, j) * b[j] for j in range(m)), Fraction(0)) / (m + 1))
    return b


_B = _bernoulli(60)


def _sign(k: int) -> int:
    return -1 if k % 2 else 1


def _cotangent_term(k: int) -> Fraction:
    return abs(_B[2 * k + 2]) / factorial(2 * k + 2)


def _alpha_closed(x: jax.Array) -> jax.Array:
    t = jnp.sqrt(x)
    return jnp.sin(t) / t


def _half_beta_closed(x: jax.Array) -> jax.Array:
    return 2 * jnp.sin(jnp.sqrt(x) / 2) ** 2 / x


def _k_c_closed(x: jax.Array) -> jax.Array:
    return (1 - _alpha_closed(x)) / x


def _gamma_closed(x: jax.Array) -> jax.Array:
    half = jnp.sqrt(x) / 2
    return half * jnp.cos(half) / jnp.sin(half)


def _half_sinc_half_closed(x: jax.Array) -> jax.Array:
    t = jnp.sqrt(x)
    return jnp.sin(t / 2) / t


alpha = _piecewise(_taylor(lambda k: Fraction(_sign(k), factorial(2 * k + 1))), _alpha_closed)
"""sin t / t."""

half_beta = _piecewise(
    _taylor(lambda k: Fraction(_sign(k), factorial(2 * k + 2))), _half_beta_closed
)
"""(1 - cos t) / t^2."""

k_c = _piecewise(_taylor(lambda k: Fraction(_sign(k), factorial(2 * k + 3))), _k_c_closed)
"""(t - sin t) / t^3."""

k_d = _piecewise(
    _taylor(
        lambda k: (
            -_sign(k) * (Fraction(1, factorial(2 * k + 3)) - Fraction(2, factorial(2 * k + 4)))
        )
    ),
    lambda x: (_alpha_closed(x) - 2 * _half_beta_closed(x)) / x,
)
"""(sin t / t - 2 (1 - cos t) / t^2) / t^2, the derivative of half_beta divided by t."""

k_e = _piecewise(
    _taylor(
        lambda k: (
            -_sign(k) * (Fraction(1, factorial(2 * k + 4)) - Fraction(3, factorial(2 * k + 5)))
        )
    ),
    lambda x: (_half_beta_closed(x) - 3 * _k_c_closed(x)) / x,
)
"""((1 - cos t) / t^2 - 3 (t - sin t) / t^3) / t^2, the derivative of k_c divided by t."""

k_g = _piecewise(_taylor(_cotangent_term), lambda x: (1 - _gamma_closed(x)) / x)
"""(1 - (t/2) cot(t/2)) / t^2; singular at t = 2 pi k, k >= 1."""

k_h = _piecewise(
    _taylor(lambda k: 2 * (k + 1) * _cotangent_term(k + 1)),
    lambda x: (x / (4 * jnp.sin(jnp.sqrt(x) / 2) ** 2) + _gamma_closed(x) - 2) / x**2,
)
"""The derivative of k_g divided by t; singular at t = 2 pi k, k >= 1."""

cos_half = _piecewise(
    _taylor(lambda k: Fraction(_sign(k), 4**k * factorial(2 * k))),
    lambda x: jnp.cos(jnp.sqrt(x) / 2),
)
"""cos(t / 2)."""

half_sinc_half = _piecewise(
    _taylor(lambda k: Fraction(_sign(k), 2 ** (2 * k + 1) * factorial(2 * k + 1))),
    _half_sinc_half_closed,
)
"""sin(t / 2) / t."""

arctangent_ratio = _polynomial(tuple(Fraction(_sign(k), 2 * k + 1) for k in range(23)))
"""arctan(s) / s as a function of y = s^2, for s at most tan(pi / 8); no switch is needed."""
