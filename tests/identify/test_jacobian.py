"""Jacobians in few rows, and in shares on several devices."""

import subprocess
import sys

import numpy as np
import pytest

from difflie.identify.elimination import triangle


@pytest.mark.parametrize("shape", [(3, 5), (5, 5), (700, 5), (5000, 3), (3000, 200)])
def test_triangles_have_the_products_of_the_rows(shape):
    rows = np.random.default_rng(2).normal(size=shape)
    r = triangle(rows)
    assert r.shape == (min(shape), shape[1])
    np.testing.assert_array_equal(r, np.triu(r))
    np.testing.assert_allclose(r.T @ r, rows.T @ rows, atol=1e-12 * shape[0])


@pytest.mark.slow
def test_devices_share_the_columns():
    """In a process of its own, as jax reads the number of devices once."""
    program = """
import jax
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from difflie.identify.elimination import residuals_and_jacobian

def residual(unknown, a):
    x, y = unknown
    return jnp.sin(a @ jnp.concatenate((x, y)))

a = jnp.arange(12.0).reshape(4, 3)
unknown = jnp.array((0.1, -0.2)), jnp.array((0.3,))
r, found = residuals_and_jacobian(residual, unknown, a)
z = a @ jnp.array((0.1, -0.2, 0.3))
assert len(found.sharding.device_set) == 2 and found.shape == (4, 3)
assert jnp.allclose(r, jnp.sin(z)) and jnp.allclose(found, jnp.cos(z)[:, None] * a)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
