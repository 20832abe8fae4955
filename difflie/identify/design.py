"""Design of motions whose torques identify the parameters best, within the limits.

Each joint moves as a sum of H harmonics of the duration T (Swevers et al. 1997),

    q(t) = c + sum_l a_l sin(l w t) + b_l cos(l w t),    w = 2 pi / T,

with sum l a_l = 0 and sum l^2 b_l = 0, so that velocity and acceleration are zero at its start and
end: the motion can be repeated, and its noise averaged. A motion beyond the limits of a joint is
scaled down as a whole until it is just within them. Between m samples a sum of H harmonics exceeds
its samples by at most the factor 1 / cos(pi H / m) (Ehlich and Zeller 1964), so the limits hold at
all times.

The Fisher information of the parameters x is J^T J, with J the derivative of the torque error in
its standard deviations. The design is D-optimal: it maximises the product of the eigenvalues, in
the space that torques can identify.

Limits are those of joints, their rates and torques, and in space (`Bounded`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from ..forces.actuators.acting import dof_commands
from ..parameters import Parameters
from ..quantities.bounded import Bounded
from ..sensors import Encoder
from ..solvers.linear import product
from ..system.shown import subsample
from ..system.system import System
from .elimination import column_sizes, triangle
from .inverse_dynamics import InverseDynamics
from .problem import Deviation, deviations
from .recordings import Recording
from .torque_rows import own_dofs


def at_rest(harmonics: int) -> NDArray:
    """The waves (1 + 2 H, 2 H - 1) that begin without velocity and acceleration, orthonormal."""
    order = np.arange(1, harmonics + 1)
    still = np.zeros((2, 1 + 2 * harmonics))
    still[0, 1::2], still[1, 2::2] = order, order**2
    return np.linalg.svd(still)[2][2:].T


def harmonics_at(t: NDArray, duration: float, harmonics: int) -> NDArray:
    """q, v and a (3, n, 1 + 2 H) at times t (n,) of 1, sin(w t), cos(w t), sin(2 w t), ..."""
    speed = 2 * np.pi / duration * np.arange(1, harmonics + 1)
    s, c = np.sin(np.outer(t, speed)), np.cos(np.outer(t, speed))
    pairs = [(s, c), (speed * c, -speed * s), (-(speed**2) * s, -(speed**2) * c)]
    return np.stack(
        [
            np.column_stack((np.full(len(t), float(k == 0)), np.stack(p, 2).reshape(len(t), -1)))
            for k, p in enumerate(pairs)
        ]
    )


class Limits(eqx.Module):
    """For each joint the centre and half range of position, and the largest v, a and tau (nv,)."""

    center: Any
    half: Any
    velocity: Any
    acceleration: Any
    effort: Any

    @staticmethod
    def of(system: System, position: Any, velocity: Any, acceleration: Any, effort: Any) -> Limits:
        t, joints, dofs = system.topology, system.joints, own_dofs(system)

        def given(name: str, value: Any, default: Any) -> NDArray:
            array = np.asarray(default)[dofs] if value is None else np.asarray(value, float)
            if array.shape not in ((), (system.nv,)):
                raise ValueError(
                    f"{system.name}: the limits of {name} have shape {array.shape}; give a number, "
                    f"or {system.nv}"
                )
            return np.broadcast_to(array, system.nv)

        def check(good: NDArray, said: str) -> None:
            for k in np.flatnonzero(~good)[:1]:
                raise ValueError(f"{system.name}: joint {t.velocity_labels[k][0]!r}{said}")

        lower, upper = (None, None) if position is None else position
        lower = given("position", lower, joints.lower)
        upper = given("position", upper, joints.upper)
        check(lower < upper, " has no room between its position limits")
        bounded = np.isfinite(lower)
        check(bounded == np.isfinite(upper), " has one position limit; give both, or none")
        speed = given("velocity", velocity, joints.max_velocity)
        hasty = given("acceleration", acceleration, np.full(t.n_dofs, np.inf))
        least, most = map(np.asarray, joints.effort_limits)
        strong = given("effort", effort, np.minimum(-least, most))
        for name, values in (("velocity", speed), ("acceleration", hasty), ("effort", strong)):
            check(values > 0, f": its largest {name} must be positive")
        check(np.isfinite(speed), " has no velocity limit; give `velocity`")
        center = np.where(
            bounded, (np.where(bounded, lower, 0) + np.where(bounded, upper, 0)) / 2, 0
        )
        return Limits(center, np.where(bounded, (upper - lower) / 2, np.inf), speed, hasty, strong)


# The size of violations of one-sided bounds near zero, in the quantity's unit.
_SMALL = 0.1


def check_limit(limit: Bounded, system: System, q: Any) -> None:
    """Raises ValueError for bounds between which nothing can stay, for none, and for bounds of
    another shape than the quantity has at q (nq,)."""
    name, low, high = limit.quantity.name, np.asarray(limit.lower), np.asarray(limit.upper)
    if np.isnan(low).any() or np.isnan(high).any() or not np.all(low < high):
        raise ValueError(
            f"{name} cannot stay between {low} and {high}; give a lower bound below the upper one"
        )
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        raise ValueError(f"{name} has no bound; give `lower` or `upper`")
    shape = np.shape(_value(limit, system, q, np.zeros(system.nv)))
    for bound in (low, high):
        if bound.shape not in ((), shape):
            raise ValueError(
                f"{name} has the shape {shape}, and a bound {bound.shape}; give one number, or one "
                "for each entry"
            )


def load(
    limit: Bounded, system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " k"]:
    """How near the bounds a quantity is: 1 at a bound, more beyond, less between.

    Deviations from the middle in half the room, or from a single bound in its own size.
    """
    x = _value(limit, system, q, v)
    lower, upper = (jnp.broadcast_to(b, x.shape) for b in (limit.lower, limit.upper))
    both = jnp.isfinite(lower) & jnp.isfinite(upper)
    half = jnp.where(both, (upper - lower) / 2, 1)
    middle = jnp.where(both, (upper + lower) / 2, 0)
    bound = jnp.where(jnp.isfinite(lower), lower, jnp.where(jnp.isfinite(upper), upper, 0))
    beyond = jnp.where(jnp.isfinite(lower), bound - x, x - bound)
    one = 1 + beyond / jnp.maximum(jnp.abs(bound), _SMALL)
    one = jnp.where(jnp.isfinite(lower) | jnp.isfinite(upper), one, 0)
    return jnp.where(both, jnp.abs(x - middle) / half, one).ravel()


def _value(limit: Bounded, system: System, q: Any, v: Any) -> Float[Array, "*k"]:
    state = jnp.asarray(q, system.dtype), jnp.asarray(v, system.dtype)
    return jnp.asarray(limit.quantity(system, *state, None, jnp.zeros(())))


# Samples per harmonic, at which limits are checked.
_FINE = 32
# Random motions, the best of which starts the search.
_DRAWS = 16
# The part of the limits of effort and space from which on the penalty grows.
_NEAR = 0.98
# At so many times between two samples bounds in space are checked.
_BETWEEN = 10


@dataclasses.dataclass(frozen=True)
class Excitation:
    """A motion designed for measurements.

    duration (), in s: its period. recording: t (n,), q (n, nq), v, a (n, nv), without a torque;
    after one more step it repeats. waves (nv, 1 + 2 H): c, then a_l and b_l of each harmonic l.
    information: log det of the Fisher information of x, over the `rank` identifiable directions;
    before: that of the random motion from which the search started. Half their difference, over the
    rank, is the logarithm of the factor by which standard errors fell, in the geometric mean.
    """

    recording: Recording
    duration: float
    waves: NDArray
    information: float
    before: float
    rank: int

    def __repr__(self) -> str:
        """Some lines, with the largest rates and accelerations of each joint."""
        recording = self.recording
        gain = np.exp((self.information - self.before) / (2 * max(self.rank, 1)))
        largest = [np.abs(np.asarray(x)).max(axis=0) for x in (recording.v, recording.a)]
        rows = [
            (str(k), f"{v:.4g}", f"{a:.4g}") for k, (v, a) in enumerate(zip(*largest, strict=True))
        ]
        return "\n".join(
            [
                f"Excitation {recording.name!r}: {self.duration:.6g} s, {len(recording.t)} "
                f"samples, {self.waves.shape[1] // 2} harmonics",
                f"log det of the information {self.information:.6g} over {self.rank} identifiable "
                f"directions; standard errors fell by {gain:.4g} in the search",
                *subsample(
                    ("velocity", "largest rate", "largest acceleration"), rows, "velocities"
                ),
            ]
        )

    def at(self, t: ArrayLike) -> Recording:
        """The motion at other times t (n,) in s, increasing, of any number of periods."""
        t = np.asarray(t, float)
        q, v, a = harmonics_at(t, self.duration, self.waves.shape[1] // 2) @ self.waves.T
        return Recording(self.recording.name, t, q, v, a)


def excitation(
    parameters: Parameters,
    *,
    duration: float,
    harmonics: int = 5,
    position: tuple[Any, Any] | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    space: Sequence[Bounded] = (),
    deviation: Deviation = 1.0,
    samples: int = 100,
    steps: int = 300,
    seed: int = 0,
) -> Excitation:
    """The periodic motion within the limits whose torques identify the free parameters best.

    duration: of a period in s. harmonics: 2 or more. position: (lower, upper) in rad or m, numbers
    or (nv,); velocity, acceleration, effort, each a number or (nv,): largest absolute values in
    rad/s or m/s, rad/s^2 or m/s^2, and N m or N. None takes the limits of the joints, and no limit
    for accelerations; limits of mimic joints are ignored. Efforts are those of the machine at
    parameters.start, at the samples. space: quantities of the machine that stay between bounds,
    such as the place of the hand in its workspace; they are kept at the samples, and checked at ten
    times as many. deviation: of the torques, in N m or N. samples: rows of the recording. steps: of
    Adam; seed: of the random motions from which it starts.

    Raises ValueError for limits that leave no room or are missing, joints without plain
    coordinates, closed loops, parameters on which no torque depends, too few samples, and where no
    motion was found within the limits of effort and space. Swevers et al. 1997.
    """
    system = parameters.system
    _check(system, duration, harmonics, samples, steps)
    limits = Limits.of(system, position, velocity, acceleration, effort)
    for keep in space:
        check_limit(keep, system, limits.center)
    rest = at_rest(harmonics)
    fine, coarse = (
        harmonics_at(np.arange(n) * (duration / n), duration, harmonics) @ rest
        for n in (_FINE * harmonics, samples)
    )
    t = np.arange(samples) * (duration / samples)
    given = limits, t, fine, coarse, deviations("tau", deviation, system.nv), tuple(space)
    design = _Design(parameters, *jax.tree.map(lambda x: jnp.asarray(x, system.dtype), given))

    # Equal velocity amplitudes of all harmonics, and most of the position range.
    size = np.concatenate(([0.3], np.repeat(1 / np.arange(1.0, harmonics + 1), 2)))
    waves = size * np.random.default_rng(seed).normal(size=(_DRAWS, system.nv, len(size)))
    draws = np.concatenate((waves @ rest, np.ones((_DRAWS, system.nv, 1))), axis=2)
    first, before, whitened, scale = _best_draw(design, jnp.asarray(draws, system.dtype))
    found, gain = _searched(design, jnp.asarray(whitened), first, steps)
    if not np.isfinite(gain):
        raise ValueError(
            f"{system.name}: no motion was found within the limits of effort and space; lower "
            "those of velocity and acceleration, or move the positions to where there is more room"
        )
    waves = np.asarray(design.within(found)) @ rest.T
    waves[:, 0] += limits.center
    unit = 2 * float(np.sum(np.log(scale)))
    q, v, a = harmonics_at(t, duration, harmonics) @ waves.T
    found = Excitation(
        recording=Recording(f"excitation of {system.name}", t, q, v, a),
        duration=duration,
        waves=waves,
        information=float(gain) + unit,
        before=before + unit,
        rank=len(scale),
    )
    _check_space(design, found, samples)
    return found


class _Design(eqx.Module):
    """The parameterised motions: fine (3, m, k) and coarse (3, n, k) map shapes to q, v and a.

    t (n,): the times of the coarse ones. The numbers (nv, k + 1) of a motion are, for each joint,
    the shape and, through a sigmoid, the part of its range that the motion uses.
    """

    parameters: Parameters
    limits: Limits
    t: jax.Array
    fine: jax.Array
    coarse: jax.Array
    deviation: jax.Array
    space: tuple[Bounded, ...]

    def within(self, numbers: jax.Array) -> jax.Array:
        """The motion (nv, k) about the centres of the position ranges, within the limits."""
        m, k = self.fine.shape[1:]
        shape, limits = numbers[:, :-1], self.limits
        largest = jnp.abs(product(self.fine, shape.T)).max(axis=1) / math.cos(
            math.pi * (k + 1) / 2 / m
        )
        room = jnp.stack((limits.half, limits.velocity, limits.acceleration))
        part = jax.nn.sigmoid(numbers[:, -1]) / (largest / room).max(axis=0)
        return part[:, None] * shape

    def slopes(self, numbers: jax.Array, basis: jax.Array) -> tuple[jax.Array, jax.Array]:
        """J basis (k, r), and efforts and quantities in space (n, .) relative to their limits."""
        q, v, a = product(self.coarse, self.within(numbers).T)
        parameters, system = self.parameters, self.parameters.system
        silent = InverseDynamics(
            t=self.t,
            first=jnp.zeros(len(v), int),
            q=q + self.limits.center,
            v=v,
            a=a,
            tau=jnp.zeros((len(v), system.nu), v.dtype),
            there=jnp.ones(v.shape, bool),
            deviation=self.deviation,
            kernel=None,
        )
        efforts = silent.torques(system)
        problem = silent.commanded(system, efforts)

        def residual(x: jax.Array) -> jax.Array:
            torques = problem.residual(parameters.system_at(x), problem.own)
            return jnp.concatenate((torques, parameters.residual(x)))

        _, slope = jax.linearize(residual, parameters.start)
        loads = self.crowding(q + self.limits.center, v)
        loads = jnp.concatenate((jnp.abs(efforts) / self.limits.effort, loads), axis=1)
        return jax.vmap(slope, (1,), 1)(basis), loads

    def crowding(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """How near the bounds in space all quantities are (n, .), along q and v (n, nv)."""
        system = self.parameters.system
        parts = [jax.vmap(lambda q, v, k=k: load(k, system, q, v))(q, v) for k in self.space]
        return jnp.concatenate((jnp.zeros((len(q), 0), q.dtype), *parts), axis=1)


def _check_space(design: _Design, found: Excitation, samples: int) -> None:
    """Raises ValueError for a motion that leaves its bounds between the samples."""
    t = np.arange(_BETWEEN * samples) * (found.duration / (_BETWEEN * samples))
    motion = found.at(t)
    state = (jnp.asarray(x, design.fine.dtype) for x in (motion.q, motion.v))
    worst = np.asarray(eqx.filter_jit(_Design.crowding)(design, *state)).max(axis=1, initial=0)
    if worst.max() > 1:
        raise ValueError(
            f"{design.parameters.system.name}: between samples, at {t[np.argmax(worst)]:.4g} s, "
            "the motion leaves the bounds in space; take more samples, or narrower bounds"
        )


def _penalty(loads: Any) -> Any:
    return 1e3 * jnp.maximum(loads - _NEAR, 0) ** 2


def _best_draw(design: _Design, draws: jax.Array) -> tuple[jax.Array, float, NDArray, NDArray]:
    """The best of random motions, its log det, and the directions (n, r) in which that is taken.

    In these, orthonormal ones over the scales (r,), the information of all draws together is the
    identity. Raises ValueError where torques tell nothing, or less than there are directions.
    """
    slopes, loads = (np.asarray(x) for x in _all_slopes(design, draws))
    basis, scale = _identifiable(slopes)
    system, samples = design.parameters.system, len(design.t)
    if not len(scale):
        raise ValueError(f"{system.name}: no torque depends on the parameters that are free")
    if slopes.shape[1] < len(scale):
        raise ValueError(
            f"{system.name}: {samples} samples of {system.nv} torques cannot tell {len(scale)} "
            "parameters; take more"
        )
    seen = slopes @ (basis / scale)
    gains = np.linalg.slogdet(np.swapaxes(seen, 1, 2) @ seen)[1]
    best = int(np.argmax(gains - _penalty(loads).sum(axis=(1, 2))))
    return draws[best], float(gains[best]), basis / scale, scale


@eqx.filter_jit
def _all_slopes(design: _Design, draws: jax.Array) -> tuple[jax.Array, jax.Array]:
    basis = jnp.eye(design.parameters.start.size, dtype=draws.dtype)
    return jax.lax.map(lambda numbers: design.slopes(numbers, basis), draws)


def _identifiable(slopes: NDArray) -> tuple[NDArray, NDArray]:
    """The identifiable directions of x from J (draws, k, n): orthonormal (n, r), and scales (r,).

    As in `information`, the independent part of a column of length 1 must exceed rounding.
    """
    r = triangle(slopes.reshape(-1, slopes.shape[-1]))
    sizes = column_sizes(r)
    _, s, vt = np.linalg.svd(r / sizes, full_matrices=False)
    kept = s > np.sqrt(np.finfo(slopes.dtype).eps) * s.max(initial=0)
    basis = np.linalg.qr(np.where(np.isfinite(sizes), sizes, 0)[:, None] * vt[kept].T).Q
    _, s, vt = np.linalg.svd(r @ basis, full_matrices=False)
    return basis @ vt.T, s


@eqx.filter_jit
def _searched(
    design: _Design, basis: jax.Array, first: jax.Array, steps: int
) -> tuple[jax.Array, jax.Array]:
    """The numbers of the best motion within the effort limits, and its log det."""
    optimizer = optax.adam(optax.cosine_decay_schedule(0.05, steps))

    def loss(numbers: jax.Array) -> tuple[jax.Array, tuple]:
        slopes, loads = design.slopes(numbers, basis)
        gain = jnp.linalg.slogdet(product(slopes.T, slopes))[1]
        return jnp.sum(_penalty(loads)) - gain, (gain, loads.max())

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        numbers, state, best, most = carry
        (_, (gain, load)), slope = jax.value_and_grad(loss, has_aux=True)(numbers)
        better = (load <= 1) & (gain > most)
        best, most = jnp.where(better, numbers, best), jnp.where(better, gain, most)
        change, state = optimizer.update(slope, state)
        return (optax.apply_updates(numbers, change), state, best, most), None

    carry = first, optimizer.init(first), first, jnp.asarray(-jnp.inf, first.dtype)
    (_, _, best, most), _ = jax.lax.scan(step, carry, length=steps)
    return best, most


def _check(system: System, duration: float, harmonics: int, samples: int, steps: int) -> None:
    """Raises ValueError for machines and numbers for which no motion is designed."""
    alone = all(len(at) == 1 for at in dof_commands(system)) and system.nu == system.nv
    encoders = any(isinstance(sensor, Encoder) for sensor in system.sensors)
    for wrong, fault in (
        (
            system.nq != system.nv or not system.nv,
            "motions are designed for joints with plain coordinates; fix the others",
        ),
        (encoders, "it has encoders; design its motion without them, in joint coordinates"),
        (
            system.actuators and not alone,
            "motions are designed for machines with one actuator at each joint; give it these, or "
            "none",
        ),
        (system.constraints, "it has closed loops, whose joints do not move freely"),
        (
            not 0 < duration < np.inf,
            f"the duration is {duration} s; it must be positive and finite",
        ),
        (harmonics < 2, f"{harmonics} harmonics cannot begin at rest; take 2 or more"),
        (
            samples <= 2 * harmonics,
            f"{samples} samples miss some of {harmonics} harmonics; take more",
        ),
        (steps < 1, f"the search has {steps} steps; give it one or more"),
    ):
        if wrong:
            raise ValueError(f"{system.name}: {fault}")
