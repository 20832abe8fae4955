"""A problem at its knots: points, steps, costs and bounds, in local coordinates.

A point x = (q, v, own, z) has the state of the machine, with the internal states that it has of
its own, and in z what is held from knot to knot: with controls that are linear within a step the
control at the knot, then, if the duration is free, its ratio to that of the first guess. The start
of z is free. dx (nx,) = (dq, dv, down, dz) is a tangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..constraints import Stabilisation
from ..formulations import Inputs, formulated
from ..integrators import Method
from ..quantities.bounded import Bounded
from ..simulate.step import ended
from ..system.frozen import is_frozen, unfreeze
from ..system.internal_states import states_of, tree_with_states
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import real_values
from .costs import Cost
from .inputs import Input
from .problem import Problem

# Of two points in the unit interval.
_NODES = (0.5 - 3**-0.5 / 2, 0.5 + 3**-0.5 / 2)


class Point(NamedTuple):
    """q (nq,), v (nv,), z (nz,); along a motion with a leading axis.

    own: the internal states of the machine, one array, where it has any.
    """

    q: jax.Array
    v: jax.Array
    z: jax.Array
    own: tuple[jax.Array, ...] = ()


class Motion(NamedTuple):
    """Points (N + 1, ...) and controls (N, nu)."""

    x: Point
    u: jax.Array

    def moved(
        self, knots: Discretization, d: Float[Array, "N n"], end: Float[Array, " nx"]
    ) -> Motion:
        """The motion at d (N, nx + nu) from it, and dx_N (nx,), its controls within their box."""
        dx = jnp.concatenate((d[:, : knots.nx], end[None]))
        u = jnp.clip(self.u + d[:, knots.nx :], knots.u_lower, knots.u_upper)
        return Motion(jax.vmap(knots.retract)(self.x, dx), u)


class Discretization(eqx.Module):
    """The functions of a problem at a knot.

    costs, bounds: those along the motion; state_bounds: bounds that hold at all knots but the
    first; final_costs, final_bounds: at the last one. u_lower, u_upper (nu,); z_lower, z_upper
    (nz,): of z at the start.
    """

    tree: Tree
    dt: jax.Array
    costs: tuple[Cost, ...]
    bounds: tuple[Bounded, ...]
    state_bounds: tuple[Bounded, ...]
    final_costs: tuple[Cost, ...]
    final_bounds: tuple[Bounded, ...]
    inputs: Input
    u_lower: jax.Array
    u_upper: jax.Array
    z_lower: jax.Array
    z_upper: jax.Array
    stabilisation: Stabilisation
    steps: int = eqx.field(static=True)
    method: Method = eqx.field(static=True)
    linear: bool = eqx.field(static=True)
    free_time: bool = eqx.field(static=True)
    boxed: bool = eqx.field(static=True)

    @staticmethod
    def of(problem: Problem) -> Discretization:
        """The knots of a problem."""
        p, system = problem, _unbounded(problem.system)
        u_lower, u_upper = p.limits.of_controls(p.system, p.inputs)
        linear, free = p.interpolation == "linear", p.duration is not None
        z_lower, z_upper = ([u_lower], [u_upper]) if linear else ([], [])
        if p.duration is not None:
            whole = p.steps * p.dt
            z_lower, z_upper = (
                [*z, (t / whole)[None]] for z, t in zip((z_lower, z_upper), p.duration, strict=True)
            )
        empty = jnp.zeros(0, system.dtype)
        along = [term for term in p.running if isinstance(term, Bounded)]
        timed = {id(b): _needs_control(p, b) for b in along}
        return Discretization(
            Tree.of(system),
            p.dt,
            tuple(term for term in p.running if isinstance(term, Cost)),
            tuple(b for b in along if timed[id(b)]),
            (*(b for b in along if not timed[id(b)]), *p.limits.of_states(p.system)),
            tuple(term for term in p.final if isinstance(term, Cost)),
            tuple(term for term in p.final if isinstance(term, Bounded)),
            p.inputs,
            u_lower,
            u_upper,
            jnp.concatenate([empty, *z_lower]),
            jnp.concatenate([empty, *z_upper]),
            p.stabilisation,
            p.steps,
            p.method,
            linear,
            free,
            free or not _known_to_be_infinite(u_lower, u_upper),
        )

    @property
    def system(self) -> System:
        return self.tree.system

    @property
    def nv(self) -> int:
        return self.tree.topology.nv

    @property
    def nz(self) -> int:
        return self.z_lower.shape[0]

    @property
    def nx(self) -> int:
        """The size of a tangent at a point."""
        return 2 * self.nv + self.system.nz + self.nz

    @property
    def nu(self) -> int:
        return self.u_lower.shape[0]

    def retract(self, x: Point, dx: Float[Array, " nx"]) -> Point:
        """The point at the tangent dx (nx,) from x."""
        dq, dv, down, dz = jnp.split(dx, (self.nv, 2 * self.nv, self.nx - self.nz))
        q, own = self.tree.topology.manifold.retract(x.q, dq), tuple(a + down for a in x.own)
        return Point(q, x.v + dv, x.z + dz, own)

    def difference(self, x: Point, y: Point) -> Float[Array, " nx"]:
        """The tangent dx (nx,) with retract(x, dx) = y."""
        dq = self.tree.topology.manifold.difference(x.q, y.q)
        own = (b - a for a, b in zip(x.own, y.own, strict=True))
        return jnp.concatenate((dq, y.v - x.v, *own, y.z - x.z))

    def control(self, x: Point, u: Float[Array, " nu"]) -> Float[Array, " nu"]:
        """The control at the knot."""
        return x.z[: self.nu] if self.linear else u

    @property
    def own(self) -> tuple[jax.Array, ...]:
        """The internal states of the machine at the start, one array (n,); empty without any."""
        return (states_of(self.system),) * bool(self.system.nz)

    def at(self, x: Point) -> Tree:
        """The tree of the machine at the internal states of a point."""
        return tree_with_states(self.tree, *x.own) if x.own else self.tree

    def length(self, x: Point) -> Float[Array, ""]:
        """The length of the step, in s."""
        return self.dt * x.z[-1] if self.free_time else self.dt

    @eqx.filter_jit
    def step(
        self, x: Point, u: Float[Array, " nu"], k: Float[Array, ""], by_matrices: bool = False
    ) -> Point:
        """The next point; not finite where the step is not solved.

        by_matrices: differentiated in closed form where there is one, for many directions at once.
        """
        dt = self.length(x)
        formulation = formulated(self.at(x), self.method, self.stabilisation)
        formulation = formulation.in_closed_form() if by_matrices else formulation
        q, v, fine, states = ended(formulation, x.q, x.v, dt, k * dt, self.acting(x, u, k))
        spoiled = jnp.where(fine, 0.0, jnp.nan).astype(q.dtype)
        return Point(q + spoiled, v, self.held(x, u), () if states is None else (states,))

    def held(self, x: Point, u: Float[Array, " nu"]) -> Float[Array, " nz"]:
        """z after a step."""
        return jnp.concatenate((u, x.z[self.nu :])) if self.linear else x.z

    def acting(self, x: Point, u: Float[Array, " nu"], k: Float[Array, ""]) -> Inputs:
        """What acts on the machine during a step."""
        dt, start, system = self.length(x), self.control(x, u), self.at(x).carried()

        def command(now: Any, q: jax.Array, v: jax.Array) -> jax.Array:
            at = start + (u - start) * ((now - k * dt) / dt) if self.linear else u
            made = called(self.inputs.command, system, q, v, at, now)
            return real_values(f"the command of {type(self.inputs).__name__}", made, q.dtype)

        return Inputs(command)

    @eqx.filter_jit
    def residuals(
        self, x: Point, u: Float[Array, " nu"], k: Float[Array, ""]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Residuals r and weights w, each (n,), of the cost sum w r^2 / 2 of a step.

        With linear controls the mean over the step, by Gauss' two nodes: exact for squares of the
        controls. The state is that of the knot.
        """
        if not self.linear:
            return self.residuals_at(x, u, k)
        start, parts = self.control(x, u), []
        for share in _NODES:
            at = x._replace(z=x.z.at[: self.nu].set(start + share * (u - start)))
            parts.append(self.residuals_at(at, u, k + share))
        r, w = (jnp.concatenate(both) for both in zip(*parts, strict=True))
        return r, w / len(_NODES)

    def residuals_at(
        self, x: Point, u: Float[Array, " nu"], k: Float[Array, ""]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The same of a step in which everything is as at the point x."""
        dt = self.length(x)
        r, w = self._stacked(self.costs, x, self.control(x, u), k * dt)
        return jnp.sqrt(dt) * r, w

    @eqx.filter_jit
    def final_residuals(self, x: Point) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Those of the cost at the end."""
        return self._stacked(self.final_costs, x, None, self.steps * self.length(x))

    @eqx.filter_jit
    def bounded(self, x: Point, u: Float[Array, " nu"], k: Float[Array, ""]) -> Float[Array, " m"]:
        """The entries (m,) that are bounded at a knot: with the controls, then of the state."""
        t = k * self.length(x)
        return self._values((*self.bounds, *self.state_bounds), x, self.control(x, u), t)

    @eqx.filter_jit
    def final_bounded(self, x: Point) -> Float[Array, " m"]:
        """Those at the last knot: of all states, then at the end."""
        t = self.steps * self.length(x)
        return self._values((*self.state_bounds, *self.final_bounds), x, None, t)

    def _values(self, bounds: Sequence[Bounded], x: Point, u: Any, t: Any) -> jax.Array:
        system = self.at(x).carried()
        values = [b.value(system, x.q, x.v, u, t) for b in bounds]
        return jnp.concatenate([jnp.zeros(0, x.q.dtype), *values])

    def _stacked(self, costs: Sequence[Cost], x: Point, u: Any, t: Any) -> tuple:
        system = self.at(x).carried()
        r = [called(c.residual, system, x.q, x.v, u, t) for c in costs]
        w = [
            jnp.broadcast_to(c.weight.astype(a.dtype), a.shape)
            for c, a in zip(costs, r, strict=True)
        ]
        empty = jnp.zeros(0, x.q.dtype)
        return jnp.concatenate([empty, *r]), jnp.concatenate([empty, *w])


def _unbounded(system: System) -> System:
    """The system whose actuators do not cut off commands, which the limits bound."""
    actuators = tuple(a.unbounded() for a in system.actuators)
    if is_frozen(system) and actuators == system.actuators:
        return system
    return replace(unfreeze(system), actuators=actuators) if actuators else system


def _known_to_be_infinite(*bounds: jax.Array) -> bool:
    return not any(isinstance(b, Tracer) or np.any(np.isfinite(b)) for b in bounds)


def _needs_control(problem: Problem, bound: Bounded) -> bool:
    """Whether a bound depends on the control."""
    p = problem
    u = jnp.zeros(p.nu, p.system.dtype)
    made = jax.make_jaxpr(lambda u: bound.value(p.system, p.q0, p.v0, u, jnp.zeros_like(p.dt)))(u)
    reached = set(made.jaxpr.invars)
    for equation in made.jaxpr.eqns:
        if reached.intersection(_variables(equation.invars)):
            reached |= set(equation.outvars)
    return bool(reached.intersection(_variables(made.jaxpr.outvars)))


def _variables(atoms: Sequence[Any]) -> list[Any]:
    """Those that are no literals, which have a value."""
    return [v for v in atoms if not hasattr(v, "val")]
