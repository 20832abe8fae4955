"""Transforms: bijections between free numbers and one physical value.

A transform maps unconstrained free numbers x to one value: the damping of a joint, the inertial
parameters of a body. Every x gives an admissible value, and every admissible value has one x. For a
manifold x is in the tangent space at the start.

Positive numbers are exponentials: equal steps of x are equal ratios, whatever the unit and size of
the number. Softplus, the alternative, has a scale: 1 in whatever the unit is.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..groups import quaternion, so3
from ..solvers.linear import product

Shape = tuple[int, ...]
XYZ = ("_x", "_y", "_z")
GIVE = "give another `start`"


class Transform(eqx.Module):
    """A bijection between free numbers x (size,) and one value of a given shape.

    `start` is the initial value, of that shape; transforms of manifolds are relative to it, others
    ignore it.
    """

    @abc.abstractmethod
    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        """The value with the free numbers x (size,)."""

    @abc.abstractmethod
    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        """The free numbers (size,) of a value; NaN where `fault` reports one."""

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        """The components (size,) of the value, in its unit: its entries, for most."""
        return value.ravel()

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        """The value with these components (size,), admissible or not."""
        return components.reshape(start.shape)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        """The names (size,) of the components, for a leaf with values of this shape."""
        if shape == (3,):
            return tuple(leaf + i for i in XYZ)
        return tuple(leaf + (str(list(i)) if i else "") for i in np.ndindex(shape))

    @property
    def limits(self) -> tuple[Any, Any]:
        """The lower and upper bounds, which components never reach: one each, or of their shape."""
        return -np.inf, np.inf

    @property
    def bounded(self) -> tuple[bool, bool]:
        """Whether each component nears a bound as its x goes to -infinity, and to infinity.

        It must do so exponentially: equal steps of x leave equal ratios of the distance.
        """
        return False, False

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        """The units (size,) of the components, for a leaf with values in this unit."""
        return (unit,) * len(self.labels("", shape))

    def suits(self, kind: str, shape: Shape) -> bool:
        """Whether it is for values of this kind (see `difflie.number`) and shape."""
        return kind not in ("inertia", "inertial", "semidefinite")

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        """Why a concrete value has no free numbers, with the fix; "" if it has them.

        Errors of the size of a file's rounding are accepted.
        """
        return ""


def nearly_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays (...) agree in half of their digits."""
    return bool(np.abs(a - b).max() <= np.sqrt(np.finfo(a.dtype).eps) * np.abs(b).max())


class Identity(Transform):
    """The value itself."""

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return x.reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return value.ravel()


class Above(Transform):
    """Values above a limit: lower + e^x, x (size,). `lower` in the value's unit, of its shape."""

    lower: Any = eqx.field(converter=np.asarray)

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.asarray(self.lower, x.dtype) + jnp.exp(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.log(value - jnp.asarray(self.lower, value.dtype)).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.lower, np.inf

    @property
    def bounded(self) -> tuple[bool, bool]:
        return True, False

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value > self.lower):
            return ""
        return f"is {value.tolist()}, and must be above {self.lower.tolist()}; {GIVE}"


class Below(Transform):
    """Values below a limit: upper - e^x, x (size,). `upper` in the value's unit, of its shape."""

    upper: Any = eqx.field(converter=np.asarray)

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.asarray(self.upper, x.dtype) - jnp.exp(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.log(jnp.asarray(self.upper, value.dtype) - value).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return -np.inf, self.upper

    @property
    def bounded(self) -> tuple[bool, bool]:
        return True, False

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value < self.upper):
            return ""
        return f"is {value.tolist()}, and must be below {self.upper.tolist()}; {GIVE}"


class Interval(Transform):
    """Values between limits: lower + (upper - lower) / (1 + e^-x), x (size,).

    lower and upper in the value's unit and of its shape, or numbers. Raises ValueError where lower
    is not below upper.
    """

    lower: Any = eqx.field(converter=np.asarray)
    upper: Any = eqx.field(converter=np.asarray)

    def __check_init__(self) -> None:
        if not np.all(self.lower < self.upper):
            raise ValueError(
                f"the lower bound {self.lower.tolist()} is not below the upper bound "
                f"{self.upper.tolist()}; exchange them, or fix the parameter"
            )

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, x.dtype), jnp.asarray(self.upper, x.dtype)
        return lower + (upper - lower) * jax.nn.sigmoid(x).reshape(start.shape)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, value.dtype), jnp.asarray(self.upper, value.dtype)
        return (jnp.log(value - lower) - jnp.log(upper - value)).ravel()

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.lower, self.upper

    @property
    def bounded(self) -> tuple[bool, bool]:
        return True, True

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if np.all(value > self.lower) and np.all(value < self.upper):
            return ""
        return (
            f"is {value.tolist()}, and must lie between {self.lower.tolist()} and "
            f"{self.upper.tolist()}; {GIVE}"
        )


def positive() -> Above:
    """Positive numbers e^x: `Above` zero, in any unit; x (size,) is the logarithm."""
    return Above(0.0)


