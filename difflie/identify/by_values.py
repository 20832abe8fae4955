"""Derivatives of residuals by the physical values of the parameters, instead of their free x."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..parameters import Parameters, SharedParameters
from .jacobian import residuals_and_jacobian
from .problem import Problem


def by_values(jacobian: NDArray, slopes: NDArray) -> NDArray:
    """The derivatives (k, n) by the values, from those by x and the values' slopes (n, n) by x.

    Zero for numbers on which residuals depend by rounding only, and for those so near to a bound
    that x does not change them.
    """
    rounding = np.sqrt(np.finfo(jacobian.dtype).eps)
    rows = np.abs(slopes).max(axis=1, initial=0)
    rows = np.where(rows > 0, rows, 1)[:, None]
    columns = np.abs(slopes / rows).max(axis=0, initial=0)
    columns = np.where(columns > 0, columns, 1)
    back = np.linalg.pinv(slopes / rows / columns)
    back = np.where(np.abs(back) > rounding * np.abs(back).max(initial=0), back, 0)
    back = back / columns[:, None] / rows.T
    found = jacobian @ back
    parts = np.linalg.norm(jacobian, axis=0) @ np.abs(back)
    return np.where(np.linalg.norm(found, axis=0) > rounding * parts, found, 0)


class _OfValues(eqx.Module):
    """All residuals (k,), those of the parameters' priors left out, of some of the values."""

    at: jax.Array

    def __call__(self, part: jax.Array, args: tuple) -> jax.Array:
        parameters, problems, values, own = args
        system = parameters.with_values(values.at[self.at].set(part))
        return jnp.concatenate([p.residual(system, o) for p, o in zip(problems, own, strict=True)])


def at_values(
    parameters: Parameters | SharedParameters,
    problems: tuple[Problem, ...],
    values: NDArray,
    own: tuple[jax.Array, ...],
    at: NDArray,
) -> NDArray:
    """The derivatives (k, len(at)) of all residuals by some of the values (p,), at the bounds too.

    Of the parameters' own priors they are zero: at a bound these tell nothing.
    """
    all_values = jnp.asarray(values)
    args = parameters, problems, all_values, own
    found = residuals_and_jacobian(_OfValues(jnp.asarray(at)), all_values[at], args)[1]
    priors = len(parameters.prior_names)
    return np.pad(np.asarray(found), ((0, priors), (0, 0)))
