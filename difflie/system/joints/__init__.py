"""The joint types, one file each; `joint` is the protocol, also for user-defined types."""

from .fixed import Fixed as Fixed
from .free import Free as Free
from .helical import Helical as Helical
from .joint import FORCE_UNITS as FORCE_UNITS
from .joint import ROW_FIELDS as ROW_FIELDS
from .joint import UNITS as UNITS
from .joint import Axis as Axis
from .joint import Dof as Dof
from .joint import Joint as Joint
from .joint import Mimic as Mimic
from .planar import Planar as Planar
from .planar import plane as plane
from .prismatic import Prismatic as Prismatic
from .revolute import Continuous as Continuous
from .revolute import Revolute as Revolute
from .series import Series as Series
from .spherical import Spherical as Spherical
from .translation import Translation as Translation
from .universal import Universal as Universal

TYPES: tuple[type[Joint], ...] = (
    *(Fixed, Revolute, Continuous, Prismatic, Helical),
    *(Universal, Planar, Translation, Spherical, Free),
)
