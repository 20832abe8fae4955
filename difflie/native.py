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
from collections.abc import Callable
from typing import Any

import jax
from jax.core import eval_jaxpr
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

# Gathers are missing on purpose: their derivative is a scatter, which does not compile.
_SUPPORTED = frozenset(
    "abs acos add add_any and asin atan atan2 broadcast_in_dim checkpoint clamp closed_call "
    "concatenate convert_element_type copy cos cosh custom_jvp_call custom_linear_solve div "
    "dynamic_slice dynamic_update_slice eq exp exp2 expm1 floor ge gt integer_pow iota "
    "is_finite jit le log log1p logistic lt max min mul native_border native_tag ne neg not or "
    "pad pjit pow reduce_max reduce_min reduce_sum rem remat2 reshape rev round rsqrt scan "
    "select_n sign sin sinh slice sqrt square squeeze stack stop_gradient sub tan tanh "
    "transpose while zeros_like".split()
)

# XLA splits operations on larger values among threads, which does not compile under the mark.
_LARGEST = 2**15

_CALLS = frozenset("checkpoint closed_call custom_jvp_call jit pjit remat2".split())


def mark(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, compiled as one native function where that is known to work; for use inside `jax.jit`."""

    @functools.wraps(f)
    def marked(*args: Any) -> Any:
        if jax.default_backend() != "cpu":
            return f(*args)
        leaves, inputs = jax.tree.flatten(args)
        closed, shapes = jax.make_jaxpr(
            lambda *leaves: f(*jax.tree.unflatten(inputs, leaves)), return_shape=True
        )(*leaves)
        # An argument that is not used inside would leave the native function without its address;
        # the borders also keep the compiler from moving constant arguments inside.
        needed, used = pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
        if not (supported(needed) and reads_all(needed)):
            return f(*args)
        arguments = [x for x, keep in zip(leaves, used, strict=True) if keep]

        @jax.jit
        def call(*arguments: jax.Array) -> list[jax.Array]:
            return eval_jaxpr(needed, closed.consts, *arguments)

        return jax.tree.unflatten(jax.tree.structure(shapes), _marked_call(call, arguments))

    return marked


def shared(value: Any) -> Any:
    """A value (any pytree) that is used several times and shall be computed once.

    XLA copies the operations of a cheap value into each of its uses, and so on through chains of
    them, until most of the work of scalar code is repeated. It cannot look through a call.
    """
    if jax.default_backend() != "cpu":
        return value
    leaves, structure = jax.tree.flatten(value)
    places = [i for i, x in enumerate(leaves) if isinstance(x, jax.Array)]
    for i, x in zip(places, _marked_call(_identity, [leaves[i] for i in places]), strict=True):
        leaves[i] = x
    return jax.tree.unflatten(structure, leaves)


@jax.jit
def _identity(*values: jax.Array) -> tuple[jax.Array, ...]:
    return values


def _marked_call(call: Callable[..., Any], arguments: list[Any]) -> list[Any]:
    return _tag_p.bind(*call(*_border_p.bind(*arguments)))


def supported(jaxpr: Any) -> bool:
    """Whether every operation of a jaxpr, nested ones included, can be part of a native call."""
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _SUPPORTED:
            return False
        if any(v.aval.size > _LARGEST for v in equation.outvars):
            return False
        if not all(supported(inner) for inner in _nested(equation.params)):
            return False
    return True


def reads_all(jaxpr: Any) -> bool:
    """Whether the results depend on every argument, and none is empty.

    Derivative rules are looked through: they may need arguments that the function itself does not.
    """
    return all(_read(jaxpr, [True] * len(jaxpr.outvars))) and all(v.aval.size for v in jaxpr.invars)


def _read(jaxpr: Any, wanted: list[bool]) -> list[bool]:
    """Which arguments of a jaxpr the wanted results depend on."""
    read = {v for v, w in zip(jaxpr.outvars, wanted, strict=True) if w and not _literal(v)}
    for equation in reversed(jaxpr.eqns):
        results = [v in read for v in equation.outvars]
        if any(results):
            arguments = zip(equation.invars, _read_by(equation, results), strict=True)
            read.update(v for v, needed in arguments if needed and not _literal(v))
    return [v in read for v in jaxpr.invars]


def _read_by(equation: Any, wanted: list[bool]) -> list[bool]:
    """Which arguments of an operation its wanted results depend on."""
    name, params = equation.primitive.name, equation.params
    if name == "scan":
        (body,) = _nested(params)
        n_consts, n_carry = _scan_sizes(params)
        while True:
            read = _read(body, wanted)
            # What one turn reads the turn before it has to produce.
            before = read[n_consts : n_consts + n_carry]
            more = [a or b for a, b in zip(wanted, before, strict=False)] + wanted[n_carry:]
            if more == wanted or params["length"] == 1:
                return read
            wanted = more
    if name in ("native_tag", "native_border"):
        return wanted
    if name in _CALLS:
        return _read(_nested(params)[0], wanted)
    return [True] * len(equation.invars)


def _scan_sizes(params: dict[str, Any]) -> tuple[int, int]:
    """The numbers of constants and of carried values of a scan."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # from jax 0.11
    return len(list(consts)), len(list(carry))


def _literal(v: Any) -> bool:
    return hasattr(v, "val")


def _nested(params: dict[str, Any]) -> list[Any]:
    """The jaxprs among the parameters of an operation."""
    found = []
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            item = getattr(item, "jaxpr", item)
            if hasattr(item, "eqns"):
                found.append(item)
    return found


_tag_p = Primitive("native_tag")
_border_p = Primitive("native_border")


def _lower_tag(context: mlir.LoweringRuleContext, *xs: ir.Value) -> list[ir.Value]:
    operation = getattr(xs[0].owner, "operation", xs[0].owner)
    if isinstance(operation, ir.Operation) and operation.name == "func.call":
        operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(
            {
                "xla_cpu_small_call": ir.StringAttr.get("true"),
                "inlineable": ir.StringAttr.get("false"),
            }
        )
    return list(xs)


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
