"""Native code: functions on small arrays and loops of them, compiled into machine code.

From the call to the code: `kernel.py` traces a function, in which calls are but
`deferred_calls.py`, `partition.py` leaves what is large to XLA, `loop.py` and `loop_body.py` are
what a call computes,
`loop_derivatives.py` the loops that follow from it, `primitive.py` what jax does with them.
`rules/` writes it as a program of scalars, one file for each kind of operation; `program/` is what
that is made of.
`cpu/` prints programs as LLVM IR, compiles and calls them; `gpu/` does so with CUDA C.
`fingerprint.py` and `disk_cache.py` cache code between processes, `stored.py` whole functions, of
which `contents.py` says what a trace of them reads. `closures.py` sees what users change.
`strict_user_code.py` tells what users wrote from what this package did. `collector.py` switches
Python's garbage collector off while programs are made. Names of jax that may change with any
version stand in `private.py`.
"""

from .closures import Watched as Watched
from .closures import code_of as code_of
from .closures import watched as watched
from .collector import collector_off as collector_off
from .fingerprint import digest as digest
from .jaxprs import without_closure as without_closure
from .kernel import kernel as kernel
from .kernel import scan as scan
from .private import coordination as coordination
from .private import linear_identity as linear_identity
from .private import staging as staging
from .stored import stored as stored
from .strict_user_code import as_written as as_written
from .strict_user_code import is_own as is_own
from .strict_user_code import structured as structured
