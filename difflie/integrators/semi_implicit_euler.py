"""Semi-implicit Euler: the velocity first, then the configuration with the new velocity."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..groups import Euclidean, FlatProduct, Manifold, Product
from .method import Field, FieldMethod, Scalar, in_precision_of


class SemiImplicitEuler(FieldMethod):
    """Order 1, one evaluation: v' = v + h a(t, q, v), then q' = q . exp(h v').

    For y = (q, v) on Product((Q, E)), where v in the vector space E is the rate of q in Q, and
    field(t, y) = (v, a). Also called symplectic Euler: where E conjugates Q in a separable
    Hamiltonian system it is symplectic. Hairer, Lubich and Wanner 2006, I.1.2.
    """

    @property
    def order(self) -> int:
        return 1

    @property
    def stages(self) -> int:
        return 1

    def step(self, manifold: Manifold, field: Field, t: Scalar, y: Any, h: Scalar) -> Any:
        configurations, velocities = _two_factors(manifold)
        t, h = in_precision_of(y, t, h)
        q, v = y
        rate, a = field(t, y)
        _check_alike(rate, v)
        v = velocities.retract(v, jax.tree.map(lambda a: h * a, a))
        return configurations.retract(q, jax.tree.map(lambda v: h * v, v)), v


def _two_factors(manifold: Manifold) -> tuple[Manifold, ...]:
    if (
        not isinstance(manifold, Product)
        or len(manifold.factors) != 2
        or not _is_euclidean(manifold.factors[1])
    ):
        raise TypeError(
            "SemiImplicitEuler needs the manifold Product((Q, E)) of a configuration space Q and a "
            f"Euclidean space E of its velocities, and got {manifold}; for first-order systems use "
            "another method"
        )
    return manifold.factors


def _is_euclidean(manifold: Manifold) -> bool:
    if isinstance(manifold, Product | FlatProduct):
        return all(_is_euclidean(m) for m in manifold.factors)
    return isinstance(manifold, Euclidean)


def _check_alike(rate: Any, v: Any) -> None:
    wanted, given = _shapes(rate), _shapes(v)
    if wanted != given:
        raise TypeError(
            "SemiImplicitEuler moves q with the rate v, so the two must look alike: the field "
            f"gives rates of q of the shapes {wanted}, and v has {given}"
        )


def _shapes(tree: Any) -> Any:
    return jax.tree.map(jnp.shape, tree)
