"""The closed form of Ploen and Park: its identities, its invariance, and the other algorithms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import error, random_body, random_joint, random_states, random_tree, zoo

import difflie as dl


def serial():
    """A chain as in the paper: revolute, prismatic and helical joints."""
    rng = np.random.default_rng(0)
    kinds = ("Revolute", "Prismatic", "Revolute", "Helical", "Revolute", "Prismatic")
    return [
        random_body(rng, f"b{i}", random_joint(rng, k), f"b{i - 1}" if i else None)
        for i, k in enumerate(kinds)
    ]


TREES = {"serial": serial(), "zoo": zoo(), "random": random_tree(3)}
SLOW = pytest.mark.slow
SOME = ["serial", *(pytest.param(name, marks=SLOW) for name in ("zoo", "random"))]


def block(q):
    """The block diagonal matrix (6n, 6n) of blocks (n, 6, 6)."""
    n = len(q)
    return np.einsum("ij,iab->iajb", np.eye(n), q).reshape(6 * n, 6 * n)


def close(found, expected, tolerance=1e-12):
    assert error(np.asarray(found)[None], np.asarray(expected)[None]) < tolerance


@pytest.fixture(scope="module", params=SOME)
def case(request):
    """A system, a state, its closed form in its own frames and in random ones, and the rest."""
    system = dl.tree(TREES[request.param])
    q, v, a, tau, wrench = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=6))
    twists = np.random.default_rng(7).normal(size=(system.nv, 6))
    frames = jax.vmap(dl.se3.exp)(jnp.asarray(twists))

    @jax.jit
    def everything(frames):
        own = dl.closed_form(system, q, v)
        other = dl.closed_form(system, q, v, frames)
        return {
            "own": own,
            "other": other,
            "Q": jax.vmap(dl.se3.Ad)(frames),
            "mass": dl.mass_matrix(system, q),
            "inverse": dl.inverse_mass_matrix(system, q),
            "bias": dl.bias_force(system, q, v),
            "gravity": dl.gravity_force(system, q),
            "torque": dl.inverse_dynamics(system, q, v, a, wrench),
            "forward": dl.forward_dynamics(system, q, v, tau, wrench),
            "twists": dl.body_twists(system, q, v),
            "factors": dl.mass_factorisation(system, q).matrices(),
            "O(n)": (own.forward_dynamics(tau, wrench), other.forward_dynamics(tau, wrench)),
        }

    return {"state": (v, a, tau, wrench), **everything(frames)}


@pytest.mark.slow("zoo")
@pytest.mark.thorough("random")
def test_equations_of_motion(case):
    form, (v, a, _, wrench) = case["own"], case["state"]
    close(form.M, case["mass"])
    close(form.phi, case["gravity"])
    close(form.C + form.phi, case["bias"])
    close(form.J_t @ v, case["twists"].ravel())
    close(form.M @ a + form.C + form.phi - form.J_t.T @ wrench.ravel(), case["torque"])


def test_factorisations(case):
    form, n = case["own"], len(case["own"].Omega)
    tolerance = max(1e-12, 1e-14 * np.linalg.cond(form.M))
    close(form.factor @ form.Omega @ form.factor.T, form.M)
    close(form.factor @ form.inverse_factor, np.eye(n), tolerance)
    close(form.M_inverse, case["inverse"], tolerance)
    close(form.M_inverse, np.linalg.inv(form.M), tolerance)
    np.testing.assert_array_equal(np.tril(form.factor, -1), 0)
    lower, diagonal = case["factors"]
    close(form.factor, lower.T)
    close(np.diag(form.Omega), diagonal)
    # The articulated inertias obey their equation (41), to which rotor inertias add a term.
    Jh, S, Gamma, X = form.articulated, form.S, form.Gamma, form.X
    rotors = Gamma.T @ form.Phi.T @ form.R @ form.Phi @ Gamma
    close(Jh - X.T @ Jh @ X - rotors, form.J)
    eliminated = Jh @ S @ np.linalg.inv(form.Omega) @ S.T @ Jh
    close(Jh - Gamma.T @ (Jh - eliminated) @ Gamma, form.J)
    one = np.eye(6 * n)
    close(form.G @ (one - Gamma), one)
    close(form.Y @ (one - X.T), one, tolerance)


def test_forward_dynamics(case):
    tolerance = max(1e-12, 1e-14 * np.linalg.cond(case["mass"]))
    form, (_, _, tau, wrench) = case["own"], case["state"]
    close(case["O(n)"][0], case["forward"], tolerance)
    close(case["O(n)"][1], case["forward"], tolerance)
    remaining = tau - form.C - form.phi + form.J_t.T @ wrench.ravel()
    close(form.M_inverse @ remaining, case["forward"], tolerance)


def test_every_matrix_changes_by_its_law(case):
    own, other = case["own"], case["other"]
    Q, inverse = block(case["Q"]), block(np.linalg.inv(case["Q"]))
    for name in ("M", "C", "phi", "J_t", "R", "A_0", "Omega", "factor", "inverse_factor"):
        close(getattr(other, name), getattr(own, name))
    close(other.M_inverse, own.M_inverse, max(1e-12, 1e-14 * np.linalg.cond(own.M)))
    for name in ("S", "V", "K", "P_0"):
        close(getattr(other, name), Q @ getattr(own, name))
    for name in ("Gamma", "G", "D_S", "X"):
        close(getattr(other, name), Q @ getattr(own, name) @ inverse)
    for name in ("J", "articulated"):
        close(getattr(other, name), inverse.T @ getattr(own, name) @ inverse)
    for name in ("D_V", "Y"):
        close(getattr(other, name), inverse.T @ getattr(own, name) @ Q.T)
    close(other.P_t, own.P_t @ inverse)
    close(other.Phi, own.Phi @ inverse)
    close(other.Pi, inverse.T @ own.Pi)


@pytest.mark.slow
def test_single_precision():
    rng = np.random.default_rng(3)
    system = dl.chain([random_body(rng, k, random_joint(rng, k)) for k in ("Spherical", "Helical")])
    q, v, *_ = (jnp.asarray(x[0], jnp.float32) for x in random_states(system, 1, seed=8))
    single = dl.closed_form(system.astype("float32"), q, v)
    assert {a.dtype for a in jax.tree.leaves(single)} == {jnp.dtype("float32")}


def test_mimic_joints_are_refused():
    rng = np.random.default_rng(2)
    mimic = dl.Revolute(name="follower", mimic=dl.Mimic("a", 1.0, 0.0))
    system = dl.chain([random_body(rng, "a", dl.Revolute()), random_body(rng, "b", mimic)])
    with pytest.raises(ValueError, match="'follower' mimics another"):
        dl.closed_form(system, system.neutral(), jnp.zeros(1))
