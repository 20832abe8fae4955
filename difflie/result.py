"""What a simulation returns: the trajectory, how it ended, and what was noticed on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .constraints.equations import equations
from .constraints.singular import Margin
from .constraints.unilateral import bilateral
from .dynamics import momentum
from .error_estimate import ErrorEstimate, Refinement, error_estimate
from .forces import energy
from .quantities import Curve, Effort, Energy, Passive, along, curve
from .system.kinematic_tree import Tree
from .system.system import System
from .system.topology import Topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NEVER = np.iinfo(np.int32).max


class Watch(eqx.Module):
    """The first step at which something happened, entry by entry; kept in the time loop.

    What happens after a step that failed does not count: the loop stays where it was before.
    nonfinite, unsolved, singular (); position, velocity, effort (n_dofs,): as in `Result`, 2^31 - 1
    for never. margin: how far from singular, None without constraints. stopped (): the first step
    at the end of which an event has come, None where none is looked for.
    """

    nonfinite: jax.Array
    unsolved: jax.Array
    singular: jax.Array
    position: jax.Array
    velocity: jax.Array
    effort: jax.Array
    margin: Margin | None
    stopped: jax.Array | None = None

    @staticmethod
    def start(tree: Tree, q: Float[Array, " nq"], come: jax.Array | None = None) -> Watch:
        """Of a motion that starts at the configuration q (nq,), where an event may have come ()."""
        once = jnp.asarray(_NEVER, jnp.int32)
        limit = jnp.full(tree.topology.n_dofs, _NEVER, jnp.int32)
        margin = Margin.start(tree, q)
        stopped = None if come is None else jnp.where(come, 0, once)
        return Watch(once, once, once, limit, limit, limit, margin, stopped)

    @property
    def failed(self) -> jax.Array:
        """The first step that led to a state that is not finite or was not solved ()."""
        return jnp.minimum(self.nonfinite, self.unsolved)

    @property
    def last(self) -> jax.Array:
        """The first step that was not made, or not to its end ()."""
        return self.failed if self.stopped is None else jnp.minimum(self.failed, self.stopped)

    @property
    def came(self) -> jax.Array:
        """Whether an event ended the motion ()."""
        return jnp.zeros((), bool) if self.stopped is None else self.stopped < self.failed

    def going(self, step: jax.Array) -> jax.Array:
        """Whether the step with this number was made ()."""
        return step < self.last

    def with_last_step(self, solved: jax.Array) -> Watch:
        """With what is known of the shorter step that leads to an event."""
        assert self.stopped is not None
        unsolved = jnp.where(self.came & ~solved, self.stopped, self.unsolved)
        return eqx.tree_at(lambda w: w.unsolved, self, unsolved)

    def after(
        self,
        tree: Tree,
        step: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        effort: jax.Array | None,
        solved: Any,
        come: jax.Array | None = None,
    ) -> Watch:
        """Updated with the state (q, v) to which a step leads, and the effort (nv,) before it.

        come: whether an event has come there ().
        """
        t, joints, going = tree.topology, tree.system.joints, self.going(step)

        def first(before: jax.Array, happened: jax.Array, at: jax.Array = step) -> jax.Array:
            return jnp.minimum(before, jnp.where(happened & going, at, _NEVER))

        q, v = jax.lax.stop_gradient((q, v))
        margin, singular = self.margin, self.singular
        if margin is not None:
            margin = margin.at(tree, q)
            singular = first(singular, margin.lost)
        x, rate = tree.coordinates(q), tree.rates(v)
        seen = self.effort
        if effort is not None:
            push = jax.lax.stop_gradient(effort)[t.dof_velocity]
            own = np.isin(np.arange(t.n_dofs), t.mimic_dofs, invert=True)
            seen = first(seen, (jnp.abs(push) > joints.max_effort) & own, step - 1)
        return Watch(
            first(self.nonfinite, ~finite(q, v)),
            self.unsolved if solved is True else first(self.unsolved, ~solved),
            singular,
            first(self.position, (x < joints.lower) | (x > joints.upper)),
            first(self.velocity, jnp.abs(rate) > joints.max_velocity),
            seen,
            margin,
            None if self.stopped is None or come is None else first(self.stopped, come),
        )

    def result(
        self,
        system: System,
        dt: jax.Array,
        steps: int,
        start_error: jax.Array,
        reconstruction: Reconstruction | None,
        ending: Ending | None = None,
    ) -> Result:
        events = (self.singular, self.position, self.velocity, self.effort)
        # What a step that failed would have led to has no meaning.
        last = self.last
        singular, position, velocity, effort = (jnp.where(e < last, e, _NEVER) for e in events)
        return Result(
            nonfinite_step=self.nonfinite,
            unsolved_step=self.unsolved,
            singular_step=singular,
            position_step=position,
            velocity_step=velocity,
            effort_step=effort,
            start_error=jax.lax.stop_gradient(start_error),
            dt=jax.lax.stop_gradient(dt),
            steps=steps,
            topology=system.topology,
            reconstruction=reconstruction,
            ending=ending,
        )


def finite(q: jax.Array, v: jax.Array) -> jax.Array:
    """Whether a state is finite ()."""
    return _finite(q) & _finite(v)


def _finite(x: jax.Array) -> jax.Array:
    """Whether all of x is finite (); native code knows this way, and not `jnp.all`."""
    return jnp.min(jnp.where(jnp.isfinite(x), 1, 0), initial=1) > 0


class Reconstruction(NamedTuple):
    """How far from the true start a motion ends that is run back: see `Reversible`.

    distance, tolerance (): differences in q and v, in units of 1 or of the largest entry.
    """

    distance: jax.Array
    tolerance: jax.Array

    @property
    def good(self) -> Bool[Array, "*batch"]:
        """Whether the distance is within the tolerance, a boolean scalar."""
        return self.distance <= self.tolerance


class Ending(eqx.Module):
    """How a motion with events ended.

    event (): which came, by its number in `until`, -1 for none. t () in s: when, or the end of the
    last step; it has derivatives. step (): at the end of which it was noticed, 2^31 - 1 for never.
    names: how messages call the events.
    """

    event: jax.Array
    t: jax.Array
    step: jax.Array
    names: tuple[str, ...] = eqx.field(static=True)


class Result(eqx.Module):
    """How a simulation ended; `str` gives it in sentences.

    nonfinite_step (): the step that led to a state that is not finite. unsolved_step (): the step
    whose equations an implicit method did not solve, or an adaptive one not to its tolerance. A
    step that fails is not made, nor any after it: all states from there on are the one before.
    singular_step (): the first step that ends near a singular configuration, in which equations of
    constraints that were independent at the start agree; a motion that goes on from there may be
    one of several.
    position_step, velocity_step, effort_step (n_dofs,): the first step at which each degree of
    freedom was beyond its limit. All are 2^31 - 1 where it never happened. dt in s.
    start_error (): by how much the start breaks the constraints, overlaps contacts or is off the
    unit length of quaternions, in units of what is allowed.
    reconstruction: how well the start is found again, where the adjoint is `Reversible`. ending:
    which event stopped the motion, where it was to stop at one.
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

    @property
    def ok(self) -> Bool[Array, "*batch"]:
        """Whether the start was allowed, the state stayed finite, every step was solved, and the
        start, where it is looked for, was found again: a boolean scalar."""
        ok = (self.nonfinite_step == _NEVER) & (self.unsolved_step == _NEVER)
        ok = ok & (self.start_error <= 1)
        if self.ending is not None:
            ok = ok & (self.ending.step > 0)
        return ok if self.reconstruction is None else ok & self.reconstruction.good

    @property
    def within_limits(self) -> Bool[Array, "*batch"]:
        """Whether no position, velocity or effort limit was left, a boolean scalar."""
        limits = self.position_step, self.velocity_step, self.effort_step
        return jnp.all(jnp.concatenate(limits, axis=-1) == _NEVER, axis=-1)

    def messages(self) -> list[str]:
        """One sentence for the end, and one for each kind of limit that was left.

        Of a batch one sentence, and the one for the end of the first that failed. Concrete results
        only.
        """
        if np.ndim(self.nonfinite_step):
            return self._of_batch()
        dt, lost, unsolved = float(self.dt), int(self.nonfinite_step), int(self.unsolved_step)
        if self.start_error > 1:
            sentences = [
                "failed: the start breaks the constraints, or the unit length of a quaternion, by "
                f"{float(self.start_error):.3g} times what is allowed; difflie.assemble finds a "
                "state that keeps the constraints"
            ]
        elif unsolved <= lost and unsolved != _NEVER:
            sentences = [
                f"failed: the equations of the step that ends at t = {unsolved * dt:.6g} s (step "
                f"{unsolved} of {self.steps}) were not solved; try a smaller dt"
            ]
        elif lost == _NEVER:
            sentences = [self._completed()]
        else:
            sentences = [
                f"failed: the state is not finite at t = {lost * dt:.6g} s (step {lost} of "
                f"{self.steps}); try a smaller dt, and check masses and inputs"
            ]
        if self.reconstruction is not None and not self.reconstruction.good:
            distance, tolerance = map(float, self.reconstruction)
            sentences.append(
                f"failed: run back, the motion ends {distance:.3g} from its start, more than the "
                f"tolerance of {tolerance:.3g}, and Reversible has no derivative; where a motion "
                "dissipates, use RecursiveCheckpoint"
            )
        if self.singular_step != _NEVER:
            sentences.append(
                f"a singular configuration near t = {int(self.singular_step) * dt:.6g} s: the "
                "constraints leave more than one way to go on from there"
            )
        names = [self.topology.joints[b] for b in self.topology.dof_body]
        for kind, limit in (
            ("position", self.position_step),
            ("velocity", self.velocity_step),
            ("effort", self.effort_step),
        ):
            left: dict[str, int] = {}
            for row in np.argsort(limit, kind="stable"):
                if limit[row] != _NEVER:
                    left.setdefault(names[row], int(limit[row]))
            if len(left) == 1:
                ((name, step),) = left.items()
                sentences.append(
                    f"joint {name!r} left its {kind} limit first at t = {step * dt:.6g} s"
                )
            elif left:
                first = _listed([f"{name!r} (t = {left[name] * dt:.6g} s)" for name in left], 3)
                sentences.append(f"{len(left)} joints left their {kind} limits: {first}")
        return sentences

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
        if not places:
            return [f"{total} simulations, 0 failed"]
        failed = _listed([", ".join(map(str, p)) if len(p) == 1 else str(p) for p in places], 10)
        first = jax.tree.map(lambda a: a[places[0]], self).messages()
        why = next(m for m in first if m.startswith("failed"))
        return [f"{total} simulations, {len(places)} failed: {failed}", f"the first of them {why}"]

    def __str__(self) -> str:
        return "; ".join(self.messages())


