"""Systems built by code: bodies on joints, as a tree or a chain."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ..groups import so3
from .body import Body
from .checks import check_bodies, massless
from .frame import FrameLike
from .joints import ROW_FIELDS, Joint, Mimic
from .system import Bodies, Joints, System
from .topology import WORLD, Topology
from .validation import ModelError, as_array, nearest, warn

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


def chain(
    bodies: Sequence[Body],
    *,
    name: str = "chain",
    gravity: ArrayLike = STANDARD_GRAVITY,
    frames: Mapping[str, FrameLike] | None = None,
) -> System:
    """A serial chain: every body is connected to the one before it, the first to the world.

    gravity (3,) in m/s^2, world coordinates. The bodies' own `parent` is ignored. frames: as of
    `tree`. Raises `ModelError` as `tree` does.

    >>> link = dict(joint=dl.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5))
    >>> upper = dl.Body(name="upper", **link)
    >>> lower = dl.Body(name="lower", position=(0, 0, -1), **link)
    >>> dl.chain([upper, lower]).joint_names
    ('upper', 'lower')
    """
    _check_list(bodies, name)
    names = [None, *(b.name for b in bodies)]
    linked = [replace(b, parent=p) for b, p in zip(bodies, names, strict=False)]
    return tree(linked, name=name, gravity=gravity, frames=frames)


def tree(
    bodies: Sequence[Body],
    *,
    name: str = "tree",
    gravity: ArrayLike = STANDARD_GRAVITY,
    frames: Mapping[str, FrameLike] | None = None,
) -> System:
    """A `System` of bodies that name their parents, in any order.

    The system keeps the order of the bodies, except that a parent always comes before its children.
    gravity (3,) in m/s^2, world coordinates. frames: named frames on bodies, such as the tip of a
    tool, each a `Frame`; see `System.with_frames`.

    Raises `ModelError` for what cannot be simulated: an unknown or repeated name, a cycle, a
    negative or non-finite number, a zero axis, a wrong shape. Warns of inertias that no rigid body
    can have, and of joints that move no inertia.

    >>> cart = dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)
    >>> pole = dl.Body(name="pole", parent="cart", joint=dl.Revolute(), mass=1.0, com=(0, 0.5, 0))
    >>> dl.tree([pole, cart]).joint_names
    ('cart', 'pole')
    """
    _check_list(bodies, name)
    ordered = _sorted(list(bodies), name)
    warned = list(check_bodies(ordered))
    index = {b.name: i for i, b in enumerate(ordered)}
    joint_names = [b.joint.name or b.name for b in ordered]
    mimics = [_mimicked(b, ordered, joint_names) for b in ordered]
    for message in [*warned, *massless(ordered, mimics)]:
        warn(message)
    topology = Topology(
        name=name,
        bodies=tuple(index),
        parents=tuple(WORLD if b.parent is None else index[b.parent] for b in ordered),
        joints=tuple(joint_names),
        types=tuple(b.joint.without_numbers() for b in ordered),
        kinds=tuple(tuple(d.kind for d in b.joint.dofs()) for b in ordered),
        mimics=tuple(mimics),
    )
    g = np.asarray(gravity, float)
    if g.shape != (3,) or not np.all(np.isfinite(g)):
        raise ModelError(f"{name}: gravity must be three finite numbers (m/s^2), got {gravity}")
    system = System(
        bodies=Bodies(
            mass=_leaf([b.mass for b in ordered]),
            com=_leaf([b.com for b in ordered]),
            inertia=_leaf([b.inertia for b in ordered]),
        ),
        joints=Joints(
            position=_leaf([b.position for b in ordered]),
            rotation=_leaf(_rotation_vectors([b.rotation for b in ordered])),
            axis=_leaf([d.axis for b in ordered for d in b.joint.dofs()], (-1, 3)),
            pitch=_leaf([d.pitch for b in ordered for d in b.joint.dofs()]),
            **{name: _by_dof(ordered, name) for name in ROW_FIELDS},
            multiplier=_leaf([b.joint.mimic.multiplier for b in ordered if b.joint.mimic]),
            offset=_leaf([b.joint.mimic.offset for b in ordered if b.joint.mimic]),
            numbers=_own_numbers(ordered),
        ),
        gravity=_leaf(g),
        topology=topology,
    )
    return system.with_frames(frames) if frames else system


def bodies_of(system: System) -> list[Body]:
    """The bodies from which `tree` builds this system again, in its order: the inverse of `tree`.

    The system has concrete numbers. Raises `ModelError` for numbers that `tree` refuses, for a
    planar or translation joint with other axes than its type's, and for a batch of systems.
    """
    t = system.topology
    if system.bodies.mass.ndim != 1:
        raise ModelError(
            f"{t.name}: this is a batch of systems; take one: jax.tree.map(lambda a: a[0], system)"
        )
    mass, com, inertia = (np.asarray(a, float) for a in jax.tree.leaves(system.bodies))
    joints = {
        name: np.asarray(getattr(system.joints, name), float)
        for name in Joints.__dataclass_fields__
        if name != "numbers"
    }
    bodies = []
    for b, name in enumerate(t.bodies):
        dofs = slice(t.dof_start[b], t.dof_start[b + 1])
        law, source = int(np.searchsorted(t.mimic_dofs, t.dof_start[b])), t.mimics[b]
        options: dict[str, Any] = {"name": t.joints[b]}
        if t.kinds[b]:
            options |= {n: tuple(joints[n][dofs].tolist()) for n in ROW_FIELDS}
        if source is not None:
            numbers = joints["multiplier"][law], joints["offset"][law]
            options["mimic"] = Mimic(t.joints[source], *map(float, numbers))
        bodies.append(
            Body(
                name=name,
                joint=_joint_of(system, b, joints["axis"][dofs], joints["pitch"][dofs], options),
                parent=None if t.parents[b] == WORLD else t.bodies[t.parents[b]],
                position=joints["position"][b],
                rotation=joints["rotation"][b],
                mass=float(mass[b]),
                com=com[b],
                inertia=inertia[b],
            )
        )
    list(check_bodies(bodies))
    return bodies


def _joint_of(
    system: System, b: int, axes: np.ndarray, pitch: np.ndarray, options: dict[str, Any]
) -> Joint:
    t, joint = system.topology, system.topology.types[b]
    place = t.place_in_type[b]
    own = system.joints.numbers.get(joint.type_name(), {})
    options |= {name: np.asarray(a)[place].tolist() for name, a in own.items()}
    try:
        return joint.with_numbers(options).about(axes, pitch)
    except ValueError as error:
        raise ModelError(
            f"{t.name}: the axes of the {joint.type_name()} joint {t.joints[b]!r} are not those "
            f"{error}; set them so, or use other joints"
        ) from None


def _own_numbers(bodies: list[Body]) -> dict[str, dict[str, Any]]:
    """The numbers that joint types declare, by type and name, stacked over the type's joints."""
    types: dict[str, type[Joint]] = {}
    columns: dict[str, dict[str, list[Any]]] = {}
    for b in bodies:
        cls, name = type(b.joint), b.joint.type_name()
        if types.setdefault(name, cls) is not cls:
            raise ModelError(
                f"{b.source or f'body {b.name!r}'}: there are two joint types named "
                f"{cls.__name__}; rename one"
            )
        for own in cls.numbers():
            columns.setdefault(name, {}).setdefault(own, []).append(getattr(b.joint, own))
    return {
        name: {own: _leaf(values) for own, values in numbers.items()}
        for name, numbers in columns.items()
    }


