"""Joints that move no inertia: the mass matrix is then singular at every q."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .body import Body
from .joint_checks import pose_and_subspace

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
