"""What a quantity is: a function of a moment that has a name and units."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..system.system import System
from ..system.validation import shown

Labels = tuple[tuple[str, str], ...]


class Quantity(eqx.Module):
    """A function of a moment, f(system, q, v, u, t), an array of real numbers of any one shape.

    q (nq,), v (nv,), u (nu,) or None, t () in s.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What it is called in pictures, files and messages."""

    @abc.abstractmethod
    def labels(self, system: System) -> Labels:
        """The name and the SI unit of each of its entries; nothing where these are not known."""

    @abc.abstractmethod
    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: Float[Array, ""],
    ) -> Float[Array, "..."]:
        """Its value at a moment."""


class Function(Quantity):
    """A function or module of a user's own, under a name and a unit.

    unit: SI, "" for none; components: the names of the entries that it returns, where they have
    any. What it holds as arrays are leaves.
    """

    function: Callable[..., Any]
    title: str = eqx.field(static=True)
    unit: str = eqx.field(static=True, default="")
    components: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def name(self) -> str:
        return self.title

    def labels(self, system: System) -> Labels:
        return tuple((component, self.unit) for component in self.components)

    def __call__(self, system: System, q: Any, v: Any, u: Any, t: Any) -> Any:
        return self.function(system, q, v, u, t)


def quantity(
    name: str, unit: str = "", components: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Function]:
    """Makes a quantity of the function below: `@quantity("height of the hand", "m")`.

    components (n,): the names of the entries of what it returns, where there are several.
    """
    return lambda function: Function(function, name, unit, tuple(components))


def as_quantity(given: Any) -> Quantity:
    """The quantity that is given, or one that has the name of a function or module.

    Raises TypeError for what cannot be called, and for a class in place of an object.
    """
    if isinstance(given, Quantity):
        return given
    if inspect.isclass(given):
        raise TypeError(f"the quantity is the class {given.__name__}; write {given.__name__}(...)")
    if not callable(given):
        raise TypeError(
            f"the quantity is {shown(given)}; give a function of (system, q, v, u, t), or an "
            "object such as difflie.quantities.Energy()"
        )
    return Function(given, getattr(given, "__name__", type(given).__name__))


def xyz(unit: str, prefix: str = "") -> Labels:
    """The labels of a vector."""
    return tuple((prefix + axis, unit) for axis in "xyz")


def joined(*parts: jax.Array) -> jax.Array:
    """Arrays (n,) or () as one."""
    return jax.numpy.concatenate([jax.numpy.atleast_1d(part) for part in parts])
