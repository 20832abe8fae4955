"""Optimal control: problems, solvers, feedback.

A `Problem` has costs, bounds and inputs; `solve` finds a `Plan`. Costs are weighted quantities
(`difflie.quantities`), inputs are the commands of actuators or maps to them.
"""

from ..deprecated import names_of
from ..quantities import Bounded as Bounded
from ..simulate import Controller as Controller
from ..simulate import Sampled as Sampled
from .costs import CenterOfMass as CenterOfMass
from .costs import Configuration as Configuration
from .costs import Cost as Cost
from .costs import Duration as Duration
from .costs import Effort as Effort
from .costs import Energy as Energy
from .costs import Point as Point
from .costs import Pose as Pose
from .costs import State as State
from .costs import Velocity as Velocity
from .fddp import FDDP as FDDP
from .files import problem_of as problem_of
from .files import read_control as read_control
from .inputs import Commands as Commands
from .inputs import Concatenated as Concatenated
from .inputs import Input as Input
from .inputs import Map as Map
from .inputs import Motors as Motors
from .inputs import Thrusters as Thrusters
from .interior_point import InteriorPoint as InteriorPoint
from .ipopt import Ipopt as Ipopt
from .limits import Equal as Equal
from .limits import Limits as Limits
from .limits import MinDistance as MinDistance
from .limits import Reach as Reach
from .limits import ReachState as ReachState
from .linear_models import Gramian as Gramian
from .linear_models import Regulator as Regulator
from .linear_models import VaryingRegulator as VaryingRegulator
from .linear_models import controllability_gramian as controllability_gramian
from .linear_models import finite_gramian as finite_gramian
from .linear_models import lqr as lqr
from .linear_models import tvlqr as tvlqr
from .linearize import Linearisation as Linearisation
from .linearize import linearize as linearize
from .operational_space import OperationalSpaceControl as OperationalSpaceControl
from .plan import Plan as Plan
from .policy import Policy as Policy
from .policy import observation as observation
from .problem import Problem as Problem
from .replay import Receding as Receding
from .replay import replay as replay
from .result import KKT as KKT
from .result import Result as Result
from .result import Status as Status
from .solve import solve as solve
from .solver import IteratedSolver as IteratedSolver
from .solver import Solver as Solver
from .transcription import HermiteSimpson as HermiteSimpson
from .transcription import Shooting as Shooting
from .transcription import Transcription as Transcription
from .transcription import Trapezoidal as Trapezoidal

__getattr__ = names_of(__name__)
