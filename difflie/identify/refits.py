"""What refits tell of a fit: the wild block bootstrap, profile likelihood, runs that are left out.

Each refit of the bootstrap is to the fitted prediction less w_b r_b, with the residuals r_b of a
block b of correlated ones, made larger by sqrt(G / (G - 1)) for G blocks, and w_b = 1 or -1 with
equal probability. Noise keeps its size and colour within blocks, wherever they are. Cameron,
Gelbach and Miller 2008, appendix B; the blocks are those of the standard errors (`statistics`).

The profile of a parameter is the least cost of the fit for each value of it. The signed root of the
likelihood ratio, in the noise that the standard errors allow for, is

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

from ..system.validation import format_value, nearest, warn
from .fitting import Fit
from .least_squares import LevenbergMarquardt, Minimiser
from .losses import Squares
from .problem import Layout
from .recordings import DataError, Recording, refuse
from .search import Residual, evaluated
from .statistics import Rows, blocks
from .validation import Trial, Validation

# A value is held to so small a part of its standard error.
_HELD = 1e-4
# Ends of an interval are looked for so many times as far as those by standard errors, and found to
# this part of a standard error.
_FAR, _NEAR = 30.0, 1e-3


@dataclasses.dataclass(frozen=True)
class Bootstrap:
    """The values (count, p) of refits, of a fit with the values fitted (p,), in their units.

    converged (count,): whether each refit has.
    """

    fitted: NDArray
    values: NDArray
    converged: NDArray

    @property
    def standard_errors(self) -> NDArray:
        """The root mean square (p,) of the refits' departures from the fit."""
        return np.sqrt(np.mean((self.values - self.fitted) ** 2, axis=0))

    def intervals(self, level: float = 0.95) -> NDArray:
        """Basic bootstrap intervals (p, 2): the fit less quantiles of the refits' departures.

        Davison and Hinkley 1997, equation 5.6.
        """
        tails = (1 + level) / 2, (1 - level) / 2
        return (self.fitted - np.quantile(self.values - self.fitted, tails, axis=0)).T


class _Shifted(Residual):
    """All residuals (k,) less a shift (k,), which stands for other noise, weighted by the loss."""

    def __call__(self, unknown: tuple, args: tuple) -> jax.Array:
        parameters, problems, shift = args
        r = Residual(Squares())(unknown, (parameters, problems)) - shift
        measured = len(r) - parameters.residual(unknown[0]).size
        return jnp.concatenate((self.loss(r[:measured]), r[measured:]))


def bootstrap(
    fit: Fit, count: int = 200, *, seed: int = 0, minimiser: Minimiser = LevenbergMarquardt()
) -> Bootstrap:
    """Refits to so many other samples of the noise, from the fitted numbers.

    count: how many; seed: of the samples; minimiser: as of `fit`. Priors are sampled with their own
    deviations. Raises DataError where no measurements have an order in time.
    """
    rows = Rows.of(fit.problems, len(fit.parameters.prior_names))
    if not rows.ordered.any():
        raise DataError("no measurements have an order in time; bootstrap a fit to recordings")
    begin = jnp.asarray(fit.x), tuple(jnp.asarray(o) for o in fit.own)
    args = fit.parameters, fit.problems
    r = np.asarray(evaluated(Residual(Squares()), begin, args))
    layout = Layout(*(part[rows.ordered] for part in rows.layout))
    each = blocks(np.asarray(fit.loss.influence(jnp.asarray(r[rows.ordered]))[0]), layout)
    groups = int(each.max()) + 1
    size = np.sqrt(groups / max(groups - 1, 1))
    random, residual, found, converged = np.random.default_rng(seed), _Shifted(fit.loss), [], []
    for _ in range(count):
        sign, shift = size * random.choice((-1.0, 1.0), groups), np.zeros(len(r))
        shift[rows.ordered] = r[rows.ordered] * (1 - sign[each])
        shift[rows.prior] = random.normal(size=int(rows.prior.sum()))
        moved = *args, jnp.asarray(shift)
        off = evaluated(residual, begin, moved)
        (x, _), _, done, _ = minimiser.minimised(residual, begin, moved, float(off @ off) / 2)
        found.append(np.asarray(fit.parameters.values(x)))
        converged.append(done)
    return Bootstrap(fit.values[: len(fit.parameters.names)], np.array(found), np.array(converged))


@dataclasses.dataclass(frozen=True)
class Profile:
    """The profile of one parameter, of this name.

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


class _Held(Residual):
    """All residuals (k,), and that of a value which is held by a much stronger one."""

    index: int = eqx.field(static=True)

    def __call__(self, unknown: tuple, args: tuple) -> jax.Array:
        parameters, problems, value, deviation = args
        off = (parameters.values(unknown[0])[self.index] - value) / deviation
        return jnp.append(super().__call__(unknown, (parameters, problems)), off)


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
    profile is wanted. level: of the interval, between 0 and 1. minimiser: as of `fit`. Raises
    DataError for an unknown name, for a parameter that is not identifiable, and for a level that is
    none.
    """
    names = fit.parameters.names
    if name not in names:
        raise DataError(f"no parameter is named {format_value(name)}{nearest(name, names)}")
    k = names.index(name)
    best, error = fit.values[k], fit.standard_errors[k]
    refuse(
        name,
        (not 0 < error < np.inf, "no standard error: the data does not determine it; fix it"),
        (not 0 < level < 1, f"the level is {level}; it must be between 0 and 1"),
    )
    scale = np.sqrt(fit.information.inverse[k, k]) / error
    found: dict[float, tuple[float, NDArray]] = {best: (0.0, fit.x)}

    residual, args = _Held(fit.loss, k), (fit.parameters, fit.problems)
    own = tuple(jnp.asarray(o) for o in fit.own)

    def z(value: float) -> float:
        if value not in found:
            near = min(found, key=lambda other: abs(other - value))
            begin = jnp.asarray(found[near][1]), own
            held = *args, jnp.asarray(value), jnp.asarray(_HELD * error)
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


def leave_one_out(
    trials: Sequence[Trial], fitted: Callable[[list[Recording]], Fit]
) -> list[Validation]:
    """Leave-one-out cross-validation: each recording predicted by a fit to all others.

    fitted(recordings): the fit to some of the recordings. A recording whose others do not suffice
    for a fit is skipped with a warning; fits that did not converge are warned of too.
    """
    validations = []
    for k, trial in enumerate(trials):
        others = [t.recording for t in (*trials[:k], *trials[k + 1 :])]
        try:
            without = fitted(others)
        except DataError as error:
            warn(f"without {trial.recording.name}: {error}")
            continue
        if not without.converged:
            warn(f"without {trial.recording.name}: {without.message}")
        validations.append(trial.validation(without.system))
    return validations
