"""Long batches against the ordinary way; a program of its own, for XLA reads its options once."""

import os

import jax
import jax.numpy as jnp
import numpy as np
from transformations import assert_same

import difflie as dl
from difflie.native import kernel
from difflie.native.call import vectorised

jax.config.update("jax_enable_x64", True)


def mixed(x, n, shared):
    """Results of all types and shapes of x (2,), n () and what the batch shares, (3,)."""
    up = (x > 0) & (n > 70)
    return (
        jnp.where(up, jnp.sin(x * shared[:2]), jnp.tanh(x)),
        (jnp.outer(x, shared), jnp.arctan2(x[1], x[0]), x[0]),
        (n + 1, n, up, jnp.abs(n - 3).astype(x.dtype) * shared[2]),
        (shared, jnp.sum(shared), jnp.ones((2, 1), x.dtype), jnp.zeros((0, 2))),
    )


def total(f):
    def summed(x, n, shared):
        leaves = jax.tree.leaves(f(x, n, shared))
        return sum(jnp.sum(r) for r in leaves if r.dtype == x.dtype)

    return summed


def lowered(f, *args):
    return jax.jit(f).lower(*args).as_text()


def check_kernel(length, width, dtype):
    rng = np.random.default_rng(0)
    x, shared = rng.normal(size=(length, 2)), rng.normal(size=3)
    args = jnp.asarray(x, dtype), jnp.arange(length, dtype=np.int32), jnp.asarray(shared, dtype)
    every = (0, 0, None)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    f = kernel(mixed)
    text = lowered(jax.vmap(f, every), *args)
    assert "mhlo.fusion" in text
    assert f"tensor<{width}x" in text
    for transformed in (
        lambda f: jax.vmap(f, every),
        lambda f: jax.vmap(jax.grad(total(f), (0, 2)), every),
        lambda f: jax.grad(lambda *args: jnp.sum(jax.vmap(total(f), every)(*args)), (0, 2)),
    ):
        one, two = jax.jit(transformed(f))(*args), jax.jit(transformed(mixed))(*args)
        assert_same(one, two, tolerance)


def check_simulation():
    axes = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    bodies = [
        dl.Body(
            name=f"link{i}",
            joint=dl.Revolute(axis=axis),
            position=(0.0, 0.0, -0.1),
            mass=0.2,
            com=(0.0, 0.0, -0.05),
            inertia=np.diag((4e-4, 4e-4, 1e-4)),
        )
        for i, axis in enumerate(axes)
    ]
    system = dl.chain(bodies).with_traversal("unrolled")
    q, v = np.random.default_rng(1).normal(size=(2, 70, 2))

    def last(system, q, v):
        run = dl.simulate(
            system, q, v, dt=1e-2, steps=10, save_every=10, method="SemiImplicitEuler"
        )
        return run.q[-1], run.v[-1]

    def batch(system, q, v):
        ends = jax.vmap(last, (None, 0, 0))(system, q, v)
        loss = lambda q, v: jnp.sum(last(system, q, v)[0] ** 2)  # noqa: E731
        return ends, jax.vmap(jax.grad(loss, (0, 1)))(q, v)

    assert "tensor<70x" in lowered(batch, system, q, v)
    found = jax.jit(batch)(system, q, v)
    os.environ["DIFFLIE_NATIVE"] = "0"
    jax.clear_caches()
    assert "mhlo.fusion" not in lowered(batch, system, q, v)
    assert_same(found, jax.jit(batch)(system, q, v), 1e-12)


if __name__ == "__main__":
    assert vectorised()
    for length, width, dtype in (
        (64, 64, np.float32),
        (150, 80, np.float64),
        (200, 72, np.float64),
    ):
        check_kernel(length, width, dtype)
    check_simulation()
