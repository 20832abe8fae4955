"""Tables of identification files that say how parameters are fitted and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ..system.fields import number

Seconds = Annotated[float, number(unit="s", positive=True)]
Substeps = Annotated[int, number(least=1, most=1000)]
Torques = Annotated[float | list[float], number(unit="N m or N", shape=None, positive=True)]
Positions = Annotated[float | list[float], number(unit="rad or m", shape=None, positive=True)]
Velocities = Annotated[float | list[float], number(unit="rad/s or m/s", shape=None, positive=True)]


@dataclass(frozen=True)
class FitTable:
    """[fit]: the error, its standard deviations, and when to stop.

    torque (N m or N), position (rad or m) and velocity (rad/s or m/s): one deviation for all, or
    one for each velocity. positions: whether q counts in motions; false where readings of other
    sensors are to find the motion, and q gives its starts alone. unactuated: that of the torques at
    dofs without an actuator; without it these are left out. window: of motions, in s; states:
    whether the initial states of windows are estimated; substeps: of each row. loss, with its limit
    in deviations. leave_out: whether to cross-validate: each run in turn is judged by a fit to the
    others.
    """

    error: Literal["torque", "motion", "both"] = "torque"
    torque: Torques = 1.0
    unactuated: Torques | None = None
    position: Positions = 1.0
    positions: bool = True
    velocity: Velocities | None = None
    window: Seconds | None = None
    states: bool = False
    substeps: Substeps = 1
    loss: Literal["squares", "huber", "cauchy"] = "squares"
    limit: Annotated[float, number(positive=True)] = 2.0
    steps: Annotated[int, number(positive=True)] = 100
    tolerance: Annotated[float, number(positive=True, least=0, most=1e-2)] = 1e-8
    leave_out: bool = False


@dataclass(frozen=True)
class ValidationTable:
    """[validation]: windows (s) of the motions that are simulated with measured torques.

    observe: the rows of a window, two or more, that determine its initial state and are not judged;
    without it the motion starts at the first row. substeps: of each row.
    """

    window: Seconds = 0.5
    observe: Annotated[int, number(least=2)] | None = None
    substeps: Substeps = 1
