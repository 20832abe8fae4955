"""What JAX does with a function f(x (3,), gain ()), as programs without arguments; and checks."""

import jax
import jax.numpy as jnp
import numpy as np

X, GAIN = jnp.array([0.3, -1.2, 2.0]), jnp.float64(1.7)


def scalar(f):
    return lambda x, gain: sum(jnp.sum(jnp.cos(y)) for y in f(x, gain))


def batch(n=5):
    return jnp.linspace(-1.0, 1.0, 3 * n).reshape(n, 3), jnp.linspace(0.5, 2.0, n)


TRANSFORMATIONS = {
    "value": lambda f: lambda: f(X, GAIN),
    "grad": lambda f: lambda: jax.grad(scalar(f), (0, 1))(X, GAIN),
    "jvp": lambda f: lambda: jax.jvp(f, (X, GAIN), (0.5 * X, jnp.ones_like(GAIN))),
    "hessian": lambda f: lambda: jax.hessian(scalar(f))(X, GAIN),
    "vmap": lambda f: lambda: jax.vmap(f)(*batch()),
    "vmap of one argument": lambda f: lambda: jax.vmap(f, (0, None))(batch()[0], GAIN),
    "vmap of grad": lambda f: lambda: jax.vmap(jax.grad(scalar(f), (0, 1)))(*batch()),
    "grad of vmap": lambda f: (
        lambda: jax.grad(lambda x, gain: jnp.sum(jax.vmap(scalar(f))(x, gain)), (0, 1))(*batch())
    ),
    "grad of vmap of one argument": lambda f: (
        lambda: jax.grad(lambda x, g: jnp.sum(jax.vmap(scalar(f), (0, None))(x, g)), (0, 1))(
            batch()[0], GAIN
        )
    ),
    "jvp of vmap": lambda f: (
        lambda: jax.jvp(jax.vmap(f), batch(), tuple(jnp.ones_like(x) for x in batch()))
    ),
    "loop": lambda f: (
        lambda: jax.lax.scan(lambda x, _: (f(x, GAIN)[0], None), X, None, length=3)[0]
    ),
    "single precision": lambda f: lambda: f(X.astype(np.float32), GAIN.astype(np.float32)),
    "the same argument twice": lambda f: lambda: f(X, X[:1]),
    "third derivative": lambda f: lambda: jax.jacrev(jax.hessian(scalar(f), 1), 1)(X, GAIN),
    "vmap of vmap": lambda f: (
        lambda: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(batch()[0], batch()[1])
    ),
    "checkpoint": lambda f: lambda: jax.grad(jax.checkpoint(scalar(f)))(X, GAIN),
    "linearize": lambda f: lambda: jax.linearize(f, X, GAIN)[1](X, GAIN),
    "vmap of linearize": lambda f: (
        lambda: jax.vmap(lambda x: jax.linearize(lambda g: f(x, g), GAIN)[1](GAIN))(batch()[0])
    ),
    "grad of grad": lambda f: (
        lambda: jax.grad(lambda x: jnp.sum(jax.grad(scalar(f))(x, GAIN) ** 2))(X)
    ),
}


def natively(calls, f, *args):
    """What f returns, compiled; its program has so many calls of native code."""
    lowered = jax.jit(f).lower(*args)
    if jax.default_backend() == "cpu":
        assert lowered.as_text().count("custom_call @difflie_") == calls
    return lowered.compile()(*args)


def assert_same(one, two, tolerance=1e-14):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
