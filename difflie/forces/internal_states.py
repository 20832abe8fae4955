"""Forces and actuators with internal states: dz/dt = f(z, q, v, u).

A force at a joint, with the protocol of `stateful.py`:

    class Maxwell(StatefulJointForce):
        \"\"\"A spring and a damper in series: z is the stretch of the spring, in rad.\"\"\"

        joint: str = eqx.field(static=True)
        stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad", positive=True))
        damping: jax.Array = eqx.field(converter=number(unit="N m s/rad", positive=True))
        states = (("stretch", "rad"),)

        def law(self, x, v, z):
            effort = -self.stiffness * z[0]
            return effort, jnp.stack([v + effort / self.damping])

The laws of all elements are independent of each other at a given motion, so that an equation
z = base + h f(z) falls into one small system of equations for each element.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..solvers.corrections import Corrections
from ..solvers.linear import inverse, plain_product
from ..solvers.root import root
from ..spatial import Force, Motion, Transform
from ..system.internal_states import Owner, owners, tree_with_states
from ..system.kinematic_tree import Tree
from ..system.system import Joints, System
from ..system.topology import Topology
from ..system.user_functions import called
from ..system.validation import format_value, real_values
from .actuators.acting import lengths, output_rates
from .at_joint import JointCoupling, JointForce
from .coupling import Coupling, at_points
from .points import point_motions
from .stateful import Stateful

Rates = Callable[[jax.Array], jax.Array]


class StatefulJointForce(Stateful, JointForce):
    """A `JointForce` with internal states; its law is `law` in place of `effort`.

    joint: the name of one with one degree of freedom. name: as of `Coupling`; z0: as of `Stateful`.
    """

    @abc.abstractmethod
    def law(
        self, x: Float[Array, ""], v: Float[Array, ""], z: Float[Array, " k"]
    ) -> tuple[Float[Array, ""], Float[Array, " k"]]:
        """The effort () in N m or N, and dz/dt (k,), at the coordinate () and its rate ()."""

    def effort(self, x: Float[Array, ""], v: Float[Array, ""]) -> Float[Array, ""]:
        return self.law(x, v, self.return_map(x, self.z))[0]

    def _wrong_law(self) -> list[str]:
        at = jax.ShapeDtypeStruct((), jnp.result_type(float))
        return wrong_rates(self, at, at) or super()._wrong_law()


class StatefulJointCoupling(Stateful, JointCoupling):
    """A `JointCoupling` with internal states; its law is `law` in place of `efforts`.

    name: as of `Coupling`; z0: as of `Stateful`.
    """

    @abc.abstractmethod
    def law(
        self,
        t: Topology,
        joints: Joints,
        x: Float[Array, " n_dofs"],
        rate: Float[Array, " n_dofs"],
        z: Float[Array, " k"],
    ) -> tuple[Float[Array, " n_dofs"], Float[Array, " k"]]:
        """The efforts (n_dofs,) as of `JointCoupling.efforts`, and dz/dt (k,)."""

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        return self.law(t, joints, x, rate, self.return_map(t, joints, x, self.z))[0]


class StatefulCoupling(Stateful, Coupling):
    """A `Coupling` with internal states; its law is `law` in place of `wrenches`.

    name: as of `Coupling`; z0: as of `Stateful`.
    """

    @abc.abstractmethod
    def law(
        self, frames: Transform, twists: Motion, z: Float[Array, " k"]
    ) -> tuple[Force, Float[Array, " k"]]:
        """The wrenches (n,) as of `Coupling.wrenches`, and dz/dt (k,)."""

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        return self.law(frames, twists, self.return_map(frames, self.z))[0]

    def _wrong_law(self) -> list[str]:
        return wrong_rates(self, *at_points(len(self.path.bodies))) or super()._wrong_law()


def wrong_rates(element: Any, *motion: Any) -> list[str]:
    """Why the law of a part with states returns no pair of a force and dz/dt; empty if it does."""
    z = jax.ShapeDtypeStruct((len(element.states),), jnp.result_type(float))
    output = jax.eval_shape(lambda *given: element.law(*given), *motion, z)
    if not isinstance(output, tuple) or len(output) != 2:
        return [f"its law returns {format_value(output)}; let law return the force and dz/dt"]
    if getattr(output[1], "shape", None) != z.shape:
        return [
            f"its dz/dt is {format_value(output[1])}; let law return one number for each of its "
            f"{len(element.states)} states, of shape {z.shape}"
        ]
    return []


class Moved(NamedTuple):
    """What the laws of parts with internal states get of a motion.

    actuators: the lengths of all actuators and their rates; joints: the coordinates and rates of
    the dofs (n_dofs,) each; points: the frames and twists of each `StatefulCoupling`, in its order.
    """

    actuators: tuple[Sequence[jax.Array], Sequence[jax.Array]]
    joints: tuple[jax.Array, jax.Array]
    points: Sequence[Any]

    @staticmethod
    def at(tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Moved:
        """Those at q (nq,) and v (nv,)."""
        there = owners(tree.system)
        acting = any(owner.group == "actuators" for owner in there)
        paths = [o.element.path for o in there if isinstance(o.element, StatefulCoupling)]
        return Moved(
            lengths(tree, q, v) if acting else ([], []),
            (tree.coordinates(q), tree.rates(v)),
            point_motions(tree, paths, q, v) if paths else [],
        )


def state_rates(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    moved: Moved | None = None,
) -> Float[Array, " nz"]:
    """dz/dt (nz,) at the states that the tree's system holds, under a command (nu,).

    moved: what the laws get at q (nq,) and v (nv,), where it is known already.
    """
    moved = Moved.at(tree, q, v) if moved is None else moved
    return jnp.concatenate([q[:0], *_rates(tree, command, moved, q.dtype)])


def integrated_rates(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    moved: Moved | None = None,
) -> Float[Array, " nz"]:
    """`state_rates` (nz,), but zero for states with a return map."""
    moved = Moved.at(tree, q, v) if moved is None else moved
    pairs = zip(owners(tree.system), _rates(tree, command, moved, q.dtype), strict=True)
    return jnp.concatenate([q[:0], *(0 * r if _maps(o) else r for o, r in pairs)])


def _rates(tree: Tree, command: jax.Array, moved: Moved, dtype: Any) -> list[jax.Array]:
    """dz/dt (k,) of each element with internal states."""
    rates, (x, rate), points = [], moved.joints, iter(moved.points)
    acting = iter(output_rates(tree.system, command, *moved.actuators))
    states = iter(_returned(tree, moved))
    for owner, z in zip(owners(tree.system), states, strict=True):
        element = owner.element
        if owner.group == "actuators":
            own = next(acting)
        elif isinstance(element, StatefulJointForce):
            k = element.dof(tree.topology)
            own = called(element.law, x[k], rate[k], z)[1]
        elif isinstance(element, StatefulJointCoupling):
            own = element.law(tree.topology, tree.system.joints, x, rate, z)[1]
        else:
            own = called(element.law, *next(points), z)[1]
        rates.append(real_values(f"dz/dt of {element}", own, dtype))
    return rates


def returned_states(
    tree: Tree, q: Float[Array, " nq"], z: Float[Array, " nz"]
) -> Float[Array, " nz"]:
    """The states (nz,) at q (nq,) from those before, z (nz,): what return maps make of them."""
    if not any(_maps(owner) for owner in owners(tree.system)):
        return z
    tree = tree_with_states(tree, z)
    moved = Moved.at(tree, q, jnp.zeros(tree.topology.nv, q.dtype))
    return jnp.concatenate(_returned(tree, moved))


def _returned(tree: Tree, moved: Moved) -> list[jax.Array]:
    """The states (k,) of each element at a motion, from those that it holds."""
    found, x, points = [], moved.joints[0], iter(moved.points)
    for owner in owners(tree.system):
        element, there = owner.element, ()
        if owner.group == "actuators":
            there = (moved.actuators[0][owner.index],)
        elif isinstance(element, StatefulJointForce):
            there = (x[element.dof(tree.topology)],)
        elif isinstance(element, StatefulJointCoupling):
            there = tree.topology, tree.system.joints, x
        else:
            there = next(points)[:1]
        own = called(element.return_map, *there, element.z) if _maps(owner) else element.z
        found.append(real_values(f"the states that {element} returns", own, x.dtype))
    return found


def _maps(owner: Owner) -> bool:
    return owner.element.has_return_map


def implicit_states(
    system: System, rates: Rates, base: Float[Array, " nz"], h: Float[Array, ""]
) -> tuple[Float[Array, " nz"], Float[Array, ""]]:
    """The states z (nz,) with z = base + h rates(z), and whether they were found ().

    rates(z) (nz,): dz/dt, of each element by its own states, zero of those with a return map.
    Differentiable by the implicit function theorem.
    """
    if all(_maps(owner) for owner in owners(system)):
        return base, jnp.array(True)

    def residual(z: jax.Array) -> jax.Array:
        return z - base - h * rates(z)

    def correction(z: jax.Array, b: jax.Array) -> jax.Array:
        now, change = _linearized(system, rates, z, h)
        return -change(z - base - h * now - b)

    return root(residual, base, Corrections(correction, exact=True))


def linearly_implicit_change(
    system: System, rates: Rates, z: Float[Array, " nz"], h: Float[Array, ""]
) -> Float[Array, " nz"]:
    """What one step of Newton's method from z (nz,) for `implicit_states` from there adds to z.

    Twice this is the step 2 h of a method of Rosenbrock's of order 2: A-stable, and the midpoint
    rule where the rates are linear in z. Hairer and Wanner 1996, section IV.7.
    """
    if all(_maps(owner) for owner in owners(system)):
        return jnp.zeros_like(z)
    now, change = _linearized(system, rates, z, h)
    return change(h * now)


def implicit_change(
    system: System,
    rates: Rates,
    z: Float[Array, " nz"],
    h: Float[Array, ""],
    b: Float[Array, " nz"],
) -> Float[Array, " nz"]:
    """The change dz (nz,) with dz = b + h (d rates / dz) dz at states z (nz,).

    rates as in `implicit_states`.
    """
    return _linearized(system, rates, z, h)[1](b)


def _linearized(
    system: System, rates: Rates, z: Float[Array, " nz"], h: Float[Array, ""]
) -> tuple[Float[Array, " nz"], Rates]:
    """The rates (nz,) at z (nz,), and the change dz (nz,) of `implicit_change` for b (nz,)."""
    if all(len(owner.element.states) == 1 for owner in owners(system)):
        now, slopes = jax.jvp(rates, (z,), (jnp.ones_like(z),))
        # A reciprocal is the same for all b, and has a derivative without another division.
        share = 1 / (1 - h * slopes)
        return now, lambda b: b * share
    index, real = _blocks(system)
    along = [jnp.asarray(d, z.dtype) for d in _directions(index, real)]
    pairs = [jax.jvp(rates, (z,), (direction,)) for direction in along]
    blocks = jnp.stack([column[index] for _, column in pairs], axis=-1)
    kept = real[:, :, None] & real[:, None, :]
    matrices = jnp.eye(index.shape[1], dtype=z.dtype) - h * jnp.where(kept, blocks, 0)

    def solve(matrix: jax.Array, b: jax.Array) -> jax.Array:
        return plain_product(inverse(matrix, len(b)), b)

    def change(b: jax.Array) -> jax.Array:
        solved = jax.vmap(solve)(matrices, jnp.where(real, b[index], 0))
        return jnp.zeros_like(z).at[index[real]].set(solved[real])

    return pairs[0][0], change


def _blocks(system: System) -> tuple[np.ndarray, np.ndarray]:
    """The entries of z of each element (n, k), k the most that one has, and which are real."""
    sizes = [len(owner.element.states) for owner in owners(system)]
    place = np.arange(max(sizes))
    starts, sizes = np.cumsum([0, *sizes[:-1]]), np.array(sizes)
    real = place < sizes[:, None]
    return np.where(real, starts[:, None] + place, starts[:, None]), real


def _directions(index: np.ndarray, real: np.ndarray) -> list[np.ndarray]:
    """Directions (nz,) along the first state of every element, then the second, and so on."""
    n = int(real.sum())
    return [
        np.isin(np.arange(n), column[exists])
        for column, exists in zip(index.T, real.T, strict=True)
    ]


def rates_at(
    tree: Tree, command: Float[Array, " nu"], q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Rates:
    """`integrated_rates` of z (nz,) at a motion q (nq,), v (nv,) and under a command (nu,)."""
    moved = Moved.at(tree, q, v)
    return lambda z: integrated_rates(tree_with_states(tree, z), command, q, v, moved)
