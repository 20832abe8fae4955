"""How a system becomes the problem of a method: one file for each family of methods."""

from __future__ import annotations

from typing import Any

from ..constraints.friction import with_friction
from ..constraints.stabilisation import Stabilisation
from ..constraints.unilateral import Unilateral
from ..integrators import Method
from ..system.kinematic_tree import Tree
from ..system.system import System
from .convex import ConvexFormulation as ConvexFormulation
from .convex import ConvexMotion as ConvexMotion
from .descriptor import DescriptorFormulation as DescriptorFormulation
from .descriptor import DescriptorMotion as DescriptorMotion
from .formulation import Formulation as Formulation
from .formulation import Inputs as Inputs
from .formulation import Known as Known
from .formulation import RestFormulation as RestFormulation
from .formulation import constant as constant
from .internal_states import BesideTheMotion as BesideTheMotion
from .momenta import ConstrainedMomentumFormulation as ConstrainedMomentumFormulation
from .momenta import ConstrainedMotion as ConstrainedMotion
from .momenta import MomentumFormulation as MomentumFormulation
from .natural import NaturalFormulation as NaturalFormulation
from .natural import NaturalMotion as NaturalMotion
from .nonsmooth import ContactMotion as ContactMotion
from .nonsmooth import NonsmoothFormulation as NonsmoothFormulation
from .rates import ConstrainedRateFormulation as ConstrainedRateFormulation
from .rates import RateFormulation as RateFormulation

# The first one that fits the method and supports everything in the system is used.
FORMULATIONS: tuple[type[Formulation], ...] = (
    RateFormulation,
    ConstrainedRateFormulation,
    MomentumFormulation,
    ConstrainedMomentumFormulation,
    DescriptorFormulation,
    NaturalFormulation,
    NonsmoothFormulation,
    ConvexFormulation,
)


def formulation_of(method: Method, system: System) -> type[Formulation]:
    """The formulation of a system for a method: the equations that it integrates.

    Raises TypeError if no formulation makes the problems of the method. Raises ValueError if these
    do not support something in the system, or cannot describe it.
    """
    offered = _offered(method)
    if not system.nv:
        return RestFormulation
    needed = {name: things for name, things in _parts(system).items() if things}
    for name, things in needed.items():
        if not any(name in kind.supports for kind in offered):
            reason, fix = _REFUSALS[name]
            raise ValueError(
                f"simulate: {method.name} {reason}, and {system.name} has "
                f"{', '.join(map(str, things))}; {fix}"
            )
    kind = next(kind for kind in offered if kind.supports >= needed.keys())
    kind.check(method, system)
    return kind


def formulated(tree: Tree, method: Method, stabilisation: Stabilisation) -> Formulation:
    """The formulation of a system, ready for a method."""
    kind = formulation_of(method, tree.system)
    return BesideTheMotion.around(kind.of(tree, method, stabilisation))


def _offered(method: Method) -> list[type[Formulation]]:
    """The formulations that make the problems of a method, or the one that it brings itself."""
    wanted = getattr(method, "equations", None)
    offered = [kind for kind in FORMULATIONS if kind.equations is wanted]
    if not offered and isinstance(wanted, type) and issubclass(wanted, Formulation):
        return [wanted]
    if not offered:
        known = ", ".join(dict.fromkeys(kind.equations.__name__ for kind in FORMULATIONS))
        raise TypeError(
            f"simulate: {type(method).__name__}.equations is {wanted!r}; it must be one of {known} "
            "of difflie.integrators, or a Formulation"
        )
    return offered


def _parts(system: System) -> dict[str, list[Any]]:
    """The parts of a system that not every formulation supports."""
    return {
        "contacts": [c for c in system.constraints if isinstance(c, Unilateral)],
        "joint friction": [c for _, c in with_friction(system)],
        "constraints": list(system.constraints),
    }


_REFUSALS = {
    "contacts": ("switches no contacts", "use Moreau, or contact forces in their place"),
    "joint friction": ("has no friction in joints", "use a method such as RKMK4"),
    "constraints": ("keeps no constraints", "use a method that does, such as RKMK4"),
}
