"""Can a quadrotor turn over once within a second, with rotors that only push?

The problem is configs/control/flip.toml; what turns it is a running cost of its own, the rotation
from a turn in time (flip.py beside it). The plan is replayed with RKMK8 in steps of a fifth.

    python experiments/control_flip.py --out flip

Result: cost 0.048164 after 10 iterations of FDDP from the turn in one place, 0.02 s without
compiling. The quadrotor throws itself up, turns by 6.2832 rad with one rotor at zero, then the
opposite one, and catches itself; the largest thrust is 3.4 N. The replay with gains ends within
1e-4 of rest (rad, m, rad/s, m/s), that without within 0.01.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import tyro
from worked import Options, judged, problem, told


def main(options: Options) -> None:
    planned, plan, figures = problem("flip")
    rest = planned.system.neutral()

    def miss(q, v):
        """The largest distance from rest at the start, in rad, m, rad/s and m/s."""
        away = planned.system.manifold.difference(rest, q)
        return jnp.max(jnp.abs(jnp.concatenate((away, v))))

    figures |= judged(planned, plan, miss, 0.05)
    # The angle in all: the rate about x, which is that of the hull, over time.
    figures["turned_rad"] = float(np.trapezoid(plan.v[:, 0], plan.t))
    figures["least_thrust_N"] = float(plan.u.min())
    figures["largest_thrust_N"] = float(plan.u.max())
    figures["reached"] &= abs(figures["turned_rad"] - 2 * np.pi) < 0.3
    told("flip", options, planned, plan, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