def _listed(names: list[str], most: int) -> str:
    """The names, of many the first ones and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class Trajectory(eqx.Module):
    """A simulated motion, saved at m + 1 times.

    t (m + 1,) in s, q (m + 1, nq), v (m + 1, nv); result says how the simulation ended. states:
    what the method moves at these times where that is more than q and v, such as `NaturalMotion` or
    `DescriptorMotion`; None for other methods. u (m + 1, nu): what the control commands to the
    actuators, in their units, in the step that begins at each of these times, as of its beginning,
    and at the end what it commanded in the last step; None without control. torques (m + 1, nu) in
    N m or N: what the actuators give at the start of the same steps; None where none remembers
    anything, and they are functions of state and command.
    """

    t: Float[Array, " saved"]
    q: Float[Array, "saved nq"]
    v: Float[Array, "saved nv"]
    result: Result
    states: Any = None
    u: Float[Array, "saved nu"] | None = None
    torques: Float[Array, "saved nu"] | None = None
    refinement: Refinement = eqx.field(default=Refinement(), repr=False)

    def at(self, t: Any) -> tuple[Float[Array, "*times nq"], Float[Array, "*times nv"]]:
        """The configuration (..., nq) and velocity (..., nv) at times t (...), in s, in between.

        Cubic Hermite interpolation in exponential coordinates: between two saved states it meets
        both configurations and velocities, stays on the manifold, and its error falls with the
        fourth power of their distance (the velocity's with the third). Raises ValueError for a
        concrete time that is not between the first and the last saved one.
        """
        t = jnp.asarray(t, self.t.dtype)
        if not isinstance(t, Tracer) and not isinstance(self.t, Tracer):
            lost = np.asarray((t < self.t[0]) | (t > self.t[-1]) | jnp.isnan(t))
            if lost.any():
                raise ValueError(
                    f"Trajectory.at: t = {np.asarray(t)[lost].ravel()[0]} s is not between "
                    f"{float(self.t[0])} s and {float(self.t[-1])} s"
                )
        q, v = _between(self, t.ravel())
        return q.reshape((*t.shape, -1)), v.reshape((*t.shape, -1))

    def error_estimate(self) -> ErrorEstimate:
        """About how far q and v are from the exact motion, at the saved times: `ErrorEstimate`.

        The run is made again with steps of a quarter of the length (four times the work), and the
        distance to it, 4^p / (4^p - 1) times for a method of order p, is the estimate. Differences
        of q are taken on the manifold. Where the error falls with another power of the step, as
        with contacts, stops and events, the estimate is still between 3/4 and 4/3 of it for powers
        from 1 on. A method that chooses its own steps also gets a sixteenth of its tolerances.
        Samples are held, or joined by lines, over the same times; a function that commands an
        actuator with a memory is held over the shorter steps, so that the exact motion is that with
        a command that is never held. It is the error of the method alone, not of the model, and
        below what rounding makes of q and v it says little.

        Within jit, vmap or a derivative call it there, beside `simulate`; where one of the two runs
        fails it is NaN then. Raises ValueError where one of them fails, and for a run that does not
        know how it was made: one that went through a transformation, was changed, or was not
        returned by `simulate`.
        """
        return error_estimate(self)

    def energy(self, system: System) -> tuple[Float[Array, " saved"], Float[Array, " saved"]]:
        """Kinetic and potential energy (m + 1,) in J at the saved times."""
        return jax.vmap(lambda q, v: energy(system, q, v))(self.q, self.v)

    def momentum(self, system: System) -> Float[Array, "saved 6"]:
        """Angular momentum about the world origin and linear momentum (m + 1, 6), world."""
        return jax.vmap(lambda q, v: momentum(system, q, v))(self.q, self.v)

    def effort(self, system: System) -> Float[Array, "saved nv"]:
        """The generalised force (m + 1, nv) in N m or N that the actuators apply to the joints.

        It is what they make of `u`, and `u` itself without actuators; see `Effort`.
        """
        return along(Effort(), system, self)

    def passive(self, system: System) -> Float[Array, "saved nv"]:
        """The generalised force (m + 1, nv) of springs, damping, friction and couplings.

        In N m or N, at the saved times; see `passive_force`.
        """
        return along(Passive(), system, self)

    def constraint_violation(
        self, system: System
    ) -> tuple[Float[Array, " saved"], Float[Array, " saved"]]:
        """How far the system's constraints are broken (m + 1,): max |g| and max |A v|.

        g is in m or without unit, A v the same in 1/s; see `constraint_residual`. Contacts and
        stops do not count, as an open gap breaks nothing.
        """
        system = bilateral(system)

        def largest(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
            here = equations(Tree.of(system), q)
            g, rate = here.residual(), here.rate(v)
            return jnp.max(jnp.abs(g), initial=0), jnp.max(jnp.abs(rate), initial=0)

        return jax.jit(jax.vmap(largest))(self.q, self.v)

    def constraint_error(self, system: System) -> Float[Array, " saved"]:
        """How far q has left the configuration manifold (m + 1,): max ||quaternion| - 1|
        and what other manifolds call so."""
        return jax.vmap(system.manifold.defect)(self.q)

    def plot(self, system: System | None = None) -> Figure:
        """q and v over time, as a matplotlib figure, and with the system its forces and energy.

        Forces that never act are left out. Raises ValueError for a batch of runs, and for the run
        of another system.
        """
        from .view.plots import curve_figure

        if self.t.ndim != 1:
            raise ValueError(
                f"Trajectory.plot: these are {self.t.shape[:-1]} runs, and a picture is of one; "
                "take one, such as jax.tree.map(lambda a: a[0], run)"
            )
        t, labels = np.asarray(self.t), self.result.topology
        curves = [
            Curve("q", t, np.asarray(self.q), labels.coordinate_labels),
            Curve("v", t, np.asarray(self.v), labels.velocity_labels),
        ]
        if system is not None:
            forces = [curve(force, system, self) for force in (Effort(), Passive())]
            curves += [force for force in forces if force.values.any()]
            curves.append(curve(Energy(), system, self))
        return curve_figure(curves)


@eqx.filter_jit
def _between(
    trajectory: Trajectory, times: Float[Array, " n"]
) -> tuple[Float[Array, "n nq"], Float[Array, "n nv"]]:
    manifold = trajectory.result.topology.manifold

    def state(t: jax.Array) -> tuple[jax.Array, jax.Array]:
        # Rows after an event have its time, and no length between them.
        end = jnp.searchsorted(trajectory.t, trajectory.t[-1])
        last = jnp.maximum(end - 1, 0)
        k = jnp.clip(jnp.searchsorted(trajectory.t, t, side="right") - 1, 0, last)
        h = trajectory.t[k + 1] - trajectory.t[k]
        q0 = trajectory.q[k]
        end = manifold.difference(q0, trajectory.q[k + 1])
        leave, arrive = h * trajectory.v[k], manifold.dexp_inv(end, h * trajectory.v[k + 1])

        def point(s: jax.Array) -> jax.Array:
            theta = s * (1 - s) ** 2 * leave + s**2 * (3 - 2 * s) * end + s**2 * (s - 1) * arrive
            return manifold.retract(q0, theta)

        s = (t - trajectory.t[k]) / h
        q = point(s)
        rate = jax.jvp(lambda s: manifold.difference(q, point(s)), (s,), (jnp.ones_like(s),))[1]
        return q, rate / h

    return jax.vmap(state)(times)
