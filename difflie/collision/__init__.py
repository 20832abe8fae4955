"""Shapes of bodies, and the distances between them."""

from .clearance import Distances as Distances
from .clearance import distance as distance
from .pairs import matching_pairs as matching_pairs
from .shapes import Box as Box
from .shapes import Capsule as Capsule
from .shapes import ConvexHull as ConvexHull
from .shapes import Cylinder as Cylinder
from .shapes import Ellipsoid as Ellipsoid
from .shapes import HeightField as HeightField
from .shapes import Plane as Plane
from .shapes import Shape as Shape
from .shapes import Sphere as Sphere
