"""difflie: differentiable multibody dynamics on Lie groups.

Conventions. Twists (omega, v) and wrenches (moment, force) have their angular part first and are
body-fixed; a pose takes body to world coordinates; dexp is right-trivialised; quaternions are
(w, x, y, z); units are SI. Importing the package changes no global setting: for double precision
set `jax.config.update("jax_enable_x64", True)` first.
"""

from .adjoint import Adjoint as Adjoint
from .adjoint import Direct as Direct
from .dynamics import BaseParameters as BaseParameters
from .dynamics import base_parameters as base_parameters
from .dynamics import bias_force as bias_force
from .dynamics import body_jacobian as body_jacobian
from .dynamics import body_jacobian_rate as body_jacobian_rate
from .dynamics import body_poses as body_poses
from .dynamics import body_twists as body_twists
from .dynamics import center_of_mass as center_of_mass
from .dynamics import center_of_mass_jacobian as center_of_mass_jacobian
from .dynamics import centroidal_momentum_matrix as centroidal_momentum_matrix
from .dynamics import coriolis_matrix as coriolis_matrix
from .dynamics import difference as difference
from .dynamics import energy as energy
from .dynamics import forward_dynamics as forward_dynamics
from .dynamics import forward_dynamics_derivatives as forward_dynamics_derivatives
from .dynamics import geometric_jacobian as geometric_jacobian
from .dynamics import geometric_jacobian_rate as geometric_jacobian_rate
from .dynamics import inertial_parameters as inertial_parameters
from .dynamics import integrate as integrate
from .dynamics import inverse_dynamics as inverse_dynamics
from .dynamics import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .dynamics import inverse_dynamics_regressor as inverse_dynamics_regressor
from .dynamics import kinetic_energy_regressor as kinetic_energy_regressor
from .dynamics import mass_matrix as mass_matrix
from .dynamics import momentum as momentum
from .dynamics import momentum_regressor as momentum_regressor
from .dynamics import potential_energy_regressor as potential_energy_regressor
from .dynamics import spatial_jacobian as spatial_jacobian
from .dynamics import spatial_jacobian_rate as spatial_jacobian_rate
from .dynamics import total_mass as total_mass
from .dynamics import with_inertial_parameters as with_inertial_parameters
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
from .io import MujocoOrdering as MujocoOrdering
from .io import PinocchioOrdering as PinocchioOrdering
from .io import load as load
from .io import save as save
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
