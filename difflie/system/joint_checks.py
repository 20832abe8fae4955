"""Checks of a user-defined joint type, made for every joint when a system is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..groups import FlatManifold
from .joints import UNITS, Joint, Series
from .traverse import for_each
from .validation import ModelError, numbers

Array = jax.Array | np.ndarray


def check_type(joint: Joint, where: str) -> None:
    """Raises `ModelError` if the numbers, shapes or motion subspace of a joint are inconsistent."""
    cls, known = type(joint), Series if joint.in_series else Joint
    for name in ("dofs",) if joint.in_series else ("manifold", "transform"):
        if getattr(cls, name) is getattr(known, name):
            raise ModelError(
                f"{where}: {cls.__name__} has no {name}; a user-defined joint type needs it"
            )
    if any(isinstance(value, dataclasses.Field) for value in vars(cls).values()):
        raise ModelError(
            f"{where}: {cls.__name__} has fields and is no dataclass; write "
            "@dataclass(frozen=True, kw_only=True) above the class"
        )
    _check_fields(joint, where)
    if not joint.in_series:
        if joint.numbers():
            _check_fixed(joint, where)
        _check_shapes(joint, where)
    elif joint.numbers():
        raise ModelError(
            f"{where}: {cls.__name__} is a joint in series, whose axes and pitches are its "
            f"numbers, and {joint.numbers()[0]} is none of them; leave difflie.number out, or "
            "derive the type from difflie.Joint"
        )
    for dof in joint.dofs():
        if dof.kind not in UNITS:
            raise ModelError(
                f"{where}: a degree of freedom is of the kind {dof.kind!r}; known are "
                f"{', '.join(UNITS)}"
            )
    if joint.in_series:
        return
    size, count = joint.manifold.tangent_size, len(joint.dofs())
    if size != count:
        raise ModelError(
            f"{where}: its manifold has tangents ({size},) and its dofs are {count}; give one for "
            "each entry of the tangent"
        )
    _check_motion(joint, where)


def _check_fields(joint: Joint, where: str) -> None:
    for field in dataclasses.fields(joint):
        if "converter" in field.metadata:
            value = numbers(getattr(joint, field.name), f"{where}: {field.name}")
            fault = field.metadata["converter"].fault(field.name, value)
            if fault:
                raise ModelError(f"{where}: {fault}")
    for field in dataclasses.fields(joint.without_numbers()):
        try:
            hash(getattr(joint.without_numbers(), field.name))
        except TypeError:
            raise ModelError(
                f"{where}: the field {field.name} of {type(joint).__name__} cannot be hashed; "
                "declare it with difflie.number if it is a number or an array"
            ) from None


def _check_fixed(joint: Joint, where: str) -> None:
    """Raises `ModelError` if the structure of a joint depends on its numbers."""
    bare = joint.without_numbers()
    try:
        fixed = repr((bare.manifold, bare.dofs())) == repr((joint.manifold, joint.dofs()))
    except (TypeError, ValueError, AttributeError):
        fixed = False
    if not fixed:
        raise ModelError(
            f"{where}: the manifold or the dofs of {type(joint).__name__} depend on its numbers; "
            'let them depend on other fields, and such a degree of freedom be Dof("angle") or '
            'Dof("length")'
        )


def _check_shapes(joint: Joint, where: str) -> None:
    if not isinstance(joint.manifold, FlatManifold):
        raise ModelError(
            f"{where}: its manifold is {joint.manifold!r}; give a manifold with flat points such "
            "as difflie.groups.Euclidean(1)"
        )
    bare, at, n = joint.without_numbers(), _at_random(joint), joint.manifold.tangent_size
    for name, shape in ("transform", (4, 4)), ("motion_subspace", (6, n)), ("bias", (6,)):
        value = jax.eval_shape(partial(_evaluated, bare, name), *at)
        if getattr(value, "shape", None) != shape:
            size = f"has shape {value.shape}" if hasattr(value, "shape") else f"is {value}"
            raise ModelError(f"{where}: {name} {size}, needed is {shape}")


def _at_random(joint: Joint) -> tuple[dict[str, Array], jax.Array, jax.Array]:
    """Numbers of a joint, a tangent (n,) and a velocity (n,), all at random."""
    xi, v = np.random.default_rng(0).uniform(-1, 1, (2, joint.manifold.tangent_size))
    own = {name: np.asarray(getattr(joint, name), float) for name in joint.numbers()}
    with jax.ensure_compile_time_eval():  # concrete numbers, even inside a trace
        return jax.tree.map(jnp.asarray, (own, xi, v))


def _check_motion(joint: Joint, where: str) -> None:
    """Checks transform, subspace and bias at a random point against derivatives."""
    with jax.ensure_compile_time_eval():
        bare, at = joint.without_numbers(), _at_random(joint)
        (T, S, bias), (S_wanted, bias_wanted) = _evaluate(_motion, bare, *at)
    _refuse_mismatch(
        f"{where}: the transform has no rotation matrix", T[:3, :3] @ T[:3, :3].T, np.eye(3)
    )
    _refuse_mismatch(f"{where}: motion_subspace is not the derivative of transform", S, S_wanted)
    _refuse_mismatch(f"{where}: bias is not the derivative of motion_subspace", bias, bias_wanted)
    if all(dof.axial for dof in joint.dofs()):
        columns = np.stack([dof.screw for dof in joint.dofs()], axis=1)
        _refuse_mismatch(f"{where}: dofs are not the columns of motion_subspace", columns, S)


def _placed(joint: Joint, own: dict[str, Array], xi: jax.Array) -> tuple[Joint, jax.Array]:
    """The joint with these numbers, and its coordinates retract(neutral, xi)."""
    space = joint.manifold
    return joint.with_numbers(own), space.retract(jnp.asarray(space.identity(), xi.dtype), xi)


def _evaluated(
    joint: Joint, name: str, own: dict[str, Array], xi: jax.Array, v: jax.Array
) -> jax.Array:
    joint, q = _placed(joint, own, xi)
    return joint.bias(q, v) if name == "bias" else getattr(joint, name)(q)


def _motion(joint: Joint, own: dict[str, Array], xi: jax.Array, v: jax.Array) -> tuple:
    """Transform, subspace and bias, and the last two as derivatives of those before them."""
    joint, q = _placed(joint, own, xi)
    derived = Joint.motion_subspace(joint, q), Joint.bias(joint, q, v)
    return (joint.transform(q), joint.motion_subspace(q), joint.bias(q, v)), derived


def pose_and_subspace(joint: Joint, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T (4, 4) and S (6, n) at the coordinates retract(neutral, xi)."""
    own = {name: np.asarray(getattr(joint, name), float) for name in joint.numbers()}
    with jax.ensure_compile_time_eval():
        at = jax.tree.map(jnp.asarray, (own, xi))
        return _evaluate(_pose, joint.without_numbers(), *at)


