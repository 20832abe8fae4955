"""The parameters of operations that programs know, by the names of both.

A version of jax may add one, or a user give one, that changes what an operation does. A program
that does not read it would compute something else without a word, so that it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from ..program import BINARY, COMPARE, UNARY, Unsupported

# What a scatter may do besides putting: the names follow "scatter-" or "scatter_".
SCATTERED = ("add", "sub", "mul", "min", "max")

Accepts = Callable[[Any], bool]


def _any(value: Any) -> bool:
    """Read by the rule, or without effect on results."""
    return True


def _absent(value: Any) -> bool:
    return value is None


def _off(value: Any) -> bool:
    return not value


def _on_one_device(value: Any) -> bool:
    """No sharding, or one that divides no axis, as of what one device has in `jax.shard_map`."""
    return value is None or all(axis is None for axis in getattr(value, "spec", (value,)))


def _no_algorithm(value: Any) -> bool:
    """No precision is too low here, but an algorithm may round its operands."""
    precisions = value if isinstance(value, tuple) else (value,)
    return all(p is None or isinstance(p, jax.lax.Precision) for p in precisions)


def _mode(value: Any) -> bool:
    return str(value).rpartition(".")[2] in ("CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS")


def _params(names: str = "", **accepted: Accepts) -> dict[str, Accepts]:
    return dict.fromkeys(names.split(), _any) | accepted


# Arrays that lie on several devices are no part of a program; where XLA has been told that they
# do, it is left to do it.
_PLACED = {"sharding": _on_one_device}
_INDEXED = _params("dimension_numbers indices_are_sorted unique_indices", mode=_mode)
_SCATTER = _INDEXED | _params("update_jaxpr update_consts")
_JIT = _params(
    "jaxpr in_shardings out_shardings in_layouts out_layouts donated_invars ctx_mesh name "
    "keep_unused inline compiler_options_kvs"
)
_CALL = _params("call_jaxpr jaxpr name")
_CUSTOM = _params("call_jaxpr fun_jaxpr num_consts symbolic_zeros")
_SIMPLE = "add_any clamp copy copy_p is_finite optimization_barrier pow select_n square"
_PLAIN = (*UNARY, *BINARY, *COMPARE, *_SIMPLE.split(), "cholesky", "dynamic_update_slice", "lu")

PARAMETERS: Mapping[str, Mapping[str, Accepts]] = {
    **dict.fromkeys(_PLAIN, _params(accuracy=_absent, out_dtype=_absent)),
    **dict.fromkeys(("argmax", "argmin"), _params("axes index_dtype")),
    "broadcast_in_dim": _PLACED | _params("shape broadcast_dimensions"),
    **dict.fromkeys(
        ("checkpoint", "remat2"), _params("jaxpr prevent_cse differentiated policy name")
    ),
    **dict.fromkeys(("closed_call", "core_call"), _CALL),
    "concatenate": _params("dimension"),
    "cond": _params("branches branches_platforms"),
    "convert_element_type": _PLACED | _params("new_dtype weak_type"),
    **dict.fromkeys(("cummax", "cummin", "cumprod", "cumsum"), _params("axis reverse")),
    "custom_jvp_call": _CUSTOM | _params("jvp_jaxpr_fun jvp_jaxpr_thunk"),
    "custom_linear_solve": _params("const_lengths jaxprs"),
    **dict.fromkeys(
        ("custom_vjp_call", "custom_vjp_call_jaxpr"),
        _CUSTOM | _params("fwd_jaxpr_thunk bwd out_trees"),
    ),
    "dot_general": _params(
        "dimension_numbers preferred_element_type",
        precision=_no_algorithm,
        out_sharding=_on_one_device,
    ),
    "dynamic_slice": _params("slice_sizes"),
    "empty2": _params("dtype memory_space"),
    "gather": _INDEXED | _params("slice_sizes fill_value"),
    "integer_pow": _params("y"),
    "iota": _PLACED | _params("dtype shape dimension"),
    **dict.fromkeys(("jit", "pjit"), _JIT),
    "log2": _params(accuracy=_absent),
    "lu_pivots_to_permutation": _params("permutation_size"),
    "native": _params("loop batch batched_args"),
    "one_minus_square": _params(accuracy=_absent),
    "pad": _params("padding_config"),
    "platform_index": _params("platforms"),
    "polynomial": _params(accuracy=_absent),
    **dict.fromkeys(
        [f"reduce_{name}" for name in ("and", "max", "min", "or", "prod", "sum")],
        _params("axes", out_sharding=_on_one_device),
    ),
    **dict.fromkeys(("pcast", "pvary"), _params("axes axis_index_groups axis_name to")),
    "qr": _params("full_matrices use_magma", pivoting=_off),
    "reduced_vary_cast": _params("axes"),
    "reshard": _params("concrete_mesh", dst_sharding=_on_one_device),
    "reshape": _PLACED | _params("new_sizes dimensions"),
    "rev": _params("dimensions"),
    "round": _params("rounding_method"),
    "rsqrt": _params(accuracy=_absent),
    "scan": _params(
        "reverse length jaxpr num_consts num_carry linear unroll _split_transpose ft_in ft_out"
    ),
    **dict.fromkeys(
        ["scatter", *(f"scatter{mark}{name}" for name in SCATTERED for mark in "-_")], _SCATTER
    ),
    "slice": _params("start_indices limit_indices strides"),
    "sort": _params("dimension is_stable num_keys"),
    "split": _params("sizes axis"),
    "squeeze": _params("dimensions"),
    "stack": _params("axis"),
    "stop_gradient": _params(),
    "tile": _params("reps"),
    "transpose": _params("permutation"),
    # The complex conjugate of what is real is itself.
    "triangular_solve": _params("left_side lower transpose_a unit_diagonal conjugate_a"),
    "unstack": _params("axis"),
    "while": _params("cond_nconsts cond_jaxpr body_nconsts body_jaxpr"),
}


def check(name: str, params: Mapping[str, Any]) -> None:
    """Raises Unsupported for a parameter of an operation that its rule does not know."""
    known = PARAMETERS.get(name)
    if known is None:
        return  # an operation without a rule, which is refused by its name
    for key, value in params.items():
        accepts = known.get(key)
        if accepts is None or not accepts(value):
            raise Unsupported(f"the operation {name} with {key}={value!r}"[:200])
