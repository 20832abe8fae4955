"""What a formulation is: a system as one family of methods sees it."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.stabilisation import Stabilisation
from ..forces.actuators.acting import Memories, generalised, torques
from ..forces.passive import passive
from ..integrators.method import Scalar
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import shown

Input = Callable[[Any, jax.Array, jax.Array], Any] | None


class Inputs(NamedTuple):
    """What acts besides gravity and the system's own springs, damping and friction.

    control(t, q, v) (nu,) and wrench(t, q, v) (nb, 6), in body frames; None where nothing does.
    memories: those of the actuators at the start of the time step; None where none has any.
    """

    control: Input = None
    wrench: Input = None
    memories: Memories | None = None

    def acting(
        self,
        tree: Tree,
        t: Scalar,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
    ) -> tuple[Float[Array, " nv"], Float[Array, "nb 6"] | None]:
        """The generalised force (nv,), that of the system included, and the wrenches (nb, 6)."""
        tau = passive(tree, q, v)
        effort = self.effort(tree, t, q, v)
        if effort is not None:
            tau = tau + effort
        return tau, None if self.wrench is None else self.wrench(t, q, v)

    def held(self, t: jax.Array, q: jax.Array, v: jax.Array) -> Inputs:
        """What they are at one moment, evaluated once, whenever it is asked for."""
        control, wrench = (
            None if f is None else _constant(f(t, q, v)) for f in (self.control, self.wrench)
        )
        return Inputs(control, wrench, self.memories)

    def remembering(
        self,
        system: System,
        memories: Memories | None,
        t: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
    ) -> Inputs:
        """For a time step that starts with these memories.

        What is commanded to actuators with a memory is held over it.
        """
        if memories is None:
            return self
        start, holds = self.command(system, t, q, v), np.array([m is not None for m in memories])

        def partly(t: Scalar, q: jax.Array, v: jax.Array) -> jax.Array:
            return jnp.where(holds, start, self.command(system, t, q, v))

        control = _constant(start) if holds.all() else partly
        return Inputs(control, self.wrench, memories)

    def command(
        self, system: System, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " nu"]:
        """What is commanded (nu,), zero without control."""
        return jnp.zeros(system.nu, v.dtype) if self.control is None else self.control(t, q, v)

    def torques(
        self,
        tree: Tree,
        t: Scalar,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
    ) -> Float[Array, " nu"] | None:
        """What the actuators give (nu,) in N m or N; None where there is nothing to act."""
        if self.control is None and not tree.system.actuators:
            return None
        command = self.command(tree.system, t, q, v)
        return torques(tree, command, q, v, self.memories)

    def effort(
        self,
        tree: Tree,
        t: Scalar,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
    ) -> Float[Array, " nv"] | None:
        """The generalised force (nv,) of what the actuators give; None likewise."""
        torques = self.torques(tree, t, q, v)
        return None if torques is None else generalised(tree, torques, q, v)


def _constant(value: jax.Array) -> Input:
    return lambda t, q, v: value


class Formulation(eqx.Module):
    """A system as the problem of one family of methods.

    equations: the class of the problems that it makes. supports: which of "constraints", "contacts"
    and "joint friction" a system may have.
    """

    equations: ClassVar[type]
    supports: ClassVar[frozenset[str]] = frozenset()

    tree: Tree
    method: Any = eqx.field(static=True)

    @classmethod
    def of(cls, tree: Tree, method: Any, stabilisation: Stabilisation) -> Formulation:
        """That of a system for a method."""
        return cls(tree, method)

    @classmethod
    def check(cls, method: Any, system: System) -> None:
        """Raises ValueError for a system that the variables of a method do not describe.

        TypeError for a method that lacks what is asked of those of its equations.
        """

    @staticmethod
    def time_symmetric(method: Any) -> bool:
        """Whether a step -h leads from the end of a step to its start, up to rounding."""
        return method.time_symmetric

    @property
    def reads_once(self) -> bool:
        """Whether a step reads its inputs where it begins, and nowhere else."""
        return False

    @abc.abstractmethod
    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> Any:
        """What the method integrates, in a step h (s) from the time t (s)."""

    def init(
        self,
        t: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        h: Scalar,
        inputs: Inputs,
    ) -> Any:
        """The state of the method at the configuration q (nq,) and velocity v (nv,).

        With the inputs of the first step.
        """
        state = self.method.init(self.problem(t, h, inputs), t, (q, v), h)
        if _shapes(getattr(state, "y", None)) != _shapes((q, v)):
            raise TypeError(
                f"{self.method.name}: init returns no state of a point (q, v) of shapes {q.shape} "
                f"and {v.shape} in {q.dtype}; let it return State(y) with the y that it gets"
            )
        return state

    def step(self, t: jax.Array, state: Any, h: Scalar, inputs: Inputs) -> tuple[Any, Any]:
        """The state at t + h (s), and whether the equations of the step were solved ()."""
        made = self.method.step(self.problem(t, h, inputs), t, state, h)
        if type(made) is not tuple or len(made) != 2:
            raise TypeError(
                f"{self.method.name}: step returns {shown(made)}; let it return two things: the "
                "state, and whether it was solved, which is True where there is nothing to solve"
            )
        after, solved = made
        if _shapes(after) != _shapes(state):
            raise TypeError(
                f"{self.method.name}: step makes {_words(after)} of the state {_words(state)}; let "
                "it return what init returns, in the same shapes and precision"
            )
        if solved is not True and _shapes(solved) != _shapes(np.True_):
            raise TypeError(
                f"{self.method.name}: step says that it was solved by {shown(solved)}; let it be "
                "one boolean, of shape ()"
            )
        return after, solved

    def read(self, state: Any) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """The configuration q (nq,) and the velocity v (nv,) of a state."""
        return state.y

    def record(self, state: Any) -> Any:
        """What is saved of a state besides, a pytree; None where q and v say everything."""
        return None


def _shapes(state: Any) -> Any:
    """The structure of a state, and the shapes and types of its arrays."""
    leaves, structure = jax.tree.flatten(state)
    return structure, [(jnp.shape(a), jnp.result_type(a)) for a in leaves]


def _words(state: Any) -> str:
    return str(jax.tree.map(lambda a: f"{jnp.result_type(a)}{list(jnp.shape(a))}", state))
