"""Spatial algebra on scalar components: motions, forces, transforms and inertias.

Twists and accelerations are `Motion`s (angular, linear), wrenches are `Force`s (moment, force),
both expressed in, and taken at the origin of, a body frame. A `Transform` T takes coordinates of
its inner frame to its outer one: T = X_parent_child throughout. Units are SI.

All classes are pytrees whose components are floats or arrays of any one shape, operated on
elementwise: the same source describes one body, all bodies at once, or a batch of machines.
The formulas are those of Park and Chung 2005 and Reuss 2002 with the angular part first.
"""

from .inertias import ArticulatedInertia as ArticulatedInertia
from .inertias import Inertia as Inertia
from .inertias import Symmetric as Symmetric
from .operators import MotionToForce as MotionToForce
from .operators import MotionTransform as MotionTransform
from .screws import Screw as Screw
from .transforms import Transform as Transform
from .vectors import Force as Force
from .vectors import Motion as Motion
