"""One native call on the CPU.

XLA's CPU runtime launches every small kernel of a program separately; for rigid-body dynamics
almost all the time is spent on launching. A computation marked here is compiled into one native
function instead, an order of magnitude faster for a single trajectory and with the same results.

The mark is an attribute of the call operation, an internal of XLA. It is set on the CPU only, and
only on programs made of operations that are known to compile under it, forwards and
differentiated; all others run the ordinary way. To mark the call of a derivative as well, the
results of the call carry a primitive that marks the operation they come from, and its arguments
one that becomes it under transposition and is an optimisation barrier; both are the identity.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

# Gathers are missing on purpose: their derivative is a scatter, which does not compile.
_SUPPORTED = frozenset(
    "abs acos add add_any and asin atan atan2 broadcast_in_dim checkpoint clamp closed_call "
    "concatenate convert_element_type copy cos cosh custom_jvp_call custom_linear_solve div "
    "dynamic_slice dynamic_update_slice eq exp exp2 expm1 floor ge gt integer_pow iota is_finite "
    "jit le log log1p logistic lt max min mul ne neg not or pad pjit pow reduce_max reduce_min "
    "reduce_sum rem remat2 reshape rev round rsqrt scan select_n sign sin sinh slice sqrt square "
    "squeeze stack stop_gradient sub tan tanh transpose while zeros_like".split()
)


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
        if not supported(closed.jaxpr):
            return f(*args)
        # An argument that is not used inside would leave the native function without its address;
        # the borders also keep the compiler from moving constant arguments inside.
        needed, used = pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
        call = jax.jit(functools.partial(jax.core.eval_jaxpr, needed, closed.consts))
        arguments = [_border_p.bind(x) for x, keep in zip(leaves, used, strict=True) if keep]
        results = [_tag_p.bind(x) for x in call(*arguments)]
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return marked


def supported(jaxpr: Any) -> bool:
    """Whether every operation of a jaxpr, nested ones included, can be part of a native call."""
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _SUPPORTED:
            return False
        if not all(supported(inner) for inner in _nested(equation.params)):
            return False
    return True


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


def _lower_tag(context: mlir.LoweringRuleContext, x: ir.Value) -> list[ir.Value]:
    operation = getattr(x.owner, "operation", x.owner)
    if isinstance(operation, ir.Operation):
        operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(
            {
                "xla_cpu_small_call": ir.StringAttr.get("true"),
                "inlineable": ir.StringAttr.get("false"),
            }
        )
    return [x]


for _primitive, _transposed in ((_tag_p, _border_p), (_border_p, _tag_p)):
    _primitive.def_impl(lambda x: x)
    _primitive.def_abstract_eval(lambda aval: aval)
    batching.defvectorized(_primitive)
    ad.deflinear2(_primitive, lambda ct, _, transposed=_transposed: [transposed.bind(ct)])
mlir.register_lowering(_tag_p, _lower_tag, cacheable=False)
mlir.register_lowering(_border_p, lambda context, x: hlo.OptimizationBarrierOp([x]).results)
