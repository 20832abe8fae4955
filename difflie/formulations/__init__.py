"""How a system meets a method: one file for each family of methods, in the variables it needs."""

from __future__ import annotations

from ..integrators import EnergyMomentum, FieldMethod, Method
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Formulation as Formulation
from .natural import NaturalFormulation as NaturalFormulation
from .rates import RateFormulation as RateFormulation


def formulated(system: System, linkage: Linkage, method: Method) -> Formulation:
    """The system in the variables of the method."""
    if isinstance(method, FieldMethod):
        return RateFormulation(system, linkage, method)
    if isinstance(method, EnergyMomentum):
        return NaturalFormulation(system, linkage, method)
    raise TypeError(f"simulate: {method!r} is no method that it knows")
