"""How a time loop is differentiated: every adjoint against the direct one and differences."""

import functools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.simulate.adjoint.checkpointed import branching

STEPS, EVERY, DT = 14, 7, 0.02
# The last one has idle turns: 7 steps as 3 x 3.
CHECKPOINTED = [dl.RecursiveCheckpoint(), dl.RecursiveCheckpoint(8)]
REVERSE = [*CHECKPOINTED, dl.Reversible()]


def pendulums(damping: float = 0.0) -> dl.System:
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0), damping=damping)
    bodies = [
        dl.Body(
            name=name,
            joint=joint,
            position=(0.0, 0.0, z),
            mass=1.0,
            com=(0.0, 0.0, -0.5),
            inertia=np.diag([0.1, 0.1, 0.01]),
        )
        for name, z in (("upper", 0.0), ("lower", -1.0))
    ]
    return dl.chain(bodies)


MACHINE = pendulums()


def point(dtype=jnp.float64):
    """Masses, q0, v0, dt, the gain of a function among the inputs, and a sampled input."""
    wrench = 0.3 * np.random.default_rng(0).normal(size=(STEPS, 2, 6))
    given = [1.0, 0.8], [0.5, 0.3], [0.2, -0.4], DT, 0.7, wrench
    return tuple(jnp.asarray(x, dtype) for x in given)


def method_for(adjoint):
    return "StormerVerlet" if isinstance(adjoint, dl.Reversible) else "SemiImplicitEuler"


def motion(adjoint, mass, q, v, dt, gain, wrench, method=None):
    return dl.simulate(
        *(MACHINE.astype(q.dtype).replace(mass=mass), q, v),
        dt=dt,
        steps=STEPS,
        save_every=EVERY,
        method=method or method_for(adjoint),
        control=lambda t, q, v: -gain * q,
        wrench=wrench,
        adjoint=adjoint,
    )


def loss_and_run(adjoint, *given, **options):
    run = motion(adjoint, *given, **options)
    weights = jnp.asarray([1.0, 2.0], run.q.dtype)
    return jnp.sum(run.q[1] * weights) + jnp.sum(run.v[-1] ** 2), run


def loss(adjoint, *given, **options):
    return loss_and_run(adjoint, *given, **options)[0]


@functools.cache
def gradient_and_run(adjoint, method):
    f = functools.partial(loss_and_run, adjoint, method=method)
    return jax.jit(jax.grad(f, argnums=tuple(range(6)), has_aux=True))


def gradient(adjoint, method=None):
    f = gradient_and_run(adjoint, method or method_for(adjoint))
    return lambda *given: f(*given)[0]


@functools.cache
def direct(method="SemiImplicitEuler"):
    return gradient(dl.Direct(), method)(*point())


def direction():
    rng = np.random.default_rng(1)
    return tuple(
        jnp.asarray(rng.normal(size=x.shape)) * (0.01 if x.ndim == 0 else 1) for x in point()
    )


def along(gradients):
    return sum(float(jnp.sum(g * d)) for g, d in zip(gradients, direction(), strict=True))


def moved(h):
    return [x + h * d for x, d in zip(point(), direction(), strict=True)]


