"""The identities that hold between the maps of the groups, at angles from 0 to 3."""

from __future__ import annotations

from functools import partial

import accuracy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from difflie.groups import quaternion, se3, so3

ANGLES = (0.0, 1e-8, 1e-3, 0.1, 0.5, 1.0, 1.9, 2.1, 3.0)
TOLERANCE = 2e-14


def inverse(group, g):
    return g.T if group is so3 else se3.inverse(g)


def rate(f, x, dx):
    return jax.jvp(f, (x,), (dx,))[1]


def of_group(group, x, u):
    """What must vanish for coordinates x and u, in SO(3) as in SE(3)."""
    g, h = group.exp(x), group.exp(u)
    one = jnp.eye(len(g))
    x_hat = group.hat(x)
    cay = group.cay(x)
    exp_rate, cay_rate = rate(group.exp, x, u), rate(group.cay, x, u)
    return {
        "vee inverts hat": group.vee(x_hat) - x,
        "exp of parts of a screw": group.exp(0.3 * x) @ group.exp(0.7 * x) - g,
        "exp(-x) is the inverse": g @ group.exp(-x) - one,
        "the inverse": g @ inverse(group, g) - one,
        "inverse of a product": inverse(group, g @ h) - inverse(group, h) @ inverse(group, g),
        "log inverts exp": group.log(g) - x,
        "log of exp has rate one": rate(lambda x: group.log(group.exp(x)), x, u) - u,
        "exp inverts log": group.exp(group.log(g @ h)) - g @ h,
        "dexp is the rate of exp": exp_rate - group.hat(group.dexp(x) @ u) @ g,
        "dexp(-x) is the body rate": exp_rate - g @ group.hat(group.dexp(-x) @ u),
        "dexp_inv inverts dexp": group.dexp_inv(x) @ group.dexp(x) - jnp.eye(len(x)),
        "cay is a rational function": (one - x_hat) @ cay - (one + x_hat),
        "cay(-x) is the inverse": cay @ group.cay(-x) - one,
        "cay_inv inverts cay": group.cay_inv(cay) - x,
        "dcay is the rate of cay": cay_rate - group.hat(group.dcay(x) @ u) @ cay,
        "dcay(-x) is the body rate": cay_rate - cay @ group.hat(group.dcay(-x) @ u),
        "dcay_inv inverts dcay": group.dcay_inv(x) @ group.dcay(x) - jnp.eye(len(x)),
    }


def of_adjoint(x, u):
    g, h = se3.exp(x), se3.exp(u)
    x_hat, u_hat = se3.hat(x), se3.hat(u)
    Ad, ad, ad_u = se3.Ad(g), se3.ad(x), se3.ad(u)
    return {
        "Ad is conjugation": se3.hat(Ad @ u) - g @ u_hat @ se3.inverse(g),
        "Ad of a product": se3.Ad(g @ h) - Ad @ se3.Ad(h),
        "Ad of the inverse": Ad @ se3.Ad(se3.inverse(g)) - jnp.eye(6),
        "Ad moves the side of dexp": se3.dexp(x) - Ad @ se3.dexp(-x),
        "Ad along a motion": rate(se3.Ad, g, g @ u_hat) - Ad @ ad_u,
        "ad is the bracket": se3.hat(ad @ u) - (x_hat @ u_hat - u_hat @ x_hat),
        "Jacobi": se3.ad(ad @ u) - (ad @ ad_u - ad_u @ ad),
        "exp under Ad": se3.exp(Ad @ u) - g @ h @ se3.inverse(g),
    }


def of_quaternions(w, u):
    p, q = quaternion.exp(w), quaternion.exp(u)
    R, S = so3.exp(w), so3.exp(u)
    c = w / 3
    length = jnp.sqrt(1 + c @ c)
    return {
        "exp": quaternion.to_matrix(p) - R,
        "product": quaternion.to_matrix(quaternion.multiply(p, q)) - R @ S,
        "conjugate": quaternion.to_matrix(quaternion.conjugate(p)) - R.T,
        "inverse": quaternion.multiply(p, quaternion.conjugate(p)) - jnp.eye(4)[0],
        "length of a product": jnp.sum(quaternion.multiply(3 * p, q) ** 2) - 9,
        "both signs": quaternion.to_matrix(-p) - R,
        "any length": quaternion.to_matrix(5 * p) - R,
        "from the matrix": quaternion.from_matrix(R) - p,
        "log": quaternion.log(p) - w,
        "log of both signs": quaternion.log(-p) - w,
        "log of any length": quaternion.log(5 * p) - w,
        "length leaves log alone": rate(quaternion.log, p, p),
        "Cayley vector": so3.cay(c) - quaternion.to_matrix(jnp.append(1.0, c) / length),
    }


FAMILIES = {
    "so3": (3, partial(of_group, so3)),
    "se3": (6, partial(of_group, se3)),
    "adjoint": (6, of_adjoint),
    "quaternion": (3, of_quaternions),
}


@pytest.mark.slow("se3", "so3", "adjoint")
@pytest.mark.parametrize("family", FAMILIES)
def test_identities(family):
    size, f = FAMILIES[family]
    x = accuracy.samples(ANGLES, size, 6)
    u = accuracy.samples(np.ones(len(ANGLES)), size, 6)[::-1]
    residuals = jax.jit(jax.vmap(f))(x, u)
    worst = {name: float(np.abs(r).max()) for name, r in residuals.items()}
    assert {name: r for name, r in worst.items() if not r <= TOLERANCE} == {}


def test_adjoint_of_exp_is_the_exponential_of_ad():
    x = accuracy.samples(ANGLES, 6, 2)
    Ad = accuracy.compiled(lambda x: se3.Ad(se3.exp(x)))(x)
    expected = scipy.linalg.expm(np.asarray(accuracy.compiled(se3.ad)(x)))
    np.testing.assert_allclose(Ad, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("angle", [0.1, 1.0, 3.0])
def test_cay_is_exp_of_another_length(angle):
    axis = np.array([2.0, -3.0, 6.0]) / 7
    expected = so3.exp(angle * axis)
    np.testing.assert_allclose(so3.cay(np.tan(angle / 2) * axis), expected, rtol=0, atol=TOLERANCE)


def test_from_matrix_finds_every_rotation():
    # Rotations by nearly pi, where each of the four rows of the matrix is the best one in turn.
    w = accuracy.samples((0.5, 3.0, 3.1, 3.14), 3, 12)
    q = accuracy.compiled(lambda w: quaternion.from_matrix(so3.exp(w)))(w)
    expected = accuracy.compiled(quaternion.exp)(w)
    np.testing.assert_allclose(q, expected, rtol=0, atol=TOLERANCE)