def _rotation_vectors(rotations: list[Any]) -> np.ndarray:
    """Rotation vectors (n, 3) of rotation vectors (3,) and rotation matrices (3, 3)."""
    vectors = [np.asarray(r, float) for r in rotations]
    matrices = [i for i, r in enumerate(vectors) if r.shape == (3, 3)]
    if matrices:
        logs = jax.jit(jax.vmap(so3.log))(jnp.asarray(np.stack([vectors[i] for i in matrices])))
        for i, vector in zip(matrices, np.asarray(logs, float), strict=True):
            vectors[i] = vector
    return np.stack(vectors)


def _leaf(values: Any, shape: tuple[int, ...] | None = None) -> Any:
    a = np.asarray(values, float)
    # In single precision the largest limits of motion are infinite.
    with np.errstate(over="ignore"):
        return as_array(a if shape is None else a.reshape(shape))


def _by_dof(bodies: list[Body], name: str) -> Any:
    numbers: list[float] = []
    for b in bodies:
        value = np.asarray(getattr(b.joint, name), float)
        numbers += np.broadcast_to(value, (len(b.joint.dofs()),)).tolist()
    return _leaf(numbers)


def _check_list(bodies: Any, system: str) -> None:
    """Raises `ModelError` for what is no list of bodies, and for an empty one."""
    if isinstance(bodies, Body):
        raise ModelError(
            f"{system}: one body was given, {bodies.name!r}; give a list of them, such as [body]"
        )
    for b in bodies if isinstance(bodies, Sequence) and not isinstance(bodies, str) else [bodies]:
        if not isinstance(b, Body):
            raise ModelError(
                f"{system}: the bodies hold a {type(b).__name__}; give a list of dl.Body(...)"
            )
    if not bodies:
        raise ModelError(f"{system}: a system needs at least one body")


