"""Section 3 of Reuss 2002: a box, its image on the screen, and its vanishing points, in numbers."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ...view.camera import Camera, along_line
from ...view.clipping import inside
from ...view.projective import directions, join, meet, points, reflection, scaling, shear
from .check import Check, residual
from .rigid_body import displacement

Array = np.ndarray

SIZE = np.array([1.4, 1.0, 0.8])
"""Of the box, m. It stands on the floor z = 0, with one corner at the origin."""
CORNERS = np.array(list(np.ndindex(2, 2, 2)))
"""Which corners of the box (8, 3) are at its far ends."""
EDGES = np.array(
    [(a, b) for a in range(8) for b in range(a, 8) if np.abs(CORNERS[a] - CORNERS[b]).sum() == 1]
)
"""The pairs of corners (12, 2) that an edge joins."""
EYE = Camera.looking_at((0.7, 0.5, 0.45), (-2.7, -1.5, 1.35), half_width=0.55, half_height=0.42)
"""The eye that looks at the box."""


def box() -> Array:
    """The corners (8, 3) in m."""
    return CORNERS * SIZE


def checks(rng: Generator) -> list[Check]:
    """Section 3: each statement by numbers worked by hand, or by the other perspective."""
    return [
        Check("3.1", "composition from the right", _composition(rng)),
        Check("3.1", "frustum: pyramid to cube", _clipping(rng)),
        Check("(16)", "corners of a cube, by hand", _by_hand()),
        Check("3.3", "vanishing points from s = 0", _far_away()),
        Check("3.3", "parallel edges meet there", _meeting()),
        Check("3.3", "they lie on the horizon", _horizon()),
        Check("3.3", "corners by vanishing points", _constructed()),
    ]


def _composition(rng: Generator) -> float:
    """X_0 = T_1 T_2 T_3 T_4 X_4, one product after another and at once."""
    n, d = rng.normal(size=(2, 3))
    T = [displacement(rng), reflection(n), scaling(1 + d * d), shear(d, n)]
    T = [np.asarray(a, float) for a in T]
    X = last = rng.normal(size=(4, 20))
    for a in T[::-1]:
        X = a @ X
    return residual(X, np.linalg.multi_dot(T) @ last)


def _clipping(rng: Generator) -> float:
    """The share of points whose seats inside and outside of the pyramid are mistaken."""
    camera = Camera(np.eye(4), 2.0, 1.0, near=1.0, far=9.0)
    x = rng.uniform((-20, -10, -2), (20, 10, 11), size=(2000, 3))
    far = np.abs(x[:, :2]) <= x[:, 2:] * (2.0, 1.0)
    seen = far.all(axis=1) & (x[:, 2] >= 1) & (x[:, 2] <= 9)
    clipped = (np.asarray(inside(camera.clip_coordinates(points(x)))) >= 0).all(axis=1)
    return float(np.mean(seen != clipped))


def _by_hand() -> float:
    """The cube |x|, |y| <= 2, 4 <= z <= 8, seen from the origin."""
    camera = Camera(np.eye(4))
    cube = (CORNERS - (0.5, 0.5, -1)) * 4.0
    near = (cube[:, 2] == 4)[:, None]
    scale = np.where(near, 0.25, 0.125)
    return residual(camera.architect(points(cube)), np.hstack((cube[:, :2] * scale, scale)))


def _far_away() -> float:
    """The images of points 1e12 m away along the edges, and the vanishing points."""
    far = EYE.architect(points(1e12 * np.eye(3)))
    x, y, t = np.asarray(EYE.vanishing_point(np.eye(3))).T
    at_infinity = np.asarray(EYE.architect(directions(np.eye(3))))
    ends = np.column_stack((x / t, y / t, 0 * t))
    return max(residual(far, ends), residual(at_infinity, ends))


def _meeting() -> float:
    """The sine of the angle between the point of meeting and the vanishing point."""
    images = np.asarray(EYE.painter(points(box())))
    worst = 0.0
    for axis, end in enumerate(np.asarray(EYE.vanishing_point(np.eye(3)))):
        along = EDGES[CORNERS[EDGES[:, 1], axis] > CORNERS[EDGES[:, 0], axis]]
        lines = np.asarray(join(images[along[:, 0]], images[along[:, 1]]))
        point = np.asarray(meet(lines[0], lines[3]))
        away = np.cross(point / np.linalg.norm(point), end / np.linalg.norm(end))
        worst = max(worst, float(np.linalg.norm(away)))
    return worst


def _horizon() -> float:
    """l^T v of the floor's horizon and the vanishing points of 24 directions in it."""
    turn = np.linspace(0, 2 * np.pi, 24)
    ways = np.column_stack((np.cos(turn), np.sin(turn), 0 * turn))
    line = np.asarray(EYE.horizon(np.eye(3)[2]))
    return residual(np.asarray(EYE.vanishing_point(ways)) @ line, 0 * turn)


def _constructed() -> float:
    """The corners found along the edges from one of them, and by the perspective division."""
    found = constructed_corners()
    divided = np.asarray(EYE.architect(points(box())))
    return residual(found[:, :2] / found[:, 2:], divided[:, :2])


def constructed_corners() -> Array:
    """The images (x, y, t) (8, 3) of the corners by the painter's construction."""
    ends = np.asarray(EYE.vanishing_point(np.eye(3)))
    found = []
    for corner in CORNERS:
        image = EYE.painter(points(np.zeros(3)))
        for far, end, length in zip(corner, ends, SIZE, strict=True):
            image = along_line(image, end, np.asarray(far * length))
        found.append(np.asarray(image))
    return np.array(found)
