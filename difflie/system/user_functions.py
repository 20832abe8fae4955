"""How functions that users write are called: laws of forces, controls, events, quantities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..native import as_written


def called(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), with numbers as jax has them: 0 times infinity is no number, and 0 - 0 is not -0.

    In algorithms on a machine the zeros of its structure are left out instead. A function of this
    package keeps that.
    """
    return as_written(f, *args)