def _pose(joint: Joint, own: dict[str, Array], xi: jax.Array) -> tuple:
    joint, q = _placed(joint, own, xi)
    dofs = joint.dofs()
    constant = all(dof.axial for dof in dofs)
    S = np.stack([dof.screw for dof in dofs], 1) if constant else joint.motion_subspace(q)
    return joint.transform(q), S


def _evaluate(f: Callable[..., Any], joint: Joint, *at: Any) -> Any:
    """f(joint, ...) as concrete numbers."""
    return jax.device_get(_compiled(f, joint, *at))


# Once for all joints of a type.
@partial(jax.jit, static_argnums=(0, 1))
def _compiled(f: Callable[..., Any], joint: Joint, *at: Any) -> Any:
    each = for_each(partial(f, joint))(*jax.tree.map(lambda a: a[None], at))
    return jax.tree.map(lambda a: a[0], each)


def _refuse_mismatch(what: str, actual: Array, wanted: Array) -> None:
    a, b = np.asarray(actual), np.asarray(wanted)
    size = float(np.max(np.abs(a - b), initial=0))
    allowed = float(jnp.finfo(jnp.result_type(float)).eps) ** 0.5
    if not size <= allowed * (1 + float(np.max(np.abs(b), initial=0))):
        raise ModelError(f"{what}: they differ by {size:.3g}; correct one of them")
