"""Consistent numbers of arms: the minimum against a conic solver, its bounds and its distances."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from difflie.identify.consistency import Nominal, consistent
from difflie.parameters.pseudo_inertia import BASIS, parameters_of, pseudo_inertias

BODIES, JOINTS = 2, 3


def bodies(rng, count=BODIES):
    factors = rng.normal(size=(count, 4, 4)) + 2 * np.eye(4)
    return parameters_of(factors @ factors.transpose(0, 2, 1))


@pytest.fixture(scope="module")
def problem():
    """Two bodies and three numbers of joints, of which the data would make one negative."""
    rng = np.random.default_rng(3)
    nominal, true = bodies(rng), bodies(rng)
    x = np.concatenate((true.ravel(), (0.5, -0.4, -0.3)))
    columns = rng.normal(size=(40, len(x)))
    # Some combinations of numbers are not told.
    columns[:, 4:8] = columns[:, :4] @ rng.normal(size=(4, 4))
    rows = np.column_stack((columns, columns @ x + 0.1 * rng.normal(size=40)))
    start = np.concatenate((nominal.ravel(), np.zeros(JOINTS)))
    near = Nominal.of(start, BODIES, np.array((1.0, 2.0, 3.0)))
    return np.linalg.qr(rows, mode="r"), near, nominal, np.array((20, 21))


def test_parameters_of_pseudo_inertias():
    pi = bodies(np.random.default_rng(0), 5)
    assert np.allclose(parameters_of(pseudo_inertias(pi)), pi, rtol=1e-14)


def test_the_geometric_minimum_is_that_of_a_conic_solver(problem):
    """Clarabel's interior point for second-order cones and matrices, another algorithm."""
    triangle, near, nominal, nonnegative = problem
    weight, p = 2.0, triangle.shape[1] - 1
    found = consistent(triangle, near, nonnegative, weight, "geometric")
    r, z = triangle[:, :-1], triangle[:, -1]
    square, slope = r.T @ r, -r.T @ z
    for b, pi in enumerate(nominal):
        at = slice(10 * b, 10 * b + 10)
        inverse = np.linalg.inv(pseudo_inertias(pi[None])[0])
        metric = np.einsum("ij,kjl,lm,nmi->kn", inverse, BASIS, inverse, BASIS)
        square[at, at] += weight * metric
        slope[at] -= weight * metric @ pi
    at = slice(10 * BODIES, p)
    square[at, at] += weight * np.diag(near.scales**-2)
    rows, cones, upper = (
        [-np.eye(p)[nonnegative]],
        [clarabel.NonnegativeConeT(2)],
        np.triu_indices(4),
    )
    # The columns of the upper triangle, with the others times the root of 2.
    order = sorted(zip(*upper, strict=True), key=lambda ij: (ij[1], ij[0]))
    for b in range(BODIES):
        part = np.zeros((10, p))
        for n, (i, j) in enumerate(order):
            part[n, 10 * b : 10 * b + 10] = -BASIS[:, i, j] * (1 if i == j else np.sqrt(2))
        rows.append(part)
        cones.append(clarabel.PSDTriangleConeT(4))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    sides = np.concatenate(rows)
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(square)),
        slope,
        sparse.csc_matrix(sides),
        np.zeros(len(sides)),
        cones,
        settings,
    )
    reference = np.array(solver.solve().x)
    assert found.converged
    assert found.active.tolist() == [21]

    def cost(x):
        return x @ square @ x / 2 + slope @ x

    # The cost is flat where a body is at its bound, so that numbers differ by more.
    assert np.isclose(cost(found.x), cost(reference), rtol=1e-9)
    assert np.allclose(found.x, reference, rtol=0, atol=1e-4 * np.abs(reference).max())


@pytest.mark.parametrize("distance", ["entropic", "geometric"])
def test_the_gradient_vanishes(problem, distance):
    """By differences of the cost, written out; at a bound it pushes against the bound."""
    triangle, near, nominal, nonnegative = problem
    weight = 0.3
    found = consistent(triangle, near, nonnegative, weight, distance)

    def cost(x):
        total = np.sum((triangle[:, :-1] @ x - triangle[:, -1]) ** 2) / 2
        for pi, pi0 in zip(x[: 10 * BODIES].reshape(-1, 10), nominal, strict=True):
            j, j0 = pseudo_inertias(np.stack((pi, pi0)))
            turned = np.linalg.solve(j0, j)
            if distance == "entropic":
                total += weight * (np.trace(turned) - np.linalg.slogdet(turned)[1] - 4)
            else:
                off = turned - np.eye(4)
                total += weight * np.trace(off @ off) / 2
        return total + weight * np.sum((x[10 * BODIES :] / near.scales) ** 2) / 2

    step = 1e-5
    moves = step * np.eye(len(found.x))
    slope = np.array([cost(found.x + m) - cost(found.x - m) for m in moves]) / (2 * step)
    size = np.abs(triangle[:, :-1].T @ triangle[:, -1]).max()
    free = np.setdiff1d(np.arange(len(found.x)), found.active)
    if distance == "entropic":  # a body of the geometric distance may be at the bound itself
        assert np.abs(slope[free]).max() < 1e-6 * size
    assert (slope[found.active] > 0).all()
    eigenvalues = np.linalg.eigvalsh(pseudo_inertias(found.x[: 10 * BODIES].reshape(-1, 10)))
    assert eigenvalues.min() > 0


def test_a_large_weight_returns_the_file(problem):
    triangle, near, nominal, nonnegative = problem
    found = consistent(triangle, near, nonnegative, 1e12)
    assert np.allclose(found.x[: 10 * BODIES], nominal.ravel(), rtol=1e-4)
    assert np.allclose(found.x[10 * BODIES :], 0, atol=1e-4)
    assert (found.distances < 1e-6).all()


@pytest.mark.parametrize("distance", ["entropic", "geometric"])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("noise", [1e-3, 1e-5])
def test_estimates_that_are_far_off_converge(distance, scale, noise):
    """Where most is told by the data, the numbers are those that made it, wherever they start."""
    rng = np.random.default_rng(3)
    nominal, true = bodies(rng) * scale, bodies(rng)
    x = np.concatenate((true.ravel(), (0.5, 0.4, 0.3)))
    columns = rng.normal(size=(60, len(x)))
    rows = np.column_stack((columns, columns @ x + noise * rng.normal(size=60))) / noise
    start = np.concatenate((nominal.ravel(), np.zeros(JOINTS)))
    near = Nominal.of(start, BODIES, np.ones(JOINTS))
    # The geometric distance of bodies that are so much heavier grows with their square.
    weight = 1e-6 * (min(scale, 1.0) ** 2 if distance == "geometric" else 1.0)
    found = consistent(np.linalg.qr(rows, mode="r"), near, np.array((20, 21)), weight, distance)
    least = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]
    assert found.converged and found.steps < 400
    errors = np.sqrt(np.diag(np.linalg.inv(rows[:, :-1].T @ rows[:, :-1])))
    assert (np.abs(found.x - least) < 0.1 * errors).all()
