"""A kernel: a function on small arrays that is compiled into one block of machine code.

On the CPU a kernel is written out as a straight-line program (`straight_line.py`) and compiled as
one native call of its own. It is differentiated as the traced function it is, so that its
derivatives are kernels as well: a linear kernel, the derivative along given directions, computes
the values it needs again from the arguments instead of keeping them, and its transposition too.
A batch runs one entry after the other, or where LLVM is allowed to vectorise (`call.vectorised`) in
blocks of environments, one in each lane of the vector instructions.

What has no straight-line program, other devices, and versions of jaxlib on which this has not been
tested run the ordinary way, with the same results up to rounding. `DIFFLIE_NATIVE=0` in the
environment switches all native calls off.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import ClosedJaxpr, Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from jaxlib.mlir.dialects import stablehlo as hlo

from .call import available, inserted, native_call_attributes, vectorised
from .printing import looped, printed
from .straight_line import Unsupported

# About so many environments are one block where LLVM vectorises. The checks that the arrays of a
# block do not overlap are made once for each, so that small blocks are slow, and large ones leave
# the cache.
LANES = 64
# Doubles in the longest vector instructions.
_VECTOR = 8

_kernel_p = Primitive("native_kernel")
_kernel_p.multiple_results = True


def kernel(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, compiled as one block of machine code where possible.

    Arguments are pytrees; their leaves that are no arrays of jax are known at trace time.
    """

    @functools.wraps(f)
    def compiled(*args: Any) -> Any:
        if not available():
            return f(*args)
        closed, given, inside = traced(f, args)
        # Prints and the like are no part of a native call.
        if closed.effects:
            return f(*args)
        results = _bind(closed, given, None, [False] * len(given))
        return jax.tree.unflatten(inside, results)

    return compiled


def traced(f: Callable[..., Any], args: Any) -> tuple[ClosedJaxpr, list[Any], Any]:
    """f as a function of what is known at run time only, these values, and the tree of results."""
    leaves, inputs = jax.tree.flatten(args)
    places = [i for i, x in enumerate(leaves) if isinstance(x, jax.Array)]

    def on_arrays(*arrays: jax.Array) -> Any:
        given = list(leaves)
        for i, x in zip(places, arrays, strict=True):
            given[i] = x
        return f(*jax.tree.unflatten(inputs, given))

    arrays = [leaves[i] for i in places]
    closed, shapes = jax.make_jaxpr(on_arrays, return_shape=True)(*arrays)
    closed, constants = _with_traced_constants(closed)
    return closed, [*constants, *arrays], jax.tree.structure(shapes)


