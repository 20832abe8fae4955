"""How parameters show themselves: their names with units and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system.text import subsample


def parameters_text(parameters: Any) -> str:
    """A `Parameters` in some lines, without any number that may be traced."""
    lower, upper = parameters.limits
    rows = [
        (name, unit, between(low, high))
        for name, unit, low, high in zip(
            parameters.names, parameters.units, lower, upper, strict=True
        )
    ]
    count = f"{len(rows)} {'number' if len(rows) == 1 else 'numbers'}"
    title = f"{type(parameters).__name__} of {parameters.title}: {count}"
    return "\n".join([title, *subsample(("name", "unit", "bounds"), rows, "numbers")])


def between(low: float | NDArray, high: float | NDArray) -> str:
    """Bounds in words; "" for none."""
    if np.isinf(low) and np.isinf(high):
        return ""
    if np.isinf(high):
        return f"above {low:.6g}"
    return f"below {high:.6g}" if np.isinf(low) else f"{low:.6g} to {high:.6g}"
