"""The tables of a control problem in a file: a class for each type, whose fields are its keys."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..forces.actuators.actuator import Axis
from ..groups import se3, so3
from ..io.config import InitialTable
from ..io.loading import numbers_of, state_of
from ..io.modules import function
from ..quantities.bounded import Bounded
from ..system.fields import number
from ..system.frame import Frame
from ..system.system import System
from . import costs, inputs, limits

At = Literal["running", "final"]
_Numbers = float | list[float]
_Point = Annotated[list[float], number(unit="m", shape=(3,))]


def _pose(frame: Frame) -> Any:
    """The pose (4, 4) of a frame in that of its body."""
    T = se3.exp(jnp.zeros(6)).at[:3, 3].set(frame.position)
    return T.at[:3, :3].set(so3.exp(frame.rotation))


class Place(NamedTuple):
    """Where a table is read: for this machine, in the file at a path, with the name `where`.

    allow_code: whether modules that the file names may be imported.
    """

    system: System
    path: Path
    where: str
    allow_code: bool

    def state(self, table: InitialTable) -> tuple[Any, Any]:
        """The state (q (nq,), v (nv,)) in a table."""
        return state_of(self.system, table, self.where)

    def function(self, name: str) -> Any:
        """The function with a name "module:function"."""
        return function(name, self.path, f"{self.where}.function", self.allow_code)


@dataclass(frozen=True)
class HorizonTable:
    """[horizon]: steps of dt (s), by a method and with controls as in `difflie.control.Problem`.

    duration: the least and the largest of the whole horizon in s, if it is free.
    """

    dt: Annotated[float, number(unit="s", positive=True, least=1e-12, most=1e12)]
    steps: Annotated[int, number(least=1)]
    method: str = "SemiImplicitEuler"
    interpolation: Literal["constant", "linear"] = "constant"
    duration: Annotated[list[float], number(unit="s", shape=(2,), positive=True)] | None = None


@dataclass(frozen=True, kw_only=True)
class CostTable:
    """A table [[cost]]: at: where it counts; weight: one number, or one for each entry."""

    at: At = "running"
    weight: Annotated[_Numbers, number(shape=None, nonnegative=True)] = 1.0

    @property
    def _weight(self) -> np.ndarray:
        return np.asarray(self.weight, float)


@dataclass(frozen=True, kw_only=True)
class PoseCost(CostTable):
    """frame: on a body; goal: a frame in the world."""

    frame: Frame
    goal: Frame

    def made(self, at: Place) -> costs.Cost:
        return costs.Pose(self.frame, _pose(self.goal), self._weight)


@dataclass(frozen=True, kw_only=True)
class PointCost(CostTable):
    """frame: on a body; goal: a point in the world, in m."""

    frame: Frame
    goal: _Point

    def made(self, at: Place) -> costs.Cost:
        return costs.Point(self.frame, self.goal, self._weight)


@dataclass(frozen=True, kw_only=True)
class StateCost(CostTable, InitialTable):
    """The goal as in [initial]."""

    def made(self, at: Place) -> costs.Cost:
        q, v = at.state(self)
        return costs.State(q, self._weight, v)


@dataclass(frozen=True, kw_only=True)
class ConfigurationCost(CostTable, InitialTable):
    """The goal as in [initial]; its velocities are not used."""

    def made(self, at: Place) -> costs.Cost:
        return costs.Configuration(at.state(self)[0], self._weight)


@dataclass(frozen=True, kw_only=True)
class VelocityCost(CostTable):
    """goal: in rad/s or m/s, one for each velocity."""

    goal: list[float] | None = None

    def made(self, at: Place) -> costs.Cost:
        goal = self.goal and numbers_of(f"{at.where}.goal", self.goal, at.system.nv)
        return costs.Velocity(self._weight, goal)


@dataclass(frozen=True, kw_only=True)
class EffortCost(CostTable):
    """goal: in the units of the controls, one for each."""

    goal: list[float] | None = None

    def made(self, at: Place) -> costs.Cost:
        return costs.Effort(self._weight, self.goal and np.asarray(self.goal, float))


@dataclass(frozen=True, kw_only=True)
class CenterOfMassCost(CostTable):
    """goal: a point in the world, in m."""

    goal: _Point

    def made(self, at: Place) -> costs.Cost:
        return costs.CenterOfMass(self.goal, self._weight)


@dataclass(frozen=True, kw_only=True)
class EnergyCost(CostTable):
    """goal: the total energy."""

    goal: Annotated[float, number(unit="J")]

    def made(self, at: Place) -> costs.Cost:
        return costs.Energy(self.goal, self._weight)


@dataclass(frozen=True, kw_only=True)
class DurationCost(CostTable):
    """It counts at the end."""

    at: Literal["final"] = "final"

    def made(self, at: Place) -> costs.Cost:
        return costs.Duration(self._weight)


@dataclass(frozen=True, kw_only=True)
class FunctionCost(CostTable):
    """function: "module:name" of a residual f(system, q, v, u, t), such as beside the file."""

    function: str

    def made(self, at: Place) -> costs.Cost:
        return costs.Cost(at.function(self.function), self._weight)


@dataclass(frozen=True, kw_only=True)
class ReachBound:
    """frame: on a body; goal: a frame in the world for its pose, or point in m for its origin."""

    frame: Frame
    goal: Frame | None = None
    point: _Point | None = None
    at: At = "final"

    def problems(self) -> list[str]:
        if (self.goal is None) == (self.point is None):
            return ["give either goal, a pose {position = ..., rotation = ...}, or point"]
        return []

    def made(self, at: Place) -> Bounded:
        return limits.Reach(self.frame, self.point if self.goal is None else _pose(self.goal))


@dataclass(frozen=True, kw_only=True)
class ReachStateBound(InitialTable):
    """The state as in [initial]."""

    at: At = "final"

    def made(self, at: Place) -> Bounded:
        return limits.ReachState(*at.state(self))


@dataclass(frozen=True, kw_only=True)
class MinDistanceBound:
    """first, second: frames on bodies or in the world; least: the distance of their origins."""

    first: Frame
    second: Frame
    least: Annotated[float, number(unit="m", positive=True)]
    at: At = "running"

    def made(self, at: Place) -> Bounded:
        return limits.MinDistance(self.first, self.second, self.least)


@dataclass(frozen=True, kw_only=True)
class FunctionBound:
    """function: "module:name" of what is bounded, f(system, q, v, u, t); lower, upper: its bounds.

    The bounds are one number each, or one for each entry.
    """

    function: str
    lower: Annotated[_Numbers, number(shape=None)] | None = None
    upper: Annotated[_Numbers, number(shape=None)] | None = None
    at: At = "running"

    def made(self, at: Place) -> Bounded:
        lower = -np.inf if self.lower is None else np.asarray(self.lower, float)
        upper = np.inf if self.upper is None else np.asarray(self.upper, float)
        return Bounded(at.function(self.function), lower, upper)


@dataclass(frozen=True)
class LimitsTable:
    """[limits]: those of the robot's file, unless robot is false; others as in `Limits`."""

    robot: bool = True
    q_lower: Annotated[_Numbers, number(unit="rad or m", shape=None)] | None = None
    q_upper: Annotated[_Numbers, number(unit="rad or m", shape=None)] | None = None
    v: Annotated[_Numbers, number(unit="rad/s or m/s", shape=None, positive=True)] | None = None
    u_lower: Annotated[_Numbers, number(shape=None)] | None = None
    u_upper: Annotated[_Numbers, number(shape=None)] | None = None

    def made(self, system: System, used: inputs.Input, where: str) -> limits.Limits:
        sizes = {"q": system.topology.n_dofs, "v": system.nv, "u": used.size(system)}
        found = {}
        for field in dataclasses.fields(limits.Limits):
            given = getattr(self, field.name)
            if isinstance(given, list):
                given = numbers_of(f"{where}.{field.name}", given, sizes[field.name[0]])
            if given is not None:
                found[field.name] = given
        start = limits.Limits.of(system, used) if self.robot else limits.Limits()
        return dataclasses.replace(start, **found)


