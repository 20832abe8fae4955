"""Control: linear models of a motion, regulators, feedback, and what a machine can reach."""

from ..simulate import Controller as Controller
from ..simulate import Sampled as Sampled
from .gramian import Gramian as Gramian
from .gramian import controllability_gramian as controllability_gramian
from .gramian import finite_gramian as finite_gramian
from .linearize import Linearisation as Linearisation
from .linearize import linearize as linearize
from .lqr import Regulator as Regulator
from .lqr import VaryingRegulator as VaryingRegulator
from .lqr import lqr as lqr
from .lqr import tvlqr as tvlqr
from .operational_space import OperationalSpaceControl as OperationalSpaceControl
from .policy import Policy as Policy
from .policy import observation as observation
