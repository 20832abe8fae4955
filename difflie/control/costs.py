"""Costs: weighted squares of quantities."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from .. import quantities as dq
from ..deprecated import renamed
from ..quantities.deviation import as_pose
from ..quantities.quantity import Quantity, as_quantity
from ..system.fields import Numbers, number
from ..system.frame import Frame, FrameLike
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import real_values

_WEIGHT = number(shape=None, nonnegative=True)
# As they are in files, too.
Goal = Annotated[ArrayLike | None, list[float]]
Position = Annotated[ArrayLike, number(unit="m", shape=(3,))]


@renamed(aimed="with_goal")
class Cost(eqx.Module):
    """sum_i w_i r_i^2 / 2, where r (n,) is a quantity, less its goal if it has one.

    Among the running costs of a problem it is a rate, and is summed over the steps with dt. A
    function f(system, q, v, u, t) is a quantity as well. weight: (), or (n,) for each entry, not
    negative. goal: (n,) or (); other kinds of costs hold their goal in the quantity.
    """

    quantity: Quantity
    weight: Numbers = eqx.field(converter=_WEIGHT)

    def __init__(self, quantity: Any, weight: ArrayLike = 1.0, goal: Any = None) -> None:
        quantity = as_quantity(quantity)
        self.quantity = quantity if goal is None else dq.Deviation(quantity, goal)
        self.weight = _WEIGHT(weight)

    @property
    def name(self) -> str:
        """That of its quantity."""
        return self.quantity.name

    def residual(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " n"]:
        """r (n,)."""
        value = called(self.quantity, system, q, v, u, t)
        return real_values(f"what the cost {self.name} returns", jnp.ravel(value), q.dtype)

    def with_goal(self, goal: ArrayLike) -> Cost:
        """The same with another goal, of the shape of its own; itself if it has no such goal."""
        own = getattr(self.quantity, "goal", None)
        if own is None or np.shape(own) != np.shape(goal):
            return self
        return replace_field(self, "quantity", replace(self.quantity, goal=goal))


def replace_field(module: Any, name: str, value: Any) -> Any:
    """The module with another value of a field, also where its class has an __init__ of its own."""
    return eqx.tree_at(lambda m: getattr(m, name), module, value, is_leaf=lambda x: x is None)


class Pose(Cost):
    """Weights log(goal^-1 T) (6,), in rad and m, of the pose T of a frame.

    frame: a `Frame`, or the name of a body for its own frame. goal: a pose (4, 4), or a `Frame` in
    the world. weight () or (6,), as of `Cost`.
    """

    def __init__(
        self, frame: FrameLike, goal: Annotated[ArrayLike | Frame, Frame], weight: ArrayLike = 1.0
    ) -> None:
        super().__init__(dq.PoseDeviation(frame, as_pose(goal)), weight)


class Point(Cost):
    """Weights the distance (3,) in m of a point of a body from its goal (3,) in the world.

    frame: the name of a body, or a `Frame` whose origin is the point. weight () or (3,), as of
    `Cost`.
    """

    def __init__(self, frame: FrameLike, goal: Position, weight: ArrayLike = 1.0) -> None:
        super().__init__(dq.Deviation(dq.Origin(frame), goal), weight)


class State(Cost):
    """Weights the state less its goal (2 nv,): difference(q goal, q), then v - v goal.

    The goal is q (nq,), v (nv,), None for rest. The entries are in rad or m and rad/s or m/s.
    weight () or (2 nv,), as of `Cost`.
    """

    def __init__(self, q: ArrayLike, weight: ArrayLike = 1.0, v: ArrayLike | None = None) -> None:
        super().__init__(dq.StateDeviation(q, v), weight)


class Configuration(Cost):
    """Weights difference(q goal, q) (nv,) in the tangent space, in rad or m.

    q (nq,): the goal. weight () or (nv,), as of `Cost`.
    """

    def __init__(self, q: ArrayLike, weight: ArrayLike = 1.0) -> None:
        super().__init__(dq.ConfigurationDeviation(q), weight)


class Velocity(Cost):
    """Weights v (nv,), less its goal (nv,), in rad/s or m/s; weight () or (nv,), as of `Cost`."""

    def __init__(self, weight: ArrayLike = 1.0, goal: Goal = None) -> None:
        super().__init__(dq.Velocities(), weight, goal)


class Effort(Cost):
    """Weights the controls u (nu,), less their goal (nu,), in their units.

    weight () or (nu,), as of `Cost`.
    """

    def __init__(self, weight: ArrayLike = 1.0, goal: Goal = None) -> None:
        super().__init__(dq.Command(), weight, goal)


class CenterOfMass(Cost):
    """Weights the distance (3,) in m of the centre of mass from its goal (3,) in the world.

    weight () or (3,), as of `Cost`.
    """

    def __init__(self, goal: Position, weight: ArrayLike = 1.0) -> None:
        super().__init__(dq.CenterOfMass(), weight, goal)


class Energy(Cost):
    """Weights the total energy () in J, less its goal () in J; weight () as of `Cost`."""

    def __init__(
        self, goal: Annotated[ArrayLike, number(unit="J")], weight: ArrayLike = 1.0
    ) -> None:
        super().__init__(_total_energy, weight, goal)


class Duration(Cost):
    """A final cost, weight () times the time t in s, for a horizon whose length is free."""

    def __init__(self, weight: ArrayLike = 1.0) -> None:
        super().__init__(_root_of_time, weight)


def _root_of_time(system: System, q: Any, v: Any, u: Any, t: Any) -> jax.Array:
    return jnp.sqrt(2 * t)


@dq.quantity("total energy", "J", ("total",))
def _total_energy(system: System, q: Any, v: Any, u: Any, t: Any) -> jax.Array:
    return dq.Energy()(system, q, v, u, t)[2]


def as_cost(value: Any) -> Cost:
    """The cost itself, or a quantity or function with the weight one."""
    return value if isinstance(value, Cost) else Cost(value)
