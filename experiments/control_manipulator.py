"""How much effort do the springs of Goetz' manipulator save?

It lifts its tip by the plan of configs/control/manipulator.toml, and without its springs by another
one of the same problem. Both are replayed with RKMK8 in steps of a fifth.

    python experiments/control_manipulator.py --out manipulator
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
