"""Profile likelihood: the least cost of a fit for each value of one parameter.

The signed root of the likelihood ratio, in the noise that the standard errors allow for, is

    z(v) = sign(v - best) sqrt(2 (cost(v) - cost(best)) C / V),

with the variance V of the standard error and C that of the curvature, and is like Student's t. The
interval ends where |z| is its quantile; unlike an interval of standard errors it need not be
symmetric. Bates and Watts 1988, section 6.1; the factor C / V: Chandler and Bate 2007.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root_scalar
from scipy.special import stdtrit

from ..system.validation import nearest, shown
from .bounded import Bounded
from .elimination import Windowed, Windows
from .fitting import Fit
from .levenberg_marquardt import LevenbergMarquardt
from .losses import Loss
from .minimiser import Minimiser
from .recordings import DataError
from .search import Residual, evaluated

# A value is held to so small a part of its standard error.
_HELD = 1e-4
# Ends of an interval are looked for so many times as far as those by standard errors, and found to
# this part of a standard error.
_FAR, _NEAR = 30.0, 1e-3


@dataclasses.dataclass(frozen=True)
class Profile:
    """The profile of one parameter.

    values (g,) in its unit, increasing; z (g,): the signed roots of the likelihood ratio there;
    x (g, n): the free numbers of the other parameters' best. interval (2,): of the level, within
    bounds; at these, infinite for none, where the likelihood ratio stays below the limit.
    """

    name: str
    level: float
    interval: NDArray
    values: NDArray
    z: NDArray
    x: NDArray


class _Held(Windowed, Bounded):
    """All residuals (k,), and that of a value which is held by a much stronger one."""

    loss: Loss
    index: int = eqx.field(static=True)

    def __call__(self, unknown: tuple, args: tuple) -> jax.Array:
        (parameters, problems), value, deviation = args
        off = (parameters.values(unknown[0])[self.index] - value) / deviation
        others = Residual(self.loss)(unknown, (parameters, problems))
        return jnp.concatenate((others, off[None]))

    def windows(self, args: tuple) -> tuple[Windows, ...]:
        """Those of the problems."""
        return Residual(self.loss).windows(args[0])

    def bounded(self, args: tuple) -> tuple[NDArray, NDArray]:
        """Those of the parameters."""
        return Residual(self.loss).bounded(args[0])


def profile(
    fit: Fit,
    name: str,
    values: Sequence[float] = (),
    *,
    level: float = 0.95,
    minimiser: Minimiser = LevenbergMarquardt(),
) -> Profile:
    """The profile likelihood of a fitted parameter, and its interval; refits for each value.

    name: as in parameters.names; values: more places, in its unit and within bounds, at which the
    profile is wanted. level: of the interval, between 0 and 1. Raises DataError for an unknown
    name, for a parameter that is not identifiable, and for a level that is none.
    """
    names = fit.parameters.names
    if name not in names:
        raise DataError(f"no parameter is named {shown(name)}{nearest(name, names)}")
    k = names.index(name)
    best, error = fit.values[k], fit.standard_errors[k]
    if not 0 < error < np.inf:
        raise DataError(f"{name} has no standard error: the data does not determine it; fix it")
    if not 0 < level < 1:
        raise DataError(f"the level is {level}; it must be between 0 and 1")
    scale = np.sqrt(fit.information.inverse[k, k]) / error
    found: dict[float, tuple[float, NDArray]] = {best: (0.0, fit.x)}

    residual, args = _Held(fit.loss, k), (fit.parameters, fit.problems)
    own = tuple(jnp.asarray(o) for o in fit.own)

    def z(value: float) -> float:
        if value not in found:
            near = min(found, key=lambda other: abs(other - value))
            begin = jnp.asarray(found[near][1]), own
            held = args, jnp.asarray(value), jnp.asarray(_HELD * error)
            cost = float(jnp.sum(evaluated(residual, begin, held) ** 2)) / 2
            (x, states), *_ = minimiser.minimised(residual, begin, held, cost)
            cost = float(jnp.sum(evaluated(residual, (x, states), held)[:-1] ** 2)) / 2
            root = scale * np.sqrt(2 * max(cost - fit.cost, 0.0))
            found[value] = float(np.sign(value - best) * root), np.asarray(x)
        return found[value][0]

    limit = float(stdtrit(min(fit.freedom[k], 1e9), (1 + level) / 2))
    bounds = zip((-1, 1), (limits[k] for limits in fit.parameters.limits), strict=True)
    ends = [_end(z, best, error, side, limit, bound) for side, bound in bounds]
    for value in values:
        z(float(value))
    order = sorted(found)
    return Profile(
        name=name,
        level=level,
        interval=np.array(ends),
        values=np.array(order),
        z=np.array([found[v][0] for v in order]),
        x=np.array([found[v][1] for v in order]),
    )


def _end(
    z: Callable[[float], float], best: float, error: float, side: int, limit: float, bound: float
) -> float:
    """Where |z| is the limit, on one side (-1 or 1) of the best value; the bound if nowhere."""
    # No x reaches a bound: the last value is so near to it.
    room = abs(bound - best) - _NEAR * error
    inside, step = 0.0, limit * error
    while inside < room and inside < _FAR * limit * error:
        outside = min(step, room)
        if abs(z(best + side * outside)) > limit:

            def over(off: float) -> float:
                return abs(z(best + side * off)) - limit

            found = root_scalar(over, bracket=(inside, outside), xtol=_NEAR * error)
            return best + side * found.root
        inside, step = outside, 2 * step
    return bound
