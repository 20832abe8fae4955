"""Control of a frame's pose by its own dynamics, with a posture in the null space.

With the Jacobian J of the frame's twist V = J v and M a + c + g = tau, the torque

    tau = J' Lambda (A - dJ/dt v) + (1 - J' Jbar') M b + c + g
    Lambda = (J M^-1 J')^-1,    Jbar = M^-1 J' Lambda

gives the frame the acceleration dV/dt = A, whatever the acceleration b (nv,) of the posture is:
with the dynamically consistent inverse Jbar the torques (1 - J' Jbar') M b do not move the frame.
Khatib 1987, IEEE Journal of Robotics and Automation 3, equations 20, 36 and 51.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import (
    bias_force,
    body_jacobian_rate,
    difference,
    jacobian,
    mass_matrix,
    pose,
)
from ..forces import passive_force
from ..groups import se3
from ..solvers.linear import product
from ..system.arguments import checked
from ..system.frame import Frame, as_frame
from ..system.system import System
from ..system.validation import ModelError, real_numbers


def _gain(value: Any) -> jax.Array | None:
    return None if value is None else real_numbers("OperationalSpaceControl", "a gain", value)


class OperationalSpaceControl(eqx.Module):
    """Torques that take a frame to a goal: control(system, q, v, goal) returns tau (nv,).

    frame: a `Frame` on a body, or a body's name. The error e (6,) is the screw from the frame to
    the goal, T exp(e) = goal, angular part first, in rad and m; each of its entries obeys

        e'' + damping e' + stiffness e = 0

    as long as no joint meets a limit. stiffness (1/s^2) and damping (1/s): one for all or (6,).
    posture (nq,): what the other degrees of freedom are drawn to, by the acceleration
    posture_stiffness difference(q, posture) - posture_damping v; if None they are damped only.
    Damping that is None is critical, 2 sqrt(stiffness). All numbers are leaves.

    Raises `ModelError` for a frame on the world.
    """

    frame: Frame = eqx.field(converter=as_frame)
    stiffness: Any = eqx.field(converter=_gain)
    damping: Any = eqx.field(converter=_gain, default=None)
    posture: Any = eqx.field(converter=_gain, default=None)
    posture_stiffness: Any = eqx.field(converter=_gain, default=1.0)
    posture_damping: Any = eqx.field(converter=_gain, default=None)

    def __check_init__(self) -> None:
        if self.frame.body is None:
            raise ModelError("OperationalSpaceControl: the world does not move; give a body")
        for name in ("stiffness", "damping"):
            gain = getattr(self, name)
            if gain is not None and gain.shape not in ((), (6,)):
                raise ValueError(
                    f"OperationalSpaceControl: {name} has shape {gain.shape}, needed is () or (6,)"
                )

    def __call__(
        self,
        system: System,
        q: Any,
        v: Any,
        goal: Any,
        twist: Any = (0.0,) * 6,
        acceleration: Any = (0.0,) * 6,
    ) -> Float[Array, " nv"]:
        """The generalised force tau (nv,) in N m or N, at every degree of freedom.

        It is the control of a machine without actuators. It includes gravity, Coriolis and
        centrifugal forces and balances springs, damping and friction. q (nq,), v (nv,); goal (4,
        4): a pose in the world. twist (6,) and acceleration (6,): of a goal that moves, and the
        rate of the twist, in the goal's axes. Not finite where the frame cannot move in all
        directions. Raises ValueError for a wrong shape, for fewer than six degrees of freedom,
        constraints, and an unknown body.
        """
        self._check(system)
        q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
        goal, twist, acceleration = checked(
            system, goal=(goal, (4, 4)), twist=(twist, (6,)), acceleration=(acceleration, (6,))
        )
        placed = pose(system, q, self.frame)
        J = jacobian(system, q, self.frame, axes="frame")
        rate = product(body_jacobian_rate(system, q, v, self.frame), v)
        M = mass_matrix(system, q)

        A = self._wanted(placed, product(J, v), goal, twist, acceleration)
        solved = jnp.linalg.solve(M, J.T)
        force = jnp.linalg.solve(product(J, solved), A - rate)
        b = self._posture(system, q, v)
        # (1 - J' Jbar') M b = M b - J' Lambda J b
        beside = product(M, b) - product(J.T, jnp.linalg.solve(product(J, solved), product(J, b)))
        tau = product(J.T, force) + beside + bias_force(system, q, v)
        return tau - passive_force(system, q, v)

    def _check(self, system: System) -> None:
        checked(system)
        what = f"{system.name}: OperationalSpaceControl"
        if system.nv < 6:
            raise ValueError(
                f"{what} moves a frame in six directions, and there are {system.nv} degrees of "
                "freedom; control quantities that fewer can reach"
            )
        if system.constraints:
            raise ValueError(f"{what} knows no constraints; give a machine without closed loops")

    def _wanted(self, placed: Any, V: Any, goal: Any, twist: Any, acceleration: Any) -> jax.Array:
        """The acceleration dV/dt (6,) of the frame with which the error decays as promised."""
        between = product(se3.inverse(placed), goal)
        seen = se3.Ad(between)
        e, moving = se3.log(between), product(seen, twist)
        # d between/dt = hat(xi) between
        xi = moving - V
        de = product(se3.dexp_inv(e), xi)
        stiffness, damping = _pair(self.stiffness, self.damping, e.dtype)
        bent = -damping * de - stiffness * e
        _, rate = jax.jvp(lambda e, de: product(se3.dexp(e), de), (e, de), (de, bent))
        return product(seen, acceleration) + product(se3.ad(xi), moving) - rate

    def _posture(self, system: System, q: jax.Array, v: jax.Array) -> jax.Array:
        """The acceleration (nv,) that draws to the posture."""
        stiffness, damping = _pair(self.posture_stiffness, self.posture_damping, q.dtype)
        if self.posture is None:
            return -damping * v
        return stiffness * difference(system, q, self.posture.astype(q.dtype)) - damping * v


def _pair(stiffness: jax.Array, damping: jax.Array | None, dtype: Any) -> tuple[Any, Any]:
    """Both gains; a damping that is None is critical."""
    stiffness = stiffness.astype(dtype)
    return stiffness, 2 * jnp.sqrt(stiffness) if damping is None else damping.astype(dtype)
