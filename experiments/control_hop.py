"""Does a leg jump through compliant contact?

The problem is configs/control/hop.toml: no contact times and modes are given, the search finds them
through the contact's own forces. The plan is replayed with RKMK8 in steps of a fifth.

    python experiments/control_hop.py --out hop

Result: cost 0.44360 after 134 iterations of FDDP from its stand, 0.34 s without compiling. The leg
sways to load itself, pushes off, and leaves the ground after 0.27 s; its foot rises to 0.52 m. Plan
and replays miss the height of the trunk by less than 1 mm. With a contact twice as stiff, or from a
start that is no stand, it depends on rounding which optimum is found.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import tyro
from worked import Options, judged, problem, replayed, told

from difflie import quantities as dq


def main(options: Options) -> None:
    planned, plan, figures = problem("hop")

    def miss(q, v):
        """How far the trunk is from the height of the goal, in m."""
        return jnp.abs(q[0] - 0.4)

    figures |= judged(planned, plan, miss, 0.02)
    run = replayed(planned, plan)
    height = np.asarray(dq.along(dq.Point("shank", (0.0, 0.0, -0.2)), planned.system, run))[:, 2]
    figures["largest_height_of_foot_m"] = float(height.max())
    figures["time_on_ground_s"] = float(planned.dt * np.sum(height < 2e-3))
    told("hop", options, planned, plan, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
