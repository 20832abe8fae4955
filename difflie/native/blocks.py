"""A loop on a GPU: one kernel for each block of environments, with the loop inside.

XLA launches a kernel for every few operations of a loop, and between two launches everything goes
through memory. Here the turn of the loop is a straight-line program (`straight_line.py`), and one
Pallas kernel, compiled by Triton, runs all turns of a block of environments: every scalar of the
program is a vector with one lane for each environment, one environment for each thread, and what
a turn computes stays in registers. Memory is read before the first turn and written after the last.

Loops are differentiated the ordinary way. Other devices, and loops whose turn has no straight-line
program, run the ordinary way, with the same results up to rounding. `DIFFLIE_NATIVE=0` in the
environment switches the kernels off, and `DIFFLIE_NATIVE=interpret` has Pallas interpret them on
the CPU, which is slow and for tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr, Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jaxlib.mlir import ir

from .call import interpreted, switched_on
from .jaxprs import is_literal, nested, scan_sizes
from .kernel import apply, batched, ordinary, run, shapes_of, traced, without_unused
from .printing import needed, values
from .straight_line import Program, Unsupported, Value, written_out

# Four warps, which is what Triton takes by default: a thread for each lane.
LANES = 128

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "abs": lax.abs,
    "add": lax.add,
    "and": lax.bitwise_and,
    "atan2": lax.atan2,
    "ceil": lax.ceil,
    "cosine": lax.cos,
    "divide": lax.div,
    "exponential": lax.exp,
    "exponential_minus_one": lax.expm1,
    "floor": lax.floor,
    "log": lax.log,
    "log_plus_one": lax.log1p,
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "negate": lax.neg,
    "not": lax.bitwise_not,
    "or": lax.bitwise_or,
    "power": lax.pow,
    "rsqrt": lax.rsqrt,
    "select": lax.select,
    "sign": lax.sign,
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "subtract": lax.sub,
    "tanh": lax.tanh,
    "compare EQ": lax.eq,
    "compare GE": lax.ge,
    "compare GT": lax.gt,
    "compare LE": lax.le,
    "compare LT": lax.lt,
    "compare NE": lax.ne,
}

_blocks_p = Primitive("native_blocks")
_blocks_p.multiple_results = True


def in_blocks(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, a loop over small arrays, on a GPU as one kernel for each block of a batch.

    f is one `jax.lax.scan` without inputs and outputs of its turns; what else it computes makes it
    run the ordinary way. Arguments are pytrees; their leaves that are no arrays of jax are known at
    trace time.
    """

    @functools.wraps(f)
    def compiled(*args: Any) -> Any:
        if not switched_on():
            return f(*args)
        closed, given, inside = traced(f, args)
        if closed.effects:
            return f(*args)
        along = (False,) * len(given)
        results = _blocks_p.bind(*given, jaxpr=closed, length=None, along=along)
        return jax.tree.unflatten(inside, results)

    return compiled


class Turn(NamedTuple):
    """What a loop does in one turn, as a straight-line program.

    Argument i of the program is what the atom `sources[i]` of the loop stands for. The arguments
    `fixed` stay as they are; those in `carried` become these entries after each of the `turns`, and
    in the end what the variable `ends[i]` of the loop stands for. `instructions` are the numbers of
    those that matter, in order.
    """

    program: Program
    instructions: list[int]
    sources: list[Any]
    fixed: list[int]
    carried: dict[int, np.ndarray]
    ends: dict[int, Any]
    turns: int


