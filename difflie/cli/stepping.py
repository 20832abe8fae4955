"""How the viewer's live simulation is stepped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..forces import SpringDamper, attach
from ..integrators.registry import METHODS
from ..simulate import simulate
from ..system import System
from ..view.viewer import Pull, Settings

# In N/m and N s/m for each kg of the machine: its weight is a pull by a third of a metre, and it
# comes to rest within a second.
_STIFFNESS, _DAMPING = 30.0, 5.0


class Stepper:
    """Steps a system for the viewer, with any method and gravity, and pulled at by the mouse.

    start: the settings at first. control: as of `simulate`; it must not depend on time. Gravity,
    time steps and pulls are leaves, so that changes of them compile nothing; another method or
    another body does once.
    """

    def __init__(self, system: System, start: Settings, control: Any = None) -> None:
        self._system, self._start, self._control = system, start, control
        known = [method.name for method in METHODS]
        self._methods = known if start.method in known else [start.method, *known]
        mass = float(jnp.sum(system.bodies.mass))
        self._band = {"stiffness": _STIFFNESS * mass, "damping": _DAMPING * mass}
        self._pulled: dict[str, System] = {}

    @property
    def methods(self) -> Sequence[str]:
        """The names of the methods (n,) that can be chosen."""
        return self._methods

    @property
    def start(self) -> Settings:
        """The settings at first."""
        return self._start

    def advance(
        self, t: float, q: NDArray, v: NDArray, steps: int, settings: Settings
    ) -> tuple[NDArray, NDArray, str]:
        """The state (q (nq,), v (nv,)) after some steps, and why they failed, "" if they did not.

        Raises ValueError and TypeError as `simulate` does.
        """
        system = self._with(settings.pull).replace(gravity=np.array(settings.gravity))
        run = simulate(
            system,
            q,
            v,
            dt=settings.dt,
            steps=steps,
            save_every=steps,
            method=settings.method,
            control=self._control,
        )
        q, v = np.array(run.q[-1]), np.array(run.v[-1])
        return q, v, "" if bool(run.result.ok) else " ".join(run.result.messages())

    def _with(self, pull: Pull | None) -> System:
        """The system with an elastic band between a body and the target of a pull."""
        if pull is None:
            return self._system
        if pull.body not in self._pulled:
            path = [(pull.body, (0.0, 0.0, 0.0)), (None, (0.0, 0.0, 0.0))]
            band = SpringDamper(path, rest_length=0.0, **self._band)
            self._pulled[pull.body] = attach(self._system, band)
        system = self._pulled[pull.body]
        band: Any = system.couplings[-1]
        points = jnp.asarray(np.stack((pull.point, pull.target)), system.dtype)
        band = replace(band, path=replace(band.path, points=points))
        return replace(system, couplings=(*system.couplings[:-1], band))
