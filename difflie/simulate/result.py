"""How a simulation ended, as numbers and as sentences."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool

from ..system.topology import Topology
from .free_flight_check import Flight
from .resolution import Resolution

NEVER = np.iinfo(np.int32).max


class Reconstruction(NamedTuple):
    """How far from the true start stepping back ends: see `Reversible`.

    distance, tolerance (): differences in q and v, in units of 1 or of the largest entry.
    """

    distance: jax.Array
    tolerance: jax.Array

    @property
    def good(self) -> Bool[Array, "*batch"]:
        """Whether the distance is within the tolerance, a boolean scalar."""
        return self.distance <= self.tolerance


class Impacts(eqx.Module):
    """How many impacts () a motion had whose times are those of steps of a method."""

    count: jax.Array
    method: str = eqx.field(static=True)

    @property
    def good(self) -> Bool[Array, "*batch"]:
        """Whether derivatives are those of the motion: a boolean scalar."""
        return self.count == 0

    def messages(self) -> list[str]:
        """One sentence if there were any."""
        many = int(self.count)
        if not many:
            return []
        return [
            f"{many} impact{'s' * (many > 1)}: derivatives by what changes the time of an impact "
            f"are wrong, in sign too; those of {self.method}(located=True) are right"
        ]


class Crowded(eqx.Module):
    """In how many steps () surfaces overlapped at contact points beyond those that act."""

    count: jax.Array
    most: int = eqx.field(static=True)
    method: str = eqx.field(static=True)

    @property
    def good(self) -> Bool[Array, "*batch"]:
        """Whether all points acted at which surfaces overlapped: a boolean scalar."""
        return self.count == 0

    def messages(self) -> list[str]:
        """One sentence if there were others."""
        many = int(self.count)
        if not many:
            return []
        return [
            f"in {many} step{'s' * (many > 1)} surfaces overlapped at more than {self.most} "
            f"points, of which the {self.most} deepest acted; {self.method}(most_points=...) takes "
            "more"
        ]


class Ending(eqx.Module):
    """How a motion with events ended.

    event (): the index in `until` of the one that came, -1 for none. t () in s: its time, or the
    end of the last step; it has derivatives. step (): the step at whose end it was detected, 2^31 -
    1 for never. names: those of the events in messages.
    """

    event: jax.Array
    t: jax.Array
    step: jax.Array
    names: tuple[str, ...] = eqx.field(static=True)


class Result(eqx.Module):
    """How a simulation ended; `str` says it in sentences.

    nonfinite_step (): the step that led to a state that is not finite. unsolved_step (): the step
    whose equations an implicit method did not solve, or an adaptive one not to its tolerance. A
    failed step is not made, nor any after it: all states from there on repeat the one before.
    singular_step (): the first step that ends near a singular configuration, at which constraints
    that were independent at the start become dependent; the motion beyond may be one of several.
    position_step, velocity_step, effort_step (n_dofs,): the first step at which each degree of
    freedom was beyond its limit. All are 2^31 - 1 for never. dt () in s; steps: how many there were
    to make; topology: the names in messages.

    start_error (): by how much the start violates the constraints, overlaps contacts or is off the
    unit length of quaternions, in units of the tolerance.

    reconstruction: how well stepping back recovers the start, for the adjoint `Reversible`. ending:
    which event stopped the motion, for runs with `until`. substeps: how many an adaptive method may
    take within a step; None for other methods.

    resolution: whether the steps of an explicit method resolve damping, friction, stiffness and
    internal states at the start; flight: whether free bodies, on which nothing but gravity acts,
    kept their momentum; impacts: how many there were at times that derivatives do not know;
    crowded: in how many steps contact points that should act were left out. None of them makes a
    run fail. None where there is nothing to look at.
    not_modelled: what of the robot's file would have changed the motion and is not in the system.
    """

    nonfinite_step: jax.Array
    unsolved_step: jax.Array
    singular_step: jax.Array
    position_step: jax.Array
    velocity_step: jax.Array
    effort_step: jax.Array
    start_error: jax.Array
    dt: jax.Array
    steps: int = eqx.field(static=True)
    topology: Topology = eqx.field(static=True)
    reconstruction: Reconstruction | None = None
    ending: Ending | None = None
    resolution: Resolution | None = None
    flight: Flight | None = None
    impacts: Impacts | None = None
    crowded: Crowded | None = None
    substeps: int | None = eqx.field(static=True, default=None)
    not_modelled: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def ok(self) -> Bool[Array, "*batch"]:
        """Whether the start was allowed, the state stayed finite, every step was solved, and the
        start, where it is looked for, was found again: a boolean scalar."""
        return _ok(self)

    @property
    def within_limits(self) -> Bool[Array, "*batch"]:
        """Whether no position, velocity or effort limit was exceeded, a boolean scalar."""
        return _within_limits(self)

    def messages(self) -> list[str]:
        """One sentence for the end, and one for each kind of limit that was exceeded.

        For a batch a summary, and the sentence of the first run that failed. Concrete results only.
        """
        if np.ndim(self.nonfinite_step):
            return self._of_batch()
        sentences = [self._end()]
        if self.reconstruction is not None and not self.reconstruction.good:
            distance, tolerance = map(float, self.reconstruction)
            sentences.append(
                f"failed: run back, the motion ends {distance:.3g} from its start, more than the "
                f"tolerance of {tolerance:.3g}, and Reversible has no derivative; where a motion "
                "dissipates, use RecursiveCheckpoint"
            )
        if int(self.singular_step) != NEVER:
            sentences.append(
                f"a singular configuration near {self._time(self.singular_step)}: the "
                "constraints leave more than one way to go on from there"
            )
        for looked in (self.resolution, self.flight, self.impacts, self.crowded) if self.ok else ():
            # On the host: each comparison would be a program of its own.
            sentences += [] if looked is None else jax.device_get(looked).messages()
        limits = self.position_step, self.velocity_step, self.effort_step
        for kind, limit in zip(("position", "velocity", "effort"), limits, strict=True):
            sentences += self._left(kind, np.asarray(limit))
        return sentences

    def origin(self) -> list[str]:
        """One sentence on what of the robot's file is not in the motion; none without any."""
        what = ", ".join(self.not_modelled)
        return [f"not modelled, of the file: {what}"] if what else []

    def _time(self, step: Any) -> str:
        """When a step ends, in words."""
        return f"t = {int(step) * float(self.dt):.6g} s"

    def _end(self) -> str:
        """How it ended."""
        nonfinite, unsolved = int(self.nonfinite_step), int(self.unsolved_step)
        if float(self.start_error) > 1:
            return (
                "failed: the start breaks the constraints, or the unit length of a quaternion, by "
                f"{float(self.start_error):.3g} times what is allowed; difflie.assemble finds a "
                "state that keeps the constraints, and a quaternion is divided by its length"
            )
        if unsolved <= nonfinite and unsolved != NEVER:
            step = f"step that ends at {self._time(unsolved)} (step {unsolved} of {self.steps})"
            if self.substeps is not None:
                return (
                    f"failed: the {step} needs more than {self.substeps} sub-steps, or constraints "
                    "could not be kept in it; try a smaller dt, larger tolerances or more substeps"
                )
            return f"failed: the equations of the {step} were not solved; try a smaller dt"
        if nonfinite == NEVER:
            return self._completed()
        return (
            f"failed: the state is not finite at {self._time(nonfinite)} (step {nonfinite} of "
            f"{self.steps}); try a smaller dt, and check masses and inputs"
        )

    def _left(self, kind: str, limit: Any) -> list[str]:
        """The sentence on the joints beyond a kind of limit, if any."""
        left: dict[str, int] = {}
        for dof in np.argsort(limit, kind="stable"):
            if limit[dof] != NEVER:
                left.setdefault(self.topology.joints[self.topology.dof_body[dof]], limit[dof])
        if len(left) == 1:
            ((name, step),) = left.items()
            return [f"joint {name!r} left its {kind} limit first at {self._time(step)}"]
        if not left:
            return []
        first = _listed([f"{name!r} ({self._time(left[name])})" for name in left], 3)
        return [f"{len(left)} joints left their {kind} limits: {first}"]

    def _completed(self) -> str:
        whole = f"completed: {self.steps} steps, {self.steps * float(self.dt):.6g} s"
        if self.ending is None:
            return whole
        event, step, names = int(self.ending.event), int(self.ending.step), self.ending.names
        if event < 0:
            return f"{whole}; no event came"
        if step == 0:
            return (
                f"failed: the {names[event]} has come at the start already; an event is positive "
                "before it comes"
            )
        return (
            f"stopped: the {names[event]} came at t = {float(self.ending.t):.10g} s (step {step} "
            f"of {self.steps})"
        )

    def _of_batch(self) -> list[str]:
        places = [tuple(map(int, p)) for p in np.argwhere(~np.asarray(self.ok))]
        total = np.size(self.nonfinite_step)
        doubts = []
        for looked in (self.resolution, self.flight, self.impacts, self.crowded):
            bad = [] if looked is None else np.argwhere(~np.asarray(looked.good))
            if len(bad):
                first = jax.tree.map(lambda a, i=tuple(bad[0]): a[i], looked).messages()
                doubts.append(f"in {len(bad)} of {total}, first in {_place(bad[0])}: {first[0]}")
        if not places:
            return [f"{total} simulations, 0 failed", *doubts]
        failed = _listed([_place(p) for p in places], 10)
        first = jax.tree.map(lambda a: a[places[0]], self).messages()
        why = next(m for m in first if m.startswith("failed"))
        said = f"{total} simulations, {len(places)} failed: {failed}"
        return [said, f"the first of them {why}", *doubts]

    def __repr__(self) -> str:
        leaves = jax.tree.leaves(self)
        if any(isinstance(a, Tracer) or not isinstance(a, _ARRAYS) for a in leaves):
            return super().__repr__()  # of a mask, or under a transformation
        return "; ".join([*self.messages(), *self.origin()])


@jax.jit
def _ok(result: Result) -> jax.Array:
    ok = (result.nonfinite_step == NEVER) & (result.unsolved_step == NEVER)
    ok = ok & (result.start_error <= 1)
    if result.ending is not None:
        ok = ok & (result.ending.step > 0)
    return ok if result.reconstruction is None else ok & result.reconstruction.good


@jax.jit
def _within_limits(result: Result) -> jax.Array:
    limits = result.position_step, result.velocity_step, result.effort_step
    return jnp.all(jnp.concatenate(limits, axis=-1) == NEVER, axis=-1)


_ARRAYS = jax.Array | np.ndarray


def _place(index: Any) -> str:
    """The place of a run in a batch."""
    return str(int(index[0])) if len(index) == 1 else str(tuple(map(int, index)))


def _listed(names: list[str], most: int) -> str:
    """The names; of many the first ones, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
