"""Reference problems of constrained multibody dynamics: files by kind, and their comparison."""

from .comparison import agreements as agreements
from .comparison import compute as compute
from .comparison import sections as sections
