"""The contacts of a MuJoCo model: which geoms touch, and the numbers of compliant contacts.

They have the stiffness of MuJoCo's soft constraints, see `softness.py`, with the inverse weights of
both bodies.
"""

from __future__ import annotations

import importlib
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...collision.pairs import Pair
from ...system.shown import some
from ...system.validation import warn
from .shapes import OFF, geom_names, touching_geoms
from .softness import soft_numbers

_LEAST = 1e-15
_LEAST_FRICTION = 1e-5  # MuJoCo's mjMINMU


class Contacts(NamedTuple):
    """Pairs of shapes by name, and the numbers (m,) of each, as `with_contacts` takes them."""

    pairs: list[Pair]
    numbers: dict[str, list[float]]


class _Law(NamedTuple):
    """The numbers of one contact, as MuJoCo combines them."""

    solref: np.ndarray
    solimp: np.ndarray
    friction: np.ndarray
    dim: int
    margin: float


def geom_contacts(
    model: Any, bodies: Sequence[str], shapes: Container[str], disabled: set[str], adds: bool
) -> Contacts:
    """The pairs of the shapes that touch in MuJoCo: those of the masks, and explicit ones.

    bodies: the model's but the world; shapes: names of the geoms that are shapes; disabled: the
    option flags that are off. adds: whether margins of two geoms add up, as in MuJoCo 4; before, it
    is the larger one less the larger gap. Warns of pairs with a height field that cannot touch.
    """
    parents = "filterparent" not in disabled
    names = geom_names(model, bodies)
    explicit = {
        frozenset((int(model.pair_geom1[p]), int(model.pair_geom2[p]))): p
        for p in range(model.npair)
    }
    found, laws, deaf = [], [], []
    for a in range(model.ngeom):
        for b in range(a + 1, model.ngeom):
            if names[a] not in shapes or names[b] not in shapes or disabled & OFF:
                continue
            pair = explicit.get(frozenset((a, b)))
            if pair is None and not _collide(model, a, b, parents):
                continue
            if _passes(model, a, b):
                deaf.append(f"{names[a]} and {names[b]}")
                continue
            law = _combined(model, a, b, adds) if pair is None else _given(model, pair, adds)
            law = _overridden(model, law)
            found.append((names[a], names[b]))
            laws.append(_numbers(model, a, b, law))
    if deaf:
        warn(f"height fields touch no ellipsoids and cylinders; left out: {some(deaf, 4)}")
    keys = "stiffness", "dissipation", "friction", "spinning", "rolling", "margin"
    columns = zip(*laws, strict=True) if laws else [()] * len(keys)
    return Contacts(found, {key: list(c) for key, c in zip(keys, columns, strict=True)})


def unread_contacts(model: Any, disabled: set[str]) -> Iterator[tuple[str, str, list[int]]]:
    """What of the contacts that are read is not modelled, and which geoms and pairs have it."""
    if disabled & OFF:
        return
    belts = np.any(getattr(model, "geom_surfacevel", np.zeros((model.ngeom, 1))), axis=1)
    touching = np.isin(np.arange(model.ngeom), touching_geoms(model, disabled))
    yield "surface velocities of geoms", "geom", np.flatnonzero(belts & touching).tolist()
    sticky = getattr(model, "geom_adhesion", np.zeros(model.ngeom)) != 0
    yield "adhesion of geoms", "geom", np.flatnonzero(sticky & touching).tolist()
    sticky = getattr(model, "pair_adhesion", np.zeros(model.npair)) != 0
    yield "adhesion of contact pairs", "pair", np.flatnonzero(sticky).tolist()
    soft = np.flatnonzero(np.any(model.pair_solreffriction, axis=1))
    yield "softness (solreffriction) of contact pairs", "pair", soft.tolist()
    friction = model.pair_friction
    sides = (friction[:, 0] != friction[:, 1]) & (model.pair_dim > 1)
    sides |= (friction[:, 3] != friction[:, 4]) & (model.pair_dim > 4)
    what = "friction of contact pairs that is another in each direction"
    yield what, "pair", np.flatnonzero(sides).tolist()


