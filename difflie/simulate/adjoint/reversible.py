"""The reversible adjoint: states are recovered by stepping back.

A time-symmetric method with the step -h leads from the end of a step to its start, up to rounding.
So reverse mode keeps the end only; at every recovered state the step is taken forward and its
transposed derivative applied to the cotangents. Sanz-Serna 2016, SIAM Review 58.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ... import native
from ...integrators import METHODS, Method
from ..result import Reconstruction
from .adjoint import Adjoint, Steps, rows_of_steps


class Reversible(Adjoint):
    """Reverse mode whose memory does not grow with the number of steps, by stepping back.

    For time-symmetric methods (`Method.time_symmetric`) on machines that do not dissipate: the
    derivative is that of `Direct` up to rounding errors. Damping is undone on the way back, which
    amplifies rounding errors. So the result of the simulation carries the distance from the
    recovered start to the true one (`Result.reconstruction`). Above the tolerance the result
    reports it and is not ok, and derivatives are NaN; use `RecursiveCheckpoint` then. The distance
    is the largest difference in q and v (and what else is saved), in units of 1 or, if larger, of
    the largest entry. The tolerance () has no unit; None is the square root of rounding, 1.5e-8 in
    double and 3.5e-4 in single precision. Raises ValueError for one that is not positive, and for
    other methods.

    Computing the distance costs as much as the motion once more, unless it is unused inside
    `jax.jit`. Forward mode, also in Hessian-vector products, raises a TypeError, as JAX has none
    for functions with a custom reverse mode.
    """

    tolerance: float | None = eqx.field(default=None, static=True)

    def __check_init__(self) -> None:
        if self.tolerance is not None and not self.tolerance > 0:
            raise ValueError(f"Reversible: the tolerance is {self.tolerance}; it must be positive")

    def check(self, method: Method, symmetric: bool, remembering: Sequence[Any] = ()) -> None:
        if not symmetric:
            known = ", ".join(m.name for m in METHODS if m.time_symmetric)
            raise ValueError(
                f"simulate: adjoint=Reversible() steps back, and {method.name} is not symmetric in "
                f"time for this system; use RecursiveCheckpoint(), or a method that is: {known} "
                "(on systems with constraints Rattle alone)"
            )

        for actuator in remembering:
            raise ValueError(
                f"simulate: adjoint=Reversible() steps back, and what {actuator} remembers is not "
                "found again; use RecursiveCheckpoint()"
            )

    def loop(self, steps: Steps, start: Any, inputs: Any, shape: tuple[int, int]) -> Any:
        row = jax.tree.map(lambda a: a[0, 0], inputs)
        step, constants = native.without_closure(steps.step, start, row)
        back, of_back = native.without_closure(steps.back, start, row)
        loop = native.scan if steps.small else jax.lax.scan

        def forth(constants: Any, start: Any, inputs: Any) -> Any:
            turn = functools.partial(step, constants)
            return rows_of_steps(turn, steps, start, inputs, shape)

        def undone(constants, of_back, start, end, inputs, on_end, on_saved) -> Any:
            """The cotangents of the constants, the start and the inputs, from those of the rest."""
            varied, fixed = _split(constants)

            def undo(carry: Any, row: Any) -> tuple[Any, Any]:
                after, on_state, on_constants = carry
                before = back(of_back, after, row)
                state, counts = _split(before)
                row, whole = _split(row)

                def again(varied: Any, state: Any, row: Any) -> Any:
                    given = eqx.combine(varied, fixed)
                    state, row = eqx.combine(state, counts), eqx.combine(row, whole)
                    return _split(step(given, state, row))[0]

                more, on_state, on_row = jax.vjp(again, varied, state, row)[1](on_state)
                return (before, on_state, jax.tree.map(jnp.add, on_constants, more)), on_row

            def undo_row(carry: Any, rows: Any) -> tuple[Any, Any]:
                (after, on_state, on_constants), (on_saved, rows) = carry, rows
                state, counts = _split(after)

                def read(state: Any) -> Any:
                    return _split(steps.read(eqx.combine(state, counts)))[0]

                on_state = jax.tree.map(jnp.add, on_state, *jax.vjp(read, state)[1](on_saved))
                carry = after, on_state, on_constants
                return loop(undo, carry, rows, shape[1], reverse=True)

            carry = end, on_end, jax.tree.map(jnp.zeros_like, varied)
            (found, on_start, on_constants), on_inputs = jax.lax.scan(
                undo_row, carry, (on_saved, inputs), length=shape[0], reverse=True
            )
            good = self._reconstruction(steps, found, start).good
            on_all = on_constants, on_start, on_inputs
            return jax.tree.map(lambda x: jnp.where(good, x, jnp.nan), on_all)

        @jax.custom_vjp
        def run(constants: Any, of_back: Any, start: Any, inputs: Any) -> Any:
            return forth(constants, start, inputs)

        def keep(constants: Any, of_back: Any, start: Any, inputs: Any) -> Any:
            end, saved = run(constants, of_back, start, inputs)
            return (end, saved), (constants, of_back, start, end, inputs)

        def pull_back(kept: Any, cotangents: Any) -> Any:
            on_constants, on_start, on_inputs = undone(*kept, *_split(cotangents)[0])
            return on_constants, None, on_start, on_inputs

        run.defvjp(keep, pull_back)
        return run(constants, of_back, start, inputs)

    def reconstruction(
        self, steps: Steps, start: Any, end: Any, inputs: Any, shape: tuple[int, int]
    ) -> Reconstruction:
        """The recovered start by stepping back, without derivatives."""

        def undo(state: Any, row: Any) -> tuple[Any, None]:
            return steps.back(state, row), None

        def undo_row(state: Any, rows: Any) -> tuple[Any, None]:
            loop = native.scan if steps.small else jax.lax.scan
            return loop(undo, state, rows, shape[1], reverse=True)[0], None

        def undone(end: Any, inputs: Any) -> Any:
            return jax.lax.scan(undo_row, end, inputs, length=shape[0], reverse=True)[0]

        return jax.lax.stop_gradient(self._reconstruction(steps, undone(end, inputs), start))

    def _reconstruction(self, steps: Steps, found: Any, start: Any) -> Reconstruction:
        pairs = zip(*(jax.tree.leaves(steps.read(state)) for state in (found, start)), strict=True)
        far = [
            jnp.max(jnp.abs(x - y), initial=0) / jnp.max(jnp.abs(y), initial=1) for x, y in pairs
        ]
        distance = jnp.max(jnp.stack(far))
        tolerance = self.tolerance or float(jnp.finfo(distance.dtype).eps) ** 0.5
        return Reconstruction(distance, jnp.asarray(tolerance, distance.dtype))


_split = functools.partial(eqx.partition, filter_spec=eqx.is_inexact_array)
