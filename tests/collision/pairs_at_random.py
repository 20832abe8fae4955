"""Pairs of shapes at random, and what another program and references say of their distances."""

import functools
from dataclasses import dataclass
from typing import Any

import coal
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from difflie.collision.distances import contact_points, deepest
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Motion, Transform

SIGNS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], float)


@dataclass
class Pairs:
    """n pairs of shapes: rotations (n, 3, 3), origins (n, 3), and rows of numbers of each."""

    kinds: tuple[str, str]
    rotations: tuple[np.ndarray, np.ndarray]
    origins: tuple[np.ndarray, np.ndarray]
    numbers: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]

    def arguments(self, dtype: Any = None) -> tuple[Any, ...]:
        """What `contact_points` takes, with a leading axis n."""
        arguments = []
        for kind, r, p, numbers in zip(
            self.kinds, self.rotations, self.origins, self.numbers, strict=True
        ):
            r, p, *numbers = (jnp.asarray(x, dtype) for x in (r, p, *numbers))
            pose = Transform(Matrix.from_array(r), Vector.from_array(p))
            vectors = kind in ("box", "ellipsoid")
            arguments += [pose, tuple(Vector.from_array(x) if vectors else x for x in numbers)]
        return tuple(arguments)

    def moved(self, step: np.ndarray) -> "Pairs":
        """The pairs with their second shape moved by steps (n, 3)."""
        origins = self.origins[0], self.origins[1] + step
        return Pairs(self.kinds, self.rotations, origins, self.numbers)


