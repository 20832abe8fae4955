"""Bodies without shapes, drawn as the solid ellipsoids that have their mass and inertia."""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import NDArray

from ..io.appearance.shape import Appearance, Shape, ellipsoid
from ..system.system import System

# In kg/m^3, of water: it sizes the balls that stand for masses without inertia.
_DENSITY = 1000.0


def inertia_ellipsoids(system: System) -> Appearance:
    """The inertia ellipsoid of each body with a mass, by its name.

    A solid ellipsoid of mass m with radii a, b, c has the principal moments m (b^2 + c^2) / 5 and
    so on about its centre; the radii follow from those of the body. A mass without inertia is a
    ball of the volume of as much water. Raises ValueError for a batch of systems.
    """
    refuse_batch(system)
    shapes: Appearance = {}
    bodies = jax.tree.map(np.asarray, system.bodies)
    numbers = zip(system.body_names, bodies.mass, bodies.com, bodies.inertia, strict=True)
    for name, mass, com, inertia in numbers:
        if mass <= 0:
            continue
        axes, radii = _axes(float(mass), inertia)
        vertices, faces = ellipsoid(radii)
        shapes[name] = (Shape(vertices @ axes.T + com, faces, name=name),)
    return shapes


def shapes_of(system: System, appearance: Appearance | None) -> Appearance:
    """What each body is drawn as: its shapes, or its ellipsoid where none of them could be read.

    appearance: as from `read_appearance`; without any shape all bodies are ellipsoids.
    """
    if not any((appearance or {}).values()):
        return inertia_ellipsoids(system)
    assert appearance is not None
    instead = {} if all(appearance.values()) else inertia_ellipsoids(system)
    shapes = {body: own or instead.get(body, ()) for body, own in appearance.items()}
    return {body: own for body, own in shapes.items() if own}


def refuse_batch(system: System) -> None:
    """Raises ValueError for a batch of systems."""
    if np.ndim(system.bodies.mass) != 1:
        raise ValueError(
            f"{system.name}: these are {np.shape(system.bodies.mass)[:-1]} systems, and a picture "
            "is of one; take one, such as jax.tree.map(lambda a: a[0], system)"
        )


def _axes(mass: float, inertia: NDArray) -> tuple[NDArray, NDArray]:
    """The principal axes (3, 3), as columns, and the radii (3,) in m."""
    moments, axes = np.linalg.eigh((inertia + inertia.T) / 2)
    square = 2.5 / mass * (moments.sum() - 2 * moments)
    radii = np.sqrt(np.maximum(square, 0))
    ball = (3 * mass / (4 * np.pi * _DENSITY)) ** (1 / 3)
    if radii.max() < 1e-6 * ball:
        radii = np.full(3, ball)
    # Flat and thin bodies are still seen.
    radii = np.maximum(radii, 0.05 * radii.max())
    return axes * np.sign(np.linalg.det(axes)), radii
