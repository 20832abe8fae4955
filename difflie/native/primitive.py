"""The jax primitive of native calls: a loop, for one or for a batch, and what jax does with it.

A batch becomes vector lanes in `cpu.vectorized_loop`, and threads in `gpu.cuda`.

It is differentiated as the loop that it is, so that its derivatives are native calls as well: the
tangents take the states at the start of every iteration, and compute again what an iteration needs
inside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

from . import dump, loop_derivatives
from .attempts import available
from .collector import collector_off
from .cpu import vectorized_loop
from .gpu import launch
from .jaxprs import with_traced_constants
from .loop import Loop
from .loop_body import Traced
from .private import (
    ClosedJaxpr,
    Context,
    Primitive,
    Value,
    Zero,
    alike,
    define,
    instantiate_zeros,
    is_undefined_primal,
    shaped,
)

_native_p = Primitive("native")
# So many tangents are computed in one program: more make long ones.
_TANGENTS = 4


def bind(
    loop: Loop, args: Sequence[Any], batch: int | None = None, batched_args: Sequence[bool] = ()
) -> list[Any]:
    """Runs a loop, on the arguments it needs; those in `batched_args` have the axis of `batch`."""
    batched_args = list(batched_args) or [False] * len(args)
    loop, _, keep = loop_derivatives.needed(loop, [True] * len(loop.body.out_avals))
    args = [x for x, k in zip(args, keep, strict=True) if k]
    batched_args = tuple(a for a, k in zip(batched_args, keep, strict=True) if k)
    if batch is not None and not any(batched_args):
        results = bind(loop, args)
        return [jnp.broadcast_to(r, (batch, *r.shape)) for r in results]
    if not args:
        return loop.apply()  # of known numbers alone
    return _call(*args, loop=loop, batch=batch, batched_args=batched_args)


def call_once(closed: ClosedJaxpr, args: Sequence[Any] = ()) -> list[Any]:
    """The results of a traced function by a native call."""
    closed, constants = with_traced_constants(closed)
    inputs = [*constants, *args]
    ones = (1,) * len(inputs), (1,) * len(closed.out_avals)
    loop = Loop(Traced(closed), 0, 0, *ones, length=1, call=call_once)
    return [y[0] for y in bind(loop, [jnp.asarray(x)[None] for x in inputs])]


def _apply(*args: Any, loop: Loop, batch: int | None, batched_args: tuple[bool, ...]) -> list[Any]:
    """The results the ordinary way, for one or for a batch."""
    return loop.applied(batch, batched_args)(*args)


def _call(*args: Any, **params: Any) -> list[Any]:
    """Binds the primitive. All arguments vary from device to device if any does.

    So the cotangents of one that is the same on all devices are summed over them.
    """
    return _native_p.bind(*alike(args), **params)


def _shapes(*args: Any, loop: Loop, batch: int | None, batched_args: tuple[bool, ...]) -> list[Any]:
    lead = () if batch is None else (batch,)
    return [
        shaped((*lead, *shape), a.dtype, args)
        for shape, a in zip(loop.out_shapes, loop.body.out_avals, strict=True)
    ]


def _differentiate(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    loop: Loop,
    batch: int | None,
    batched_args: tuple,
) -> tuple[list[Any], list[Any]]:
    flags = list(batched_args) or [False] * len(primals)
    active, active_results = loop_derivatives.activity(
        loop, [not isinstance(t, Zero) for t in tangents]
    )
    points = list(zip(primals, flags, strict=True))
    every = zip(tangents, flags, active, strict=True)
    directions = [(instantiate_zeros(t), f) if is_active else None for t, f, is_active in every]
    differentiate = forward_only_jvp if loop.forward_only else _one_after_the_other
    results, derivative = differentiate(loop, batch, points, directions, active, active_results)
    derivative = iter(derivative)
    result_tangents = [
        next(derivative) if c else Zero(jax.typeof(r).to_tangent_aval())
        for r, c in zip(results, active_results, strict=True)
    ]
    return results, result_tangents


# An argument of a loop: its value, and whether it has the axis of the batch.
_Argument = tuple[Any, bool]


def _one_after_the_other(
    loop: Loop,
    batch: int | None,
    points: list[_Argument],
    directions: list[_Argument | None],
    active: list[bool],
    active_results: list[bool],
) -> tuple[list[Any], list[Any]]:
    """The results and their tangents; the second loop is linear in the directions."""
    n, m, outs = loop.consts, loop.consts + loop.carry, len(active_results)
    with collector_off():
        saving, tangents = loop_derivatives.jvp(loop, active, active_results)
    tangents, _, needed = loop_derivatives.needed(tangents, [True] * len(tangents.body.out_avals))
    # Of the states at the start of the iterations, those that tangents need are saved.
    first = n + sum(active[:m])
    states = needed[first : first + loop.carry]
    saving, _, used = loop_derivatives.needed(saving, [*[True] * outs, *states])
    results = _bound(saving, batch, [x for x, u in zip(points, used, strict=True) if u])
    saved = iter(results[outs:])
    rows = [(next(saved), batch is not None) if s else None for s in states]
    arguments = [*points[:n], *_some(directions[:n]), *_some(directions[n:m])]
    arguments += [*rows, *points[m:], *_some(directions[m:])]
    needed_ones = _some([x if k else None for x, k in zip(arguments, needed, strict=True)])
    return results[:outs], _bound(tangents, batch, needed_ones)


def forward_only_jvp(
    loop: Loop,
    batch: int | None,
    points: list[_Argument],
    directions: list[_Argument | None],
    active: list[bool],
    active_results: list[bool],
) -> tuple[list[Any], list[Any]]:
    """The results, and their tangents by a loop of both, which saves nothing.

    The results come from a loop of their own, as jax wants them known before the directions.
    """
    n, m = loop.consts, loop.consts + loop.carry
    parts = slice(n), slice(n, m), slice(m, None)
    arguments = [x for p in parts for x in (*points[p], *_some(directions[p]))]
    own, moved = loop.carry, sum(active_results[: loop.carry])
    middle = own + moved
    end = middle + len(active_results) - own
    wanted = [own <= i < middle or i >= end for i in range(end + sum(active_results) - moved)]
    with collector_off():
        both = loop_derivatives.with_tangents(loop, active, active_results)
    reduced, left, keep = loop_derivatives.needed(both, wanted)
    read = _some([x if k else None for x, k in zip(arguments, keep, strict=True)])
    results = iter(_bound(reduced, batch, read))
    computed = [next(results) if is_left else None for is_left in left]
    return _bound(loop, batch, points), [y for y, w in zip(computed, wanted, strict=True) if w]


def _some(items: Sequence[_Argument | None]) -> list[_Argument]:
    return [x for x in items if x is not None]


def _bound(loop: Loop, batch: int | None, arguments: Sequence[_Argument]) -> list[Any]:
    return bind(loop, [x for x, _ in arguments], batch, [a for _, a in arguments])


def _transpose(
    cotangents: Sequence[Any], *args: Any, loop: Loop, batch: int | None, batched_args: tuple
) -> list[Any]:
    loop, left, keep = loop_derivatives.needed(loop, [not isinstance(c, Zero) for c in cotangents])
    n, m = loop.consts, loop.consts + loop.carry
    places = [i for i, k in enumerate(keep) if k]
    inputs = [(args[i], batched_args[i] if batched_args else False) for i in places]
    linear = [is_undefined_primal(x) for x, _ in inputs]
    with collector_off():
        back = loop_derivatives.transposed(loop, linear)
    lead = () if batch is None else (batch,)
    batched = batch is not None
    on = [(instantiate_zeros(c), batched) for c, u in zip(cotangents, left, strict=True) if u]
    sums = [
        (jnp.zeros((*lead, *a.shape), a.dtype), batched)
        for a, is_linear in zip(loop.body.in_avals[:n], linear[:n], strict=True)
        if is_linear
    ]
    known = [None if is_linear else x for x, is_linear in zip(inputs, linear, strict=True)]
    arguments = [*_some(known[:n]), *on[: loop.carry], *sums]
    arguments += [*_some(known[m:]), *on[loop.carry :]]
    on_inputs = _call(
        *(x for x, _ in arguments),
        loop=back,
        batch=batch,
        batched_args=tuple(a for _, a in arguments),
    )
    on_carry, on_consts = iter(on_inputs[: loop.carry]), iter(on_inputs[loop.carry : back.carry])
    on_rows = iter(on_inputs[back.carry :])
    placed: list[Any] = [None] * len(args)
    for k, (i, (_, is_batched), is_linear) in enumerate(zip(places, inputs, linear, strict=True)):
        carried = n <= k < m
        if is_linear or carried:
            cotangent = next(on_carry if carried else on_consts if k < n else on_rows)
            if is_linear:
                one = batch is None or is_batched
                placed[i] = cotangent if one else jnp.sum(cotangent, axis=0)
    return placed


def _batch(
    args: Sequence[Any], dims: Sequence[Any], *, loop: Loop, batch: int | None, batched_args: tuple
) -> tuple[list[Any], list[int]]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    batched = [d is not None for d in dims]
    args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    tangents = loop.directions
    if size > 1 and tangents and all(d or not b for b, d in zip(batched, tangents, strict=True)):
        return _many_directions(
            args, batched, size, loop=loop, batch=batch, batched_args=batched_args
        )
    if batch is None:
        results = _call(*args, loop=loop, batch=size, batched_args=tuple(batched))
        return results, [0] * len(results)
    # A batch of batches is one long one.
    lead = (size, batch)
    for i, (outer, inner) in enumerate(zip(batched, batched_args, strict=True)):
        shape = loop.in_shapes[i]
        if inner and not outer:
            args[i] = args[i][None]
        elif outer and not inner:
            args[i] = args[i][:, None]
        if outer or inner:
            args[i] = jnp.broadcast_to(args[i], (*lead, *shape)).reshape((math.prod(lead), *shape))
    both = tuple(outer or inner for outer, inner in zip(batched, batched_args, strict=True))
    results = _call(*args, loop=loop, batch=math.prod(lead), batched_args=both)
    return [r.reshape((*lead, *r.shape[1:])) for r in results], [0] * len(results)


def _many_directions(
    args: list[Any],
    batched: list[bool],
    size: int,
    *,
    loop: Loop,
    batch: int | None,
    batched_args: tuple,
) -> tuple[list[Any], list[int]]:
    """The batch of a loop of tangents at one point, or of a batch of points, in groups."""
    groups = -(-size // _TANGENTS)
    width = -(-size // groups)
    inner, first = batched_args or (False,) * len(args), loop.consts + loop.carry
    # The directions of a group are behind the axes of groups, batch and rows.
    grouped = []
    for i, (x, is_tangent, is_batched) in enumerate(
        zip(args, loop.directions, batched, strict=True)
    ):
        if is_tangent:
            x = x if is_batched else jnp.broadcast_to(x, (size, *x.shape))
            x = jnp.pad(x, ((0, groups * width - size), *((0, 0),) * (x.ndim - 1)))
            x = x.reshape(groups, width, *x.shape[1:])
            x = jnp.moveaxis(x, 1, 1 + inner[i] + (i >= first))
        grouped.append(x)
    wide = loop_derivatives.vmap_tangents(loop, width)
    results, _ = _batch(
        grouped,
        [0 if d else None for d in loop.directions],
        loop=wide,
        batch=batch,
        batched_args=batched_args,
    )
    single = []
    for i, y in enumerate(results):
        y = jnp.moveaxis(y, 1 + (batch is not None) + (i >= loop.carry), 1)
        single.append(y.reshape(groups * width, *y.shape[2:])[:size])
    return single, [0] * len(single)


def _without_unused(used: list[bool], equation: Any) -> tuple[list[bool], Any]:
    """The rule that removes results no one asks for, which a call hides from the compiler."""
    if not any(used):
        return [False] * len(equation.invars), None
    loop, left, keep = loop_derivatives.needed(equation.params["loop"], used)
    batched_args = equation.params["batched_args"]
    params = equation.params | {
        "loop": loop,
        "batched_args": tuple(a for a, k in zip(batched_args, keep, strict=True) if k)
        if batched_args
        else (),
    }
    if params["batch"] is not None and not any(params["batched_args"]):
        return [True] * len(keep), equation
    smaller = equation.replace(
        invars=[v for v, k in zip(equation.invars, keep, strict=True) if k],
        outvars=[v for v, u in zip(equation.outvars, left, strict=True) if u],
        params=params,
    )
    return keep, smaller


def _lowering(machine: ModuleType, **more: Any) -> Callable[..., Any]:
    """Makes a rule from the ordinary one: by the module's `compiled`, where this has a program."""

    def rule(ordinary: Callable[..., Any]) -> Callable[..., Any]:
        def lower(context: Context, *args: Value, **params: Any) -> Any:
            options = [params[name] for name in ("loop", "batch", "batched_args")]
            results = None
            if available():
                with collector_off():
                    results = machine.compiled(context, args, *options, **more)
                    if dump.wanted():
                        dump.write(*options)
            return results or ordinary(context, *args, **params)

        return lower

    return rule


def _run(*args: Any, **params: Any) -> list[Any]:
    return jax.jit(functools.partial(_native_p.bind, **params))(*args)


define(
    _native_p,
    apply=_apply,
    run=_run,
    shapes=_shapes,
    differentiate=_differentiate,
    transpose=_transpose,
    batch=_batch,
    without_unused=_without_unused,
    lowerings={"cpu": _lowering(vectorized_loop), "cuda": _lowering(launch, bind=_native_p.bind)},
)
