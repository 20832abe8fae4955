"""Control problems described in TOML files.

    [system]                          [horizon]
    file = "robot.urdf"               dt = 0.01                # s
    base = "fixed"                    steps = 100
                                      method = "RKMK4"         # SemiImplicitEuler
    [initial]                         interpolation = "linear" # constant
    q = [0.0, ...]                    duration = [0.5, 2.0]    # s, of a free one
    joints.elbow = 0.3
                                      [limits]                 # those of the robot's file, but
    [[input]]                         v = 3.0                  # for all joints, or a list
    type = "Motors"                   u_upper = [50.0, 20.0]   # also u_lower, q_lower, q_upper
    joints = ["shoulder", "el*"]      robot = false            # none of the file

    [[input]]                         [solver]
    type = "Thrusters"                type = "FDDP"            # InteriorPoint, Ipopt;
    lower = 0.0                       iterations = 100
    upper = 20.0                      tolerance = 1e-7         # and other fields of the class
    axes = [{body = "hull", position = [0.1, 0.0, 0.0], direction = [0.0, 0.0, 1.0]}]

    [[cost]]                          # weight times half the square of a residual
    type = "Pose"                     # also Point (with goal = [x, y, z]), CenterOfMass, Energy
    frame = {body = "hand"}
    goal = {position = [0.4, 0.0, 0.3], rotation = [0.0, 1.57, 0.0]}
    weight = [1.0, 1.0, 1.0, 9.0, 9.0, 9.0]                   # or one number for all entries
    at = "final"                      # "running"

    [[cost]]                          # also Configuration, Velocity, Duration
    type = "State"
    joints.elbow = 1.0                # or q, v, rates, as in [initial]
    weight = 0.1

    [[cost]]
    type = "Effort"
    weight = 1e-3

    [[bound]]                         # what must hold
    type = "Reach"                    # a pose, or point = [x, y, z]; ReachState: a state
    frame = {body = "hand"}
    point = [0.4, 0.0, 0.3]

    [[bound]]                         # two spheres
    type = "MinDistance"
    first = {body = "hand"}
    second = {position = [0.3, 0.1, 0.2]}
    least = 0.15                      # m

    [[bound]]                         # or [[cost]], then a residual
    type = "Function"                 # f(system, q, v, u, t) of obstacles.py beside the file
    function = "obstacles:clearance"
    lower = 0.1

    [guess]                           # where the search starts: at rest, or
    u = [0.0, 1.0]                    # with these controls, held, or
    joints.elbow = 1.0                # with a straight line to such a state, or
    function = "obstacles:detour"     # with states (q, v) of a function (system, t)

[system], [initial], [[constraint]] and the tables of forces and actuators are those of simulations,
see difflie/io/config.py. Faults of the keys are reported all at once, in a `ConfigError` with a
line for each, then those of the parts that do not suit the machine. To read a file with a function
runs the Python code of its module, which must be allowed: allow_code=True, or --allow-code.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..io.config import MotionFile, read_machine_file
from ..io.loading import located, numbers_of, start_of, state_of
from ..io.tables import read_typed, typed_rows
from ..io.toml import ConfigError, Faults
from ..system.system import System
from ..system.validation import ModelError
from .inputs import Commands, Input, as_input
from .problem import Problem
from .solve import SOLVERS
from .solver import Solver
from .tables import BOUNDS, COSTS, INPUTS, GuessTable, HorizonTable, LimitsTable, Place


def _has_costs(cost: list[Any]) -> Iterator[str]:
    if not cost:
        yield "there is no [[cost]]; give one or more"


@dataclass(frozen=True, kw_only=True)
class ControlFile(MotionFile):
    """A whole control problem in a file.

    cost, bound, input: instances of the classes in `difflie.control.tables`. solver: what solves
    it.
    """

    command = "control"
    horizon: HorizonTable
    limits: LimitsTable
    guess: GuessTable
    cost: list[Any]
    bound: list[Any]
    input: list[Any]
    solver: Solver
    conditions = (_has_costs,)


def read_control(path: str | os.PathLike[str], *, allow_code: bool = False) -> ControlFile:
    """The control problem in a TOML file, see `difflie.control.files`, not yet built.

    path: of the file. allow_code: whether Python modules that the file names may be imported, which
    runs them. Raises `ConfigError` for a missing or broken file, one that names modules if that is
    not allowed, and otherwise with all faults at once: unknown or missing keys (with the nearest
    known one) and values of a wrong type or out of range.
    """
    return read_machine_file(ControlFile, path, allow_code, _own)


def _own(tables: dict[str, Any], faults: Faults) -> dict[str, Any]:
    return {
        "cost": typed_rows(tables, "cost", COSTS, "cost", faults),
        "bound": typed_rows(tables, "bound", BOUNDS, "bound", faults),
        "input": typed_rows(tables, "input", INPUTS, "input", faults),
        "solver": _solver(tables, faults),
    }


def _solver(tables: dict[str, Any], faults: Faults) -> Any:
    table = tables.get("solver", {})
    if not isinstance(table, dict):
        return faults.add("solver must be a table: write [solver]")
    return read_typed(SOLVERS, {"type": "FDDP", **table}, "solver", "solver", faults)


def problem_of(config: ControlFile) -> tuple[Problem, Any]:
    """The problem that a file describes, and the guess for `solve`.

    config: what `read_control` returns. The start is assembled where the machine has constraints.
    Raises `ConfigError` for parts that do not suit the machine, and as `Problem` does.
    """
    system, q0, v0, _, method = start_of(config, "horizon.method", config.horizon.method)
    faults = Faults(config.path)
    terms: dict[str, list[Any]] = {"running": [], "final": []}
    for name in ("cost", "bound"):
        for i, table in enumerate(getattr(config, name)):
            where = f"{name}[{i}]"
            with faults.caught("", ConfigError), faults.caught(where, ModelError):
                at = Place(system, config.path, where, config.allow_code)
                terms[table.at].append(table.made(at))
    inputs: Input = Commands()
    with faults.caught("input", ValueError):
        made = config.input
        inputs = as_input(made if len(made) > 1 else made[0]) if made else inputs
        inputs.bounds(system)
    faults.end()
    table = config.horizon
    with located(f"{config.path}: "):
        times = table.duration
        limits = config.limits.made(system, inputs, "limits")
        problem = Problem(
            system,
            q0,
            v0,
            dt=table.dt,
            steps=table.steps,
            running=terms["running"],
            final=terms["final"],
            limits=limits,
            inputs=inputs,
            method=method,
            interpolation=table.interpolation,
            duration=None if times is None else (times[0], times[1]),
        )
        return problem, _guess(config, problem)


def _guess(config: ControlFile, problem: Problem) -> Any:
    """What `solve` starts from; None for the start itself."""
    table, n, system = config.guess, problem.steps, problem.system
    if table.u is None and table.function is None and not table.is_line:
        return None
    u = np.tile(numbers_of("guess.u", table.u, problem.nu), (n, 1))
    if table.function is not None:
        at = Place(system, config.path, "guess", config.allow_code)
        return *_states(at.function(table.function), table.function, problem), u
    if not table.is_line:
        return u
    end = state_of(system, table, "guess")
    return *_line(system, (problem.q0, problem.v0), end, n, problem.dt), u


def _states(motion: Callable[..., Any], name: str, problem: Problem) -> Any:
    """q (n + 1, nq) and v (n + 1, nv) of a function (system, t) at all knots.

    name: of the function. Raises `ConfigError` for a function of other arguments or results.
    """
    system, t = problem.system, problem.dt * jnp.arange(problem.steps + 1)
    where = f"guess.function: {name}"
    try:
        inspect.signature(motion).bind(system, t)
    except TypeError as error:
        raise ConfigError(
            f"{where} cannot be called with (system, t): {error}; write it with these two arguments"
        ) from None
    found = jax.vmap(lambda t: motion(system, t))(t)
    parts = found if isinstance(found, tuple | list) else (found,)
    shapes, needed = [jnp.shape(x)[1:] for x in parts], [(system.nq,), (system.nv,)]
    if shapes != needed:
        raise ConfigError(
            f"{where} returns arrays of the shapes {shapes}; let it return q and v, of {needed}"
        )
    return found


def _line(system: System, start: Any, end: Any, n: int, dt: Any) -> tuple[Any, Any]:
    """Configurations (n + 1, nq) evenly on a line from start to end, and their velocities."""
    (q, v), (q_end, v_end) = start, end
    way = system.manifold.difference(q, q_end)
    parts = jnp.linspace(0, 1, n + 1)[:, None]
    between = jnp.tile(way / (n * dt), (n - 1, 1))
    qs = jax.vmap(system.manifold.retract, (None, 0))(q, parts * way)
    return qs, jnp.concatenate((v[None], between, v_end[None]))
