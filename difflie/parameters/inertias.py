"""Transforms of physically consistent inertias: second moments, and all ten parameters."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..groups import so3
from ..solvers.linear import product
from .pseudo_inertia import (
    factor,
    from_log_cholesky,
    from_six,
    inconsistency,
    inertia_of,
    log_cholesky,
    second_moments,
    squared,
    to_six,
)
from .transforms import GIVE, XYZ, Shape, Transform, nearly_equal

_INERTIA = ("I_xx", "I_xy", "I_xz", "I_yy", "I_yz", "I_zz")
INERTIAL = ("mass", *("com" + i for i in XYZ), *_INERTIA)


class SecondMoments(Transform):
    """An inertia (3, 3) about the centre of mass, of a body of fixed mass: 6 free numbers.

    They are (d1, d2, d3, s12, s23, s13) of the Cholesky factor of the second moments of mass, as in
    `pseudo_inertia` but not divided by the mass. Every x is physically consistent.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return inertia_of(squared(jnp.concatenate((jnp.exp(x[:3]), x[3:]))))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        f = factor(second_moments(value))
        return jnp.concatenate((jnp.log(f[:3]), f[3:]))

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return to_six(value)

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        return from_six(components)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return _INERTIA

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "inertia"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        return inconsistency(value)


class InertiaRatios(Transform):
    """An inertia (3, 3) up to its scale: I_xx keeps its value at the start; 5 free numbers.

    They are those of `SecondMoments` over e^d1: (d2 - d1, d3 - d1, (s12, s23, s13) / e^d1). Motions
    without torques identify no more than these. The components are the other entries over I_xx.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        shape = inertia_of(squared(jnp.concatenate((jnp.ones_like(x[:1]), jnp.exp(x[:2]), x[2:]))))
        return start[0, 0] / shape[0, 0] * shape

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        f = factor(second_moments(value))
        return jnp.concatenate((jnp.log(f[1:3] / f[0]), f[3:] / f[0]))

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return to_six(value)[1:] / value[0, 0]

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        return start[0, 0] * from_six(jnp.concatenate((jnp.ones_like(components[:1]), components)))

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return tuple(f"{name}/I_xx" for name in _INERTIA[1:])

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return ("",) * len(self.labels("", shape))

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "inertia"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        fault = inconsistency(value)
        if fault or nearly_equal(value[0, 0], start[0, 0]):
            return fault
        return (
            f"has I_xx = {value[0, 0]:.6g} kg m^2, which stays {start[0, 0]:.6g} as at the start; "
            f"multiply it by {start[0, 0] / value[0, 0]:.6g}, or take SecondMoments"
        )


class LogCholesky(Transform):
    """All inertial parameters of a body by the log-Cholesky factor of its pseudo-inertia.

    The value (10,) is the mass, the centre of mass and the inertia about it, (xx, xy, xz, yy, yz,
    zz); the free numbers are theta (10,) of `pseudo_inertia.log_cholesky`. Rucker and Wensing 2022.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return _packed(*from_log_cholesky(x))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return log_cholesky(value[0], value[1:4], from_six(value[4:]))

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return INERTIAL

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return ("kg", *3 * ("m",), *6 * ("kg m^2",))

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "inertial"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if value[0] <= 0:
            return f"has the mass {value[0]:.4g} kg, which must be positive; {GIVE}, or fix it"
        return inconsistency(np.asarray(from_six(jnp.asarray(value[4:]))))


class WithinEllipsoid(LogCholesky):
    """All inertial parameters of a body whose mass lies within an ellipsoid.

    semi_axes (3,) in m, along the axes of a frame at center (3,) in m turned by rotation (3,), a
    rotation vector in rad, in the body's frame. In coordinates y in which the ellipsoid is the
    unit ball, the mass can lie in it if, and only if, the mean of |y|^2 is at most 1: tr(J Q) >= 0
    (Wensing, Kim and Slotine 2018). With the factor F of the second moments and the centre of mass
    c, both in these coordinates and F for a unit mass, that mean is |F|^2 + |c|^2. So the nine
    numbers of F and c lie in the unit ball of R^9: they are w / sqrt(1 + |w|^2), w = (e^d, s, t).
    So the diagonal of F stays positive; the free numbers are x = (alpha, d, s, t).
    """

    semi_axes: Any = eqx.field(converter=np.asarray)
    center: Any = eqx.field(converter=np.asarray, default=(0.0, 0.0, 0.0))
    rotation: Any = eqx.field(converter=np.asarray, default=(0.0, 0.0, 0.0))

    def __check_init__(self) -> None:
        for name in ("semi_axes", "center", "rotation"):
            given = getattr(self, name)
            if given.shape != (3,) or not np.all(np.isfinite(given)):
                raise ValueError(f"an ellipsoid's {name} is {given.tolist()}; give three numbers")
        if not np.all(self.semi_axes > 0):
            raise ValueError(
                f"an ellipsoid has the semi-axes {self.semi_axes.tolist()} m; they must be positive"
            )

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        center, turn = self._frame(x.dtype)
        w = jnp.concatenate((jnp.exp(x[1:4]), x[4:]))
        u = w / jnp.sqrt(1 + jnp.sum(w * w))
        moments = product(product(turn, squared(u[:6])), turn.T)
        mass = jnp.exp(2 * x[0])
        return _packed(mass, center + product(turn, u[6:]), mass * inertia_of(moments))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        u = self._ball(value)
        w = u / jnp.sqrt(1 - jnp.sum(u * u))
        return jnp.concatenate((jnp.log(value[:1]) / 2, jnp.log(w[:3]), w[3:]))

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        fault = super().fault(value, start)
        if fault:
            return fault
        mean = float(jnp.sum(self._ball(jnp.asarray(value)) ** 2))
        if mean < 1:
            return ""
        return (
            "has mass outside of its ellipsoid: make this larger by more than the factor "
            f"{math.sqrt(mean):.4g}, or move it"
        )

    def _frame(self, dtype: Any) -> tuple[jax.Array, jax.Array]:
        """The ellipsoid's centre (3,), and the matrix (3, 3) that maps the unit ball to it."""
        turn = so3.exp(jnp.asarray(self.rotation, dtype)) * jnp.asarray(self.semi_axes, dtype)[None]
        return jnp.asarray(self.center, dtype), turn

    def _ball(self, value: jax.Array) -> jax.Array:
        """The numbers (9,) of F and c, in the coordinates in which the ellipsoid is a ball."""
        center, turn = self._frame(value.dtype)
        back = turn.T / jnp.asarray(self.semi_axes, value.dtype)[:, None] ** 2
        moments = second_moments(from_six(value[4:])) / value[0]
        f = factor(product(product(back, moments), back.T))
        return jnp.concatenate((f, product(back, value[1:4] - center)))


def _packed(mass: jax.Array, com: jax.Array, inertia: jax.Array) -> jax.Array:
    return jnp.concatenate((mass[None], com, to_six(inertia)))
