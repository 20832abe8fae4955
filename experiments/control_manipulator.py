"""How much effort do the springs of Goetz' manipulator save?

It lifts its tip by the plan of configs/control/manipulator.toml, and without its springs by another
one of the same problem. Both are replayed with RKMK8 in steps of a fifth.

    python experiments/control_manipulator.py --out manipulator

Result: cost 16.895 after 111 iterations of FDDP, 1 s without compiling, and 19.393 without springs:
these save an eighth of it, and 7 % of the torque (1.39 against 1.49 N m in the root of the mean
square). Both replays end 0.039 from the goal (m, rad/s), as the plan does.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import tyro
from worked import CONFIGS, Options, judged, problem, told

from difflie import control as dc


def main(options: Options) -> None:
    planned, plan, figures = problem("manipulator")
    (tip,) = (term for term in planned.final if isinstance(term, dc.Point))

    def miss(q, v):
        """The largest of the distances of the tip in m, and of the rates in rad/s."""
        away = tip.quantity(planned.system, q, v, None, 0.0)
        return jnp.max(jnp.abs(jnp.concatenate((away, v))))

    figures |= judged(planned, plan, miss, 0.05)
    solver = dc.read_control(CONFIGS / "manipulator.toml").solver
    bare = planned.replace(system=replace(planned.system, couplings=()))
    start = plan.q, plan.v, plan.u
    alone = dc.solve(bare, solver, start)
    figures["cost_without_springs"] = float(alone.cost)
    figures["status_without_springs"] = str(alone.result)
    figures["rms_torque_Nm"] = [float(jnp.sqrt(jnp.mean(p.u**2))) for p in (plan, alone)]
    told("manipulator", options, planned, plan, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
