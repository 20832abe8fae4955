"""The dynamics of a system: the functions a user calls.

Each takes a `System` and flat arrays q (nq,), v (nv,), ... in its precision, checks them, and
compiles itself once for each system topology. Under `jax.vmap`, `jax.jit` and `jax.grad` they
inline. Twists and wrenches have their angular part first and are body-fixed unless said.

Units are SI, dof by dof those of the joint: v in rad/s or m/s, a generalised force in N m or N, and
M in kg m^2 or kg, or kg m between a turning and a sliding dof.
"""

from .api import base_parameters as base_parameters
from .api import bias_force as bias_force
from .api import body_jacobian as body_jacobian
from .api import body_jacobian_rate as body_jacobian_rate
from .api import body_poses as body_poses
from .api import body_twists as body_twists
from .api import center_of_mass as center_of_mass
from .api import center_of_mass_jacobian as center_of_mass_jacobian
from .api import centroidal_momentum_matrix as centroidal_momentum_matrix
from .api import closed_form as closed_form
from .api import coriolis_matrix as coriolis_matrix
from .api import difference as difference
from .api import forward_dynamics as forward_dynamics
from .api import forward_dynamics_derivatives as forward_dynamics_derivatives
from .api import geometric_jacobian as geometric_jacobian
from .api import geometric_jacobian_rate as geometric_jacobian_rate
from .api import gravity_force as gravity_force
from .api import inertial_parameters as inertial_parameters
from .api import integrate as integrate
from .api import inverse_dynamics as inverse_dynamics
from .api import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .api import inverse_dynamics_regressor as inverse_dynamics_regressor
from .api import inverse_mass_matrix as inverse_mass_matrix
from .api import jacobian as jacobian
from .api import kinetic_energy_regressor as kinetic_energy_regressor
from .api import mass_factorisation as mass_factorisation
from .api import mass_matrix as mass_matrix
from .api import mass_product as mass_product
from .api import mass_solve as mass_solve
from .api import momentum as momentum
from .api import momentum_regressor as momentum_regressor
from .api import operational_space as operational_space
from .api import pose as pose
from .api import potential_energy_regressor as potential_energy_regressor
from .api import spatial_jacobian as spatial_jacobian
from .api import spatial_jacobian_rate as spatial_jacobian_rate
from .api import total_mass as total_mass
from .api import with_inertial_parameters as with_inertial_parameters
from .closed_form import ClosedForm as ClosedForm
from .factorisation import Factorisation as Factorisation
from .identifiable import BaseParameters as BaseParameters
from .operational_space import OperationalSpace as OperationalSpace
