"""Do wheels turn a satellite by 180 degrees, and thrusters stop a tumbling free flyer?

The problems are configs/control/slew.toml and detumble.toml. A quaternion and its negative are one
attitude: the free flyer starts with both signs, and the plans must cost the same, also for starts
turned a little further, through half a turn from the goal. The plans are replayed with RKMK8 in
steps of a fifth.

    python experiments/control_satellite.py --out satellite_control

Result: the slew costs 0.10091 after 23 iterations of FDDP from rest, 0.4 s without compiling, the
detumbling 0.029324 after 16, with several thrusters at zero at any time. Replays with gains end
0.002 and 0.001 from the goals, those without 0.0005 and 0.02 (rad, m, rad/s, m/s). Both signs of a
quaternion cost the same to the last digit; starts 0.01 rad beyond half a turn, with which the
tumble carries on to the goal, cost 0.029, those 0.01 rad before it, which turn back, 0.45.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import tyro
from worked import CONFIGS, Options, judged, problem, told

from difflie import control as dc
from difflie import quaternion


def main(options: Options) -> None:
    out = options.out or Path("satellite_control")
    for name in ("slew", "detumble"):
        planned, plan, figures = problem(name)
        (end,) = planned.final
        weighed = np.asarray(jnp.broadcast_to(end.weight, 2 * planned.system.nv) > 0)

        def miss(q, v, planned=planned, end=end, weighed=weighed):
            """The largest deviation from the goal that the problem weighs, in SI units."""
            return jnp.max(jnp.abs(end.quantity(planned.system, q, v, None, 0.0)[weighed]))

        figures |= judged(planned, plan, miss, 0.05)
        if name == "detumble":
            figures |= signs(planned)
            figures["reached"] &= figures["largest_difference_by_sign"] < 1e-6
        json = options.json and options.json.with_stem(f"{options.json.stem}_{name}")
        told(name, replace(options, out=out, json=json), planned, plan, figures)


def signs(planned: dc.Problem) -> dict:
    """The costs of starts about half a turn away from the goal, by angle, with both signs of q."""
    solver = dc.read_control(CONFIGS / "detumble.toml").solver
    costs = {}
    for angle in np.pi + np.array([-0.1, -0.01, 0.01, 0.1]):
        attitude = quaternion.exp(angle * jnp.array([0.6, 0.0, 0.8]))
        start = planned.q0.at[:4].set(attitude)
        both = [start, start.at[:4].multiply(-1.0)]
        costs[f"{angle:.3f}"] = [float(dc.solve(planned.replace(q0=q), solver).cost) for q in both]
    apart = max(abs(a - b) / abs(a) for a, b in costs.values())
    return {"costs_by_angle": costs, "largest_difference_by_sign": apart}


if __name__ == "__main__":
    main(tyro.cli(Options))
