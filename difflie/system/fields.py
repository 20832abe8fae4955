"""Numeric fields of a module: unit, shape, sign and meaning, declared once, at the field.

    class Drag(Coupling):
        path: Path = eqx.field(converter=as_path)
        area: jax.Array = eqx.field(converter=number(unit="m^2", positive=True))

Validation, file reading, the transforms of identification, and the units in tables, plots and JSON
files all use this declaration.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .validation import LARGEST, ModelError, format_value, is_text, is_traced

# Kinds of values: plain numbers; rotation vectors in rad; directions, whose length has no meaning;
# inertias about the centre of mass; positive semidefinite matrices.
KINDS = "plain", "rotation", "direction", "inertia", "semidefinite"
# Of a field of one number or several: in files a number or a list.
Numbers = Annotated[jax.Array, float | list[float]]
# The squared lengths of directions between these bounds are safe from under- and overflow.
_SHORTEST, _LONGEST = 1e-9, 1e9


@dataclasses.dataclass(frozen=True)
class Number:
    """The converter of a numeric field, with its declaration; see `number`."""

    unit: str = ""
    shape: tuple[int, ...] | None = None
    positive: bool = False
    least: float = -np.inf
    most: float = np.inf
    finite: bool = True
    optional: bool = False
    kind: str = "plain"
    fix: str = ""
    ascending: bool = False

    def __call__(self, value: Any) -> Any:
        """A number or array as a leaf; arrays keep their precision.

        Raises `ModelError` for anything else.
        """
        listed = not isinstance(value, jax.Array) and is_traced(value)
        if not listed and np.iscomplexobj(value):
            raise ModelError(f"{self._given(value)} where a real number is needed")
        if isinstance(value, jax.Array) or (value is None and self.optional):
            return value
        exact = isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating)
        try:
            if is_text(value):
                raise TypeError
            return jnp.asarray(value, None if exact else float)
        except (TypeError, ValueError):
            raise ModelError(f"{self._given(value)} where a number is needed") from None

    def _given(self, value: Any) -> str:
        """The beginning of an error, with the field of which this is the converter."""
        classes: list[type] = [eqx.Module]
        for cls in classes:
            classes += cls.__subclasses__()
            for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
                if field.metadata.get("converter") is self:
                    return f"{field.name}: {format_value(value)} was given"
        return f"{format_value(value)} was given"

    def fault(self, name: str, value: Any) -> str:
        """The fault in a value of the field of this name, with the fix; empty if there is none."""
        if self.shape is not None and jnp.shape(value) != self.shape:
            return f"{name} has shape {jnp.shape(value)}, needed is {self.shape}"
        if isinstance(value, Tracer):
            return ""
        return self._fault_of_size(name, np.asarray(value)) or self._fault_of_kind(
            name, np.asarray(value)
        )

    def _fault_of_size(self, name: str, values: np.ndarray) -> str:
        said, fix = f"{name} is {values.tolist()}", f", {self.fix}" if self.fix else ""
        if self.finite and not np.all(np.isfinite(values)):
            return f"{said}; it must be finite"
        if np.any(np.isnan(values)):
            return f"{name} is not a number"
        if self.finite and self.kind != "direction" and np.any(np.abs(values) > LARGEST):
            return f"{said}; it must be at most {LARGEST:g}"
        said = f"{said} {self.unit}".rstrip()
        if self.positive and np.any(values <= 0):
            return f"{said}; it must be positive{fix}"
        if np.isfinite(self.most) and np.any((values < self.least) | (values > self.most)):
            return f"{said}; it must be between {self.least:g} and {self.most:g}{fix}"
        if np.any(values < self.least):
            bound = "not be negative" if self.least == 0 else f"be {self.least:g} or more"
            return f"{said}; it must {bound}{fix}"
        if self.ascending and values.ndim and np.any(values[..., 1:] < values[..., :-1]):
            return f"{said}; the least comes first"
        return ""

    def _fault_of_kind(self, name: str, values: np.ndarray) -> str:
        if self.kind == "direction" and values.size:
            with np.errstate(over="ignore"):
                length = np.linalg.norm(values.astype(float), axis=-1)
            if np.any(length < _SHORTEST):
                return f"the {name} is zero; give it a direction"
            if np.any(length > _LONGEST):
                longest = np.max(length)
                return (
                    f"the {name} has a length of {longest:.3g}; give it one of at most {_LONGEST:g}"
                )
        if self.kind == "semidefinite":
            return _fault_of_matrix(name, values)
        return ""


def _fault_of_matrix(name: str, values: np.ndarray) -> str:
    rounding = 100 * np.finfo(values.dtype).eps * np.abs(values).max(initial=0)
    if np.abs(values - values.T).max(initial=0) > rounding:
        return f"{name} is not symmetric; give the half sum of it and its transpose"
    least = float(np.linalg.eigvalsh(values).min(initial=0))
    if least < -rounding:
        return f"{name} has the eigenvalue {least:.3g}; none may be negative"
    return ""


def number(
    *,
    unit: str = "",
    shape: tuple[int, ...] | None = (),
    positive: bool = False,
    nonnegative: bool = False,
    least: float = -np.inf,
    most: float = np.inf,
    finite: bool = True,
    optional: bool = False,
    kind: str = "plain",
    fix: str = "",
    ascending: bool = False,
) -> Number:
    """The converter of a field that is a leaf: a finite number, or an array of this shape.

    unit: SI, as messages and tables show it; "" for none. shape: None for any shape. positive,
    nonnegative: the sign of every entry. least, most: the bounds of every entry. finite: False if
    entries may be infinite. optional: None is allowed, and is no leaf.

    kind: "plain"; "rotation", a rotation vector in rad; "direction", whose length has no meaning;
    "inertia", about the centre of mass; "semidefinite", a positive semidefinite matrix. fix: the
    end of the message if a sign or bound is violated. ascending: whether no entry may be less than
    the one before it, along the last axis.

    Raises ValueError for an invalid unit, shape or kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(map(repr, KINDS))}")
    if not isinstance(unit, str):
        raise ValueError(f"unit is {unit!r}; give a string, such as 'N/m'")
    if not (shape is None or (isinstance(shape, tuple) and all(isinstance(n, int) for n in shape))):
        raise ValueError(
            f"shape is {shape!r}; give whole numbers in a tuple, such as (3,), or None"
        )
    least = max(least, 0.0) if nonnegative else least
    return Number(unit, shape, positive, least, most, finite, optional, kind, fix, ascending)


