"""The time loop of a problem and a method, compiled once for any number of steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ... import native
from ...constraints import Projection
from ...formulations import Inputs, formulated
from ...integrators import EmbeddedMuntheKaas, Method
from ...system.kinematic_tree import Tree
from .problem import Problem

# States of each run at which constraints and energy are looked at.
SAVED = 64


class Run(NamedTuple):
    """A motion in steps of h (s): how many there were, None for both where the method chose them.

    q (m, nq), v (m, nv): on the way. values (k,): of the quantities at the end; errors (k,): of
    these, relative to the scales; seconds: of the computation, without compilation. solved: whether
    every step was.
    """

    steps: int | None
    h: float | None
    q: jax.Array
    v: jax.Array
    values: np.ndarray
    errors: np.ndarray
    seconds: float
    solved: bool


def march(problem: Problem, method: Method) -> Callable[[int, float], Run]:
    """What makes a `Run` of so many steps, rounded to a multiple of `SAVED`, over a time in s."""
    p, own = problem, isinstance(method, EmbeddedMuntheKaas)

    def loop(tree: Tree, q: jax.Array, v: jax.Array, h: jax.Array, every: jax.Array, drive: Any):
        formulation = formulated(tree, method, Projection())
        inputs = Inputs(None if drive is None else lambda t, q, v: drive)

        @native.kernel
        def stepped(t: jax.Array, inner: Any) -> tuple:
            return formulation.step(t, inner, h, inputs)

        def one(_: Any, state: tuple) -> tuple:
            step, inner, fine = state
            inner, solved = stepped(step.astype(h.dtype) * h, inner)
            return step + 1, inner, fine & solved

        def save(state: tuple, _: None) -> tuple:
            state = jax.lax.fori_loop(0, every, one, state)
            return state, formulation.read(state[1])

        first = formulation.init(jnp.zeros_like(h), q, v, h, inputs)
        start = jnp.zeros((), jnp.int32), first, jnp.asarray(True)
        (_, _, fine), (qs, vs) = jax.lax.scan(save, start, length=SAVED)
        return (jnp.concatenate((q[None], qs)), jnp.concatenate((v[None], vs))), fine

    def arguments(h: float, every: int) -> tuple:
        counts = jnp.asarray(h, p.system.dtype), jnp.asarray(every, jnp.int32)
        return Tree.of(p.system), p.q, p.v, *counts, p.drive

    compiled = jax.jit(loop).lower(*arguments(1.0, 1)).compile()

    def run(steps: int, duration: float) -> Run:
        every = max(steps // SAVED, 1)
        h = duration / (every * SAVED)
        begin = time.perf_counter()
        (q, v), solved = jax.block_until_ready(compiled(*arguments(h, every)))
        seconds = time.perf_counter() - begin
        values = np.asarray(p.measured(q[-1], v[-1]), float)
        errors = np.abs(values - p.values) / p.scales
        solved = bool(solved) and bool(jnp.all(jnp.isfinite(v)))
        counts = (None, None) if own else (every * SAVED, h)
        return Run(*counts, q, v, values, errors, seconds, solved)

    return run
