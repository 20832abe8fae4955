"""How a time loop is differentiated: an argument of `simulate`."""

from .adjoint import Adjoint as Adjoint
from .adjoint import Direct as Direct
from .adjoint import Forward as Forward
from .adjoint import Steps as Steps
from .checkpointed import RecursiveCheckpoint as RecursiveCheckpoint
from .reversible import Reversible as Reversible
