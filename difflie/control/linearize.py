"""The derivative of a time step along the configuration manifold."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..constraints import Projection, Stabilisation
from ..integrators import RKMK4, Method
from ..simulate import step
from ..simulate.arguments import checked_dt
from ..system.arguments import checked
from ..system.internal_states import states_of
from ..system.system import System
from ..system.user_functions import users_code
from ..system.validation import check_shape, real_numbers

_PROJECTION = Projection()


class Linearisation(NamedTuple):
    """A step to first order: its end moves by A dx + B du, with dx = (dq, dv, dz), du (nu,).

    A (..., nx, nx), B (..., nx, nu), nx = 2 nv + nz. dq is a tangent in body-fixed coordinates, as
    v is; dz (nz,) is of internal states, where there are any.
    """

    A: Float[Array, "*knots x x"]
    B: Float[Array, "*knots x nu"]


def linearize(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    dt: ArrayLike,
    *,
    z: ArrayLike | None = None,
    method: Method | str = RKMK4(),
    control: ArrayLike | None = None,
    t: ArrayLike = 0.0,
    stabilisation: Stabilisation = _PROJECTION,
) -> Linearisation:
    """The derivative A (nx, nx), B (nx, nu) of `step` at q (nq,), v (nv,), z (nz,), on tangents.

    With (q1, v1, z1) = step(q, v, z, u) and nx = 2 nv + nz it is defined by

        step(integrate(q, dq), v + dv, z + dz, u + du) = integrate(q1, dq1), v1 + dv1, z1 + dz1
        (dq1, dv1, dz1) = A (dq, dv, dz) + B du + O(2)

    so that no normalised coordinate, as of a quaternion, is counted. z: the internal states, by
    default those that the system's parts hold. control: the command u (nu,) that is held over the
    step of dt (s), zero if None; t () in s, method and stabilisation as in `step`. Knots of a
    trajectory have a leading axis: q (n, nq), v (n, nv), and any of z (n, nz), control (n, nu) and
    t (n,) that varies; so have A and B then. Where constraints hold, only changes that
    keep them have a meaning. NaN where the step is not solved. Differentiable in both modes.

    Raises ValueError and TypeError as `step` does, and for a control that is no array.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> A, B = dl.linearize(cart, [0.0], [0.0], dt=0.1)
    >>> print(A.round(4), B.round(4).T)
    [[1.  0.1]
     [0.  1. ]] [[0.0025 0.05  ]]
    """
    checked(system)
    n = np.shape(q)[:-1] if np.ndim(q) == 2 else ()
    q, v = checked(system, q=(q, (*n, system.nq)), v=(v, (*n, system.nv)))
    dt, t = checked_dt("linearize", dt, system.dtype), real_numbers("linearize", "t", t)
    if t.ndim:
        check_shape("linearize", "t", t.shape, n)
    if callable(control):
        raise TypeError(
            "linearize: control is a function; give the command (nu,) that is held over the step"
        )
    u = jnp.zeros(system.nu, system.dtype) if control is None else control
    varies = bool(n) and np.ndim(u) == 2
    (u,) = checked(system, control=(u, (*n, system.nu) if varies else (system.nu,)))

    held = states_of(system) if z is None else z
    (held,) = checked(system, z=(held, (*n[: np.ndim(held) - 1], system.nz)))
    parts = (held, 1), (u, 1), (t, 0)
    knots = tuple(jnp.broadcast_to(a, (*n, *a.shape[a.ndim - k :])) for a, k in parts)
    how = method, stabilisation
    return _linearized(system, (q, v, *knots), dt, how, users_code(system))


@eqx.filter_jit
def _linearized(system: System, knots: tuple, dt: jax.Array, how: tuple, _: Any) -> Linearisation:
    """At one knot (q, v, z, u, t), or at many."""
    method, stabilisation = how
    manifold, nv, nx, nu = system.manifold, system.nv, 2 * system.nv + system.nz, system.nu

    def at(q: jax.Array, v: jax.Array, z: jax.Array, u: jax.Array, t: jax.Array) -> Linearisation:
        def moved(change: jax.Array) -> tuple[Any, Any]:
            dq, dv, dz, du = jnp.split(change, (nv, 2 * nv, nx))
            start = manifold.retract(q, dq), v + dv
            given: dict[str, Any] = {"method": method, "stabilisation": stabilisation}
            if nx > 2 * nv:
                given["z"] = z + dz
            q1, v1, solved, *z1 = step(system, *start, dt, control=u + du, t=t, **given)
            return (q1, v1, jnp.concatenate([v1[:0], *z1])), (q1, solved)

        def tangent(rate: jax.Array) -> jax.Array:
            return jax.jvp(lambda y: manifold.difference(q1, y), (q1,), (rate,))[1]

        zero = jnp.zeros(nx + nu, q.dtype)
        (rates, dv1, dz1), (q1, solved) = jax.jacfwd(moved, has_aux=True)(zero)
        dq1 = jax.vmap(tangent, in_axes=1, out_axes=1)(rates)
        both = jnp.where(solved, jnp.concatenate((dq1, dv1, dz1)), jnp.nan)
        return Linearisation(both[:, :nx], both[:, nx:])

    return (jax.vmap(at) if knots[0].ndim == 2 else at)(*knots)
