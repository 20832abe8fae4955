"""Levenberg-Marquardt with exact Jacobians, damped by column. More 1978."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax.flatten_util import ravel_pytree

from .minimiser import Minimiser, Point

# The damping falls wherever the model is good: near a minimum steps are Gauss-Newton steps.
_DAMPING = optx.ClassicalTrustRegion(
    high_cutoff=0.75, low_cutoff=0.25, high_constant=10.0, low_constant=0.1
)
# The initial damping, in squares of the columns' lengths.
_FIRST = 0.1


class LevenbergMarquardt(Minimiser):
    """For tens of parameters: few steps, each with the Jacobian (k, n).

    Each unknown is damped by the largest length that its column of the Jacobian has had, so that
    units and sizes of unknowns do not matter. Moré 1978.
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
        return eqx.tree_at(lambda s: (s.search, s.descent), solver, (_DAMPING, _Damped()))


class _Rows(eqx.Module):
    """The triangle (m, n + 1) of the Jacobian beside the residuals, and the columns' lengths (n,).

    y: unknowns of the same structure.
    """

    triangle: jax.Array
    lengths: jax.Array
    y: Any


class _Damped(optx.AbstractDescent):
    """min |J d - r|^2 + lambda |D d|^2 for the step -d, with D of the columns' lengths."""

    def init(self, y: Any, f_info_struct: Any) -> _Rows:
        n = ravel_pytree(y)[0].size
        rows = min(f_info_struct.residual.size, n + 1)
        dtype = f_info_struct.residual.dtype
        return _Rows(jnp.zeros((rows, n + 1), dtype), jnp.zeros(n, dtype), y)

    def query(self, y: Any, f_info: Any, state: _Rows) -> _Rows:
        whole = jnp.column_stack((f_info.jac.as_matrix(), f_info.residual))
        triangle = jnp.linalg.qr(whole, mode="r")
        lengths = jnp.linalg.norm(triangle[:, :-1], axis=0)
        return _Rows(triangle, jnp.maximum(state.lengths, lengths), y)

    def step(self, step_size: jax.Array, state: _Rows) -> tuple[Any, optx.RESULTS]:
        lengths = jnp.where(state.lengths > 0, state.lengths, 1)
        least = jnp.finfo(lengths.dtype).eps
        damping = jnp.sqrt(_FIRST / jnp.maximum(step_size, least)) * lengths
        rows = jnp.concatenate((state.triangle[:, :-1], jnp.diag(damping)))
        target = jnp.concatenate((state.triangle[:, -1], jnp.zeros_like(lengths)))
        q, r = jnp.linalg.qr(rows)
        d = jax.scipy.linalg.solve_triangular(r, q.T @ target)
        return ravel_pytree(state.y)[1](-d), optx.RESULTS.successful


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
