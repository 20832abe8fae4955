"""The signed distances between the shapes of a system."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics.kinematics import body_world_poses, world_frame
from ..groups.components import Vector
from ..spatial import Transform
from ..system.arguments import checked
from ..system.kinematic_tree import Tree
from ..system.system import System
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
    system: System, q: Any, first: str = "*", second: str = "*", without: Iterable[Pair] = ()
) -> Distances:
    """The signed distances of pairs of `System.shapes` at q (nq,), nearest points and normals.

    first, second, without: patterns for names, as of `difflie.touching`. Its derivative by q along
    a motion is normal . (velocity of the second point - velocity of the first), and the second
    derivatives are right, too; where the nearest features change it is one of the one-sided ones.
    Raises as `checked` does, and ValueError for a pattern without a shape.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)])
    >>> ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
    >>> print(dl.distance(ball, [0.5], "ground", "ball").distance)
    [0.4]
    """
    (q,) = checked(system, q=(q, (system.nq,)))
    pairs = tuple(matching_pairs(system, first, second, without))
    return Distances(pairs, *_distances(system, q, pairs))


def pair_distances(tree: Tree, q: Float[Array, " nq"], pairs: Sequence[Pair]) -> Witness:
    """The nearest or deepest points of pairs of shapes, components (m,), in the world."""
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
    found = [(m.index, jax.vmap(deepest)(m.points)) for m in meetings(shapes, pairs, poses)]
    order = np.argsort(np.concatenate([index for index, _ in found]))
    return jax.tree.map(lambda *a: jnp.concatenate(a)[order], *(each for _, each in found))


@functools.partial(jax.jit, static_argnums=2)
def _distances(system: System, q: jax.Array, pairs: tuple[Pair, ...]) -> tuple[Any, ...]:
    found = pair_distances(Tree.of(system), q, pairs)
    vectors = (found.normal, found.first, found.second)
    return found.gap, *(vector.to_array() for vector in vectors)
