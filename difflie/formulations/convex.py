"""What may touch, stop or stick in a system, as the rows of one convex problem in each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from ..collision.distances.witness import FAR
from ..collision.meetings import count_of_points
from ..constraints.equations import equations, holonomic, labels
from ..constraints.unilateral import HardContact, Unilateral, bilateral, unilateral
from ..dynamics.crba import crba
from ..dynamics.free_flight import bases, pushed
from ..forces.actuators.acting import joint_force_of, levers, slopes, torques
from ..forces.bushing import RotationStop
from ..forces.contact_report import IdleContact, touching_couplings
from ..forces.contact_rows import contact_points, contact_rows
from ..forces.contacts import Contact
from ..forces.effort_limits import limited
from ..forces.joint_forces import JointStop, Stribeck
from ..forces.length_rows import length_rows
from ..forces.shape_contact import ShapeContact
from ..forces.springs import Rope
from ..forces.tendons import JointTendon, Tendon
from ..forces.transmissions import Adhesion, SpatialTendon
from ..integrators.convex import (
    ConvexMechanics,
    Free,
    Impulses,
    Lines,
    Nearest,
    Points,
    Rubbing,
)
from ..integrators.method import Scalar, State
from ..solvers.linear import product
from ..solvers.rows import Rows
from ..system.frozen import unfreeze
from ..system.kinematic_tree import Tree
from ..system.system import System
from .formulation import Formulation, Inputs
from .nonsmooth import coasted, on_constraints, trees_of

# What the convex problem solves for, in place of forces.
_SOLVED = Contact, ShapeContact, JointStop, RotationStop, Rope, Stribeck
# Where the rows of contact points have more entries than this, not all of the points act in a step,
# but so many to each shape.
_ROWS, _POINTS = 6_000, 8


class ConvexMotion(eqx.Module):
    """The impulses of the step before each saved time, in N s or N m s; divided by dt mean forces.

    bilateral (m + 1, b), contacts (m + 1, k, 3): as of `ContactMotion`. points (m + 1, p, 3): at
    those of compliant contacts, normal and along two tangents. moments (m + 1, p, 3): about these
    there, (m + 1, 0, 3) without the moments of the method. stops (m + 1, l): of `JointStop`,
    lower ones first. lengths (m + 1, p): of `Rope`, of the limits of tendons, shortest and longest,
    and of `RotationStop`, in the order of the couplings. friction (m + 1, nv + f): dry friction of
    joints, then of the f tendons. impacts (m + 1,): how many times something has hit until then, at
    times that are not located.
    """

    bilateral: jax.Array
    contacts: jax.Array
    points: jax.Array
    moments: jax.Array
    stops: jax.Array
    lengths: jax.Array
    friction: jax.Array
    impacts: jax.Array


class ConvexFormulation(Formulation):
    """A system whose contacts, stops and dry friction are found in one problem in each step."""

    equations: ClassVar[type] = ConvexMechanics
    supports: ClassVar[frozenset[str]] = frozenset(("constraints", "contacts"))

    @classmethod
    def check(cls, method: Any, system: System) -> None:
        if method.most_points is not None and method.most_points < 1:
            raise ValueError(
                f"simulate: {method.name} has most_points={method.most_points}; give one or more, "
                "or None"
            )
        if not method.recovery > 0:
            raise ValueError(
                f"simulate: {method.name} has recovery={method.recovery}; give a speed above 0 in "
                "m/s, or infinity"
            )
        for c in system.couplings:
            stops = isinstance(c, Contact | ShapeContact | JointStop | RotationStop)
            if stops and _differ(c.exponent, 1):
                raise ValueError(
                    f"simulate: {method.name} takes stiffness that is linear, and {c} of "
                    f"{system.name} has the exponent {float(c.exponent):g}; give it the exponent 1"
                )
            turning = isinstance(c, ShapeContact) and any(
                _differ(arm, 0) for arm in (c.spinning, c.rolling)
            )
            if turning and not method.moments:
                raise ValueError(
                    f"simulate: {c} of {system.name} resists spinning or rolling, which "
                    f"{method.name} leaves out by default; take {method.name}(moments=True)"
                )

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> ConvexMechanics:
        return Machine(self.tree, t, inputs, self.method.moments, self._most_points)

    @property
    def small(self) -> bool:
        return super().small and (self.method.located or self._most_points is None)

    @property
    def _most_points(self) -> int | None:
        """How many contact points act in a step; None where all of them do."""
        tree = self.tree
        every = shapes = 0
        for c in touching_couplings(tree.system):
            found = isinstance(c, ShapeContact)
            every += count_of_points(c.geometry, c.pairs) if found else len(c.path.bodies) - 1
            shapes += len(c.path.bodies)
        if self.method.located or 3 * every * tree.topology.nv <= _ROWS:
            return None
        most = _POINTS * shapes if self.method.most_points is None else self.method.most_points
        return most if most < every else None

    @property
    def explicit(self) -> Tree:
        tree = _without(self.tree, "friction", "damping", "stiffness")
        kept = tuple(c for c in tree.system.couplings if not isinstance(c, Tendon | JointTendon))
        return replace(tree, system=replace(tree.system, actuators=(), couplings=kept))

    def record(self, state: State) -> ConvexMotion:
        every, spins, rolls, lines, friction = state.memory.impulses
        lines, moments = lines[:, 0], jnp.concatenate((spins, rolls), axis=1)
        b, kinds = len(labels(bilateral(self.tree).constraints)), _unilateral(self.tree)
        hard = [isinstance(c, HardContact) for c in kinds]
        k, stops = sum(hard), len(hard) - sum(hard)
        along = jnp.pad(lines[b : b + stops, None], ((0, 0), (0, 2)))
        order = np.argsort(np.argsort(~np.array(hard, bool), kind="stable"), kind="stable")
        points, of_bodies = jnp.split(every, [len(every) - k])
        contacts = jnp.concatenate((of_bodies, along))[order]
        compliant = lines[b + stops :]
        stopped, lengths = jnp.split(compliant, [len(compliant) - _count_of_lengths(self.tree)])
        each = lines[:b], contacts, points, moments, stopped, lengths, friction[:, 0]
        return ConvexMotion(*each, state.memory.impacts)

    def impacts(self, state: State) -> jax.Array:
        return state.memory.impacts

    def crowded(self, state: State) -> tuple[jax.Array, int] | None:
        most = self._most_points
        return None if most is None else (state.memory.crowded, most)


class Machine(ConvexMechanics):
    """A system in a step that begins at the time t (s)."""

    tree: Tree
    t: jax.Array
    inputs: Inputs
    moments: bool = eqx.field(static=True)
    most_points: int | None = eqx.field(static=True)

    @property
    def nothing(self) -> Impulses:
        tree, dtype = self.tree, self.tree.dtype
        every = replace(self, most_points=None)
        at = jax.eval_shape(every.meetings, jax.ShapeDtypeStruct((tree.topology.nq,), dtype))
        points, lines = at
        k, s, lines = len(points.gaps), len(points.turns), len(lines.gaps)
        friction = tree.topology.nv + len(_tendons(tree))
        sizes = (k, 3), (s, 1), (s, 2), (lines, 1), (friction, 1)
        return Impulses(*(jnp.zeros(size, dtype) for size in sizes))

    @property
    def parts(self) -> np.ndarray:
        # Tendons, actuators along lengths and mimic joints may connect trees.
        tree = self.tree
        connected = not tree.independent or _tendons(tree) or levers(tree.system)
        return np.zeros(tree.topology.nv, int) if connected else trees_of(tree)

    def free(self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar) -> Free:
        tree, joints = _without(self.tree, "friction"), self.tree.system.joints
        h = jnp.asarray(h, v.dtype)
        a, tau = self.inputs.accelerating(tree, self.t, q, v)
        end = pushed(tree, q, v, a, tau, h) if bases(tree.topology) else v + h * a
        each = tree.rates(jnp.ones_like(v))
        springs = jnp.where(tree.topology.dof_coordinate >= 0, joints.stiffness, 0)
        stiffness, damping = (tree.generalised(x * each) for x in (springs, joints.damping))
        if tree.system.actuators:
            slopes = self._slopes(tree, q, v)
            stiffness, damping = stiffness + slopes[0], damping + slopes[1]
        M = crba(tree, q)
        metric = M + jnp.diag(h * damping + h * h * stiffness)
        # Springs, dampers and servos act at the end of the step. In `end` is what they do at its
        # start, of which all but the damping stays.
        momentum = product(M, end) + h * damping * v
        rows, stiffness, damping = self._along_lengths(tree, q, v)
        if len(rows):
            weighted = (h * damping + h * h * stiffness)[:, None] * rows
            metric = metric + product(rows.T, weighted)
            momentum = momentum + product(rows.T, h * damping * product(rows, v))
        return Free(metric, momentum)

    def _along_lengths(
        self, tree: Tree, q: jax.Array, v: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Rows (n, nv) of what pulls along n lengths, with its stiffness and damping (n,).

        Tendons, and actuators that are not at single dofs; nothing negative.
        """
        tendons = _tendons(tree)
        actuators = levers(tree.system)
        along = [tendon.transmission for tendon in tendons] + [lever for _, lever in actuators]
        lengths, rows = length_rows(tree, along, q)
        rates, one = product(rows, v), jnp.ones((), q.dtype)
        found = []
        for k, tendon in enumerate(tendons):
            at = lengths[k], rates[k]
            each = [jax.jvp(tendon.tension, at, way)[1] for way in ((one, 0 * one), (0 * one, one))]
            found.append(jnp.stack(each))
        if actuators:
            tree, inputs = self.inputs.settled(tree, self.t, q, v)
            command = inputs.command(tree.system, self.t, q, v)
            both = jnp.stack(slopes(tree, command, q, v, inputs.memories))
            found += [-both[:, i] for i, _ in actuators]
        stiffness, damping = jnp.stack(found, axis=1) if found else jnp.zeros((2, 0), q.dtype)
        return rows, jnp.maximum(stiffness, 0), jnp.maximum(damping, 0)

    def _slopes(self, tree: Tree, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The stiffness and the damping (nv,) of actuators at single dofs; not negative ones."""
        tree, inputs = self.inputs.settled(tree, self.t, q, v)
        system, t = tree.system, tree.topology
        command = inputs.command(system, self.t, q, v)

        def acting(q: jax.Array, v: jax.Array) -> jax.Array:
            each = torques(tree, command, q, v, inputs.memories)
            return limited(system, joint_force_of(system, each))

        # Each depends on its own coordinate and rate only.
        along = jnp.zeros_like(q).at[t.dof_coordinate[t.dof_coordinate >= 0]].set(1)
        still = jnp.zeros_like(v)
        by_q, by_v = (
            jax.jvp(acting, (q, v), way)[1]
            for way in ((along, still), (jnp.zeros_like(q), jnp.ones_like(v)))
        )
        return jnp.maximum(-by_q, 0), jnp.maximum(-by_v, 0)

    def meetings(self, q: Float[Array, " nq"]) -> tuple[Points, Lines]:
        hard, stops = _hard(self.tree, q)
        soft, nearest = _compliant(self.tree, q, self.moments, self.most_points)
        lines = [*_equations(self.tree, q), *stops, *_joint_stops(self.tree, q)]
        lines += _limits_of_lengths(self.tree, q)
        none, n = jnp.zeros(0, q.dtype), self.tree.topology.nv
        rows = Rows(jnp.zeros((0, 3, n), q.dtype))
        no_points = Points(rows, none, none, none, none, none, none > 0, rows, none, none)
        no_lines = Lines(rows[:, :1], none, none, none, none, none)
        points = replace(_joined(no_points, [*soft, *hard]), nearest=nearest)
        return points, _joined(no_lines, lines)

    def dry_friction(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Rubbing:
        tree = self.tree
        t, joints, each = tree.topology, tree.system.joints, tree.rates(jnp.ones_like(v))
        friction, rates = joints.friction, tree.rates(v)
        for c in tree.system.couplings:
            if isinstance(c, Stribeck):
                k = c.dof(t)
                fading = jnp.exp(-((rates[k] / c.stribeck_velocity) ** 2))
                friction = friction + (np.arange(t.n_dofs) == k) * c.breakaway * fading
        tendons = _tendons(tree)
        rows = Rows(jnp.ones((t.nv, 1, 1), q.dtype), np.arange(t.nv)[:, None])
        if tendons:
            along = length_rows(tree, [c.transmission for c in tendons], q)[1]
            rows = Rows(jnp.concatenate((rows.whole(t.nv), along[:, None])))
        most = [tree.generalised(friction * jnp.sign(each)), *(c.friction[None] for c in tendons)]
        return Rubbing(rows, jnp.concatenate(most))

    @property
    def trees(self) -> np.ndarray:
        return trees_of(self.tree)

    def coast(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        return coasted(self.tree, q, v, jnp.asarray(h, v.dtype))

    def position(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""]]:
        return on_constraints(self.tree, q, v)


def _without(tree: Tree, *numbers: str) -> Tree:
    """The tree without what the convex problem solves for, and without numbers of the joints."""
    system = unfreeze(tree.system)
    adheres = any(isinstance(a.transmission, Adhesion) for a in system.actuators)
    kept = []
    for c in system.couplings:
        if isinstance(c, Tendon | JointTendon):
            kept.append(replace(c, friction=0 * c.friction, length_range=None))
        elif isinstance(c, Contact | ShapeContact) and adheres:
            kept.append(IdleContact(contact=c))  # pyright: ignore
        elif not isinstance(c, _SOLVED):
            kept.append(c)
    none = np.zeros(tree.topology.n_dofs, tree.dtype)
    joints = replace(system.joints, **dict.fromkeys(numbers, none))
    return replace(tree, system=replace(system, couplings=tuple(kept), joints=joints))


def _differ(values: jax.Array, usual: float) -> bool:
    """Whether numbers are known to be others than the usual one."""
    return not isinstance(values, Tracer) and bool(np.any(np.asarray(values) != usual))


def _unilateral(tree: Tree) -> tuple[Unilateral, ...]:
    return tuple(c for c in tree.constraints if isinstance(c, Unilateral))


def _joined(nothing: Any, parts: Sequence[Any]) -> Any:
    """Points or lines one after the other."""
    if len(parts) == 1:
        return parts[0]
    return jax.tree.map(lambda *a: jnp.concatenate(a), nothing, *parts)


def _hard(tree: Tree, q: jax.Array) -> tuple[list[Points], list[Lines]]:
    """The hard contacts, and the hard stops, of the constraints."""
    gaps = equations(unilateral(tree), q)
    kinds = _unilateral(tree)
    if not kinds:
        return [], []
    rows, distances = gaps.jacobian(), gaps.residual()
    starts = np.cumsum([0, *(c.size for c in kinds)])
    points, stops = [], []
    for c, start, gap in zip(kinds, starts, distances, strict=False):
        one, rigid = gap[None], jnp.full(1, jnp.inf, q.dtype)
        friction, bounce = c.friction[None], c.restitution[None]
        if isinstance(c, HardContact):
            row = Rows(rows[start : start + 3][None])
            none = row[:0, :], one[:0], one[:0]
            points.append(Points(row, one, friction, bounce, rigid, 0 * one, one == one, *none))
        else:
            stops.append(Lines(Rows(rows[start][None, None]), one, bounce, rigid, 0 * one, 0 * one))
    return points, stops


def _compliant(
    tree: Tree, q: jax.Array, moments: bool, most: int | None
) -> tuple[list[Points], Nearest | None]:
    """The points of compliant contacts, and which they are if no more than `most` act.

    moments: whether they resist spinning and rolling.
    """
    contacts, nearest = touching_couplings(tree.system), None
    if not contacts:
        return [], None
    points = contact_points(tree, contacts, q)
    if most is not None:
        count = len(points.gaps)
        gaps = jax.lax.stop_gradient(jnp.where(points.exists, points.gaps, FAR))
        found = jax.lax.top_k(-gaps, most + 1)[1]
        index = jnp.sort(found[:most])
        crowded = (gaps[found[most]] < 0).astype(q.dtype)
        # Those of hard contacts, which come after them, all act.
        hard = sum(isinstance(c, HardContact) for c in _unilateral(tree))
        nearest = Nearest(jnp.concatenate((index, count + jnp.arange(hard))), crowded)
        points = (points if hard else points.with_few_dofs()).those(index)
    rows, numbers, gaps = contact_rows(tree, q, points), points.numbers, points.gaps
    turning = len(gaps) if moments else 0
    made = Points(
        rows=rows[:, :3],
        gaps=gaps,
        friction=numbers["friction"],
        restitution=jnp.zeros_like(gaps),
        stiffness=numbers["stiffness"],
        relaxation=numbers["dissipation"] * jnp.maximum(-gaps, 0),
        exists=points.exists,
        turns=rows[:turning, 3:],
        spinning=numbers["spinning"][:turning],
        rolling=numbers["rolling"][:turning],
    )
    return [made], nearest


def _equations(tree: Tree, q: jax.Array) -> Iterator[Lines]:
    """The equations of closed loops and other bilateral constraints."""
    kept = bilateral(tree)
    if kept.constraints:
        at = equations(kept, q)
        rows = at.jacobian()
        gaps = jnp.zeros(len(rows), q.dtype).at[holonomic(kept.constraints)].set(at.residual())
        rigid = jnp.full_like(gaps, jnp.inf)
        yield Lines(Rows(rows[:, None]), gaps, 0 * gaps, rigid, 0 * gaps, -rigid)


def _joint_stops(tree: Tree, q: jax.Array) -> Iterator[Lines]:
    """The compliant stops of joints: those at lower limits, then those at upper ones."""
    t, joints, x = tree.topology, tree.system.joints, tree.coordinates(q)
    rates = jax.vmap(tree.rates, out_axes=1)(jnp.eye(t.nv, dtype=q.dtype))
    for stop in tree.system.couplings:
        if isinstance(stop, JointStop):
            dofs = np.flatnonzero(stop.dofs(t))
            for sign, gap in ((1, x - joints.lower), (-1, joints.upper - x)):
                gap = jnp.where(jnp.isfinite(gap), gap, FAR)[dofs]
                relaxation = stop.dissipation * jnp.maximum(-gap, 0)
                stiffness = jnp.full_like(gap, stop.stiffness)
                yield Lines(
                    Rows(sign * rates[dofs][:, None]), gap, 0 * gap, stiffness, relaxation, 0 * gap
                )


def _tendons(tree: Tree) -> list[Any]:
    """The tendons, each of which may rub dry."""
    return [c for c in tree.system.couplings if isinstance(c, Tendon | JointTendon)]


def _count_of_lengths(tree: Tree) -> int:
    """How many lines `_limits_of_lengths` gives."""
    return sum(len(sides) for _, sides in _limited_lengths(tree))


def _limited_lengths(tree: Tree) -> list[tuple[Any, tuple[int, ...]]]:
    """What limits a length, and on which sides: 1 where it must not fall, -1 where not grow."""
    found = []
    for c in tree.system.couplings:
        if isinstance(c, Rope | RotationStop):
            found.append((c, (-1,)))
        elif isinstance(c, Tendon | JointTendon) and c.length_range is not None:
            found.append((c, (1, -1)))
    return found


def _limits_of_lengths(tree: Tree, q: jax.Array) -> Iterator[Lines]:
    """Ropes, the limits of tendons and of rotations."""
    limited = _limited_lengths(tree)
    if not limited:
        return
    along: list[Any] = []
    for c, _ in limited:
        if isinstance(c, Rope):
            along.append(SpatialTendon(c.path))
        else:
            along.append(c.transmission if isinstance(c, Tendon | JointTendon) else c)
    lengths, rows = length_rows(tree, along, q)
    for (c, sides), length, row in zip(limited, lengths, rows, strict=True):
        zero = jnp.zeros_like(length)
        if isinstance(c, Rope):
            ends, stiffness, dissipation = [c.rest_length], c.stiffness, zero
        elif isinstance(c, RotationStop):
            ends, stiffness, dissipation = [c.angle], c.stiffness, c.dissipation
        else:
            ends, stiffness, dissipation = c.length_range, c.stop_stiffness, c.stop_dissipation
        for sign, end in zip(sides, ends, strict=True):
            gap = sign * (length - end)
            relaxation = dissipation * jnp.maximum(-gap, 0)
            numbers = gap, zero, jnp.asarray(stiffness, q.dtype), relaxation, zero
            yield Lines(Rows(sign * row[None, None]), *(number[None] for number in numbers))
