"""Bounds of problems of optimal control: states and points that are reached, distances kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import quantities as dq
from ..quantities.bounded import Bounded
from ..quantities.quantity import as_quantity
from ..system.frame import Frame


class Equal(Bounded):
    """quantity = goal, for every entry of a quantity (n,); goal () or (n,)."""

    is_equality = True

    def __init__(self, quantity: Any, goal: Any = None) -> None:
        quantity = as_quantity(quantity)
        quantity = quantity if goal is None else dq.Deviation(quantity, goal)
        super().__init__(quantity, 0.0, 0.0)


class Reach(Equal):
    """A frame reaches a pose (4, 4), or its origin a point (3,), in the world.

    frame: a `Frame`, or the name of a body for its own frame.
    """

    def __init__(self, frame: Any, goal: Any) -> None:
        if np.shape(goal) == (4, 4):
            super().__init__(dq.PoseDeviation(frame, goal))
        else:
            super().__init__(dq.Origin(frame), goal)


class ReachState(Equal):
    """The state is q (nq,), v (nv,); v None for rest."""

    def __init__(self, q: Any, v: Any = None) -> None:
        super().__init__(dq.StateDeviation(q, v))


class MinDistance(Bounded):
    """The origins of two frames keep a distance of at least so many m: two spheres at them.

    first, second: a `Frame`, or the name of a body for its own frame; a Frame on None is fixed in
    the world. least: for spheres the sum of their radii.
    """

    def __init__(self, first: Frame | str, second: Frame | str, least: Any) -> None:
        super().__init__(dq.Distance(first, second), lower=least)
