"""Identification: recordings, errors, fits of parameters, and motions designed to measure them."""

from ..deprecated import names_of
from ..quantities import Bounded as Bounded
from ..sensors import Encoder as Encoder
from ..sensors import Sensor as Sensor
from ..sensors import with_sensors as with_sensors
from .arm import ArmSettings as ArmSettings
from .arm import identify_arm as identify_arm
from .base_parameters import Linear as Linear
from .base_parameters import linear as linear
from .consistency import NominalPrior as NominalPrior
from .design import Excitation as Excitation
from .design import excitation as excitation
from .fitting import Fit as Fit
from .fitting import fit as fit
from .inverse_dynamics import InverseDynamics as InverseDynamics
from .least_squares import Descent as Descent
from .least_squares import LevenbergMarquardt as LevenbergMarquardt
from .log_warnings import log_warnings as log_warnings
from .log_warnings import rate_warnings as rate_warnings
from .losses import Cauchy as Cauchy
from .losses import Huber as Huber
from .losses import Loss as Loss
from .losses import Squares as Squares
from .problem import Layout as Layout
from .problem import OfMachine as OfMachine
from .problem import Problem as Problem
from .reactions import with_closed_contacts as with_closed_contacts
from .reading.columns import DataError as DataError
from .reading.logs import columns_of as columns_of
from .reading.logs import read_recording as read_recording
from .readings import Readings as Readings
from .recordings import Recording as Recording
from .recursive_least_squares import RecursiveLeastSquares as RecursiveLeastSquares
from .recursive_least_squares import payload_rows as payload_rows
from .refits import Bootstrap as Bootstrap
from .refits import Profile as Profile
from .refits import bootstrap as bootstrap
from .refits import leave_one_out as leave_one_out
from .refits import profile as profile
from .sensors import pose_readings as pose_readings
from .shooting import Shooting as Shooting
from .statistics import Information as Information
from .statistics import correlations as correlations
from .statistics import information as information
from .statistics import whiteness as whiteness
from .torque_rows import LinearTorques as LinearTorques
from .torque_rows import RateCoupling as RateCoupling
from .validation import Comparison as Comparison
from .validation import Trial as Trial
from .validation import Validation as Validation
from .validation import compare as compare

__getattr__ = names_of(__name__)
