"""Internal states z in a step of a method that integrates q and v only.

Methods of a `VectorField` integrate (q, v, z) as one point, see `rates.py`. For all others dz/dt =
f(z, q, v, u) is integrated beside the motion, to order 2. Where the forces of a step are those at
one moment of it, z there solves an implicit equation within the step, so that states which stiffly
follow the motion are solved with it:

    in the middle, (q_m, v_m):   z_m = z + h/2 f(z_m, q_m, v_m),    z' = 2 z_m - z
    at the end, (q', v'):        z'  = z + h/2 (f(z, q, v) + f(z', q', v'))

the implicit midpoint and the trapezoidal rule. For other methods the step is split (Strang 1968):
half a step of z at the motion (q, v), by the midpoint rule with linearised rates, so that nothing
is searched for, a step of the motion at these states, and half a step of z at (q', v'). States with
a return map stay at z in all this, where f is zero for them, and a step ends with z' =
return_map(q', z).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces.internal_states import linearly_implicit_change, rates_at, returned_states
from ..integrators.method import Scalar, chosen
from ..system.internal_states import states_of, tree_with_states
from ..system.kinematic_tree import Tree
from .formulation import Formulation, Inputs, StatesInStep


class WithStates(NamedTuple):
    """The state of a method, and the internal states z (nz,)."""

    inner: Any
    z: jax.Array


class BesideTheMotion(Formulation):
    """A formulation of the motion, and internal states that are integrated beside it."""

    motion: Formulation

    @staticmethod
    def around(motion: Formulation) -> Formulation:
        """The formulation of a system with internal states; the same for one without."""
        if not motion.tree.system.nz or motion.carries_states:
            return motion
        return BesideTheMotion(motion.tree, motion.method, motion)

    @property
    def reads_once(self) -> bool:
        return self.motion.reads_once

    @property
    def explicit(self) -> Tree | None:
        return self.motion.explicit

    def in_closed_form(self) -> Formulation:
        return self

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> Any:
        return self.motion.problem(t, h, inputs)

    def init(
        self,
        t: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        h: Scalar,
        inputs: Inputs,
    ) -> WithStates:
        return WithStates(self.motion.init(t, q, v, h, inputs), states_of(self.tree.system))

    def step(
        self, t: jax.Array, state: WithStates, h: Scalar, inputs: Inputs
    ) -> tuple[WithStates, Any]:
        h = jnp.asarray(h, state.z.dtype)
        made = self._split if self.motion.forces_at is None else self._coupled
        (inner, z), solved = made(t, state, h, inputs)
        z = returned_states(self.tree, self.motion.read(inner)[0], z)
        # Whether there was nothing to solve is known before.
        return WithStates(inner, z if solved is True else chosen(solved, z, state.z)), solved

    def _split(self, t: jax.Array, state: WithStates, h: jax.Array, inputs: Inputs) -> Any:
        z = self._half(t, state.inner, state.z, h, inputs)
        motion = replace(self.motion, tree=tree_with_states(self.tree, z))
        inner, moved = motion.step(t, state.inner, h, inputs)
        return (inner, self._half(t + h, inner, z, h, inputs)), moved

    def _half(
        self, t: jax.Array, inner: Any, z: jax.Array, h: jax.Array, inputs: Inputs
    ) -> jax.Array:
        """The states after half a step at a motion that stays."""
        q, v = self.motion.read(inner)
        command = inputs.heard(self.tree.system, t, q, v)
        return z + 2 * _to_middle(self.tree, command, q, v, z, h / 4)

    def _coupled(self, t: jax.Array, state: WithStates, h: jax.Array, inputs: Inputs) -> Any:
        before, z = state
        q, v = self.motion.read(before)
        at = self.motion.forces_at
        assert at is not None
        # What is left over to the start: nothing of the midpoint rule, half of the trapezoidal one.
        begins = rates_at(self.tree, inputs.heard(self.tree.system, t, q, v), q, v)(z)
        within = StatesInStep(z + (at - 0.5) * h * begins, h / 2)
        inner, moved = self.motion.step(t, before, h, inputs._replace(states=within))
        moment = self.motion.moment((q, v), self.motion.read(inner), h)
        there, found = within.solved(self.tree, inputs, t + at * h, *moment)
        return (inner, z + (there - z) / at), moved & found

    def read(self, state: WithStates) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        return self.motion.read(state.inner)

    def states(self, state: WithStates) -> Float[Array, " nz"]:
        return state.z

    def resumed(self, state: WithStates) -> Formulation:
        return self.around(replace(self.motion, tree=self.holding(state)))

    def record(self, state: WithStates) -> Any:
        return self.motion.record(state.inner)

    def impacts(self, state: WithStates) -> jax.Array | None:
        return self.motion.impacts(state.inner)

    def crowded(self, state: WithStates) -> tuple[jax.Array, int] | None:
        return self.motion.crowded(state.inner)

    @property
    def small(self) -> bool:
        return self.motion.small


@jax.jit  # traced once for both halves of a step
def _to_middle(
    tree: Tree,
    command: Float[Array, " nu"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    z: Float[Array, " nz"],
    h: Float[Array, ""],
) -> Float[Array, " nz"]:
    """What z (nz,) changes in a time h () s by its linearised rates there."""
    return linearly_implicit_change(tree.system, rates_at(tree, command, q, v), z, h)
