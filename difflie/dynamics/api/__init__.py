"""What a user calls: the algorithms of `difflie.dynamics` on a system, checked and compiled.

Each function takes a `System` and flat arrays q (nq,), v (nv,), ... in its precision, checks them,
and compiles itself once for each system topology. Under `jax.vmap`, `jax.jit` and `jax.grad` they
inline.
"""
