"""Checks of bodies and joints when a system is built.

Of their numbers, of user-defined joint types, and of joints that move no inertia, for which the
mass matrix is singular at every q.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..groups import FlatManifold
from .body import Body
from .joints import ROW_FIELDS, TYPES, UNITS, Joint, Series
from .system import NUMBERS
from .traverse import for_each
from .validation import ModelError, format_value, numbers

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


Placed = tuple[dict[str, Array], jax.Array, jax.Array]


def _at(joint: Joint, xi: np.ndarray) -> Placed:
    """The numbers of a joint, its neutral coordinates, and a tangent (n,) from there."""
    # Arguments of programs: operations on constants would be compiled one by one.
    own = {name: np.asarray(getattr(joint, name), float) for name in joint.numbers()}
    neutral = np.asarray(joint.manifold.identity(), float)
    with jax.ensure_compile_time_eval():  # concrete numbers, even inside a trace
        return jax.tree.map(jnp.asarray, (own, neutral, xi))


def _at_random(joint: Joint) -> tuple[Placed, jax.Array]:
    """The same for a tangent at random, and a velocity (n,) at random."""
    xi, v = np.random.default_rng(0).uniform(-1, 1, (2, joint.manifold.tangent_size))
    with jax.ensure_compile_time_eval():
        return _at(joint, xi), jnp.asarray(v)


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


def _placed(joint: Joint, at: Placed) -> tuple[Joint, jax.Array]:
    """The joint with these numbers, and its coordinates retract(neutral, xi)."""
    own, neutral, xi = at
    return joint.with_numbers(own), joint.manifold.retract(neutral, xi)


def _evaluated(joint: Joint, name: str, at: Placed, v: jax.Array) -> jax.Array:
    joint, q = _placed(joint, at)
    return joint.bias(q, v) if name == "bias" else getattr(joint, name)(q)


def _motion(joint: Joint, at: Placed, v: jax.Array) -> tuple:
    """Transform, subspace and bias, and the last two as derivatives of those before them."""
    joint, q = _placed(joint, at)
    derived = Joint.motion_subspace(joint, q), Joint.bias(joint, q, v)
    return (joint.transform(q), joint.motion_subspace(q), joint.bias(q, v)), derived


def pose_and_subspace(joint: Joint, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T (4, 4) and S (6, n) at the coordinates retract(neutral, xi)."""
    with jax.ensure_compile_time_eval():
        return _evaluate(_pose, joint.without_numbers(), _at(joint, xi))


def _pose(joint: Joint, at: Placed) -> tuple:
    joint, q = _placed(joint, at)
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


# Negligible momentum, relative to that of the joint's motion in another direction.
_NOTHING = 1e-7


def massless(bodies: list[Body], mimics: list[int | None]) -> Iterator[str]:
    """A warning for every joint whose acceleration is undetermined because it moves no inertia.

    This can be a joint alone, such as one with a point mass on its axis, or several joints
    together, such as joints with parallel axes.
    """
    if all(map(_has_inertia, bodies)):
        return
    free = _undetermined(*_momenta(bodies, mimics))
    for i, b in enumerate(bodies):
        if i in free:
            where = b.source or f"body {b.name!r}"
            yield (
                f"{where}: joint {b.joint.name or b.name!r} moves no mass or inertia in some "
                "direction, by itself or together with other joints, so that its acceleration is "
                "not determined; give the body a mass and an inertia or the joint an armature, or "
                "fix the joint"
            )


