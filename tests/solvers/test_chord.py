"""Newton's method with a given Jacobian: roots, failures, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.solvers.corrections import Chord
from difflie.solvers.root import root


def solved(p, guess=(1.0, 1.0), rough=0.0):
    def residual(x):
        return jnp.stack((x[0] ** 2 + x[1] ** 2 - p[0], jnp.sin(x[0]) - x[1] * p[1]))

    def jacobian(x, exact):
        return jax.jacfwd(residual)(x) + jnp.where(exact, 0, rough)

    return root(residual, jnp.asarray(guess, p.dtype), Chord(jacobian))


@pytest.mark.slow("0.0")
@pytest.mark.parametrize("rough", [0.0, 0.05])
def test_roots_and_their_derivatives(rough):
    p = jnp.asarray([2.0, 0.8])
    x, found = jax.jit(lambda p: solved(p, rough=rough))(p)
    assert found
    np.testing.assert_allclose(x[0] ** 2 + x[1] ** 2, 2.0, rtol=1e-15)
    np.testing.assert_allclose(jnp.sin(x[0]), 0.8 * x[1], rtol=1e-15)
    columns = [jax.grad(lambda p, k=k: solved(p, rough=rough)[0][k])(p) for k in range(2)]
    forward = jax.jacfwd(lambda p: solved(p, rough=rough)[0])(p)
    np.testing.assert_allclose(forward, jnp.stack(columns), rtol=1e-13)
    by_x = np.array([[2 * x[0], 2 * x[1]], [np.cos(x[0]), -0.8]])
    by_p = np.array([[-1, 0], [0, -x[1]]])
    np.testing.assert_allclose(forward, -np.linalg.solve(by_x, by_p), rtol=1e-12)


def test_what_has_no_root_is_not_found_and_stays():
    x, found = solved(jnp.asarray([-10.0, 0.0]))
    np.testing.assert_array_equal(x, (1.0, 1.0))
    assert not found


def test_one_of_a_batch_without_a_root_leaves_the_others():
    p = jnp.asarray([[2.0, 0.8], [-10.0, 0.0]])
    x, found = jax.vmap(solved)(p)
    np.testing.assert_array_equal(found, (True, False))
    np.testing.assert_array_equal(x[0], solved(p[0])[0])


def test_single_precision():
    x, found = solved(jnp.asarray([2.0, 0.8], jnp.float32))
    assert found and x.dtype == jnp.float32
    np.testing.assert_allclose(x, solved(jnp.asarray([2.0, 0.8]))[0], rtol=1e-6)
