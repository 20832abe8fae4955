"""How a system meets a method: one file for each family of methods, in the variables it needs."""

from __future__ import annotations

from ..integrators import FieldMethod, Method, VariationalMidpoint
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Formulation as Formulation
from .momenta import MomentumFormulation as MomentumFormulation
from .rates import RateFormulation as RateFormulation


def formulated(system: System, linkage: Linkage, method: Method) -> Formulation:
    """The system in the variables of the method."""
    if isinstance(method, FieldMethod):
        return RateFormulation(system, linkage, method)
    if isinstance(method, VariationalMidpoint):
        return MomentumFormulation(system, linkage, method)
    raise TypeError(f"simulate: {method!r} is no method that it knows")
