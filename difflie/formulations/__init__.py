"""How a system meets a method: one file for each family of methods, in the variables it needs."""

from __future__ import annotations

from ..integrators import EnergyMomentum, FieldMethod, Method, VariationalMidpoint
from .formulation import Formulation as Formulation
from .momenta import MomentumFormulation as MomentumFormulation
from .natural import NaturalFormulation as NaturalFormulation
from .natural import NaturalMotion as NaturalMotion
from .rates import RateFormulation as RateFormulation


def formulation_of(method: Method) -> type[Formulation]:
    """The variables of a method. Raises TypeError for one without a formulation."""
    if isinstance(method, FieldMethod):
        return RateFormulation
    if isinstance(method, VariationalMidpoint):
        return MomentumFormulation
    if isinstance(method, EnergyMomentum):
        return NaturalFormulation
    raise TypeError(f"simulate: {method!r} is no method that it knows")
