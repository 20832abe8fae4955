"""Rollouts inside of jax's export, transfer guards and checkpoints, as docs/with_jax.md says."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

HINGE = dl.Revolute(axis=(0.0, 1.0, 0.0))
PENDULUM = dl.chain([dl.Body(name="bob", joint=HINGE, mass=1.0, com=(0.0, 0.0, -1.0))])

WRITE = """
import sys
import jax
import jax.numpy as jnp
from test_with_jax import angle
exported = jax.export.export(jax.jit(jax.value_and_grad(angle)))(jnp.ones(1))
open(sys.argv[1], "wb").write(exported.serialize())
"""
READ = """
import sys
import jax
import jax.numpy as jnp
exported = jax.export.deserialize(open(sys.argv[1], "rb").read())
value, gradient = exported.call(jnp.ones(1))
assert "difflie" not in sys.modules
print(float(value).hex(), float(gradient[0]).hex())
"""


def angle(q):
    """The last angle of a pendulum, and something of all the others."""
    run = dl.simulate(PENDULUM, q, jnp.zeros(1), dt=1e-2, steps=30, method="SemiImplicitEuler")
    return run.q[-1, 0] + jnp.sum(jnp.sin(run.q) ** 2)


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_a_rollout_transfers_nothing(level):
    """Guards that a rollout inside of jit, and its gradient, need nothing from the host."""
    q = jnp.ones(1)
    compiled = jax.jit(jax.value_and_grad(angle))
    with jax.transfer_guard(level):
        first = jax.block_until_ready(compiled(q))
        second = jax.block_until_ready(compiled(q))
    assert first[0] == second[0] and jnp.isfinite(first[1]).all()


@pytest.mark.parametrize(
    "policy", ["nothing_saveable", "everything_saveable", "dots_saveable", "no argument"]
)
def test_checkpoints_change_no_derivative(policy):
    """Guards first and second derivatives of a rollout under `jax.checkpoint`."""
    policy = getattr(jax.checkpoint_policies, policy, None)
    kept = jax.checkpoint(angle, policy=policy)

    def derivatives(f):
        return jax.jit(lambda q: jax.jvp(jax.grad(f), (q,), (jnp.ones(1),)))(jnp.ones(1))

    np.testing.assert_allclose(derivatives(kept), derivatives(angle), rtol=1e-13)


@pytest.mark.slow
def test_an_exported_rollout_runs_without_difflie(tmp_path):
    """Guards a rollout and its gradient that another process reads, which has no native code."""
    file = str(tmp_path / "rollout")
    here = os.path.dirname(__file__)
    environment = os.environ | {"JAX_ENABLE_X64": "1"}
    write = environment | {"DIFFLIE_NATIVE": "0", "PYTHONPATH": here}
    subprocess.run([sys.executable, "-c", WRITE, file], env=write, check=True)
    read = [sys.executable, "-c", READ, file]
    done = subprocess.run(read, env=environment, check=True, capture_output=True, text=True)
    value, gradient = map(float.fromhex, done.stdout.split())
    expected = jax.value_and_grad(angle)(jnp.ones(1))
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, expected[1][0], rtol=1e-12)


@pytest.mark.slow
def test_derivatives_without_native_code():
    """Guards that guards and checkpoints hold the ordinary way, too."""
    environment = os.environ | {"DIFFLIE_NATIVE": "0"}
    chosen = [__file__, "-q", "-n", "0", "-m", "not slow", "-k", "disallow] or dots"]
    subprocess.run([sys.executable, "-m", "pytest", *chosen], env=environment, check=True)
