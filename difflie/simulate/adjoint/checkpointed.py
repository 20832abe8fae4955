"""Recursive checkpointing: few states are kept, the steps in between are recomputed.

The steps are the leaves of a tree: b_1 blocks of b_2 blocks of ... b_L steps. Reverse mode keeps,
at each level, the states at the starts of the parts of one block, b_1 + ... + b_L in all, and
recomputes a step once per level. With L levels n steps need L n^(1/L) states; with one more level
for each doubling of n, 2 log2(n). Griewank 1992, Optimization Methods and Software 1, also gives
the binomial schedule, which needs the fewest steps for a number of states: (s + r)! / s! r! steps
with s states, each recomputed r times. Here all parts of a block are alike, so that it is one
nested loop, whose derivatives exist in both modes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ... import native
from .adjoint import Adjoint, Steps

# States kept by default, for each doubling of the number of steps.
_STATES = 10


class RecursiveCheckpoint(Adjoint):
    """The derivative of `Direct`, with few states kept, in forward and reverse mode.

    steps: how many states reverse mode may keep at once; None for 10 log2(n) of n steps. More
    states mean fewer recomputed steps: with 2 n^(1/2) states every step is taken once more than by
    `Direct`, with 3 n^(1/3) twice more. The saved trajectory and the inputs are not counted. Raises
    ValueError where so few states are not enough; saved rows and the steps between them are
    separate loops.
    """

    steps: int | None = eqx.field(default=None, static=True)

    def __check_init__(self) -> None:
        if self.steps is not None and self.steps < 2:
            raise ValueError(f"RecursiveCheckpoint: {self.steps} steps; it keeps two or more")

    def loop(self, steps: Steps, start: Any, inputs: Any, shape: tuple[int, int]) -> Any:
        saved, every = shape
        total = saved * every
        states = self.steps or max(2, math.ceil(_STATES * math.log2(total)))
        of_rows, of_steps = branching(saved, every, states)

        # The innermost loop is the native one.
        native_steps = steps.small and bool(of_steps)
        native_rows = steps.small and not of_steps

        def row(state: Any, inputs: Any) -> Any:
            step = lambda s, x: (steps.step(s, x), None)  # noqa: E731
            return _tree(step, of_steps, every, state, inputs, native_steps)[0]

        def save(state: Any, inputs: Any) -> tuple[Any, Any]:
            state = row(state, inputs)
            return state, steps.read(state)

        return _tree(save, of_rows, saved, start, inputs, native_rows)


def _tree(
    body: Callable,
    lengths: tuple[int, ...],
    count: int,
    start: Any,
    inputs: Any,
    innermost_native: bool,
) -> Any:
    """`jax.lax.scan(body, start, inputs, count)`, as nested loops of these lengths.

    Excess iterations at the end do nothing.
    """
    turns = math.prod(lengths)
    if turns == count:
        rows = _folded(inputs, lengths)
        state, outputs = _nested(body, lengths, start, rows, innermost_native)
        return state, _unfolded(outputs, lengths, count)

    def maybe(carry: Any, x: Any) -> Any:
        k, state = carry

        def nothing(state: Any, x: Any) -> Any:
            _, shapes = jax.eval_shape(body, state, x)
            return state, jax.tree.map(lambda y: jnp.zeros(y.shape, y.dtype), shapes)

        state, y = jax.lax.cond(k < count, body, nothing, state, x)
        return (k + 1, state), y

    def filled(x: jax.Array) -> jax.Array:
        return jnp.concatenate((x, jnp.broadcast_to(x[-1:], (turns - count, *x.shape[1:]))))

    inputs = _folded(jax.tree.map(filled, inputs), lengths)
    begin = jnp.zeros((), jnp.int32), start
    (_, state), outputs = _nested(maybe, lengths, begin, inputs, innermost_native)
    return state, _unfolded(outputs, lengths, count)


def _nested(
    body: Callable, lengths: tuple[int, ...], start: Any, inputs: Any, innermost_native: bool
) -> Any:
    """Loops within loops; inputs and outputs have the leading axes `lengths`."""
    for level, length in enumerate(reversed(lengths)):
        if level == 0 and innermost_native:
            # A native loop recomputes intermediate values by itself.
            body = functools.partial(native.scan, body, length=length)
        else:
            body = functools.partial(jax.lax.scan, jax.checkpoint(body), length=length)
    return body(start, inputs)


def _folded(inputs: Any, lengths: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda x: x.reshape((*lengths, *x.shape[1:])), inputs)


def _unfolded(outputs: Any, lengths: tuple[int, ...], count: int) -> Any:
    return jax.tree.map(lambda y: y.reshape((-1, *y.shape[len(lengths) :]))[:count], outputs)


def branching(saved: int, every: int, states: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lengths (levels,) of the loops over rows, and over the steps of a row, for few states.

    As few levels as possible, then without padding if possible, then with the fewest states, at
    most `states`. Raises ValueError, with the fewest that suffice, where so few states are not
    enough.
    """
    fewest = math.inf
    for levels in range(saved.bit_length() + every.bit_length() + 1):
        for divided in (_divided, _filled):
            found = [
                (rows, steps)
                for k in range(levels + 1)
                if (rows := divided(saved, k)) is not None
                and (steps := divided(every, levels - k)) is not None
            ]
            if found:
                best = min(found, key=lambda pair: sum(pair[0]) + sum(pair[1]))
                kept = sum(best[0]) + sum(best[1])
                fewest = min(fewest, kept)
                if kept <= states:
                    return best
    raise ValueError(
        f"RecursiveCheckpoint: {states} steps are too few for a loop of {saved * every}, saved "
        f"every {every}; give {fewest} or more"
    )


@functools.lru_cache(maxsize=4096)
def _divided(n: int, levels: int) -> tuple[int, ...] | None:
    """So many factors of n, larger than 1, with the smallest sum; None if there are none."""
    if levels == 0:
        return () if n == 1 else None
    if levels == 1:
        return (n,) if n > 1 else None
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    # The largest comes first.
    first = [d for d in {*small, *(n // d for d in small)} if d < n and d**levels >= n]
    rests = [(d, _divided(n // d, levels - 1)) for d in first]
    found = [(d, *rest) for d, rest in rests if rest is not None]
    return min(found, key=sum, default=None)


def _filled(n: int, levels: int) -> tuple[int, ...] | None:
    """So many about equal numbers, larger than 1, whose product is n or a little more."""
    if levels == 0:
        return () if n == 1 else None
    if n == 1:
        return None
    near = int(n ** (1 / levels))
    length = max(2, near + (near**levels < n))
    rest = _filled(-(-n // length), levels - 1)
    return None if rest is None else (length, *rest)
