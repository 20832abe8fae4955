"""What is taken of jax and jaxlib that may change with any version: nothing else imports it.

Tested with jax 0.8.1, 0.9.2, 0.10.2, 0.11.0 and 0.12.0. With other versions native code is off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.ffi
import numpy as np
from jax._src import config, core
from jax._src.distributed import global_state
from jax._src.interpreters import ad as inner_ad
from jax._src.interpreters import mlir as inner_mlir
from jax.core import ShapedArray as ShapedArray
from jax.core import eval_jaxpr as eval_jaxpr
from jax.extend.core import ClosedJaxpr as ClosedJaxpr
from jax.extend.core import Literal as Literal
from jax.extend.core import Primitive as Primitive
from jax.extend.core import jaxpr_as_fun as jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from jaxlib.mlir.dialects import stablehlo as hlo

_FIRST, _LAST = (0, 8), (0, 12)


def untested() -> str | None:
    """Why native code is off with this jax, and which versions to take; None if tested."""
    if _FIRST <= jax.__version_info__[:2] <= _LAST:
        return None
    first, last = (".".join(map(str, v)) for v in (_FIRST, _LAST))
    return (
        f"native code has not been tested with jax {jax.__version__}; "
        f"take a jax from {first} to {last}"
    )


# Programs of several processes


def coordination() -> Any:
    """The notes that the processes of `jax.distributed` leave each other; None for one process."""
    return global_state.client


# Arrays inside of `jax.shard_map`, whose types say along which axes of the devices they vary


def varying_axes(x: Any) -> frozenset:
    """The axes along which an array, or what has its type, varies from device to device."""
    kind = x if isinstance(x, ShapedArray) else jax.typeof(x)
    return kind.vma if hasattr(kind, "vma") else kind.mat.varying  # pyright: ignore


def alike(args: Sequence[Any]) -> list[Any]:
    """Arrays that all vary along the axes that any of them varies along."""
    return like_any(args, args)


def like_any(arrays: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Arrays that vary along the axes that any of the arguments varies along."""
    axes = frozenset().union(*map(varying_axes, args))
    return [_varying(x, axes - varying_axes(x)) for x in arrays] if axes else list(arrays)


def _varying(x: Any, axes: frozenset) -> Any:
    if not axes:
        return x
    names = tuple(sorted(axes, key=str))
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, names, to="varying")
    return jax.lax.pvary(x, names)  # pyright: ignore


def shaped(shape: tuple[int, ...], dtype: Any, args: Sequence[Any]) -> ShapedArray:
    """The type of a result of arguments that are `alike`."""
    if not args or not varying_axes(args[0]):
        return ShapedArray(shape, dtype)
    replicated = jax.sharding.PartitionSpec(*[None] * len(shape))
    sharding = jax.sharding.NamedSharding(args[0].sharding.mesh, replicated)
    return args[0].update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)


def untracked() -> AbstractContextManager[Any]:
    """Inside, nothing is said of axes of devices: for functions that run on one of them."""
    return config._check_vma(False)


# Part of the key of every trace that jax keeps, so that none of inside is taken outside.
within = jax.make_user_context(False)


# Primitives

Rule = Callable[..., Any]
Zero = ad.Zero
instantiate_zeros = ad.instantiate_zeros
is_undefined_primal = ad.is_undefined_primal


