"""Batches that go through memory some problems at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.control.fddp import chunked_vmap


@pytest.mark.parametrize("count", [1, 5])
def test_some_at_a_time_is_all(count):
    """Guards the rest of a batch, results that are empty, and what is the same for all."""

    def f(x, shared, nothing):
        return x @ shared, nothing, jnp.sum(x)

    x = jnp.arange(3.0 * count).reshape(count, 3)
    args = x, jnp.eye(3) + 1, jnp.zeros((count, 0))
    along = 0, None, 0
    found = jax.vmap(lambda *args: chunked_vmap(f, *args), in_axes=along)(*args)
    expected = jax.vmap(f, in_axes=along)(*args)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
