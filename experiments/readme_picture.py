"""The README's picture: the shipped arm, balanced by a spring and a cable, in motion.

python experiments/readme_picture.py [FILE]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import difflie as dl
from difflie.io.appearance import read_appearance
from difflie.view.animate import write_picture
from difflie.view.drawing import DrawOptions
from difflie.view.scenes import scene

ROBOT = Path(dl.__file__).parent / "data/arm7.urdf"


def main() -> None:
    arm = dl.load(ROBOT)
    balancer = dl.Spring([(None, (-0.25, 0.35, 0.9)), ("link2", (0.0, -0.25, 0.05))], 250.0, 0.3)
    cable = [("link2", (0.09, -0.1, 0.0)), ("link4", (0.09, 0.0, 0.0)), ("link6", (0.0, 0.0, 0.1))]
    system = dl.attach(arm, balancer, dl.Rope(cable, stiffness=150.0, rest_length=0.5))
    q0 = jnp.array([-1.3, 0.5, 0.0, -2.4, 0.0, 1.9, 0.8])
    v0 = jnp.array([4.0, -2.5, 0.5, 3.5, 0.0, 1.0, 2.0])
    run = dl.simulate(system, q0, v0, dt=2e-3, steps=200, method=dl.RKMK4(), save_every=5)
    view = scene(system, run, read_appearance(ROBOT, arm))
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/arm.png")
    write_picture(view, path, shown=DrawOptions(traces=["payload"]), moments=4)


main()
