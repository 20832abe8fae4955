"""A network as a control: what it sees, and what it commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..quantities.quantity import as_quantity, joined
from ..system.arguments import checked
from ..system.system import System

Observation = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def _state(t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
    """The observation (nq + nv,) of everything: q (nq,), then v (nv,)."""
    return joined(q, v)


def observation(system: System, *quantities: Any) -> Observation:
    """The observation (n,) of quantities, such as `Pose("hand")`, in this order.

    A function of t () in s, q (nq,), v (nv,). Each quantity is one of difflie.quantities, or a
    function f(system, q, v, u, t) of which u is None, as the command is not known yet. The numbers
    of the system are no leaves of it, so that training leaves them alone. Raises TypeError for
    what is no quantity.
    """
    checked(system)
    measured = [as_quantity(quantity) for quantity in quantities]

    def observed(t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        seen = [jnp.ravel(quantity(system, q, v, None, t)) for quantity in measured]
        return joined(*seen)

    return observed


class Policy(eqx.Module):
    """A control u = network(observation(t, q, v)), for `simulate` and, by its rate, `Sampled`.

    network: a function or module that takes the observation (n,) and returns the command (nu,).
    Its arrays are leaves: `equinox.filter_grad` of a cost of the motion differentiates with respect
    to them, through `simulate`. observation: a function of t () in s, q (nq,), v (nv,), by default
    q and v themselves.
    """

    network: Callable[[jax.Array], Any]
    observation: Observation = _state

    def __call__(self, t: jax.Array, q: jax.Array, v: jax.Array) -> Any:
        return self.network(self.observation(t, q, v))
