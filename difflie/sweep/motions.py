"""The motions of one machine with other numbers: what a sweep over simulations computes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..integrators import RKMK4, Method
from ..parameters.assignment import Assignment, assignment, inconsistent_inertias
from ..quantities import Reduction
from ..simulate import Result, Trajectory, simulate
from ..simulate.result import NEVER
from ..system.arguments import refuse_names
from ..system.durations import step_count
from ..system.system import System
from ..system.validation import format_value, nearest

# The numbers of a motion that are no numbers of the machine.
_STATE = "q0", "v0"
ENDINGS = "done", "not finite", "not solved", "singular"


@dataclasses.dataclass(frozen=True)
class Motions:
    """Simulations of a system, of which reductions are kept, as a function of numbers by name.

    The names are paths of numbers of the system (see `difflie.parameters.paths`; a pattern sets all
    that match), such as "PART/z0[0]" for the first internal state of a part at the start;
    "q0/JOINT" and "v0/JOINT" for the initial state of a joint with one coordinate, "dt", and
    "control/FIELD" for a field of a control that is an Equinox module. Rows in which entries such
    as "hull/I_xx" make an inertia that no rigid body has are refused. relative: the names whose
    numbers are factors of those of the machine, instead of values.

    q0 (nq,), v0 (nv,): by default the neutral state. dt, steps or duration, method, control, until:
    as of `simulate`; with a duration dt cannot be varied. reductions: by name, see
    `difflie.quantities`; `outputs(system, trajectory)` returns more arrays by name; save_every > 0
    keeps q, v and internal states z of every n-th step, with the last of which the motion ends.
    """

    system: System
    reductions: Mapping[str, Reduction] = dataclasses.field(default_factory=dict)
    q0: Any = None
    v0: Any = None
    dt: Any = 1e-3
    steps: int | None = None
    method: Method | str = RKMK4()
    control: Any = None
    until: Any = None
    relative: Sequence[str] = ()
    outputs: Callable[[System, Trajectory], Mapping[str, Any]] | None = None
    save_every: int = 0
    duration: float | None = None

    def __post_init__(self) -> None:
        step_count("Motions: ", self.dt, self.steps, self.duration)

    def __call__(self, numbers: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """The values of the reductions for these numbers, and how the motion ended.

        "result": the index of its ending in ENDINGS, in an int; "failed at" in s, infinite for
        never; "limit at": when a joint was first beyond a limit, infinite for never; with `until`
        "event" (-1 for none) and "ended at" in s.
        """
        system, numbers = self.system, dict(numbers)
        state = {"q0": self._start("q0"), "v0": self._start("v0")}
        dt, control = numbers.pop("dt", self.dt), self.control
        for name, value in numbers.items():
            owner, _, leaf = name.partition("/")
            factor = name in self.relative
            if owner in _STATE:
                k = self._coordinate(owner, leaf)
                old = state[owner][k]
                state[owner] = state[owner].at[k].set(old * value if factor else value)
            elif owner == "control":
                control = _with_field(control, leaf, value, factor)
            else:
                system = self._assignment(name).written(system, value)
        steps = step_count("Motions: ", dt, self.steps, self.duration)
        run = simulate(
            system,
            state["q0"],
            state["v0"],
            dt=dt,
            steps=steps,
            method=self.method,
            control=control,
            until=self.until,
            save_every=self.save_every or steps,
            reductions=self.reductions,
        )
        found = dict(run.reduced or {})
        if self.outputs is not None:
            found |= {k: jnp.asarray(x) for k, x in self.outputs(system, run).items()}
        if self.save_every:
            found |= {"q": run.q, "v": run.v} | ({} if run.z is None else {"z": run.z})
        return found | _ended(run.result)

    def fault(self, name: str, value: float) -> str:
        """What is wrong with a number, with the fix; empty for nothing.

        Raises ValueError for a name of nothing, with the nearest one.
        """
        owner, _, leaf = name.partition("/")
        if name == "dt":
            if self.duration is not None:
                return f"dt is varied beside the duration {self.duration:g} s; give steps"
            return "" if 0 < value < np.inf else f"dt is {value:g} s; it must be positive"
        if owner in _STATE:
            self._coordinate(owner, leaf)
            return ""
        if owner == "control":
            _with_field(self.control, leaf, 0.0, False)
            return ""
        return self._assignment(name).fault(value)

    def row_faults(self, names: Sequence[str], rows: NDArray) -> dict[int, str]:
        """What is wrong with the numbers of these names in rows (k, n) together, by row."""
        own = [k for k, name in enumerate(names) if self._is_of_system(name)]
        assignments = [self._assignment(names[k]) for k in own]
        return inconsistent_inertias(self.system, assignments, rows[:, own])

    def unit(self, name: str) -> str:
        """The SI unit of a number; "" for factors."""
        owner, _, leaf = name.partition("/")
        if name in self.relative or owner == "control":
            return ""
        if name == "dt":
            return "s"
        if owner in _STATE:
            labels = self._labels(owner)
            return labels[self._coordinate(owner, leaf)][1]
        return self._assignment(name).unit

    def entries(self, name: str) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each entry of an output; empty if they are not known."""
        if name in ("failed at", "limit at", "ended at"):
            return (("", "s"),)
        reduction = self.reductions.get(name)
        if reduction is None:
            return ()
        labels = tuple(reduction.labels(self.system))
        return labels or ((("", reduction.unit),) if reduction.unit else ())

    def _is_of_system(self, name: str) -> bool:
        return name != "dt" and name.partition("/")[0] not in (*_STATE, "control")

    def _assignment(self, name: str) -> Assignment:
        if name not in self._assignments:
            self._assignments[name] = assignment(self.system, name, name in self.relative)
        return self._assignments[name]

    @functools.cached_property
    def _assignments(self) -> dict[str, Assignment]:
        return {}

    def _start(self, owner: str) -> jax.Array:
        given, system = getattr(self, owner), self.system
        refuse_names(system, owner, given)
        if given is not None:
            return jnp.asarray(given, system.dtype)
        return system.neutral() if owner == "q0" else jnp.zeros(system.nv, system.dtype)

    def _labels(self, owner: str) -> tuple[tuple[str, str], ...]:
        t = self.system.topology
        return t.coordinate_labels if owner == "q0" else t.velocity_labels

    def _coordinate(self, owner: str, joint: str) -> int:
        names = [name for name, _ in self._labels(owner)]
        if joint not in names:
            raise ValueError(
                f"{self.system.name}: {format_value(f'{owner}/{joint}')} names no coordinate"
                f"{nearest(joint, names)}"
            )
        return names.index(joint)


