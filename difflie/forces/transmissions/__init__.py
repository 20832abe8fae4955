"""Transmissions: lengths as functions of the configuration, through which actuators act.

`transmission.py` says what they have in common, `joint.py`, `fixed_tendon.py`, `spatial_tendon.py`,
`site.py`, `slider_crank.py` and `adhesion.py` have one kind each, and `wrapping.py` the geometry of
tendons around spheres and cylinders.
"""

from .adhesion import Adhesion as Adhesion
from .fixed_tendon import FixedTendon as FixedTendon
from .joint import JointTransmission as JointTransmission
from .site import SiteTransmission as SiteTransmission
from .slider_crank import SliderCrank as SliderCrank
from .spatial_tendon import SpatialTendon as SpatialTendon
from .spatial_tendon import Wrap as Wrap
from .transmission import CoordinateTransmission as CoordinateTransmission
from .transmission import PointTransmission as PointTransmission
from .transmission import Pull as Pull
from .transmission import Transmission as Transmission
from .transmission import entry as entry
from .transmission import transmitted as transmitted
