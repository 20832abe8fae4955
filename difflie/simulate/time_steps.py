"""One time step of a loop: the inputs, the step of the method, and what is monitored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .. import native
from ..forces.actuators.acting import (
    Memories,
    applied,
    first_memories,
    joint_force_of,
    next_memories,
    remember,
    torques,
)
from ..forces.compliance import Compliance
from ..forces.effort_limits import limited
from ..forces.passive import passive
from ..formulations import Formulation, Inputs, constant
from ..integrators.method import chosen
from ..quantities.reductions import Reduction
from ..system.internal_states import tree_with_states
from ..system.kinematic_tree import Tree
from ..system.user_functions import called
from ..system.validation import real_values
from .events import Event, come
from .inputs import Held, Sampled, inputs_at
from .resolution import Resolution, resolution, worse
from .step_status import StepStatus


class LoopState(NamedTuple):
    """The state that a time loop carries from step to step.

    step (): the number of steps taken. inner: the state of the method. watch: what was monitored.
    memories: those of the actuators, None without any. command: commands and torques, None without
    control and memories. held: the memory and the command of a sampled control, None without one.
    reduced: what each reduction keeps.
    """

    step: jax.Array
    inner: Any
    watch: StepStatus
    memories: Memories | None
    command: Command | None
    held: Held | None
    reduced: dict[str, Any]


class TimeSteps(NamedTuple):
    """The steps of a loop, as an adjoint runs them, of the length dt () in s.

    functions: the control and the wrench, None for a sampled input, whose row is passed instead.
    sampled: a control with a clock of its own, None for any other. reductions: of quantities along
    the motion, by name.
    """

    formulation: Formulation
    functions: tuple[Any, Any]
    events: tuple[Event, ...]
    dt: jax.Array
    sampled: Sampled | None
    reductions: Mapping[str, Reduction]

    @property
    def tree(self) -> Tree:
        """That of the machine."""
        return self.formulation.tree

    @property
    def small(self) -> bool:
        """Whether a loop is compiled as one native call."""
        return self.formulation.small

    def start(
        self, q0: jax.Array, v0: jax.Array, rows: Any, save_every: int
    ) -> tuple[LoopState, Any]:
        """The initial state, and what is recorded of it; rows (m, k, ...) of inputs."""

        def begun(q0: jax.Array, v0: jax.Array, row: Any) -> tuple[LoopState, Any]:
            state = self._begun(q0, v0, row, save_every)
            return state, self.recorded(state.inner)

        begun = native.kernel(begun) if self.small else begun
        return begun(q0, v0, jax.tree.map(lambda a: a[0, 0], rows))

    def _begun(self, q0: jax.Array, v0: jax.Array, row: Any, save_every: int) -> LoopState:
        tree, t0 = self.tree, jnp.zeros_like(self.dt)
        # A start typed with few digits is put on the manifold, to which stepping back returns.
        q = tree.topology.manifold.retract(q0, jnp.zeros_like(v0))
        acting, memories, held = inputs_at(self.functions, row, t0, self.dt), None, None
        if self.sampled is not None:
            held = self.sampled.begin(t0, q, v0)
            acting = acting._replace(control=constant(held.u))
        controlled = acting.control is not None
        if self.reductions or remember(tree.system):
            acting = acting.begun(tree.system, t0, q, v0)
        if acting.start is not None and remember(tree.system):
            memories = first_memories(tree, acting.start, q, v0, self.dt)
        acting = acting.remembering(tree.system, memories)
        inner = self.formulation.init(t0, q, v0, self.dt, acting)
        happened = come(self.events, t0, q0, v0) if self.events else None
        zero, command = jnp.zeros(tree.system.nu, v0.dtype), None
        if controlled or memories is not None:
            none = zero if controlled else None, None if memories is None else zero
            command = Command(none, none, save_every)
        watch = StepStatus.start(tree, q0, happened)
        reduced = {}
        if self.reductions:
            u = acting.start if controlled else None
            torques = None if memories is None else self.delivered(tree, acting, q, v0)
            values = self.measured(t0, q, v0, u, torques, self.formulation.states(inner))
            reduced = {name: r.begin(t0, values[name]) for name, r in self.reductions.items()}
        return LoopState(jnp.zeros((), jnp.int32), inner, watch, memories, command, held, reduced)

    def resolution(
        self, start: Sequence[jax.Array], end: Sequence[jax.Array], u: jax.Array | None
    ) -> Resolution:
        """What the steps resolve at the start, under the command u (nu,) there, None for none.

        start, end: q (nq,) and v (nv,). Of a machine with contacts and stops, which carry nothing
        before they are closed, at the end as well, whichever is worse.
        """
        explicit, inputs = self.formulation.explicit, Inputs(None)
        if u is not None:
            inputs = Inputs(constant(jax.lax.stop_gradient(u)))
        tree, force = explicit or self.tree, passive
        if self.sampled is None and not remember(tree.system) and explicit is None:
            force = lambda tree, q, v: inputs.acting(tree, 0.0, q, v)[0]  # noqa: E731

        def looked(q: jax.Array, v: jax.Array) -> Resolution:
            return resolution(tree, q, v, u, force, self.dt, self.formulation.method)

        if not any(isinstance(part, Compliance) for part in tree.system.couplings):
            return looked(*start)
        both = [jnp.stack(each) for each in zip(start, end, strict=True)]
        return worse(jax.lax.map(lambda state: looked(*state), tuple(both)))

    def inputs_over_step(
        self, k: jax.Array, row: Any, inner: Any, held: Held | None
    ) -> tuple[jax.Array, Inputs, Held | None]:
        """The start of step k () in s, the inputs in it, and what is held over it.

        inner: the state of the method at its start; held: what was held before.
        """
        t = k.astype(self.dt.dtype) * self.dt
        inputs = inputs_at(self.functions, row, t, self.dt)
        sampled = self.sampled
        if sampled is None or held is None:
            return t, inputs, None
        every = jnp.maximum(jnp.round(1 / (sampled.rate * self.dt)), 1).astype(k.dtype)
        # Without the remainder operation, which native code lacks. The start has been sampled.
        due = (jax.lax.div(k, every) * every == k) & (k > 0)
        here = t, *self.formulation.read(inner)
        after: Held = jax.lax.cond(
            due, lambda h: sampled.sample(h.memory, *here), lambda h: h, held
        )
        return t, inputs._replace(control=constant(after.u)), after

    def step(self, state: LoopState, row: Any) -> LoopState:
        """The state after one more step."""
        k, inner, watch, memories, command, before, reduced = state
        formulation, tree, system = self.formulation, self.tree, self.tree.system
        t, acting, held = self.inputs_over_step(k, row, inner, before)
        here = t, *formulation.read(inner)
        controlled = acting.control is not None
        acting = acting.begun(system, *here).remembering(system, memories)
        acting = acting.held(*here) if formulation.reads_once else acting
        torques = self.delivered(formulation.holding(inner), acting, *here[1:])
        commanded = acting.start if controlled else None, None if memories is None else torques
        if command is not None:
            command = command.after(k, commanded, watch.going(k))
        if self.reductions:
            moment = *here, *commanded, formulation.states(inner)
            reduced = chosen(watch.going(k), self.reduced(reduced, *moment), reduced)

        after, solved = formulation.step(t, inner, self.dt, acting)

        k = k + 1
        q, v = formulation.read(after)
        happened = come(self.events, k.astype(t.dtype) * self.dt, q, v) if self.events else None
        effort = None if torques is None else limited(system, joint_force_of(system, torques))
        watch = watch.after(tree, k, q, v, effort, solved, happened)
        going = watch.going(k)
        if memories is not None and acting.start is not None:
            memories = chosen(
                going, next_memories(tree, acting.start, *here[1:], memories), memories
            )
        held = chosen(going, held, before)
        inner = chosen(going, after, inner)
        return LoopState(k, inner, watch, memories, command, held, reduced)

    @staticmethod
    def delivered(tree: Tree, begun: Inputs, q: jax.Array, v: jax.Array) -> jax.Array | None:
        """The torques (nu,) at the state at which a step begins; None if nothing acts."""
        return None if begun.start is None else torques(tree, begun.start, q, v, begun.memories)

    def measured(
        self,
        t: jax.Array,
        q: jax.Array,
        v: jax.Array,
        u: jax.Array | None,
        torques: jax.Array | None,
        z: jax.Array | None,
    ) -> dict[str, jax.Array]:
        """The quantity of each reduction at a moment; torques (nu,): of actuators with a memory.

        z (nz,): the internal states.
        """
        system = applied(tree_with_states(self.tree, z).carried(), torques)
        return {
            name: real_values(
                f"{system.name}: what the quantity of the reduction {name!r} returns",
                called(r.quantity, system, q, v, u, t),
                q.dtype,
            )
            for name, r in self.reductions.items()
        }

    def reduced(self, kept: dict[str, Any], t: jax.Array, *moment: Any) -> dict[str, Any]:
        """What the reductions keep after a moment: t () in s, and the rest as in `measured`."""
        values = self.measured(t, *moment)
        return {name: r.after(kept[name], t, values[name]) for name, r in self.reductions.items()}

    def back(self, state: LoopState, row: Any) -> LoopState:
        """The state before the last step, for machines without memories."""
        k, inner, watch, _, command, _, _ = state
        t, acting, _ = self.inputs_over_step(k - 1, row, inner, None)
        before = self.formulation.step(t + self.dt, inner, -self.dt, acting)[0]
        # A step that was not made is not undone.
        before = chosen(watch.going(k), before, inner) if self.events else before
        # As at the start: earlier commands have no effect on what follows.
        nothing = jax.tree.map(jnp.zeros_like, command)
        return LoopState(k - 1, before, watch, None, nothing, None, {})

    def read(self, state: LoopState) -> Any:
        """The saved part: (q, v), what is recorded, (commands, torques)."""
        command = state.command
        commanded = (None, None) if command is None else command.saved
        return self.formulation.read(state.inner), self.recorded(state.inner), commanded

    def recorded(self, inner: Any) -> tuple[Any, jax.Array | None]:
        """What is saved besides q and v: the method's own variables, and internal states (nz,)."""
        return self.formulation.record(inner), self.formulation.states(inner)


class Command(eqx.Module):
    """The commands u (nu,) and the torques (nu,) of the steps that the trajectory saves.

    latest: both at the start of the last step; commands are None without control, torques where no
    actuator has a memory. saved: those of the last step that began at a saved time, which one in
    `every` does.
    """

    latest: tuple[Any, Any]
    saved: tuple[Any, Any]
    every: int = eqx.field(static=True)

    def after(self, step: jax.Array, latest: tuple[Any, Any], going: jax.Array) -> Command:
        """Updated with the command and torques of step number `step` (), if it was made ()."""
        # Without the remainder operation, which native code lacks.
        begins = jax.lax.div(step, jnp.int32(self.every)) * self.every == step
        saves = going if self.every == 1 else going & begins
        saved = chosen(saves, latest, self.saved)
        return Command(chosen(going, latest, self.latest), saved, self.every)
