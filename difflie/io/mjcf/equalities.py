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
    Polynomial,
    Proportional,
    SphericalConstraint,
)
from ...groups import quaternion

_CONNECT, _WELD, _JOINT, _TENDON = range(4)  # kinds: MuJoCo's mjtEq
_JOINT_WRAP = 1  # what a fixed tendon consists of: MuJoCo's mjWRAP_JOINT
_SITE = 6  # what is connected or welded: MuJoCo's mjOBJ_SITE, else bodies
_SOFTNESS = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}  # its defaults


def equality_constraints(
    model: Any, bodies: Sequence[str], joints: Sequence[str], disabled: set[str]
) -> Iterator[Constraint]:
    """The constraints for the active equalities of a MuJoCo model.

    bodies, joints: the names of its bodies but the world, and of its joints. disabled: the option
    flags that are off. A connect is a ball joint, a weld joins both frames, a joint equality holds
    between coordinates relative to the initial pose, as in a System, and so does one of fixed
    tendons, which is linear in them.
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
            yield _of_tendons(model, e, joints)
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
            "equality constraints of tendons that are not fixed ones with a linear law",
            on & (kinds == _TENDON) & ~_known(model),
        ),
        ("equality constraints of flexes", on & (kinds > _TENDON)),
    ):
        yield what, "eq", np.flatnonzero(which).tolist()
    soft = [
        e
        for e in used
        if any(np.any(getattr(model, f"eq_{n}")[e] != usual) for n, usual in _SOFTNESS.items())
    ]
    yield "softness (solref, solimp) of equality constraints", "eq", soft


def _active(model: Any, disabled: set[str]) -> np.ndarray:
    return np.asarray(model.eq_active0, bool) & (not disabled & {"equality", "constraint"})


def _used(model: Any, disabled: set[str]) -> list[int]:
    return np.flatnonzero(_active(model, disabled) & _known(model)).tolist()


def _known(model: Any) -> np.ndarray:
    """Which equalities are read: those of tendons where these are fixed, and the law is linear."""
    kinds = np.asarray(model.eq_type)
    linear = [k == _TENDON and _linear(model, e) for e, k in enumerate(kinds)]
    return (kinds < _TENDON) | np.array(linear, bool)


def _linear(model: Any, e: int) -> bool:
    tendons = [int(t) for t in (model.eq_obj1id[e], model.eq_obj2id[e]) if t >= 0]
    fixed = all(model.wrap_type[model.tendon_adr[t]] == _JOINT_WRAP for t in tendons)
    return fixed and (len(tendons) == 1 or not np.any(model.eq_data[e, 2:5]))


def _of_tendons(model: Any, e: int, joints: Sequence[str]) -> Proportional:
    """The equality of one or two fixed tendons: their lengths relative to the initial pose."""
    ratios: dict[str, float] = {}
    for tendon, factor in ((model.eq_obj1id[e], 1.0), (model.eq_obj2id[e], -model.eq_data[e, 1])):
        if tendon < 0:
            continue
        first = int(model.tendon_adr[tendon])
        for w in range(first, first + int(model.tendon_num[tendon])):
            joint = joints[int(model.wrap_objid[w])]
            ratios[joint] = ratios.get(joint, 0.0) + factor * float(model.wrap_prm[w])
    return Proportional(tuple(ratios), list(ratios.values()), float(model.eq_data[e, 0]))


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
