import jax
import pytest


@pytest.fixture(autouse=True)
def strict_promotion():
    """No search may promote a precision or a rank silently, derivatives included."""
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield
