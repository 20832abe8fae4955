"""Reference problems of constrained multibody dynamics: one file for each, and their comparison."""

from .comparison import agreements as agreements
from .comparison import compute as compute
from .comparison import sections as sections
