"""Convex time stepping: contacts, stops, ropes and dry friction in one solution, at long steps.

    min over v' of  1/2 (v' - v*)^T A (v' - v*) + sum of l(J v'),        q' = q exp(h v')

v* is the velocity after the step without impulses, A = M + h D + h^2 K the mass matrix with what
dampers and springs at joints add to it, J the velocities of contacts, stops and dry friction, and l
the costs of `impulse_laws`. The function has one minimum, and Newton's method finds it from
anywhere. At it A (v' - v*) = J^T g, with the impulses g = -dl/du.

A gap closes at the end of the step: the target of its rate is -gap / h while it is open, and -gap /
(h + tau) where surfaces overlap, with the relaxation time tau. R_n is 1 / (h k (h + tau)) of the
stiffness k, which is at most such that R_n is 1 / (4 pi^2) of the inverse mass that the contact
moves; tau is then h / pi. Castro, Permenter and Han 2022, section V. A deep overlap would fly apart
at that rate. So tau is longer where the target would be above the speed of recovery, and R_n, with
the same k, smaller: what stands still is held as before.

Two targets make this Coulomb's law but for what changes in a step. mu |u_t| is taken off that of
the gap, with the slip expected at the end of the step: the cone alone would hold what slides h mu
|u_t| above the ground (Acary, Cadoux, Lemarechal and Malick 2011). And impulses of friction are
remembered, the target of the slip is R_t g_t of the step before: what sticks does not creep.

The step in which an impact falls is not differentiated, as with `Moreau`. With `located=True` it
is: impacts have their times (`difflie.integrators.impacts`), and contacts Coulomb's law, since the
cone lifts what slides in an impact by mu |u_t|. Soft contacts, which take longer than a step, hit
nothing: their force begins at zero.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..solvers.rows import Rows
from .impacts import Arrival, Flights, Jump, located
from .impulse_balance import coulomb_velocity, hardness, least_velocity, parts
from .impulse_laws import Coulomb, Discs, Intervals, Law
from .method import Method, Scalar, State, chosen

# The softness of tangents, of dry friction, and of what bounces, in parts of the inverse mass that
# they move.
_TANGENT, _DRY, _STIFF = 1e-3, 1e-4, 1e-4


class Nearest(NamedTuple):
    """The contact points with the least gaps: index (k,) among all of them, in order.

    crowded (): whether surfaces overlap at another one, too.
    """

    index: jax.Array
    crowded: jax.Array


class Points(eqx.Module):
    """k contact points at one configuration, shapes (k,).

    rows (k, 3): the velocities of the gap and along two tangents, by v. gaps in m. friction mu,
    restitution e. stiffness in N/m, infinite where the points do not give; relaxation in s.
    exists: whether there is such a point. turns (k, 3): the angular velocities about the normal
    and the tangents; spinning, rolling: arms in m of the moments against them. Of no points, where
    there are no such moments. nearest: which points of more these are; None where there are no
    others.
    """

    rows: Rows
    gaps: jax.Array
    friction: jax.Array
    restitution: jax.Array
    stiffness: jax.Array
    relaxation: jax.Array
    exists: jax.Array
    turns: Rows
    spinning: jax.Array
    rolling: jax.Array
    nearest: Nearest | None = None

    def recalled(self, every: Impulses) -> Impulses:
        """The impulses at these points, of those at all."""
        return every._replace(**{name: a[at] for name, (a, at) in self._parts(every).items()})

    def remembered(self, own: Impulses, every: Impulses) -> Impulses:
        """The impulses at all points, zero but at these; every: some at all points."""
        parts = self._parts(every).items()
        filled = {n: jnp.zeros_like(a).at[at].set(getattr(own, n)) for n, (a, at) in parts}
        return own._replace(**filled)

    def _parts(self, every: Impulses) -> dict[str, tuple[jax.Array, jax.Array]]:
        """The impulses at all points by their names, and the places of these among them."""
        if self.nearest is None:
            return {}
        at, turning = self.nearest.index, self.nearest.index[: len(self.turns)]
        at_points = ("points", at), ("spins", turning), ("rolls", turning)
        return {name: (getattr(every, name), places) for name, places in at_points}


class Lines(eqx.Module):
    """l equations or stops at one configuration, shapes (l,).

    rows (l, 1): the rates of the gaps by v. gaps in m or rad. restitution, stiffness, relaxation:
    as of `Points`. lower: the least impulse, 0 of a stop, which only pushes, -inf of an equation.
    """

    rows: Rows
    gaps: jax.Array
    restitution: jax.Array
    stiffness: jax.Array
    relaxation: jax.Array
    lower: jax.Array


class Rubbing(NamedTuple):
    """What rubs dry: rows (f, 1) of rates by v, and the largest forces (f,) in N or N m."""

    rows: Rows
    most: jax.Array


class Free(NamedTuple):
    """A step without impulses: the metric A (nv, nv), and the momentum A v* (nv,) at its end."""

    metric: jax.Array
    momentum: jax.Array


class Impulses(NamedTuple):
    """The impulses of a step in N s or N m s, or what belongs to each of them.

    points (k, 3): of contacts, normal and along the tangents; spins (s, 1) and rolls (s, 2): the
    moments there against spinning and rolling; lines (l, 1); friction (f, 1): of what rubs dry.
    """

    points: Any
    spins: Any
    rolls: Any
    lines: Any
    friction: Any


class Pace(NamedTuple):
    """How long a step is, h (s), and at what speed () stiff overlaps are pushed out at most.

    usual (s): the length of the steps by which stiffness is limited.
    """

    h: jax.Array
    usual: jax.Array
    recovery: jax.Array


class Memory(NamedTuple):
    """The impulses of the step before, as of one that is `usual` long () in s.

    impacts (): how many times something has hit so far at times that are not located. crowded ():
    in how many steps surfaces overlapped at points that were left out.
    """

    impulses: Impulses
    impacts: Any
    crowded: Any
    usual: Any

    def of_steps(self, share: jax.Array) -> Memory:
        """With the impulses of steps that are `share` () times as long."""
        return self._replace(impulses=jax.tree.map(lambda g: share * g, self.impulses))


class ConvexMechanics(Flights):
    """A mechanical system in a step of `ConvexContact`; q (nq,), v (nv,), points y = (q, v)."""

    @property
    @abc.abstractmethod
    def nothing(self) -> Impulses:
        """Impulses of zero."""

    @property
    @abc.abstractmethod
    def parts(self) -> np.ndarray:
        """(nv,) the numbers of parts of v between which the metric is zero."""

    @abc.abstractmethod
    def free(self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar) -> Free:
        """The step h (s) from q (nq,), v (nv,) without impulses."""

    @abc.abstractmethod
    def meetings(self, q: Float[Array, " nq"]) -> tuple[Points, Lines]:
        """What may touch at q (nq,), and the equations and stops."""

    @abc.abstractmethod
    def dry_friction(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Rubbing:
        """What rubs dry at q (nq,) and v (nv,)."""

    def gaps(self, q: Float[Array, " nq"]) -> Float[Array, " k"]:
        points, lines = self.meetings(q)
        return jnp.concatenate((points.gaps, lines.gaps))

    def accelerating(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> Float[Array, " nv"]:
        metric, momentum = self.free(q, v, h)
        factor = jax.lax.linalg.cholesky(metric)
        return (jax.scipy.linalg.cho_solve((factor, True), momentum) - v) / h


class ConvexContact(Method):
    """Order 1, for contacts, stops and dry friction at steps of 1 to 10 ms, in one convex problem.

    Bodies stick, slide and rest without creep, friction holds what it can. The memory is the
    impulses of the step before. moments: whether contact points also resist spinning and rolling,
    by the arms of `touching`. located: whether the first impact of each tree is located within the
    step, so that derivatives by what changes its time are right, as of `Moreau`; contacts then keep
    Coulomb's law in each step. most_points: so many contact points of many act in a step, those
    with the least gaps; None for eight to each shape that touches. Where more overlap, the result
    of the run says so. Systems whose points fit into one native program, and located impacts, take
    all. recovery: at what speed in m/s or rad/s overlaps are pushed out at most, of what is stiffer
    than a step resolves; what gives is pushed out at 1 / dissipation at most. Castro, Permenter and
    Han 2022.
    """

    moments: bool = False
    located: bool = False
    most_points: int | None = None
    recovery: float = 1.0

    equations: ClassVar[type] = ConvexMechanics
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 1
    steps_alike: ClassVar[bool] = False
    # Of springs and dampers between points, which act at the start of a step.
    stability: ClassVar[tuple[float, float]] = 2.0, 2.0

    def init(self, problem: ConvexMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        none = jnp.zeros((), y[0].dtype)
        return State(y, Memory(problem.nothing, none, none, jnp.asarray(h, none.dtype)))

    def step(
        self, problem: ConvexMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, Bool[Array, ""]]:
        (q, v), last = state.y, state.memory
        stepped = _located if self.located else _step
        h, recovery = (jnp.asarray(x, v.dtype) for x in (h, self.recovery))
        pace = Pace(h, last.usual, recovery)
        y, memory, found = stepped(problem, q, v, last.of_steps(h / last.usual), pace)
        memory = memory.of_steps(last.usual / h)
        *y, reached = problem.position(*y)
        found = found & reached
        return State(*chosen(found, (tuple(y), memory), (state.y, last))), found


def _step(
    problem: ConvexMechanics, q: jax.Array, v: jax.Array, last: Memory, pace: Pace
) -> tuple[tuple, Memory, Bool[Array, ""]]:
    """q and v at the end of the step, its impulses, and whether they were found ()."""
    h = pace.h
    free = problem.free(q, v, h)
    met = _met(problem, q, v, free.metric)
    end, before = met.moving(free.momentum), met.points.recalled(last.impulses)
    touch, *others = _laws(met, v, end, before, pace)
    laws = [touch.convex(_expected_slip(met, touch, v, end)), *others]
    after, p, found = least_velocity(free.metric, free.momentum, met.each, laws, v, end)
    # What comes faster than what acts can let it in a step.
    coming, arriving = met.closing(v), met.closing(end)
    hits = (met.gaps > 0) & (met.gaps + h * arriving < 0) & ~met.closed(before, pace)
    hits = hits & (coming < -jnp.abs(arriving - coming))
    impacts = last.impacts + jnp.sum(hits.astype(v.dtype))
    impulses = met.points.remembered(Impulses(*parts(laws, p)), last.impulses)
    nearest, crowded = met.points.nearest, last.crowded
    crowded = crowded if nearest is None else crowded + nearest.crowded
    return problem.coast(q, after, h), Memory(impulses, impacts, crowded, last.usual), found


def _located(
    problem: ConvexMechanics, q: jax.Array, v: jax.Array, last: Memory, pace: Pace
) -> tuple[tuple, Memory, Bool[Array, ""]]:
    """As `_step`, with impacts at their times and Coulomb's law."""
    h = pace.h
    start, trees = _met(problem, q, v, problem.free(q, v, h).metric), problem.trees
    member = jnp.asarray(trees[:, None] == np.arange(1 + max(trees, default=0)))
    touched = jnp.any((start.normals != 0)[:, :, None] & member, axis=1)

    def jump(arrival: Arrival, again: Callable[[jax.Array], jax.Array]) -> Jump:
        place, before = arrival.place, arrival.before
        met = _met(problem, place, before, problem.free(place, before, h).metric)
        normals = met.normals
        rebound = -met.restitution * arrival.coming(normals)

        def ended(state: tuple, _: Any) -> tuple:
            guess, known, after = state
            free, target = arrival.free(after), arrival.falling(normals, after) + rebound
            usual = _laws(met, before, free, last.impulses, pace)
            laws = _hit(met, usual, arrival.hits, jnp.maximum(target, 0))
            of_points, of_lines = _mean(met.mobility.points), _ease(met.mobility.lines)
            dry = [law.softness[:, :1] / _DRY for law in (*laws[1:3], laws[4])]
            inverse = of_points[:, None], *dry[:2], of_lines[:, None], dry[2]
            v, p, _, found = coulomb_velocity(
                met.metric, free, met.rows, laws, guess, known, inverse, hardness(h.dtype)[1]
            )
            after = again(jnp.sum(met.moved * p, axis=1))
            return (v, p, after), (v, p, Impulses(*parts(laws, p)), found)

        known = jnp.concatenate([g.ravel() for g in last.impulses])
        found = jax.lax.scan(ended, (before, known, arrival.a), None, length=2)[1]
        after, p, impulses, _ = jax.tree.map(lambda a: a[-1], found)
        moved = met.moved * p
        return Jump(
            after=after,
            moved=met.of_contacts(moved),
            change=jnp.sum(moved, axis=1),
            normals=normals,
            rebound=rebound,
            presses=_pressures(impulses) > 0,
            memory=last._replace(impulses=impulses),
            found=jnp.all(found[-1]),
        )

    return located(problem, q, v, touched, start.closed(last.impulses, pace), h, 0.0, jump)


