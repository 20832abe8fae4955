"""Native code on the CPU: whole programs as one call, small functions as one block."""

from .call import mark as mark
from .kernel import kernel as kernel
