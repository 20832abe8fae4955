"""One native call on the CPU.

XLA's CPU runtime launches every small kernel of a program separately; for rigid-body dynamics
almost all the time is spent on launching. A computation marked here is compiled into one native
function instead, an order of magnitude faster for a single trajectory and with the same results.

The mark is an attribute of the call operation, an internal of XLA. It is set on the CPU only, and
only on programs made of operations that are known to compile under it, forwards and
differentiated; all others, and batches, run the ordinary way. To mark the call of a derivative as
well, the results of the call carry a primitive that marks the operation they come from, and its
arguments one that becomes it under transposition and is an optimisation barrier; both are the
identity.
"""

from __future__ import annotations

import functools
import math
import operator
import os
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import eval_jaxpr
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, mhlo
from jaxlib.mlir.dialects import stablehlo as hlo

from .jaxprs import nested
from .printing import printed

# Gathers are missing on purpose: their derivative is a scatter, which does not compile.
_SUPPORTED = frozenset(
    "abs acos add add_any and asin atan atan2 broadcast_in_dim checkpoint clamp closed_call "
    "concatenate cond convert_element_type copy cos cosh custom_jvp_call custom_linear_solve "
    "div dynamic_slice dynamic_update_slice eq exp exp2 expm1 floor ge gt integer_pow iota "
    "is_finite jit le log log1p logistic lt max min mul native_blocks native_border "
    "native_kernel native_tag ne neg not or pad pjit pow reduce_max reduce_min reduce_sum rem "
    "remat2 reshape rev round rsqrt scan select_n sign sin sinh slice split sqrt square squeeze "
    "stack stop_gradient sub tan tanh transpose unstack while zeros_like".split()
)

# XLA splits operations on larger values among threads, which does not compile under the mark;
# what a loop carries and stacks it leaves alone.
LARGEST = 2**15
_LARGEST_REDUCED = 2**12 - 1


