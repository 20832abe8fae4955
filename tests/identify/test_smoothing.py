"""Low-pass filters, gaps, and rows that do not count in fits of torques."""

import jax
import numpy as np
import pytest
from scipy.signal import freqz

import difflie as dl
from difflie.identify import DataError, InverseDynamics, Recording

DT = 2e-3
T = DT * np.arange(1500)


def swing(**given):
    return Recording("run", T, np.sin(4 * T)[:, None], **given)


def test_the_low_pass_kernel_is_butterworths_squared_gain():
    """1 / (1 + (f/fc)^(2n)), here of the bilinear transform's frequencies, passed twice."""
    found = swing().lowpassed(15.0, 3)
    kernel = found.smoothing.kernel
    assert kernel.sum() == pytest.approx(1) and len(kernel) % 2 == 1
    f = np.array((0.0, 2.0, 10.0, 15.0, 30.0, 60.0))
    warped = np.tan(np.pi * f * DT) / np.tan(np.pi * 15.0 * DT)
    _, gain = freqz(kernel, worN=f, fs=1 / DT)
    np.testing.assert_allclose(np.abs(gain), 1 / (1 + warped**6), atol=2e-3)


def test_low_passed_accelerations_are_averages_of_the_true_ones():
    """Of a steady sine below the cutoff: no delay, and the kernel's gain."""
    found = swing(tau=np.cos(4 * T)[:, None]).lowpassed(5.0)
    inside = slice(300, -300)
    mean = np.convolve(-16 * np.sin(4 * T), found.smoothing.kernel, mode="same")
    np.testing.assert_allclose(found.a[inside, 0], mean[inside], atol=2e-3)
    np.testing.assert_allclose(found.v[inside, 0], 4 * np.cos(4 * T)[inside], atol=1e-3)
    np.testing.assert_allclose(found.tau[inside, 0], np.cos(4 * T)[inside], atol=1e-3)
    for cutoff, order, said in ((300.0, 4, "below 250 Hz"), (5.0, 0, "has order 0")):
        with pytest.raises(DataError, match=said):
            swing().lowpassed(cutoff, order)


@pytest.mark.parametrize("filtered", [lambda r: r.smoothed(21, 3), lambda r: r.lowpassed(15.0)])
def test_the_models_torques_are_filtered_like_the_measured_ones(filtered):
    """Friction that changes its sign is no error where both are averaged."""
    body = dl.Body(
        name="a", joint=dl.Revolute(friction=0.5), mass=1.0, com=(0.3, 0.0, 0.0), inertia=np.eye(3)
    )
    system = dl.chain([body])
    q, v, a = (x[:, None] for x in (np.sin(4 * T), 4 * np.cos(4 * T), -16 * np.sin(4 * T)))
    needed = jax.vmap(lambda *x: dl.inverse_dynamics(system, *x) - dl.passive_force(system, *x[:2]))
    run = filtered(swing(tau=np.asarray(needed(q, v, a))))
    problem = InverseDynamics.of(system, [run])
    there = np.asarray(problem.there)
    off = np.asarray(problem.torques(system) - problem.efforts(system))
    assert there.sum() > 1000 and np.abs(off[there]).max() < 0.05
    thin = run.thinned(10).without_slow(0.5)
    counted = np.asarray(InverseDynamics.of(system, [thin]).there)[:, 0]
    row = np.arange(len(T))
    np.testing.assert_array_equal(
        counted, there[:, 0] & (row % 10 == 0) & (np.abs(run.v[:, 0]) >= 0.5)
    )
    part = thin.between(0.5, 1.0)
    np.testing.assert_array_equal(part.counts, thin.counts[(T >= 0.5) & (T < 1.0)])


def test_masks_that_leave_nothing():
    run = swing().smoothed(21)
    for made, said in (
        (lambda: run.without_slow(9.0), r"v\[0\] is never as fast as 9 rad/s"),
        (lambda: run.without_slow([1.0, 2.0]), "is no limit of slow rows"),
        (lambda: swing().without_slow(0.1), "v is not measured"),
        (lambda: run.thinned(0), "one row of 0 cannot count"),
    ):
        with pytest.raises(DataError, match=said):
            made()


def test_gaps_become_gaps_of_the_filters_width():
    q = np.sin(4 * T)[:, None]
    q[700:703] = np.nan
    run = Recording("run", T, q, columns={"q": ["q1"]})
    with pytest.warns(
        UserWarning, match="run: 'q1' has 3 empty cells, the first at 1.4 s; 23 rows"
    ):
        found = run.smoothed(21, 3)
    lost = np.isnan(found.q[:, 0])
    np.testing.assert_array_equal(np.flatnonzero(lost), np.arange(690, 713))
    np.testing.assert_allclose(found.a[~lost], swing().smoothed(21, 3).a[~lost], atol=1e-9)