@pytest.mark.slow
def test_direct_against_central_differences():
    value = jax.jit(functools.partial(loss, dl.Direct()))
    for i, (x, d) in enumerate(zip(point(), direction(), strict=True)):

        def at(h, i=i, x=x, d=d):
            return float(value(*(x + h * d if j == i else y for j, y in enumerate(point()))))

        difference = (4 * (at(5e-5) - at(-5e-5)) / 1e-4 - (at(1e-4) - at(-1e-4)) / 2e-4) / 3
        np.testing.assert_allclose(float(jnp.sum(direct()[i] * d)), difference, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", REVERSE, ids=str)
def test_reverse_mode_is_that_of_direct(adjoint):
    for a, b in zip(gradient(adjoint)(*point()), direct(method_for(adjoint)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


@pytest.mark.slow("Forward()")
@pytest.mark.parametrize("adjoint", [dl.Forward(), dl.RecursiveCheckpoint(8)], ids=str)
def test_forward_mode_is_that_of_direct(adjoint):
    def on_line(h):
        return loss(adjoint, *(x + h * d for x, d in zip(point(), direction(), strict=True)))

    value, slope = jax.jit(lambda h: jax.jvp(on_line, (h,), (1.0,)))(0.0)
    assert float(value) == pytest.approx(float(loss(dl.Direct(), *point())), rel=1e-12)
    np.testing.assert_allclose(float(slope), along(direct()), rtol=1e-10)


def test_forward_has_no_reverse_mode():
    with pytest.raises(TypeError, match=r"adjoint=Forward\(\) has no reverse mode; .* jax.jvp"):
        jax.grad(lambda q: loss(dl.Forward(), q, *point()[1:]))(point()[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "adjoint",
    [dl.RecursiveCheckpoint(8), dl.Reversible()],
    ids=str,
)
def test_batches(adjoint):
    """vmap of grad, and grad of vmap, by v."""
    mass, q, v, *rest = point()
    starts = jnp.stack((v, -v))
    method = method_for(adjoint)

    def of_start(v):
        return loss(adjoint, mass, q, v, *rest)

    each = jax.jit(jax.vmap(jax.grad(of_start)))(starts)
    together = jax.jit(jax.grad(lambda starts: jnp.sum(jax.vmap(of_start)(starts))))(starts)
    alone = [gradient(dl.Direct(), method)(mass, q, v, *rest)[2] for v in starts]
    np.testing.assert_allclose(each, alone, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(together, each, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", REVERSE[1:3], ids=str)
def test_single_precision_stays_single(adjoint):
    for a, b in zip(
        gradient(adjoint)(*point(jnp.float32)), direct(method_for(adjoint)), strict=True
    ):
        assert a.dtype == jnp.float32
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", [dl.Direct(), dl.RecursiveCheckpoint(8)], ids=str)
def test_hessian_vector_products(adjoint):
    """Forward over reverse mode, against differences of the gradient."""
    mass, q, v, *rest = point()
    by_q = jax.grad(lambda q: loss(adjoint, mass, q, v, *rest))
    d = jnp.asarray([0.6, -0.8])
    product = jax.jit(lambda q, d: jax.jvp(by_q, (q,), (d,))[1])(q, d)

    def at(h):
        return np.asarray(gradient(dl.Direct())(mass, q + h * d, v, *rest)[1])

    difference = (4 * (at(5e-4) - at(-5e-4)) / 1e-3 - (at(1e-3) - at(-1e-3)) / 2e-3) / 3
    np.testing.assert_allclose(product, difference, rtol=1e-8, atol=1e-9)


@pytest.mark.slow("Reversible()")
@pytest.mark.parametrize("adjoint", REVERSE, ids=str)
def test_the_trajectory_does_not_depend_on_the_adjoint(adjoint):
    _, plain = gradient_and_run(dl.Direct(), method_for(adjoint))(*point())
    _, run = gradient_and_run(adjoint, method_for(adjoint))(*point())
    np.testing.assert_allclose(run.q, plain.q, rtol=1e-13)
    np.testing.assert_allclose(run.v, plain.v, rtol=1e-12)
    assert str(run.result) == str(plain.result) == "completed: 14 steps, 0.28 s"
    assert (run.result.reconstruction is None) == (not isinstance(adjoint, dl.Reversible))


# Reversible


@pytest.mark.slow
def test_where_a_motion_dissipates_the_result_says_so_and_the_derivative_is_nan():
    damped = pendulums(damping=20.0)

    def of_start(q, v):
        run = dl.simulate(
            *(damped, q, v), dt=DT, steps=200, method="StormerVerlet", adjoint=dl.Reversible()
        )
        return jnp.sum(run.q[-1]), run.result

    slope, result = jax.jit(jax.grad(of_start, has_aux=True))(*point()[1:3])
    assert not bool(result.ok)
    assert not float(result.reconstruction.distance) <= float(result.reconstruction.tolerance)
    assert "failed: run back, the motion ends " in str(result)
    assert "use RecursiveCheckpoint" in str(result)
    assert np.all(np.isnan(slope))


class Claimed(dl.RKMK4):
    time_symmetric: ClassVar[bool] = True


SYMMETRIC = [
    *("StormerVerlet", "ImplicitMidpoint", "GaussLegendre4", "GaussLegendre6"),
    *("EnergyMomentum", "VariationalMidpoint", "Rattle"),
]


def test_the_methods_that_are_symmetric_in_time_are_known():
    found = {m.name for m in dl.integrators.METHODS if m.time_symmetric}
    assert found == set(SYMMETRIC)


@pytest.mark.slow("GaussLegendre4", "GaussLegendre6", "Rattle", "VariationalMidpoint")
@pytest.mark.thorough("EnergyMomentum")
@pytest.mark.parametrize(
    "method",
    [*SYMMETRIC, Claimed()],
    ids=str,
)
def test_symmetric_methods_return(method):
    """To rounding, which for EnergyMomentum reaches 1.1e-13 as the start varies."""
    run = dl.simulate(
        *(MACHINE, [0.5, 0.3], [0.2, -0.4]),
        dt=DT,
        steps=STEPS,
        method=method,
        adjoint=dl.Reversible(tolerance=2e-13),
    )
    assert bool(run.result.ok) == (method in SYMMETRIC), run.result.reconstruction


@pytest.mark.slow
def test_a_start_with_few_digits_is_found_again():
    """An attitude typed with seven digits is put on its manifold before the first step."""
    body = dl.tree(
        [dl.Body(name="top", joint=dl.Spherical(), mass=1.0, inertia=np.diag([0.8, 1.0, 1.3]))]
    )
    run = dl.simulate(
        *(body, [0.7071068, 0.0, 0.7071068, 0.0], [1.0, 2.0, 0.5]),
        dt=DT,
        steps=STEPS,
        method="StormerVerlet",
        adjoint=dl.Reversible(tolerance=1e-13),
    )
    assert bool(run.result.ok), run.result.reconstruction


def test_other_methods_are_refused():
    with pytest.raises(ValueError, match=r"RKMK4 is not symmetric in time .* StormerVerlet, "):
        dl.simulate(MACHINE, [0.5, 0.3], [0.0, 0.0], adjoint=dl.Reversible())
    with pytest.raises(ValueError, match="tolerance is 0"):
        dl.Reversible(tolerance=0)


@pytest.mark.slow
def test_a_thousand_steps_back():
    """The gradient is that of Direct to 1e-9, for an undamped machine."""
    _, q, v, *_ = point()

    def swung(adjoint, mass, q, v):
        run = dl.simulate(
            *(MACHINE.replace(mass=mass), q, v),
            dt=5e-3,
            steps=1000,
            save_every=100,
            method="GaussLegendre4",
            adjoint=adjoint,
        )
        return jnp.sum(run.q**2) + jnp.sum(run.v[-1]), run.result

    def slopes(adjoint):
        f = functools.partial(swung, adjoint)
        return jax.jit(jax.grad(f, argnums=(0, 1, 2), has_aux=True))(MACHINE.bodies.mass, q, v)

    (back, result), (ahead, _) = slopes(dl.Reversible()), slopes(dl.Direct())
    assert float(result.reconstruction.distance) < 1e-11
    for a, b in zip(back, ahead, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


# Memory


def temporaries(adjoint, steps, method):
    """Bytes."""

    def of_start(q, v):
        run = dl.simulate(
            *(MACHINE, q, v), steps=steps, save_every=steps, method=method, adjoint=adjoint
        )
        return jnp.sum(run.q[-1])

    lowered = jax.jit(jax.grad(of_start)).lower(*point()[1:3])
    return lowered.compile().memory_analysis().temp_size_in_bytes


@pytest.mark.slow
def test_memory_of_few_checkpoints_grows_slowly():
    method = "SemiImplicitEuler"
    few = [temporaries(dl.RecursiveCheckpoint(), n, method) for n in (400, 10000)]
    assert few[1] < 1.5 * few[0]
    assert few[1] < temporaries(dl.Direct(), 10000, method) / 10


@pytest.mark.slow
def test_memory_of_stepping_back_does_not_grow():
    short, long = (temporaries(dl.Reversible(), n, "StormerVerlet") for n in (100, 10000))
    assert long == short


@pytest.mark.slow
def test_branching():
    assert branching(1, 1000, 30) == ((), (10, 10, 10))
    assert branching(1, 1000, 65) == ((), (40, 25))
    assert branching(1, 1000, 1000) == ((), (1000,))
    assert branching(10, 100, 30) == ((10,), (10, 10))
    assert branching(1, 1009, 70) == ((), (32, 32))
    assert branching(1, 1, 2) == ((), ())
    rows, steps = branching(1, 2**16, 32)
    assert np.prod(steps) == 2**16 and sum(steps) <= 32 and not rows
    with pytest.raises(ValueError, match=r"8 steps are too few for a loop of 1000, .* give 2[0-9]"):
        branching(1, 1000, 8)
    with pytest.raises(ValueError, match=r"1 steps; it keeps two or more"):
        dl.RecursiveCheckpoint(1)
