"""Figures 5.1 to 5.8, and one of all order plots."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...view.errors import draw_errors, draw_slope
from ...view.figures import draw_lines, figure, label
from .schemes import SCHEMES
from .study import DURATION, ORDER_DURATION, ORDER_STEPS, Study, energy_order, showing_order

CASES = {
    "gravity": "gravity alone",
    "mono": "mono-articular springs",
    "multi": "a multi-articular spring",
}

# By case and method.
Studies = dict[tuple[str, str], Study]

_STABLE, _GAUSS = "energy-stable midpoint", "energy-stable 3-point Gauss"
_SINE, _MIDPOINT = "variational sine", "implicit midpoint"


def figures(studies: Studies) -> dict[str, Figure]:
    """The figures by file name."""
    what = {
        "figure_5_1": (_over_time, "constraint", "gravity", (_STABLE, _SINE)),
        "figure_5_2": (_over_time, "constraint", "mono", (_STABLE, _SINE)),
        "figure_5_3": (_over_time, "energy", "gravity", (_STABLE, _SINE, _MIDPOINT)),
        "figure_5_4": (_orders, "gravity", (_SINE, _MIDPOINT)),
        "figure_5_5": (_over_time, "energy", "mono", (_STABLE, _SINE)),
        "figure_5_6": (_over_time, "energy", "mono", (_GAUSS,)),
        "figure_5_7": (_orders, "mono", (_STABLE, _SINE)),
        "figure_5_8": (_orders, "mono", (_GAUSS,)),
        "all_methods": (_all_orders,),
    }
    return {name: draw(studies, *rest) for name, (draw, *rest) in what.items()}


def _over_time(studies: Studies, quantity: str, case: str, methods: tuple[str, ...]) -> Figure:
    """The constraint or energy errors of methods in a case, one below the other."""
    canvas, axes = figure(len(methods), 1, (8.0, 1.0 + 2.6 * len(methods)))
    canvas.suptitle(f"{_capitalised(quantity)} error, {CASES[case]}")
    for a, method in zip(axes[:, 0], methods, strict=True):
        motion, error = studies[case, method].long, "energy error [J]"
        values, names = motion.energy_error[:, None], [""]
        if quantity == "constraint":
            values, names = motion.constraint, ["link 1", "link 2", "link 3"]
            error = f"error of {'length [m²]' if method.startswith('energy') else 'norm [-]'}"
        draw_lines(a, motion.t, values, names)
        a.set_xlim(0, DURATION)
        label(a, "t [s]", error, _capitalised(method))
    canvas.align_ylabels()
    return canvas


def _orders(studies: Studies, case: str, methods: tuple[str, ...]) -> Figure:
    """The mean energy errors of methods over the step size, and lines of their orders."""
    canvas, axes = figure(1, len(methods), (1.0 + 5.0 * len(methods), 4.5))
    canvas.suptitle(f"Mean energy error in {ORDER_DURATION:g} s, {CASES[case]}")
    for a, method in zip(axes[0], methods, strict=True):
        averages = studies[case, method].averages
        draw_errors(a, ORDER_STEPS, averages, linewidth=1.5)
        order = energy_order(ORDER_STEPS, averages)
        if order is not None:
            part = showing_order(averages)
            h = ORDER_STEPS[part]
            last = np.exp(np.mean(np.log(averages[part]) - order * np.log(h / h[-1])))
            style = {"linestyle": "--", "linewidth": 1.5}
            draw_slope(a, h[[0, -1]], last, order, label=f"slope {order:.2f}", **style)
        label(a, "dt [s]", "mean energy error [J]", _capitalised(method))
    return canvas


def _all_orders(studies: Studies) -> Figure:
    canvas, axes = figure(1, len(CASES), (13.0, 5.0))
    canvas.suptitle(f"Mean energy error in {ORDER_DURATION:g} s")
    for a, (case, title) in zip(axes[0], CASES.items(), strict=True):
        for method in SCHEMES:
            draw_errors(a, ORDER_STEPS, studies[case, method].averages, method)
        a.set_ylim(1e-16, 10)
        legend = a is axes[0, -1]
        label(a, "dt [s]", "mean energy error [J]", _capitalised(title), legend=legend)
    return canvas


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
