"""Native code: on the CPU whole programs and small functions as one call, on GPUs whole loops."""

from .blocks import in_blocks as in_blocks
from .call import LARGEST as LARGEST
from .call import mark as mark
from .kernel import kernel as kernel
