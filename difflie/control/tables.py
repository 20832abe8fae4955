"""The tables of a control problem in a file: a class for each type, whose fields are its keys.

Those of costs and bounds follow from their classes, see `table_of`, and inputs are read as forces.
"""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from ..io.config import InitialTable
from ..io.loading import numbers_of, state_of
from ..io.modules import function
from ..quantities.bounded import Bounded
from ..system.fields import declared, number
from ..system.frame import Frame
from ..system.system import System
from . import costs, inputs, limits

At = Literal["running", "final"]
_Numbers = float | list[float]


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


def table_of(cls: Any, at: At = "running", ats: Any = At, **sizes: str) -> type:
    """The table of a cost or bound: its keys are the arguments of the class, and `at`.

    Their kinds follow from annotations, or fields of the same names. A state q, v is given as in
    [initial], a quantity by the name of a `function`. at: where it counts if nothing is said, ats:
    where it can. sizes: the attribute of the system that says how many numbers an argument needs.
    """
    arguments = dict(inspect.signature(cls.__init__, eval_str=True).parameters)
    del arguments["self"]
    bases = (InitialTable,) if "q" in arguments else ()
    own = [p for p in arguments.values() if p.name not in ("q", "v", "quantity")]
    hints, numbers = get_type_hints(cls, include_extras=True), declared(cls)
    keys: list[Any] = [("function", str)] if "quantity" in arguments else []
    for p in own:
        about = numbers.get(p.name)
        hint = p.annotation if about is None else Annotated[hints[p.name], about]
        keys.append((p.name, hint, p.default)[: 3 - (p.default is p.empty)])

    def made(self: Any, place: Place) -> Any:
        given = {p.name: getattr(self, p.name) for p in own}
        if bases:
            given |= dict(zip("qv", place.state(self), strict=True))
        if "quantity" in arguments:
            given["quantity"] = place.function(self.function)
        for name, size in sizes.items():
            n, value = getattr(place.system, size), given[name]
            given[name] = value and numbers_of(f"{place.where}.{name}", value, n)
        return cls(**{name: given[name] for name in arguments})

    return dataclasses.make_dataclass(
        f"{cls.__name__}Table",
        [*keys, ("at", ats, at)],
        bases=bases,
        namespace={"made": made, "__doc__": cls.__doc__},
        frozen=True,
        kw_only=True,
    )


@dataclass(frozen=True, kw_only=True)
class ReachBound:
    """A frame reaches a pose in the world, or its origin a point.

    frame: on a body; goal: a frame in the world for its pose, or point in m for its origin.
    """

    frame: Frame
    goal: Frame | None = None
    point: costs.Position | None = None
    at: At = "final"

    def problems(self) -> list[str]:
        if (self.goal is None) == (self.point is None):
            return ["give either goal, a pose {position = ..., rotation = ...}, or point"]
        return []

    def made(self, at: Place) -> Bounded:
        goal = self.goal or self.point
        assert goal is not None
        return limits.Reach(self.frame, goal)


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
    "Pose": table_of(costs.Pose),
    "Point": table_of(costs.Point),
    "State": table_of(costs.State),
    "Configuration": table_of(costs.Configuration),
    "Velocity": table_of(costs.Velocity, goal="nv"),
    "Effort": table_of(costs.Effort),
    "CenterOfMass": table_of(costs.CenterOfMass),
    "Energy": table_of(costs.Energy),
    "Duration": table_of(costs.Duration, "final", Literal["final"]),
    "Function": table_of(costs.Cost),
}
BOUNDS: dict[str, type] = {
    "Reach": ReachBound,
    "ReachState": table_of(limits.ReachState, "final"),
    "MinDistance": table_of(limits.MinDistance),
    "Function": table_of(Bounded),
}
INPUTS: dict[str, type] = {"Motors": inputs.Motors, "Thrusters": inputs.Thrusters}