PLAIN = Number()


@functools.lru_cache
def declared(cls: type) -> dict[str, Number]:
    """The numeric fields that a module's class declares by `number`, by field name."""
    converters = {f.name: f.metadata.get("converter") for f in dataclasses.fields(cls)}
    return {name: about for name, about in converters.items() if isinstance(about, Number)}


def number_faults(module: eqx.Module) -> list[str]:
    """The faults in the numbers of a module, each with its fix.

    Leaves in fields not declared by `number` must only be finite. Of traced leaves only the shape
    is checked.
    """
    faults, known = [], declared(type(module))
    for field in dataclasses.fields(module):
        value, about = getattr(module, field.name), known.get(field.name)
        if about is not None:
            faults.append("" if value is None else about.fault(field.name, value))
        elif not field.metadata.get("static"):
            faults += _leaf_faults(field.name, value)
    return [fault for fault in faults if fault]


def _leaf_faults(name: str, value: Any) -> list[str]:
    """The faults in a field that declares nothing."""
    if eqx.is_inexact_array_like(value):
        return [PLAIN.fault(name, value)]
    return [
        f"{name} holds {format_value(leaf)}, which is no number; declare it with "
        "eqx.field(static=True)"
        for leaf in jax.tree.leaves(value)
        if not eqx.is_array_like(leaf)
    ][:1]


def numbers(value: Any, what: str, *shapes: tuple[int, ...], hint: str = "") -> Any:
    """The value as an array of one of these shapes; a jax array stays one.

    Raises `ModelError`, which names the wrong element. Of traced arrays only the shape is checked.
    """
    needed = " or ".join(f"numbers of shape {shape}" if shape else "one number" for shape in shapes)
    if not isinstance(value, jax.Array) and is_traced(value):
        value = jnp.asarray(value, float)
    if np.iscomplexobj(value):
        raise ModelError(f"{what} is complex; give {needed}{hint}")
    try:
        if is_text(value):
            raise TypeError
        array = value if isinstance(value, jax.Array) else np.asarray(value, float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {format_value(value)}; give {needed}{hint}") from None
    if array.shape not in shapes:
        raise ModelError(f"{what} has shape {array.shape}; give {needed}{hint}")
    if isinstance(array, Tracer):
        return array
    wrong = np.argwhere(~(np.abs(np.asarray(array)) <= LARGEST))
    if len(wrong):
        index = tuple(wrong[0].tolist())
        element = f"{what}{list(index)}" if index else what
        raise ModelError(
            f"{element} is {array[index]}; it must be finite, and at most {LARGEST:g} in size"
        )
    return array
