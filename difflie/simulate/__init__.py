"""The time loop: a system, an initial state and a method in, a trajectory out."""

from . import adjoint as adjoint
from .adjoint import Adjoint as Adjoint
from .adjoint import Direct as Direct
from .adjoint import Forward as Forward
from .adjoint import RecursiveCheckpoint as RecursiveCheckpoint
from .adjoint import Reversible as Reversible
from .error_estimate import ErrorEstimate as ErrorEstimate
from .inputs import Controller as Controller
from .inputs import Sampled as Sampled
from .result import Ending as Ending
from .result import Reconstruction as Reconstruction
from .result import Result as Result
from .simulation import simulate as simulate
from .smoothed import smoothed as smoothed
from .step import Stepped as Stepped
from .step import step as step
from .trajectory import Trajectory as Trajectory
