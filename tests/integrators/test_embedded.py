"""Embedded Munthe-Kaas pairs: the error estimate, the step control, and what is read in between."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_integrators import BODY, body_start, torque_field

import difflie as dl
from difflie.groups import quaternion
from difflie.integrators import RKMK8, EmbeddedMuntheKaas, single_step

PAIRS = (dl.BogackiShampine32, dl.RungeKutta43, dl.DormandPrince54)
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.__name__)


def chain() -> dl.System:
    """Three bodies, with a revolute, a spherical and a prismatic joint."""
    joints = (
        dl.Revolute(axis=(0, 1, 0)),
        dl.Spherical(),
        dl.Prismatic(axis=(1, 0, 0), stiffness=20, damping=0.1),
    )
    return dl.chain(
        [
            dl.Body(
                name=f"link{i}",
                joint=joint,
                position=(0, 0, -0.5 if i else 0),
                mass=1 + i,
                com=(0.1, 0, -0.25),
                inertia=np.diag([0.03, 0.02, 0.01]),
            )
            for i, joint in enumerate(joints)
        ]
    )


CHAIN = chain()
Q0 = dl.integrate(CHAIN, CHAIN.neutral(), jnp.array([0.5, 0.3, 0.2, 0.8, 0.1]))
V0 = jnp.array([1.0, 2.0, -1.0, 0.5, 0.3])


@functools.cache
def exact():
    return dl.simulate(CHAIN, Q0, V0, dt=2.5e-4, steps=4000, method="RKMK4", save_every=200)


def flat(y):
    return jnp.concatenate((quaternion.to_matrix(y[0]).ravel(), y[1]))


def size(a):
    return float(jnp.abs(jnp.concatenate([x.ravel() for x in jax.tree.leaves(a)])).max())


@every_pair
def test_the_estimate_is_the_local_error_of_the_companion(pair):
    method = pair()
    low = method.tableau.order_hat

    @jax.jit
    def errors(h):
        """Of the step and of its companion, and the estimate of the latter's."""

        def field(t, y):
            return torque_field(2.0, t, y)

        y, t, parts = body_start(), jnp.asarray(0.3), 32
        exact = jax.lax.fori_loop(
            0,
            parts,
            lambda i, y: single_step(RKMK8(), BODY, field, t + i * h / parts, y, h / parts),
            y,
        )
        end, estimate = method.attempt(BODY, lambda t, y, _: field(t, y), t, y, h)
        companion = BODY.retract(end, jax.tree.map(jnp.negative, estimate))
        return BODY.difference(exact, end), BODY.difference(companion, exact), estimate

    steps = [0.2, 0.1, 0.05]
    found = [errors(jnp.asarray(h)) for h in steps]
    mine, companion, estimate = ([size(f[k]) for f in found] for k in range(3))
    for errors_of, order in ((mine, method.order), (companion, low), (estimate, low)):
        assert abs(np.log2(errors_of[1] / errors_of[2]) - order - 1) < 0.35
    assert abs(estimate[2] / companion[2] - 1) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_the_error_follows_the_tolerance(pair):
    for tolerance in (1e-4, 1e-6, 1e-8):
        method = pair(rtol=tolerance, atol=tolerance, substeps=1024)
        run = dl.simulate(CHAIN, Q0, V0, dt=0.5, steps=2, method=method)
        assert run.result.ok
        error = float(jnp.abs(run.v[-1] - exact().v[-1]).max())
        assert 0.01 * tolerance < error < 50 * tolerance


@pytest.mark.slow
def test_what_is_saved_does_not_depend_on_the_grid():
    method = dl.DormandPrince54(rtol=1e-9, atol=1e-9, substeps=256)
    coarse = dl.simulate(CHAIN, Q0, V0, dt=0.5, steps=2, method=method)
    fine = dl.simulate(CHAIN, Q0, V0, dt=0.02, steps=50, method=method, save_every=25)
    assert coarse.result.ok and fine.result.ok
    for run in (coarse, fine):
        np.testing.assert_allclose(run.q, exact().q[::10], atol=1e-7)
    assert float(fine.constraint_error(CHAIN).max()) < 1e-14


