"""How a time loop is differentiated: an argument of `simulate`."""

from .adjoint import Adjoint as Adjoint
from .adjoint import Steps as Steps
from .checkpointed import RecursiveCheckpoint as RecursiveCheckpoint
from .direct import Direct as Direct
from .forward import Forward as Forward
from .reversible import Reversible as Reversible
