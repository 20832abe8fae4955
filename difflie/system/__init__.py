"""Systems: bodies, joints, and how they are connected."""

from .body import Body as Body
from .builders import bodies_of as bodies_of
from .builders import chain as chain
from .builders import tree as tree
from .fields import number as number
from .from_tables import from_dh as from_dh
from .from_tables import from_screws as from_screws
from .joints import Continuous as Continuous
from .joints import Dof as Dof
from .joints import Fixed as Fixed
from .joints import Free as Free
from .joints import Helical as Helical
from .joints import Joint as Joint
from .joints import Mimic as Mimic
from .joints import Planar as Planar
from .joints import Prismatic as Prismatic
from .joints import Revolute as Revolute
from .joints import Spherical as Spherical
from .joints import Translation as Translation
from .joints import Universal as Universal
from .named_states import NamedState as NamedState
from .system import System as System
from .validation import ModelError as ModelError
