"""Symmetric matrices with positive eigenvalues, such as the stiffness of a bushing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..solvers.linear import product
from .transform import GIVE, Shape, Transform


class Definite(Transform):
    """A symmetric matrix (n, n) with positive eigenvalues: n (n + 1) / 2 free numbers.

    It is L L^T with the Cholesky factor L; the logarithms of its diagonal and its entries below are
    the free numbers. The components are the matrix entries on and above the diagonal, row by row.
    Pinheiro and Bates 1996.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        n = start.shape[0]
        diagonal, below = np.diag_indices(n), np.tril_indices(n, -1)
        factor = jnp.zeros_like(start).at[diagonal].set(jnp.exp(x[:n])).at[below].set(x[n:])
        return product(factor, factor.T)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        n = start.shape[0]
        factor = jnp.linalg.cholesky((value + value.T) / 2)
        return jnp.concatenate((jnp.log(jnp.diag(factor)), factor[np.tril_indices(n, -1)]))

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return value[np.triu_indices(start.shape[0])]

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        upper = jnp.zeros_like(start).at[np.triu_indices(start.shape[0])].set(components)
        return upper + jnp.triu(upper, 1).T

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return tuple(f"{leaf}[{i}, {j}]" for i, j in zip(*np.triu_indices(shape[0]), strict=True))

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "semidefinite"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        least = float(np.linalg.eigvalsh((value + value.T) / 2).min())
        if least > 0:
            return ""
        return f"has the eigenvalue {least:.3g}, and all must be positive; {GIVE}, or fix it"
