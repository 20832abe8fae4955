"""Whether an explicit method resolves damping, friction, stiffness and states with its step.

Near a state at rest a system moves as M ddq + D dq + K q = 0, D with the slope of dry friction,
friction / friction_velocity. A step h of an explicit method multiplies what decays by R(-h d), with
d an eigenvalue of M^-1 D, and what swings by R(i h w), w^2 one of M^-1 K. Beyond the limits of the
method (`Method.stability`) these grow, or chatter, however smooth the motion is.

An internal state z that follows the motion is a spring for what is much faster than z itself: it
adds -(dF/dz) (df/dv) to K, with the force F of its part and f = dz/dt. Methods that integrate z
explicitly, too, must resolve its own rate, an eigenvalue of df/dz, where the motion starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from ..constraints import Projection
from ..constraints.equations import equations
from ..constraints.unilateral import bilateral
from ..dynamics.crba import crba
from ..forces.internal_states import state_rates
from ..forces.passive import passive
from ..formulations import formulated
from ..integrators import Method
from ..integrators.method import FieldMethod
from ..solvers.linear import factor_from_tips, minimum_norm, product
from ..system.internal_states import states_of, tree_with_states
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.topology import Topology
from ..system.traverse import in_one
from ..system.validation import warn


class Resolution(eqx.Module):
    """The numbers of a start, and the limits of the method for them.

    damping (): h times the largest eigenvalue of M^-1 D; stiffness (): h times the root of that of
    M^-1 K; rate (): h times the size of the largest eigenvalue of df/dz, 0 without internal states.
    damped, stiff (): the dof to which each belongs most; fast (): the state. limits: of the method.
    states (nz,): their names.
    """

    damping: jax.Array
    stiffness: jax.Array
    rate: jax.Array
    damped: jax.Array
    stiff: jax.Array
    fast: jax.Array
    dt: jax.Array
    limits: tuple[float, float] = eqx.field(static=True)
    method: str = eqx.field(static=True)
    topology: Topology = eqx.field(static=True)
    states: tuple[str, ...] = eqx.field(static=True)

    @property
    def good(self) -> Bool[Array, "*batch"]:
        """Whether all numbers are within the limits, a boolean scalar."""
        decays, swings = self.limits
        resolved = ~(self.damping > decays) & ~(self.stiffness > swings)
        return resolved & ~(self.rate > decays)

    def messages(self) -> list[str]:
        """One sentence for each number beyond its limit. Concrete numbers, of one run, only."""
        t, names = self.topology, self.states
        joints = [f"joint {t.joints[b]!r}" for b in t.dof_body]
        states = [f"internal state {name!r}" for name in names]
        kinds = (
            ("damping and friction", self.damping, joints, self.damped, self.limits[0]),
            ("stiffness", self.stiffness, joints, self.stiff, self.limits[1]),
            ("rate", self.rate, states, self.fast, self.limits[0]),
        )
        return [
            f"{owners[int(place)]}: {self.method} does not resolve its {what} "
            f"with steps of {float(self.dt):.3g} s ({float(number):.3g}, and the method holds up "
            f"to {limit:.3g}); take steps below {float(self.dt) * limit / float(number):.2g} s, or "
            "an implicit method such as GeneralizedAlpha"
            for what, number, owners, place, limit in kinds
            if number > limit
        ]


def may_exceed(method: Method, system: System) -> bool:
    """Whether a method has limits, and a system anything that could exceed them."""
    if method.stability is None or not system.nv:
        return False
    joints = system.joints
    numbers = joints.damping, joints.friction, joints.stiffness
    acts = any(isinstance(a, Tracer) or np.any(np.asarray(a) != 0) for a in numbers)
    return acts or bool(system.couplings or system.actuators)


def resolution(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    u: Float[Array, " nu"] | None,
    force: Callable[[Tree, jax.Array, jax.Array], jax.Array],
    dt: Float[Array, ""],
    method: Method,
) -> Resolution:
    """The numbers at q (nq,) at rest, for a step dt (s), of a force(tree, q, v) (nv,).

    v, u: the velocity and the command, None for zero, at which the rates of internal states are.
    Nothing is differentiated.
    """
    tree, q, v, u, dt = jax.lax.stop_gradient((tree, q, v, u, dt))
    still, limits = jnp.zeros(tree.topology.nv, q.dtype), method.stability
    assert limits is not None

    def moved(xi: jax.Array, v: jax.Array, z: jax.Array) -> jax.Array:
        there = tree_with_states(tree, z)
        return force(there, there.topology.manifold.retract(q, xi), v)

    def matrices(tree: Tree, q: jax.Array) -> tuple[jax.Array, ...]:
        at = still, still, states_of(tree.system)
        slopes = jax.jacfwd(moved, (0, 1, 2) if tree.system.nz else (0, 1))(*at)
        return *jax.lax.stop_gradient(slopes), _mobility(tree, q)

    by_q, by_v, *by_z, inverse = in_one(tree.topology, matrices)(tree, q)
    rate, fast = jnp.zeros_like(dt), jnp.zeros((), int)
    if tree.system.nz:
        command = jnp.zeros(tree.system.nu, q.dtype) if u is None else u
        follows = jax.jacfwd(lambda v: state_rates(tree, command, q, v))(still)
        by_q = by_q + product(by_z[0], jax.lax.stop_gradient(follows))
        if isinstance(method, FieldMethod) and not method.partitioned:
            rate, fast = _fastest(_slopes_of_states(tree, q, v, command))
    damping, damped = _largest(-product(inverse, by_v))
    square, stiff = _largest(-product(inverse, by_q))
    return Resolution(
        *(dt * damping, dt * jnp.sqrt(square), dt * rate, damped, stiff, fast, dt),
        *(limits, method.name, tree.topology),
        tuple(name for name, _ in tree.system.state_labels),
    )


def worse(of: Resolution) -> Resolution:
    """The larger numbers of two states (2,), each with its dof."""
    first, second = (jax.tree.map(lambda a, k=k: a[k], of) for k in (0, 1))
    rubs, swings = second.damping > first.damping, second.stiffness > first.stiffness
    return eqx.tree_at(
        lambda r: (r.damping, r.damped, r.stiffness, r.stiff),
        first,
        (
            jnp.where(rubs, second.damping, first.damping),
            jnp.where(rubs, second.damped, first.damped),
            jnp.where(swings, second.stiffness, first.stiffness),
            jnp.where(swings, second.stiff, first.stiff),
        ),
    )


def _slopes_of_states(
    tree: Tree, q: jax.Array, v: jax.Array, u: jax.Array
) -> Float[Array, "nz nz"]:
    """df/dz (nz, nz) of the rates f = dz/dt of internal states."""
    z = states_of(tree.system)
    slopes = jax.jacfwd(lambda z: state_rates(tree_with_states(tree, z), u, q, v))(z)
    return jax.lax.stop_gradient(slopes)


def _mobility(tree: Tree, q: jax.Array) -> jax.Array:
    """M^-1 (nv, nv), of what the constraints leave free."""
    M, kept = crba(tree, q), bilateral(tree)

    def halved(given: jax.Array) -> jax.Array:
        return jax.scipy.linalg.solve_triangular(U, given)

    U = factor_from_tips(M)
    unit = halved(jnp.eye(len(M), dtype=M.dtype))
    inverse = product(unit.T, unit)
    if not kept.constraints:
        return inverse
    half = halved(equations(kept, q).jacobian().T)
    Y = product(unit.T, half)
    solve = minimum_norm(product(half.T, half), half)
    return inverse - product(Y, jax.vmap(solve, 1, 1)(Y.T))


def _largest(matrix: Float[Array, "n n"]) -> tuple[Float[Array, ""], jax.Array]:
    """The largest eigenvalue () of a matrix with real ones, 0 if all are negative, and its row ().

    Products of the matrix with itself leave what belongs to the eigenvalue of largest size.
    """
    scale = jnp.max(jnp.abs(matrix), initial=0)
    power = first = matrix / jnp.where(scale > 0, scale, 1)
    for _ in range(4):
        power = product(power, power)
        power = power / jnp.maximum(jnp.max(jnp.abs(power), initial=0), jnp.finfo(power.dtype).tiny)
    sizes = jnp.diag(power)
    total = jnp.sum(sizes)
    value = jnp.sum(power * first.T) / jnp.where(total > 0, total, 1)
    return jnp.maximum(value, 0) * scale, jnp.argmax(jnp.abs(sizes))


def _fastest(matrix: Float[Array, "n n"]) -> tuple[Float[Array, ""], jax.Array]:
    """The size () of the largest eigenvalue of a matrix, and the row () to which it belongs most.

    The n-th root of the size of its n-th power, for n = 64 (Gelfand 1941).
    """
    scale = jnp.max(jnp.abs(matrix))
    power, logarithm = matrix / jnp.where(scale > 0, scale, 1), jnp.zeros_like(scale)
    for _ in range(6):
        power = product(power, power)
        size = jnp.maximum(jnp.max(jnp.abs(power)), jnp.finfo(power.dtype).tiny)
        power, logarithm = power / size, 2 * logarithm + jnp.log(size)
    return scale * jnp.exp(logarithm / 64), jnp.argmax(jnp.abs(jnp.diag(power)))


# Starts that were looked at by themselves.
_SEEN: set[tuple] = set()


def look_once(
    caller: str, method: Method, system: System, q: jax.Array, v: jax.Array, dt: jax.Array
) -> None:
    """Warns of what a step at q (nq,), v (nv,) does not resolve, for concrete arguments.

    Once for each machine, method and step, for callers that step very often.
    """
    if any(isinstance(a, Tracer) for a in jax.tree.leaves((system, q, v, dt))) or dt.ndim:
        return
    key = system.topology, method, float(dt)
    if key not in _SEEN and may_exceed(method, system):
        _SEEN.add(key)
        warn_of(_alone(Tree.of(system), q, v, dt, method), caller)


@eqx.filter_jit
def _alone(tree: Tree, q: jax.Array, v: jax.Array, dt: jax.Array, method: Method) -> Resolution:
    explicit = formulated(tree, method, Projection()).explicit
    return resolution(explicit or tree, q, v, None, passive, dt, method)


def warn_of(made: Resolution | None, caller: str) -> None:
    """Warns of numbers beyond their limits, where they are concrete."""
    if made is None or any(isinstance(a, Tracer) for a in jax.tree.leaves(made)):
        return
    for sentence in _sentences(made):
        warn(f"{caller}: {sentence}")


def _sentences(made: Resolution) -> Sequence[str]:
    """Those of the first of a batch that has any."""
    # On the host, since operations of jax on single numbers take long.
    good = np.asarray(jax.tree.map(np.asarray, made).good)
    if good.all():
        return ()
    place = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(good)))[: good.ndim]
    return jax.tree.map(lambda a: a[place] if np.ndim(a) else a, made).messages()
