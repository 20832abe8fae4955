"""`difflie control`: solves the control problem of a TOML file, and writes plan and gains."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from ..control import Plan, Problem, Status, problem_of, read_control, solve
from ..control.files import ControlFile
from ..control.report import ControlResults, SolveTimes, control_report, control_results, curves_of
from ..io import read_appearance
from ..io.loading import located
from ..io.modules import code_allowed
from ..io.results import save_arrays, save_table
from ..view.report import Report
from ..view.report_page import write_html
from ..view.report_terminal import print_report
from .output import check_outputs, configuration, console, say, write_results


def control(
    file: Annotated[Path, tyro.conf.Positional],
    out: Path | None = None,
    json: Path | None = None,
    allow_code: bool = False,
) -> None:
    """Find the controls of least cost for the problem a TOML file describes.

    Args:
        file: the problem; `python -m pydoc difflie.control.files` shows its keys.
        out: a folder for plan and gains (.npz, .csv), a picture and a report (HTML).
        json: a file for the results.
        allow_code: import the Python modules that the file names, which runs them; only for files
            that you trust. DIFFLIE_ALLOW_CODE=1 in the environment does the same.
    """
    config = read_control(file, allow_code=code_allowed(allow_code))
    check_outputs(out, json, "plan.npz", "plan.csv", "gains.csv", "plan.png", "report.html")
    with console.status(f"{file.name}: compiling") as status:

        def progress(iteration: int, cost: float) -> None:
            status.update(f"{file.name}: iteration {iteration}, cost {cost:.6g}")

        results, report = run_problem(config, out, progress)
    print_report(console, report)
    if out is not None:
        say(f"written: {out}/plan.npz, {out}/plan.csv, {out}/gains.csv, {out}/report.html")
    write_results(json, results)
    if results.status != Status.CONVERGED.name:
        raise SystemExit(1)


def run_problem(
    config: ControlFile,
    out: Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[ControlResults, Report]:
    """Solves a problem, writes its plan and a report; returns the results and the report."""
    about = configuration(config.path)
    problem, plan, results = solved(config, progress)
    if out is None:
        return results, control_report(problem, plan, results, about, whole=False)
    _write(out, problem, plan)
    appearance = read_appearance(config.robot, problem.system)
    report = control_report(problem, plan, results, about, appearance)
    write_html(report, out)
    return results, report


def solved(
    config: ControlFile, progress: Callable[[int, float], None] | None = None
) -> tuple[Problem, Plan, ControlResults]:
    """The problem in a file, its plan, and the results.

    time, in s: cold, the whole solution with what is compiled; warm, all iterations but the first;
    iteration, the median of these. progress is called as by `solve`. Raises `ConfigError` where the
    file does not suit the machine it names, or its problem cannot be solved as it stands.
    """
    problem, guess = problem_of(config)
    begin = time.perf_counter()
    times: list[float] = []

    def iterated(iteration: int, cost: float) -> None:
        times.append(time.perf_counter())
        if progress is not None:
            progress(iteration, cost)

    with located(f"{config.path}: "):
        plan = solve(problem, config.solver, guess, progress=iterated)
    cold, between = time.perf_counter() - begin, np.diff(times)
    spent = SolveTimes(
        cold=cold,
        warm=float(between.sum()),
        iteration=float(np.median(between)) if between.size else None,
    )
    solver = type(config.solver).__name__
    results = control_results(problem, plan, config.path.stem, solver, spent)
    return problem, plan, results


def _write(out: Path, problem: Problem, plan: Plan) -> None:
    """The plan as an archive, and plan and gains as tables."""
    curves = {bounded.curve.name: bounded.curve for bounded in curves_of(problem, plan)}
    save_arrays(
        out / "plan.npz",
        joints=np.array(problem.system.joint_names),
        t=plan.t,
        q=plan.q,
        v=plan.v,
        u=plan.u,
        gains=plan.gains,
        costs=plan.result.costs,
        **{f"{name}_labels": np.array(c.labels).reshape(-1, 2) for name, c in curves.items()},
    )
    columns = {
        f"{name} {entry} [{unit}]" if unit else f"{name} {entry}": column
        for name, c in curves.items()
        for (entry, unit), column in zip(c.labels, c.values.T, strict=True)
    }
    save_table(out / "plan.csv", {"t [s]": plan.t, **columns})
    gains = np.asarray(plan.gains)
    save_table(
        out / "gains.csv",
        {
            "t [s]": plan.t[:-1],
            **{f"K[{i},{j}]": gains[:, i, j] for i, j in np.ndindex(gains.shape[1:])},
        },
    )
