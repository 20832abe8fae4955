import jax

# Both precisions are tested in one process: single precision by casting the inputs.
jax.config.update("jax_enable_x64", True)