@functools.lru_cache(maxsize=64)
def turn_of(closed: ClosedJaxpr) -> Turn:
    """The turn of a loop; raises Unsupported where there is no loop, or no program for its turn."""
    jaxpr = closed.jaxpr
    if [e.primitive.name for e in jaxpr.eqns] != ["scan"]:
        raise Unsupported("something else than one loop")
    (loop,) = jaxpr.eqns
    (body,) = nested(loop.params)
    first, n_carried = scan_sizes(loop.params)
    if len(loop.invars) != first + n_carried or len(loop.outvars) != n_carried:
        raise Unsupported("a loop with inputs or outputs of its turns")
    known = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    fixed = {
        i: v.val if is_literal(v) else known[v]
        for i, v in enumerate(loop.invars[:first])
        if is_literal(v) or v in known
    }
    running = [i for i in range(len(loop.invars)) if i not in fixed]

    def applied(*args: Any) -> list[Any]:
        given = fixed | dict(zip(running, args, strict=True))
        return eval_jaxpr(body.jaxpr, body.consts, *(given[i] for i in range(len(given))))

    if fixed:
        body = jax.make_jaxpr(applied)(*(body.in_avals[i] for i in running))
    program, after = written_out(body.jaxpr, body.consts)
    start = len(running) - n_carried
    wanted = {start + k for k, v in enumerate(loop.outvars) if v in set(jaxpr.outvars)}
    # What is carried matters if it is a result, or changes what matters.
    while True:
        used = needed(program, {x.number: x for x in values([after[i - start] for i in wanted])})
        instructions = [program.instructions[k] for k in used]
        read = {operands[0] for name, operands, _ in instructions if name == "argument"}
        if all(i in wanted for i in read if i >= start):
            break
        wanted |= {i for i in read if i >= start}
    missing = {name for name, _, _ in instructions} - {*_OPERATIONS, "argument", "convert"}
    if missing:
        raise Unsupported(f"the operations {', '.join(sorted(missing))}")
    return Turn(
        program=program,
        instructions=used,
        sources=[loop.invars[i] for i in running],
        fixed=sorted(read - wanted),
        carried={i: after[i - start] for i in sorted(wanted) if after[i - start].size},
        ends={i: loop.outvars[i - start] for i in wanted},
        turns=loop.params["length"],
    )


