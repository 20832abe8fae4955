"""Numbers as fields of a module: their unit, shape and sign, declared once where they stand.

class Drag(Coupling):
    path: Path = eqx.field(converter=as_path)
    area: jax.Array = eqx.field(converter=number(unit="m^2", positive=True))
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .validation import ModelError


@dataclasses.dataclass(frozen=True)
class Number:
    """The converter of a field, which says what its numbers are; see `number`."""

    unit: str
    shape: tuple[int, ...] | None
    positive: bool
    least: float
    optional: bool
    fix: str

    def __call__(self, value: Any) -> Any:
        """A number or array as a leaf. Raises `ModelError` for what is none."""
        if isinstance(value, jax.Array) or (value is None and self.optional):
            return value
        try:
            return jnp.asarray(value, float)
        except (TypeError, ValueError):
            raise ModelError(f"{value!r} was given where a number is needed") from None

    def fault(self, name: str, value: Any) -> str:
        """What is wrong with the value of the field of this name, and the fix, or nothing."""
        if self.shape is not None and jnp.shape(value) != self.shape:
            return f"{name} has shape {jnp.shape(value)}, needed is {self.shape}"
        if isinstance(value, Tracer):
            return ""
        values = np.asarray(value)
        given = f"{name} is {values.tolist()}"
        if not np.all(np.isfinite(values)):
            return f"{given}; it must be finite"
        fix = f", {self.fix}" if self.fix else ""
        if self.positive and np.any(values <= 0):
            unit = f" {self.unit}" if self.unit else ""
            return f"{given}{unit}; it must be positive{fix}"
        if np.any(values < self.least):
            bound = "not be negative" if self.least == 0 else f"be {self.least:g} or more"
            return f"{given}; it must {bound}{fix}"
        return ""


_PLAIN = Number("", None, False, -np.inf, False, "")


def number(
    *,
    unit: str = "",
    shape: tuple[int, ...] | None = (),
    positive: bool = False,
    nonnegative: bool = False,
    least: float = -np.inf,
    optional: bool = False,
    fix: str = "",
) -> Number:
    """The converter of a field that is a leaf: a finite number, or an array of this shape.

    unit: SI, as messages show it; "" for none. shape: None for any. positive, nonnegative: the sign
    of every entry; least: the smallest value of one. optional: None is allowed, and no leaf. fix:
    what to do where sign or smallest value are not kept, for the end of the message.
    """
    least = max(least, 0.0) if nonnegative else least
    return Number(unit, shape, positive, least, optional, fix)


def number_faults(module: eqx.Module) -> list[str]:
    """What is wrong with the numbers of a module, each with the fix.

    Leaves in fields without `number` need only be finite; of traced ones the shape is checked.
    """
    faults = []
    for field in dataclasses.fields(module):
        value, about = getattr(module, field.name), field.metadata.get("converter")
        if isinstance(about, Number) and value is not None:
            faults.append(about.fault(field.name, value))
        elif eqx.is_inexact_array_like(value) and not field.metadata.get("static"):
            faults.append(_PLAIN.fault(field.name, value))
    return [fault for fault in faults if fault]
