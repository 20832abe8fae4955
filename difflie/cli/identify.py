"""`difflie identify`: measurements in, a machine and what is known of it out."""

from __future__ import annotations

import dataclasses
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import jax.numpy as jnp
import numpy as np
import tyro
from numpy.typing import NDArray

from ..identify import (
    Fit,
    Recording,
    Trial,
    Validation,
    leave_one_out,
    log_warnings,
    rate_warnings,
)
from ..identify.files import (
    Study,
    arm_fitted,
    deviations_of_sensors,
    fitted,
    parameters_of,
    read_study,
    recordings_of,
    system_of,
)
from ..identify.fitting import arm_results, save_bare
from ..identify.report import ArmResults, FitResults, Validations, fit_report, given_verdict
from ..io.loading import located
from ..io.modules import code_allowed
from ..io.numbers import read_numbers, read_states
from ..io.results import machine, save_json
from ..io.robot_files import root_tag
from ..io.tables import ConfigError
from ..parameters import Parameters
from ..system import System
from ..system.validation import warn
from ..view.estimates import Estimated
from ..view.report import Report
from ..view.report_page import write_html
from ..view.report_terminal import print_report
from .output import check_outputs, configuration, console, say, write_results


def identify(
    file: Annotated[Path, tyro.conf.Positional],
    logs: Annotated[tuple[Path, ...], tyro.conf.Positional] = (),
    data: Path | None = None,
    validate: tuple[Path, ...] = (),
    parameters: Path | None = None,
    resume: Path | None = None,
    out: Path | None = None,
    json: Path | None = None,
    original: Path | None = None,
    allow_code: bool = False,
) -> None:
    """Find the parameters of a machine that explain measurements, as a TOML file describes it.

    Without [[parameter]] tables all numbers of an arm are found, near those of its file.

    Args:
        file: the configuration, which names the robot's file and its logs; `python -m pydoc
            difflie.identify.files` shows its keys.
        logs: none, as the configuration names them; given with a robot's file, the command says the
            lines to write into one.
        data: the folder of the measured runs, and of the robot's file if that is not beside the
            configuration; by default that of the configuration.
        validate: more files to judge by, which are not used for the fit.
        parameters: a JSON file with numbers by name, which are judged; nothing is fitted.
        resume: a JSON file of an earlier run, such as one that was interrupted, to begin with.
        out: a folder for results, pictures, a report (HTML) and the machine (URDF, no actuators).
        json: a file for the results; the standard errors of what fit.undetermined names are null.
        original: a URDF file of the same links, whose shapes and other parts the machine in `out`
            keeps, by default the robot's own; or the robot's MJCF file, to write that one.
        allow_code: import the Python modules that the file names, which runs them; only for files
            that you trust. DIFFLIE_ALLOW_CODE=1 in the environment does the same.
    """
    _check_configuration(file, logs)
    config = read_study(file, data, allow_code=code_allowed(allow_code))
    check_outputs(out, json, "identification.json", "report.html")
    if not config.parameter and (parameters is not None or resume is not None):
        raise ConfigError(f"{file}: numbers are read for [[parameter]] tables; declare some")
    if original is not None and out is None:
        raise ConfigError(f"{file}: --original is for the machine in the folder --out; give both")
    with console.status(f"{file.name}: compiling") as status:

        def progress(step: int, cost: float) -> None:
            status.update(f"{file.name}: step {step}, cost {cost:.6g}")

        def stage(name: str) -> None:
            status.update(f"{file.name}: {name}")

        if not config.parameter:
            results, report = run_arm(
                config, validate=validate, out=out, original=original, progress=stage
            )
        else:
            results, report = run_study(
                config,
                validate=validate,
                parameters=parameters,
                resume=resume,
                out=out,
                keep=json,
                original=original,
                progress=progress,
            )
    print_report(console, report)
    if out is not None:
        say(f"written: {out}/report.html")
    write_results(json, results)
    if results.converged is False:
        raise SystemExit(1)


