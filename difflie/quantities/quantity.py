"""The quantity protocol: a function of a state, with a name and units."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..system.system import System
from ..system.user_functions import called
from ..system.user_functions import no_leaf as no_leaf
from ..system.validation import format_value

Labels = tuple[tuple[str, str], ...]


class Quantity(eqx.Module):
    """A function of a state, f(system, q, v, u, t), that returns an array of real numbers (...).

    q (nq,), v (nv,), u (nu,) or None, t () in s.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Its name in figures, files and messages."""

    @abc.abstractmethod
    def labels(self, system: System) -> Labels:
        """The name and the SI unit of each of its entries; empty if they are not known."""

    @abc.abstractmethod
    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, "..."]:
        """Its value at a moment."""

    def difference(self, value: jax.Array, other: jax.Array) -> jax.Array:
        """How far a value (...) is from another one, by default value - other."""
        return value - other


class Function(Quantity):
    """A user's function or module, with a name and a unit.

    function(system, q, v, u, t), as of `Quantity`; title: its name in figures and files; unit: SI,
    "" for none; components: the names of the entries that it returns, if there are several. Arrays
    it holds are leaves.
    """

    function: Callable[..., Any] = eqx.field(converter=no_leaf)
    title: str = eqx.field(static=True)
    unit: str = eqx.field(static=True, default="")
    components: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def name(self) -> str:
        return self.title

    def labels(self, system: System) -> Labels:
        return tuple((component, self.unit) for component in self.components)

    def __call__(
        self, system: System, q: jax.Array, v: jax.Array, u: jax.Array | None, t: jax.Array | float
    ) -> Any:
        return called(self.function, system, q, v, u, t, names="quantity(system, q, v, u, t)")


class Entries(Quantity):
    """Some entries (k,) of another quantity of shape (n,), such as the force of a wrench.

    of: the quantity; entries (k,): their numbers, from 0.
    """

    of: Quantity
    entries: tuple[int, ...] = eqx.field(static=True, converter=tuple)

    @property
    def name(self) -> str:
        return f"entries {', '.join(map(str, self.entries))} of the {self.of.name}"

    def labels(self, system: System) -> Labels:
        every = self.of.labels(system)
        return tuple(every[i] for i in self.entries) if every else ()

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " k"]:
        return jax.numpy.ravel(self.of(system, q, v, u, t))[jax.numpy.array(self.entries)]


class Sum(Quantity):
    """The sum of quantities of one shape, such as of the forces of several actuators."""

    of: tuple[Quantity, ...] = eqx.field(converter=tuple)

    @property
    def name(self) -> str:
        return " + ".join(part.name for part in self.of)

    def labels(self, system: System) -> Labels:
        return self.of[0].labels(system)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Any:
        return sum(part(system, q, v, u, t) for part in self.of)


class Joined(Quantity):
    """The entries (n,) of several quantities, one after the other."""

    of: tuple[Quantity, ...] = eqx.field(converter=tuple)

    @property
    def name(self) -> str:
        return ", ".join(part.name for part in self.of)

    def labels(self, system: System) -> Labels:
        every = [part.labels(system) for part in self.of]
        return tuple(label for labels in every for label in labels) if all(every) else ()

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " n"]:
        return joined(*(part(system, q, v, u, t) for part in self.of))


def quantity(
    name: str, unit: str = "", components: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Function]:
    """A decorator that makes a function a quantity: `@quantity("height of the hand", "m")`.

    The function is f(system, q, v, u, t), as of `Quantity`. name: in figures and files; unit: SI,
    "" for none; components (n,): the names of the entries it returns, if there are several. Raises
    TypeError for a name or unit that is no string.
    """
    if not (isinstance(name, str) and isinstance(unit, str)):
        raise TypeError(
            f"the quantity has the name {format_value(name)} and the unit {format_value(unit)}; "
            "write "
            '@quantity("NAME", "UNIT") above the function, the unit in SI, "" for none'
        )
    return lambda function: Function(function, name, unit, tuple(components))


def as_quantity(value: Any) -> Quantity:
    """The quantity itself, or a function or module as a quantity with its own name.

    Raises TypeError for an object that cannot be called, and for a class instead of an object.
    """
    if isinstance(value, Quantity):
        return value
    if inspect.isclass(value):
        raise TypeError(f"the quantity is the class {value.__name__}; write {value.__name__}(...)")
    if not callable(value):
        raise TypeError(
            f"the quantity is {format_value(value)}; give a function of (system, q, v, u, t), or "
            "an object such as difflie.quantities.Energy()"
        )
    return Function(value, getattr(value, "__name__", type(value).__name__))


def xyz(unit: str, prefix: str = "") -> Labels:
    """The labels (3,) of a vector."""
    return tuple((prefix + axis, unit) for axis in "xyz")


def joined(*parts: jax.Array) -> jax.Array:
    """Arrays (n,) or () concatenated to one (m,)."""
    return jax.numpy.concatenate([jax.numpy.atleast_1d(part) for part in parts])
