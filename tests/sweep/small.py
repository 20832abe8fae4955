"""A small sweep, and the same as a process of its own that can be killed."""

import sys

import jax

jax.config.update("jax_enable_x64", True)


import difflie as dl
from difflie import quantities as dq

PENDULUM = dl.chain(
    [
        dl.Body(
            name="bob",
            joint=dl.Revolute(axis=(0.0, 1.0, 0.0), name="hinge"),
            mass=1.0,
            com=(0.0, 0.0, -1.0),
        )
    ]
)
SWINGS = dl.Motions(
    PENDULUM,
    {"drift": dq.Drift(dq.Energy()), "peak": dq.Peak(dq.Velocities())},
    dt=1e-2,
    steps=100,
    method="SemiImplicitEuler",
)
DESIGN = dl.Sobol({"bob/mass": dl.Uniform(0.5, 2.0), "q0/hinge": dl.Normal(0.0, 1.0)}, 1000, seed=5)
CHUNK = 64


if __name__ == "__main__":

    def report(done, size):
        print(done, flush=True)

    dl.sweep(SWINGS, DESIGN, sys.argv[1], chunk=CHUNK, progress=report)
