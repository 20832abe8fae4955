"""The limits of a designed motion."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from ..system.system import System


class Limits(eqx.Module):
    """For each joint the centre and half range of position, and the largest v, a and tau (nv,)."""

    center: Any
    half: Any
    velocity: Any
    acceleration: Any
    effort: Any

    @staticmethod
    def of(system: System, position: Any, velocity: Any, acceleration: Any, effort: Any) -> Limits:
        t, joints = system.topology, system.joints
        dofs = np.setdiff1d(np.arange(t.n_dofs), t.mimic_dofs)
        dofs = dofs[np.argsort(t.dof_velocity[dofs])]
        names = [t.joints[t.dof_body[dof]] for dof in dofs]

        def given(name: str, value: Any, default: Any) -> NDArray:
            array = np.asarray(default)[dofs] if value is None else np.asarray(value, float)
            if array.shape not in ((), (system.nv,)):
                raise ValueError(
                    f"{system.name}: the limits of {name} have shape {array.shape}; give a number, "
                    f"or {system.nv}"
                )
            return np.broadcast_to(array, system.nv)

        def first(bad: NDArray) -> str:
            return f"{system.name}: joint {names[int(np.flatnonzero(bad)[0])]!r}"

        lower, upper = (None, None) if position is None else position
        lower = given("position", lower, joints.lower)
        upper = given("position", upper, joints.upper)
        if not (lower < upper).all():
            raise ValueError(f"{first(~(lower < upper))} has no room between its position limits")
        bounded = np.isfinite(lower) & np.isfinite(upper)
        if not (bounded | (np.isinf(lower) & np.isinf(upper))).all():
            raise ValueError(
                f"{first(np.isfinite(lower) != np.isfinite(upper))} has one position limit; give "
                "both, or none"
            )
        speed = given("velocity", velocity, joints.max_velocity)
        hasty = given("acceleration", acceleration, np.full(t.n_dofs, np.inf))
        strong = given("effort", effort, joints.max_effort)
        for name, values in (("velocity", speed), ("acceleration", hasty), ("effort", strong)):
            if not (values > 0).all():
                raise ValueError(f"{first(~(values > 0))}: its largest {name} must be positive")
        if not np.isfinite(speed).all():
            raise ValueError(f"{first(np.isinf(speed))} has no velocity limit; give `velocity`")
        center = np.where(
            bounded, (np.where(bounded, lower, 0) + np.where(bounded, upper, 0)) / 2, 0
        )
        half = np.where(bounded, (upper - lower) / 2, np.inf)
        return Limits(center, half, speed, hasty, strong)
