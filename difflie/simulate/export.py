"""Trajectories as tables and files of other programs: CSV, pandas, xarray, Parquet and MCAP."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer
from numpy.typing import NDArray

from ..deprecated import system_first
from ..dynamics import body_poses
from ..groups import quaternion
from ..io.files import written
from ..io.results import save_table
from ..quantities import Curve, Effort, Energy, Passive, along
from ..system import installation
from ..system.system import System
from ..system.validation import format_value

if TYPE_CHECKING:
    import pandas
    import xarray

# What the columns of each curve are, as axes of a dataset.
_AXES = {"q": "coordinate", "energy": "part", "u": "command", "z": "state"}


def recorded(run: Any, system: System | None = None) -> list[Curve]:
    """q, v, with the system also effort, passive forces and energy, commands u, internal states z.

    For a batch with leading axes t and the values have them, too. Commands stand under the names
    of their actuators; without actuators they are the effort, and are left out with a system.
    """
    if isinstance(run.t, Tracer) or isinstance(run.q, Tracer):
        raise ValueError(
            "this run is traced, and has no numbers to export; export what jax.jit or jax.vmap "
            "returns"
        )
    t, topology = np.asarray(run.t), run.result.topology
    curves = [
        Curve("q", t, np.asarray(run.q), topology.coordinate_labels),
        Curve("v", t, np.asarray(run.v), topology.velocity_labels),
    ]
    if system is not None:
        curves += [
            Curve(each.name, t, np.asarray(along(each, system, run)), each.labels(system))
            for each in (Effort(), Passive(), Energy())
        ]
    if run.u is not None and (system is None or system.actuators):
        u = np.asarray(run.u)
        names = (
            system.actuator_names if system is not None else map("[{}]".format, range(u.shape[-1]))
        )
        curves.append(Curve("u", t, u, tuple((name, "") for name in names)))
    if run.z is not None:
        z = np.asarray(run.z)
        numbered = tuple((f"[{i}]", "") for i in range(z.shape[-1]))
        curves.append(Curve("z", t, z, numbered if system is None else system.state_labels))
    return curves


def _of_one(run: Any, system: System | None) -> list[Curve]:
    """The `recorded` curves of a run; raises ValueError for a batch."""
    if run.t.ndim != 1:
        raise ValueError(
            f"these are {run.t.shape[:-1]} runs, and a table is of one; take one, such as "
            "jax.tree.map(lambda a: a[0], run), or use to_xarray, which holds all of them"
        )
    return recorded(run, system)


def columns(run: Any, system: System | None = None) -> dict[str, NDArray]:
    """The times and the `recorded` curves of one run, columns (m + 1,) by names with units.

    A name that another column has already is numbered.
    """
    curves = _of_one(run, system)
    table = {"t [s]": curves[0].t}
    for c in curves:
        for (entry, unit), column in zip(c.labels, c.values.T, strict=True):
            end = f" [{unit}]" if unit else ""
            name, k = f"{c.name} {entry}{end}", 2
            while name in table:
                name, k = f"{c.name} {entry} ({k}){end}", k + 1
            table[name] = column
    return table


def to_pandas(run: Any, system: System | None) -> pandas.DataFrame:
    """See `Trajectory.to_pandas`."""
    return _needed("pandas", "tables").DataFrame(columns(run, system))


def in_order(function: str, system: Any, path: Any) -> tuple[System | None, Any]:
    """The system, None for none, and the path of an export, of which one may be left out.

    Raises TypeError, which names the function, where there is no path.
    """
    system, path = system_first(function, system, path)
    if path is None and not isinstance(system, System):
        system, path = None, system
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"{function}: the path is {format_value(path)}; call it as {function}(system, path)"
        )
    return system, path


def to_csv(run: Any, system: System | None, path: str | os.PathLike[str]) -> None:
    """See `Trajectory.to_csv`."""
    save_table(path, columns(run, system))


def to_parquet(run: Any, system: System | None, path: str | os.PathLike[str]) -> None:
    """See `Trajectory.to_parquet`."""
    arrow, parquet = _needed("pyarrow", "tables"), _needed("pyarrow.parquet", "tables")
    table = arrow.table(columns(run, system))
    about = {"system": run.result.topology.name, "result": str(run.result)}
    with written(path) as file:
        parquet.write_table(table.replace_schema_metadata(about), file)


def to_xarray(run: Any, system: System | None) -> xarray.Dataset:
    """See `Trajectory.to_xarray`."""
    curves, t = recorded(run, system), np.asarray(run.t)
    runs = tuple("run" if not k else f"run_{k}" for k in range(t.ndim - 1))
    coordinates: dict[str, Any] = {}
    # A batch may have times of its own, such as after events.
    first = t.reshape(-1, t.shape[-1])[0]
    same = np.array_equal(t, np.broadcast_to(first, t.shape))
    row = "t" if same else "row"
    coordinates["t"] = (row, first, {"units": "s"}) if same else ((*runs, row), t, {"units": "s"})
    variables = {}
    for curve in curves:
        axis = _AXES.get(curve.name, "dof")
        names, units = ([label[k] for label in curve.labels] for k in range(2))
        coordinates |= {axis: names, f"{curve.name}_unit": (axis, units)}
        variables[curve.name] = ((*runs, row, axis), curve.values, {"units": curve.unit})
    about = {"system": run.result.topology.name, "result": str(run.result)}
    return _needed("xarray", "tables").Dataset(variables, coordinates, about)


def to_mcap(run: Any, system: System | None, path: str | os.PathLike[str]) -> None:
    """See `Trajectory.to_mcap`."""
    if system is None:
        raise TypeError("to_mcap: poses need the system; call it as to_mcap(system, path)")
    foxglove, messages = _needed("foxglove", "mcap"), _needed("foxglove.messages", "mcap")
    channels = _needed("foxglove.channels", "mcap")
    t, curves = np.asarray(run.t), {c.name: c for c in _of_one(run, system)}
    lost = ~np.all([np.isfinite(c.values).all(axis=1) for c in curves.values()], axis=0)
    if lost.any():
        raise ValueError(
            f"{path}: the run is not finite at t = {t[lost][0]:.6g} s, and has no poses there; "
            "export the rows before, such as jax.tree.map(lambda a: a[:n], run)"
        )
    poses = np.asarray(jax.jit(jax.vmap(lambda q: body_poses(system, q)))(run.q))
    turns = np.asarray(jax.vmap(jax.vmap(quaternion.from_matrix))(poses[..., :3, :3]))
    # A body may have the name of the world.
    world = "world" if "world" not in system.body_names else "the world"
    context = foxglove.Context()
    frames = channels.FrameTransformsChannel("/tf", context=context)
    states = channels.JointStatesChannel("/joint_states", context=context)
    with written(path) as file, foxglove.open_mcap(file, context=context):
        for k, time in enumerate(t):
            nanoseconds = round(float(time) * 1e9)
            now = messages.Timestamp(*divmod(nanoseconds, 10**9))
            transforms = [
                messages.FrameTransform(
                    timestamp=now,
                    parent_frame_id=world,
                    child_frame_id=name,
                    translation=messages.Vector3(x=at[0], y=at[1], z=at[2]),
                    rotation=messages.Quaternion(w=turn[0], x=turn[1], y=turn[2], z=turn[3]),
                )
                for name, at, turn in zip(
                    system.body_names, poses[k, :, :3, 3].tolist(), turns[k].tolist(), strict=True
                )
            ]
            joints = [
                messages.JointState(
                    name=name,
                    position=float(curves["q"].values[k, coordinate]),
                    velocity=float(curves["v"].values[k, dof]),
                    effort=float(curves["effort"].values[k, dof]),
                )
                for name, coordinate, dof in _plain_joints(system)
            ]
            frames.log(messages.FrameTransforms(transforms=transforms), log_time=nanoseconds)
            states.log(messages.JointStates(timestamp=now, joints=joints), log_time=nanoseconds)


def _plain_joints(system: System) -> list[tuple[str, int, int]]:
    """The joints with one plain coordinate: their names, and their entries in q and v."""
    t = system.topology
    return [
        (t.joints[b], int(t.coordinate_start[b]), int(t.velocity_start[b]))
        for b in t.coordinate_joints
        if len(t.kinds[b]) == 1 and t.manifolds[b].plain
    ]


def _needed(package: str, extra: str) -> ModuleType:
    """An optional package; raises ImportError with the way to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = "foxglove-sdk" if extra == "mcap" else package.split(".")[0]
        raise ImportError(
            f"to export a trajectory {name} is needed; {installation.extra(extra)}"
        ) from None
