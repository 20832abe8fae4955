"""Functions that are swept on a cluster, in a module that no worker can import by itself."""

import time
import zlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from small import SWINGS


class Spring(eqx.Module):
    """A control that is an Equinox module."""

    stiffness: float = 2.0

    def __call__(self, t, q, v):
        return -self.stiffness * q


def waited(seconds):
    """SWINGS, of which a chunk takes some seconds more."""

    def wait(x):
        time.sleep(seconds)
        return np.asarray(x)

    def function(numbers):
        x = jax.pure_callback(
            wait, jax.ShapeDtypeStruct((), float), numbers["bob/mass"], vmap_method="broadcast_all"
        )
        return SWINGS({**numbers, "bob/mass": x})

    return function


def checksum(table):
    """Of all bits of a table."""
    return zlib.crc32(b"".join(table[name].values.tobytes() for name in table.variables))


def counted(numbers):
    """An array of a type that depends on the precision."""
    return {"value": jnp.asarray(1.0) * numbers["x"] / 3.0}
