"""Declarations of parameters: which values of a system are free, and how they are transformed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..system.fields import Number
from ..system.system import System
from .inertias import LogCholesky, SecondMoments
from .paths import Entry, alike, meaning, select
from .transforms import (
    Above,
    Definite,
    Direction,
    Identity,
    Interval,
    Rotation,
    Transform,
    positive,
    within,
)

_OF_KINDS: dict[str, Transform] = {
    "plain": Identity(),
    "rotation": Rotation(),
    "direction": Direction(),
    "inertia": SecondMoments(),
    "inertial": LogCholesky(),
    "semidefinite": Definite(),
}


@dataclass(frozen=True)
class Parameter:
    """A declaration of free or fixed numbers, with start, bounds and prior.

    path: that of the values, or a pattern for several, "joint*/damping", or a list of these; see
    `paths`. Each value that matches is free by itself; tied: one value for all of them, which a
    list may take from unlike fields, ["slide/damping", "couplings/0/damping"]. fixed: none is
    free, which excludes them from what an earlier pattern selects. start: the value to start from,
    of the leaf's shape, if not the system's; an inertial one is (10,): mass, centre of mass, and
    inertia about it as xx, xy, xz, yy, yz, zz.

    transform: how the value is made of free numbers. By default inertias stay physically
    consistent, masses, frictions and stiffnesses positive, rotations and directions on their
    manifold. bounds: (lower, upper), numbers or of the value's shape in its unit, None for no
    bound. prior: (mean, standard deviation) of the components that `Parameters.names` names, in
    their units; a mean of None is the start.

    of: a function (system, value) -> system for a number that is no field of the system: it writes
    the value, of the shape of `start`, wherever it belongs, such as one friction into unlike
    joints. path is then its name, start is needed, and unit its unit, by default none.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(damping=0.5), mass=2.0)])
    >>> parameters = dl.Parameters(lift, [dl.Parameter("lift/mass", bounds=(1.0, 5.0))])
    >>> print(parameters.values(parameters.start).round(6))
    [2.]
    """

    path: str | Sequence[str]
    transform: Transform | None = None
    bounds: tuple[Any, Any] | None = None
    start: Any = None
    prior: tuple[Any, Any] | None = None
    tied: bool = False
    fixed: bool = False
    of: Callable[[System, jax.Array], System] | None = None
    unit: str = ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The path, or the paths of a list."""
        return (self.path,) if isinstance(self.path, str) else tuple(self.path)

    @property
    def label(self) -> str:
        """The paths as one name: "a/mass = b/mass" where they are tied."""
        return (" = " if self.tied else ", ").join(self.patterns)


def shared_out(system: System, declared: Sequence[Parameter]) -> list[list[Entry]]:
    """The entries of each declaration, without those that later declarations select.

    Raises ValueError for a declaration without any entries left, for values that share a part with
    another declaration's, and for a fixed one with a transform, bounds, prior or tie.
    """
    owner: dict[Any, str] = {}
    chosen = []
    for k, p in reversed(list(enumerate(declared))):
        if p.fixed and (p.tied or (p.transform, p.bounds, p.prior) != (None, None, None)):
            raise ValueError(
                f"{system.name}: {p.label!r} is fixed; leave out its transform, bounds, prior, tie"
            )
        if p.unit:
            raise ValueError(
                f"{system.name}: {p.label!r} has the unit of its field; leave out {p.unit!r}"
            )
        if not p.patterns:
            raise ValueError(f"{system.name}: a parameter has an empty list of paths; name one")
        left = []
        selected = (entry for pattern in p.patterns for entry in select(system, pattern))
        for entry in dict.fromkeys(selected):
            taken = {owner[part] for part in entry.parts if part in owner}
            if taken and not entry.parts <= owner.keys():
                raise ValueError(
                    f"{system.name}: {entry.path!r} shares a part with {min(taken)!r}, which is "
                    "declared too; declare its components one by one"
                )
            if not taken:
                left.append(entry)
        if not left and p.label in {other.label for other in declared[k + 1 :]}:
            raise ValueError(f"{system.name}: {p.label!r} is declared twice; leave one of them out")
        if not left:
            raise ValueError(
                f"{system.name}: later declarations select all of {p.label!r}; leave it out, or "
                "put it behind them"
            )
        owner.update({part: entry.path for entry in left for part in entry.parts})
        chosen.append(left)
    return chosen[::-1]


def groups(system: System, p: Parameter, selected: Sequence[Entry]) -> list[list[Entry]]:
    """The entries of a declaration, grouped by leaf, declared meaning and shape.

    Values that a list ties are one group, of any leaf. Raises ValueError where a declaration ties
    values of different groups.
    """
    found = alike(system, selected)
    if p.tied and len(p.patterns) > 1 and len({meaning(system, e) for e in selected}) == 1:
        return [list(selected)]
    if p.tied and len(found) > 1:
        unlike = " and ".join(repr(group[0].path) for group in found[:2])
        raise ValueError(
            f"{system.name}: {p.label!r} ties {unlike}; tie values of one leaf and shape, or a "
            "list of paths to unlike fields of one shape, sign and bounds"
        )
    return found


def transform_of(
    where: str, p: Parameter, leaf: str, about: Number, shape: tuple[int, ...]
) -> Transform:
    """The transform of a declaration, for a leaf with values of this meaning and shape.

    Raises ValueError, which begins with `where`, for an unsuitable one.
    """
    if p.transform is not None and p.bounds is not None:
        raise ValueError(f"{where} has a transform and bounds; give one of them")
    if p.bounds is None:
        transform = p.transform or natural(about)
        hint = f"take {type(natural(about)).__name__}"
    elif about.kind != "plain":
        raise ValueError(
            f"{where}: bounds on single numbers would leave the manifold of its values; give a "
            "prior, or WithinEllipsoid to inertial parameters"
        )
    else:
        transform = within(p.bounds)
        hint = "give numbers, or arrays of that shape"
    if not transform.suits(about.kind, shape):
        name = type(transform).__name__
        raise ValueError(f"{where}: {name} does not suit {leaf} with the shape {shape}; {hint}")
    return transform


def natural(about: Number) -> Transform:
    """The default transform, which keeps values what their field declares; often `Identity`."""
    if about.positive:
        return positive()
    if np.isfinite(about.least):
        finite = np.isfinite(about.most)
        return Interval(about.least, about.most) if finite else Above(about.least)
    return _OF_KINDS[about.kind]
