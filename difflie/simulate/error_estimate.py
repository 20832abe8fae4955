"""An estimate of the error of a run, from another run with shorter steps.

For a method of order p the error e of a run with steps h falls with h^p, so that with steps h / n

    y_h - y_{h/n} = (1 - n^-p) e,    |e| = n^p / (n^p - 1) |y_h - y_{h/n}|        (Richardson)

With n = 4 this hardly depends on the order. If contacts, stops, friction or events reduce the order
to r, the estimate is (1 - 4^-r) / (1 - 4^-p) times the error: from 3/4 to 4/3 of it for r >= 1, and
at least half of it for r = 1/2. With n = 2, half the work, the range would be 1/2 to 2, and an
error whose factor varies from step to step, as with impacts, could vanish by chance. A method of
another order would need no shorter steps, but there is none for every machine that satisfies the
same constraints. Hairer, Norsett and Wanner 1993, II.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..groups import FlatManifold
from ..system.provenance import Leafless

_FINER = 4


class ErrorEstimate(NamedTuple):
    """Estimated errors of a run at its m + 1 saved times; none is negative.

    q (m + 1, nv) in rad or m: |difference(q, exact q)| for each degree of freedom, as a tangent in
    body-fixed coordinates like v. v (m + 1, nv) in rad/s or m/s. t (m + 1,) in s: of the times,
    which are exact up to an event that ended the run. Where an error changes its sign a single
    entry may be far off: take the largest of several rows.
    """

    t: Float[Array, " saved"]
    q: Float[Array, "saved nv"]
    v: Float[Array, "saved nv"]

    def __repr__(self) -> str:
        name = type(self).__name__
        if not all(isinstance(a, jax.Array | np.ndarray) and a.size for a in self):
            return f"{name} without numbers"
        rows = f"{name} of {self.t.shape[-1]} saved rows"
        if any(isinstance(a, Tracer) for a in self):
            return f"{rows}, traced"
        q, v, t = (float(np.max(np.asarray(a))) for a in (self.q, self.v, self.t))
        return f"{rows}: largest of q {q:.3g} rad or m, of v {v:.3g} rad/s or m/s, of t {t:.3g} s"


class Refinement(Leafless):
    """How a run was made: a function that repeats it with steps n times as short.

    make(n): that run; order and method: of the method, its order and its name.
    """

    def __init__(
        self, make: Callable[[int], Any] | None = None, order: int = 1, method: str = ""
    ) -> None:
        self.make, self.order, self.method = make, order, method


def error_estimate(run: Any) -> ErrorEstimate:
    """The `ErrorEstimate` (m + 1, ...) of a `Trajectory`; see `Trajectory.error_estimate`."""
    make, order = run.refinement.make, run.refinement.order
    if make is None:
        raise ValueError(
            "error_estimate: this run does not know its system and its inputs, as it was read, "
            "changed, or returned by a transformation such as jax.jit or jax.vmap; call simulate "
            "with them again, and error_estimate of what it returns, within the same transformation"
        )
    _check_solved(run, "the run failed")
    finer = make(_FINER)
    _check_solved(finer, f"the run with steps of 1/{_FINER} of the length failed")
    factor = _FINER**order / (_FINER**order - 1)
    return ErrorEstimate(*_apart(run, finer, factor))


def _check_solved(run: Any, what: str) -> None:
    ok = run.result.ok
    if not isinstance(ok, Tracer) and not ok:
        raise ValueError(f"error_estimate: {what}, and has no error to estimate: {run.result}")


@eqx.filter_jit
def _apart(run: Any, finer: Any, factor: float) -> tuple[jax.Array, jax.Array, jax.Array]:
    manifold: FlatManifold = run.result.topology.manifold
    apart = finer.t - run.t, jax.vmap(manifold.difference)(run.q, finer.q), finer.v - run.v
    solved = run.result.ok & finer.result.ok
    t, q, v = (jnp.where(solved, factor * jnp.abs(a), jnp.nan) for a in apart)
    return t, q, v
