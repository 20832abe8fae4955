"""How fast is optimal control, next to crocoddyl?

    python experiments/bench_control.py --crocoddyl-python PATH --json bench_control.json
    python experiments/bench_control.py --problems arm7 --parts pieces

Same machines, costs, semi-implicit Euler steps of 0.01 s and starts in both, 100 of them, one
thread each, runs interleaved, the best of many; crocoddyl's times are 1. It needs pin and
libpinocchio 4.0.0, so it runs in an environment of its own: PATH is the Python of one in which
`pip install crocoddyl==3.2.1 libpinocchio==4.0.0 pin==4.0.0` has been done. Its code generation is
not in its wheel and not part of this.

An iteration is the whole search over its iterations, searches along the line included. Linearise
is the model of steps and costs against `calcDiff`, forward a rollout against `forwardPass`. Of 256
problems from different starts, compiled by jax.vmap, an iteration each is divided by 256. The first
solution is that of a fresh process, its imports and the loading of the machine apart, with the
caches of difflie and jax empty and filled. A sensitivity is what `jax.jvp` by the first velocity at
the start takes longer than the search itself.
"""

from __future__ import annotations

import json as text
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Later calls are measured, from the first one on by the code that stays.
os.environ.setdefault("DIFFLIE_TIERED", "0")
os.environ["OMP_NUM_THREADS"] = os.environ["PJRT_NPROC"] = "1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import tyro
from control_problems import DT, PROBLEMS, STEPS, difflie_problem

from difflie import control as dc
from difflie.control.conditions import conditions
from difflie.control.discretization import Discretization
from difflie.control.fddp import rollout
from difflie.control.model import model_of
from difflie.control.riccati import riccati
from difflie.control.solve import first_motion
from difflie.control.solver import bound_box, rounding_shift
from difflie.io.results import machine, save_json

HERE = Path(__file__).parent
BATCH = 256


@dataclass
class Options:
    """problems: arm7, arm7-boxed, anymal. parts: pieces, batch, sensitivity, start. json: a file.

    crocoddyl_python: the Python of an environment with crocoddyl. rounds: of interleaved runs, each
    of so many seconds for either side.
    """

    problems: list[str] = field(default_factory=lambda: ["arm7", "arm7-boxed", "anymal"])
    parts: list[str] = field(default_factory=lambda: ["pieces", "batch", "sensitivity", "start"])
    crocoddyl_python: Path | None = None
    rounds: int = 10
    seconds: float = 0.2
    json: Path | None = None


