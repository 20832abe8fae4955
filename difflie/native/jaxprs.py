"""What has to be known of jaxprs, for all supported versions of jax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from .private import ClosedJaxpr, eval_jaxpr, scan_sizes, untracked, varying_axes


def is_literal(v: Any) -> bool:
    """Whether an atom of a jaxpr is a number rather than a variable."""
    return hasattr(v, "val")


def variables(atoms: Sequence[Any]) -> list[Any]:
    """Those atoms that are no numbers."""
    return [v for v in atoms if not is_literal(v)]


def nested(params: dict[str, Any]) -> list[ClosedJaxpr]:
    """The jaxprs among the parameters of an operation, closed ones as they are."""
    jaxprs = []
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(item, "jaxpr"):
                jaxprs.append(item)
            elif hasattr(item, "eqns"):
                jaxprs.append(ClosedJaxpr(item, ()))
    return jaxprs


def contains(jaxpr: Any, name: str) -> bool:
    """Whether a jaxpr has operations whose names begin so, or a function within it does."""
    return any(
        e.primitive.name.startswith(name)
        or any(contains(inner.jaxpr, name) for inner in nested(e.params))
        for e in jaxpr.eqns
    )


def has_keys(jaxpr: Any) -> bool:
    """Whether values in a jaxpr are typed keys of random numbers, which are no numbers."""
    return any(map(_is_key, (*jaxpr.constvars, *jaxpr.invars))) or any(
        any(map(_is_key, e.outvars)) or any(has_keys(inner.jaxpr) for inner in nested(e.params))
        for e in jaxpr.eqns
    )


def _is_key(v: Any) -> bool:
    return jnp.issubdtype(v.aval.dtype, jax.dtypes.extended)


# What is a call of the function within it, and nothing else.
_CALLS = {"checkpoint", "closed_call", "core_call", "jit", "pjit", "remat2"}


def depending(jaxpr: Any, varied: Sequence[bool]) -> list[bool]:
    """Which results change, perhaps, with arguments that vary; whole numbers never do."""
    changing = {v for v, moves in zip(jaxpr.invars, varied, strict=True) if moves}
    for equation in jaxpr.eqns:
        if equation.primitive.name == "stop_gradient":
            continue
        reads = [not is_literal(v) and v in changing for v in equation.invars]
        if not any(reads):
            continue
        name = equation.primitive.name
        if name in _CALLS:
            changes = depending(nested(equation.params)[0].jaxpr, reads)
        elif name == "scan":
            changes = _scan_depending(equation.params, reads)
        elif name == "cond":
            # Which branch is taken is a whole number. Each may change others of the results.
            branches = [depending(b.jaxpr, reads[1:]) for b in equation.params["branches"]]
            changes = map(any, zip(*branches, strict=True))
        else:
            # A function with a derivative of its own may change with all that it reads.
            changes = list(map(_is_float, equation.outvars))
        changing.update(v for v, c in zip(equation.outvars, changes, strict=True) if c)
    return [not is_literal(v) and v in changing and _is_float(v) for v in jaxpr.outvars]


def _scan_depending(params: dict[str, Any], varied: list[bool]) -> list[bool]:
    (body,), (n, carry) = nested(params), scan_sizes(params)
    while True:
        results = depending(body.jaxpr, varied)
        more = [v or r for v, r in zip(varied[n : n + carry], results, strict=False)]
        if more == varied[n : n + carry]:
            return [*more, *results[carry:]]
        varied = [*varied[:n], *more, *varied[n + carry :]]


def _is_float(v: Any) -> bool:
    return jnp.issubdtype(v.aval.dtype, jnp.inexact)


def with_results(jaxpr: Any, invars: Sequence[Any], outvars: Sequence[Any]) -> Any:
    """The same equations with other arguments, in another order, and other results."""
    return jaxpr.replace(invars=list(invars), outvars=list(outvars))


def with_traced_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The jaxpr with its traced constants as first arguments, and these; the others stay known."""
    constants = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    running = [v for v, c in constants.items() if isinstance(c, Tracer)]
    if not running:
        return closed, []

    def applied(*args: Any) -> list[Any]:
        known = {**constants, **dict(zip(running, args, strict=False))}
        return eval_jaxpr(closed.jaxpr, list(known.values()), *args[len(running) :])

    avals = [v.aval for v in (*running, *closed.jaxpr.invars)]
    alone = [jax.ShapeDtypeStruct(a.shape, a.dtype) if varying_axes(a) else a for a in avals]
    with untracked():
        return jax.make_jaxpr(applied)(*alone), [constants[v] for v in running]


def without_closure(f: Callable[..., Any], *like: Any) -> tuple[Callable[..., Any], list[Any]]:
    """f as a function of the values that it closes over and its arguments, and these values.

    A function with derivatives of its own may close over no traced ones. like: arguments as f gets
    them, by shape.
    """
    closed, shapes = jax.make_jaxpr(f, return_shape=True)(*like)
    results = jax.tree.structure(shapes)

    def explicit(constants: list[Any], *args: Any) -> Any:
        leaves = eval_jaxpr(closed.jaxpr, constants, *jax.tree.leaves(args))
        return jax.tree.unflatten(results, leaves)

    return explicit, closed.consts
