"""Convex time stepping: contacts, stops, ropes and dry friction in one solution, at long steps.

    min over v' of  1/2 (v' - v*)^T A (v' - v*) + sum of l(J v'),        q' = q exp(h v')

v* is the velocity after the step without impulses, A = M + h D + h^2 K the mass matrix with what
dampers and springs at joints add to it, J the velocities of contacts, stops and dry friction, and l
the costs of `impulse_laws`. The function has one minimum, and Newton's method finds it from
anywhere. At it A (v' - v*) = J^T g, with the impulses g = -dl/du.

A gap closes at the end of the step: the target of its rate is -gap / h while it is open, and -gap /
(h + tau) where surfaces overlap, with the relaxation time tau. R_n is that of the stiffness, 1 / (h
k (h + tau)), and at least 1 / (4 pi^2) of the inverse mass that the contact moves; tau is then
h / pi. Castro, Permenter and Han 2022, section V.

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

from ..solvers.linear import product
from .impacts import Arrival, Flights, Jump, located
from .impulse_balance import coulomb_velocity, hardness, least_velocity, parts
from .impulse_laws import Coulomb, Discs, Intervals, Law
from .method import Method, Scalar, State, chosen

# The softness of tangents, of dry friction, and of what bounces, in parts of the inverse mass that
# they move.
_TANGENT, _DRY, _STIFF = 1e-3, 1e-4, 1e-4


class Points(eqx.Module):
    """k contact points at one configuration, shapes (k,).

    rows (k, 3, nv): the velocities of the gap and along two tangents, by v. gaps in m. friction mu,
    restitution e. stiffness in N/m, infinite where the points do not give; relaxation in s.
    exists: whether there is such a point. turns (k, 3, nv): the angular velocities about the normal
    and the tangents; spinning, rolling: arms in m of the moments against them. Of no points, where
    there are no such moments.
    """

    rows: jax.Array
    gaps: jax.Array
    friction: jax.Array
    restitution: jax.Array
    stiffness: jax.Array
    relaxation: jax.Array
    exists: jax.Array
    turns: jax.Array
    spinning: jax.Array
    rolling: jax.Array


class Lines(eqx.Module):
    """l equations or stops at one configuration, shapes (l,).

    rows (l, nv): the rates of the gaps by v. gaps in m or rad. restitution, stiffness, relaxation:
    as of `Points`. lower: the least impulse, 0 of a stop, which only pushes, -inf of an equation.
    """

    rows: jax.Array
    gaps: jax.Array
    restitution: jax.Array
    stiffness: jax.Array
    relaxation: jax.Array
    lower: jax.Array


class Rubbing(NamedTuple):
    """What rubs dry: rows J (f, nv) of rates J v, and the largest forces (f,) in N or N m."""

    rows: jax.Array
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


class Memory(NamedTuple):
    """The impulses of the step before.

    impacts (): how many times something has hit so far at times that are not located.
    """

    impulses: Impulses
    impacts: Any


class ConvexMechanics(Flights):
    """A mechanical system in a step of `ConvexContact`; q (nq,), v (nv,), points y = (q, v)."""

    @property
    @abc.abstractmethod
    def nothing(self) -> Impulses:
        """Impulses of zero."""

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
    Coulomb's law in each step. Castro, Permenter and Han 2022.
    """

    moments: bool = False
    located: bool = False

    equations: ClassVar[type] = ConvexMechanics
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 1
    # Of springs and dampers between points, which act at the start of a step.
    stability: ClassVar[tuple[float, float]] = 2.0, 2.0

    def init(self, problem: ConvexMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        return State(y, Memory(problem.nothing, jnp.zeros((), y[0].dtype)))

    def step(
        self, problem: ConvexMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, Bool[Array, ""]]:
        (q, v), last = state.y, state.memory
        stepped = _located if self.located else _step
        y, memory, found = stepped(problem, q, v, last, jnp.asarray(h, v.dtype))
        *y, reached = problem.position(*y)
        found = found & reached
        return State(*chosen(found, (tuple(y), memory), (state.y, last))), found


def _step(
    problem: ConvexMechanics, q: jax.Array, v: jax.Array, last: Memory, h: jax.Array
) -> tuple[tuple, Memory, Bool[Array, ""]]:
    """q and v at the end of the step, its impulses, and whether they were found ()."""
    free = problem.free(q, v, h)
    met = _met(problem, q, v, free.metric)
    end = met.moving(free.momentum)
    touch, *others = _laws(met, v, end, last.impulses, h)
    laws = [touch.convex(_expected_slip(met, touch, v, end)), *others]
    after, p, found = least_velocity(free.metric, free.momentum, met.rows, laws, v, end)
    # What comes faster than what acts can let it in a step.
    coming, arriving = product(met.normals, v), product(met.normals, end)
    hits = (met.gaps > 0) & (met.gaps + h * arriving < 0) & ~met.closed(last.impulses, h)
    hits = hits & (coming < -jnp.abs(arriving - coming))
    impacts = last.impacts + jnp.sum(hits.astype(v.dtype))
    return problem.coast(q, after, h), Memory(Impulses(*parts(laws, p)), impacts), found


def _located(
    problem: ConvexMechanics, q: jax.Array, v: jax.Array, last: Memory, h: jax.Array
) -> tuple[tuple, Memory, Bool[Array, ""]]:
    """As `_step`, with impacts at their times and Coulomb's law."""
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
            usual = _laws(met, before, free, last.impulses, h)
            laws = _hit(met, usual, arrival.hits, jnp.maximum(target, 0))
            v, p, _, found = coulomb_velocity(
                met.metric, free, met.rows, laws, guess, known, *hardness(h.dtype)
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
            memory=Memory(impulses, last.impacts),
            found=jnp.all(found[-1]),
        )

    return located(problem, q, v, touched, start.closed(last.impulses, h), h, 0.0, jump)


class Met(eqx.Module):
    """What meets at one configuration, in a metric A (nv, nv) of v.

    rows (m, nv): of the velocities that belong to impulses, one after the other; moved (nv, m):
    how these change v. factor: that of A by Cholesky. The k contacts are the points, then the
    lines.
    """

    metric: jax.Array
    factor: jax.Array
    points: Points
    lines: Lines
    dry: Rubbing
    rows: jax.Array
    moved: jax.Array

    @property
    def gaps(self) -> Float[Array, " k"]:
        return jnp.concatenate((self.points.gaps, self.lines.gaps))

    @property
    def restitution(self) -> Float[Array, " k"]:
        return jnp.concatenate((self.points.restitution, self.lines.restitution))

    @property
    def normals(self) -> Float[Array, "k nv"]:
        """The rows of the gaps."""
        return jnp.concatenate((self.points.rows[:, 0], self.lines.rows))

    @property
    def each_moved(self) -> Impulses:
        """How impulses of each kind change v, (k, d, nv)."""
        return self._by_kinds(self.moved)

    def of_contacts(self, moved: Float[Array, "nv m"]) -> Float[Array, "nv k"]:
        """Sums of changes of v by all impulses over the directions of each contact."""
        each = self._by_kinds(moved)
        return jnp.concatenate((jnp.sum(each.points, axis=1), each.lines[:, 0])).T

    def moving(self, impulse: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """How an impulse (nv,) changes v."""
        return jax.scipy.linalg.cho_solve((self.factor, True), impulse)

    def closed(self, last: Impulses, h: Float[Array, ""]) -> Bool[Array, " k"]:
        """Which contacts hit nothing in a step: equations, what is soft, and what pressed before.

        last: the impulses of the step before.
        """
        each, points, lines = self.each_moved, self.points, self.lines
        of_points, of_lines = _mobility(points, each.points)[1], _ease(lines, each.lines[:, 0])
        soft = [_softness(*a, h)[0] for a in ((of_points, points), (of_lines, lines))]
        never = jnp.concatenate((~points.exists, lines.lower < 0))
        return never | jnp.concatenate(soft) | (_pressures(last) > 0)

    def _by_kinds(self, moved: jax.Array) -> Impulses:
        counts = [len(a) for a in (self.points.gaps, self.points.turns, self.lines.gaps)]
        (k, s, lines), dry = counts, len(self.dry.most)
        sizes = (k, 3), (s, 1), (s, 2), (lines, 1), (dry, 1)
        each = jnp.split(moved.T, np.cumsum([k * d for k, d in sizes])[:-1])
        pairs = zip(each, sizes, strict=True)
        return Impulses(*(a.reshape(*size, a.shape[1]) for a, size in pairs))


def _met(problem: ConvexMechanics, q: jax.Array, v: jax.Array, metric: jax.Array) -> Met:
    """What meets at q and v in a metric."""
    (points, lines), dry, n = problem.meetings(q), problem.dry_friction(q, v), len(v)
    turns, factor = points.turns, jax.lax.linalg.cholesky(metric)
    each = points.rows, turns[:, :1], turns[:, 1:], lines.rows, dry.rows
    rows = jnp.concatenate([a.reshape(-1, n) for a in each])
    moved = jax.scipy.linalg.cho_solve((factor, True), rows.T)
    return Met(metric, factor, points, lines, dry, rows, moved)


def _pressures(impulses: Impulses) -> Float[Array, " k"]:
    """The impulses of contacts along their gaps."""
    return jnp.concatenate((impulses.points[:, 0], impulses.lines[:, 0]))


def _laws(
    met: Met, before: jax.Array, end: jax.Array, last: Impulses, h: jax.Array
) -> tuple[Coulomb, Intervals, Discs, Intervals, Intervals]:
    """The laws of all that meets, of contact points Coulomb's.

    before, end (nv,): v before the step, and after it without impulses. last: the impulses of the
    step before; h (s).
    """
    moved = met.each_moved
    light = product(met.dry.rows**2, 1 / jnp.diag(met.metric))
    return (
        _contact_law(met.points, moved.points, before, end, last.points, h),
        *_moment_laws(met.points, moved, last),
        _line_law(met.lines, moved.lines[:, 0], before, end, last.lines, h),
        _dry_law(jnp.where(light > 0, light, 1), h * met.dry.most[:, None], last.friction),
    )


def _hit(met: Met, laws: Sequence[Law], hits: jax.Array, target: jax.Array) -> list[Law]:
    """The laws, of contacts that hit (k,) with target rates (k,) and hard."""
    k, each = len(met.points.gaps), met.each_moved
    touch, spin, roll, line, dry = laws
    masses = _mobility(met.points, each.points)[1], _ease(met.lines, each.lines[:, 0])
    hard, _ = hardness(target.dtype)
    changed = []
    for law, at, mass in ((touch, slice(k), masses[0]), (line, slice(k, None), masses[1])):
        hit, first = hits[at, None], jnp.arange(law.target.shape[1]) == 0
        softness = jnp.where(hit, hard * mass[:, None], law.softness)
        aims = jnp.where(hit, jnp.where(first, target[at, None], 0), law.target)
        changed.append(replace(law, softness=softness, target=aims))
    return [changed[0], spin, roll, changed[1], dry]


def _mobility(points: Points, moved: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The inverse masses (k, 3, 3) that contact points move, and their mean (k,)."""
    mobility = product(points.rows, jnp.swapaxes(moved, 1, 2))
    # What is no contact point may move nothing.
    square = jnp.sum(mobility**2, axis=(1, 2)) / 9
    return mobility, jnp.sqrt(jnp.where(square > 0, square, 1))


def _ease(lines: Lines, moved: jax.Array) -> jax.Array:
    """The inverse masses (l,) that lines move."""
    inverse_mass = jnp.sum(lines.rows * moved, axis=1)
    # Of equations that nothing can violate, as those of a planar loop out of its plane, too.
    floor = 1e-6 * jnp.max(inverse_mass, initial=0)
    return jnp.where(inverse_mass > floor, inverse_mass, jnp.where(floor > 0, floor, 1))


def _contact_law(
    points: Points,
    moved: jax.Array,
    before: jax.Array,
    end: jax.Array,
    last: jax.Array,
    h: jax.Array,
) -> Coulomb:
    """The law of contact points; moved (k, 3, nv): how impulses at them change v."""
    _, inverse_mass = _mobility(points, moved)
    coming, arriving = (product(points.rows[:, 0], v) for v in (before, end))
    _, normal, target = _softness(inverse_mass, points, h)
    bounces, target = _rebound(points, target, coming, arriving, h)
    normal = jnp.where(bounces, _STIFF * inverse_mass, normal)
    tangent = jnp.where(bounces, _STIFF, _TANGENT) * inverse_mass
    kept = jnp.where((last[:, 0] > 0)[:, None], tangent[:, None] * last[:, 1:], 0)
    target = jnp.concatenate((target[:, None], kept), axis=1)
    softness = jnp.stack((normal, tangent, tangent), axis=1)
    return Coulomb(softness, target, points.friction, points.exists)


def _expected_slip(met: Met, law: Coulomb, before: jax.Array, end: jax.Array) -> jax.Array:
    """mu |u_t| (k,) at the end of the step: without what the needed impulse brakes it by."""
    mobility, _ = _mobility(met.points, met.each_moved.points)
    square = jnp.sum(product(met.points.rows, before)[:, 1:] ** 2, axis=1)
    moves = square > 0
    slip = jnp.where(moves, jnp.sqrt(jnp.where(moves, square, 1)), 0)
    across = jnp.maximum(mobility[:, 1, 1], mobility[:, 2, 2])
    through = jnp.where(mobility[:, 0, 0] > 0, mobility[:, 0, 0], 1)
    needed = jnp.maximum(law.target[:, 0] - product(met.points.rows[:, 0], end), 0)
    return law.friction * jnp.maximum(slip - law.friction * across / through * needed, 0)


def _moment_laws(points: Points, moved: Impulses, last: Impulses) -> tuple[Intervals, Discs]:
    """The laws of moments at contact points, in proportion to the impulses of the step before."""
    turned = jnp.concatenate((moved.spins, moved.rolls), axis=1)
    inverse_mass = jnp.sum(points.turns * turned, axis=2)
    inverse_mass = jnp.where(inverse_mass > 0, inverse_mass, 1)
    pressure = last.points[: len(turned), 0]
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
    moved: jax.Array,
    before: jax.Array,
    end: jax.Array,
    last: jax.Array,
    h: jax.Array,
) -> Intervals:
    """The law of equations and stops; as `_contact_law`."""
    inverse_mass = _ease(lines, moved)
    coming, arriving = product(lines.rows, before), product(lines.rows, end)
    _, softness, target = _softness(inverse_mass, lines, h)
    bounces, target = _rebound(lines, target, coming, arriving, h)
    softness = jnp.where(bounces, _STIFF * inverse_mass, softness)
    # An equation holds at the end of the step, but for what changes in its impulse.
    always, dry = lines.lower < 0, _DRY * inverse_mass
    softness = jnp.where(always, dry, softness)
    target = jnp.where(always, dry * last[:, 0] - lines.gaps / h, target)
    upper = jnp.full_like(lines.lower, jnp.inf)
    return Intervals(softness[:, None], target[:, None], lines.lower, upper)


def _softness(
    inverse_mass: jax.Array, of: Points | Lines, h: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Whether gaps give, R_n of them, and the target rates at which they close."""
    near = inverse_mass / (4 * math.pi**2)
    soft = 1 / (h * of.stiffness * (h + of.relaxation))
    gives = soft > near
    tau = jnp.where(gives, of.relaxation, h / math.pi)
    rate = -of.gaps / (h + jnp.where(of.gaps > 0, 0, tau))
    return gives, jnp.where(gives, soft, near), rate


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
