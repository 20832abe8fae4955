"""Programs of jaxprs: how each operation of jax is written, scalar by scalar."""

from . import arithmetic, control_flow, indexing, matrices, moves, reductions  # noqa: F401
from .reductions import work as work
from .tangents import Differentiable as Differentiable
from .tangents import copied as copied
from .writing import LARGEST as LARGEST
from .writing import RULES as RULES
from .writing import SCALAR_RULES as SCALAR_RULES
from .writing import arguments as arguments
from .writing import constants as constants
from .writing import elementwise as elementwise
from .writing import flat as flat
from .writing import kind_of as kind_of
from .writing import like as like
from .writing import write_closed as write_closed
