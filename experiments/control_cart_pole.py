"""Does a cart swing its pendulum up within its rail and its force?

The problem is configs/control/cart_pole.toml: 2 m of rail, at most 8 N, 2.5 s. The plan is replayed
with RKMK8 in steps of a fifth, with its gains and without.

    python experiments/control_cart_pole.py --out cart_pole

Result: cost 3.5778 after 160 iterations of FDDP from rest, 0.4 s without compiling (10 s with it);
the force touches its limit twice. The pendulum ends 0.011 rad from upright in the plan and in both
replays.
"""

from __future__ import annotations

import jax.numpy as jnp
import tyro
from worked import Options, judged, problem, told


def main(options: Options) -> None:
    planned, plan, figures = problem("cart_pole")
    goal = jnp.array([0.0, jnp.pi])

    def miss(q, v):
        """The largest of all distances from standing at rest in the middle, in SI units."""
        return jnp.max(jnp.abs(jnp.concatenate((q - goal, v))))

    figures |= judged(planned, plan, miss, 0.05)
    told("cart_pole", options, planned, plan, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
