"""Does the variational integrator keep momentum for long, and what does a step cost?

    python experiments/bench_variational.py [--steps 100000]

Branched trees of revolute joints on a free base, without gravity. For each size the times of a step
of RKMK4 and of VariationalMidpoint, the shortest of five runs; for 30 joints the largest change of
the angular momentum, computed afresh from q and v.

Two cores of an Intel Xeon, jax 0.10.2: 32, 53, 73 and 131 us for 10, 20, 30 and 60 joints, 2.4 to
2.6 times a step of RKMK4; angular momentum 201.27 +- 7.2e-12 N m s after 100 000 steps.
"""

import argparse
import sys
import time
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
from trees import random_body

import difflie as dl


def flyer(joints: int):
    rng = np.random.default_rng(joints)
    bodies = [random_body(rng, "base", dl.Free(), None, rotation=np.zeros(3))]
    for i in range(joints):
        above = int(rng.integers(max(0, i - 4), i + 1))
        joint = dl.Revolute(axis=tuple(rng.normal(size=3)), stiffness=2.0)
        bodies.append(random_body(rng, f"b{i}", joint, bodies[above].name))
    system = dl.tree(bodies).replace(gravity=np.zeros(3))
    q = np.asarray(system.neutral()).copy()
    q[7:] = rng.uniform(-1, 1, joints)
    v = rng.normal(size=system.nv) * 0.5
    # At rest as a whole: what flies away has a rounding error of its angular momentum that grows
    # with the distance from the origin.
    v[3:6] -= np.asarray(dl.momentum(system, q, v))[3:] / float(dl.total_mass(system))
    return system, q, v


def run(system, q, v, method, steps, save_every):
    options = {"dt": 0.005, "steps": steps, "method": method, "save_every": save_every}
    return jax.block_until_ready(dl.simulate(system, q, v, **options))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100_000)
    steps = parser.parse_args().steps
    for joints in (10, 20, 30, 60):
        system, q, v = flyer(joints)
        times = []
        for method in (dl.RKMK4(), dl.VariationalMidpoint()):
            assert run(system, q, v, method, 1000, 1000).result.ok
            best = np.inf
            for _ in range(5):
                start = time.perf_counter()
                run(system, q, v, method, 1000, 1000)
                best = min(best, time.perf_counter() - start)
            times.append(best * 1e3)
        explicit, variational = times
        print(
            f"{joints} joints: RKMK4 {explicit:.1f} us, VariationalMidpoint {variational:.1f} us, "
            f"ratio {variational / explicit:.1f}",
            flush=True,
        )
        if joints == 30:
            found = run(system, q, v, dl.VariationalMidpoint(), steps, max(1, steps // 200))
            momentum = np.asarray(found.momentum(system))
            change = np.linalg.norm((momentum - momentum[0])[:, :3], axis=1).max()
            size = np.linalg.norm(momentum[0, :3])
            print(f"{steps} steps: {found.result}; angular momentum {size:.2f} +- {change:.1e}")


if __name__ == "__main__":
    main()
