"""`difflie view`: a machine and its motions in a browser, as a recording, or as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import jax.numpy as jnp
import numpy as np
import tyro
from numpy.typing import NDArray

from ..constraints import assemble
from ..forces import SpringDamper, attach
from ..integrators.registry import METHODS
from ..io import load
from ..io.appearance import read_appearance
from ..io.config import read_config
from ..io.files import check_writable
from ..io.loading import control_of
from ..io.modules import code_allowed
from ..io.motions import Motion, read_motion
from ..simulate import simulate
from ..system import ModelError, System
from ..view.animate import MOVING, STILL, write_picture
from ..view.scenes import Scene, scene
from ..view.viewer import Machine, Pull, Settings, opened, record, show
from .output import console, say, step_counter
from .run import simulated


def view(
    file: Annotated[Path, tyro.conf.Positional],
    motions: tuple[Path, ...] = (),
    appearance: Literal["visual", "ellipsoids"] = "visual",
    base: Literal["fixed", "free"] | None = None,
    port: int | None = None,
    host: str = "localhost",
    record: Path | None = None,
    picture: Path | None = None,
    browser: bool = True,
    allow_code: bool = False,
) -> None:
    """Show a machine in a browser: its joints, its motions, and a live simulation.

    Args:
        file: a robot, URDF, SDF or MJCF, or a configuration as for difflie run, which is simulated;
            `python -m pydoc difflie.io.config` shows its keys.
        motions: files trajectory.npz of difflie run --out, or plan.npz of difflie control --out,
            which are played together.
        appearance: the shapes and meshes of the robot's file, or the ellipsoids of inertia.
        base: whether the root body of a robot is fixed or free; by default as in its file.
        port: of the viewer; the first free one from 8080 on if not given.
        host: the address that the viewer listens at; 0.0.0.0 for all of this computer.
        record: an HTML file for the motions, which plays without a server.
        picture: a PNG, SVG or PDF, or a GIF or MP4 of the motion, drawn without a browser.
        browser: whether a browser is opened.
        allow_code: import the Python modules that the file names, which runs them; only for files
            that you trust. DIFFLIE_ALLOW_CODE=1 in the environment does the same.
    """
    _check(record, picture)
    shown = _shown(file, motions, appearance == "ellipsoids", base, code_allowed(allow_code))
    for each in shown.scenes:
        for remark in each.remarks:
            say(f"{each.name}: {remark}")
    if record is None and picture is None:
        _serve(shown, host, port, browser)
    scenes = shown.scenes or [shown.machine.scene(0.0, shown.machine.q, shown.machine.v)]
    if record is not None:
        _record(scenes, record)
    if picture is not None:
        _draw(scenes, picture)


@dataclass(frozen=True)
class _Shown:
    """What is shown: motions, and the machine that is posed and simulated."""

    scenes: list[Scene]
    machine: Machine


def _check(record: Path | None, picture: Path | None) -> None:
    """Raises ValueError for a kind of file that is not written, before anything is computed."""
    if picture is not None and picture.suffix.lower() not in STILL + MOVING:
        known = ", ".join(STILL + MOVING)
        raise ValueError(f"{picture}: pictures are written as {known}; name it so")
    if record is not None and record.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{record}: a recording is an HTML file; call it {record.stem}.html")
    for path in (record, picture):
        if path is not None:
            check_writable(path)


def _shown(
    file: Path, motions: Sequence[Path], ellipsoids: bool, base: str | None, allow_code: bool
) -> _Shown:
    if file.suffix.lower() == ".toml":
        system, robot, runs, start, control = _configured(file, allow_code)
    else:
        system, robot, runs, control = load(file, base=base), file, [], None
        start = Settings("RKMK4", 1e-3, _triple(system.gravity))
    runs += list(zip(_names(motions), (read_motion(m, system) for m in motions), strict=True))
    shapes = None if ellipsoids else read_appearance(robot, system)
    scenes = [scene(system, run, shapes, name=name) for name, run in runs]
    q, v = _first(system, runs)
    if any(actuator.has_state for actuator in system.actuators):
        say("live, the memories of actuators, such as delays, begin anew in every picture")
    stepper = Stepper(system, start, control)
    return _Shown(scenes, Machine(system, q, v, shapes, stepper))


def _configured(
    file: Path, allow_code: bool
) -> tuple[System, Path, list[tuple[str, Any]], Settings, Any]:
    """The system of a configuration, its robot's file, its motion, and how it is simulated."""
    config = read_config(file, allow_code=allow_code)
    steps, left_out = config.simulation.saved, config.simulation.left_out
    if left_out:
        say(f"{file.name}: {left_out}")
    with console.status(f"{file.name}: compiling and running {steps} steps") as status:
        system, _, run = simulated(config, step_counter(file.name, status.update))
    for message in [*run.result.messages(), *run.result.origin()]:
        say(message)
    start = Settings(config.simulation.method, config.simulation.dt, _triple(system.gravity))
    control = control_of(config.control, system, config.path, config.initial)
    seen = run.computed()
    motion = Motion(np.asarray(seen.t), np.asarray(seen.q), np.asarray(seen.v))
    return system, config.robot, [(file.stem, motion)], start, control


