"""Quantities along a motion, as arrays and as curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from ..forces.actuators.acting import applied
from ..system.arguments import checked
from ..system.internal_states import tree_with_states
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.user_functions import users_code
from ..system.validation import real_numbers
from .clearance import ContactForce, ContactImpulse
from .quantity import Labels, Quantity, as_quantity


class Motion(Protocol):
    """States at times, such as a `Trajectory`: t (...,), q (..., nq), v (..., nv), u (..., nu).

    With actuators that have a memory also their torques (..., nu), with internal states these, z
    (..., nz), and with a method that finds impulses of contacts the forces of these,
    contact_forces.
    """

    @property
    def t(self) -> jax.Array: ...
    @property
    def q(self) -> jax.Array: ...
    @property
    def v(self) -> jax.Array: ...
    @property
    def u(self) -> jax.Array | None: ...


@dataclass(frozen=True)
class Curve:
    """A quantity along one run, for figures and tables.

    t (m,) in s, values (m, n); labels (n,): the name and the unit of each column.
    """

    name: str
    t: NDArray
    values: NDArray
    labels: Labels

    @property
    def unit(self) -> str:
        """The units of its columns, each once."""
        return ", ".join(dict.fromkeys(unit for _, unit in self.labels if unit))


def along(
    quantity: Quantity | Callable[..., Any], system: System, run: Motion
) -> Float[Array, "..."]:
    """A quantity at all times of a run: (m, ...) for a quantity of shape (...).

    quantity: one of difflie.quantities, or a function or Equinox module f(system, q, v, u, t). run:
    a `Trajectory`, or a batch of them with leading axes, which the result has too; for a batch of
    systems call this inside `jax.vmap`. Differentiable with respect to the run, the system, and the
    arrays that the quantity holds. Raises TypeError for an object that is no quantity or returns no
    real numbers, and ValueError for a wrong number of entry names and for the run of another
    system.
    """
    measured = as_quantity(quantity)
    checked(system)
    sizes = run.q.shape[-1], run.v.shape[-1]
    if sizes != (system.nq, system.nv):
        raise ValueError(
            f"{system.name}: the run has {sizes[0]} coordinates and {sizes[1]} velocities, the "
            f"system {system.nq} and {system.nv}; give the system that was simulated"
        )
    if run.u is not None and run.u.shape[-1] != system.nu:
        raise ValueError(
            f"{system.name}: the run has {run.u.shape[-1]} commands, the system {system.nu}; give "
            "the system that was simulated"
        )
    torques, z = getattr(run, "torques", None), getattr(run, "z", None)
    motion = run.t, run.q, run.v, run.u, torques, z, getattr(run, "contact_forces", None)
    code = users_code(system, measured, getattr(measured, "function", None))
    return _along(measured, system, *motion, code)


def curve(quantity: Quantity | Callable[..., Any], system: System, run: Motion) -> Curve:
    """A quantity along one run of m times, as a `Curve` (m, n), with names and units of n entries.

    Raises ValueError for a batch of runs, and otherwise as `along` does.
    """
    measured = as_quantity(quantity)
    if run.t.ndim != 1:
        raise ValueError(
            f"{system.name}: these are {run.t.shape[:-1]} runs, and a curve is of one; take one, "
            "such as jax.tree.map(lambda a: a[0], run)"
        )
    t, values = np.asarray(run.t), np.asarray(along(measured, system, run))
    values = values.reshape(len(t), -1)
    return Curve(measured.name, t, values, _labels(measured, system, values.shape[1]))


def _labels(quantity: Quantity, system: System, size: int) -> Labels:
    unit = getattr(quantity, "unit", "")
    numbered = tuple((f"{quantity.name}[{i}]", unit) for i in range(size))
    return quantity.labels(system) or (((quantity.name, unit),) if size == 1 else numbered)


@eqx.filter_jit
def _along(quantity, system, t, q, v, u, torques, z, forces, _):
    tree = Tree.of(system)

    def by_impulses(part, forces):
        if type(part) is ContactForce and forces is not None:
            return ContactImpulse(part.body, *forces)
        return part

    def at(t, q, v, u, torques, z, forces):
        what = f"what the quantity {quantity.name} returns"
        measured = applied(tree_with_states(tree, z).carried(), torques)
        found = jax.tree.map(
            lambda part: by_impulses(part, forces),
            quantity,
            is_leaf=lambda part: isinstance(part, ContactForce),
        )
        value = real_numbers(system.name, what, found(measured, q, v, u, t))
        names = quantity.labels(system)
        if names and value.size != len(names):
            raise ValueError(
                f"{system.name}: {what} has shape {value.shape}, and it has {len(names)} names of "
                "entries; return one number for each"
            )
        return value.astype(q.dtype)

    for _ in range(t.ndim):
        at = jax.vmap(at)
    return at(t, q, v, u, torques, z, forces)
