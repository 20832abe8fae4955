"""Errors over the step size: the order that they show, and pictures with logarithmic axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .figures import FLOOR, plain


def slope(h: Any, errors: Any) -> float:
    """The exponent k of errors (n,) ~ h^k, by least squares in the logarithms; h (n,) > 0."""
    return float(np.polyfit(np.log(h), np.log(errors), 1)[0])


def draw_errors(axes: Axes, x: Any, errors: Any, label: str | None = None, **style: Any) -> Line2D:
    """Errors (n,) over x (n,), such as step sizes or times; zeros stand at the lower edge.

    style: as `Axes.plot` takes it.
    """
    style = {"linewidth": 1.3, **style}
    name = None if label is None else plain(label)
    return axes.loglog(x, np.maximum(errors, FLOOR), label=name, **style)[0]


def draw_slope(axes: Axes, h: Any, last: float, order: float, **style: Any) -> None:
    """The line of errors ~ h^order over h (n,) whose value at the last h is given.

    style: as `Axes.plot` takes it; named by the order where it has no label.
    """
    h = np.asarray(h)
    name = style.pop("label", f"slope {order:g}")
    draw_errors(axes, h, last * (h / h[-1]) ** order, name, **style)
