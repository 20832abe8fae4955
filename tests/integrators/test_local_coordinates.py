"""Munthe-Kaas methods in Cayley coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.groups import SO3, Cayley, Euclidean, FlatProduct, Pose, Product, UnitQuaternion
from difflie.integrators import RungeKuttaMuntheKaas, single_step, tableaux

BOX = {"mass": 1.0, "com": (0.1, 0.0, -0.2), "inertia": np.diag([0.1, 0.2, 0.25])}
SYSTEM = dl.chain(
    [
        dl.Body(name="base", joint=dl.Free(), **BOX),
        dl.Body(name="ball", joint=dl.Spherical(), position=(0.0, 0.3, 0.1), **BOX),
        dl.Body(name="arm", joint=dl.Revolute(axis=(0.0, 1.0, 0.0)), **BOX),
    ]
)
RNG = np.random.default_rng(1)
V0 = jnp.asarray(RNG.normal(size=SYSTEM.nv))
Q0 = dl.integrate(SYSTEM, SYSTEM.neutral(), jnp.asarray(RNG.normal(size=SYSTEM.nv)))


def field(t, y):
    q, v = y
    return v, dl.forward_dynamics(SYSTEM, q, v, jnp.zeros_like(v))


def end(method, steps, system=SYSTEM):
    return dl.simulate(system, Q0, V0, dt=0.5 / steps, steps=steps, method=method, save_every=steps)


@pytest.mark.slow
def test_the_method_chooses_the_coordinates():
    plain = FlatProduct((Pose(), UnitQuaternion(), Euclidean(1)))
    other = FlatProduct((Pose(Cayley()), UnitQuaternion(Cayley()), Euclidean(1)))
    velocity = Euclidean(SYSTEM.nv)

    def step(method, manifold):
        return single_step(method, Product((manifold, velocity)), field, 0.0, (Q0, V0), 0.1)

    chosen, given, exponential = jax.jit(
        lambda: (
            step(dl.RKMK2(coordinates="cay"), plain),
            step(dl.RKMK2(), other),
            step(dl.RKMK2(), plain),
        )
    )()
    for a, b in zip(chosen, given, strict=True):
        np.testing.assert_array_equal(a, b)
    assert 1e-8 < float(jnp.abs(chosen[0] - exponential[0]).max()) < 1e-2
    assert plain.in_chart(Cayley()) == other


@pytest.mark.slow
def test_motions_of_a_system():
    fine = end(dl.RKMK8(), 50)
    errors = []
    for method, steps in (
        (dl.RKMK4(coordinates="cay"), 25),
        (dl.RKMK4(coordinates="cay"), 50),
        (dl.DormandPrince54(coordinates="cay", rtol=1e-10, atol=1e-12), 5),
    ):
        run = end(method, steps)
        assert bool(run.result.ok)
        for start in (0, 7):
            assert abs(float(jnp.linalg.norm(run.q[-1, start : start + 4])) - 1) < 1e-14
        errors.append(
            float(jnp.abs(jnp.concatenate((run.q - fine.q, run.v - fine.v), axis=1)).max())
        )
    assert 14 < errors[0] / errors[1] < 18 and errors[1] < 1e-5, errors
    assert errors[2] < 1e-8, errors


@pytest.mark.slow
def test_gradients_and_single_precision():
    pendulum = dl.chain([dl.Body(name="ball", joint=dl.Spherical(), **BOX)])
    method, q0 = dl.RKMK4(coordinates="cay"), pendulum.neutral()

    def run(system, v0):
        q = q0.astype(system.dtype)
        return dl.simulate(system, q, v0, dt=0.05, steps=10, method=method, save_every=10)

    def last(x):
        end = run(pendulum.replace(mass=x[:1]), x[1:])
        return end.q[-1] @ jnp.arange(4.0) + end.v[-1, 1]

    way, d = jnp.array([0.3, -1.0, 0.6, 0.5]), 1e-4
    derivatives = jax.jit(lambda x: (jax.grad(last)(x) @ way, jax.jvp(last, (x,), (way,))[1]))
    # At rest too, where every coordinate of the first stages is zero.
    for x in (jnp.array([1.0, 0.4, -2.0, 1.0]), jnp.array([1.0, 0.0, 0.0, 0.0])):
        reverse, forward = derivatives(x)
        wanted = (last(x + d * way) - last(x - d * way)) / (2 * d)
        np.testing.assert_allclose(reverse, wanted, rtol=1e-6)
        np.testing.assert_allclose(forward, reverse, rtol=1e-10)

    v = jnp.array([0.4, -2.0, 1.0])
    single = run(pendulum.astype(jnp.float32), v.astype(jnp.float32))
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q, run(pendulum, v).q, atol=1e-5)


def test_settings():
    method = dl.RKMK4(coordinates="cay")
    assert method != dl.RKMK4() and hash(method) == hash(dl.RKMK4(coordinates="cay"))
    assert dl.RKMK4(coordinates="exp") == dl.RKMK4() and method.name == "RKMK4"
    assert RungeKuttaMuntheKaas(tableaux.RK4, coordinates="cay").order == 4
    for kind in (dl.RKMK4, dl.DormandPrince54):
        with pytest.raises(ValueError, match=r"coordinates is 'kay'; it must be 'exp' or 'cay'"):
            kind(coordinates="kay")
    with pytest.raises(ValueError, match=r"RKMK4: brackets=2 .*'cay'; leave brackets out"):
        dl.RKMK4(brackets=2, coordinates="cay")
    y = jnp.array([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="other coordinates than exponential ones; leave"):
        single_step(dl.RKMK4(brackets=2), UnitQuaternion(Cayley()), lambda t, y: y[1:], 0.0, y, 0.1)
    with pytest.raises(TypeError, match=r"SO3 has exponential coordinates only.*UnitQuaternion"):
        single_step(method, Product((SO3(),)), lambda t, y: (y[0][0],), 0.0, (jnp.eye(3),), 0.1)
