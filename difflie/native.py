"""One native call on the CPU.

XLA's CPU runtime launches every small kernel of a program separately; for rigid-body dynamics
almost all the time is spent on launching. A computation marked here is compiled into one native
function instead, an order of magnitude faster for a single trajectory and with the same results.

The mark is an internal of XLA. It is set on the CPU only, and only on programs made of operations
that are known to compile under it, forwards and differentiated; all others run the ordinary way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

# Gathers are missing on purpose: their derivative is a scatter, which does not compile.
_SUPPORTED = frozenset(
    "abs acos add add_any and asin atan atan2 broadcast_in_dim checkpoint clamp concatenate "
    "convert_element_type copy cos cosh custom_jvp_call custom_linear_solve custom_vjp_call div dynamic_slice dynamic_update_slice eq erf exp exp2 "
    "expm1 floor ge gt integer_pow iota is_finite jit le log log1p logistic lt max min mul ne neg "
    "not or pad pjit pow reduce_max reduce_min reduce_sum rem remat2 reshape rev round rsqrt scan "
    "select_n sign sin sinh slice sqrt square squeeze stack stop_gradient sub tan tanh transpose while "
    "zeros_like".split()
)


def mark(f: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit(f)`, compiled as one native function where that is known to work."""
    compiled = jax.jit(f)

    @functools.wraps(f)
    def marked(*args: Any) -> Any:
        if jax.default_backend() != "cpu" or not supported(compiled.trace(*args).jaxpr.jaxpr):
            return compiled(*args)
        with set_xla_metadata(xla_cpu_small_call="true", inlineable="false"):
            return compiled(*args)

    return marked


def supported(jaxpr: Any) -> bool:
    """Whether every operation of a jaxpr, nested ones included, can be part of a native call."""
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _SUPPORTED:
            return False
        if not all(supported(inner) for inner in jax.core.jaxprs_in_params(equation.params)):
            return False
    return True
