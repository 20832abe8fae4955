"""What a user's function computes is computed as it stands: NaN and signs of zeros as in jax."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from transformations import assert_same

import difflie as dl
from difflie.native import as_written, kernel, structured
from difflie.native.fingerprint import fingerprint
from difflie.native.loop import Loop
from difflie.native.loop_body import Traced

ZERO, X = np.zeros(3), jnp.array([0.0, -0.0, jnp.inf, -2.0, jnp.nan, 3.0])
FUNCTIONS = {
    "0 x": lambda x: 0.0 * x,
    "0 / x": lambda x: 0.0 / x,
    "0 - x": lambda x: 1 / (0.0 - x),
    "x - 0": lambda x: 1 / (x - 0.0),
    "x + -0": lambda x: 1 / (x + -0.0),
    "known zeros in a product": lambda x: jnp.array([0.0, 1.0, 0.0]) @ jnp.stack([x, x + 1, x]),
    "slopes of 0 sqrt": lambda x: jnp.where(x > 5, jnp.sqrt(x), 0.0),
    "inside loops": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c + 0.0 * x, x),
    "inside branches": lambda x: jax.lax.cond(x[0] > 1, jnp.sin, lambda y: 0.0 * y, x),
    "inside functions": lambda x: jax.jit(lambda y: 0.0 * y)(x),
    "inside a while loop": lambda x: jax.lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 0.0), (0, x)
    )[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_as_in_jax(name):
    f = FUNCTIONS[name]

    def all_of(f):
        def run(x):
            out = [f(x), jax.jvp(f, (x,), (jnp.ones_like(x),))[1], jax.vmap(f)(jnp.stack([x, -x]))]
            if "while" not in name:
                out.append(jax.vjp(f, x)[1](jnp.ones_like(x))[0])
            return out

        return run

    lowered = jax.jit(all_of(kernel(lambda x: as_written(f, x)))).lower(X)
    assert lowered.as_text().count("custom_call @difflie_") >= 3
    assert_same(lowered.compile()(X), jax.jit(all_of(f))(X))


def test_a_branch_that_is_not_taken_has_no_slope():
    """Its own slope may be infinite there, against which a branch is the remedy."""

    def f(x):
        return jax.lax.cond(x > 0, jnp.sqrt, lambda x: 2 * x, x)

    assert jax.jit(jax.grad(kernel(lambda x: as_written(f, x))))(0.0) == 2.0


def test_machines_keep_their_structure():
    """Outside of users' functions, and in own functions that these call, zeros still vanish."""

    def own(x):
        with structured():
            return x[0] + jnp.sum(ZERO * x[:3])

    def length(f):
        closed = jax.make_jaxpr(f)(X)
        loop = Loop(Traced(closed), 0, 0, (1,), (1,), 1)
        return len(loop.program().used()), fingerprint(loop)

    plain, strict = length(own), length(lambda x: as_written(lambda x: own(x) + 1.0, x))
    outside = length(lambda x: jnp.sum(ZERO * x[:3]) + x[0])
    inside = length(lambda x: as_written(lambda x: jnp.sum(ZERO * x[:3]) + x[0], x))
    assert strict[0] <= plain[0] + 2
    assert inside[0] > outside[0]
    assert inside[1] != outside[1]  # and their code is kept apart


@pytest.fixture(scope="module")
def pendulum():
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0))
    return dl.chain([dl.Body(name="a", joint=joint, mass=1.0, com=(0.0, 0.0, -0.3))])


def motion(system, **given):
    given = {"dt": 1e-2, "steps": 5, "method": "SemiImplicitEuler"} | given
    return dl.simulate(system, [0.5], [0.2], **given)


@pytest.mark.parametrize(
    "law",
    [
        lambda t, q, v: q + 0 * jnp.log(0 * t),
        lambda t, q, v: q + 0 / (q - q),
        lambda t, q, v: q + 0 * jnp.exp(1e4 * q),
    ],
)
def test_a_control_that_is_no_number_stops_the_motion(pendulum, law):
    assert not motion(pendulum, control=law).result.ok
    wrench = lambda t, q, v: jnp.zeros((1, 6)).at[0, 1].set(law(t, q, v)[0])  # noqa: E731
    assert not motion(pendulum, wrench=wrench).result.ok
    sampled = dl.Sampled(law, 100.0)
    assert not motion(pendulum, control=sampled).result.ok


def test_derivatives_of_a_control_are_no_numbers_where_it_has_none(pendulum):
    def end(k):
        return motion(pendulum, control=lambda t, q, v: -k * q + 0 * jnp.sqrt(k - 2.0)).q[-1, 0]

    assert np.isnan(jax.grad(end)(2.0)) and np.isfinite(jax.grad(end)(3.0))


def test_angles_of_differences_from_zero_keep_their_sign(pendulum):
    """atan2(0 - 0, 0 - 1) is pi, and with -0 it would be -pi."""
    goal = jnp.zeros(2)

    def body(t, q, v):
        return jnp.arctan2(goal[1] - jnp.floor(jnp.abs(v * 1e-9)), goal[0] - 1.0)

    assert motion(pendulum, control=body).u[0, 0] == np.pi


@pytest.mark.slow
def test_a_control_may_close_over_a_typed_key(pendulum):
    """Noise of a typed key is that of a plain one, also kept in the memory of a controller."""

    def noise(key):
        return lambda t, q, v: jax.random.normal(jax.random.fold_in(key, jnp.int32(t * 100)), (1,))

    class Drawing:
        def __init__(self, key):
            self.init = lambda t, q, v: key

        def __call__(self, key, t, q, v):
            key, one = jax.random.split(key)
            return jax.random.normal(one, (1,)), key

    typed, plain = jax.random.key(3), jax.random.PRNGKey(3)
    for make in (noise, lambda key: dl.Sampled(Drawing(key), 100.0)):
        one, other = (motion(pendulum, control=make(key)).q[-1, 0] for key in (typed, plain))
        assert one == other != motion(pendulum).q[-1, 0]
