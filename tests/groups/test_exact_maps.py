"""The exact maps themselves, against the matrix functions of mpmath and by differences."""

import exact_maps as exact
import mpmath as mp
import numpy as np
import pytest

DIFFERENCE = 1 << (exact.BITS - 60)  # a step of 2^-60
X6 = exact.fixed(np.array([0.7, -1.9, 1.1, 0.3, 0.8, -0.5]))
FAR = exact.fixed(np.array([9.0, -14.0, 11.0, 0.3, 0.8, -0.5]))


def matrix(a: np.ndarray) -> mp.matrix:
    return mp.matrix([[mp.ldexp(int(v), -exact.BITS) for v in row] for row in a])


def deviation(a: np.ndarray, b: mp.matrix) -> mp.mpf:
    return mp.mnorm(matrix(a) - b, mp.inf)


@pytest.mark.parametrize("x", [X6[:3], X6, FAR], ids=["so3", "se3", "far"])
@mp.workdps(exact.DIGITS)
def test_values_are_those_of_mpmath(x):
    x_hat, ad = matrix(exact.hat(x).value), matrix(exact.ad(x).value)
    n, k = x_hat.rows, ad.rows
    integral = mp.zeros(2 * k)  # its exponential holds the integral of exp(s ad) from 0 to 1
    integral[:k, :k], integral[:k, k:] = ad, mp.eye(k)
    dexp = mp.expm(integral)[:k, k:]
    assert deviation(exact.exp(x).value, mp.expm(x_hat)) < 1e-60
    assert deviation(exact.dexp(x).value, dexp) < 1e-60
    assert deviation(exact.dexp_inv(x).value, dexp**-1) < 1e-55
    cay = (mp.eye(n) - x_hat) ** -1 * (mp.eye(n) + x_hat)
    assert deviation(exact.cay(x).value, cay) < 1e-60


@mp.workdps(exact.DIGITS)
def test_logarithms_invert_the_exponentials():
    for log, exp, x in (
        (exact.log, exact.exp, X6),
        (exact.log, exact.exp, X6[:3]),
        (exact.quaternion_log, exact.quaternion_exp, X6[:3]),
        (exact.cay_inv, exact.cay, X6),
    ):
        assert abs(log(exp(x, False).value) - x).max() < 1 << 50


@pytest.mark.parametrize("x", [X6[:3], X6], ids=["so3", "se3"])
@pytest.mark.parametrize("name", ["exp", "dexp", "dexp_inv", "cay", "dcay", "dcay_inv"])
def test_derivatives_are_those_of_differences(name, x):
    f = getattr(exact, name)
    first, second = f(x).derivatives()
    for i, step in enumerate(np.eye(len(x), dtype=int).astype(object) * DIFFERENCE):
        ahead, behind = f(x + step), f(x - step)
        difference = (ahead.value - behind.value << 59) - first[..., i]
        assert abs(difference).max() < 1 << (exact.BITS - 100)
        difference = (ahead.derivatives()[0] - behind.derivatives()[0] << 59) - second[..., i]
        assert abs(difference).max() < 1 << (exact.BITS - 100)


def test_dcay_is_the_rate_of_cay():
    for x in (X6[:3], X6):
        cay, basis = exact.cay(x), exact.hat(x).first
        for rate, column in zip(cay.first, exact.dcay(x).value.T, strict=True):
            velocity = np.tensordot(column, basis // exact.ONE, axes=1)
            assert abs(exact.product(velocity, cay.value) - rate).max() < 1 << 30