@dataclass(frozen=True, kw_only=True)
class MotorsInput:
    """joints: names, or patterns such as "*_knee"."""

    joints: list[str]

    def made(self) -> inputs.Input:
        return inputs.Motors(tuple(self.joints))


@dataclass(frozen=True, kw_only=True)
class ThrustersInput:
    """axes: {body, position, direction} each; lower, upper: one number, or one for each."""

    axes: list[Axis]
    lower: Annotated[_Numbers, number(unit="N", shape=None)] = 0.0
    upper: Annotated[_Numbers, number(unit="N", shape=None)] | None = None

    def made(self) -> inputs.Input:
        upper = np.inf if self.upper is None else np.asarray(self.upper, float)
        return inputs.Thrusters(tuple(self.axes), np.asarray(self.lower, float), upper)


@dataclass(frozen=True, kw_only=True)
class GuessTable(InitialTable):
    """[guess]: controls u, held all the time, or states: a straight line, or a function.

    The line leads to a state as in [initial]; function: "module:name" of (system, t) -> q, v. With
    states the controls, zero if they are not given, need not fit them.
    """

    u: list[float] | None = None
    function: str | None = None

    @property
    def is_line(self) -> bool:
        return bool(self.q or self.v or self.joints or self.rates)


COSTS: dict[str, type] = {
    "Pose": PoseCost,
    "Point": PointCost,
    "State": StateCost,
    "Configuration": ConfigurationCost,
    "Velocity": VelocityCost,
    "Effort": EffortCost,
    "CenterOfMass": CenterOfMassCost,
    "Energy": EnergyCost,
    "Duration": DurationCost,
    "Function": FunctionCost,
}
BOUNDS: dict[str, type] = {
    "Reach": ReachBound,
    "ReachState": ReachStateBound,
    "MinDistance": MinDistanceBound,
    "Function": FunctionBound,
}
INPUTS: dict[str, type] = {"Motors": MotorsInput, "Thrusters": ThrustersInput}
