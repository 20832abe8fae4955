"""Does a leg with a closed loop lift a payload, and is it kept closed?

The problem is configs/control/fourbar_payload.toml; its motion is that of RKMK4 with projection.
The plan is replayed with RKMK8 in steps of a fifth.

    python experiments/control_fourbar.py --out fourbar_payload

Result: cost 0.14228 after 13 iterations of FDDP from rest, 0.02 s without compiling, which takes
half a minute. Plan and replays end within 9e-5 of the goal (m, rad/s), and the loop is kept to
rounding.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import tyro
from worked import Options, judged, problem, replayed, told

from difflie import control as dc


def main(options: Options) -> None:
    planned, plan, figures = problem("fourbar_payload")
    (foot,) = (term for term in planned.final if isinstance(term, dc.Point))

    def miss(q, v):
        """The largest of the distances of the foot in m, and of the rates in rad/s."""
        away = foot.quantity(planned.system, q, v, None, 0.0)
        return jnp.max(jnp.abs(jnp.concatenate((away, v))))

    figures |= judged(planned, plan, miss, 0.05)
    violation, _ = replayed(planned, plan).constraint_violation(planned.system)
    figures["constraint_violation_m"] = float(np.max(violation))
    figures["reached"] &= figures["constraint_violation_m"] < 1e-8
    told("fourbar_payload", options, planned, plan, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
