"""Monitoring: failures, limits and events, recorded in the time loop."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.redundancy import Margin
from ..system.kinematic_tree import Tree
from ..system.system import System
from .result import NEVER, Ending, Reconstruction, Result


class StepStatus(eqx.Module):
    """The first step at which something happened, entry by entry.

    After a failed step nothing counts, since the state stays as it was before. nonfinite, unsolved,
    singular (); position, velocity, effort (n_dofs,): as in `Result`, 2^31 - 1 for never. margin:
    the distance to singularity, None without constraints. stopped (): the first step at whose end
    an event has come, None without events.
    """

    nonfinite: jax.Array
    unsolved: jax.Array
    singular: jax.Array
    position: jax.Array
    velocity: jax.Array
    effort: jax.Array
    margin: Margin | None
    stopped: jax.Array | None = None

    @staticmethod
    def start(tree: Tree, q: Float[Array, " nq"], come: jax.Array | None = None) -> StepStatus:
        """At the start, the configuration q (nq,); come (): whether an event has come there."""
        once = jnp.asarray(NEVER, jnp.int32)
        limit = jnp.full(tree.topology.n_dofs, NEVER, jnp.int32)
        margin = Margin.start(tree, q)
        stopped = None if come is None else jnp.where(come, 0, once)
        return StepStatus(once, once, once, limit, limit, limit, margin, stopped)

    @property
    def failed(self) -> jax.Array:
        """The first step that led to a state that is not finite or was not solved ()."""
        return jnp.minimum(self.nonfinite, self.unsolved)

    @property
    def last(self) -> jax.Array:
        """The first step that was not made, or not completed ()."""
        return self.failed if self.stopped is None else jnp.minimum(self.failed, self.stopped)

    @property
    def came(self) -> jax.Array:
        """Whether an event ended the motion ()."""
        return jnp.zeros((), bool) if self.stopped is None else self.stopped < self.failed

    def going(self, step: jax.Array) -> jax.Array:
        """Whether the step with this number was made ()."""
        return step < self.last

    def with_last_step(self, solved: jax.Array) -> StepStatus:
        """Updated with the solution flag () of the shorter step that leads to an event."""
        assert self.stopped is not None
        unsolved = jnp.where(self.came & ~solved, self.stopped, self.unsolved)
        return eqx.tree_at(lambda w: w.unsolved, self, unsolved)

    def after(
        self,
        tree: Tree,
        step: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        effort: jax.Array | None,
        solved: Any,
        come: jax.Array | None = None,
    ) -> StepStatus:
        """Updated with the state q (nq,), v (nv,) after a step, and the effort (nv,) before it.

        come (): whether an event has come there.
        """
        t, joints, going = tree.topology, tree.system.joints, self.going(step)

        def first(before: jax.Array, happened: jax.Array, at: jax.Array = step) -> jax.Array:
            return jnp.minimum(before, jnp.where(happened & going, at, NEVER))

        q, v = jax.lax.stop_gradient((q, v))
        margin, singular = self.margin, self.singular
        if margin is not None:
            margin = margin.at(tree, q)
            singular = first(singular, margin.lost)
        x, rate = tree.coordinates(q), tree.rates(v)
        seen = self.effort
        if effort is not None:
            push = jax.lax.stop_gradient(effort)[t.dof_velocity]
            own = np.isin(np.arange(t.n_dofs), t.mimic_dofs, invert=True)
            least, most = joints.effort_limits
            seen = first(seen, ((push < least) | (push > most)) & own, step - 1)
        return StepStatus(
            first(self.nonfinite, ~finite(q, v)),
            self.unsolved if solved is True else first(self.unsolved, ~solved),
            singular,
            first(self.position, (x < joints.lower) | (x > joints.upper)),
            first(self.velocity, jnp.abs(rate) > joints.max_velocity),
            seen,
            margin,
            None if self.stopped is None or come is None else first(self.stopped, come),
        )

    def result(
        self,
        system: System,
        dt: jax.Array,
        steps: int,
        start_error: jax.Array,
        reconstruction: Reconstruction | None,
        ending: Ending | None = None,
        **looked: Any,
    ) -> Result:
        """How it ended; looked: `resolution`, `flight`, `impacts`, `substeps` of the result."""
        events = (self.singular, self.position, self.velocity, self.effort)
        # The state to which a failed step would have led has no meaning.
        last = self.last
        singular, position, velocity, effort = (jnp.where(e < last, e, NEVER) for e in events)
        return Result(
            nonfinite_step=self.nonfinite,
            unsolved_step=self.unsolved,
            singular_step=singular,
            position_step=position,
            velocity_step=velocity,
            effort_step=effort,
            start_error=jax.lax.stop_gradient(start_error),
            dt=jax.lax.stop_gradient(dt),
            steps=steps,
            topology=system.topology,
            reconstruction=reconstruction,
            ending=ending,
            **looked,
        )


def finite(q: jax.Array, v: jax.Array) -> jax.Array:
    """Whether a state is finite ()."""
    return _finite(q) & _finite(v)


def _finite(x: jax.Array) -> jax.Array:
    """Whether all of x is finite (); written without `jnp.all`, which native code lacks."""
    return jnp.min(jnp.where(jnp.isfinite(x), 1, 0), initial=1) > 0
