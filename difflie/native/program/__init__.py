"""Programs: functions on small arrays written out scalar by scalar, each scalar an instruction."""

from .folding import MOST_INDICES as MOST_INDICES
from .folding import MOST_WRITTEN as MOST_WRITTEN
from .folding import NUMPY as NUMPY
from .folding import TYPES as TYPES
from .folding import Program as Program
from .folding import check_dynamic as check_dynamic
from .fusion import fused as fused
from .instructions import Instructions as Instructions
from .instructions import TooLong as TooLong
from .instructions import Unsupported as Unsupported
from .instructions import While as While
from .nan_masks import finished as finished
from .operations import BINARY as BINARY
from .operations import COMPARE as COMPARE
from .operations import ELEMENTARY as ELEMENTARY
from .operations import OPERATIONS as OPERATIONS
from .operations import UNARY as UNARY
