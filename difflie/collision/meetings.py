"""Where pairs of shapes meet: their contact points, those of the same kinds together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..groups import so3
from ..groups.components import Matrix, Vector
from ..spatial import Transform
from ..system.traverse import for_each
from .distances.table import ContactPoints, contact_points, takes_long
from .distances.witness import Witness
from .pairs import Pair
from .shapes import Shape


class Meetings(NamedTuple):
    """m pairs whose shapes are of the same two kinds.

    index: the numbers (m,) of the pairs; first, second: the numbers (m,) of their shapes. meet: the
    contact points (k,) of one of them, in world coordinates, from the poses and the sizes of its
    shapes; given: these (m, ...), of all. balls (m,): the sums of the radii in m of balls about the
    origins of the shapes that hold them, where it pays to look at these first; else None.
    """

    index: np.ndarray
    first: np.ndarray
    second: np.ndarray
    meet: Callable[..., Witness]
    given: tuple[Any, ...]
    balls: jax.Array | None

    @property
    def points(self) -> Witness:
        """The contact points, components (m, k)."""
        return for_each(self.meet)(*self.given)


_COUNTS: dict[Any, int] = {}


def count_of_points(shapes: Mapping[str, Any], pairs: Sequence[Pair]) -> int:
    """How many contact points pairs of shapes have, with those that may not exist."""
    forms = {name: _form(shape) for name, shape in shapes.items()}
    return sum(_count(forms, shapes, pair) for pair in pairs)


def _count(forms: Mapping[str, Any], shapes: Mapping[str, Any], pair: Pair) -> int:
    """The points of one pair: traced once for two forms."""
    key = tuple(forms[name] for name in pair)
    if key not in _COUNTS:
        x = jnp.zeros(())
        pose = Transform(Matrix(*[x] * 9), Vector(x, x, x))
        first, second = (shapes[name].numbers for name in pair)
        meet = contact_points(*(shapes[name].kind for name in pair))
        _COUNTS[key] = len(jax.eval_shape(meet, pose, first, pose, second).gap)
    return _COUNTS[key]


def rotations(shapes: Sequence[Shape]) -> Matrix:
    """The rotations (n,) of the frames of shapes in those of their bodies."""
    turns = [so3.exp_components(Vector.from_array(s.frame.rotation)) for s in shapes]
    return jax.tree.map(lambda *a: jnp.stack(a), *turns)


def meetings(
    shapes: Mapping[str, Any],
    pairs: Sequence[Pair],
    poses: Transform,
    find: Callable[[str, str], ContactPoints] = contact_points,
) -> Iterator[Meetings]:
    """The pairs of shapes, those of the same two kinds together.

    poses (n,): of the frames of the shapes in the world, in the order of their names. find: the
    function that finds the contact points of two kinds.
    """
    order = {name: k for k, name in enumerate(sorted(shapes))}
    forms = {name: _form(shape) for name, shape in shapes.items()}
    groups: dict[Any, list[int]] = {}
    for k, pair in enumerate(pairs):
        groups.setdefault(tuple(forms[name] for name in pair), []).append(k)
    for (one, other), members in groups.items():
        given, places, balls = [], [], []
        for side in (0, 1):
            names = [pairs[k][side] for k in members]
            places.append(np.array([order[name] for name in names]))
            at = jax.tree.map(lambda a, who=places[-1]: a[who], poses)
            given += [at, _of_each(shapes, names, lambda shape: shape.numbers)]
            balls.append(_of_each(shapes, names, lambda shape: shape.bound))
        meet, kinds = find(one[0], other[0]), (one[0], other[0])
        balls = balls[0] + balls[1] if takes_long(*kinds) else None
        yield Meetings(np.array(members), places[0], places[1], meet, tuple(given), balls)


def _of_each(shapes: Mapping[str, Any], names: Sequence[str], numbers: Callable[[Any], Any]) -> Any:
    """Numbers of the shapes of these names, stacked; those of each shape are read once."""
    places = {name: k for k, name in enumerate(dict.fromkeys(names))}
    once = jax.tree.map(lambda *a: jnp.stack(a), *(numbers(shapes[name]) for name in places))
    rows = np.array([places[name] for name in names])
    return once if len(rows) == len(places) else jax.tree.map(lambda a: a[rows], once)


def _form(shape: Shape) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """The kind of a shape, and the shapes of its numbers: how many vertices it has, say."""
    return shape.kind, tuple(jnp.shape(x) for x in jax.tree.leaves(shape.numbers))