def _sorted(bodies: list[Body], system: str) -> list[Body]:
    """The bodies with parents before children, otherwise in their order."""
    names = [b.name for b in bodies]
    counts = Counter(names)
    for b in bodies:
        if counts[b.name] > 1:
            raise ModelError(
                f"{b.source or system}: there are two bodies named {b.name!r}; rename one"
            )
        if b.parent is not None and b.parent not in counts:
            raise ModelError(
                f"{b.source or system}: the parent {b.parent!r} of body {b.name!r} does not exist"
                f"{nearest(b.parent, names)}"
            )
    children: dict[str | None, list[int]] = {}
    for i, b in enumerate(bodies):
        children.setdefault(b.parent, []).append(i)
    ordered: list[Body] = []
    ready = children.pop(None, [])
    while ready:
        body = bodies[heapq.heappop(ready)]
        ordered.append(body)
        for child in children.pop(body.name, []):
            heapq.heappush(ready, child)
    if children:
        waiting = [bodies[i] for i in sorted(i for siblings in children.values() for i in siblings)]
        parents = {b.name: str(b.parent) for b in waiting}
        loop = [waiting[0].name]
        while (above := parents[loop[-1]]) not in loop:
            loop.append(above)
        loop = loop[loop.index(above) :]
        source = next(b.source for b in waiting if b.name == loop[0])
        raise ModelError(
            f"{source or system}: the bodies {' -> '.join([*loop, loop[0]])} form a cycle; "
            "a tree has none: remove one of their joints"
        )
    return ordered


def _mimicked(body: Body, bodies: list[Body], joint_names: list[str]) -> int | None:
    """The body whose joint this body's joint follows."""
    mimic = body.joint.mimic
    if mimic is None:
        return None
    where = body.joint.source or body.source or f"joint {body.joint.name or body.name!r}"
    if mimic.joint not in joint_names:
        raise ModelError(
            f"{where}: mimics the joint {mimic.joint!r}, which does not exist"
            f"{nearest(mimic.joint, joint_names)}"
        )
    source = joint_names.index(mimic.joint)
    for b, role in ((body, "follows another"), (bodies[source], "is followed")):
        if len(b.joint.dofs()) != 1:
            raise ModelError(
                f"{where}: a joint that {role} must have one degree of freedom, "
                f"but {b.joint.name or b.name!r} has {len(b.joint.dofs())}"
            )
        if not b.joint.manifold.plain:
            raise ModelError(
                f"{where}: a joint that {role} must have a coordinate that is a plain number, "
                f"and {b.joint.name or b.name!r} has a point of {b.joint.manifold}"
            )
    if bodies[source].joint.mimic is not None or bodies[source] is body:
        raise ModelError(
            f"{where}: mimics {mimic.joint!r}, which mimics a joint itself; "
            "let it follow that one directly"
        )
    return source