def _has_inertia(body: Body) -> bool:
    """Whether a joint moves its body's own inertia in all directions, at all angles.

    If all joints do, zero momentum implies zero velocity, body after body from the world outwards.
    """
    dofs, mass, com = body.joint.dofs(), body.mass, np.asarray(body.com, float)
    inertia = np.asarray(body.inertia, float)
    about_joint = inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))
    enough = 1e-12 * np.trace(about_joint)
    if not body.joint.in_series:
        return all(dof.axial for dof in dofs) and _resists(body, about_joint)
    for dof in dofs:
        axis = np.asarray(dof.axis, float) / np.linalg.norm(dof.axis)
        turned = dof.kind != "prismatic" and axis @ about_joint @ axis > enough
        if not (turned or (dof.kind == "prismatic" and mass > 0)):
            return False
    # Two or more axes may be parallel.
    return len(dofs) <= 1


def _resists(body: Body, about_joint: np.ndarray) -> bool:
    """Whether the body's inertia resists every motion in a constant subspace."""
    first = body.mass * np.asarray(body.com, float)
    skew = np.cross(np.eye(3), first)
    inertia = np.block([[about_joint, skew], [skew.T, body.mass * np.eye(3)]])
    columns = np.stack([dof.screw for dof in body.joint.dofs()], axis=1)
    own = columns.T @ inertia @ columns
    size = np.sqrt(np.diag(own))
    return bool(np.all(size > 0) and np.linalg.eigvalsh(own / np.outer(size, size))[0] > 1e-12)


def _undetermined(joints: list[int], momenta: np.ndarray, sizes: np.ndarray) -> set[int]:
    """The joints that take part in a motion without momentum, from the columns of `_momenta`."""
    length = np.linalg.norm(momenta, axis=0)
    still = length <= _NOTHING * sizes
    moving = np.flatnonzero(~still)
    columns = set(np.flatnonzero(still).tolist())
    if moving.size:
        _, values, motions = np.linalg.svd(momenta[:, moving] / length[moving])
        without = motions[np.append(values, np.zeros(len(motions) - len(values))) < _NOTHING]
        columns |= set(moving[np.any(np.abs(without) > 1e-6, axis=0)].tolist())
    return {joints[k] for k in columns}


