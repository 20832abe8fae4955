"""Windows' unknowns are eliminated as if all unknowns had been solved for at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.identify.arm_equations import least_squares
from difflie.identify.elimination import (
    Linearised,
    Windows,
    column_sizes,
    compressed,
    projected,
    residuals_and_jacobian,
)
from difflie.identify.search import Residual
from difflie.identify.statistics import information

RNG = np.random.default_rng(3)


class Lines(di.Problem):
    """Windows of five residuals and one that couples each to the next, all by given matrices."""

    each: jax.Array
    couple: jax.Array
    shared: jax.Array
    count: int = eqx.field(static=True)

    @staticmethod
    def of(count, size):
        each = RNG.normal(size=(count, 5, size))
        couple = RNG.normal(size=(count - 1, 2, 2 * size))
        shared = RNG.normal(size=(5 * count + 2 * (count - 1), 3))
        return Lines(*map(jnp.asarray, (each, couple, shared)), count)

    def residual(self, system, own):
        parts = own.reshape(self.count, -1)
        pairs = jnp.concatenate((parts[:-1], parts[1:]), axis=1)
        rows = (
            jnp.einsum("wij,wj->wi", m, s) for m, s in ((self.each, parts), (self.couple, pairs))
        )
        common = self.shared @ jnp.sin(system.bodies.mass)
        return jnp.concatenate([r.ravel() for r in rows]) + common - 1

    @property
    def own(self):
        return jnp.zeros(self.count * self.each.shape[-1])

    @property
    def windows(self):
        w = np.arange(self.count)
        return np.concatenate((np.repeat(w, 5), np.repeat(w[:-1], 2)))

    @property
    def measured(self):
        return jnp.ones(7 * self.count - 2, bool)


class Unstructured(Lines):
    """The same that says nothing of windows."""

    windows = di.Problem.windows


HINGE = dl.Revolute(axis=(0, 0, 1))
CHAIN = dl.chain(
    [dl.Body(name=n, joint=HINGE, mass=1.2, inertia=0.1 * np.eye(3)) for n in ("a", "b", "c")]
)
PRIOR = dl.Parameter("a/mass", prior=(1.0, 0.3))
FREE = dl.Parameters(CHAIN, ["b/mass", "c/mass", PRIOR])


@pytest.fixture(scope="module")
def given():
    problems = Lines.of(6, 2), Lines.of(1, 3), Lines.of(5, 1)
    unknown = FREE.start, tuple(jnp.asarray(RNG.normal(size=p.own.size)) for p in problems)
    residual, args = Residual(di.Squares()), (FREE, problems)
    r, jacobian = residuals_and_jacobian(residual, unknown, args)
    return residual, unknown, args, np.asarray(r), np.asarray(jacobian)


def test_steps_are_those_of_all_unknowns_at_once(given):
    residual, unknown, args, r, jacobian = given
    found = Linearised.of(residual, unknown, args)
    assert found.cost == pytest.approx(r @ r / 2)
    np.testing.assert_allclose(found.lengths, np.linalg.norm(jacobian, axis=0))
    for damping in (1e-6, 0.3, 10.0):
        size = damping * found.lengths
        rows = np.concatenate((jacobian, np.diag(size)))
        expected = np.linalg.lstsq(rows, -np.append(r, 0 * size), rcond=None)[0]
        step, lower = found.minimum(size)
        np.testing.assert_allclose(step, expected, rtol=1e-9, atol=1e-12)
        after = r + jacobian @ step
        assert lower == pytest.approx((r @ r - after @ after) / 2)


def test_triangles_hold_all_sums_of_products(given):
    """Each has columns by the own unknowns, by those of the next window, by x, and the residual."""
    residual, unknown, args, r, jacobian = given
    found, n = Linearised.of(residual, unknown, args), 3
    total = np.zeros((jacobian.shape[1] + 1,) * 2)
    last, done = [jacobian.shape[1]], n
    places = [np.arange(n)]
    for chain in found.chains:
        m = (chain[0].shape[1] - n - 1) // 2
        for b, t in enumerate(chain):
            np.testing.assert_array_equal(np.tril(t, -1), 0 * t)
            own = done + b * m + np.arange(m)
            after = own + m if b + 1 < len(chain) else own
            assert b + 1 < len(chain) or not t[:, m : 2 * m].any()
            at = np.concatenate((own, after, *places, last))
            np.add.at(total, np.ix_(at, at), t.T @ t)
        done += m * len(chain)
    at = np.concatenate((*places, last))
    total[np.ix_(at, at)] += found.rest.T @ found.rest
    whole = np.column_stack((jacobian, r))
    np.testing.assert_allclose(total, whole.T @ whole, rtol=1e-9, atol=1e-9)


def test_directions_are_as_few_as_two_windows_need(given):
    residual, unknown, args, r, jacobian = given
    again, free, few = compressed(residual, unknown, args)
    np.testing.assert_array_equal(again, r)
    assert few.shape == (len(r), 4)
    np.testing.assert_allclose(free, jacobian[:, :3])


def test_what_windows_make_up_for_tells_nothing(given):
    residual, unknown, args, _, jacobian = given
    _, shared, few = compressed(residual, unknown, args)
    rows = projected(shared, few, residual.windows(args))
    free, own = np.split(jacobian, [3], axis=1)
    np.testing.assert_allclose(rows, free - own @ np.linalg.pinv(own) @ free, atol=1e-9)
    whole = np.linalg.inv(jacobian.T @ jacobian)[:3, :3]
    np.testing.assert_allclose(np.linalg.inv(rows.T @ rows), whole, rtol=1e-8)


def test_rows_without_windows_may_come_first(given):
    """Guards standard errors where a problem without unknowns of its own is before one with."""
    residual, unknown, args, _, _ = given
    _, shared, few = compressed(residual, unknown, args)
    others = np.random.default_rng(1).normal(size=(5, 3))
    both = np.concatenate((others, shared)), np.pad(few, ((5, 0), (0, 0)))
    rows = projected(*both, (Windows(np.zeros(5, int), 1, 0), *residual.windows(args)))
    np.testing.assert_array_equal(rows[:5], others)
    np.testing.assert_allclose(rows[5:], projected(shared, few, residual.windows(args)))


def test_fits_with_and_without_windows_are_equal():
    windows = Lines.of(6, 2)
    plain = Unstructured(windows.each, windows.couple, windows.shared, windows.count)
    found, expected = (di.fit(FREE, problem) for problem in (windows, plain))
    assert found.converged and expected.converged and found.steps == expected.steps
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(found.own[0], expected.own[0], rtol=1e-6)
    np.testing.assert_allclose(found.standard_errors, expected.standard_errors, rtol=1e-6)
    np.testing.assert_allclose(found.white_errors, expected.white_errors, rtol=1e-6)


def test_windows_of_unequal_parts_are_refused():
    class Odd(Lines):
        @property
        def own(self):
            return jnp.zeros(13)

    lines = Lines.of(6, 2)
    with pytest.raises(ValueError, match="13 own unknowns are not equal parts for 6 windows"):
        di.fit(FREE, Odd(lines.each, lines.couple, lines.shared, lines.count))


def test_columns_that_are_rounding_errors_count_as_zero():
    """Guards fits against numbers that cancel: scaled to length 1, noise would explain torques."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3)) * [1.0, 1e-16, 1e-4]
    sizes = column_sizes(rows)
    assert np.isinf(sizes[1])
    np.testing.assert_allclose(sizes[[0, 2]], np.linalg.norm(rows[:, [0, 2]], axis=0))
    x = least_squares(np.column_stack((rows, rng.normal(size=40))))
    assert x[1] == 0
    (((name, share),),) = information(rows, 1.0, ("a", "b", "c")).unidentifiable
    assert name == "b" and abs(share) == 1
