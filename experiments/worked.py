"""Shared by the experiments control_*.py: a problem of configs/control, solved, replayed, drawn.

A plan is a motion of the integrator that made it, in its steps. That it moves the machine is shown
by a simulation with RKMK8 in steps of a fifth: under the controls alone, and with the gains of the
plan as feedback.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import difflie as dl
from difflie import control as dc
from difflie.cli.control import solved
from difflie.control.report import plot
from difflie.io.results import save_json
from difflie.view.figures import save

CONFIGS = Path(__file__).resolve().parent.parent / "configs" / "control"

# How far a state (q, v) is from the goal, in the units of the problem.
Miss = Callable[[Any, Any], Any]


@dataclass
class Options:
    """out: a folder for the figures, by default that of the problem's name; json: a file."""

    out: Path | None = None
    json: Path | None = None


def problem(name: str) -> tuple[dc.Problem, dc.Plan, dict[str, Any]]:
    """A problem of configs/control, its plan, and the figures of `difflie control`."""
    problem, plan, results = solved(dc.read_control(CONFIGS / f"{name}.toml", allow_code=True))
    return problem, plan, dict(vars(results))


def replayed(problem: dc.Problem, plan: dc.Plan, **changes: Any) -> dl.Trajectory:
    """The plan with its gains, by another integrator in finer steps; changes: see `dc.replay`."""
    return dc.replay(problem, plan, **{"method": dl.RKMK8(), "finer": 5, **changes})


def judged(problem: dc.Problem, plan: dc.Plan, miss: Miss, allowed: float) -> dict[str, Any]:
    """How far plan and replays miss the goal; reached if the one with gains is within `allowed`."""
    with_gains = replayed(problem, plan)
    alone = replayed(problem, plan, feedback=False)
    misses = {
        "plan": float(miss(plan.q[-1], plan.v[-1])),
        "replay_with_gains": float(miss(with_gains.q[-1], with_gains.v[-1])),
        "replay_alone": float(miss(alone.q[-1], alone.v[-1])),
    }
    reached = bool(with_gains.result.ok) and misses["replay_with_gains"] <= allowed
    return {"misses": misses, "allowed": allowed, "reached": reached}


def told(
    name: str, options: Options, problem: dc.Problem, plan: dc.Plan, figures: dict[str, Any]
) -> None:
    """Prints and writes the figures, and draws the plan with its replay."""
    out = options.out or Path(name)
    picture = save(plot(problem, plan, replayed(problem, plan)), out / f"{name}.png")
    for key, entry in figures.items():
        print(f"{key}: {entry}")
    print(f"figure: {picture}")
    if options.json is not None:
        save_json(options.json, figures)
    if not figures["reached"]:
        raise SystemExit(f"{name}: the replay misses the goal")