_ROOTS = "robot", "mujoco"


def _check_configuration(file: Path, logs: Sequence[Path]) -> None:
    """Raises `ConfigError` with the lines to write for a robot's file, or for logs beside one."""
    is_robot = root_tag(file) in _ROOTS
    if not is_robot and not logs:
        return
    runs = [line for log in logs or ("log.csv",) for line in ("[[run]]", f'file = "{log}"')]
    if is_robot:
        raise ConfigError(
            f"{file}: this is a robot's file, and a TOML file is needed that names it and its "
            f"logs; write {file.with_suffix('.toml').name} with these lines, and give its path:",
            *("[system]", f'file = "{file}"', *runs),
        )
    raise ConfigError(f"{file}: logs are named in this file, by these lines in it:", *runs)


def tell(system: System, runs: dict[str, list[Recording]]) -> None:
    """Says what was done to the recordings, and warns of what does not suit the machine."""
    for recording in (recording for use in runs.values() for recording in use):
        for note in recording.notes:
            say(note)
        for message in log_warnings(system, recording):
            warn(message)
    for message in rate_warnings(runs["fit"]):
        warn(message)


def original_of(config: Study, system: System, original: Path | None) -> Path | None:
    """The file whose shapes are kept: the one given, or the robot's own if it is URDF.

    Raises as `save_bare` where the one given does not suit, before anything is fitted.
    """
    if original is not None:
        _check_original(system, original)
        return original
    if root_tag(config.robot) != "robot":
        return None
    try:
        _check_original(system, config.robot)
    except ValueError:  # it is said where the machine is written
        return None
    return config.robot


