"""The result of a simulation: the motion at its saved times, and how it ended."""

from __future__ import annotations

import functools
import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from ..constraints.equations import equations
from ..constraints.unilateral import bilateral
from ..dynamics import momentum
from ..forces import energy
from ..forces.contact_report import ContactReport, contact_numbers, contact_of
from ..groups import FlatManifold
from ..quantities import Curve, Effort, Energy, Passive, along, curve
from ..sensors import readings
from ..system.internal_states import with_states
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.traverse import tree_algorithm
from . import export
from .error_estimate import ErrorEstimate, Refinement, error_estimate
from .result import Result

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

    from ..io.appearance.shape import Appearance


class Trajectory(eqx.Module):
    """A simulated motion, saved at m + 1 times.

    t (m + 1,) in s, q (m + 1, nq), v (m + 1, nv); result says how the simulation ended. states: the
    method's own variables at these times, if there are more than q and v, such as `NaturalMotion`
    or `DescriptorMotion`; else None. u (m + 1, nu): the commands of the actuators, in their units,
    at the start of the step that begins at each of these times, and in the last row those of the
    last step; None without control. torques (m + 1, nu) in N m or N: what the actuators deliver at
    the start of the same steps; None if no actuator has a memory, since they are then functions of
    state and command. z (m + 1, nz): the internal states of actuators and couplings, in the order
    and units of `system.state_labels`; None without any. reduced: the values (...) of reductions by
    name, None without any. refinement: how `error_estimate` repeats the run.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> run = dl.simulate(ball, [1.0], [0.0], dt=0.01, steps=20)
    >>> print(run.t.shape, run.at(0.105)[0].round(4))
    (21,) [0.9459]
    """

    t: Float[Array, " saved"]
    q: Float[Array, "saved nq"]
    v: Float[Array, "saved nv"]
    result: Result
    states: Any = None
    u: Float[Array, "saved nu"] | None = None
    torques: Float[Array, "saved nu"] | None = None
    z: Float[Array, "saved nz"] | None = None
    reduced: dict[str, jax.Array] | None = None
    refinement: Refinement = eqx.field(default=Refinement(), repr=False)

    def at(self, t: ArrayLike) -> tuple[Float[Array, "*times nq"], Float[Array, "*times nv"]]:
        """The configuration (..., nq) and velocity (..., nv), interpolated at times t (...) in s.

        Cubic Hermite interpolation in exponential coordinates: it matches both saved configurations
        and velocities and stays on the manifold. Its error falls with the fourth power of their
        distance (the velocity's with the third). Raises ValueError for a concrete time outside of
        the saved ones.
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

    def computed(self) -> Trajectory:
        """The rows of one run before its first step that failed; all rows if none did.

        The other rows only repeat the last of these. Raises ValueError for a batch of runs.
        """
        if self.t.ndim != 1:
            raise ValueError(
                f"Trajectory.computed: these are {self.t.shape[:-1]} runs, each with rows of its "
                "own; take one, such as jax.tree.map(lambda a: a[0], run)"
            )
        failed = min(int(self.result.nonfinite_step), int(self.result.unsolved_step))
        every = self.result.steps // max(len(self.t) - 1, 1)
        rows = min(len(self.t), -(-failed // max(every, 1)))
        if rows == len(self.t):
            return self
        parts = self.t, self.q, self.v, self.states, self.u, self.torques, self.z
        t, q, v, states, u, torques, z = jax.tree.map(lambda a: a[: max(rows, 1)], parts)
        more = states, u, torques, z, self.reduced, self.refinement
        return Trajectory(t, q, v, self.result, *more)

    def error_estimate(self) -> ErrorEstimate:
        """The estimated error of q and v at the saved times (m + 1, ...): an `ErrorEstimate`.

        The run is repeated with steps of a quarter of the length (four times the work). The
        estimate is the distance to it, times 4^p / (4^p - 1) for a method of order p. Differences
        of q are taken on the manifold. Where the error falls with another power of the step, as
        with contacts, stops and events, the estimate is still between 3/4 and 4/3 of it for powers
        from 1 on. An adaptive method also gets a sixteenth of its tolerances. Samples are held, or
        interpolated, over the same times. A function that commands an actuator with a memory is
        held over the shorter steps, so that the exact motion is that with a command that is never
        held. It is the error of the method alone, not of the model, and has no meaning below the
        rounding of q and v.

        Within jit, vmap or a derivative call it there, beside `simulate`; the estimate is then NaN
        if one of the two runs fails. Outside it raises ValueError if one fails, and for a run that
        does not know how it was made: one that went through a transformation, was changed, or was
        not returned by `simulate`.
        """
        return error_estimate(self)

    def energy(self, system: System) -> tuple[Float[Array, " saved"], Float[Array, " saved"]]:
        """Kinetic and potential energy (m + 1,) in J at the saved times."""

        def at(q: jax.Array, v: jax.Array, z: jax.Array | None) -> tuple[jax.Array, jax.Array]:
            return energy(system if z is None else with_states(system, z), q, v)

        return jax.vmap(at)(self.q, self.v, self.z)

    def momentum(self, system: System) -> Float[Array, "saved 6"]:
        """Angular momentum about the world origin and linear momentum (m + 1, 6), world."""
        return jax.vmap(lambda q, v: momentum(system, q, v))(self.q, self.v)

    def effort(self, system: System) -> Float[Array, "saved nv"]:
        """The generalised force (m + 1, nv) in N m or N that the actuators apply to the joints.

        It is what the actuators deliver for `u`, and `u` itself without actuators; see `Effort`.
        """
        return along(Effort(), system, self)

    def passive(self, system: System) -> Float[Array, "saved nv"]:
        """The generalised force (m + 1, nv) of springs, damping, friction and couplings.

        In N m or N, at the saved times; see `passive_force`.
        """
        return along(Passive(), system, self)

    def readings(
        self,
        system: System,
        names: Sequence[str] | None = None,
        noise: jax.Array | None = None,
        cutoff: bool = False,
    ) -> dict[str, Float[Array, "saved k"]]:
        """What the sensors of the system read: by name (m + 1, k), in their units.

        names: of the sensors, None for all but encoders. noise: a key of `jax.random`, with which
        normally distributed errors of the sensors' `noise` are added; None for none. cutoff:
        whether readings are clipped at the sensors' `cutoff`, after the noise. Raises ValueError
        for an unknown name, with the nearest one, and for a sensor that cannot be measured, such as
        one of a wrench in a closed loop: leave it out of the names.

        >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
        >>> height = dl.identify.Sensor("height", dl.quantities.Point("ball"), noise=0.01)
        >>> ball = dl.identify.with_sensors(ball, height)
        >>> run = dl.simulate(ball, [1.0], [0.0], dt=0.01, steps=20)
        >>> print(run.readings(ball)["height"][-1].round(4))
        [0.     0.     0.8038]
        """
        return readings(system, self, names, noise, cutoff)

    def contacts(self, system: System) -> ContactReport:
        """What the pairs of shapes in contact do: their gaps, forces, places and slips, (m + 1, k).

        See `ContactReport`; raises `ModelError` where no shapes are in contact.

        >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)])
        >>> ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
        >>> ball = dl.touching(ball, "ground", "ball")
        >>> run = dl.simulate(ball, [0.1], [0.0], dt=1e-3, steps=2000)
        >>> print(run.contacts(ball).pressure[-1].round(2))  # its weight, in N
        [19.61]
        """
        pairs = contact_of(system).pairs
        forces, _ = self.contact_forces or (None, None)
        return ContactReport(pairs, *_contacts(Tree.of(system), self.q, self.v, forces))

    @property
    def contact_forces(self) -> tuple[jax.Array | None, jax.Array] | None:
        """The mean forces in N of the step before, of a method that finds impulses of contacts.

        (saved, p, 3) at the points of compliant ones, None where these act by their smooth law, and
        (saved, k, 3) of hard ones and stops: normal and along two tangents. None of other methods.
        """
        hard = getattr(self.states, "contacts", None)
        if hard is None:
            return None
        points, dt = getattr(self.states, "points", None), self.result.dt[..., None, None, None]
        return None if points is None else points / dt, hard / dt

    def constraint_violation(
        self, system: System
    ) -> tuple[Float[Array, " saved"], Float[Array, " saved"]]:
        """The violation of the system's constraints (m + 1,): max |g| and max |A v|.

        g is in m or without unit, A v the same in 1/s; see `constraint_residual`. Contacts and
        stops are not included, since an open gap violates nothing.
        """
        return _violation(Tree.of(bilateral(system)), self.q, self.v)

    def constraint_error(self, system: System) -> Float[Array, " saved"]:
        """The distance of q from the configuration manifold (m + 1,).

        It is max ||quaternion| - 1|, and the like for other manifolds.
        """
        return _defects(system.manifold, self.q)

    def plot(self, system: System | None = None) -> Figure:
        """q and v over time, as a matplotlib figure, and with the system its forces and energy.

        Forces that are always zero are left out, and what follows a step that failed; the title
        says so. Raises ValueError for a batch of runs, and for the run of another system.
        """
        from ..view.plots import curve_figure

        if self.t.ndim != 1:
            raise ValueError(
                f"Trajectory.plot: these are {self.t.shape[:-1]} runs, and a picture is of one; "
                "take one, such as jax.tree.map(lambda a: a[0], run)"
            )
        run, labels = self.computed(), self.result.topology
        t = np.asarray(run.t)
        curves = [
            Curve("q", t, np.asarray(run.q), labels.coordinate_labels),
            Curve("v", t, np.asarray(run.v), labels.velocity_labels),
        ]
        if system is not None:
            forces = [curve(force, system, run) for force in (Effort(), Passive())]
            curves += [force for force in forces if force.values.any()]
            curves.append(curve(Energy(), system, run))
        said = "" if self.result.ok else f"; {self.result.messages()[0]}"
        return curve_figure(curves, f"{labels.name}: motion{said}")

    def report(
        self,
        system: System,
        folder: str | os.PathLike[str],
        *,
        about: Mapping[str, object] = MappingProxyType({}),
        appearance: Appearance | None = None,
    ) -> Path:
        """Writes `report.html` and its pictures into a folder; returns the path of the page.

        The page of `difflie run`: how the run ended, the machine, its motion, what it kept, and how
        near its joints came to their limits. about: more to say of its origin, by name. appearance:
        what the machine looks like, as of `difflie.io.read_appearance`; by default its bodies are
        drawn as their inertia ellipsoids. Raises ValueError for a batch of runs and for the run of
        another system, and OSError for a folder that cannot be written.
        """
        from ..view.report_page import write_html
        from .report import simulation_report, simulation_results

        results = simulation_results(self, system)
        shown = simulation_report(self, system, results, about, appearance)
        return write_html(shown, Path(folder))

    def to_pandas(self, system: System | None = None) -> pandas.DataFrame:
        """The times and the motion as a table, a row for each saved time.

        Columns are named "t [s]", "q JOINT [rad]", "v JOINT [rad/s]", and commands "u NAME"; with
        the system also "effort", "passive" and "energy". Raises ValueError for a batch of runs and
        for the run of another system, and ImportError without the extra `tables`.
        """
        return export.to_pandas(self, system)

    def to_xarray(self, system: System | None = None) -> xarray.Dataset:
        """The same as a dataset with the axis t in s and the names and units of all entries.

        A batch of runs has the leading axes run, run_1, ...; if its runs end at different times,
        the rows are numbered and t has these axes, too. Errors as of `to_pandas`, but for batches.
        """
        return export.to_xarray(self, system)

    @overload
    def to_csv(self, path: str | os.PathLike[str], /) -> None: ...
    @overload
    def to_csv(self, system: System | None, path: str | os.PathLike[str]) -> None: ...
    def to_csv(
        self,
        system: System | str | os.PathLike[str] | None = None,
        path: System | str | os.PathLike[str] | None = None,
    ) -> None:
        """Writes the table of `to_pandas` as CSV at full precision, completely or not at all.

        Called as to_csv(path), or to_csv(system, path) for efforts and energy, too.
        """
        export.to_csv(self, *export.in_order("to_csv", system, path))

    @overload
    def to_parquet(self, path: str | os.PathLike[str], /) -> None: ...
    @overload
    def to_parquet(self, system: System | None, path: str | os.PathLike[str]) -> None: ...
    def to_parquet(
        self,
        system: System | str | os.PathLike[str] | None = None,
        path: System | str | os.PathLike[str] | None = None,
    ) -> None:
        """Writes the table of `to_pandas` as a Parquet file, completely or not at all.

        Called as `to_csv`. The name of the system, and how the run ended, are in its metadata.
        """
        export.to_parquet(self, *export.in_order("to_parquet", system, path))

    def to_mcap(
        self, system: System | str | os.PathLike[str], path: System | str | os.PathLike[str]
    ) -> None:
        """Writes an MCAP file with the messages of Foxglove, completely or not at all.

        Topic "/tf": the poses of all bodies in the world, as `FrameTransforms`; "/joint_states": of
        joints with one plain coordinate it, its velocity and its effort. Raises ValueError as
        `to_pandas` and for a run that is not finite, and ImportError without the extra `mcap`.
        """
        export.to_mcap(self, *export.in_order("to_mcap", system, path))

    def __repr__(self) -> str:
        return trajectory_text(self) or super().__repr__()

    def _repr_html_(self) -> str | None:
        return trajectory_html(self)


def repeated_by(run: Trajectory, refinement: Refinement) -> Trajectory:
    """The same run with another `refinement`, without the checks of a constructor."""
    made = object.__new__(Trajectory)
    vars(made).update(vars(run) | {"refinement": refinement})
    return made


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, 0))
@tree_algorithm
def _violation(tree: Tree, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """max |g| and max |A v| (saved,) at the states q (saved, nq), v (saved, nv)."""
    here = equations(tree, q)
    g, rate = here.residual(), here.rate(v)
    return jnp.max(jnp.abs(g), initial=0), jnp.max(jnp.abs(rate), initial=0)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, 0, 0))
def _contacts(
    tree: Tree, q: jax.Array, v: jax.Array, forces: jax.Array | None
) -> tuple[jax.Array, ...]:
    """The numbers of a `ContactReport`, (saved, ...) each, at q (saved, nq), v (saved, nv)."""
    return contact_numbers(tree, q, v, forces)


@eqx.filter_jit
def _defects(manifold: FlatManifold, q: jax.Array) -> jax.Array:
    return jax.vmap(manifold.defect)(q)


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


def trajectory_text(run: Any) -> str | None:
    """A `Trajectory` in some lines; None for one whose leaves are no arrays, such as a mask."""
    lines = _lines(run)
    return None if lines is None else "\n".join(lines)


def trajectory_html(run: Any) -> str | None:
    """The same as HTML."""
    lines = _lines(run)
    if lines is None:
        return None
    first, *others = map(html.escape, lines)
    return f"<div><b>{first}</b></div>" + "".join(f"<div>{line}</div>" for line in others)


def _lines(run: Any) -> list[str] | None:
    leaves = [run.t, run.q, run.v]
    if not isinstance(run.result, Result) or not all(_is_array(a) for a in leaves):
        return None
    traced = any(isinstance(a, Tracer) for a in jax.tree.leaves(run))
    name = f"Trajectory of {run.result.topology.name!r}"
    sizes = f"nq = {run.q.shape[-1]}, nv = {run.v.shape[-1]}, {run.q.dtype}"
    batch = f", a batch of shape {run.t.shape[:-1]}" if run.t.ndim > 1 else ""
    rows = f"{run.t.shape[-1]} saved rows"
    if traced:
        return [f"{name}{batch}: {rows}, {sizes}, traced"]
    t = np.asarray(run.t)
    span = f"t = {np.min(t[..., 0]):.6g} to {np.max(t[..., -1]):.6g} s" if t.size else "no times"
    return [f"{name}{batch}: {span}, {rows}, {sizes}", *_made(run), *_ended(run, t)]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray) and leaf.ndim > 0


def _made(run: Any) -> list[str]:
    """Of what it consists besides q and v."""
    method = run.refinement.method
    said = [f"method: {method}, of order {run.refinement.order}"] if method else []
    if run.u is not None:
        said.append(f"u: {run.u.shape[-1]} commands")
    if run.z is not None:
        said.append(f"z: {run.z.shape[-1]} internal states")
    if run.states is not None:
        said.append(f"states: {type(run.states).__name__}")
    if run.reduced:
        said.append(f"reduced: {', '.join(run.reduced)}")
    return said


def _ended(run: Any, t: NDArray) -> list[str]:
    """How it ended, and what is wrong with its values."""
    said = [*run.result.messages(), *run.result.origin()]
    if bool(np.all(run.result.within_limits)):
        said.append("no limit was exceeded")
    elif t.ndim > 1:
        said.append(f"runs beyond a limit: {np.sum(~np.asarray(run.result.within_limits))}")
    for name, values in (("q", np.asarray(run.q)), ("v", np.asarray(run.v))):
        lost = ~np.isfinite(values).all(axis=-1)
        if lost.any():
            first = t[lost].min()
            said.append(f"{name} is not finite from t = {first:.6g} s on, in {lost.sum()} rows")
    topology = run.result.topology
    if not all(space.plain for space in topology.manifolds) and t.size:
        points = np.asarray(run.q).reshape(-1, run.q.shape[-1])
        defects = np.asarray(jax.vmap(topology.manifold.defect)(points))
        if np.isfinite(defects).any():
            said.append(f"q is off its manifold by up to {np.nanmax(defects):.2g}")
    return said
