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

from .declaration import Parameter as Parameter
from .inertias import InertiaRatios as InertiaRatios
from .inertias import LogCholesky as LogCholesky
from .inertias import SecondMoments as SecondMoments
from .inertias import WithinEllipsoid as WithinEllipsoid
from .nearness import divergence_terms as divergence_terms
from .parameters import Parameters as Parameters
from .paths import entries as entries
from .pseudo_inertia import from_log_cholesky as from_log_cholesky
from .pseudo_inertia import log_cholesky as log_cholesky
from .pseudo_inertia import nearest_consistent as nearest_consistent
from .pseudo_inertia import pseudo_inertia as pseudo_inertia
from .shared import SharedParameters as SharedParameters
from .transforms import Above as Above
from .transforms import Below as Below
from .transforms import Definite as Definite
from .transforms import Direction as Direction
from .transforms import Identity as Identity
from .transforms import Interval as Interval
from .transforms import Rotation as Rotation
from .transforms import Scaled as Scaled
from .transforms import Transform as Transform
from .transforms import positive as positive
