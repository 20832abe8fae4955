"""Reference problems of constrained multibody dynamics: one file for each, and their comparison."""

from .comparison import reproduce as reproduce
from .comparison import show as show
