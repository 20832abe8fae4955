import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def optimised():
    """Kernels are compiled as for users, with all optimisations."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)
