"""Signed distances and contact points of pairs of convex shapes, exact and differentiable.

Pure functions of two poses and of the numbers of two shapes, of fixed numbers of operations: they
run under `jax.jit`, `jax.vmap` and derivatives of any mode, in either precision. The map:

`witness.py`: a contact point; the point of least gap.
`planes.py`: a plane and any other shape.
`spheres_and_capsules.py`: points and segments with a radius around them.
`boxes.py`: boxes with spheres, capsules and boxes; `box_faces.py`: what two faces share.
`cylinders.py`: cylinders and spheres.
`heights.py`: a height field and balls.
`support.py`: any other two bounded shapes; `cores.py`: how far they reach along a normal;
`normals.py`: the normal along which two are separated most; `flat_faces.py`: the points of shapes
that lie flat on each other.
`smooth.py`: distances of rounded shapes, whose gradients are continuous.
`table.py`: the function of two kinds of shapes.
"""

from .smooth import smooth_points as smooth_points
from .table import contact_points as contact_points
from .witness import Witness as Witness
from .witness import deepest as deepest