def _first(system: System, runs: Sequence[tuple[str, Any]]) -> tuple[NDArray, NDArray]:
    """The state (q (nq,), v (nv,)) of the beginning: of the first motion, or near zero."""
    if runs:
        return np.asarray(runs[0][1].q[0]), np.asarray(runs[0][1].v[0])
    q, v = system.neutral(), np.zeros(system.nv)
    try:
        q, v = assemble(system, q, v)
    except ModelError as error:
        say(str(error))
    return np.asarray(q), np.asarray(v)


def _names(motions: Sequence[Path]) -> list[str]:
    """Names for motions: of their files, of the folder for a trajectory.npz, or paths if alike."""
    names = [
        path.absolute().parent.name if path.stem == "trajectory" else path.stem for path in motions
    ]
    return names if len(set(names)) == len(names) else list(map(str, motions))


def _triple(values: Any) -> tuple[float, float, float]:
    x, y, z = (float(a) for a in values)
    return x, y, z


def _serve(shown: _Shown, host: str, port: int | None, browser: bool) -> None:
    with show(shown.scenes, shown.machine, host=host, port=port, browser=False) as viewer:
        say(f"the viewer is at {viewer.address}; Ctrl+C ends it")
        if browser and not opened(viewer.address):
            say("no browser could be opened; open this address in one")
        viewer.wait()


def _record(scenes: Sequence[Scene], path: Path) -> None:
    with console.status(f"{path.name}: recording"):
        record(scenes, path)
    say(f"written: {path} ({path.stat().st_size / 1e6:.1f} MB), which any browser plays")


def _draw(scenes: Sequence[Scene], path: Path) -> None:
    if len(scenes) > 1:
        say(f"{path.name} shows the first motion, {scenes[0].name}")
    with console.status(f"{path.name}: drawing") as status:
        write_picture(scenes[0], path, progress=step_counter(path.name, status.update, "picture"))
    say(f"written: {path}")


# In N/m and N s/m for each kg of the machine: its weight is a pull by a third of a metre, and it
# comes to rest within a second.
_STIFFNESS, _DAMPING = 30.0, 5.0


class Stepper:
    """Steps a system for the viewer, with any method and gravity, and pulled at by the mouse.

    start: the settings at first. control: as of `simulate`; it must not depend on time. Gravity,
    time steps and pulls are leaves, so that changes of them compile nothing; another method or
    another body does once.
    """

    def __init__(self, system: System, start: Settings, control: Any = None) -> None:
        self._system, self._start, self._control = system, start, control
        known = [method.name for method in METHODS]
        self._methods = known if start.method in known else [start.method, *known]
        mass = float(jnp.sum(system.bodies.mass))
        self._band: dict[str, Any] = {"stiffness": _STIFFNESS * mass, "damping": _DAMPING * mass}
        self._pulled: dict[str, System] = {}

    @property
    def methods(self) -> Sequence[str]:
        """The names of the methods (n,) that can be chosen."""
        return self._methods

    @property
    def start(self) -> Settings:
        """The settings at first."""
        return self._start

    def advance(
        self, t: float, q: NDArray, v: NDArray, steps: int, settings: Settings
    ) -> tuple[NDArray, NDArray, str]:
        """The state (q (nq,), v (nv,)) after some steps, and why they failed, "" if they did not.

        Raises ValueError and TypeError as `simulate` does.
        """
        system = self._with(settings.pull).replace(gravity=np.array(settings.gravity))
        run = simulate(
            system,
            q,
            v,
            dt=settings.dt,
            steps=steps,
            save_every=steps,
            method=settings.method,
            control=self._control,
        )
        q, v = np.array(run.q[-1]), np.array(run.v[-1])
        return q, v, "" if bool(run.result.ok) else " ".join(run.result.messages())

    def _with(self, pull: Pull | None) -> System:
        """The system with an elastic band between a body and the target of a pull."""
        if pull is None:
            return self._system
        if pull.body not in self._pulled:
            path = [(pull.body, (0.0, 0.0, 0.0)), (None, (0.0, 0.0, 0.0))]
            band = SpringDamper(path, rest_length=0.0, **self._band)
            self._pulled[pull.body] = attach(self._system, band)
        system = self._pulled[pull.body]
        band: Any = system.couplings[-1]
        points = jnp.asarray(np.stack((pull.point, pull.target)), system.dtype)
        band = replace(band, path=replace(band.path, points=points))
        return replace(system, couplings=(*system.couplings[:-1], band))
