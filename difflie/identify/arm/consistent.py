"""Physically consistent numbers of an arm, near those of its file, by Newton's method.

    min_x  |R x - z|^2 / 2 + w (sum_b d(J_b, J0_b) + sum_i ((x_i - x0_i) / s_i)^2 / 2),
           J_b > 0,  x_i >= 0 for numbers i of joints but offsets

R, z: the triangle of the weighted equations; s_i: the number of which the torque is as large as all
that is measured; J_b, linear in x: the pseudo-inertia of body b, which
is positive definite just where some distribution of mass has it (Wensing, Kim and Slotine 2018).
d is the entropic divergence tr(J0^-1 J) - log det(J0^-1 J) - 4 (Lee, Wensing and Park 2020), or the
geometric distance with the metric at J0, tr((J0^-1 J - 1)^2) / 2 (Lee and Park 2018). All terms are
convex, so the minimum is unique. Bounds are kept by logarithmic barriers, which are
self-concordant: damped Newton steps converge from any start within the bounds, and the barriers are
lowered to nothing (Boyd and Vandenberghe 2004, chapter 11). Numbers that end at their bounds are
then put there, and the others solved for again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Distance = Literal["entropic", "geometric"]

_BARRIERS = 10.0 ** np.arange(0, -8, -1.0)
_STEPS = 60
# Newton's decrement, in squared deviations, at which a search ends.
_DECREMENT = 1e-9
_SUFFICIENT, _SHORTER = 1e-4, 0.5
# Where numbers start that an earlier minimum has at a bound, in lengths of their columns.
_INSIDE = 1e-3
_SIX = (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)


@dataclasses.dataclass(frozen=True)
class Consistent:
    """The numbers x (p,) at the minimum, and how it was found.

    active: the indices of numbers at their bound, 0. hessian (p, p): of all that is minimised;
    prior (p, p): the part of the distance, both zero for numbers that are held. distances (nb,): d
    of each body; weighed: w times all distances. steps: Newton's. converged: whether the last
    search ended.
    """

    x: NDArray
    active: NDArray
    hessian: NDArray
    prior: NDArray
    distances: NDArray
    weighed: float
    steps: int
    converged: bool


def basis() -> NDArray:
    """The pseudo-inertias (10, 4, 4) of the inertial parameters: J = sum_k pi_k basis_k."""
    found = np.zeros((10, 4, 4))
    found[0, 3, 3] = 1
    for k in range(3):
        found[1 + k, 3, k] = found[1 + k, k, 3] = 1
    for k, (i, j) in enumerate(_SIX):
        inertia = np.zeros((3, 3))
        inertia[i, j] = inertia[j, i] = 1
        found[4 + k, :3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
    return found


BASIS = basis()


def pseudo_inertias(pi: NDArray) -> NDArray:
    """J (nb, 4, 4) of inertial parameters (nb, 10)."""
    return np.einsum("bk,kij->bij", pi, BASIS)


def parameters_of(pseudo: NDArray) -> NDArray:
    """The inertial parameters (nb, 10) of J (nb, 4, 4)."""
    second = pseudo[:, :3, :3]
    inertia = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    six = np.stack([inertia[:, i, j] for i, j in _SIX], axis=1)
    return np.concatenate((pseudo[:, 3:, 3], pseudo[:, 3, :3], six), axis=1)


@dataclasses.dataclass(frozen=True)
class Nominal:
    """The numbers near which those of an arm are, and the coordinates in which they are solved for.

    factors (nb, 4, 4): L of J0 = L L^T. maps (nb, 10, 10): the inertial parameters of J = L K L^T
    from those of K, which are near the identity. numbers and scales (p - 10 nb,): x0 and s of the
    joints, infinite where a number is not held.
    """

    factors: NDArray
    maps: NDArray
    numbers: NDArray
    scales: NDArray

    @staticmethod
    def of(x: NDArray, bodies: int, scales: NDArray) -> Nominal:
        """Of numbers (p,), whose first are the inertial parameters of consistent bodies."""
        n = 10 * bodies
        factors = np.linalg.cholesky(pseudo_inertias(x[:n].reshape(-1, 10)))
        moved = np.einsum("bij,kjl,bml->bkim", factors, BASIS, factors)
        maps = np.stack([parameters_of(each).T for each in moved])
        return Nominal(factors, maps, x[n:], scales)

    @property
    def count(self) -> int:
        return len(self.factors)


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
    problem = _Problem.of(triangle, nominal, nonnegative, weight, distance)
    y = problem.start(start)
    steps, converged = 0, True
    for barrier in _BARRIERS:
        y, more, converged = problem.searched(y, barrier)
        steps += more
    y, active = problem.at_bounds(y, _BARRIERS[-1])
    if len(active):
        problem = dataclasses.replace(
            problem,
            free=np.setdiff1d(problem.free, active),
            bounded=np.setdiff1d(problem.bounded, active),
        )
        y, more, converged = problem.searched(y, _BARRIERS[-1])
        steps += more
    _, hessian, prior = problem.derivatives(y, 0.0)
    back = problem.back
    n = 10 * nominal.count
    terms = problem.distances(y[:n].reshape(-1, 10))
    inverse = np.linalg.inv(back)
    return Consistent(
        x=back @ y,
        active=active,
        hessian=inverse.T @ hessian @ inverse,
        prior=inverse.T @ prior @ inverse,
        distances=terms,
        weighed=weight * float(terms.sum()) + float(problem.stiff @ (y - problem.near) ** 2) / 2,
        steps=steps,
        converged=converged,
    )


@dataclasses.dataclass(frozen=True)
class _Problem:
    """The problem in coordinates y (p,), x = back y: near the identity, and columns of length 1.

    gram (p, p) and slope (p,): of the squares, y^T gram y / 2 - slope^T y; near and stiff (p,): of
    the joints' distance, stiff (y - near)^2 / 2. free: the indices that are solved for; bounded:
    those of them that must be positive.
    """

    gram: NDArray
    slope: NDArray
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
    ) -> _Problem:
        w, z = triangle[:, :-1], triangle[:, -1]
        p, n = w.shape[1], 10 * nominal.count
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
        return _Problem(
            *(moved.T @ moved, moved.T @ z, near, stiff, back),
            *(nominal.count, weight, distance, free, bounded),
        )

    def start(self, x: NDArray | None) -> NDArray:
        y = np.zeros(len(self.slope))
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
            prior = self.weight * np.einsum("bij,bji->", off, off) / 2 - barrier * log_det
        square = y @ self.gram @ y / 2 - self.slope @ y
        square += self.stiff @ (y - self.near) ** 2 / 2
        return float(square + prior - barrier * np.log(y[self.bounded]).sum())

    def derivatives(self, y: NDArray, barrier: float) -> tuple[NDArray, NDArray, NDArray]:
        """The gradient (p,) and Hessian (p, p) of `value`, and that of the distance alone."""
        n = 10 * self.bodies
        pseudo = pseudo_inertias(y[:n].reshape(-1, 10))
        turned = np.einsum("bij,kjl->bkil", np.linalg.inv(pseudo), BASIS)
        log_slope = np.einsum("bkii->bk", turned)
        log_curve = np.einsum("bkij,blji->bkl", turned, turned)
        trace = np.einsum("kii->k", BASIS)
        gradient = self.gram @ y - self.slope + self.stiff * (y - self.near)
        hessian = self.gram + np.diag(self.stiff)
        if self.distance == "entropic":
            slopes, curves = self.weight * (trace - log_slope), self.weight * log_curve
            prior_curves = curves
        else:
            flat = np.einsum("kij,lji->kl", BASIS, BASIS)
            slopes = self.weight * np.einsum("bij,kji->bk", pseudo - np.eye(4), BASIS)
            slopes = slopes - barrier * log_slope
            prior_curves = np.broadcast_to(self.weight * flat, log_curve.shape)
            curves = prior_curves + barrier * log_curve
        gradient[:n] += slopes.ravel()
        prior = np.diag(self.stiff)
        for b in range(self.bodies):
            part = slice(10 * b, 10 * b + 10)
            hessian[part, part] += curves[b]
            prior[part, part] = prior_curves[b]
        at = self.bounded
        gradient[at] -= barrier / y[at]
        hessian[at, at] += barrier / y[at] ** 2
        return gradient, hessian, prior

    def distances(self, pi: NDArray) -> NDArray:
        """d (nb,) of each body."""
        pseudo = pseudo_inertias(pi)
        if self.distance == "geometric":
            off = pseudo - np.eye(4)
            return np.einsum("bij,bji->b", off, off) / 2
        log_det = np.linalg.slogdet(pseudo)[1]
        return np.einsum("bii->b", pseudo) - log_det - 4

    def searched(self, y: NDArray, barrier: float) -> tuple[NDArray, int, bool]:
        """Damped Newton steps from y: the minimum, how many there were, whether they ended."""
        value = self.value(y, barrier)
        for k in range(_STEPS):
            gradient, hessian, _ = self.derivatives(y, barrier)
            step, decrement = self._newton(gradient, hessian)
            if decrement < _DECREMENT * (1 + abs(value)):
                return y, k, True
            length = 1.0
            while True:
                tried = self.value(y + length * step, barrier)
                if tried <= value - _SUFFICIENT * length * decrement:
                    break
                length *= _SHORTER
                if length < 1e-10:
                    # Rounding hides what a step would lower.
                    return y, k, decrement < 1e-6 * (1 + abs(value))
            y, value = y + length * step, tried
        return y, _STEPS, False

    def _newton(self, gradient: NDArray, hessian: NDArray) -> tuple[NDArray, float]:
        at = self.free
        scale = 1 / np.sqrt(np.diag(hessian)[at])
        inner = hessian[np.ix_(at, at)] * np.outer(scale, scale)
        inner += 1e-12 * np.eye(len(at))
        step = np.zeros_like(gradient)
        step[at] = -scale * np.linalg.solve(inner, scale * gradient[at])
        return step, float(-gradient @ step)

    def at_bounds(self, y: NDArray, barrier: float) -> tuple[NDArray, NDArray]:
        """y with the numbers whose bound holds them put to 0, and their indices.

        A bound holds a number where its multiplier, barrier / y, outweighs the curvature: without
        the bound the number would be negative.
        """
        _, hessian, _ = self.derivatives(y, 0.0)
        at = self.bounded
        active = at[barrier / y[at] > hessian[at, at] * y[at]]
        y = y.copy()
        y[active] = 0
        return y, active
