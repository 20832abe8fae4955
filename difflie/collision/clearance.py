"""The signed distances between the shapes of a system."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..dynamics.kinematics import body_world_poses, world_frame
from ..groups.components import Vector
from ..spatial import Transform
from ..system.arguments import checked
from ..system.kinematic_tree import Tree
from ..system.system import System
from .distances import contact_points, smooth_points
from .distances.witness import Witness, deepest
from .meetings import meetings, rotations
from .pairs import Pair, matching_pairs


class Distances(NamedTuple):
    """The distances of m pairs of shapes.

    pairs: their names. distance (m,) in m: positive apart; negative where they overlap, the least
    displacement that separates them. normal (m, 3): from the first shape to the second. first,
    second (m, 3) in m: the nearest points on their surfaces, or the deepest. In world coordinates.
    """

    pairs: tuple[Pair, ...]
    distance: Float[Array, " m"]
    normal: Float[Array, "m 3"]
    first: Float[Array, "m 3"]
    second: Float[Array, "m 3"]


def distance(
    system: System,
    q: Any,
    first: str = "*",
    second: str = "*",
    without: Iterable[Pair] = (),
    *,
    smoothing: ArrayLike | None = None,
) -> Distances:
    """The signed distances of pairs of `System.shapes` at q (nq,), nearest points and normals.

    first, second, without: patterns for names, as of `difflie.touching`. Its derivative by q along
    a motion is normal . (velocity of the second point - velocity of the first), and the second
    derivatives are right, too; where the nearest features change it is one of the one-sided ones.

    smoothing r in m, positive: gradients are continuous, too, wherever the distance is positive,
    and with planes everywhere, by distances of shapes whose edges and faces are rounded outwards:
    these are at most r less, and never more (`distances/smooth.py`). Take some per cent of the
    sizes of the shapes; those of spheres, also with planes, are exact. By default they are not
    smoothed.

    Raises as `checked` does, and ValueError for a pattern without a shape, a smoothing that is not
    positive, and for that of height fields.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)])
    >>> ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
    >>> print(dl.distance(ball, [0.5], "ground", "ball").distance)
    [0.4]
    """
    (q,) = checked(system, q=(q, (system.nq,)))
    pairs = tuple(matching_pairs(system, first, second, without))
    if smoothing is not None:
        smoothing = checked_smoothing(smoothing, q.dtype)
    return Distances(pairs, *_distances(system, q, smoothing, pairs))


def checked_smoothing(smoothing: ArrayLike, dtype: Any) -> jax.Array:
    """The radius () in m of a smoothing; raises ValueError where it is not positive."""
    if not isinstance(smoothing, Tracer) and not np.asarray(smoothing) > 0:
        raise ValueError(
            f"the smoothing of distances is {smoothing} m; give a positive radius, or None"
        )
    return jnp.asarray(smoothing, dtype)


def pair_distances(
    tree: Tree, q: Float[Array, " nq"], pairs: Sequence[Pair], smoothing: jax.Array | None = None
) -> Witness:
    """The nearest or deepest points of pairs of shapes, components (m,), in the world.

    smoothing () in m: as of `distance`.
    """
    known = tree.system.shapes
    shapes: dict[str, Any] = {name: known[name] for pair in pairs for name in pair}
    ordered = [shapes[name] for name in sorted(shapes)]
    bodies, world = body_world_poses(tree, q), world_frame(q.dtype)
    base = jax.tree.map(lambda a, w: jnp.append(a, w), bodies, world)
    names = (*tree.topology.bodies, None)
    at = np.array([names.index(shape.frame.body) for shape in ordered])
    origins = jnp.stack([shape.frame.position for shape in ordered])
    inner = Transform(rotations(ordered), Vector.from_array(origins))
    poses = jax.tree.map(lambda a: a[at], base) @ inner
    find = contact_points
    if smoothing is not None:
        find = functools.partial(smooth_points, radius=smoothing)
    found = [(m.index, jax.vmap(deepest)(m.points)) for m in meetings(shapes, pairs, poses, find)]
    order = np.argsort(np.concatenate([index for index, _ in found]))
    return jax.tree.map(lambda *a: jnp.concatenate(a)[order], *(each for _, each in found))


@functools.partial(jax.jit, static_argnums=3)
def _distances(
    system: System, q: jax.Array, smoothing: jax.Array | None, pairs: tuple[Pair, ...]
) -> tuple[Any, ...]:
    found = pair_distances(Tree.of(system), q, pairs, smoothing)
    vectors = (found.normal, found.first, found.second)
    return found.gap, *(vector.to_array() for vector in vectors)