class Scaled(Transform):
    """The value at the start times e^x: one free number, whatever its shape; its component is e^x.

    It keeps physical consistency, such as of an inertia of known shape and unknown scale.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return jnp.exp(x[0]) * start

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return (jnp.log(jnp.sum(value * start)) - jnp.log(jnp.sum(start * start)))[None]

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return (jnp.sum(value * start) / jnp.sum(start * start))[None]

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        return components[0] * start

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return (f"{leaf}_factor",)

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return ("",)

    def suits(self, kind: str, shape: Shape) -> bool:
        return True

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if not np.any(start):
            return f"is zero at the start, which no factor changes; {GIVE}"
        factor = float(np.sum(value * start) / np.sum(start * start))
        if factor > 0 and nearly_equal(value, factor * start):
            return ""
        return (
            f"is {value.tolist()}, which is no positive multiple of {start.tolist()}, the value at "
            f"the start; {GIVE}, or another transform than Scaled"
        )


def within(bounds: Iterable[Any]) -> Transform:
    """The transform for bounds (lower, upper), numbers or of the value's shape; None for no bound.

    Raises ValueError unless there are two of them and they are finite.
    """
    given = tuple(bounds)
    if len(given) != 2 or given == (None, None):
        raise ValueError(f"the bounds are {given}; give (lower, upper), None where there is none")
    if not all(b is None or np.all(np.isfinite(b)) for b in given):
        raise ValueError(f"the bounds {given} are not finite; give None where there is none")
    lower, upper = given
    if upper is None:
        return Above(lower)
    return Below(upper) if lower is None else Interval(lower, upper)


class Rotation(Transform):
    """A rotation vector (3,) in rad: exp(value) = exp(start) exp(x), x (3,), up to half a turn."""

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return quaternion.log(quaternion.multiply(quaternion.exp(start), quaternion.exp(x)))

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return quaternion.log(quaternion.multiply(quaternion.exp(-start), quaternion.exp(value)))

    def suits(self, kind: str, shape: Shape) -> bool:
        return shape == (3,)


class Direction(Transform):
    """A direction (3,): the start rotated by x (2,) rad about two axes normal to it, |x| up to pi.

    Its length is kept, as it has no effect. Its components are the two angles.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        return product(so3.exp(product(self._normals(start), x)), start)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        n, u = start / jnp.linalg.norm(start), value / jnp.linalg.norm(value)
        least = quaternion.log(jnp.concatenate(((1 + jnp.sum(n * u))[None], jnp.cross(n, u))))
        return product(self._normals(start).T, least)

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return self.inverse(value, start)

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        return self.value(components, start)

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return (f"{leaf}_turn_1", f"{leaf}_turn_2")

    def units(self, unit: str, shape: Shape) -> tuple[str, ...]:
        return "rad", "rad"

    def suits(self, kind: str, shape: Shape) -> bool:
        return shape == (3,)

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        if not np.any(value):
            return f"is zero, which is no direction; {GIVE}"
        along = float(value @ start / np.linalg.norm(value) / np.linalg.norm(start))
        if along > -1 + np.finfo(value.dtype).eps:
            return ""
        return f"is opposite to the start, which has no shortest way there; {GIVE}"

    def _normals(self, start: jax.Array) -> jax.Array:
        """Two unit vectors (3, 2), normal to the start and to each other (Duff et al. 2017)."""
        x, y, z = start / jnp.linalg.norm(start)
        sign = jnp.where(z < 0, -jnp.ones_like(z), jnp.ones_like(z))
        a = -1 / (sign + z)
        b = x * y * a
        first = (1 + sign * x * x * a, sign * b, -sign * x)
        return jnp.stack([jnp.stack(first), jnp.stack((b, sign + y * y * a, -y))], axis=1)


class Definite(Transform):
    """A symmetric matrix (n, n) with positive eigenvalues: n (n + 1) / 2 free numbers.

    It is L L^T with the Cholesky factor L; the logarithms of its diagonal and its entries below are
    the free numbers. The components are the matrix entries on and above the diagonal, row by row.
    Pinheiro and Bates 1996.
    """

    def value(self, x: jax.Array, start: jax.Array) -> jax.Array:
        n = start.shape[0]
        diagonal, below = np.diag_indices(n), np.tril_indices(n, -1)
        factor = jnp.zeros_like(start).at[diagonal].set(jnp.exp(x[:n])).at[below].set(x[n:])
        return product(factor, factor.T)

    def inverse(self, value: jax.Array, start: jax.Array) -> jax.Array:
        n = start.shape[0]
        factor = jnp.linalg.cholesky((value + value.T) / 2)
        return jnp.concatenate((jnp.log(jnp.diag(factor)), factor[np.tril_indices(n, -1)]))

    def components(self, value: jax.Array, start: jax.Array) -> jax.Array:
        return value[np.triu_indices(start.shape[0])]

    def of_components(self, components: jax.Array, start: jax.Array) -> jax.Array:
        upper = jnp.zeros_like(start).at[np.triu_indices(start.shape[0])].set(components)
        return upper + jnp.triu(upper, 1).T

    def labels(self, leaf: str, shape: Shape) -> tuple[str, ...]:
        return tuple(f"{leaf}[{i}, {j}]" for i, j in zip(*np.triu_indices(shape[0]), strict=True))

    def suits(self, kind: str, shape: Shape) -> bool:
        return kind == "semidefinite"

    def fault(self, value: np.ndarray, start: np.ndarray) -> str:
        least = float(np.linalg.eigvalsh((value + value.T) / 2).min())
        if least > 0:
            return ""
        return f"has the eigenvalue {least:.3g}, and all must be positive; {GIVE}, or fix it"
