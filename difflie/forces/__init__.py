"""Forces besides inertia and gravity, and the energy in them."""

from .attach import attach as attach
from .contacts import Contact as Contact
from .contacts import PlaneContact as PlaneContact
from .contacts import SphereContact as SphereContact
from .couplings import Coupling as Coupling
from .couplings import Damper as Damper
from .couplings import Elastic as Elastic
from .couplings import FollowerForce as FollowerForce
from .couplings import PointCoupling as PointCoupling
from .couplings import PointForce as PointForce
from .couplings import SmoothTensionDamper as SmoothTensionDamper
from .couplings import SmoothTensionSpring as SmoothTensionSpring
from .couplings import Spring as Spring
from .couplings import TensionDamper as TensionDamper
from .couplings import TensionSpring as TensionSpring
from .drives import Drive as Drive
from .energy import elastic_energy as elastic_energy
from .energy import energy as energy
from .inputs import FirstOrderHold as FirstOrderHold
from .inputs import SampledInput as SampledInput
from .inputs import ZeroOrderHold as ZeroOrderHold
from .motor import Motor as Motor
from .passive import passive_force as passive_force
from .path import Path as Path
from .stiffness import stiffness_matrix as stiffness_matrix
from .stops import JointStop as JointStop