def _check_original(system: System, original: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they come when it is written
        save_bare(system, Path(folder), original)


def run_study(
    config: Study,
    *,
    validate: Sequence[Path] = (),
    parameters: Path | None = None,
    resume: Path | None = None,
    out: Path | None = None,
    keep: Path | None = None,
    original: Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[FitResults, Report]:
    """Fits the parameters, or judges given ones; returns the results, and what terminals show.

    validate: more files to judge by. parameters: a JSON file with numbers by name, or earlier
    results: then nothing is fitted. resume: such a file from which the fit starts, its states too.
    After each step that improves the fit the present numbers are written to `keep` and to the
    results in `out`, so that a killed run can be resumed. Writes into `out` the results, pictures,
    `report.html`, and the machine as URDF without actuators and sensors, with the shapes of the
    URDF file `original`, by default the robot's own.

    Raises `ConfigError` and `DataError` for inputs that do not fit together.
    """
    if parameters is not None and resume is not None:
        raise ConfigError("given parameters are judged only; leave out those to resume with")
    about = configuration(config.path)
    system = system_of(config)
    original = original_of(config, system, original) if out is not None else None
    free = parameters_of(config, system)
    runs = recordings_of(config, system, validate)
    tell(system, runs)
    # Warn of what cannot be judged before the fit.
    trials = {use: [_trial(config, system, run) for run in runs[use]] for use in runs}
    name = config.path.stem
    if parameters is not None:
        values = read_numbers(parameters, free.names)
        with located(f"{parameters}: "):
            system = free.with_values(jnp.asarray(values, free.system.dtype))
        judged = Validations(*([t.validation(system) for t in trials[use]] for use in trials))
        results = _unfitted(free, name, values).judged(judged)
        results = dataclasses.replace(results, verdict=given_verdict(judged))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            save_json(out / "identification.json", results)
            write_html(fit_report(results, judged, about), out)
            # What URDF cannot say `save` refuses, when all the rest is written.
            save_bare(system, out, original)
        return results, fit_report(results, judged, about, whole=False)
    begin = time.perf_counter()
    files = [path for path in (keep, out and out / "identification.json") if path is not None]

    def improved(x: NDArray, own: tuple[NDArray, ...]) -> None:
        so_far = _unfitted(free, name, np.asarray(free.values(x)))
        for path in files:
            save_json(path, dataclasses.replace(so_far, states=list(own), converged=False))

    x, own = _start(config, free, resume)
    fit = fitted(config, free, runs["fit"], x, own, progress=progress, improved=improved)
    seconds, left_out = time.perf_counter() - begin, []
    seen, unseen = ([t.validation(fit.system, free.system) for t in trials[use]] for use in trials)
    if config.fit.leave_out:
        left_out = _left_out(config, free, fit, trials["fit"], x, progress)
    results = fit.assess(seen, unseen, left_out=left_out, name=name, seconds=seconds)
    if out is not None:
        fit.save(
            out, unseen, seen, left_out=left_out, about=about, original=original, results=results
        )
    return results, fit.as_report(unseen, seen, left_out=left_out, about=about, whole=False)


def _trial(config: Study, system: System, recording: Recording) -> Trial:
    table = dataclasses.asdict(config.validation)
    with located(f"{config.path}: validation."):
        position = config.fit.position if config.fit.positions else np.inf
        readings = deviations_of_sensors(config)
        return Trial.of(system, recording, position=position, readings=readings, **table)


def _start(
    config: Study, free: Parameters, resume: Path | None
) -> tuple[NDArray | None, list[NDArray] | None]:
    """The free numbers (n,) and the states to start with; None for those of the file.

    Raises `ConfigError` where a number of the system has no free numbers.
    """
    if resume is None:
        with located(f"{config.path}: [[parameter]]: "):
            _ = free.start
        return None, None
    values = jnp.asarray(read_numbers(resume, free.names), free.system.dtype)
    with located(f"{resume}: "):
        x = np.asarray(free.x_at(values))
    return x, read_states(resume)


def _left_out(
    config: Study,
    free: Parameters,
    fit: Fit,
    trials: Sequence[Trial],
    x: NDArray | None,
    progress: Callable[[int, float], None] | None,
) -> list[Validation]:
    """How well each run is predicted by a fit to the others; empty if the fit to all has failed.

    These fits start where the fit to all runs started, at x (n,): from a value on a bound they
    would not return.
    """
    if fit.converged:
        return leave_one_out(trials, lambda runs: fitted(config, free, runs, x, progress=progress))
    warn("the fit has not converged, and no run is left out")
    return []


def _unfitted(free: Parameters, name: str, values: NDArray) -> FitResults:
    """The results if nothing was fitted, or the fit is unfinished: values (n,) without errors."""
    start = np.asarray(free.initial).tolist()
    rows = zip(free.names, free.units, start, values.tolist(), strict=True)
    return FitResults(
        name=name,
        system=free.system.name,
        parameters={n: Estimated(unit, begun, value) for n, unit, begun, value in rows},
        machine=machine(),
    )


def run_arm(
    config: Study,
    *,
    validate: Sequence[Path] = (),
    out: Path | None = None,
    original: Path | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> tuple[ArmResults, Report]:
    """Identifies an arm as a file describes it; returns the results, and what terminals show.

    validate: more files to judge by. Writes into `out` the results, `report.html` with its
    pictures, and the arm as URDF, with the shapes of the URDF file `original`, by default the
    robot's own. progress(stage) is called with the name of each stage. Raises `ConfigError` and
    `DataError` for inputs that do not fit together.
    """
    about = configuration(config.path)
    system = system_of(config)
    original = original_of(config, system, original) if out is not None else None
    runs = recordings_of(config, system, validate)
    tell(system, runs)
    begin = time.perf_counter()
    fit = arm_fitted(config, system, runs, progress)
    results = arm_results(fit, config.path.stem, time.perf_counter() - begin)
    if out is not None:
        fit.save(out, about=about, original=original, results=results)
    return results, fit.as_report(about=about, whole=False)