def _with_field(control: Any, path: str, value: Any, factor: bool) -> Any:
    """A control with another value of a field, "gain" or "gain[2]"."""
    field, _, rest = path.partition("[")
    known = list(getattr(control, "__dataclass_fields__", ()))
    if field not in known:
        raise ValueError(
            f"sweep: the control has no field {format_value(field)}{nearest(field, known)}; of a "
            "control the fields of an Equinox module can be varied"
        )
    old = jnp.asarray(getattr(control, field))
    if rest:
        if old.ndim != 1 or not rest.rstrip("]").isdigit() or int(rest.rstrip("]")) >= old.size:
            raise ValueError(
                f"sweep: control/{path}: {field} has shape {old.shape}; give the index of a vector"
            )
        k = int(rest.rstrip("]"))
        new = old.at[k].set(old[k] * value if factor else value)
    else:
        new = old * value if factor else jnp.broadcast_to(jnp.asarray(value), old.shape)
    return dataclasses.replace(control, **{field: new.astype(jnp.result_type(float, old))})


def _ended(result: Result) -> dict[str, jax.Array]:
    """How a motion ended, as numbers."""
    dt = result.dt
    failures = jnp.stack((result.nonfinite_step, result.unsolved_step))
    first = jnp.min(failures)
    failure = jnp.where(first == NEVER, 0, 1 + jnp.argmin(failures))
    bad = result.singular_step < NEVER
    limits = jnp.concatenate((result.position_step, result.velocity_step, result.effort_step))
    limit = jnp.min(limits, initial=NEVER)

    def at(step: jax.Array) -> jax.Array:
        return jnp.where(step == NEVER, jnp.inf, step * dt)

    found = {
        "result": jnp.where((failure == 0) & bad, 3, failure).astype(jnp.int32),
        "failed at": at(first),
        "limit at": at(limit),
    }
    if (ending := result.ending) is not None:
        found |= {"event": ending.event.astype(jnp.int32), "ended at": ending.t}
    return found
