"""The dynamics of a system: the functions a user calls.

Each takes a `System` and flat arrays q (nq,), v (nv,), ... in its precision, checks them, and
compiles itself once for each system topology. Under `jax.vmap`, `jax.jit` and `jax.grad` they
inline. Twists and wrenches have their angular part first and are body-fixed unless said.

Units are SI, dof by dof those of the joint: v in rad/s or m/s, a generalised force in N m or N, and
M in kg m^2 or kg, or kg m between a turning and a sliding dof.
"""

from .api.bodies import body_jacobian as body_jacobian
from .api.bodies import body_jacobian_rate as body_jacobian_rate
from .api.bodies import body_poses as body_poses
from .api.bodies import body_twists as body_twists
from .api.bodies import difference as difference
from .api.bodies import geometric_jacobian as geometric_jacobian
from .api.bodies import geometric_jacobian_rate as geometric_jacobian_rate
from .api.bodies import integrate as integrate
from .api.bodies import spatial_jacobian as spatial_jacobian
from .api.bodies import spatial_jacobian_rate as spatial_jacobian_rate
from .api.equations_of_motion import bias_force as bias_force
from .api.equations_of_motion import closed_form as closed_form
from .api.equations_of_motion import coriolis_matrix as coriolis_matrix
from .api.equations_of_motion import forward_dynamics as forward_dynamics
from .api.equations_of_motion import forward_dynamics_derivatives as forward_dynamics_derivatives
from .api.equations_of_motion import gravity_force as gravity_force
from .api.equations_of_motion import inverse_dynamics as inverse_dynamics
from .api.equations_of_motion import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .api.equations_of_motion import inverse_mass_matrix as inverse_mass_matrix
from .api.equations_of_motion import mass_factorisation as mass_factorisation
from .api.equations_of_motion import mass_matrix as mass_matrix
from .api.equations_of_motion import mass_product as mass_product
from .api.equations_of_motion import mass_solve as mass_solve
from .api.equations_of_motion import operational_space as operational_space
from .api.momentum import center_of_mass as center_of_mass
from .api.momentum import center_of_mass_jacobian as center_of_mass_jacobian
from .api.momentum import centroidal_momentum_matrix as centroidal_momentum_matrix
from .api.momentum import momentum as momentum
from .api.momentum import total_mass as total_mass
from .api.regressors import base_parameters as base_parameters
from .api.regressors import inertial_parameters as inertial_parameters
from .api.regressors import inverse_dynamics_regressor as inverse_dynamics_regressor
from .api.regressors import kinetic_energy_regressor as kinetic_energy_regressor
from .api.regressors import momentum_regressor as momentum_regressor
from .api.regressors import potential_energy_regressor as potential_energy_regressor
from .api.regressors import with_inertial_parameters as with_inertial_parameters
from .closed_form import ClosedForm as ClosedForm
from .factorisation import Factorisation as Factorisation
from .identifiable import BaseParameters as BaseParameters
from .operational_space import OperationalSpace as OperationalSpace
