"""Transcriptions: what is asked of the points and the control between two knots.

A transcription turns the differential equation into equations of the points x_k, x_{k+1} and the
control u_k, and the integral of the cost into a sum (Betts 2010, 4.5). Those of collocation are
written for y = (theta, v), where q = retract(q_k, theta): there the equation is one of a vector
space, whatever the manifold.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..formulations import RateFormulation, formulated
from ..integrators import RKMK4
from ..system.validation import ModelError
from .discretization import Discretization, Point


class Transcription(eqx.Module):
    """The equations and the cost of a step."""

    def check(self, knots: Discretization) -> None:
        """Raises ModelError for a machine to which it does not apply."""

    @abc.abstractmethod
    def step(
        self,
        knots: Discretization,
        x: Point,
        u: Float[Array, " nu"],
        k: Float[Array, ""],
        end: Point,
    ) -> tuple[Float[Array, ""], Float[Array, " nx"]]:
        """The cost () of a step, and its end less the next point (nx,), zero in a motion."""


class Shooting(Transcription):
    """The steps of the problem's own method, and its costs at their starts."""

    def step(
        self,
        knots: Discretization,
        x: Point,
        u: Float[Array, " nu"],
        k: Float[Array, ""],
        end: Point,
    ) -> tuple[Float[Array, ""], Float[Array, " nx"]]:
        return _sum(*knots.residuals(x, u, k)), knots.difference(end, knots.step(x, u, k))


class Collocation(Transcription):
    """What the collocations share. The method of the problem is not used."""

    def check(self, knots: Discretization) -> None:
        if knots.system.nz:
            raise ModelError(
                f"{knots.system.name}: collocation knows no internal states; take "
                "Ipopt(transcription=Shooting()), which steps by the method of the problem"
            )
        kind = type(formulated(knots.tree, RKMK4(), knots.stabilisation))
        if kind is not RateFormulation:
            raise ModelError(
                f"{knots.system.name}: collocation knows no constraints between bodies; take "
                "Ipopt(transcription=Shooting()), which steps by the method of the problem"
            )


class Trapezoidal(Collocation):
    """y_{k+1} = y_k + h (f_k + f_{k+1}) / 2, of order 2."""

    def step(
        self,
        knots: Discretization,
        x: Point,
        u: Float[Array, " nu"],
        k: Float[Array, ""],
        end: Point,
    ) -> tuple[Float[Array, ""], Float[Array, " nx"]]:
        h, (y0, y1), (f0, f1) = knots.length(x), *_both_ends(knots, x, u, k, end)
        cost = (_cost(knots, x, u, k) + _cost(knots, end, u, k + 1)) / 2
        return cost, _with_held(knots, x, u, end, y0 + h / 2 * (f0 + f1) - y1)


class HermiteSimpson(Collocation):
    """y_{k+1} = y_k + h (f_k + 4 f_m + f_{k+1}) / 6, of order 4.

    f_m is at the middle of the cubic through both ends, (y_k + y_{k+1}) / 2 + h (f_k - f_{k+1}) / 8
    (Hargraves and Paris 1987).
    """

    def step(
        self,
        knots: Discretization,
        x: Point,
        u: Float[Array, " nu"],
        k: Float[Array, ""],
        end: Point,
    ) -> tuple[Float[Array, ""], Float[Array, " nx"]]:
        h, (y0, y1), (f0, f1) = knots.length(x), *_both_ends(knots, x, u, k, end)
        ym = (y0 + y1) / 2 + h / 8 * (f0 - f1)
        fm = _rate(knots, x, u, k, ym, 0.5)
        theta, v = jnp.split(ym, 2)
        q = knots.tree.topology.manifold.retract(x.q, theta)
        middle = _cost(knots, Point(q, v, (x.z + end.z) / 2), u, k + 0.5)
        cost = (_cost(knots, x, u, k) + 4 * middle + _cost(knots, end, u, k + 1)) / 6
        return cost, _with_held(knots, x, u, end, y0 + h / 6 * (f0 + 4 * fm + f1) - y1)


def _cost(knots: Discretization, x: Point, u: jax.Array, k: Any) -> jax.Array:
    """The step times the running cost () at a point."""
    return _sum(*knots.residuals_at(x, u, k))


def _sum(r: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.sum(w * r * r) / 2


def _both_ends(
    knots: Discretization, x: Point, u: Any, k: Any, end: Point
) -> tuple[jax.Array, jax.Array]:
    """y = (theta, v) at both ends of a step, from x, and dy/dt there; each (2, 2 nv)."""
    theta = knots.tree.topology.manifold.difference(x.q, end.q)
    y = jnp.stack((jnp.concatenate((0 * theta, x.v)), jnp.concatenate((theta, end.v))))
    rate = jax.vmap(lambda y, share: _rate(knots, x, u, k, y, share))
    return y, rate(y, jnp.arange(2, dtype=y.dtype))


def _rate(knots: Discretization, x: Point, u: Any, k: Any, y: jax.Array, share: Any) -> jax.Array:
    """dy/dt (2 nv,) at y = (theta, v), after a share of the step from x."""
    manifold, h = knots.tree.topology.manifold, knots.length(x)
    theta, v = jnp.split(y, 2)
    formulation, start = formulated(knots.tree, RKMK4(), knots.stabilisation), k * h
    field = formulation.problem(start, h, knots.acting(x, u, k)).field
    rate, a = field(start + share * h, (manifold.retract(x.q, theta), v))
    return jnp.concatenate((manifold.dexp_inv(theta, rate), a))


def _with_held(knots: Discretization, x: Point, u: Any, end: Point, gap: jax.Array) -> jax.Array:
    """The gap (nx,), with that of z."""
    return jnp.concatenate((gap, knots.held(x, u) - end.z))
