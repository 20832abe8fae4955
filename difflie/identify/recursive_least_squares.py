"""Numbers on which torques depend linearly, estimated row by row: the information filter.

All rows so far are kept as a triangle R (p, p) and z (p,), in standard deviations s:

    sum |W x - y|^2 / s^2 + |(x - x0) / s0|^2 = |R x - z|^2 + squares

New rows are added by a QR decomposition, which is as accurate as least squares of all rows at once
and never squares their condition number. Bierman 1977, chapter V; Kailath, Sayed and Hassibi 2000,
section 12.3.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class RecursiveLeastSquares(eqx.Module):
    """What is known so far: root (p, p) upper triangular, target (p,), squares () of what is left.

    A pytree of arrays: many estimators are one with a leading axis (`jax.vmap`), and a log is
    worked through by `jax.lax.scan`.
    """

    root: jax.Array
    target: jax.Array
    squares: jax.Array

    @staticmethod
    def of(mean: Float[Array, " p"], deviations: Float[Array, " p"]) -> RecursiveLeastSquares:
        """Before any row: numbers (p,) and their deviations (p,), infinite if nothing is known."""
        root = jnp.diag(1 / deviations)
        return RecursiveLeastSquares(root, root @ mean, jnp.zeros((), root.dtype))

    def updated(
        self,
        columns: Float[Array, "m p"],
        torques: Float[Array, " m"],
        deviations: Float[Array, " m"],
        forgetting: float | Float[Array, ""] = 1.0,
    ) -> RecursiveLeastSquares:
        """The estimator with m more rows, columns x = torques + noise of these deviations (m,).

        forgetting: the part for which all earlier rows count from now on, 1 for numbers that do not
        change. A row with an infinite deviation or a NaN in it counts for nothing.
        """
        before = jnp.sqrt(forgetting) * jnp.column_stack((self.root, self.target))
        rows = jnp.column_stack((columns, torques))
        there = jnp.isfinite(deviations) & jnp.isfinite(rows).all(axis=1)
        weighted = jnp.where(there[:, None], rows, 0) / jnp.where(there, deviations, 1)[:, None]
        r = jnp.linalg.qr(jnp.concatenate((before, weighted)), mode="r")
        p = columns.shape[1]
        return RecursiveLeastSquares(
            r[:p, :p], r[:p, p], forgetting * self.squares + jnp.sum(r[p:, p] ** 2)
        )

    def estimate(self) -> Float[Array, " p"]:
        """The numbers (p,) of least squares; of least norm where some are not told yet."""
        # Of columns of length 1, whatever the units.
        size = jnp.linalg.norm(self.root, axis=0)
        scale = jnp.where(size > 0, size, 1)
        return jnp.linalg.lstsq(self.root / scale, self.target)[0] / scale

    def covariance(self) -> Float[Array, "p p"]:
        """(R^T R)^-1 (p, p), for white noise of the deviations given; not finite if not told."""
        half = jax.scipy.linalg.solve_triangular(self.root, jnp.eye(len(self.target)))
        return half @ half.T


def payload_rows(
    regressor: Float[Array, "nv n"],
    arm: Float[Array, "nb 10"],
    body: int,
    torques: Float[Array, " nv"],
) -> tuple[Float[Array, "nv 10"], Float[Array, " nv"]]:
    """The columns (nv, 10) of what a body carries, and the torques (nv,) that the arm leaves to it.

    regressor: `dl.inverse_dynamics_regressor` at a state; arm (nb, 10): `dl.inertial_parameters` of
    the arm that carries nothing; torques (nv,): measured ones less those of friction and springs,
    in N m or N. The numbers x (10,) of columns x = rest are those of the payload in the body's
    frame, in kg, kg m and kg m^2, ordered as `dl.inertial_parameters`.
    """
    first = 10 * body
    return regressor[:, first : first + 10], torques - regressor @ arm.ravel()
