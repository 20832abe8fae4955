"""Parameters of a machine from measurements: recordings, errors, fits, and motions to measure.

parameters = Parameters(system, [
    Parameter("link*/inertial"),
    Parameter("joint*/damping", prior=(0.1, 0.05)),
    Parameter("joint*/friction", tied=True, start=0.2),
    Parameter("link0/inertial", fixed=True),
])
parameters.machine(parameters.start)        # the system at the start
"""

from .descent import Descent as Descent
from .doubts import doubts as doubts
from .estimate import Information as Information
from .estimate import correlations as correlations
from .estimate import information as information
from .estimate import whiteness as whiteness
from .excitation import Excitation as Excitation
from .excitation import excitation as excitation
from .fit import Fit as Fit
from .fit import fit as fit
from .inverse_dynamics import InverseDynamics as InverseDynamics
from .levenberg_marquardt import LevenbergMarquardt as LevenbergMarquardt
from .linear import Linear as Linear
from .linear import LinearTorques as LinearTorques
from .linear import linear as linear
from .losses import Cauchy as Cauchy
from .losses import Huber as Huber
from .losses import Loss as Loss
from .losses import Squares as Squares
from .nearness import Nearness as Nearness
from .parameters import Parameter as Parameter
from .parameters import Parameters as Parameters
from .problem import Problem as Problem
from .pseudo_inertia import from_log_cholesky as from_log_cholesky
from .pseudo_inertia import log_cholesky as log_cholesky
from .pseudo_inertia import pseudo_inertia as pseudo_inertia
from .recordings import DataError as DataError
from .recordings import Recording as Recording
from .recordings import read_recording as read_recording
from .sensors import Encoder as Encoder
from .sensors import with_encoders as with_encoders
from .shooting import Shooting as Shooting
from .transforms import Above as Above
from .transforms import Below as Below
from .transforms import Definite as Definite
from .transforms import Direction as Direction
from .transforms import Identity as Identity
from .transforms import InertiaRatios as InertiaRatios
from .transforms import Interval as Interval
from .transforms import LogCholesky as LogCholesky
from .transforms import Rotation as Rotation
from .transforms import Scaled as Scaled
from .transforms import SecondMoments as SecondMoments
from .transforms import Transform as Transform
from .transforms import WithinEllipsoid as WithinEllipsoid
from .transforms import positive as positive
