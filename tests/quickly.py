"""For programs that run once or twice: compiling them is what takes the time."""

import functools

import jax

QUICKLY = {"xla_backend_optimization_level": 0}
if jax.__version_info__ < (0, 11):  # not tried with later versions
    QUICKLY["xla_cpu_use_fusion_emitters"] = False

# jax.jit with these options, for calls that are not made within other programs.
once = functools.partial(jax.jit, compiler_options=QUICKLY)
