"""The wild block bootstrap: refits to residuals whose blocks change sign at random.

Each refit is to the fitted prediction less w_b r_b, with the residuals r_b of a block b of
correlated ones, made larger by sqrt(G / (G - 1)) for G blocks, and w_b = 1 or -1 with equal
probability. Noise keeps its size and colour within blocks, wherever they are. Cameron, Gelbach and
Miller 2008, appendix B; the blocks are those of the standard errors (`correlated_blocks`).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .bounded import Bounded
from .correlated_blocks import blocks
from .elimination import Windowed, Windows
from .fitting import Fit
from .levenberg_marquardt import LevenbergMarquardt
from .losses import Loss, Squares
from .minimiser import Minimiser
from .problem import Layout
from .recordings import DataError
from .search import Residual, evaluated
from .uncertainty import Rows


@dataclasses.dataclass(frozen=True)
class Bootstrap:
    """The values (count, p) of refits, of a fit with the values fitted (p,).

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


class _Shifted(Windowed, Bounded):
    """All residuals (k,) less a shift (k,), which stands for other noise, weighted by the loss."""

    loss: Loss

    def __call__(self, unknown: tuple, args: tuple) -> jax.Array:
        (x, _), ((parameters, _), shift) = unknown, args
        r = Residual(Squares())(unknown, args[0]) - shift
        measured = len(r) - parameters.residual(x).size
        return jnp.concatenate((self.loss(r[:measured]), r[measured:]))

    def windows(self, args: tuple) -> tuple[Windows, ...]:
        """Those of the problems."""
        return Residual(self.loss).windows(args[0])

    def bounded(self, args: tuple) -> tuple[NDArray, NDArray]:
        """Those of the parameters."""
        return Residual(self.loss).bounded(args[0])


def bootstrap(
    fit: Fit, count: int = 200, *, seed: int = 0, minimiser: Minimiser = LevenbergMarquardt()
) -> Bootstrap:
    """Refits to `count` other samples of the noise, from the fitted numbers.

    Priors are sampled with their own deviations. Raises DataError where no measurements have an
    order in time.
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
        moved = args, jnp.asarray(shift)
        off = evaluated(residual, begin, moved)
        cost = float(off @ off) / 2
        (x, _), _, done, _ = minimiser.minimised(residual, begin, moved, cost)
        found.append(np.asarray(fit.parameters.values(x)))
        converged.append(done)
    return Bootstrap(fit.values, np.array(found), np.array(converged))
