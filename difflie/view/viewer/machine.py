"""A machine in the viewer that is posed by hand or simulated live, and how it is stepped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...io.appearance.shape import Appearance
from ...system import System
from ..scenes import Scene, scene, shapes_of


class Pull(NamedTuple):
    """A force by which a body is dragged: an elastic band from a point of it to a target.

    body: its name. point (3,) in m in its frame; target (3,) in m in the world.
    """

    body: str
    point: tuple[float, float, float]
    target: tuple[float, float, float]


@dataclass(frozen=True)
class Settings:
    """How a machine is simulated: the method's name, the time step dt in s, gravity in m/s^2."""

    method: str
    dt: float
    gravity: tuple[float, float, float]
    pull: Pull | None = None


class Simulator(Protocol):
    """What steps a machine. The viewer knows no simulation: this is handed to it.

    methods (n,): the names that can be chosen. start: the settings at first.
    """

    @property
    def methods(self) -> Sequence[str]: ...
    @property
    def start(self) -> Settings: ...

    def advance(
        self, t: float, q: NDArray, v: NDArray, steps: int, settings: Settings
    ) -> tuple[NDArray, NDArray, str]:
        """The state (q (nq,), v (nv,)) after some steps from one at the time t in s.

        With a sentence that says why, if they could not be made; "" otherwise. A ValueError says
        that the settings do not suit the machine.
        """
        ...


@dataclass(frozen=True)
class Machine:
    """A machine that can be posed, and simulated if it has a simulator.

    q (nq,), v (nv,): its state at first. appearance: its shapes by body; without any it is drawn
    as its ellipsoids of inertia.
    """

    system: System
    q: NDArray
    v: NDArray
    appearance: Appearance | None = None
    simulator: Simulator | None = None
    name: str = ""

    def scene(self, t: float, q: Any, v: Any) -> Scene:
        """The machine in one state q (nq,), v (nv,), at the time t in s."""
        state = State(np.array([t]), np.asarray(q)[None], np.asarray(v)[None])
        made = scene(self.system, state, self._shapes, name=self.name or self.system.name)
        return replace(made, solid=any((self.appearance or {}).values()))

    @cached_property
    def _shapes(self) -> Appearance:
        return shapes_of(self.system, self.appearance)


class State(NamedTuple):
    """One state as a run of one row: t (1,), q (1, nq), v (1, nv), without commands."""

    t: NDArray
    q: NDArray
    v: NDArray
    u: None = None
