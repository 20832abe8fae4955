"""Does an arm reach its goal past two spheres, within all its limits?

The problem is configs/control/arm_obstacles.toml. The plan is replayed with RKMK8 in steps of a
fifth; the spheres are kept away from at its knots, and the replay is measured in between, too.

    python experiments/control_arm_obstacles.py --out arm_obstacles

Result: cost 0.6 after some 170 iterations of FDDP from rest, 1.4 s without compiling; the elbow
passes along its sphere, joint4 moves at its largest speed. The replay with gains misses the pose by
0.006 (rad and m): without them the arm, which stands up like a pendulum, falls.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from worked import Options, judged, problem, replayed, told

from difflie import control as dc
from difflie import quantities as dq


def main(options: Options) -> None:
    planned, plan, figures = problem("arm_obstacles")
    system = planned.system
    (pose,) = (term for term in planned.final if isinstance(term, dc.Pose))
    apart = [term for term in planned.running if isinstance(term, dc.MinDistance)]

    def miss(q, v):
        """The largest of the deviations of the pose, in rad and m, and of the rates in rad/s."""
        return jnp.max(jnp.abs(jnp.concatenate((pose.quantity(system, q, v, None, 0.0), v))))

    figures |= judged(planned, plan, miss, 0.05)
    run = replayed(planned, plan)
    t = jnp.linspace(0, run.t[-1], 10 * planned.steps + 1)
    q, v = run.at(t)
    figures["clearance_m"] = [
        float(jnp.min(jax.vmap(lambda q, v, b=b: b.value(system, q, v, None, 0.0))(q, v) - b.lower))
        for b in apart
    ]
    figures["limit_left"] = float(np.min(dq.along(dq.LimitMargin(), system, run)))
    figures["largest_share_of_torque"] = float(jnp.max(jnp.abs(plan.u) / system.joints.max_effort))
    figures["reached"] &= min(figures["clearance_m"]) > -1e-3
    told("arm_obstacles", options, planned, plan, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
