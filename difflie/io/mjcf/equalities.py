"""MuJoCo's equality constraints between bodies, sites and joints, kept exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...constraints import (
    Constraint,
    FixedConstraint,
    Frame,
    LengthConstraint,
    Polynomial,
    PolynomialOfSums,
    Proportional,
    SphericalConstraint,
)
from ...groups import quaternion
from .softness import USUAL
from .tendons import lost, tendon_transmission

_CONNECT, _WELD, _JOINT, _TENDON = range(4)  # kinds: MuJoCo's mjtEq
_JOINT_WRAP = 1  # what a fixed tendon consists of: MuJoCo's mjWRAP_JOINT
_SITE = 6  # what is connected or welded: MuJoCo's mjOBJ_SITE, else bodies


def equality_constraints(
    model: Any, bodies: Sequence[str], joints: Sequence[str], disabled: set[str]
) -> Iterator[Constraint]:
    """The constraints for the active equalities of a MuJoCo model.

    bodies, joints: the names of its bodies but the world, and of its joints. disabled: the option
    flags that are off. A connect is a ball joint, a weld joins both frames, a joint equality holds
    between coordinates relative to the initial pose, as in a System, and so does one of fixed
    tendons, whose lengths are linear in them. Those with spatial tendons are relative to the
    lengths at the initial pose.
    """
    for e in _used(model, disabled):
        first, second, data = int(model.eq_obj1id[e]), int(model.eq_obj2id[e]), model.eq_data[e]
        if model.eq_type[e] == _JOINT:
            coupled = second >= 0
            yield Polynomial(
                joints[first],
                jnp.asarray(data[: 5 if coupled else 1]),
                joints[second] if coupled else None,
            )
            continue
        if model.eq_type[e] == _TENDON:
            yield _of_tendons(model, e, bodies, joints)
            continue
        if _between_sites(model, e):
            frames = [_site_frame(model, s, bodies) for s in (first, second)]
        elif model.eq_type[e] == _CONNECT:
            frames = [_frame(bodies, first, data[:3]), _frame(bodies, second, data[3:6])]
        else:
            frames = [
                _frame(bodies, first, data[3:6], data[6:10]),
                _frame(bodies, second, data[:3]),
            ]
        # A weld with zero weight on rotations constrains the point only.
        turns = model.eq_type[e] == _CONNECT or data[10] == 0
        yield (SphericalConstraint if turns else FixedConstraint)(*frames)


def unused_equalities(model: Any, disabled: set[str]) -> Iterator[tuple[str, str, Sequence[int]]]:
    """The features of equalities that `equality_constraints` ignores, "eq", and which have them."""
    on, used = _active(model, disabled), _used(model, disabled)
    kinds = np.asarray(model.eq_type)
    for what, which in (
        ("equality constraints that are switched off", ~on),
        (
            "equality constraints of tendons around shapes that are missing",
            on & (kinds == _TENDON) & ~_known(model),
        ),
        ("equality constraints of flexes", on & (kinds > _TENDON)),
    ):
        yield what, "eq", np.flatnonzero(which).tolist()
    soft = [
        e
        for e in used
        if any(np.any(getattr(model, f"eq_{n}")[e] != usual) for n, usual in USUAL.items())
    ]
    yield "softness (solref, solimp) of equality constraints", "eq", soft
    turned = [e for e in used if kinds[e] == _WELD and model.eq_data[e, 10] not in (0, 1)]
    yield "softness (torquescale) of equality constraints", "eq", turned


def _active(model: Any, disabled: set[str]) -> np.ndarray:
    return np.asarray(model.eq_active0, bool) & (not disabled & {"equality", "constraint"})


def _used(model: Any, disabled: set[str]) -> list[int]:
    return np.flatnonzero(_active(model, disabled) & _known(model)).tolist()


def _known(model: Any) -> np.ndarray:
    """Which equalities are read: not those of tendons around shapes that are missing."""
    kinds = np.asarray(model.eq_type)
    whole = [
        k == _TENDON and not any(lost(model, t) for t in _tendons(model, e))
        for e, k in enumerate(kinds)
    ]
    return (kinds < _TENDON) | np.array(whole, bool)


def _tendons(model: Any, e: int) -> list[int]:
    """The one or two tendons of an equality."""
    return [int(t) for t in (model.eq_obj1id[e], model.eq_obj2id[e]) if t >= 0]


def _is_fixed(model: Any, tendon: int) -> bool:
    return bool(model.wrap_type[model.tendon_adr[tendon]] == _JOINT_WRAP)


def _of_tendons(model: Any, e: int, bodies: Sequence[str], joints: Sequence[str]) -> Constraint:
    """The equality of one or two tendons: their lengths relative to those at the initial pose."""
    tendons, law = _tendons(model, e), model.eq_data[e, :5].copy()
    if not all(_is_fixed(model, tendon) for tendon in tendons):
        first, *others = (tendon_transmission(model, t, bodies, joints) for t in tendons)
        origins = np.zeros(2)
        origins[: len(tendons)] = model.tendon_length0[tendons]
        second = others[0] if others else None
        return LengthConstraint(first, second, law if others else law[:1], origins)  # pyright: ignore
    sums = [_ratios(model, t, joints) for t in tendons]
    if len(sums) == 2 and np.any(law[2:]):
        (driven, driver) = sums
        return PolynomialOfSums(
            tuple(driven), list(driven.values()), law, tuple(driver), list(driver.values())
        )
    ratios = dict(sums[0])
    for joint, ratio in (sums[1] if len(sums) == 2 else {}).items():
        ratios[joint] = ratios.get(joint, 0.0) - law[1] * ratio
    return Proportional(tuple(ratios), list(ratios.values()), float(law[0]))


def _ratios(model: Any, tendon: int, joints: Sequence[str]) -> dict[str, float]:
    """The coefficients of a fixed tendon by joint."""
    ratios: dict[str, float] = {}
    first = int(model.tendon_adr[tendon])
    for w in range(first, first + int(model.tendon_num[tendon])):
        joint = joints[int(model.wrap_objid[w])]
        ratios[joint] = ratios.get(joint, 0.0) + float(model.wrap_prm[w])
    return ratios


def _between_sites(model: Any, e: int) -> bool:
    # MuJoCo 3.0 and 3.1 have equalities between bodies only.
    kinds = getattr(model, "eq_objtype", None)
    return kinds is not None and kinds[e] == _SITE


def _frame(
    bodies: Sequence[str], body: int, position: np.ndarray, turn: Any = (1.0, 0.0, 0.0, 0.0)
) -> Frame:
    rotation = quaternion.to_matrix(jnp.asarray(turn) / np.linalg.norm(turn))
    return Frame(bodies[body - 1] if body else None, jnp.asarray(position), rotation)


def _site_frame(model: Any, site: int, bodies: Sequence[str]) -> Frame:
    return _frame(bodies, model.site_bodyid[site], model.site_pos[site], model.site_quat[site])
