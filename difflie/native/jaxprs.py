"""What has to be known of jaxprs, for all supported versions of jax."""

from __future__ import annotations

from typing import Any

from jax.extend.core import ClosedJaxpr


def is_literal(v: Any) -> bool:
    """Whether an atom of a jaxpr is a number rather than a variable."""
    return hasattr(v, "val")


def nested(params: dict[str, Any]) -> list[ClosedJaxpr]:
    """The jaxprs among the parameters of an operation, closed ones as they are."""
    found = []
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(item, "jaxpr"):
                found.append(item)
            elif hasattr(item, "eqns"):
                found.append(ClosedJaxpr(item, ()))
    return found


def scan_sizes(params: dict[str, Any]) -> tuple[int, int]:
    """The numbers of constants and of carried values of a scan."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # from jax 0.11
    return len(list(consts)), len(list(carry))
