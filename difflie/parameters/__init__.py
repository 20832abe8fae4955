"""Numbers of a system by their paths: for fits, sweeps and co-design alike.

parameters = Parameters(system, [
    Parameter("link*/inertial"),
    Parameter("joint*/damping", prior=(0.1, 0.05)),
    Parameter("joint*/friction", tied=True, start=0.2),
    Parameter("link0/inertial", fixed=True),
])
parameters.system_at(parameters.start)            # the system of free numbers
parameters.with_values(parameters.initial)      # and of physical values
"""

from .bounds import Above as Above
from .bounds import Below as Below
from .bounds import Identity as Identity
from .bounds import Interval as Interval
from .bounds import Scaled as Scaled
from .bounds import positive as positive
from .declaration import Parameter as Parameter
from .definite import Definite as Definite
from .inertias import InertiaRatios as InertiaRatios
from .inertias import LogCholesky as LogCholesky
from .inertias import SecondMoments as SecondMoments
from .inertias import WithinEllipsoid as WithinEllipsoid
from .nearest_consistent import nearest_consistent as nearest_consistent
from .nearness import divergence_terms as divergence_terms
from .parameters import Parameters as Parameters
from .paths import entries as entries
from .pseudo_inertia import from_log_cholesky as from_log_cholesky
from .pseudo_inertia import log_cholesky as log_cholesky
from .pseudo_inertia import pseudo_inertia as pseudo_inertia
from .rotations import Direction as Direction
from .rotations import Rotation as Rotation
from .shared import SharedParameters as SharedParameters
from .transform import Transform as Transform