def numbers_of(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Numbers between 0.2 and 1 m (radii of capsules: half of it)."""
    if kind == "plane":
        return ()
    if kind == "hull":
        points = rng.normal(size=(n, 12, 3))
        points /= np.linalg.norm(points, axis=-1, keepdims=True)
        return (points * rng.uniform(0.3, 1, (n, 1, 3)),)
    sizes = rng.uniform(0.2, 1, (n, 3))
    if kind in ("box", "ellipsoid"):
        return (sizes,)
    if kind == "sphere":
        return (sizes[:, 0],)
    return (sizes[:, 0] / 2, sizes[:, 1])


def at_random(kind_a: str, kind_b: str, n: int, seed: int = 0) -> Pairs:
    """A third each: apart or shallow, deep, and touching to within 1e-9 to 1e-2 m."""
    rng = np.random.default_rng(seed)
    kinds = kind_a, kind_b
    rotations = tuple(Rotation.random(n, rng=rng).as_matrix() for _ in kinds)
    origins = tuple(
        rng.normal(size=(n, 3)) * rng.choice(scale, (n, 1)) for scale in ([0.1], [0.3, 1, 1.5])
    )
    numbers = tuple(numbers_of(kind, n, rng) for kind in kinds)
    pairs = Pairs(kinds, rotations, origins, numbers)
    found = result(pairs)
    gap, normal = np.asarray(found.gap), np.asarray(found.normal.to_array())
    to_touch = -gap + rng.choice([-1, 1], n) * 10 ** rng.uniform(-9, -2, n)
    return pairs.moved(np.where(np.arange(n) % 3 == 0, to_touch, 0)[:, None] * normal)


@functools.cache
def batched(kinds: tuple[str, str]) -> Any:
    """The contact points of pairs of a kind; traced once for all tests of it."""
    return jax.jit(jax.vmap(contact_points(*kinds)))


def result(pairs: Pairs, dtype: Any = None) -> Any:
    """The deepest of each pair's contact points, components (n,)."""
    return jax.vmap(deepest)(batched(pairs.kinds)(*pairs.arguments(dtype)))


def of_coal(kind: str, numbers: list[Any]) -> Any:
    """The shape in the program coal."""
    if kind == "plane":
        return coal.Halfspace(np.array([0, 0, 1.0]), 0.0)
    if kind == "sphere":
        return coal.Sphere(numbers[0])
    if kind == "capsule":
        return coal.Capsule(numbers[0], 2 * numbers[1])
    if kind == "cylinder":
        return coal.Cylinder(numbers[0], 2 * numbers[1])
    if kind == "box":
        return coal.Box(*(2 * numbers[0]))
    if kind == "ellipsoid":
        return coal.Ellipsoid(*numbers[0])
    points = coal.StdVec_Vec3s()
    for point in numbers[0]:
        points.append(point)
    return coal.ConvexBase.convexHull(points, True, "")


def by_coal(pairs: Pairs) -> np.ndarray:
    """Signed distances (n,) of coal; NaN where it found none."""
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-12
    gaps = []
    for i in range(len(pairs.origins[0])):
        arguments = []
        for side in (0, 1):
            numbers = [x[i] for x in pairs.numbers[side]]
            place = coal.Transform3s(pairs.rotations[side][i], pairs.origins[side][i])
            arguments += [of_coal(pairs.kinds[side], numbers), place]
        found = coal.distance(*arguments, request, coal.DistanceResult())
        gaps.append(found if abs(found) < 1e300 else np.nan)
    return np.array(gaps)


def core(kind: str, numbers: list[Any]) -> tuple[np.ndarray, np.ndarray, float]:
    """Generators (3, m) and vertices of the polytope inside a shape, and the radius around it."""
    if kind == "sphere":
        return np.zeros((3, 0)), np.zeros((1, 3)), numbers[0]
    if kind == "capsule":
        end = np.array([0, 0, numbers[1]])
        return end[:, None], np.array([end, -end]), numbers[0]
    return np.diag(numbers[0]), SIGNS * numbers[0], 0.0


def by_projection(pairs: Pairs) -> np.ndarray:
    """Signed distances (n,) of boxes, capsules and spheres, of full precision.

    Apart: least squares over the generators, with bounds. Overlapping: the facets of the hull of
    all differences of vertices.
    """
    gaps = []
    for i in range(len(pairs.origins[0])):
        (ga, va, ra), (gb, vb, rb) = (
            core(kind, [x[i] for x in numbers])
            for kind, numbers in zip(pairs.kinds, pairs.numbers, strict=True)
        )
        (a, b), step = (r[i] for r in pairs.rotations), pairs.origins[1][i] - pairs.origins[0][i]
        generators = np.hstack([a @ ga, -b @ gb])
        gap = np.linalg.norm(step)
        if generators.shape[1]:
            gap = np.linalg.norm(
                lsq_linear(generators, step, bounds=(-1, 1), method="bvls", tol=1e-15).fun
            )
        if generators.shape[1] > 2:
            differences = (vb @ b.T + step)[:, None] - (va @ a.T)[None]
            heights = ConvexHull(differences.reshape(-1, 3)).equations[:, 3]
            gap = heights.max() if (heights < 0).all() else gap
        gaps.append(gap - ra - rb)
    return np.array(gaps)


def of_moves(pairs: Pairs) -> Any:
    """Gap and normal as a function of a motion (6,) of the second shape, and of one pair."""
    find = contact_points(*pairs.kinds)

    def moved(motion: jax.Array, pose: Any, numbers: Any, other: Any, numbers_b: Any) -> Any:
        turn, step = Vector.from_array(motion[:3]), Vector.from_array(motion[3:])
        other = other @ Transform.exp(Motion(turn, step))
        found = deepest(find(pose, numbers, other, numbers_b))
        return found.gap, found.normal.to_array()

    return moved


def differences(f: Any, pairs: Pairs, step: float = 1e-6) -> list[np.ndarray]:
    """Central differences of each result by all six motions: (n, ..., 6)."""
    g = jax.jit(jax.vmap(f, (None, 0, 0, 0, 0)))
    found = [[g(s * step * e, *pairs.arguments()) for s in (1, -1)] for e in np.eye(6)]
    return [
        np.stack([np.asarray(up[k] - down[k]) / (2 * step) for up, down in found], axis=-1)
        for k in range(2)
    ]


def reach(kind: str, numbers: list[Any], n: np.ndarray) -> np.ndarray:
    """How far a shape reaches from the origin of its frame along unit vectors n (m, 3)."""
    if kind == "box":
        return np.abs(n) @ numbers[0]
    if kind == "ellipsoid":
        return np.linalg.norm(n * numbers[0], axis=1)
    if kind == "hull":
        return (n @ numbers[0].T).max(1)
    aside = np.linalg.norm(n[:, :2], axis=1)
    along = 0.0 if kind == "sphere" else numbers[1] * np.abs(n[:, 2])
    return numbers[0] * (aside if kind == "cylinder" else 1.0) + along


def outside(kind: str, numbers: list[Any], x: np.ndarray) -> float:
    """How far a point (3,) in a shape's frame lies outside its surface: 0 on it (a lower bound)."""
    if kind == "box":
        return (np.abs(x) - numbers[0]).max()
    if kind == "ellipsoid":
        return (np.linalg.norm(x / numbers[0]) - 1) * numbers[0].min()
    if kind == "hull":
        equations = ConvexHull(numbers[0]).equations
        return (equations[:, :3] @ x + equations[:, 3]).max()
    if kind == "cylinder":
        return max(np.linalg.norm(x[:2]) - numbers[0], abs(x[2]) - numbers[1])
    half_length = 0.0 if kind == "sphere" else numbers[1]
    z = np.clip(x[2], -half_length, half_length)
    return np.linalg.norm(x - [0, 0, z]) - numbers[0]


def separation(pairs: Pairs, i: int, n: np.ndarray) -> np.ndarray:
    """How far the shapes of pair i are apart along unit vectors n (m, 3), first to second."""
    gap = n @ (pairs.origins[1][i] - pairs.origins[0][i])
    for side, sign in ((0, 1), (1, -1)):
        numbers = [x[i] for x in pairs.numbers[side]]
        gap -= reach(pairs.kinds[side], numbers, sign * n @ pairs.rotations[side][i])
    return gap


def by_search(pairs: Pairs, refine: bool) -> np.ndarray:
    """The greatest separation (n,) along directions at random: at most the signed distance.

    With refinement, directions around the best ones are tried until 1e-9 radian.
    """
    rng = np.random.default_rng(7)

    def units(middle: Any, spread: float, count: int) -> np.ndarray:
        n = middle + spread * rng.normal(size=(count, 3))
        return n / np.linalg.norm(n, axis=1, keepdims=True)

    spread, found = units(0.0, 1.0, 4000), []
    for i in range(len(pairs.origins[0])):
        gaps = separation(pairs, i, spread)
        best = gaps.max()
        for j in np.argsort(-gaps)[[0, 5, 20]] if refine else ():
            n, here, step = spread[j], gaps[j], 0.05
            while step > 1e-9:
                tried = units(n, step, 60)
                gap = separation(pairs, i, tried)
                k = gap.argmax()
                n, here, step = (tried[k], gap[k], step) if gap[k] > here else (n, here, step / 2)
            best = max(best, here)
        found.append(best)
    return np.array(found)


def triangle_distance(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The distances (m,) of triangles p, q, r (m, 3) from the origin."""

    def side(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        d = b - a
        t = np.clip(-(a * d).sum(1) / (d * d).sum(1), 0, 1)
        return np.linalg.norm(a + t[:, None] * d, axis=1)

    normal = np.cross(q - p, r - p)
    square = (normal**2).sum(1)
    height = (p * normal).sum(1)
    foot = height[:, None] * normal / square[:, None]
    sides = (p, q), (q, r), (r, p)
    inner = np.all([(np.cross(b - a, foot - a) * normal).sum(1) >= 0 for a, b in sides], axis=0)
    edge = np.min([side(a, b) for a, b in sides], axis=0)
    return np.where(inner, np.abs(height) / np.sqrt(square), edge)


def by_hulls(pairs: Pairs) -> np.ndarray:
    """Signed distances (n,) of hulls, boxes, capsules and spheres, of full precision.

    From the facets of the hull of all differences of vertices.
    """
    gaps = []
    for i in range(len(pairs.origins[0])):
        corners, radii = [], 0.0
        for side in (0, 1):
            numbers = [x[i] for x in pairs.numbers[side]]
            kind = pairs.kinds[side]
            _, v, radius = (0, numbers[0], 0.0) if kind == "hull" else core(kind, numbers)
            corners.append(v @ pairs.rotations[side][i].T + pairs.origins[side][i])
            radii += radius
        differences = (corners[1][:, None] - corners[0][None]).reshape(-1, 3)
        hull = ConvexHull(differences)
        heights = hull.equations[:, 3]
        triangles = (differences[hull.simplices[:, k]] for k in range(3))
        gap = heights.max() if (heights < 0).all() else triangle_distance(*triangles).min()
        gaps.append(gap - radii)
    return np.array(gaps)