def test_a_tolerance_that_is_not_met_is_reported_with_the_time():
    method = dl.DormandPrince54(rtol=1e-12, atol=1e-12, substeps=3)
    run = dl.simulate(CHAIN, Q0, V0, dt=0.5, steps=2, method=method)
    assert not run.result.ok
    assert int(run.result.unsolved_step) == 1
    assert "t = 0.5 s" in str(run.result)
    assert "needs more than 3 sub-steps" in str(run.result)
    assert np.isfinite(np.asarray(run.q)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": 0.0}, "rtol is 0.0"),
        ({"atol": -1e-6}, "atol is -1e-06"),
        ({"substeps": 0}, "substeps is 0"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=f"DormandPrince54: {message}"):
        dl.DormandPrince54(**options)


@pytest.mark.slow
def test_single_precision_ends_and_stays_single():
    system = CHAIN.astype(jnp.float32)
    method = dl.DormandPrince54(rtol=1e-5, atol=1e-5)
    run = dl.simulate(system, Q0.astype("f4"), V0.astype("f4"), dt=0.5, steps=2, method=method)
    assert run.q.dtype == jnp.float32 and run.result.ok
    np.testing.assert_allclose(run.v[-1], exact().v[-1], atol=2e-3)


@pytest.mark.slow
def test_gradients_and_batches():
    method = dl.DormandPrince54(rtol=1e-9, atol=1e-9, substeps=100)

    def end(x, v0):
        """A number from a run; x scales the masses and the step."""
        system = CHAIN.replace(mass=CHAIN.bodies.mass * x[0])
        run = dl.simulate(system, Q0, v0, dt=0.25 * x[1], steps=2, method=method)
        return run.q[-1] @ jnp.arange(1.0, 7.0) + run.v[-1] @ jnp.arange(1.0, 6.0)

    compiled, reverse = jax.jit(end), jax.jit(jax.grad(end))
    forward = jax.jit(jax.jacfwd(end))
    x = jnp.ones(2)
    for v0 in (V0, 0 * V0):
        gradient = reverse(x, v0)
        np.testing.assert_allclose(forward(x, v0), gradient, rtol=1e-10)
        for k, e in enumerate(np.eye(2) * 1e-4):
            near, far = (compiled(x + s * e, v0) - compiled(x - s * e, v0) for s in (1, 2))
            wanted = (8 * near - far) / 12e-4
            np.testing.assert_allclose(gradient[k], wanted, rtol=1e-6)
    batch = jax.jit(jax.vmap(end, in_axes=(None, 0)))(x, jnp.stack((V0, 0 * V0)))
    np.testing.assert_allclose(batch, [compiled(x, V0), compiled(x, 0 * V0)], rtol=1e-12)


@pytest.mark.slow
def test_at_meets_the_saved_states_and_converges_between_them():
    errors = []
    for every in (4, 2):
        t, q, v = (a[::every] for a in (exact().t, exact().q, exact().v))
        run = dl.Trajectory(t, q, v, exact().result)
        q, v = run.at(t)
        np.testing.assert_allclose(q, run.q, atol=1e-13)
        np.testing.assert_allclose(v, run.v, atol=1e-12)
        q, v = run.at(exact().t[every // 2 :: every])
        exact_q, exact_v = (a[every // 2 :: every] for a in (exact().q, exact().v))
        errors.append([float(jnp.abs(a).max()) for a in (q - exact_q, v - exact_v)])
        np.testing.assert_allclose(jnp.sum(q[:, 1:5] ** 2, axis=1), 1, atol=1e-14)
    rates = np.log2(np.divide(*errors))
    assert rates[0] > 3.3 and rates[1] > 2.5
    q, v = run.at(0.43)
    assert q.shape == (6,) and v.shape == (5,)
    with pytest.raises(ValueError, match=r"t = 1\.5 s is not between"):
        run.at(1.5)


@pytest.mark.slow
def test_a_pair_is_a_method_like_others():
    assert dl.DormandPrince54() == dl.DormandPrince54(rtol=1e-6)
    assert dl.DormandPrince54(rtol=1e-7) != dl.DormandPrince54()
    assert isinstance(dl.DormandPrince54(), EmbeddedMuntheKaas)
    with_name = dl.simulate(CHAIN, Q0, V0, dt=0.5, steps=2, method="DormandPrince54")
    np.testing.assert_allclose(with_name.v[-1], exact().v[-1], atol=1e-3)
