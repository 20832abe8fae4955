"""Rotation vectors and directions, with free numbers in the tangent space at the start."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..groups import quaternion, so3
from ..solvers.linear import product
from .transform import GIVE, Shape, Transform


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
