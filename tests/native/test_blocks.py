"""A loop in blocks gives the same numbers as the loop, under every transformation.

There is no GPU here: kernels are interpreted by Pallas, and lowered for CUDA without being run.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.native import blocks, in_blocks, kernel

MASK = np.array([True, False, True])


@pytest.fixture
def kernels(monkeypatch):
    """Has kernels interpreted; a list that grows with each of them."""
    built, one_block = [], blocks._one_block

    def seen(turn, *refs):
        built.append(turn)
        one_block(turn, *refs)

    monkeypatch.setenv("DIFFLIE_NATIVE", "interpret")
    monkeypatch.setattr(blocks, "_one_block", seen)
    return built


def loop(x, gain, count, ahead):
    """Six turns on a vector, a number, a whole number, a truth, and what stays as it is."""

    def turn(carry, _):
        x, total, count, ahead, gain, empty = carry
        moved = jnp.where(MASK, x + 0.1 * gain * jnp.sin(x[::-1]), x * jnp.cos(x))
        far = jnp.abs(total) > 1
        x = jnp.where(ahead & ~far, moved, -moved)
        return (x, total + jnp.sum(x * x), count + 2, ~ahead | far, gain, empty), None

    start = x, np.zeros((), x.dtype), count, ahead, gain, np.zeros((0, 2))
    return jax.lax.scan(turn, start, None, length=6)[0]


def states(n=5, dtype=np.float64):
    x = np.linspace(-1.0, 1.0, 3 * n).reshape(n, 3).astype(dtype)
    count = jnp.arange(n, dtype=np.int32)
    return jnp.asarray(x), jnp.linspace(0.5, 2.0, n, dtype=dtype), count, count > 2


def scalar(f):
    return lambda *args: sum(jnp.sum(jnp.cos(y)) for y in f(*args)[:2])


ONE = [a[1] for a in states()]
TRANSFORMATIONS = {
    "one": lambda f: f(*ONE),
    "batch": lambda f: jax.vmap(f)(*states()),
    "several blocks": lambda f: jax.vmap(f)(*states(300)),
    "single precision": lambda f: jax.vmap(f)(*states(dtype=np.float32)),
    "shared": lambda f: jax.vmap(f, (0, None, None, None))(states()[0], *ONE[1:]),
    "batch of batches": lambda f: jax.vmap(jax.vmap(f, (None, 0, None, 0)), (0, None, 0, None))(
        *states()
    ),
    "gradient": lambda f: jax.grad(scalar(f), (0, 1))(*ONE),
    "batch of gradients": lambda f: jax.vmap(jax.grad(scalar(f)))(*states()),
    "gradient of a batch": lambda f: jax.grad(
        lambda x, *shared: jnp.sum(jax.vmap(scalar(f), (0, None, None, None))(x, *shared)), (0, 1)
    )(states()[0], *ONE[1:]),
    "along a direction": lambda f: jax.jvp(lambda x, g: f(x, g, *ONE[2:]), ONE[:2], ONE[:2]),
    "hessian": lambda f: jax.hessian(scalar(f))(*ONE),
}


def assert_same(one, two, tolerance=1e-13):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_same_numbers(name, kernels):
    transform = TRANSFORMATIONS[name]
    found = jax.jit(lambda: transform(in_blocks(loop)))()
    differentiated = ("gradient", "along", "hessian")
    assert bool(kernels) != any(word in name for word in differentiated)
    tolerance = 1e-6 if name == "single precision" else 1e-13
    assert_same(found, jax.jit(lambda: transform(loop))(), tolerance)


def test_every_operation(kernels):
    def turn(x, _):
        y = jnp.stack([
            jnp.exp(-x), jnp.expm1(x), jnp.log(x), jnp.log1p(x), jnp.sqrt(x), jax.lax.rsqrt(x),
            jnp.tanh(x), jnp.arctan2(x, 1 + x), x**1.5, x**-3, jnp.floor(x), jnp.ceil(x),
            jnp.sign(x - 1), jnp.maximum(x, 1.0), jnp.minimum(x, 1.0), jnp.abs(x - 1),
            (x >= 1).astype(x.dtype), jnp.where((x != 1) | (x <= 2), x, -x), -x,
        ])  # fmt: skip
        return jnp.abs(jnp.sum(y * jnp.linspace(0.01, 0.02, 19))), None

    def loop(x):
        return jax.lax.scan(turn, x, None, length=3)[0]

    x = jnp.linspace(0.5, 2.0, 4)
    assert_same(jax.jit(jax.vmap(in_blocks(loop)))(x), jax.vmap(loop)(x), 1e-14)
    assert kernels


def test_kernels_within_and_what_is_not_asked_for(kernels):
    """A result that is not used, and what only it needs, is not computed."""

    def loop(x, y):
        def turn(carry, _):
            x, y = carry
            return (x + jnp.sin(x), y * jnp.exp(x)), None

        return jax.lax.scan(kernel(turn), (x, y), None, length=4)[0]

    x = jnp.linspace(0.5, 2.0, 4)
    found = jax.jit(lambda x: jax.vmap(in_blocks(loop))(x, x)[0])(x)
    assert_same(found, jax.vmap(loop)(x, x)[0])
    (turn,) = kernels
    names = {turn.program.instructions[k][0] for k in turn.instructions}
    assert names == {"argument", "sine", "add"}


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x: jnp.sin(x), id="no loop"),
        pytest.param(
            lambda x: jax.lax.scan(lambda x, _: (jnp.sort(x), None), x, None, length=3)[0],
            id="an operation without a program",
        ),
        pytest.param(
            lambda x: jax.lax.scan(lambda x, _: (2 * x, x), x, None, length=3),
            id="outputs of turns",
        ),
        pytest.param(
            lambda x: jax.lax.scan(lambda c, x: (c + x, None), x[0], x)[0], id="inputs of turns"
        ),
        pytest.param(
            lambda x: jax.lax.scan(lambda x, _: (x, None), x[:0], None, length=3)[0], id="nothing"
        ),
    ],
)
def test_other_functions_run_the_ordinary_way(f, kernels):
    x = states()[0]
    assert_same(jax.jit(jax.vmap(in_blocks(f)))(x), jax.vmap(f)(x))
    assert not kernels


def double_pendulum(dtype):
    bodies = [
        dl.Body(
            name=name,
            joint=dl.Revolute(axis=axis, lower=-0.2, upper=1.0),
            position=(0.0, 0.0, -0.5),
            mass=mass,
            com=(0.0, 0.1, -0.2),
            inertia=np.diag((0.02, 0.03, 0.01)),
        )
        for name, axis, mass in (("upper", (1.0, 0.0, 0.0), 1.0), ("lower", (0.0, 1.0, 0.0), 0.6))
    ]
    return dl.chain(bodies).astype(dtype)


def rollouts(system, q, v, per_environment):
    def rollout(mass, q, v):
        varied = system.replace(mass=mass)
        options = {"dt": 5e-3, "steps": 20, "save_every": 10, "method": "SemiImplicitEuler"}
        return dl.simulate(varied, q, v, **options)

    mass = system.bodies.mass
    if per_environment:
        mass = mass * jnp.linspace(0.5, 2.0, len(q), dtype=mass.dtype)[:, None]
    axes = (0 if per_environment else None, 0, 0)
    run = jax.jit(lambda *args: jax.vmap(rollout, axes)(*args))
    return run(mass, q, v)


@pytest.mark.parametrize(
    ("batch", "dtype", "per_environment"),
    [
        (5, np.float64, True),
        (300, np.float32, False),
        (300, np.float64, True),
        (5, np.float32, True),
    ],
)
def test_simulation_of_a_batch(batch, dtype, per_environment, kernels, monkeypatch):
    system = double_pendulum(dtype)
    rng = np.random.default_rng(batch)
    q, v = rng.normal(size=(2, batch, 2)).astype(dtype)
    found = rollouts(system, q, v, per_environment)
    assert kernels
    monkeypatch.setenv("DIFFLIE_NATIVE", "1")
    expected = rollouts(system, q, v, per_environment)
    assert_same(found, expected, 1e-12 if dtype == np.float64 else 3e-6)


def lowered_for_cuda(f, *args):
    try:
        text = jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    except (ImportError, NotImplementedError, RuntimeError) as error:
        pytest.skip(f"this jaxlib does not lower Pallas kernels for CUDA without a GPU: {error}")
    return text


def arm(control=None, dtype=np.float32, **options):
    system = dl.load(Path(dl.__file__).parent / "data" / "arm7.urdf").astype(dtype)
    options = {"dt": 1e-3, "steps": 100, "method": "SemiImplicitEuler"} | options

    def final(system, q, v):
        run = dl.simulate(system, q, v, control=control, **options)
        return run.q[-1], run.v[-1]

    q = jnp.zeros((200, 7), dtype)
    return jax.vmap(final, (None, 0, 0)), system, q, q


def test_a_step_of_the_arm_becomes_one_kernel_for_cuda():
    text = lowered_for_cuda(*arm(save_every=100))
    assert text.count("custom_call @__gpu$xla.gpu.triton") == 1
    assert "f64" not in text


def test_one_simulation_in_double_precision_is_a_kernel_for_cuda(monkeypatch):
    system, zero = double_pendulum(np.float64), np.zeros(2)

    def run():
        f = lambda q: dl.simulate(system, q, zero, steps=20, method="SemiImplicitEuler").q  # noqa: E731
        return lowered_for_cuda(f, zero)

    assert run().count("custom_call @__gpu$xla.gpu.triton") == 1
    monkeypatch.setenv("DIFFLIE_NATIVE", "0")
    assert "triton" not in run()


@pytest.mark.parametrize(
    "control",
    [
        pytest.param(lambda t, q, v: -jnp.sort(q), id="a control without a program"),
        pytest.param(np.zeros((100, 7), np.float32), id="a sampled control"),
    ],
)
def test_other_controls_run_the_ordinary_way_on_cuda(control):
    assert "triton" not in lowered_for_cuda(*arm(control, save_every=100))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_of_the_arm(dtype, kernels, monkeypatch):
    f, system, q, v = arm(steps=20, save_every=20, dtype=dtype)
    q, v = np.random.default_rng(0).normal(size=(2, 150, 7)).astype(dtype)
    found = jax.jit(lambda *args: f(*args))(system, q, v)
    assert kernels
    monkeypatch.setenv("DIFFLIE_NATIVE", "1")
    expected = jax.jit(lambda *args: f(*args))(system, q, v)
    assert_same(found, expected, 1e-4 if dtype == np.float32 else 1e-12)
