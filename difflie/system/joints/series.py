"""Joints made of screws one after the other."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from ...groups import Euclidean, se3
from .joint import Joint


@dataclass(frozen=True, kw_only=True)
class Series(Joint):
    """Screws in series, from the parent to the child; each is moved by those before it.

    Coordinates are plain numbers and velocities their derivatives. A type lists its `dofs`. T(q) is
    the product of exp(q_i s_i) over their unit screws s_i, and the subspace follows from it.
    """

    in_series: ClassVar[bool] = True

    @property
    def manifold(self) -> Euclidean:
        return Euclidean(len(self.dofs()))

    def transform(self, q: jax.Array) -> jax.Array:
        T = jnp.eye(4, dtype=q.dtype)
        for dof, x in zip(self.dofs(), q, strict=True):
            T = T @ se3.exp(jnp.asarray(dof.screw, q.dtype) * x)
        return T

    def without_numbers(self) -> Self:
        # Axes and pitches are numbers of their degrees of freedom.
        own = (f for f in dataclasses.fields(self) if f.name not in Joint.__dataclass_fields__)
        missing = dataclasses.MISSING
        defaults = {f.name: None if f.default is missing else f.default for f in own}
        return super().without_numbers().with_numbers(defaults)


@dataclass(frozen=True, kw_only=True)
class OneAxis(Series):
    """One screw about an axis (3,)."""

    axis: Any = (0.0, 0.0, 1.0)

    def about(self, axes: np.ndarray, pitch: np.ndarray) -> Self:
        return dataclasses.replace(self, axis=axes[0])


def check_directions(axes: np.ndarray, own: np.ndarray, wanted: str) -> None:
    """Raises ValueError, with what is wanted, unless axes (n, 3) point along own (n, 3)."""

    def units(a: np.ndarray) -> np.ndarray:
        return a / np.linalg.norm(a, axis=1, keepdims=True)

    if not np.allclose(units(axes), units(own), rtol=0, atol=1e-9):
        raise ValueError(wanted)
