"""Crocoddyl's side of bench_control.py, in an environment of its own, which has no difflie.

Reads a line of JSON, the problem, and answers with its optimum; then for every line with the name
of a piece, the shortest time of a call in s over some calls. One thread.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import crocoddyl
import numpy as np
import pinocchio as pin


def shooting(given: dict[str, Any]) -> tuple[np.ndarray, Any]:
    """The start, and the problem: weighted squares of the state, the pose and the controls."""
    if given["free"]:
        model = pin.buildModelFromUrdf(given["urdf"], pin.JointModelFreeFlyer())
    else:
        model = pin.buildModelFromUrdf(given["urdf"])
    model.gravity.linear = np.array(given["gravity"])
    state = crocoddyl.StateMultibody(model)
    acting = crocoddyl.ActuationModelFloatingBase if given["free"] else crocoddyl.ActuationModelFull
    actuation = acting(state)
    nu = actuation.nu

    def point(angles: dict[str, float]) -> np.ndarray:
        q = pin.neutral(model)
        for name, angle in angles.items():
            q[model.idx_qs[model.getJointId(name)]] = angle
        return np.concatenate((q, np.zeros(model.nv)))

    start, goal = point(given["start"]), point(given["goal"])
    run, end = crocoddyl.CostModelSum(state, nu), crocoddyl.CostModelSum(state, nu)

    def add(costs: Any, name: str, weight: float, residual: Any, weights: Any = None) -> None:
        activation = () if weights is None else (crocoddyl.ActivationModelWeightedQuad(weights),)
        costs.addCost(name, crocoddyl.CostModelResidual(state, *activation, residual), weight)

    def deviation() -> Any:
        return crocoddyl.ResidualModelState(state, goal, nu)

    if given["pose"] is not None:
        frame = model.getFrameId(given["frame"])
        pose = pin.SE3(np.array(given["pose"]))
        for costs, weight in ((run, given["pose_weights"][0]), (end, given["pose_weights"][1])):
            residual = crocoddyl.ResidualModelFramePlacement(state, frame, pose, nu)
            add(costs, "pose", weight, residual)
    add(run, "state", 1.0, deviation(), np.array(given["weights"]))
    add(end, "state", 1.0, deviation(), np.array(given["end_weights"]))
    add(run, "effort", given["effort"], crocoddyl.ResidualModelControl(state, nu))

    def action(costs: Any, dt: float) -> Any:
        motion = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        model = crocoddyl.IntegratedActionModelEuler(motion, dt)
        if given["limit"] is not None:
            model.u_lb, model.u_ub = -np.array(given["limit"]), np.array(given["limit"])
        return model

    steps = [action(run, given["dt"])] * given["steps"]
    problem = crocoddyl.ShootingProblem(start, steps, action(end, 0.0))
    problem.nthreads = 1
    return start, problem


def pieces(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """The optimum, and what is timed: a solution, and linearise, backward, forward about it."""
    start, problem = shooting(given)
    solver = (crocoddyl.SolverFDDP if given["limit"] is None else crocoddyl.SolverBoxFDDP)(problem)
    xs = [start] * (given["steps"] + 1)
    us = [np.array(given["guess"])] * given["steps"]
    log = crocoddyl.CallbackLogger()
    solver.setCallbacks([log])
    solver.th_stop = 1e-9
    converged = solver.solve(xs, us, 200, False)
    found = {
        "cost": solver.cost,
        "costs": [float(c) for c in log.costs],
        "iterations": int(solver.iter),
        "converged": bool(converged),
        "version": crocoddyl.__version__,
    }
    solver.setCallbacks([])
    at = list(solver.xs), list(solver.us)
    _, other = shooting(given)
    there = type(solver)(other)
    there.setCandidate(*at, True)
    other.calc(*at)
    there.computeDirection(True)
    return found, {
        "solve": lambda: solver.solve(xs, us, 200, False),
        "linearise": lambda: other.calcDiff(*at),
        "backward": there.backwardPass,
        "forward": lambda: there.forwardPass(0.5),
    }


def best(f: Callable[[], Any], seconds: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    found, timed = pieces(json.loads(sys.stdin.readline()))
    print(json.dumps(found), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(best(timed[asked["piece"]], asked["seconds"])), flush=True)


if __name__ == "__main__":
    main()
