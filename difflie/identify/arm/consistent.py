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

import numpy as np
from numpy.typing import NDArray

from .convex_problem import Distance, Nominal, Problem


@dataclasses.dataclass(frozen=True)
class Consistent:
    """The numbers x (p,) at the minimum, and how it was found.

    active: the indices of numbers at their bound, 0. hessian (p, p): of all that is minimised;
    prior (p, p): the part of the distance, both zero for numbers that are held. distances (nb,): d
    of each body; weighed: w times all distances. steps: Newton's. converged: whether the search at
    the lowest barriers ended, and that without the numbers at their bound.
    """

    x: NDArray
    active: NDArray
    hessian: NDArray
    prior: NDArray
    distances: NDArray
    weighed: float
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
    problem = Problem.of(triangle, nominal, nonnegative, weight, distance)
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
    prior = distances.curvature
    hessian = data.curvature + prior
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
