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
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..solvers.convex import ConvexNewton
from ..solvers.linear import product
from ..solvers.root import root
from .impulse_laws import Cones, Discs, Intervals
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


class ConvexMechanics(eqx.Module):
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

    @abc.abstractmethod
    def moved(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""]]:
        """q (nq,) and v (nv,) after h (s) at v, and whether equations were solved there ()."""


class ConvexContact(Method):
    """Order 1, for contacts, stops and dry friction at steps of 1 to 10 ms, in one convex problem.

    Bodies stick, slide and rest without creep, friction holds what it can. The memory is the
    impulses of the step before. Not differentiated is in which step an impact falls, as with
    `Moreau`. moments: whether contact points also resist spinning and rolling, by the arms of
    `touching`. Castro, Permenter and Han 2022.
    """

    moments: bool = False

    equations: ClassVar[type] = ConvexMechanics
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 1
    # Of springs and dampers between points, which act at the start of a step.
    stability: ClassVar[tuple[float, float]] = 2.0, 2.0

    def init(self, problem: ConvexMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        return State(y, problem.nothing)

    def step(
        self, problem: ConvexMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, Bool[Array, ""]]:
        q, v = state.y
        h = jnp.asarray(h, v.dtype)
        free = problem.free(q, v, h)
        points, lines = problem.meetings(q)
        dry = problem.dry_friction(q, v)
        after, impulses, solved = least(free, points, lines, dry, v, state.memory, h)
        *y, reached = problem.moved(q, after, h)
        solved = solved & reached
        return State(*chosen(solved, (tuple(y), impulses), (state.y, state.memory))), solved


def least(
    free: Free,
    points: Points,
    lines: Lines,
    dry: Rubbing,
    before: Float[Array, " nv"],
    last: Impulses,
    h: Float[Array, ""],
) -> tuple[Float[Array, " nv"], Impulses, Bool[Array, ""]]:
    """The velocity v' (nv,), its impulses, and whether they were found ().

    before (nv,): the velocity v at the start. last: the impulses of the step before; h (s).
    """
    A, n = free.metric, len(before)
    mass, factor = jnp.diag(A), (jax.lax.linalg.cholesky(A), True)
    turns = points.turns
    single = lines.rows[:, None], dry.rows[:, None]
    rows = Impulses(points.rows, turns[:, :1], turns[:, 1:], *single)

    def moving(forces: jax.Array) -> jax.Array:
        """How impulses (..., nv) change v."""
        flat = forces.reshape(-1, n).T
        return jax.scipy.linalg.cho_solve(factor, flat).T.reshape(forces.shape)

    end, light = moving(free.momentum), product(dry.rows**2, 1 / mass)
    laws = Impulses(
        _contact_law(points, moving(points.rows), before, end, last.points, h),
        *_moment_laws(points, moving(turns), last),
        _line_law(lines, moving(lines.rows), before, end, last.lines, h),
        _dry_law(jnp.where(light > 0, light, 1), h * dry.most[:, None], last.friction),
    )

    # Velocities in units in which A has ones on its diagonal: rad/s and m/s are alike then.
    unit = 1 / jnp.sqrt(mass)
    scale = jnp.max(jnp.abs(end / unit))

    def impulses(v: jax.Array) -> Impulses:
        pairs = zip(laws, rows, strict=True)
        return Impulses(*(law.impulses(product(row, v)) for law, row in pairs))

    def residual(x: jax.Array) -> jax.Array:
        v = unit * x
        pushed = (_along(row, g) for row, g in zip(rows, impulses(v), strict=True))
        return unit * (product(A, v) - sum(pushed, free.momentum))

    def hessian(x: jax.Array) -> jax.Array:
        v, H = unit * x, A
        for law, row in zip(laws, rows, strict=True):
            weighted = product(law.slopes(product(row, v)), row)
            H = H + product(row.reshape(-1, n).T, weighted.reshape(-1, n))
        return unit[:, None] * H * unit

    def size(x: jax.Array) -> jax.Array:
        return jnp.maximum(jnp.max(jnp.abs(x)), scale)

    x, solved = root(residual, before / unit, ConvexNewton(hessian, size))
    v = unit * x
    return v, impulses(v), solved


def _along(rows: jax.Array, impulses: jax.Array) -> jax.Array:
    """J^T g (nv,) of rows (k, d, nv) and impulses (k, d)."""
    return product(rows.reshape(-1, rows.shape[-1]).T, impulses.ravel())


def _contact_law(
    points: Points,
    moved: jax.Array,
    before: jax.Array,
    end: jax.Array,
    last: jax.Array,
    h: jax.Array,
) -> Cones:
    """The law of contact points; moved (k, 3, nv): how impulses at them change v.

    before, end (nv,): v before the step, and after it without impulses.
    """
    mobility = product(points.rows, jnp.swapaxes(moved, 1, 2))
    # What is no contact point may move nothing.
    square = jnp.sum(mobility**2, axis=(1, 2)) / 9
    inverse_mass = jnp.sqrt(jnp.where(square > 0, square, 1))
    coming, arriving = product(points.rows, before), product(points.rows[:, 0], end)
    normal, target = _softness(inverse_mass, points, h)
    bounces, target = _rebound(points, target, coming[:, 0], arriving, h)
    normal = jnp.where(bounces, _STIFF * inverse_mass, normal)
    tangent = jnp.where(bounces, _STIFF, _TANGENT) * inverse_mass
    # Coulomb's law has the slip after the step: without what the needed impulse brakes it by.
    square = jnp.sum(coming[:, 1:] ** 2, axis=1)
    moves = square > 0
    slip = jnp.where(moves, jnp.sqrt(jnp.where(moves, square, 1)), 0)
    across = jnp.maximum(mobility[:, 1, 1], mobility[:, 2, 2])
    through = jnp.where(mobility[:, 0, 0] > 0, mobility[:, 0, 0], 1)
    braked = points.friction * across / through * jnp.maximum(target - arriving, 0)
    target = target - points.friction * jnp.maximum(slip - braked, 0)
    kept = jnp.where((last[:, 0] > 0)[:, None], tangent[:, None] * last[:, 1:], 0)
    target = jnp.concatenate((target[:, None], kept), axis=1)
    return Cones(points.friction, normal, tangent, target, points.exists)


def _moment_laws(points: Points, moved: jax.Array, last: Impulses) -> tuple[Intervals, Discs]:
    """The laws of moments at contact points, in proportion to the impulses of the step before."""
    inverse_mass = jnp.sum(points.turns * moved, axis=2)
    inverse_mass = jnp.where(inverse_mass > 0, inverse_mass, 1)
    pressure = last.points[: len(moved), 0]
    spin = _dry_law(inverse_mass[:, 0], (points.spinning * pressure)[:, None], last.spins)
    radius, softness = points.rolling * pressure, _DRY * jnp.max(inverse_mass[:, 1:], axis=1)
    sticks = jnp.sum(last.rolls**2, axis=1) < radius**2
    return spin, Discs(radius, softness, jnp.where(sticks, softness, 0)[:, None] * last.rolls)


def _dry_law(inverse_mass: jax.Array, most: jax.Array, last: jax.Array) -> Intervals:
    """The law of dry friction of at most `most` (k, 1) N s or N m s."""
    softness = _DRY * inverse_mass
    sticks = jnp.abs(last) < most
    target = jnp.where(sticks[:, 0], softness * last[:, 0], 0)
    return Intervals(-most[:, 0], most[:, 0], softness, target)


def _line_law(
    lines: Lines,
    moved: jax.Array,
    before: jax.Array,
    end: jax.Array,
    last: jax.Array,
    h: jax.Array,
) -> Intervals:
    """The law of equations and stops; as `_contact_law`."""
    inverse_mass = jnp.sum(lines.rows * moved, axis=1)
    # Of equations that nothing can violate, as those of a planar loop out of its plane, too.
    floor = 1e-6 * jnp.max(inverse_mass, initial=0)
    inverse_mass = jnp.where(inverse_mass > floor, inverse_mass, jnp.where(floor > 0, floor, 1))
    coming, arriving = product(lines.rows, before), product(lines.rows, end)
    softness, target = _softness(inverse_mass, lines, h)
    bounces, target = _rebound(lines, target, coming, arriving, h)
    softness = jnp.where(bounces, _STIFF * inverse_mass, softness)
    # An equation holds at the end of the step, but for what changes in its impulse.
    always, dry = lines.lower < 0, _DRY * inverse_mass
    softness = jnp.where(always, dry, softness)
    target = jnp.where(always, dry * last[:, 0] - lines.gaps / h, target)
    return Intervals(lines.lower, jnp.full_like(lines.lower, jnp.inf), softness, target)


def _softness(
    inverse_mass: jax.Array, of: Points | Lines, h: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """R_n of gaps, and the target rates at which they close."""
    near = inverse_mass / (4 * math.pi**2)
    soft = 1 / (h * of.stiffness * (h + of.relaxation))
    gives = soft > near
    tau = jnp.where(gives, of.relaxation, h / math.pi)
    rate = -of.gaps / (h + jnp.where(of.gaps > 0, 0, tau))
    return jnp.where(gives, soft, near), rate


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
