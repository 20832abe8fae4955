"""The README's film: the shipped arm, balanced by a spring and a cable, thrown upwards.

python experiments/readme_picture.py [FILE]
"""

import sys

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import difflie as dl
import difflie.view as dv

ROBOT = dl.examples.path("arm7")


def main() -> None:
    arm = dl.load(ROBOT)
    balancer = dl.Spring([(None, (-0.25, 0.35, 0.9)), ("link2", (0.0, -0.25, 0.05))], 250.0, 0.3)
    cable = [("link2", (0.09, -0.1, 0.0)), ("link4", (0.09, 0.0, 0.0)), ("link6", (0.0, 0.0, 0.1))]
    system = dl.attach(arm, balancer, dl.Rope(cable, stiffness=150.0, rest_length=0.5))
    q0 = jnp.array([-1.3, 0.5, 0.0, -2.4, 0.0, 1.9, 0.8])
    v0 = jnp.array([4.0, -2.5, 0.5, 3.5, 0.0, 1.0, 2.0])
    run = dl.simulate(system, q0, v0, dt=2e-3, steps=1500, method=dl.RKMK4(), save_every=5)
    scene = dv.scene(system, run, dl.io.read_appearance(ROBOT, arm))
    path = sys.argv[1] if len(sys.argv) > 1 else "docs/arm.gif"
    print(dv.write_picture(scene, path, shown=dv.DrawOptions(traces=["payload"]), rate=15.0))


main()