def _with_traced_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The jaxpr with its traced constants as first arguments, and these; the others stay known."""
    constants = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    running = [v for v, c in constants.items() if isinstance(c, Tracer)]
    if not running:
        return closed, []

    def applied(*args: Any) -> list[Any]:
        given = {**constants, **dict(zip(running, args, strict=False))}
        return eval_jaxpr(closed.jaxpr, list(given.values()), *args[len(running) :])

    avals = [v.aval for v in (*running, *closed.jaxpr.invars)]
    return jax.make_jaxpr(applied)(*avals), [constants[v] for v in running]


def _bind(
    closed: ClosedJaxpr, args: Sequence[Any], length: int | None, along: Sequence[bool]
) -> list[Any]:
    """Applies a traced function as a kernel, on the arguments it needs."""
    needed, used = pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    along = [a for a, u in zip(along, used, strict=True) if u]
    args = [x for x, u in zip(args, used, strict=True) if u]
    if length is not None and not any(along):
        results = _bind(closed, args, None, along)
        return [jnp.broadcast_to(r, (length, *r.shape)) for r in results]
    kept = ClosedJaxpr(needed, closed.consts)
    return _kernel_p.bind(*args, jaxpr=kept, length=length, along=tuple(along))


# The primitive applies `jaxpr`. With a `length` it does so as often, and arguments `along` which
# it goes have a leading axis; results always have one then.


def _one(jaxpr: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


def apply(*args: Any, jaxpr: ClosedJaxpr, length: int | None, along: tuple) -> list[Any]:
    """The results of the traced function the ordinary way, for one or for a batch."""
    if length is None:
        return _one(jaxpr, args)
    axes = tuple(0 if a else None for a in along)
    return jax.vmap(lambda *args: _one(jaxpr, args), in_axes=axes, axis_size=length)(*args)


def shapes_of(*avals: Any, jaxpr: ClosedJaxpr, length: int | None, along: tuple) -> list[Any]:
    """The shapes and precisions of the results."""
    lead = () if length is None else (length,)
    return [v.aval.update(shape=(*lead, *v.aval.shape)) for v in jaxpr.jaxpr.outvars]


def run(primitive: Primitive, *args: Any, **params: Any) -> list[Any]:
    """The primitive applied to concrete values."""
    return jax.jit(functools.partial(primitive.bind, **params))(*args)


def _differentiate(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int | None,
    along: tuple,
) -> tuple[list[Any], list[Any]]:
    varied = [i for i, t in enumerate(tangents) if not isinstance(t, ad.Zero)]
    results = _kernel_p.bind(*primals, jaxpr=jaxpr, length=length, along=along)
    floats = [k for k, r in enumerate(results) if jnp.issubdtype(r.dtype, jnp.inexact)]

    def change(*args: Any) -> list[Any]:
        points, directions = args[: len(primals)], args[len(primals) :]

        def moved(*values: Any) -> list[Any]:
            given = list(points)
            for i, x in zip(varied, values, strict=True):
                given[i] = x
            moved = _one(jaxpr, given)
            return [moved[k] for k in floats]

        return jax.jvp(moved, [points[i] for i in varied], list(directions))[1]

    avals = jaxpr.in_avals
    closed = jax.make_jaxpr(change)(*avals, *(avals[i] for i in varied))
    args = [*primals, *(tangents[i] for i in varied)]
    found = _bind(closed, args, length, [*along, *(along[i] for i in varied if along)])
    changes: list[Any] = [ad.Zero(r.aval.to_tangent_aval()) for r in results]
    for k, c in zip(floats, found, strict=True):
        changes[k] = c
    return results, changes


def _transpose(
    cotangents: Sequence[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    length: int | None,
    along: tuple,
) -> list[Any]:
    linear = [i for i, x in enumerate(args) if ad.is_undefined_primal(x)]
    known = [i for i in range(len(args)) if i not in linear]
    wanted = [k for k, c in enumerate(cotangents) if not isinstance(c, ad.Zero)]
    avals = jaxpr.in_avals

    def back(*given: Any) -> Sequence[Any]:
        points, cotangents = given[: len(known)], given[len(known) :]

        def results(*directions: Any) -> list[Any]:
            values = dict(zip((*known, *linear), (*points, *directions), strict=True))
            results = _one(jaxpr, [values[i] for i in range(len(args))])
            return [results[k] for k in wanted]

        # The results at zero are not used, and what only they need is removed with them.
        zeros = [jnp.zeros(avals[i].shape, avals[i].dtype) for i in linear]
        return jax.vjp(results, *zeros)[1](list(cotangents))

    closed = jax.make_jaxpr(back)(*(avals[i] for i in known), *(jaxpr.out_avals[k] for k in wanted))
    given = [*(args[i] for i in known), *(cotangents[k] for k in wanted)]
    batched = [*(along[i] for i in known if along), *(True for _ in wanted)]
    pulled = _bind(closed, given, length, batched if along else [False] * len(given))
    placed: list[Any] = [None] * len(args)
    for i, c in zip(linear, pulled, strict=True):
        placed[i] = c if length is None or along[i] else jnp.sum(c, axis=0)
    return placed


def batched(
    primitive: Primitive,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int | None,
    along: tuple,
) -> tuple[list[Any], list[int]]:
    """Once for a whole batch: in one native call, the values of each entry stay in registers."""
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    moving = [d is not None for d in dims]
    args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    lead = (size,)
    if length is not None:
        # A batch of batches is one long one.
        lead = (size, length)
        for i, (outer, inner) in enumerate(zip(moving, along, strict=True)):
            shape = jaxpr.in_avals[i].shape
            if inner and not outer:
                args[i] = args[i][None]
            elif outer and not inner:
                args[i] = args[i][:, None]
            if outer or inner:
                args[i] = jnp.broadcast_to(args[i], (*lead, *shape)).reshape((-1, *shape))
        moving = [outer or inner for outer, inner in zip(moving, along, strict=True)]
    results = primitive.bind(*args, jaxpr=jaxpr, length=math.prod(lead), along=tuple(moving))
    return [r.reshape((*lead, *r.shape[1:])) for r in results], [0] * len(results)


def without_unused(used: list[bool], *rest: Any) -> tuple[list[bool], Any]:
    """The rule that removes results no one asks for, which a kernel hides from the compiler."""
    # From jax 0.12 on there is an argument between the two.
    equation = rest[-1]
    closed, along = equation.params["jaxpr"], equation.params["along"]
    if not any(used):
        return [False] * len(along), None
    needed, kept = pe.dce_jaxpr(closed.jaxpr, used)
    params = equation.params | {
        "jaxpr": ClosedJaxpr(needed, closed.consts),
        "along": tuple(a for a, k in zip(along, kept, strict=True) if k),
    }
    smaller = equation.replace(
        invars=[v for v, k in zip(equation.invars, kept, strict=True) if k],
        outvars=[v for v, u in zip(equation.outvars, used, strict=True) if u],
        params=params,
    )
    return kept, smaller


ordinary = mlir.lower_fun(apply, multiple_results=True)


def _lower(
    context: mlir.LoweringRuleContext,
    *args: ir.Value,
    jaxpr: ClosedJaxpr,
    length: int | None,
    along: tuple,
) -> Sequence[Any]:
    lanes = (_width(length),) if length is not None and length >= LANES and vectorised() else ()
    native = available() and length != 0
    text = _text(jaxpr, lanes, along if lanes else ()) if native else None
    if text is None and lanes:
        lanes = ()
        text = _text(jaxpr, lanes, ())
    if text is None:
        return ordinary(context, *args, jaxpr=jaxpr, length=length, along=along)
    name = inserted(context.module_context, text)
    if length is not None:
        loop = looped(name, jaxpr.in_avals, jaxpr.out_avals, length, along, lanes)
        name = inserted(context.module_context, loop)
    given = hlo.OptimizationBarrierOp(args).results if args else []
    types: list[ir.Type] = [
        ir.RankedTensorType.get(a.shape, mlir.dtype_to_ir_type(a.dtype)) for a in context.avals_out
    ]
    call = func.CallOp(types, ir.FlatSymbolRefAttr.get(name), list(given))
    call.operation.attributes["mhlo.frontend_attributes"] = native_call_attributes()
    return list(call.results)


def _width(length: int) -> int:
    """The environments of a block of a batch: as few as possible are computed twice."""
    blocks = round(length / LANES)
    vectors = math.ceil(length / (blocks * _VECTOR))
    return min(length, vectors * _VECTOR)


@functools.lru_cache(maxsize=256)
def _text(jaxpr: ClosedJaxpr, lanes: tuple[int, ...], along: tuple) -> str | None:
    try:
        return printed("native_kernel", jaxpr, lanes, along)
    except Unsupported:
        return None


_kernel_p.def_impl(functools.partial(run, _kernel_p))
_kernel_p.def_abstract_eval(shapes_of)
ad.primitive_jvps[_kernel_p] = _differentiate
ad.primitive_transposes[_kernel_p] = _transpose
batching.primitive_batchers[_kernel_p] = functools.partial(batched, _kernel_p)
pe.dce_rules[_kernel_p] = without_unused
mlir.register_lowering(_kernel_p, ordinary)
mlir.register_lowering(_kernel_p, _lower, platform="cpu")
