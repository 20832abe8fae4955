"""What is checked of a joint type of one's own, once for every joint when a system is built."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ..groups import FlatManifold
from .joints import UNITS, Joint, Series
from .validation import ModelError, numbers

Array = jax.Array | np.ndarray


def check_type(joint: Joint, where: str) -> None:
    """Raises `ModelError` for numbers, shapes or a subspace that no joint of its type has."""
    cls, known = type(joint), Series if joint.in_series else Joint
    for name in ("dofs",) if joint.in_series else ("manifold", "transform"):
        if getattr(cls, name) is getattr(known, name):
            raise ModelError(
                f"{where}: {cls.__name__} has no {name}; a joint type of one's own needs it"
            )
    _check_fields(joint, where)
    for dof in joint.dofs():
        if dof.kind not in UNITS:
            raise ModelError(
                f"{where}: a degree of freedom is of the kind {dof.kind!r}; known are "
                f"{', '.join(UNITS)}"
            )
    if joint.in_series:
        return
    if not isinstance(joint.manifold, FlatManifold):
        raise ModelError(
            f"{where}: its manifold is {joint.manifold!r}; give a manifold with flat points such "
            "as difflie.groups.Euclidean(1)"
        )
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


def _check_motion(joint: Joint, where: str) -> None:
    """Transform, subspace and bias at a point at random, against derivatives of the transform."""
    rng, space = np.random.default_rng(0), joint.manifold
    xi, v = jnp.asarray(rng.uniform(-1, 1, (2, space.tangent_size)))
    q = space.retract(jnp.asarray(space.identity(), xi.dtype), xi)
    T, S = joint.transform(q), joint.motion_subspace(q)
    for name, value, shape in (
        ("transform", T, (4, 4)),
        ("motion_subspace", S, (6, len(v))),
        ("bias", joint.bias(q, v), (6,)),
    ):
        if jnp.shape(value) != shape:
            raise ModelError(f"{where}: {name} has shape {jnp.shape(value)}, needed is {shape}")
    rotation = np.asarray(T)[:3, :3]
    _refuse_mismatch(
        f"{where}: the transform has no rotation matrix", rotation @ rotation.T, np.eye(3)
    )
    _refuse_mismatch(
        f"{where}: motion_subspace is not the derivative of transform",
        S,
        Joint.motion_subspace(joint, q),
    )
    _refuse_mismatch(
        f"{where}: bias is not the derivative of motion_subspace",
        joint.bias(q, v),
        Joint.bias(joint, q, v),
    )
    if all(dof.axial for dof in joint.dofs()):
        columns = np.stack([dof.screw for dof in joint.dofs()], axis=1)
        _refuse_mismatch(f"{where}: dofs are not the columns of motion_subspace", columns, S)


def _refuse_mismatch(what: str, found: Array, wanted: Array) -> None:
    a, b = np.asarray(found), np.asarray(wanted)
    size = float(np.max(np.abs(a - b), initial=0))
    allowed = float(jnp.finfo(jnp.result_type(float)).eps) ** 0.5
    if not size <= allowed * (1 + float(np.max(np.abs(b), initial=0))):
        raise ModelError(f"{what}: they differ by {size:.3g}; correct one of them")
