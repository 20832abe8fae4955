"""Checks of the arguments of `simulate` and `step`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike

from ..integrators import ConvexMechanics, Method, by_name
from ..quantities.clearance import ContactForce
from ..quantities.reductions import Reduction
from ..system.arguments import checked_arrays
from ..system.durations import step_count
from ..system.internal_states import with_states
from ..system.system import System
from ..system.validation import as_array, check_shape, format_value, in_precision, real_numbers
from .adjoint import Adjoint, Reversible


def started_at(system: System, z0: ArrayLike | None) -> System:
    """The system that begins with internal states z0 (nz,); the same for None.

    Raises ValueError for a wrong shape, and for a system that has none.
    """
    if z0 is None:
        return system
    if not system.nz:
        raise ValueError(
            f"{system.name}: z0 was given, and no actuator or coupling has internal states; leave "
            "it out"
        )
    (z,) = checked_arrays(system, z0=(z0, (system.nz,)))
    return with_states(system, z)


def chosen_method(method: Any) -> Method:
    """The method itself or by its name. Raises TypeError for anything else."""
    if isinstance(method, str):
        return by_name(method)
    if not isinstance(method, Method):
        raise TypeError(f"method is {method!r}; give a Method such as RKMK4(), or its name")
    return method


def checked_dt(caller: str, dt: Any, dtype: Any) -> jax.Array:
    """The length of a step () in s. Raises ValueError or TypeError for an invalid one."""
    if not isinstance(dt, float):
        dt = real_numbers(caller, "dt", dt)
        check_shape(caller, "dt", dt.shape, ())
    if not isinstance(dt, Tracer) and not 0 < float(dt) < np.inf:
        raise ValueError(f"{caller}: dt is {dt}; it must be positive and finite (s)")
    return as_array(np.asarray(dt, dtype)) if isinstance(dt, float) else in_precision(dt, dtype)


# Steps are counted in 32 bits; the largest number means never.
_MOST_STEPS = np.iinfo(np.int32).max - 1


def checked_times(
    system: System, dt: Any, steps: int | None, duration: Any, save_every: int
) -> tuple[jax.Array, int, int]:
    """dt () in s, the number of steps and save_every.

    Raises ValueError or TypeError for invalid ones, as `step_count` does, for an actuator whose
    memory is too short, and if no step would be saved.
    """
    length = checked_dt("simulate", dt, system.dtype)
    steps = _count("steps", step_count("simulate: ", dt, steps, duration))
    save_every = _count("save_every", save_every)
    if save_every > steps:
        raise ValueError(
            f"simulate: save_every is {save_every} and there are {steps} steps, so that no step is "
            "saved; save every one of them, or take more"
        )
    _check_forgetting(system, length, steps)
    return length, steps, save_every


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"simulate: {name} is {value!r}; it must be a whole number, 1 or more")
    if value > _MOST_STEPS:
        raise ValueError(f"simulate: {name} is {value}; it must be at most {_MOST_STEPS}")
    return int(value)


def check_memory(system: System, saved: int, controlled: bool) -> None:
    """Raises ValueError if the saved states need more memory than the computer has."""
    commands = controlled + any(actuator.has_state for actuator in system.actuators)
    width = 1 + system.nq + system.nv + commands * system.nu
    size = (saved + 1) * width * system.dtype.itemsize
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # where the machine does not tell
        return
    if size > there:
        raise ValueError(
            f"simulate: {saved} saved states of {system.name} take {size / 1e9:.4g} GB, and there "
            f"are {there / 1e9:.4g} GB of memory; raise save_every"
        )


def _check_forgetting(system: System, dt: jax.Array, steps: int) -> None:
    """Raises ValueError for an actuator whose memory is too short for the steps dt () in s."""
    if isinstance(dt, Tracer):
        return
    for actuator in system.actuators:
        for fault in actuator.forgets(float(dt), steps) if actuator.has_state else ():
            raise ValueError(f"simulate: {actuator}: {fault}")


def checked_reductions(
    reductions: Mapping[str, Reduction] | None, adjoint: Adjoint, method: Method
) -> dict[str, Reduction]:
    """The reductions by name.

    Raises TypeError for what is none, ValueError with an adjoint that steps back, and for contact
    forces with a method that has others than those by a state.
    """
    for name, reduction in (reductions or {}).items():
        if not isinstance(reduction, Reduction):
            raise TypeError(
                f"simulate: reductions[{format_value(name)}] is {format_value(reduction)}; give a "
                "reduction such as difflie.quantities.Peak(quantity)"
            )
        each = jax.tree.leaves(reduction, is_leaf=lambda part: isinstance(part, ContactForce))
        if method.equations is ConvexMechanics and any(isinstance(x, ContactForce) for x in each):
            raise ValueError(
                f"simulate: reductions[{format_value(name)}] has a contact force by the smooth "
                f"law, which {method.name} does not have; take difflie.quantities.along of the run"
            )
    if reductions and isinstance(adjoint, Reversible):
        raise ValueError(
            "simulate: adjoint=Reversible() steps back, and what reductions keep is not found "
            "again; use RecursiveCheckpoint()"
        )
    return dict(reductions or {})