class Crocoddyl:
    """Its process, which is asked for times."""

    def __init__(self, python: Path, given: dict[str, Any]):
        self.process = subprocess.Popen(
            [str(python), str(HERE / "crocoddyl_times.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )
        self.found = self.ask({k: v for k, v in given.items() if k != "system"})

    def ask(self, question: dict[str, Any]) -> Any:
        to, back = self.process.stdin, self.process.stdout
        assert to is not None
        assert back is not None
        to.write(text.dumps(question) + "\n")
        to.flush()
        return text.loads(back.readline())

    def end(self) -> None:
        self.process.communicate()


def compiled(f: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    program = jax.jit(f).lower(*args).compile()
    return lambda: jax.block_until_ready(program(*args))


def best(f: Callable[[], Any], seconds: float) -> float:
    """The shortest time of a call in s."""
    times: list[float] = []
    f()
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return min(times)


def searched(problem: dc.Problem) -> dc.Plan:
    return dc.solve(problem)


def own_pieces(problem: dc.Problem, plan: dc.Plan) -> dict[str, Callable[[], Any]]:
    """The search, and its pieces about the optimum."""
    knots, solver = Discretization.of(problem), dc.FDDP()
    motion, multipliers = first_motion(problem, knots, plan)
    state = jax.jit(solver.init)(knots, motion, multipliers)
    model = model_of(knots, motion)
    lq, _, _ = jax.jit(conditions)(knots, model, motion, state.penalty)
    box, shift = bound_box(knots, motion), rounding_shift(lq)
    sweep = jax.jit(riccati)(lq, box, shift)
    one = jnp.ones((), motion.u.dtype)
    return {
        "solve": compiled(searched, problem),
        "linearise": compiled(model_of, knots, motion),
        "backward": compiled(riccati, lq, box, shift),
        "forward": compiled(rollout, knots, motion, model.gap, sweep, one),
    }


def batch(problem: dc.Problem) -> Callable[[], Any]:
    """An iteration of many problems with different starts, after two others."""
    knots, solver = Discretization.of(problem), dc.FDDP()
    shifts = 0.02 * np.random.default_rng(0).standard_normal((BATCH, problem.system.nv))
    motion, _ = first_motion(problem, knots, None)
    shifted = jax.vmap(lambda v: motion._replace(x=motion.x._replace(v=motion.x.v.at[0].set(v))))
    state = jax.jit(jax.vmap(lambda m: solver.init(knots, m, None)))(shifted(jnp.asarray(shifts)))
    iterate = jax.jit(jax.vmap(lambda state: solver.iterate(knots, state)))
    for _ in range(2):
        state = iterate(state)
    return lambda: jax.block_until_ready(iterate(state))


def sensitivity(problem: dc.Problem) -> Callable[[], Any]:
    def along(problem: dc.Problem, x: jax.Array) -> Any:
        def plan(x: jax.Array) -> Any:
            found = dc.solve(problem.replace(v0=problem.v0.at[0].set(x)))
            return found.q, found.u

        return jax.jvp(plan, (x,), (jnp.ones_like(x),))

    return compiled(along, problem, problem.v0[0])


def first_solution(name: str) -> None:
    """In a fresh process: prints the seconds of the first solution and its cost."""
    problem = difflie_problem(PROBLEMS[name]())
    jax.block_until_ready(problem)
    begin = time.perf_counter()
    plan = jax.block_until_ready(dc.solve(problem))
    print(time.perf_counter() - begin, float(plan.cost))


def started(name: str) -> dict[str, float]:
    """First solutions with empty and with filled caches."""
    seconds = {}
    with tempfile.TemporaryDirectory() as caches:
        for state in ("cold", "warm"):
            given = {
                "DIFFLIE_CACHE": f"{caches}/difflie",
                "JAX_COMPILATION_CACHE_DIR": f"{caches}/jax",
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            }
            done = subprocess.run(
                [sys.executable, "-c", f"import bench_control as b; b.first_solution({name!r})"],
                cwd=HERE,
                env=os.environ | given,
                check=True,
                capture_output=True,
                text=True,
            )
            seconds[state] = float(done.stdout.split()[-2])
    return seconds


def iterations_to(costs: Any, cost: float) -> int:
    """After how many iterations the cost is within 1e-6 of the optimum from there on."""
    costs = np.asarray(costs)
    away = np.abs(costs[np.isfinite(costs)] - cost) > 1e-6 * cost
    return int(np.max(np.flatnonzero(away), initial=-1)) + 1


def measured(name: str, options: Options) -> dict[str, Any]:
    given = PROBLEMS[name]() | {"dt": DT, "steps": STEPS}
    problem = difflie_problem(given)
    plan = dc.solve(problem)
    motion, _ = first_motion(problem, Discretization.of(problem), None)
    given["guess"] = np.asarray(motion.u[0]).tolist()
    row: dict[str, Any] = {"problem": name, "result": str(plan.result), "cost": float(plan.cost)}
    row["iterations"] = int(plan.result.iterations)
    row["to_1e-6"] = iterations_to(plan.result.costs, float(plan.cost))
    print(f"{name}: {plan.result}, cost {row['cost']:.10g}, to 1e-6 after {row['to_1e-6']}")
    peer, theirs = None, {}
    if options.crocoddyl_python is not None:
        peer = Crocoddyl(options.crocoddyl_python, given)
        theirs = {k: peer.found[k] for k in ("cost", "iterations", "converged", "version")}
        theirs["to_1e-6"] = iterations_to(peer.found["costs"], peer.found["cost"])
        apart = abs(row["cost"] / theirs["cost"] - 1)
        print(f"  crocoddyl: {theirs}, costs apart {apart:.1e}")
        row["costs_agree"] = apart < 1e-6
    times: dict[str, list[float]] = {}
    if "pieces" in options.parts:
        runs = own_pieces(problem, plan)
        for _ in range(options.rounds):
            for piece, run in runs.items():
                both = times.setdefault(piece, [np.inf, np.inf])
                both[0] = min(both[0], best(run, options.seconds))
                if peer is not None:
                    asked = {"piece": piece, "seconds": options.seconds}
                    both[1] = min(both[1], peer.ask(asked))
        whole = times["solve"]
        times["iteration"] = [
            whole[0] / row["iterations"],
            whole[1] / theirs.get("iterations", 1),
        ]
    if peer is not None:
        peer.end()
    if "batch" in options.parts:
        one = best(batch(problem), 5.0) / BATCH
        times["iteration of 256"] = [one, times.get("iteration", [np.inf, np.inf])[1]]
    if "sensitivity" in options.parts and "pieces" in options.parts:
        with_it, alone = sensitivity(problem), compiled(searched, problem)
        pairs = [(best(with_it, 0.5), best(alone, 0.5)) for _ in range(options.rounds)]
        more = min(x for x, _ in pairs) - min(x for _, x in pairs)
        row["sensitivity_iterations"] = more / times["iteration"][0]
        print(f"  one parameter's sensitivity: {row['sensitivity_iterations']:.1f} iterations")
    row["us"] = {k: 1e6 * t[0] for k, t in times.items()}
    row["crocoddyl"] = theirs | {"us": {k: 1e6 * t[1] for k, t in times.items()}}
    for piece, (own, their) in times.items():
        ratio = f"{own / their:5.2f} of {1e6 * their:.0f}" if np.isfinite(their) else ""
        print(f"  {piece:17} {1e6 * own:8.0f} us {ratio}", flush=True)
    if "start" in options.parts:
        row["first_solution_s"] = started(name)
        print("  first solution", row["first_solution_s"], flush=True)
    return row


def main(options: Options) -> None:
    if options.crocoddyl_python is None:
        print("crocoddyl is left out: name a Python that has it by --crocoddyl-python")
    else:
        print("crocoddyl as in its wheel, which has no code generation; its times are 1")
    rows = []
    for name in options.problems:
        rows.append(measured(name, options))
        if options.json is not None:
            save_json(options.json, {"name": "bench_control", "machine": machine(), "rows": rows})


if __name__ == "__main__":
    main(tyro.cli(Options))