def _collide(model: Any, a: int, b: int, parents: bool) -> bool:
    """Whether two geoms touch by their masks, and their bodies are not excluded or joined.

    parents: whether a body does not touch the one that it is joined to.
    """
    types, masks = model.geom_contype, model.geom_conaffinity
    if not (types[a] & masks[b]) | (types[b] & masks[a]):
        return False
    one, other = int(model.geom_bodyid[a]), int(model.geom_bodyid[b])
    low, high = min(one, other), max(one, other)
    if (low << 16) + high in model.exclude_signature:
        return False
    weld = model.body_weldid
    first, second = int(weld[one]), int(weld[other])
    if first == second:
        return False
    if not first or not second or not parents:
        return True
    above = (int(weld[model.body_parentid[x]]) for x in (first, second))
    return next(above) != second and next(above) != first


def _passes(model: Any, a: int, b: int) -> bool:
    """Whether two geoms are a height field and a kind of shape that none touches."""
    types = importlib.import_module("mujoco").mjtGeom
    both = {int(model.geom_type[a]), int(model.geom_type[b])}
    return int(types.mjGEOM_HFIELD) in both and not both.isdisjoint(
        (int(types.mjGEOM_ELLIPSOID), int(types.mjGEOM_CYLINDER))
    )


def _combined(model: Any, a: int, b: int, adds: bool) -> _Law:
    """The law of two geoms: that of the one of higher priority, else their mixture."""
    p, q = model.geom_priority[[a, b]]
    dim = max(model.geom_condim[[a, b]])
    margins, gaps = model.geom_margin[[a, b]], model.geom_gap[[a, b]]
    margin = float(margins.sum() if adds else margins.max() - gaps.max())
    if p != q:
        g = a if p > q else b
        return _Law(
            model.geom_solref[g],
            model.geom_solimp[g],
            model.geom_friction[g],
            int(model.geom_condim[g]),
            margin,
        )
    mixes = np.asarray(model.geom_solmix[[a, b]], float)
    small = mixes < _LEAST
    share = 0.5 if small.all() else 0.0 if small[0] else 1.0 if small[1] else mixes[0] / mixes.sum()
    refs, imps = model.geom_solref[[a, b]], model.geom_solimp[[a, b]]
    mixed = share * refs[0] + (1 - share) * refs[1]
    solref = mixed if (refs[:, 0] > 0).all() else np.minimum(refs[0], refs[1])
    friction = np.maximum(model.geom_friction[a], model.geom_friction[b])
    return _Law(solref, share * imps[0] + (1 - share) * imps[1], friction, int(dim), margin)


def _given(model: Any, pair: int, adds: bool) -> _Law:
    """The law of an explicit pair."""
    margin = model.pair_margin[pair] - (0 if adds else model.pair_gap[pair])
    friction = model.pair_friction[pair][[0, 2, 3]]
    dim = int(model.pair_dim[pair])
    return _Law(model.pair_solref[pair], model.pair_solimp[pair], friction, dim, float(margin))


def _overridden(model: Any, law: _Law) -> _Law:
    """The law of a contact with the numbers of the option, where its flag sets those of all."""
    option, flags = model.opt, importlib.import_module("mujoco").mjtEnableBit
    if not option.enableflags & int(flags.mjENBL_OVERRIDE):
        return law
    friction, margin = np.array(option.o_friction)[[0, 2, 3]], float(option.o_margin)
    return _Law(option.o_solref, option.o_solimp, friction, law.dim, margin)


def _numbers(model: Any, a: int, b: int, law: _Law) -> tuple[float, ...]:
    """Stiffness, dissipation, friction, spinning, rolling and margin of a contact."""
    weight = float(model.body_invweight0[model.geom_bodyid[[a, b]], 0].sum())
    rows = _edges(model, law)
    stiffness, dissipation = soft_numbers(model, law.solref, law.solimp, weight, rows)
    slide, spin, roll = map(float, law.friction)
    return (
        stiffness,
        dissipation,
        slide if law.dim > 1 else 0.0,
        spin if law.dim > 3 else 0.0,
        roll if law.dim > 4 else 0.0,
        law.margin,
    )


def _edges(model: Any, law: _Law) -> float:
    """What the edges of a pyramidal cone carry together, by what one normal constraint carries.

    Each of the 2 (dim - 1) edges has 2 mu^2 (1 + s^2) times the regularisation of that, s the
    friction and mu that with impratio.
    """
    pyramids = importlib.import_module("mujoco").mjtCone.mjCONE_PYRAMIDAL
    slide = max(float(law.friction[0]), _LEAST_FRICTION)
    if law.dim == 1 or model.opt.cone != int(pyramids):
        return 1.0
    mu = slide / np.sqrt(model.opt.impratio)
    return (law.dim - 1) / (mu**2 * (1 + slide**2))
