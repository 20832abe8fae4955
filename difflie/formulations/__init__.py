"""How a system meets a method: one file for each family of methods, in the variables it needs."""

from __future__ import annotations

from ..constraints.friction import with_friction
from ..constraints.stabilisation import Stabilisation
from ..constraints.unilateral import Unilateral
from ..integrators import (
    DescriptorMethod,
    EnergyMomentum,
    FieldMethod,
    Method,
    Moreau,
    Rattle,
    VariationalMidpoint,
)
from ..system.linkage import Linkage
from ..system.system import System
from .constrained_momenta import ConstrainedMomentumFormulation as ConstrainedMomentumFormulation
from .constrained_momenta import ConstrainedMotion as ConstrainedMotion
from .constrained_rates import ConstrainedRateFormulation as ConstrainedRateFormulation
from .descriptor import DescriptorFormulation as DescriptorFormulation
from .descriptor import DescriptorMotion as DescriptorMotion
from .formulation import Formulation as Formulation
from .formulation import Inputs as Inputs
from .momenta import MomentumFormulation as MomentumFormulation
from .natural import NaturalFormulation as NaturalFormulation
from .natural import NaturalMotion as NaturalMotion
from .nonsmooth import ContactMotion as ContactMotion
from .nonsmooth import NonsmoothFormulation as NonsmoothFormulation
from .rates import RateFormulation as RateFormulation
from .rest import RestFormulation as RestFormulation


def formulation_of(method: Method, system: System) -> type[Formulation]:
    """The variables of a method. Raises TypeError for one without a formulation.

    ValueError for a system that they do not describe.
    """
    contacts = [c for c in system.constraints if isinstance(c, Unilateral)]
    if contacts and not isinstance(method, Moreau):
        raise ValueError(
            f"simulate: {method.name} switches no contacts, and {system.name} has "
            f"{', '.join(map(str, contacts))}; use Moreau, or contact forces in their place"
        )
    if with_friction(system) and not isinstance(method, FieldMethod):
        raise ValueError(
            f"simulate: {method.name} has no friction in joints, and {system.name} has "
            f"{', '.join(str(c) for _, c in with_friction(system))}; use a method such as RKMK4"
        )
    found = _kind(method, bool(system.constraints)) if system.nv else RestFormulation
    found.check(method, system)
    return found


def formulated(
    system: System, linkage: Linkage, method: Method, stabilisation: Stabilisation
) -> Formulation:
    """A system in the variables of a method."""
    kind = formulation_of(method, system)
    if kind is ConstrainedRateFormulation:
        assert isinstance(method, FieldMethod)
        return ConstrainedRateFormulation(system, linkage, method, stabilisation)
    return kind(system, linkage, method)


def _kind(method: Method, constrained: bool) -> type[Formulation]:
    if isinstance(method, Moreau):
        return NonsmoothFormulation
    if isinstance(method, FieldMethod):
        return ConstrainedRateFormulation if constrained else RateFormulation
    if isinstance(method, DescriptorMethod):
        return DescriptorFormulation
    if isinstance(method, Rattle):
        return ConstrainedMomentumFormulation
    if constrained:
        raise ValueError(
            f"simulate: {method.name} keeps no constraints; use a method that does, such as RKMK4"
        )
    if isinstance(method, VariationalMidpoint):
        return MomentumFormulation
    if isinstance(method, EnergyMomentum):
        return NaturalFormulation
    raise TypeError(f"simulate: {method!r} is no method that it knows")
