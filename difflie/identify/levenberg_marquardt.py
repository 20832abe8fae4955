"""Levenberg-Marquardt with exact Jacobians. Nocedal and Wright 2006, section 10.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import optimistix as optx

from .minimiser import Minimiser, Point

# Near a minimum steps are those of Gauss and Newton: the damping falls wherever the model is good.
_DAMPING = optx.ClassicalTrustRegion(
    high_cutoff=0.75, low_cutoff=0.25, high_constant=10.0, low_constant=0.1
)


class LevenbergMarquardt(Minimiser):
    """For parameters by the dozen: few steps, each with the derivatives (k, n) by all of them.

    No unknown has a unit: residuals are in standard deviations, positive values logarithms.
    """

    max_steps: int = eqx.field(static=True, default=100, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-8, kw_only=True)
    patience: int = eqx.field(static=True, default=3, kw_only=True)

    def begin(self, residual: Callable, unknown: Any, args: Any) -> Any:
        return unknown, _begun(self, residual, unknown, args), 0

    def step(self, residual: Callable, state: Any, args: Any) -> tuple[Point, Any]:
        unknown, inner, accepted = state
        unknown, inner, done, result = _stepped(self, residual, unknown, inner, args)
        now = int(inner.num_accepted_steps)
        failed = bool(done) and bool(result != optx.RESULTS.successful)
        point = Point(
            unknown,
            float(inner.f_info.as_min()),
            now > accepted,
            bool(done),
            optx.RESULTS[result] if failed else "",
        )
        return point, (unknown, inner, now)

    @property
    def _solver(self) -> optx.LevenbergMarquardt:
        solver = optx.LevenbergMarquardt(rtol=self.tolerance, atol=self.tolerance)
        return eqx.tree_at(lambda s: s.search, solver, _DAMPING)


class _WithAux(eqx.Module):
    residual: Callable

    def __call__(self, unknown: Any, args: Any) -> tuple[jax.Array, None]:
        return self.residual(unknown, args), None


@eqx.filter_jit
def _begun(method, residual, unknown, args):
    shape = jax.eval_shape(residual, unknown, args)
    return method._solver.init(
        _WithAux(residual), unknown, args, {}, (shape, None), None, frozenset()
    )


@eqx.filter_jit
def _stepped(method, residual, unknown, state, args):
    solver, function, tags = method._solver, _WithAux(residual), frozenset()
    unknown, state, _ = solver.step(function, unknown, args, {}, state, tags)
    done, result = solver.terminate(function, unknown, args, {}, state, tags)
    return unknown, state, done, result