def define(
    primitive: Primitive,
    *,
    apply: Rule,
    run: Rule,
    shapes: Rule,
    differentiate: Rule,
    transpose: Rule,
    batch: Rule,
    without_unused: Rule,
    lowerings: dict[str, Callable[[Rule], Rule]],
) -> None:
    """Gives a primitive of several results its rules.

    apply: the ordinary way, by which it is lowered on all platforms but those of `lowerings`, whose
    rules are made from that one. without_unused(used, equation): the inputs still read, and the
    smaller equation.
    """
    primitive.multiple_results = True
    primitive.def_impl(run)
    primitive.def_abstract_eval(shapes)
    ad.primitive_jvps[primitive] = differentiate
    ad.primitive_transposes[primitive] = transpose
    batching.primitive_batchers[primitive] = batch
    # From jax 0.12 on there is an argument between the two.
    pe.dce_rules[primitive] = lambda used, *rest: without_unused(used, rest[-1])
    ordinary = mlir.lower_fun(apply, multiple_results=True)
    mlir.register_lowering(primitive, ordinary)
    for platform, rule in lowerings.items():
        mlir.register_lowering(primitive, rule(ordinary), platform=platform)


def linear_identity(name: str, transpose: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """The identity of an array, as a linear function with this transpose."""
    primitive = Primitive(name)
    primitive.def_impl(lambda x: x)
    primitive.def_abstract_eval(lambda x: x)
    ad.deflinear2(primitive, transpose)
    batching.defvectorized(primitive)
    mlir.register_lowering(primitive, lambda context, x: [x])
    return primitive.bind


# Jaxprs


def scopes(equation: Any) -> list[str]:
    """The names of the scopes and transformations that an operation comes from, innermost first."""
    stack = equation.source_info.name_stack.stack
    return [x.name for x in reversed(stack)] if stack else []


def without_dead_code(
    jaxpr: Any, used: Sequence[bool], keep_inputs: bool = False
) -> tuple[Any, list[bool]]:
    """A jaxpr of the results used, and which inputs it still reads; the others are no inputs."""
    return pe.dce_jaxpr(jaxpr, list(used), instantiate=keep_inputs)


def scan_sizes(params: dict[str, Any]) -> tuple[int, int]:
    """The numbers of constants and of carried values of a scan."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # from jax 0.11
    return len(list(consts)), len(list(carry))


# Programs that are being lowered

Context = mlir.LoweringRuleContext
Value = ir.Value


def constant(array: Any) -> Any:
    """Known numbers, from an array of NumPy, which may be empty."""
    kind = ir.RankedTensorType.get(array.shape, mlir.dtype_to_ir_type(array.dtype))
    return hlo.constant(ir.DenseElementsAttr.get(array, type=kind))


def reshaped(x: Any, aval: Any) -> Any:
    """A value in the shape of `aval`, whose type it has."""
    kind = ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(aval.dtype))
    return hlo.reshape(kind, x)


def foreign_call(
    context: Context, name: str, operands: Sequence[Value], avals_out: Sequence[ShapedArray]
) -> list[Value]:
    """A call of a registered handler; arrays are row-major, none empty."""
    shapes = [tuple(ir.RankedTensorType(x.type).shape) for x in operands]
    # XLA may remove empty arrays, upon which it forgets that the call is typed.
    assert all(0 not in s for s in [*shapes, *(a.shape for a in avals_out)])
    # Of the operands' types only the shapes are read, for the layouts.
    avals_in = [ShapedArray(s, np.dtype(bool)) for s in shapes]
    inner = context.replace(avals_in=avals_in, avals_out=list(avals_out))
    results = list(jax.ffi.ffi_lowering(name)(inner, *operands))  # pyright: ignore
    # In the older form, which jax writes, XLA loses that a call is typed when it rewrites it.
    call: Any = results[0].owner  # pyright: ignore
    call.attributes["api_version"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4)
    call.attributes["backend_config"] = ir.DictAttr.get({})
    if "mhlo.backend_config" in call.attributes:
        del call.attributes["mhlo.backend_config"]
    return results  # pyright: ignore


# Programs that are stored and called in other programs, in the versions where this was tried

_STORING = (0, 10), (0, 10)


def storing() -> bool:
    """Whether programs can be stored with this jax."""
    return _STORING[0] <= jax.__version_info__[:2] <= _STORING[1] and untested() is None


def trace_flags() -> tuple | None:
    """All settings that a trace depends on; None within a map over axes or devices."""
    flags = config.trace_context()
    axes = [x for x in flags if hasattr(x, "axis_sizes")]
    said = tuple(repr(x) for x in flags if not hasattr(x, "axis_sizes"))
    unreadable = any(" object at " in x or "Mesh" in x for x in said)
    return None if unreadable or any(x.axis_sizes for x in axes) else said


def linearized(closed: ClosedJaxpr, moving: Sequence[bool]) -> tuple[Any, ...]:
    """The function with residuals behind its results, and the linear one of residuals and changes.

    Behind them, which results change, and for each residual the argument that it is, or None.
    """
    allowed = [False] * len(closed.consts) + [True] * len(moving)
    made = inner_ad.linearize_jaxpr(closed, moving, allow_fwds=allowed, is_vjp=True)
    saving, _, changing, given, linear = made
    count = len(closed.consts)
    return saving, linear, list(changing), [None if i is None else i - count for i in given]


def with_tangents(closed: ClosedJaxpr, moving: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """The function of arguments and changes to results and changes, and which results change."""
    made, changing = inner_ad.jvp_jaxpr(closed, list(moving), False)
    return made, list(changing)


def staging() -> bool:
    """Whether operations on known arrays become part of a program that is being traced."""
    trace = core.trace_ctx.trace
    while hasattr(trace, "parent_trace"):
        trace = trace.parent_trace
    return not isinstance(trace, core.EvalTrace)


def define_stored(
    primitive: Primitive,
    *,
    apply: Rule,
    run: Rule,
    shapes: Rule,
    differentiate: Rule,
    linearize: Rule,
    transpose: Rule,
    batch: Rule,
    without_unused: Rule,
    lowering: Callable[[Rule], Rule],
) -> None:
    """As `define`, for one that is linearized by a rule of its own and lowered so on the CPU.

    linearize(moving, *args, **params): results, which of them change, residuals, and the function
    of residuals and changes.
    """
    define(
        primitive,
        apply=apply,
        run=run,
        shapes=shapes,
        differentiate=differentiate,
        transpose=transpose,
        batch=batch,
        without_unused=without_unused,
        lowerings={"cpu": lowering},
    )

    def rule(reverse: bool, moving: Sequence[bool], *args: Any, **params: Any) -> Any:
        made = linearize(moving, *args, **params) if reverse else None
        if made is None:
            return inner_ad.fallback_linearize_rule(primitive, reverse, moving, *args, **params)
        return made

    if storing():
        inner_ad.primitive_linearizations[primitive] = rule


def lowered(closed: ClosedJaxpr) -> tuple[bytes, list[str]]:
    """The function as a module of its own, and the names of the handlers that it calls."""
    f = jax.jit(jaxpr_as_fun(closed), keep_unused=True)
    module: Any = f.lower(*closed.in_avals).compiler_ir("stablehlo")
    for function in module.body.operations:
        for attributes in ("arg_attrs", "res_attrs"):
            if function.sym_name.value == "main" and attributes in function.attributes:
                del function.attributes[attributes]
    text = module.operation.get_asm(large_elements_limit=8)
    names = re.findall(r"custom_call @([\w.]+)", text) + re.findall(
        r'call_target_name = "([^"]+)"', text
    )
    return inner_mlir.module_to_bytecode(module), sorted(set(names))


def call_of_module(context: Context, data: bytes, args: Sequence[Value]) -> list[Value]:
    """A call of a module that was `lowered`, which becomes a part of that of the context."""
    to = context.module_context
    module = ir.Module.parse(data, context=to.context)
    main: Any = ir.SymbolTable(module.operation)["main"]
    name = inner_mlir.merge_mlir_modules(to.module, "stored", module, dst_symtab=to.symbol_table)
    symbol = ir.FlatSymbolRefAttr.get(name, context=to.context)
    return list(func.CallOp(main.type.results, symbol, list(args)).results)