def mark(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, compiled as one native function where that is known to work; for use inside `jax.jit`."""

    @functools.wraps(f)
    def marked(*args: Any) -> Any:
        if not available():
            return f(*args)
        leaves, inputs = jax.tree.flatten(args)
        closed, shapes = jax.make_jaxpr(
            lambda *leaves: f(*jax.tree.unflatten(inputs, leaves)), return_shape=True
        )(*leaves)
        if closed.effects:
            return f(*args)
        # The borders keep the compiler from moving constant arguments inside.
        needed, used = pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
        if not supported(needed):
            return f(*args)
        arguments = [x for x, keep in zip(leaves, used, strict=True) if keep]

        @jax.jit
        def call(*arguments: jax.Array) -> list[jax.Array]:
            return eval_jaxpr(needed, closed.consts, *arguments)

        return jax.tree.unflatten(jax.tree.structure(shapes), _marked_call(call, arguments))

    return marked


def available() -> bool:
    """Whether programs are compiled natively: on the CPU, unless switched off or untested."""
    return switched_on() and jax.default_backend() == "cpu"


def switched_on() -> bool:
    """Whether native code is wanted, and tested with this jax."""
    without_jit = jax.config.jax_disable_jit  # pyright: ignore
    return os.environ.get("DIFFLIE_NATIVE", "1") != "0" and not without_jit and _tested()


@functools.cache
def _tested() -> bool:
    """Whether native code has been tested with this jax; warns once where it has not."""
    tested = (0, 8) <= jax.__version_info__[:2] < (0, 13)
    if not tested:
        warnings.warn(
            f"native code has not been tested with jax {jax.__version__} and is left out, so that "
            "a motion may take about 190 times as long; take a jax from 0.8 to 0.12",
            stacklevel=2,
        )
    return tested


def vectorised() -> bool:
    """Whether LLVM has been told to vectorise batches, whatever its checks for overlap cost.

    XLA reads its options once in a process, and does not take this one with a program.
    """
    return "-runtime-memory-check-threshold=" in os.environ.get("XLA_FLAGS", "")


def interpreted() -> bool:
    """Whether kernels for GPUs are interpreted on the CPU."""
    return os.environ.get("DIFFLIE_NATIVE") == "interpret"


def native_call_attributes() -> ir.Attribute:
    """What marks a call operation."""
    marks = {"xla_cpu_small_call": "true", "inlineable": "false"}
    return ir.DictAttr.get({name: ir.StringAttr.get(value) for name, value in marks.items()})


def _marked_call(call: Callable[..., Any], arguments: list[Any]) -> list[Any]:
    return _tag_p.bind(*call(*_border_p.bind(*arguments)))


def supported(jaxpr: Any) -> bool:
    """Whether every operation of a jaxpr, nested ones included, can be part of a native call."""
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _SUPPORTED:
            return False
        looped = equation.primitive.name in ("scan", "while")
        if not looped and any(v.aval.size > LARGEST for v in equation.outvars):
            return False
        reduces = equation.primitive.name.startswith("reduce_")
        if reduces and equation.invars[0].aval.size > _LARGEST_REDUCED:
            return False
        if not all(supported(inner.jaxpr) for inner in nested(equation.params)):
            return False
    return True


_tag_p = Primitive("native_tag")
_border_p = Primitive("native_border")


def _lower_tag(context: mlir.LoweringRuleContext, *xs: ir.Value) -> list[ir.Value]:
    operation = getattr(xs[0].owner, "operation", xs[0].owner)
    if isinstance(operation, ir.Operation) and operation.name == "func.call":
        name = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
        if _reads_its_arguments(context.module_context, name):
            operation.attributes["mhlo.frontend_attributes"] = native_call_attributes()
    return list(xs)


def _reads_its_arguments(module: Any, name: str) -> bool:
    """Makes a function of the module read all its arguments; whether that is possible.

    An argument that is not read would leave the native function without its address, upon which
    XLA ends the process. So a result is replaced by zero should the magnitude of one of the
    arguments be negative, in a form that XLA does not see through.
    """
    function = module.symbol_table[name]
    if _MARK in function.attributes:
        return True
    block = function.regions[0].blocks[0]
    types = [ir.RankedTensorType(a.type) for a in block.arguments]
    dtypes = [_DTYPES.get(str(t.element_type)) for t in types]
    stop = block.operations[len(block.operations) - 1]
    places = [k for k, r in enumerate(stop.operands) if _size(r.type)]
    if None in dtypes or not all(map(_size, types)) or not places:
        return False
    avals = [jax.ShapeDtypeStruct((), d) for d in dtypes if d]
    never = inserted(module, printed("native_never", jax.make_jaxpr(_never)(*avals)))
    place = min(places, key=lambda k: _size(stop.operands[k].type))
    result = stop.operands[place]
    with ir.InsertionPoint(stop), stop.location:
        truth = ir.RankedTensorType.get((), ir.IntegerType.get_signless(1))
        entries = [_first_entry(a) for a in block.arguments]
        call = func.CallOp([truth], ir.FlatSymbolRefAttr.get(never), entries)
        element = ir.RankedTensorType(result.type).element_type
        number = ir.FloatAttr if "f" in str(element) else ir.IntegerAttr
        zero = number.get(element, 0)
        nothing = hlo.constant(ir.DenseElementsAttr.get_splat(result.type, zero))
        stop.operands[place] = hlo.select(call.results[0], nothing, result)
    function.attributes[_MARK] = ir.UnitAttr.get()
    return True


_MARK = "difflie.reads_its_arguments"
_DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i1": np.bool_}


def _size(kind: ir.Type) -> int:
    return math.prod(ir.RankedTensorType(kind).shape)


def _first_entry(a: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType(a.type)
    ones = [1] * len(kind.shape)
    one = hlo.slice(a, start_indices=[0] * len(ones), limit_indices=ones, strides=ones)
    return hlo.reshape(ir.RankedTensorType.get((), kind.element_type), one)


def _never(*args: jax.Array) -> jax.Array:
    return functools.reduce(operator.or_, [abs(x.astype(np.float32)) < 0 for x in args])


def inserted(module: Any, text: str) -> str:
    """Inserts a function, given as text, into a module; the name it has there."""
    mhlo.register_mhlo_dialect(module.context)
    with ir.Location.unknown(module.context):
        parsed = ir.Module.parse(text, module.context)
        start = ir.InsertionPoint.at_block_begin(module.module.body)
        function = parsed.body.operations[0].operation.clone(start)
    return ir.StringAttr(module.symbol_table.insert(function)).value


def _drop(xs: Any, dims: Any) -> tuple[Any, Any]:
    """A batch runs the ordinary way: not every batched program compiles as a native call."""
    return xs, dims


def _differentiate(primitive: Primitive, primals: Any, tangents: Any) -> tuple[Any, Any]:
    return primitive.bind(*primals), primitive.bind(*map(ad.instantiate_zeros, tangents))


def _transpose(transposed: Primitive, cotangents: Any, *_: Any) -> list[Any]:
    return transposed.bind(*map(ad.instantiate_zeros, cotangents))


for _primitive, _transposed in ((_tag_p, _border_p), (_border_p, _tag_p)):
    _primitive.multiple_results = True
    _primitive.def_impl(lambda *xs: list(xs))
    _primitive.def_abstract_eval(lambda *avals: list(avals))
    batching.primitive_batchers[_primitive] = _drop
    ad.primitive_jvps[_primitive] = functools.partial(_differentiate, _primitive)
    ad.primitive_transposes[_primitive] = functools.partial(_transpose, _transposed)
    mlir.register_lowering(_primitive, lambda context, *xs: list(xs))
mlir.register_lowering(_tag_p, _lower_tag, platform="cpu", cacheable=False)
mlir.register_lowering(
    _border_p, lambda context, *xs: hlo.OptimizationBarrierOp(xs).results, platform="cpu"
)
