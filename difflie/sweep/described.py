"""Designs from the descriptions that stores keep of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .design import Design, Listed, Product
from .distributions import Distribution, LogUniform, Normal, Uniform
from .samples import Drawn, LatinHypercube, Random, Saltelli, Sobol

_DRAWN: dict[str, type[Drawn]] = {c.__name__: c for c in (LatinHypercube, Random, Saltelli, Sobol)}
_OF: dict[str, type[Distribution]] = {c.__name__: c for c in (LogUniform, Normal, Uniform)}


def described_design(described: Mapping[str, Any]) -> Design | None:
    """The design whose `described` this is; None where its class is not one of difflie's."""
    if "listed" in described:
        return Listed(described["listed"])
    if "product" in described:
        parts = [described_design(part) for part in described["product"]]
        known = tuple(part for part in parts if part is not None)
        return Product(known) if len(known) == len(parts) else None
    kind = _DRAWN.get(described.get("drawn", ""))
    of = {name: _distribution(d) for name, d in described.get("of", {}).items()}
    known = {name: distribution for name, distribution in of.items() if distribution is not None}
    if kind is None or len(known) < len(of):
        return None
    return kind(known, described["count"], described["seed"])


def _distribution(described: Mapping[str, Any]) -> Distribution | None:
    numbers = dict(described)
    kind = _OF.get(numbers.pop("distribution", ""))
    return None if kind is None else kind(**numbers)