def _all_blocks(
    *args: jax.Array, jaxpr: ClosedJaxpr, length: int | None, along: tuple, interpret: bool
) -> list[jax.Array]:
    """The results of a loop, or of a batch of `length`, by a kernel for each block."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    turn, inner = turn_of(jaxpr), jaxpr.jaxpr
    batch = 1 if length is None else length
    lanes = -(-batch // LANES) * LANES
    stands_for = dict(zip(inner.constvars, jaxpr.consts, strict=True))
    stands_for |= dict(zip(inner.invars, args, strict=True))
    batched = {v for v, a in zip(inner.invars, along, strict=True) if a}

    def laid_out(v: Any) -> jax.Array:
        """An argument in memory: (entries,), or (entries, lanes) if it is batched."""
        x = jnp.asarray(v.val if is_literal(v) else stands_for[v])
        x = x.astype(np.int32) if x.dtype == bool else x
        if is_literal(v) or v not in batched:
            return x.reshape(-1)
        # The last block is filled up with the last environment.
        return jnp.pad(x.reshape(batch, -1).T, ((0, 0), (0, lanes - batch)), mode="edge")

    def spec(x: Any) -> pl.BlockSpec:
        if len(x.shape) == 1:
            return pl.BlockSpec(x.shape, lambda block: (0,))
        return pl.BlockSpec((x.shape[0], LANES), lambda block: (0, block))

    given = [laid_out(turn.sources[i]) for i in (*turn.fixed, *turn.carried)]
    starts = given[len(turn.fixed) :]
    ends = [
        jax.ShapeDtypeStruct((entries.size, lanes), x.dtype)
        for entries, x in zip(turn.carried.values(), starts, strict=True)
    ]
    found = pl.pallas_call(
        functools.partial(_one_block, turn),
        out_shape=ends,
        grid=(lanes // LANES,),
        in_specs=[spec(x) for x in given],
        out_specs=[spec(x) for x in ends],
        compiler_params=triton.CompilerParams(num_warps=LANES // 32, num_stages=1),
        interpret=interpret,
        name="native_blocks",
    )(*given)
    for i, x in zip(turn.carried, found, strict=True):
        v = turn.ends[i]
        batched.add(v)
        stands_for[v] = x[:, :batch].T.astype(v.aval.dtype).reshape((batch, *v.aval.shape))
    results = []
    for v in inner.outvars:
        x = jnp.zeros(v.aval.shape, v.aval.dtype) if v.aval.size == 0 else stands_for[v]
        x = x if v in batched else jnp.broadcast_to(x, (batch, *v.aval.shape))
        results.append(x if length is not None else x[0])
    return results


def _one_block(turn: Turn, *refs: Any) -> None:
    """The kernel: all turns for one block of environments."""
    inputs = dict(zip((*turn.fixed, *turn.carried), refs, strict=False))
    outputs = refs[len(inputs) :]

    def load(i: int, entry: int) -> jax.Array:
        ref = inputs[i]
        x = ref[entry, :] if len(ref.shape) == 2 else ref[entry]
        return x != 0 if turn.sources[i].aval.dtype == bool else x

    instructions = (turn.program.instructions[k] for k in turn.instructions)
    read = [operands for name, operands, _ in instructions if name == "argument"]
    fixed = {place: load(*place) for place in read if place[0] not in turn.carried}
    places = [(i, k) for i, entries in turn.carried.items() for k in range(entries.size)]
    after = [x for entries in turn.carried.values() for x in entries.ravel()]
    starts = [_in_lanes(load(*place)) for place in places]

    def one_turn(carried: list[jax.Array], _: None) -> tuple[list[jax.Array], None]:
        found = _evaluated(turn, fixed | dict(zip(places, carried, strict=True)))
        return [
            _in_lanes(found[x.number] if isinstance(x, Value) else start.dtype.type(x))
            for x, start in zip(after, starts, strict=True)
        ], None

    ends, _ = lax.scan(one_turn, starts, None, length=turn.turns)
    for (i, k), x in zip(places, ends, strict=True):
        ref = outputs[list(turn.carried).index(i)]
        ref[k, :] = x.astype(ref.dtype)


def _evaluated(turn: Turn, arguments: dict[tuple[int, int], jax.Array]) -> dict[int, jax.Array]:
    """The values of the instructions of a turn: vectors, or scalars where they are shared."""
    found: dict[int, jax.Array] = {}
    for k in turn.instructions:
        name, operands, dtype = turn.program.instructions[k]
        if name == "argument":
            found[k] = arguments[operands]
            continue
        kinds = [x.dtype for x in operands if isinstance(x, Value)]
        kind = kinds[0] if name.startswith("compare") else dtype
        xs = [found[x.number] if isinstance(x, Value) else kind.type(x) for x in operands]
        if name == "convert":
            found[k] = lax.convert_element_type(xs[0], dtype)
        else:
            alike = any(np.ndim(x) for x in xs)
            found[k] = _OPERATIONS[name](*(map(_in_lanes, xs) if alike else xs))
    return found


def _in_lanes(x: Any) -> jax.Array:
    return x if np.ndim(x) else lax.broadcast(x, (LANES,))


def _differentiate(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int | None,
    along: tuple,
) -> tuple[list[Any], list[Any]]:
    """As the loop that it is."""
    varied = [i for i, t in enumerate(tangents) if not isinstance(t, ad.Zero)]

    def moved(*values: Any) -> list[Any]:
        given = list(primals)
        for i, x in zip(varied, values, strict=True):
            given[i] = x
        return apply(*given, jaxpr=jaxpr, length=length, along=along)

    results, changes = jax.jvp(moved, [primals[i] for i in varied], [tangents[i] for i in varied])
    return results, [
        c if jnp.issubdtype(r.dtype, jnp.inexact) else ad.Zero(jax.typeof(r).to_tangent_aval())
        for r, c in zip(results, changes, strict=True)
    ]


_in_blocks = mlir.lower_fun(_all_blocks, multiple_results=True)


def _lower(
    context: mlir.LoweringRuleContext, *args: ir.Value, interpret: bool, **params: Any
) -> Sequence[Any]:
    wanted = interpreted() if interpret else switched_on()
    if not wanted or params["length"] == 0 or not _has_a_turn(params["jaxpr"]):
        return ordinary(context, *args, **params)
    return _in_blocks(context, *args, **params, interpret=interpret)


def _has_a_turn(jaxpr: ClosedJaxpr) -> bool:
    try:
        return bool(turn_of(jaxpr).carried)
    except Unsupported:
        return False


_blocks_p.def_impl(functools.partial(run, _blocks_p))
_blocks_p.def_abstract_eval(shapes_of)
ad.primitive_jvps[_blocks_p] = _differentiate
batching.primitive_batchers[_blocks_p] = functools.partial(batched, _blocks_p)
pe.dce_rules[_blocks_p] = without_unused
mlir.register_lowering(_blocks_p, ordinary)
mlir.register_lowering(_blocks_p, functools.partial(_lower, interpret=False), platform="cuda")
mlir.register_lowering(_blocks_p, functools.partial(_lower, interpret=True), platform="cpu")
