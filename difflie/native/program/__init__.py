"""Programs: functions on small arrays written out scalar by scalar, each scalar an instruction."""

from .folding import Program as Program
from .instructions import Instructions as Instructions
from .instructions import TooLong as TooLong
from .instructions import Unsupported as Unsupported
from .instructions import While as While
from .operations import BINARY as BINARY
from .operations import COMPARE as COMPARE
from .operations import NUMPY as NUMPY
from .operations import TYPES as TYPES
from .operations import UNARY as UNARY
from .vanished import finished as finished