def _momenta(
    bodies: list[Body], mimics: list[int | None]
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """The joint of every velocity, and the momenta of all inertias at its unit rate, at a random q.

    The columns (6 nb + n_dofs, nv) are scaled so that their products are the entries of the mass
    matrix. sizes (nv,): what their lengths could be in another direction.
    """
    rng = np.random.default_rng(0)
    index = {b.name: i for i, b in enumerate(bodies)}
    dofs = [(i, k) for i, b in enumerate(bodies) for k in range(len(b.joint.dofs()))]
    joints = [i for i, _ in dofs if mimics[i] is None]
    column = {dof: k for k, dof in enumerate(d for d in dofs if mimics[d[0]] is None)}
    coordinates = rng.normal(size=len(joints))
    turns, origins, screws = [], [], []
    blocks, sizes = [], np.zeros(len(joints))
    for i, b in enumerate(bodies):
        above = None if b.parent is None else index[b.parent]
        turn, origin = (np.eye(3), np.zeros(3)) if above is None else (turns[above], origins[above])
        moved = [] if above is None else screws[above].copy()
        origin, turn = origin + turn @ np.asarray(b.position, float), turn @ _matrix(b.rotation)
        own_dofs = b.joint.dofs()
        subspace = np.zeros((6, 0))
        if not b.joint.in_series:
            pose, subspace = pose_and_subspace(b.joint, rng.normal(size=len(own_dofs)))
            origin, turn = origin + turn @ pose[:3, 3], turn @ pose[:3, :3]
        for k, dof in enumerate(own_dofs):
            source = mimics[i]
            ratio = 1.0 if b.joint.mimic is None else b.joint.mimic.multiplier
            j = column[(i if source is None else source, k)]
            x = ratio * coordinates[j] + (0.0 if b.joint.mimic is None else b.joint.mimic.offset)
            screw = dof.screw if b.joint.in_series else subspace[:, k]
            w, along = turn @ screw[:3], turn @ screw[3:]
            moved.append((j, ratio * w, ratio * along, origin))
            if b.joint.in_series:
                turn, origin = _matrix(x * w) @ turn, origin + x * along
            resisting = np.zeros((1, len(joints)))
            resisting[0, j] = ratio * np.sqrt(np.broadcast_to(b.joint.armature, len(own_dofs))[k])
            blocks.append(resisting)
        turns.append(turn)
        origins.append(origin)
        screws.append(moved)
        inertia = np.asarray(b.inertia, float)
        values, axes = np.linalg.eigh((inertia + inertia.T) / 2)
        root = np.sqrt(np.maximum(values, 0))[:, None] * axes.T
        centre = origin + turn @ np.asarray(b.com, float)
        own = np.zeros((6, len(joints)))
        if moved:
            js, w, along, point = (np.array(each) for each in zip(*moved, strict=True))
            lever = centre - point
            # A joint with mimics occurs several times.
            np.add.at(own[:3].T, js, np.sqrt(b.mass) * (along + np.cross(w, lever)))
            np.add.at(own[3:].T, js, w @ turn @ root.T)
            ww, far = np.sum(w**2, axis=1), np.sum(lever**2, axis=1)
            own_mass = b.mass * (np.sum(along**2, axis=1) + ww * far)
            np.add.at(sizes, js, own_mass + ww * np.sum(np.abs(values)))
        blocks.append(own)
    return joints, np.concatenate(blocks), np.sqrt(sizes)


def _matrix(rotation: object) -> np.ndarray:
    """The rotation matrix of a rotation vector (3,) in rad, or of itself."""
    r = np.asarray(rotation, float)
    angle = np.linalg.norm(r)
    if r.shape == (3, 3) or angle == 0:
        return r if r.shape == (3, 3) else np.eye(3)
    x, y, z = r / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def check_bodies(bodies: list[Body]) -> Iterator[str]:
    """Raises `ModelError` for numbers that no body or joint can have.

    Yields a warning for each that is possible but doubtful.
    """
    seen: dict[str, str] = {}
    for b in bodies:
        where = b.source or f"body {b.name!r}"
        for name, shapes in (
            ("position", [(3,)]),
            ("rotation", [(3,), (3, 3)]),
            ("com", [(3,)]),
            ("inertia", [(3, 3)]),
            ("mass", [()]),
        ):
            value = numbers(getattr(b, name), f"{where}: {name}")
            if value.shape not in shapes:
                raise ModelError(
                    f"{where}: {name} has shape {value.shape}, needed is "
                    f"{' or '.join(map(str, shapes))}"
                )
            _refuse(where, name, value)
        rotation = np.asarray(b.rotation, float)
        if rotation.shape == (3, 3) and not (
            np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6) and np.linalg.det(rotation) > 0
        ):
            raise ModelError(f"{where}: rotation is no rotation matrix; orthonormalise it")
        _check_joint(b)
        name = b.joint.name or b.name
        if name in seen:
            raise ModelError(f"{where}: there are two joints named {name!r}; rename one")
        seen[name] = where
        yield from _inertia_warnings(b, where)
    yield from _degree_warnings(bodies)