class Met(eqx.Module):
    """What meets at one configuration, in a metric A (nv, nv) of v; factor: that of A by Cholesky.

    parts (nv,): as of `ConvexMechanics`. The k contacts are the points, then the lines.
    """

    metric: jax.Array
    factor: jax.Array
    parts: np.ndarray
    points: Points
    lines: Lines
    dry: Rubbing

    @property
    def each(self) -> Impulses:
        """The rows of the velocities that belong to impulses."""
        points, turns = self.points.rows, self.points.turns
        spins, rolls = turns[:, :1], turns[:, 1:]
        return Impulses(points, spins, rolls, self.lines.rows, self.dry.rows)

    @property
    def gaps(self) -> Float[Array, " k"]:
        return jnp.concatenate((self.points.gaps, self.lines.gaps))

    @property
    def restitution(self) -> Float[Array, " k"]:
        return jnp.concatenate((self.points.restitution, self.lines.restitution))

    def closing(self, v: Float[Array, " nv"]) -> Float[Array, " k"]:
        """The rates of the gaps."""
        each = self.points.rows[:, :1].of(v), self.lines.rows.of(v)
        return jnp.concatenate(each)[:, 0]

    @property
    def mobility(self) -> Impulses:
        """The inverse masses (k, d, d) that impulses move, but for dry friction."""
        each = self.each._replace(friction=self.dry.rows[:0, :])
        return Impulses(*(rows.mobility(self.factor, self.parts) for rows in each))

    @property
    def normals(self) -> Float[Array, "k nv"]:
        """The rows of the gaps."""
        n = len(self.metric)
        return jnp.concatenate((self.points.rows.whole(n)[:, 0], self.lines.rows.whole(n)[:, 0]))

    @property
    def rows(self) -> Float[Array, "m nv"]:
        """The rows of all velocities that belong to impulses, one after the other."""
        n = len(self.metric)
        return jnp.concatenate([rows.whole(n).reshape(-1, n) for rows in self.each])

    @property
    def moved(self) -> Float[Array, "nv m"]:
        """How impulses change v."""
        return jax.scipy.linalg.cho_solve((self.factor, True), self.rows.T)

    def of_contacts(self, moved: Float[Array, "nv m"]) -> Float[Array, "nv k"]:
        """Sums of changes of v by all impulses over the directions of each contact."""
        k, turning, lines = len(self.points.gaps), len(self.points.turns), len(self.lines.gaps)
        at_points, _, of_lines, _ = jnp.split(moved, np.cumsum([3 * k, 3 * turning, lines]), axis=1)
        at_points = jnp.sum(at_points.reshape(len(moved), k, 3), axis=2)
        return jnp.concatenate((at_points, of_lines), axis=1)

    def moving(self, impulse: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """How an impulse (nv,) changes v."""
        return jax.scipy.linalg.cho_solve((self.factor, True), impulse)

    def closed(self, last: Impulses, pace: Pace) -> Bool[Array, " k"]:
        """Which contacts hit nothing in a step: equations, what is soft, and what pressed before.

        last: the impulses of the step before.
        """
        points, lines, mobility = self.points, self.lines, self.mobility
        of_points, of_lines = _mean(mobility.points), _ease(mobility.lines)
        soft = [_softness(*a, pace)[0] for a in ((of_points, points), (of_lines, lines))]
        never = jnp.concatenate((~points.exists, lines.lower < 0))
        return never | jnp.concatenate(soft) | (_pressures(last) > 0)


def _met(problem: ConvexMechanics, q: jax.Array, v: jax.Array, metric: jax.Array) -> Met:
    """What meets at q and v in a metric."""
    (points, lines), dry = problem.meetings(q), problem.dry_friction(q, v)
    factor = jax.lax.linalg.cholesky(metric)
    return Met(metric, factor, problem.parts, points, lines, dry)


def _pressures(impulses: Impulses) -> Float[Array, " k"]:
    """The impulses of contacts along their gaps."""
    return jnp.concatenate((impulses.points[:, 0], impulses.lines[:, 0]))


def _laws(
    met: Met, before: jax.Array, end: jax.Array, last: Impulses, pace: Pace
) -> tuple[Coulomb, Intervals, Discs, Intervals, Intervals]:
    """The laws of all that meets, of contact points Coulomb's.

    before, end (nv,): v before the step, and after it without impulses. last: the impulses of the
    step before.
    """
    mobility, dry = met.mobility, met.dry.rows
    light = replace(dry, entries=dry.entries**2).of(1 / jnp.diag(met.metric))[:, 0]
    return (
        _contact_law(met.points, mobility.points, before, end, last.points, pace),
        *_moment_laws(met.points, mobility, last),
        _line_law(met.lines, mobility.lines, before, end, last.lines, pace),
        _dry_law(jnp.where(light > 0, light, 1), pace.h * met.dry.most[:, None], last.friction),
    )


def _hit(met: Met, laws: Sequence[Law], hits: jax.Array, target: jax.Array) -> list[Law]:
    """The laws, of contacts that hit (k,) with target rates (k,) and hard."""
    k, mobility = len(met.points.gaps), met.mobility
    touch, spin, roll, line, dry = laws
    masses = _mean(mobility.points), _ease(mobility.lines)
    hard, _ = hardness(target.dtype)
    changed = []
    for law, at, mass in ((touch, slice(k), masses[0]), (line, slice(k, None), masses[1])):
        hit, first = hits[at, None], jnp.arange(law.target.shape[1]) == 0
        softness = jnp.where(hit, hard * mass[:, None], law.softness)
        aims = jnp.where(hit, jnp.where(first, target[at, None], 0), law.target)
        changed.append(replace(law, softness=softness, target=aims))
    return [changed[0], spin, roll, changed[1], dry]


def _mean(mobility: jax.Array) -> jax.Array:
    """The mean inverse masses (k,) that contact points move; mobility (k, 3, 3)."""
    # What is no contact point may move nothing.
    square = jnp.sum(mobility**2, axis=(1, 2)) / 9
    return jnp.sqrt(jnp.where(square > 0, square, 1))


def _ease(mobility: jax.Array) -> jax.Array:
    """The inverse masses (l,) that lines move; mobility (l, 1, 1)."""
    inverse_mass = mobility[:, 0, 0]
    # Of equations that nothing can violate, as those of a planar loop out of its plane, too.
    floor = 1e-6 * jnp.max(inverse_mass, initial=0)
    return jnp.where(inverse_mass > floor, inverse_mass, jnp.where(floor > 0, floor, 1))


def _contact_law(
    points: Points,
    mobility: jax.Array,
    before: jax.Array,
    end: jax.Array,
    last: jax.Array,
    pace: Pace,
) -> Coulomb:
    """The law of contact points; mobility (k, 3, 3): the inverse masses that they move."""
    inverse_mass = _mean(mobility)
    coming, arriving = (points.rows[:, :1].of(v)[:, 0] for v in (before, end))
    _, normal, target = _softness(inverse_mass, points, pace)
    bounces, target = _rebound(points, target, coming, arriving, pace.h)
    normal = jnp.where(bounces, _STIFF * inverse_mass, normal)
    tangent = jnp.where(bounces, _STIFF, _TANGENT) * inverse_mass
    kept = jnp.where((last[:, 0] > 0)[:, None], tangent[:, None] * last[:, 1:], 0)
    target = jnp.concatenate((target[:, None], kept), axis=1)
    softness = jnp.stack((normal, tangent, tangent), axis=1)
    return Coulomb(softness, target, points.friction, points.exists)


def _expected_slip(met: Met, law: Coulomb, before: jax.Array, end: jax.Array) -> jax.Array:
    """mu |u_t| (k,) at the end of the step: without what the needed impulse brakes it by."""
    mobility = met.mobility.points
    square = jnp.sum(met.points.rows[:, 1:].of(before) ** 2, axis=1)
    moves = square > 0
    slip = jnp.where(moves, jnp.sqrt(jnp.where(moves, square, 1)), 0)
    across = jnp.maximum(mobility[:, 1, 1], mobility[:, 2, 2])
    through = jnp.where(mobility[:, 0, 0] > 0, mobility[:, 0, 0], 1)
    needed = jnp.maximum(law.target[:, 0] - met.points.rows[:, :1].of(end)[:, 0], 0)
    return law.friction * jnp.maximum(slip - law.friction * across / through * needed, 0)


def _moment_laws(points: Points, mobility: Impulses, last: Impulses) -> tuple[Intervals, Discs]:
    """The laws of moments at contact points, in proportion to the impulses of the step before."""
    each = (jnp.diagonal(a, axis1=1, axis2=2) for a in (mobility.spins, mobility.rolls))
    inverse_mass = jnp.concatenate(tuple(each), axis=1)
    inverse_mass = jnp.where(inverse_mass > 0, inverse_mass, 1)
    pressure = last.points[: len(inverse_mass), 0]
    spin = _dry_law(inverse_mass[:, 0], (points.spinning * pressure)[:, None], last.spins)
    radius = points.rolling * pressure
    softness = _DRY * jnp.max(inverse_mass[:, 1:], axis=1, keepdims=True)
    sticks = jnp.sum(last.rolls**2, axis=1) < radius**2
    target = jnp.where(sticks[:, None], softness, 0) * last.rolls
    return spin, Discs(softness, target, radius)


def _dry_law(inverse_mass: jax.Array, most: jax.Array, last: jax.Array) -> Intervals:
    """The law of dry friction of at most `most` (k, 1) N s or N m s."""
    softness = _DRY * inverse_mass[:, None]
    target = jnp.where(jnp.abs(last) < most, softness * last, 0)
    return Intervals(softness, target, -most[:, 0], most[:, 0])


def _line_law(
    lines: Lines,
    mobility: jax.Array,
    before: jax.Array,
    end: jax.Array,
    last: jax.Array,
    pace: Pace,
) -> Intervals:
    """The law of equations and stops; as `_contact_law`."""
    inverse_mass = _ease(mobility)
    coming, arriving = (lines.rows.of(v)[:, 0] for v in (before, end))
    _, softness, target = _softness(inverse_mass, lines, pace)
    bounces, target = _rebound(lines, target, coming, arriving, pace.h)
    softness = jnp.where(bounces, _STIFF * inverse_mass, softness)
    # An equation holds at the end of the step, but for what changes in its impulse.
    always, dry = lines.lower < 0, _DRY * inverse_mass
    softness = jnp.where(always, dry, softness)
    target = jnp.where(always, dry * last[:, 0] - lines.gaps / pace.h, target)
    upper = jnp.full_like(lines.lower, jnp.inf)
    return Intervals(softness[:, None], target[:, None], lines.lower, upper)


def _softness(
    inverse_mass: jax.Array, of: Points | Lines, pace: Pace
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Whether gaps give, R_n of them, and the target rates at which they close."""
    h, usual, shortest = pace.h, pace.usual, pace.usual / math.pi
    # With this stiffness R_n is 1 / (4 pi^2) of the inverse mass in a usual step.
    most = 4 * math.pi**2 / (inverse_mass * usual * (usual + shortest))
    gives = of.stiffness * (usual + of.relaxation) < most * (usual + shortest)
    stiffness = jnp.where(gives, of.stiffness, most)
    slowed = jnp.maximum(shortest, -of.gaps / pace.recovery - h)
    tau = jnp.where(gives, of.relaxation, slowed)
    rate = -of.gaps / (h + jnp.where(of.gaps > 0, 0, tau))
    return gives, 1 / (h * stiffness * (h + tau)), rate


def _rebound(
    of: Points | Lines, rest: jax.Array, coming: jax.Array, arriving: jax.Array, h: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Where something bounces, by Newton's restitution, and the target rates of all gaps.

    rest: those of what stays. coming: the rates before the step, arriving: after it, without
    impulses. What comes slower than three times what forces change in a step does not bounce.
    """
    hits = (of.gaps + h * arriving < 0) & (coming < -3 * jnp.abs(arriving - coming))
    bounces = hits & (of.restitution > 0)
    return bounces, jnp.where(bounces, jnp.maximum(rest, -of.restitution * coming), rest)
