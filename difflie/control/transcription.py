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
from .knots import Knots, Point


class Transcription(eqx.Module):
    """The equations and the cost of a step."""

    def check(self, knots: Knots) -> None:
        """Raises ModelError for a machine to which it does not apply."""

    @abc.abstractmethod
    def gap(
        self, knots: Knots, x: Point, u: Float[Array, " nu"], k: Float[Array, ""], end: Point
    ) -> Float[Array, " nx"]:
        """The end of a step less the next point (nx,); zero in a motion."""

    @abc.abstractmethod
    def cost(
        self, knots: Knots, x: Point, u: Float[Array, " nu"], k: Float[Array, ""], end: Point
    ) -> Float[Array, ""]:
        """The cost () of a step."""


class Shooting(Transcription):
    """The steps of the problem's own method, and its costs at their starts."""

    def gap(self, knots: Knots, x: Point, u: Any, k: Any, end: Point) -> jax.Array:
        return knots.difference(end, knots.step(x, u, k))

    def cost(self, knots: Knots, x: Point, u: Any, k: Any, end: Point) -> jax.Array:
        return _cost(knots, x, u, k)


class Collocation(Transcription):
    """What the collocations share. The method of the problem is not used."""

    def check(self, knots: Knots) -> None:
        kind = type(formulated(knots.tree, RKMK4(), knots.stabilisation))
        if kind is not RateFormulation:
            raise ModelError(
                f"{knots.system.name}: collocation knows no constraints between bodies; take "
                "Ipopt(transcription=Shooting()), which steps by the method of the problem"
            )


class Trapezoidal(Collocation):
    """y_{k+1} = y_k + h (f_k + f_{k+1}) / 2, of order 2."""

    def gap(self, knots: Knots, x: Point, u: Any, k: Any, end: Point) -> jax.Array:
        h, y0, y1 = knots.length(x), _local(knots, x, x), _local(knots, x, end)
        f0, f1 = _rate(knots, x, u, k, y0, 0.0), _rate(knots, x, u, k, y1, 1.0)
        return _with_held(knots, x, u, end, y0 + h / 2 * (f0 + f1) - y1)

    def cost(self, knots: Knots, x: Point, u: Any, k: Any, end: Point) -> jax.Array:
        return (_cost(knots, x, u, k) + _cost(knots, end, u, k + 1)) / 2


class HermiteSimpson(Collocation):
    """y_{k+1} = y_k + h (f_k + 4 f_m + f_{k+1}) / 6, of order 4.

    f_m is at the middle of the cubic through both ends, (y_k + y_{k+1}) / 2 + h (f_k - f_{k+1}) / 8
    (Hargraves and Paris 1987).
    """

    def gap(self, knots: Knots, x: Point, u: Any, k: Any, end: Point) -> jax.Array:
        h, y0, y1 = knots.length(x), _local(knots, x, x), _local(knots, x, end)
        f0, f1 = _rate(knots, x, u, k, y0, 0.0), _rate(knots, x, u, k, y1, 1.0)
        fm = _rate(knots, x, u, k, self._middle(knots, x, u, k, end), 0.5)
        return _with_held(knots, x, u, end, y0 + h / 6 * (f0 + 4 * fm + f1) - y1)

    def cost(self, knots: Knots, x: Point, u: Any, k: Any, end: Point) -> jax.Array:
        theta, v = jnp.split(self._middle(knots, x, u, k, end), 2)
        q = knots.tree.topology.manifold.retract(x.q, theta)
        middle = Point(q, v, (x.z + end.z) / 2)
        ends = _cost(knots, x, u, k) + _cost(knots, end, u, k + 1)
        return (ends + 4 * _cost(knots, middle, u, k + 0.5)) / 6

    @staticmethod
    def _middle(knots: Knots, x: Point, u: Any, k: Any, end: Point) -> jax.Array:
        h, y0, y1 = knots.length(x), _local(knots, x, x), _local(knots, x, end)
        f0, f1 = _rate(knots, x, u, k, y0, 0.0), _rate(knots, x, u, k, y1, 1.0)
        return (y0 + y1) / 2 + h / 8 * (f0 - f1)


def _cost(knots: Knots, x: Point, u: jax.Array, k: Any) -> jax.Array:
    """The step times the running cost () at a point."""
    r, w = knots.residuals(x, u, k)
    return jnp.sum(w * r * r) / 2


def _local(knots: Knots, x: Point, y: Point) -> jax.Array:
    """(theta, v) (2 nv,) of a point, from x."""
    return jnp.concatenate((knots.tree.topology.manifold.difference(x.q, y.q), y.v))


def _rate(knots: Knots, x: Point, u: Any, k: Any, y: jax.Array, share: float) -> jax.Array:
    """dy/dt (2 nv,) at y = (theta, v), after a share of the step from x."""
    manifold, h = knots.tree.topology.manifold, knots.length(x)
    theta, v = jnp.split(y, 2)
    with knots.tree.at_hand():
        formulation = formulated(knots.tree, RKMK4(), knots.stabilisation)
        start = k * h
        field = formulation.problem(start, h, knots.acting(x, u, k)).field
        rate, a = field(start + share * h, (manifold.retract(x.q, theta), v))
    return jnp.concatenate((manifold.dexp_inv(theta, rate), a))


def _with_held(knots: Knots, x: Point, u: Any, end: Point, gap: jax.Array) -> jax.Array:
    """The gap (nx,), with that of z."""
    return jnp.concatenate((gap, knots.held(x, u) - end.z))
