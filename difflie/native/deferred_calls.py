"""Calls inside of a call: marks, which become calls where what is around them has no program.

While a native call is traced, a kernel within it is an operation of jax (`jit`) of a name of its
own. A program is written through it as through any other function. Where the outer call runs the
ordinary way, as under a user's control that no program knows, `with_calls` makes native calls of
the outermost marks, so that the dynamics at least is compiled natively.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from .jaxprs import is_literal, nested, variables
from .private import ClosedJaxpr, eval_jaxpr
from .strict_user_code import region_within

_NAME = "difflie_kernel"

# What makes a native call of a function, from it and its arguments.
Call = Callable[[ClosedJaxpr, Sequence[Any]], list[Any]]


def marked(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is called once, as a mark. Arguments and results are pytrees of arrays."""
    f.__name__ = _NAME
    return jax.jit(f)


def _is_mark(equation: Any) -> bool:
    return equation.params.get("name") == _NAME


def _has_marks(jaxpr: Any) -> bool:
    return any(
        _is_mark(e) or any(_has_marks(inner.jaxpr) for inner in nested(e.params))
        for e in jaxpr.eqns
    )


def with_calls(closed: ClosedJaxpr, call: Call) -> ClosedJaxpr:
    """A function whose outermost marks are native calls; itself where there are none."""
    if not _has_marks(closed.jaxpr):
        return closed
    return jax.make_jaxpr(functools.partial(_evaluated, closed, call))(*closed.in_avals)


def _evaluated(closed: ClosedJaxpr, call: Call, *args: Any) -> list[Any]:
    jaxpr = closed.jaxpr
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *args), strict=True))

    def with_inner_calls(inner: Any) -> Any:
        return with_calls(inner, call) if isinstance(inner, ClosedJaxpr) else inner

    for e in jaxpr.eqns:
        if _is_mark(e):
            read = [v.val if is_literal(v) else values[v] for v in e.invars]
            with region_within(e):
                results = call(nested(e.params)[0], read)
        else:
            if any(_has_marks(inner.jaxpr) for inner in nested(e.params)):
                e = e.replace(params=jax.tree.map(with_inner_calls, e.params))
            reads = variables(e.invars)
            one = jaxpr.replace(constvars=[], invars=reads, outvars=e.outvars, eqns=[e])
            results = eval_jaxpr(one, [], *(values[v] for v in reads))
        values.update(zip(e.outvars, results, strict=True))
    return [v.val if is_literal(v) else values[v] for v in jaxpr.outvars]
