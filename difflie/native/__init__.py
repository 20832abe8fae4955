"""Native code: functions on small arrays and loops of them, compiled into machine code."""

from .kernel import kernel as kernel
from .kernel import scan as scan
