"""The protocol of formulations: a system as one family of methods needs it."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.stabilisation import Stabilisation
from ..dynamics.forward import acceleration
from ..dynamics.rnea import rnea
from ..forces.actuators.acting import Memories, acting_commands, generalised, torques
from ..forces.internal_states import implicit_states, rates_at
from ..forces.passive import passive
from ..integrators.method import Method, Scalar, State
from ..system.internal_states import tree_with_states
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import format_value

Input = Callable[[Any, jax.Array, jax.Array], Any] | None


class Known(NamedTuple):
    """An input that is known over a time step: a function at(t) of the time alone."""

    at: Callable[[Any], Any]

    def __call__(self, t: Any, q: jax.Array, v: jax.Array) -> Any:
        return self.at(t)


class StatesInStep(NamedTuple):
    """The internal states z of a step, as a function of its motion: z = base + h f(z, q, v, u).

    base (nz,); h () in s. See `internal_states.py`.
    """

    base: jax.Array
    h: jax.Array

    def solved(
        self, tree: Tree, inputs: Inputs, t: Any, q: jax.Array, v: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """z (nz,) at the time t (s) of the step and a motion, and whether they were found ()."""
        rates = rates_at(tree, inputs.heard(tree.system, t, q, v), q, v)
        return implicit_states(tree.system, rates, self.base, self.h)


class Inputs(NamedTuple):
    """What acts besides gravity and the system's own springs, damping and friction.

    control(t, q, v) (nu,) and wrench(t, q, v) (nb, 6), in body frames; None where nothing does.
    memories: those of the actuators at the start of the time step; None where none has any. start:
    the command (nu,) where the step begins, if it is known already. states: the internal states in
    the step, where they follow the motion; None where the system holds them.
    """

    control: Input = None
    wrench: Input = None
    memories: Memories | None = None
    start: jax.Array | None = None
    states: StatesInStep | None = None

    def settled(
        self, tree: Tree, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Tree, Inputs]:
        """The tree whose system holds its internal states at this motion, and inputs for that."""
        if self.states is None:
            return tree, self
        z, _ = self.states.solved(tree, self, t, q, v)
        return tree_with_states(tree, z), self._replace(states=None)

    def acting(
        self,
        tree: Tree,
        t: Scalar,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
    ) -> tuple[Float[Array, " nv"], Float[Array, "nb 6"] | None]:
        """The generalised force (nv,), including the system's own, and the wrenches (nb, 6)."""
        tree, inputs = self.settled(tree, t, q, v)
        tau = passive(tree, q, v)
        effort = inputs.effort(tree, t, q, v)
        if effort is not None:
            tau = tau + effort
        return tau, None if self.wrench is None else self.wrench(t, q, v)

    def accelerating(
        self,
        tree: Tree,
        t: Scalar,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        forward: Callable[..., jax.Array] = acceleration,
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """The acceleration (nv,) by the algorithm forward(tree, q, v, tau, wrench).

        Besides all that acts but gravity (nv,), M a + bias.
        """
        tau, wrench = self.acting(tree, t, q, v)
        a = forward(tree, q, v, tau, wrench)
        return a, tau if wrench is None else rnea(tree, q, v, a)

    def begun(self, system: System, t: Scalar, q: jax.Array, v: jax.Array) -> Inputs:
        """The inputs of a step from this state, whose command is evaluated here, and only once.

        The record of commands, the actuators at the start and the first stage share it.
        """
        if self.control is None and not system.actuators:
            return self
        return self._replace(start=self.command(system, t, q, v))

    def remembering(self, system: System, memories: Memories | None) -> Inputs:
        """The inputs for a time step, `begun`, that starts with these memories.

        The command of actuators with a memory is held constant over the step.
        """
        if memories is None or self.start is None:
            return self
        start, holds = self.start, np.array([m is not None for m in memories])

        def partly(t: Scalar, q: jax.Array, v: jax.Array) -> jax.Array:
            return jnp.where(holds, start, self.command(system, t, q, v))

        control = constant(start) if holds.all() else partly
        return self._replace(control=control, memories=memories)

    def held(self, t: jax.Array, q: jax.Array, v: jax.Array) -> Inputs:
        """The inputs held constant at their values for the state at which the step begins."""
        control, wrench = self.control, self.wrench
        if control is not None:
            control = constant(control(t, q, v) if self.start is None else self.start)
        wrench = None if wrench is None else constant(wrench(t, q, v))
        return self._replace(control=control, wrench=wrench)

    def in_stage(self, at_start: jax.Array | bool) -> Inputs:
        """The inputs in a stage of a method; at_start (): whether it is where the step begins."""
        control, start = self.control, self.start
        if start is None or at_start is False or control is None or isinstance(control, Known):
            return self

        def command(t: Scalar, q: jax.Array, v: jax.Array) -> jax.Array:
            return jax.lax.cond(at_start, lambda: start, lambda: control(t, q, v))

        return self._replace(control=command)

    def command(
        self, system: System, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " nu"]:
        """The command (nu,); zero without a control."""
        return jnp.zeros(system.nu, v.dtype) if self.control is None else self.control(t, q, v)

    def heard(
        self, system: System, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " nu"]:
        """The command (nu,) as the laws of actuators get it, those with delays later."""
        return acting_commands(system, self.command(system, t, q, v), self.memories)[0]

    def torques(
        self,
        tree: Tree,
        t: Scalar,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
    ) -> Float[Array, " nu"] | None:
        """The torques (nu,) that the actuators deliver, in N m or N; None if nothing acts."""
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
        """The generalised force (nv,) of the delivered torques; None if nothing acts."""
        torques = self.torques(tree, t, q, v)
        return None if torques is None else generalised(tree, torques, q, v)


def constant(value: jax.Array) -> Known:
    """The input with this value at all times."""
    return Known(lambda t: value)


class Formulation(eqx.Module):
    """A system as the problem of one family of methods.

    equations: the class of the problems that it makes. supports: which of "constraints", "contacts"
    and "joint friction" a system may have. forces_at: the part of a step after which its forces are
    evaluated, once, at `moment`; None where it is not so.
    """

    equations: ClassVar[type]
    supports: ClassVar[frozenset[str]] = frozenset()
    forces_at: ClassVar[float | None] = None

    tree: Tree
    method: Any = eqx.field(static=True)

    @classmethod
    def of(cls, tree: Tree, method: Method, stabilisation: Stabilisation) -> Formulation:
        """The formulation of a system for a method."""
        return cls(tree, method)

    @classmethod
    def check(cls, method: Method, system: System) -> None:
        """Raises ValueError for a system that the variables of a method cannot describe.

        Raises TypeError for a method that lacks what its equations need.
        """

    @staticmethod
    def time_symmetric(method: Method) -> bool:
        """Whether a step -h leads from the end of a step back to its start, up to rounding."""
        return method.time_symmetric

    @property
    def reads_once(self) -> bool:
        """Whether a step evaluates its inputs only once, at its start."""
        return False

    def in_closed_form(self) -> Formulation:
        """The same, differentiated in closed form for many directions at once, where it can be.

        It then has no derivative by the numbers of the machine.
        """
        return self

    @abc.abstractmethod
    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> Any:
        """The problem that the method integrates in a step h (s) from the time t (s)."""

    def init(
        self,
        t: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        h: Scalar,
        inputs: Inputs,
    ) -> Any:
        """The state of the method at the configuration q (nq,) and velocity v (nv,).

        inputs: those of the first step.
        """
        y = self.start(q, v)
        state = self.method.init(self.problem(t, h, inputs), t, y, h)
        if _shapes(getattr(state, "y", None)) != _shapes(y):
            raise TypeError(
                f"{self.method.name}: init returns no state of a point (q, v) of shapes {q.shape} "
                f"and {v.shape} in {q.dtype}; let it return State(y) with the y that it gets"
            )
        return state

    def start(self, q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        """The point that the method begins with: (q, v), and what it integrates beside them."""
        return q, v

    def step(self, t: jax.Array, state: Any, h: Scalar, inputs: Inputs) -> tuple[Any, Any]:
        """The state at t + h (s), and whether the equations of the step were solved ()."""
        made = self.method.step(self.problem(t, h, inputs), t, state, h)
        if type(made) is not tuple or len(made) != 2:
            raise TypeError(
                f"{self.method.name}: step returns {format_value(made)}; let it return two things: "
                "the state, and whether it was solved, which is True where there is nothing to "
                "solve"
            )
        after, solved = made
        if _shapes(after) != _shapes(state):
            raise TypeError(
                f"{self.method.name}: step makes {_words(after)} of the state {_words(state)}; let "
                "it return what init returns, in the same shapes and precision"
            )
        if solved is not True and _shapes(solved) != _shapes(np.True_):
            raise TypeError(
                f"{self.method.name}: step says that it was solved by {format_value(solved)}; let "
                "it be one boolean, of shape ()"
            )
        return after, solved

    def read(self, state: Any) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """The configuration q (nq,) and the velocity v (nv,) of a state."""
        return state.y

    def record(self, state: Any) -> Any:
        """What is saved besides q and v, a pytree; None if nothing is."""
        return None

    def impacts(self, state: Any) -> jax.Array | None:
        """How many impacts there were at times that are not located (); None without any."""
        return None

    def crowded(self, state: Any) -> tuple[jax.Array, int] | None:
        """In how many steps surfaces overlapped at points that were left out (), and how many act.

        None where all points act.
        """
        return None

    @property
    def small(self) -> bool:
        """Whether a step is short enough for one native call."""
        return self.tree.topology.unrolled

    @property
    def explicit(self) -> Tree | None:
        """The system with those of its forces alone that limit the step; None where all do."""
        return None

    @property
    def carries_states(self) -> bool:
        """Whether the method integrates the internal states of a system itself, beside q and v."""
        return False

    def states(self, state: Any) -> Float[Array, " nz"] | None:
        """The internal states (nz,) of a state; None for a system without any."""
        return None

    def moment(self, start: Any, end: Any, h: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The motion (q, v) at which the forces of a step h (s) between two motions are."""
        return end

    def holding(self, state: Any) -> Tree:
        """The tree of the system that holds the internal states of a state."""
        return tree_with_states(self.tree, self.states(state))

    def resumed(self, state: Any) -> Formulation:
        """The formulation that begins with the internal states of a state."""
        return replace(self, tree=self.holding(state))


def _shapes(state: Any) -> Any:
    """The structure of a state, and the shapes and types of its arrays."""
    leaves, structure = jax.tree.flatten(state)
    return structure, [(jnp.shape(a), jnp.result_type(a)) for a in leaves]


def _words(state: Any) -> str:
    return str(jax.tree.map(lambda a: f"{jnp.result_type(a)}{list(jnp.shape(a))}", state))


class RestFormulation(Formulation):
    """The state (q, v), both (0,), of a machine without a joint that moves; any method."""

    supports: ClassVar[frozenset[str]] = frozenset(("constraints", "contacts", "joint friction"))

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> None:
        return None

    def init(self, t: jax.Array, q: jax.Array, v: jax.Array, h: Scalar, inputs: Inputs) -> State:
        return State((q, v))

    def step(self, t: jax.Array, state: State, h: Scalar, inputs: Inputs) -> tuple[State, Any]:
        return state, True