def _check_joint(body: Body) -> None:
    joint = body.joint
    if not isinstance(joint, Joint):
        known = ", ".join(cls.__name__ for cls in TYPES)
        raise ModelError(
            f"{body.source or f'body {body.name!r}'}: its joint is {format_value(joint)}; give an "
            f"object such as dl.Revolute(), of one of the types {known}, or of a subclass of Joint"
        )
    where = joint.source or f"joint {joint.name or body.name!r}"
    if type(joint) not in TYPES:
        check_type(joint, where)
    for dof in joint.dofs():
        axis = numbers(dof.axis, f"{where}: axis")
        if axis.shape != (3,) or not np.all(np.isfinite(axis)):
            raise ModelError(f"{where}: the axis must be three finite numbers, got {dof.axis}")
        _refuse(where, "axis", axis)
        _refuse(where, "pitch", np.asarray(dof.pitch))
    count = len(joint.dofs())
    values = {}
    for name in ROW_FIELDS:
        value = numbers(getattr(joint, name), f"{where}: {name}")
        if value.shape not in [(), (count,)]:
            raise ModelError(
                f"{where}: {name} has shape {value.shape}; give one number, or {count}: "
                "one for each degree of freedom"
            )
        _refuse(where, name, value)
        values[name] = value
    if not joint.manifold.plain and np.any(values["stiffness"]):
        raise ModelError(
            f"{where}: a {joint.type_name()} joint has no spring, as its coordinates "
            "are no plain numbers; leave stiffness 0"
        )
    if np.any(values["lower"] > values["upper"]):
        raise ModelError(
            f"{where}: the lower limit {values['lower'].tolist()} lies above the upper limit "
            f"{values['upper'].tolist()}; exchange them"
        )
    if joint.mimic and not np.all(np.isfinite([joint.mimic.multiplier, joint.mimic.offset])):
        raise ModelError(f"{where}: the multiplier and offset of its mimic must be finite")


def _refuse(where: str, name: str, value: np.ndarray) -> None:
    fault = NUMBERS[name].fault(name, value)
    if fault:
        raise ModelError(f"{where}: {fault}")


# Angles beyond these are rare in radians and common in degrees; larger ones stand for no limit.
_TURNS, _MOST_DEGREES = 4 * np.pi, 1000.0


def _degree_warnings(bodies: list[Body]) -> Iterator[str]:
    """One warning of all angles that look like degrees."""
    found = []
    for b in bodies:
        rotation = np.asarray(b.rotation, float)
        if rotation.shape == (3,) and np.abs(rotation).max() > 2 * np.pi:
            said = f"the rotation {rotation.tolist()} turns by more than 2 pi"
            found.append(f"{b.source or f'body {b.name!r}'}: {said}")
        hinged = np.array([dof.kind == "revolute" for dof in b.joint.dofs()], bool)
        ends = np.array([np.broadcast_to(x, len(hinged)) for x in (b.joint.lower, b.joint.upper)])
        size = np.where(np.isfinite(ends) & hinged, np.abs(ends), 0).max(initial=0)
        if _TURNS < size <= _MOST_DEGREES:
            where = b.joint.source or f"joint {b.joint.name or b.name!r}"
            found.append(f"{where}: a position limit of size {size:g} lies beyond 4 pi")
    if found:
        first, more = found[0], f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield f"{first}{more}; these look like degrees; radians are needed"


def _inertia_warnings(body: Body, where: str) -> Iterator[str]:
    inertia = np.asarray(body.inertia, float)
    if not np.allclose(inertia, inertia.T, atol=1e-12 + 1e-9 * np.abs(inertia).max()):
        yield f"{where}: the inertia is not symmetric; its symmetric part is used"
    for fault in impossible_inertias(inertia[None]).values():
        yield f"{where}: {fault}"


def impossible_inertias(inertias: np.ndarray) -> dict[int, str]:
    """Which finite inertias (k, 3, 3) in kg m^2 no rigid body has, and why, by their index.

    Of their symmetric parts each principal moment must be at most the sum of the others.
    """
    finite = np.all(np.isfinite(inertias), axis=(1, 2), keepdims=True)
    symmetric = np.where(finite, (inertias + inertias.transpose(0, 2, 1)) / 2, 0)
    moments = np.linalg.eigvalsh(symmetric)
    a, b, c = moments.T
    return {
        int(k): (
            "no rigid body has the principal moments of inertia {:.4g}, {:.4g}, {:.4g} kg m^2: "
            "each must be at most the sum of the others (triangle inequality)".format(*moments[k])
        )
        for k in np.flatnonzero((a + b < c * (1 - 1e-6) - 1e-12) | (a < -1e-12))
    }
