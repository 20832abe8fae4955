"""Physically consistent numbers near nominal ones, by Newton's method within barriers.

    min_x  |R x - z|^2 / 2 + w (sum_b d(J_b, J0_b) + sum_i ((x_i - x0_i) / s_i)^2 / 2),
           J_b > 0,  x_i >= 0 for numbers i of joints that must not be negative

R, z: the triangle of the weighted equations; s_i: the scale of a number, infinite where it is not
held; J_b, linear in x: the pseudo-inertia of body b, which is positive definite just where some
distribution of mass has it (Wensing, Kim and Slotine 2018). d is the entropic divergence
tr(J0^-1 J) - log det(J0^-1 J) - 4 (Lee, Wensing and Park 2020), or the geometric distance with the
metric at J0, tr((J0^-1 J - 1)^2) / 2 (Lee and Park 2018). All terms are convex, so the minimum is
unique, and their curvatures are sums of squares. Bounds are kept by logarithmic barriers, which are
self-concordant: damped Newton steps follow a falling barrier, stay away from the bounds, and
converge from any start, from estimates that are far off too (Boyd and Vandenberghe 2004, chapter
11). Numbers that end at their bounds are then put there, and the others solved for again.

`NominalPrior` is the same distance as a prior of any fit: residuals whose squares are w d.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..parameters import (
    divergence_terms,
    from_log_cholesky,
    log_cholesky,
    nearest_consistent,
    pseudo_inertia,
)
from ..parameters.pseudo_inertia import BASIS, parameters_of, pseudo_inertias
from ..system.system import System
from .problem import Problem

Distance = Literal["entropic", "geometric"]

# Damped steps are short far from the minimum, and there are many where an estimate is far off.
_STEPS = 1000
# Newton's decrement at which a search ends: in squared deviations, so that nothing is further off
# than a small part of its error, and in what is minimised, as rounding hides less.
_DECREMENT, _ROUNDING = 1e-9, 1e-13
# Where no shorter step lowers what is minimised, a decrement so many times larger is rounding.
_HIDDEN = 1e3
# What makes the curvature of columns of length 1 regular, and how often a step is refined.
_REGULAR, _REFINED = 1e-14, 3
# The part of the way to the bounds that a step goes at most: at them all directions close.
_INWARD = 0.9
# Barriers in squared deviations: the lowest, that from which on they fall, at least and at most,
# and the part of them to which their minima are found, but for the last.
_LOW, _HIGH, _HIGHEST, _NEAR = 1e-9, 1.0, 1e20, 0.01
# Within a barrier bodies that torques do not identify are heavier by no more than its inverse.
_PULL = 1e-6
_SUFFICIENT, _SHORTER = 1e-4, 0.5
# Where numbers start that an earlier minimum has at a bound, in lengths of their columns.
_INSIDE = 1e-3


@dataclasses.dataclass(frozen=True)
class Nominal:
    """The numbers near which those of an arm are, and the coordinates in which they are solved for.

    maps (nb, 10, 10): the inertial parameters of J = L K L^T, with J0 = L L^T, from those of K,
    which are near the identity. numbers and scales (p - 10 nb,): x0 and s of the joints, infinite
    where a number is not held.
    """

    maps: NDArray
    numbers: NDArray
    scales: NDArray

    @staticmethod
    def of(x: NDArray, bodies: int, scales: NDArray) -> Nominal:
        """Of numbers (p,), whose first are the inertial parameters of consistent bodies."""
        n = 10 * bodies
        factors = np.linalg.cholesky(pseudo_inertias(x[:n].reshape(-1, 10)))
        moved = np.einsum("bij,kjl,bml->bkim", factors, BASIS, factors)
        return Nominal(np.stack([parameters_of(each).T for each in moved]), x[n:], scales)


@dataclasses.dataclass(frozen=True)
class Consistent:
    """The numbers x (p,) at the minimum, and how it was found.

    active: the indices of numbers at their bound, 0. hessian (p, p): of all that is minimised, zero
    for numbers that are held. distances (nb,): d of each body. steps: Newton's. converged: whether
    the search at the lowest barriers ended, and that without the numbers at their bound.
    """

    x: NDArray
    active: NDArray
    hessian: NDArray
    distances: NDArray
    steps: int
    converged: bool


def consistent(
    triangle: NDArray,
    nominal: Nominal,
    nonnegative: Sequence[int] | NDArray,
    weight: float,
    distance: Distance = "entropic",
    start: NDArray | None = None,
) -> Consistent:
    """The minimum for a triangle (., p + 1), whose first columns are those of the nominal bodies.

    nonnegative: the indices of numbers of joints that must not be negative. weight w > 0. start
    (p,): numbers within the bounds, by default those of the nominal bodies. Columns of zeros belong
    to numbers that are held at zero.
    """
    problem = ConvexProblem.of(triangle, nominal, nonnegative, weight, distance)
    y = problem.start(start)
    y, steps, converged = problem.path(y)
    y, active = problem.at_bounds(y)
    if len(active):
        problem = dataclasses.replace(
            problem,
            free=np.setdiff1d(problem.free, active),
            bounded=np.setdiff1d(problem.bounded, active),
        )
        y, more, again = problem.searched(y)
        steps, converged = steps + more, converged and again
    data, distances, _ = problem.squares(y, 0.0)
    inverse = np.linalg.inv(problem.back)
    return Consistent(
        x=problem.back @ y,
        active=active,
        hessian=inverse.T @ (data.curvature + distances.curvature) @ inverse,
        distances=problem.distances(y[: 10 * problem.bodies].reshape(-1, 10)),
        steps=steps,
        converged=converged,
    )


@dataclasses.dataclass(frozen=True)
class Squares:
    """|rows d + off|^2 / 2 for steps d (p,); rows (k, p), off (k,)."""

    rows: NDArray
    off: NDArray

    @property
    def curvature(self) -> NDArray:
        return self.rows.T @ self.rows


def joined(*parts: Squares) -> Squares:
    """The sum of squares."""
    return Squares(np.concatenate([p.rows for p in parts]), np.concatenate([p.off for p in parts]))


@dataclasses.dataclass(frozen=True)
class ConvexProblem:
    """The problem in coordinates y (p,), x = back y: near the identity, and columns of length 1.

    columns (r, p) and torques (r,): of the squares, |columns y - torques|^2 / 2; near and stiff
    (p,): of the joints' distance, stiff (y - near)^2 / 2. free: the indices that are solved for;
    bounded: those of them that must be positive.
    """

    columns: NDArray
    torques: NDArray
    near: NDArray
    stiff: NDArray
    back: NDArray
    bodies: int
    weight: float
    distance: Distance
    free: NDArray
    bounded: NDArray

    @staticmethod
    def of(
        triangle: NDArray,
        nominal: Nominal,
        nonnegative: Sequence[int] | NDArray,
        weight: float,
        distance: Distance,
    ) -> ConvexProblem:
        w, z = triangle[:, :-1], triangle[:, -1]
        p, bodies = w.shape[1], len(nominal.maps)
        n = 10 * bodies
        length = np.linalg.norm(w, axis=0)
        back = np.diag(1 / np.where(length > 0, length, 1))
        back[:n, :n] = 0
        for b, each in enumerate(nominal.maps):
            part = slice(10 * b, 10 * b + 10)
            back[part, part] = each
        moved = w @ back
        free = np.flatnonzero((length > 0) | (np.arange(p) < n))
        bounded = np.intersect1d(np.asarray(nonnegative, int), free)
        near, stiff = np.zeros(p), np.zeros(p)
        near[n:] = nominal.numbers / np.diag(back)[n:]
        stiff[n:] = weight * (np.diag(back)[n:] / nominal.scales) ** 2
        return ConvexProblem(
            *(moved, z, near, stiff, back),
            *(bodies, weight, distance, free, bounded),
        )

    @property
    def low(self) -> float:
        """The lowest barrier: much less than the distance, which may be all that holds a number."""
        return _LOW * min(self.weight, 1.0)

    def start(self, x: NDArray | None) -> NDArray:
        y = np.zeros(len(self.near))
        y[: 10 * self.bodies] = np.tile(parameters_of(np.eye(4)[None])[0], self.bodies)
        # Within the bounds, and of the order of what these numbers are.
        y[self.bounded] = 1.0
        if x is not None:
            y = np.linalg.solve(self.back, x)
            y[self.bounded] = np.maximum(y[self.bounded], _INSIDE)
        return y

    def value(self, y: NDArray, barrier: float) -> float:
        """What is minimised; infinite beyond the bounds."""
        pseudo = pseudo_inertias(y[: 10 * self.bodies].reshape(-1, 10))
        if (y[self.bounded] <= 0).any():
            return np.inf
        try:
            factor = np.linalg.cholesky(pseudo)
        except np.linalg.LinAlgError:
            return np.inf
        log_det = 2 * np.log(np.einsum("bii->bi", factor)).sum()
        trace = np.einsum("bii->", pseudo)
        if self.distance == "entropic":
            prior = self.weight * (trace - log_det)
        else:
            off = pseudo - np.eye(4)
            prior = self.weight * np.einsum("bij,bji->", off, off) / 2
        prior += self._inner(barrier) * (self._pull * trace - log_det)
        # Of what is left, which rounds less than the expanded square.
        left = self.columns @ y - self.torques
        square = left @ left / 2
        square += self.stiff @ (y - self.near) ** 2 / 2
        return float(square + prior - barrier * np.log(y[self.bounded]).sum())

    def squares(self, y: NDArray, barrier: float) -> tuple[Squares, Squares, Squares]:
        """Squares with the slope and the curvature of `value` at y: data's, distance's, barriers'.

        Of bodies with J = F F^T: the parts F^-1 basis_k F^-T have as products the curvature of
        -log det J, and as traces the slope of log det J.
        """
        pseudo = pseudo_inertias(y[: 10 * self.bodies].reshape(-1, 10))
        factor = np.linalg.cholesky(pseudo)
        root = np.linalg.inv(factor)
        turned = root[:, None] @ BASIS @ root.transpose(0, 2, 1)[:, None]
        one = np.broadcast_to(np.eye(4), pseudo.shape)
        heavy, low, stiff = np.sqrt(self.weight), np.sqrt(barrier), np.sqrt(self.stiff)
        held = np.flatnonzero(stiff)
        unit, at, square = np.eye(len(y)), self.bounded, factor.transpose(0, 2, 1) @ factor
        # Of the barriers -low^2 log y_i.
        limits = [Squares((low / y[at])[:, None] * unit[at], np.full(len(at), -low))]
        if self.distance == "entropic":
            near = _of_bodies(heavy * turned, heavy * (square - one), len(y))
        else:
            flat = np.broadcast_to(BASIS, turned.shape)
            near = _of_bodies(heavy * flat, heavy * (pseudo - one), len(y))
        if self._inner(barrier):
            limits.append(_of_bodies(low * turned, low * (self._pull * square - one), len(y)))
        joints = Squares(stiff[held, None] * unit[held], stiff[held] * (y - self.near)[held])
        data = Squares(self.columns, self.columns @ y - self.torques)
        return data, joined(near, joints), joined(*limits)

    def _inner(self, barrier: float) -> float:
        """The barrier of the bodies, which the entropic distance is itself."""
        return barrier if self.distance == "geometric" or barrier > self.weight else 0.0

    @property
    def _pull(self) -> float:
        """The part of tr J in a barrier that falls away: without it untold bodies grow far off."""
        return _PULL if self.distance == "entropic" else 0.0

    def distances(self, pi: NDArray) -> NDArray:
        """d (nb,) of each body."""
        pseudo = pseudo_inertias(pi)
        if self.distance == "geometric":
            off = pseudo - np.eye(4)
            return np.einsum("bij,bji->b", off, off) / 2
        return np.einsum("bii->b", pseudo) - np.linalg.slogdet(pseudo)[1] - 4

    def path(self, y: NDArray) -> tuple[NDArray, int, bool]:
        """The minimum within the lowest barrier from y, the steps, and whether the search ended.

        Barriers start as high as what is to be gained, so that no step ends near the bounds.
        """
        _, gain = self._newton(y, _HIGH)
        barrier, steps = 10.0 ** np.ceil(np.log10(np.clip(gain, _HIGH, _HIGHEST))), 0
        while barrier > self.low:
            y, more, _ = self.searched(y, barrier, _NEAR * barrier)
            barrier, steps = barrier / 10, steps + more
        y, more, converged = self.searched(y)
        return y, steps + more, converged

    def searched(
        self, y: NDArray, barrier: float | None = None, decrement: float | None = None
    ) -> tuple[NDArray, int, bool]:
        """Newton's steps from y down to a decrement: the minimum, how many, whether they ended.

        By default within the lowest barrier, down to the least decrement.
        """
        barrier = self.low if barrier is None else barrier
        decrement = _DECREMENT * min(self.weight, 1.0) if decrement is None else decrement
        value = self.value(y, barrier)
        for k in range(_STEPS):
            step, gain = self._newton(y, barrier)
            enough = decrement + _ROUNDING * abs(value)
            if gain < enough:
                return y, k, True
            length = min(1.0, _INWARD * self._room(y, step))
            while True:
                tried = self.value(y + length * step, barrier)
                if tried <= value - _SUFFICIENT * length * gain:
                    break
                length *= _SHORTER
                if length < 1e-10:
                    # Rounding hides what a step would lower.
                    return y, k, gain < _HIDDEN * enough
            y, value = y + length * step, tried
        return y, _STEPS, False

    def _room(self, y: NDArray, step: NDArray) -> float:
        """How many steps (p,) lead from y to the bounds."""
        n = 10 * self.bodies
        root = np.linalg.inv(np.linalg.cholesky(pseudo_inertias(y[:n].reshape(-1, 10))))
        along = root @ pseudo_inertias(step[:n].reshape(-1, 10)) @ root.transpose(0, 2, 1)
        fastest = max(
            float(-np.linalg.eigvalsh(along).min(initial=0)),
            float((-step[self.bounded] / y[self.bounded]).max(initial=0)),
        )
        return 1 / fastest if fastest > 0 else np.inf

    def _newton(self, y: NDArray, barrier: float) -> tuple[NDArray, float]:
        """Newton's step (p,) and its decrement.

        The normal equations are solved again for what is left of the squares themselves, as their
        rounding hides directions that only the distance tells (Bjorck 1987).
        """
        all_of = joined(*self.squares(y, barrier))
        rows = all_of.rows[:, self.free]
        size = np.linalg.norm(rows, axis=0)
        rows = rows / size
        curve = rows.T @ rows + _REGULAR * np.eye(len(size))
        found, left = np.zeros(len(size)), all_of.off
        for _ in range(_REFINED):
            found = found - np.linalg.solve(curve, rows.T @ left)
            left = all_of.off + rows @ found
        step = np.zeros_like(y)
        step[self.free] = found / size
        return step, float(np.sum((rows @ found) ** 2))

    def at_bounds(self, y: NDArray) -> tuple[NDArray, NDArray]:
        """y with the numbers whose bound holds them put to 0, and their indices.

        A bound holds a number where its multiplier, barrier / y, outweighs the curvature: without
        the bound the number would be negative.
        """
        data, distance, _ = self.squares(y, 0.0)
        curve = np.sum(data.rows**2, axis=0) + np.sum(distance.rows**2, axis=0)
        at = self.bounded
        active = at[self.low / y[at] > curve[at] * y[at]]
        y = y.copy()
        y[active] = 0
        return y, active


def _of_bodies(parts: NDArray, off: NDArray, count: int) -> Squares:
    """Squares of bodies, the first of count numbers: parts (nb, 10, 4, 4), off (nb, 4, 4)."""
    bodies = len(parts)
    rows = np.zeros((bodies, 16, count))
    for b in range(bodies):
        rows[b, :, 10 * b : 10 * b + 10] = parts[b].reshape(10, 16).T
    return Squares(rows.reshape(-1, count), off.reshape(-1))


class NominalPrior(Problem):
    """The distance d of bodies from nominal ones (see `consistency`), as ten residuals for each.

    Their squares sum to weight d. nominal (k, 10): the `log_cholesky` parameters of the k nominal
    bodies; weight () in inverse variances. is_scaled: whether the variance is no more than a lower
    bound, see `Problem`.
    """

    nominal: jax.Array
    weight: jax.Array
    bodies: tuple[int, ...] = eqx.field(static=True)
    distance: Distance = eqx.field(static=True, default="entropic")
    is_scaled: bool = eqx.field(static=True, default=False)

    @staticmethod
    def of(
        system: System,
        weight: float = 1.0,
        *,
        distance: Distance = "entropic",
        bodies: Sequence[int] | None = None,
        is_scaled: bool = False,
    ) -> NominalPrior:
        """The prior that keeps bodies near those of a machine, by default all that have a mass.

        bodies: the indices of some. Those with an inertia that no rigid body has are near the
        `nearest_consistent`. Raises ValueError for a weight that is not positive.
        """
        if not 0 < weight < np.inf:
            raise ValueError(f"the weight is {weight}; it must be positive and finite")
        masses, inertia = np.asarray(system.bodies.mass), np.array(system.bodies.inertia)
        for b in np.flatnonzero(masses > 0):
            inertia[b] = nearest_consistent(masses[b], inertia[b])
        nominal = _theta(system.replace(inertia=jnp.asarray(inertia)), range(len(masses)))
        kept = np.flatnonzero(np.isfinite(np.asarray(nominal)).all(axis=1))
        kept = kept if bodies is None else np.intersect1d(kept, np.asarray(bodies, int))
        scale = jnp.asarray(weight, system.dtype)
        return NominalPrior(nominal[kept], scale, tuple(kept.tolist()), distance, is_scaled)

    def residual(self, system: System, own: jax.Array) -> Float[Array, " k"]:
        if self.distance == "entropic":
            terms = jax.vmap(divergence_terms)(_theta(system, self.bodies), self.nominal)
        else:
            b, at = system.bodies, np.array(self.bodies, int)
            found = pseudo_inertia(b.mass[at], b.com[at], b.inertia[at])
            factor = jnp.linalg.cholesky(pseudo_inertia(*from_log_cholesky(self.nominal)))
            half = solve_triangular(factor, found, lower=True)
            off = solve_triangular(factor, jnp.swapaxes(half, -1, -2), lower=True) - jnp.eye(4)
            row, column = np.triu_indices(4)
            terms = off[:, row, column] * np.where(row == column, np.sqrt(0.5), 1.0)
        return (jnp.sqrt(self.weight) * terms).ravel()

    @property
    def measured(self) -> Bool[Array, " k"]:
        return jnp.ones(self.nominal.size, bool)

    @property
    def is_prior(self) -> bool:
        return True


def _theta(system: System, bodies: Sequence[int]) -> Any:
    b, at = system.bodies, np.array(bodies, int)
    return log_cholesky(b.mass[at], b.com[at], b.inertia[at])
