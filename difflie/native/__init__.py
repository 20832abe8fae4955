"""Native code: functions on small arrays and loops of them, compiled into machine code."""

from .jaxprs import without_closure as without_closure
from .kernel import kernel as kernel
from .kernel import scan as scan
from .private import linear_identity as linear_identity
