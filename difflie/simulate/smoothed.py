"""Derivatives of means over random changes, for what has none yet that leads anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree


def smoothed(
    function: Callable[[Any], Any], spread: Any, *, samples: int = 64, seed: int = 0
) -> Callable[[Any], Any]:
    """The function f(x), with derivatives by x of its mean over Gaussian changes of x.

    x and f(x) are arrays, or pytrees of them. spread: the standard deviation s of the changes, a
    number for all or numbers of the shape of x, in its units. samples: how many changes w, each of
    which is tried in both directions, no fewer than x has numbers; seed: of their random numbers.
    The value is f(x) itself, the derivative the matrix J that fits best

        f(x + s w) - f(x - s w) = 2 J s w

    It is exact where f is linear, and with many samples that of the mean of f(x + s w) (Stein
    1981). So a hand that does not touch a box yet is told where to move: exact derivatives are zero
    there. f is called once for all samples, in a batch; by what it closes over derivatives are
    exact. Suh, Simchowitz, Zhang and Tedrake 2022. Raises ValueError for a spread that is not
    positive, or for too few samples.

    >>> import jax
    >>> kink = dl.smoothed(lambda x: jax.numpy.maximum(x, 0.0), 0.5, samples=1000)
    >>> print(jax.grad(kink)(-0.5).round(2), jax.grad(kink)(3.0).round(2))
    0.16 1.0
    """
    given = [s for s in jax.tree.leaves(spread) if not isinstance(s, Tracer)]
    if any(np.any(~(np.asarray(s) > 0)) for s in given):
        raise ValueError(f"smoothed: the spread is {spread}; give one above 0")

    def value(x: Any) -> Any:
        flat, as_x = ravel_pytree(x)
        n, there = len(flat), jax.lax.stop_gradient(flat)
        if samples < n:
            raise ValueError(f"smoothed: {samples} samples for {n} numbers; give as many or more")
        alike = jax.tree.structure(spread) == jax.tree.structure(x)
        each = spread if alike else jax.tree.map(lambda _: spread, x)
        widths = ravel_pytree(jax.tree.map(lambda s, a: s + 0 * a, each, as_x(there)))[0]
        w = jax.random.normal(jax.random.key(seed), (samples, n), flat.dtype)
        after, before = (
            jax.lax.stop_gradient(jax.vmap(lambda d: _flat(function, as_x(there + d)))(d * widths))
            for d in (w, -w)
        )
        slopes = jnp.linalg.solve(w.T @ w, w.T @ (after - before) / 2) / widths[:, None]
        out, as_out = ravel_pytree(function(as_x(there)))
        return as_out(out + (flat - there) @ slopes)

    return value


def _flat(function: Callable[[Any], Any], x: Any) -> jax.Array:
    return ravel_pytree(function(x))[0]
