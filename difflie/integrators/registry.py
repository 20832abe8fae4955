"""The methods that are known by name, for `simulate(method="RKMK4")` and configuration files.

The table belongs to the process; nothing else about a method is global.
"""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from .commutator_free import CF2, CF3, CF4, CG2, CG3, CG4
from .convex import ConvexContact
from .embedded_munthe_kaas import BogackiShampine32, DormandPrince54, RungeKutta43
from .energy_momentum import EnergyMomentum
from .gauss import GaussLegendre4, GaussLegendre6, ImplicitMidpoint
from .method import Method
from .moreau import Moreau
from .multistep import BDF1, BDF2, GeneralizedAlpha
from .munthe_kaas import RKMK2, RKMK3, RKMK4, RKMK5, RKMK6, RKMK8
from .partitioned import BodyFixedEuler, SemiImplicitEuler, StormerVerlet
from .rattle import Rattle
from .variational import VariationalMidpoint

METHODS: tuple[Method, ...] = (
    SemiImplicitEuler(),
    BodyFixedEuler(),
    StormerVerlet(),
    CG2(),
    CG3(),
    CG4(),
    CF2(),
    CF3(),
    CF4(),
    RKMK2(),
    RKMK3(),
    RKMK4(),
    RKMK5(),
    RKMK6(),
    RKMK8(),
    BogackiShampine32(),
    RungeKutta43(),
    DormandPrince54(),
    ImplicitMidpoint(),
    GaussLegendre4(),
    GaussLegendre6(),
    EnergyMomentum(),
    VariationalMidpoint(),
    Moreau(),
    ConvexContact(),
    GeneralizedAlpha(),
    BDF1(),
    BDF2(),
    Rattle(),
)

_known: dict[str, Method] = {m.name: m for m in METHODS}


def register(method: Any) -> Any:
    """Makes a method known by its name, and returns it; can be used as a class decorator.

    A class is registered with its default settings, an instance with its own. Raises ValueError for
    a name that is taken. Raises TypeError for something that is no method, and for a class without
    defaults.
    """
    instance = _instance(method)
    if instance.name in _known:
        raise ValueError(
            f"register: the name {instance.name!r} is taken by {_known[instance.name]!r}; give the "
            "method another name"
        )
    _known[instance.name] = instance
    return method


def _instance(method: Any) -> Method:
    if isinstance(method, Method):
        return method
    if not (inspect.isclass(method) and issubclass(method, Method)):
        raise TypeError(f"register: {method!r} is no Method; derive its class from difflie.Method")
    try:
        return method()
    except TypeError as error:
        raise TypeError(
            f"register: {method.__name__}() is not possible ({error}); define what it misses, or "
            "register a method with its settings"
        ) from None


def by_name(name: str) -> Method:
    """The method with this name.

    Raises ValueError, with the nearest known name, if there is none.
    """
    if name in _known:
        return _known[name]
    lower = {k.lower(): k for k in _known}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    hint = f"did you mean {lower[near[0]]}? " if near else ""
    raise ValueError(
        f"unknown method {name!r}; {hint}known: {', '.join(_known)}; difflie.register adds others"
    )
