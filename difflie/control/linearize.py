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
from ..system.system import System
from ..system.user_functions import users_code
from ..system.validation import check_shape, real_numbers

_PROJECTION = Projection()


class Linearisation(NamedTuple):
    """A step to first order: its end moves by A dx + B du, with dx = (dq, dv) (2 nv,), du (nu,).

    A (..., 2 nv, 2 nv), B (..., 2 nv, nu). dq is a tangent in body-fixed coordinates, like v.
    """

    A: Float[Array, "*knots x x"]
    B: Float[Array, "*knots x nu"]


def linearize(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    dt: ArrayLike,
    *,
    method: Method | str = RKMK4(),
    control: ArrayLike | None = None,
    t: ArrayLike = 0.0,
    stabilisation: Stabilisation = _PROJECTION,
) -> Linearisation:
    """The derivative A (2 nv, 2 nv), B (2 nv, nu) of `step` at q (nq,), v (nv,), on tangents.

    With (q1, v1) = step(q, v, u) it is defined by

        step(integrate(q, dq), v + dv, u + du) = integrate(q1, dq1), v1 + dv1
        (dq1, dv1) = A (dq, dv) + B du + O(2)

    so that no normalised coordinate, as of a quaternion, is counted. control: the command u (nu,)
    that is held over the step of dt (s), zero if None; t () in s, method and stabilisation as in
    `step`. Knots of a trajectory have a leading axis: q (n, nq), v (n, nv), and any of control (n,
    nu) and t (n,) that varies; so have A and B then. Where constraints hold, only changes that
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

    knots = tuple(jnp.broadcast_to(a, (*n, *a.shape[a.ndim - k :])) for a, k in ((u, 1), (t, 0)))
    how = method, stabilisation
    return _linearized(system, (q, v, *knots), dt, how, users_code(system))


@eqx.filter_jit
def _linearized(system: System, knots: tuple, dt: jax.Array, how: tuple, _: Any) -> Linearisation:
    """At one knot (q, v, u, t), or at many."""
    method, stabilisation = how
    manifold, nv, nu = system.manifold, system.nv, system.nu

    def at(q: jax.Array, v: jax.Array, u: jax.Array, t: jax.Array) -> Linearisation:
        def moved(change: jax.Array) -> tuple[Any, Any]:
            dq, dv, du = jnp.split(change, (nv, 2 * nv))
            start = manifold.retract(q, dq), v + dv
            given = {"method": method, "stabilisation": stabilisation}
            q1, v1, solved = step(system, *start, dt, control=u + du, t=t, **given)
            return (q1, v1), (q1, solved)

        def tangent(rate: jax.Array) -> jax.Array:
            return jax.jvp(lambda y: manifold.difference(q1, y), (q1,), (rate,))[1]

        zero = jnp.zeros(2 * nv + nu, q.dtype)
        (rates, dv1), (q1, solved) = jax.jacfwd(moved, has_aux=True)(zero)
        dq1 = jax.vmap(tangent, in_axes=1, out_axes=1)(rates)
        both = jnp.where(solved, jnp.concatenate((dq1, dv1)), jnp.nan)
        return Linearisation(both[:, : 2 * nv], both[:, 2 * nv :])

    return (jax.vmap(at) if knots[0].ndim == 2 else at)(*knots)
