"""difflie: differentiable multibody dynamics on Lie groups.

Conventions. Twists (omega, v) and wrenches (moment, force) have their angular part first and are
body-fixed; a pose takes body to world coordinates; dexp is right-trivialised; quaternions are
(w, x, y, z); units are SI. Importing the package changes no global setting: for double precision
set `jax.config.update("jax_enable_x64", True)` first.
"""

from .adjoint import Adjoint as Adjoint
from .adjoint import Direct as Direct
from .dynamics import ClosedForm as ClosedForm
from .dynamics import Factorisation as Factorisation
from .dynamics import bias_force as bias_force
from .dynamics import body_jacobian as body_jacobian
from .dynamics import body_poses as body_poses
from .dynamics import body_twists as body_twists
from .dynamics import closed_form as closed_form
from .dynamics import difference as difference
from .dynamics import energy as energy
from .dynamics import forward_dynamics as forward_dynamics
from .dynamics import gravity_force as gravity_force
from .dynamics import integrate as integrate
from .dynamics import inverse_dynamics as inverse_dynamics
from .dynamics import inverse_mass_matrix as inverse_mass_matrix
from .dynamics import mass_factorisation as mass_factorisation
from .dynamics import mass_matrix as mass_matrix
from .dynamics import mass_product as mass_product
from .dynamics import mass_solve as mass_solve
from .dynamics import momentum as momentum
from .forces import FirstOrderHold as FirstOrderHold
from .forces import ZeroOrderHold as ZeroOrderHold
from .forces import passive_force as passive_force
from .groups import quaternion as quaternion
from .groups import se3 as se3
from .groups import so3 as so3
from .integrators import CF2 as CF2
from .integrators import CF3 as CF3
from .integrators import CF4 as CF4
from .integrators import CG2 as CG2
from .integrators import CG3 as CG3
from .integrators import CG4 as CG4
from .integrators import RKMK2 as RKMK2
from .integrators import RKMK3 as RKMK3
from .integrators import RKMK4 as RKMK4
from .integrators import RKMK5 as RKMK5
from .integrators import RKMK6 as RKMK6
from .integrators import RKMK8 as RKMK8
from .integrators import Method as Method
from .integrators import SemiImplicitEuler as SemiImplicitEuler
from .io import load as load
from .result import Result as Result
from .result import Trajectory as Trajectory
from .simulate import simulate as simulate
from .system import Body as Body
from .system import Continuous as Continuous
from .system import Fixed as Fixed
from .system import Free as Free
from .system import Helical as Helical
from .system import Joint as Joint
from .system import Mimic as Mimic
from .system import ModelError as ModelError
from .system import Planar as Planar
from .system import Prismatic as Prismatic
from .system import Revolute as Revolute
from .system import Spherical as Spherical
from .system import System as System
from .system import Universal as Universal
from .system import chain as chain
from .system import tree as tree
