"""Motions and their derivatives in and around `jax.shard_map` are those of one device."""

import os
import subprocess
import sys

import pytest

# Two devices have to be asked for before jax starts.
PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import difflie as dl
from jax.sharding import Mesh, PartitionSpec as P

joint = dl.Revolute(axis=(0.0, 1.0, 0.0))
system = dl.chain([dl.Body(name="a", joint=joint, mass=1.0, com=(0.0, 0.0, -0.3))])
devices = Mesh(np.array(jax.devices()), ("i",))

def end(q, k=1.0):
    run = dl.simulate(system, q[None], jnp.zeros(1), dt=1e-2, steps=5, method="SemiImplicitEuler",
                      control=lambda t, q, v: -k * q)
    return run.q[-1, 0]

def ends(q, k=1.0):
    return jax.vmap(lambda q: end(q, k))(q)

def mapped(f, *given):
    return jax.shard_map(f, mesh=devices, in_specs=given or P("i"), out_specs=P("i"))

q = jnp.linspace(0.1, 0.8, 4)
both = mapped(ends, P("i"), P())
on_k = jax.grad(lambda k: jnp.sum(ends(q, k)))(1.0)
of_all = jax.grad(lambda q: jnp.sum(ends(q)))(q)
checks = [
    # What is the same on all devices gets the sum of their cotangents.
    lambda: (jax.jit(jax.grad(lambda k: jnp.sum(both(q, k))))(1.0), on_k),
    lambda: (mapped(ends)(q), ends(q)),
    lambda: (mapped(lambda q: end(q[0])[None])(q[:2]), ends(q[:2])),
    lambda: (jax.jit(mapped(ends))(q), ends(q)),
    lambda: (both(q, jnp.asarray(1.0)), ends(q)),
    lambda: (jax.grad(lambda q: jnp.sum(mapped(ends)(q)))(q), of_all),
    lambda: (jax.jit(jax.grad(lambda q: jnp.sum(mapped(ends)(q))))(q), of_all),
    lambda: (jax.jit(mapped(jax.vmap(jax.grad(end))))(q), of_all),
    lambda: (jax.jvp(mapped(ends), (q,), (jnp.ones(4),))[1], of_all),
]
for check in checks[: int(sys.argv[1])]:
    found, wanted = check()
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
print("compared")
"""


def compared(count):
    flags = "--xla_force_host_platform_device_count=2"
    environment = os.environ | {"XLA_FLAGS": flags}
    run = [sys.executable, "-c", PROGRAM, str(count)]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert "compared" in done.stdout, done.stderr[-2000:]


@pytest.mark.slow
def test_reverse_mode_and_values_without_jit():
    compared(2)


@pytest.mark.slow
def test_all_ways():
    compared(9)
