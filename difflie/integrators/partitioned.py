"""Checks for methods that move configurations and velocities one after the other."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..groups import Euclidean, FlatProduct, Manifold, Product


def two_factors(method: str, manifold: Manifold) -> tuple[Manifold, ...]:
    """Q and E of Product((Q, E)). Raises TypeError for other manifolds."""
    if (
        not isinstance(manifold, Product)
        or len(manifold.factors) != 2
        or not _is_euclidean(manifold.factors[1])
    ):
        raise TypeError(
            f"{method} needs the manifold Product((Q, E)) of a configuration space Q and a "
            f"Euclidean space E of its velocities, and got {manifold}; for first-order systems use "
            "another method"
        )
    return manifold.factors


def _is_euclidean(manifold: Manifold) -> bool:
    if isinstance(manifold, Product | FlatProduct):
        return all(_is_euclidean(m) for m in manifold.factors)
    return isinstance(manifold, Euclidean)


def check_alike(method: str, rate: Any, v: Any) -> None:
    """Raises TypeError unless the rate of q has the shapes of v."""
    wanted, actual = _shapes(rate), _shapes(v)
    if wanted != actual:
        raise TypeError(
            f"{method} moves q with the rate v, so the two must look alike: the field "
            f"gives rates of q of the shapes {wanted}, and v has {actual}"
        )


def _shapes(tree: Any) -> Any:
    return jax.tree.map(jnp.shape, tree)
