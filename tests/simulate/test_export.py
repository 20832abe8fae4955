"""Runs as tables and files of other programs: what is written is read again, number by number."""

import importlib
import struct
from csv import reader

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
import xarray
from mcap.reader import make_reader
from pyarrow import parquet

import difflie as dl


@pytest.fixture(scope="module")
def system():
    solid = {"mass": 1.0, "inertia": np.eye(3)}
    hinge = dl.Revolute(name='a "hinge", the first', damping=0.1)
    base = dl.Body(name="world", joint=dl.Spherical(name="socket"), **solid)
    slide = dl.Prismatic(name="slide")
    arm = dl.Body(name="arm", joint=hinge, com=(1, 0, 0), **solid)
    return dl.chain([base, arm, dl.Body(name="tip", joint=slide, **solid)], name="machine")


def moved(system, rate):
    v0 = jnp.zeros(5).at[3].set(rate)
    return dl.simulate(system, system.neutral(), v0, dt=0.01, steps=3, control=jnp.ones((3, 5)))


@pytest.fixture(scope="module")
def run(system):
    return moved(system, 1.0)


def test_tables_have_names_and_units(system, run):
    """pandas, CSV and Parquet give one table; CSV loses no digit, whatever joints are called."""
    table = run.to_pandas()
    q, v = ["socket.w", "socket.i", "socket.j", "socket.k"], ["socket[0]", "socket[1]", "socket[2]"]
    hinge, slide = 'a "hinge", the first', "slide"
    assert list(table) == [
        "t [s]",
        *(f"q {name} [1]" for name in q),
        *(f"q {hinge} [rad]", f"q {slide} [m]"),
        *(f"v {name} [rad/s]" for name in v),
        *(f"v {hinge} [rad/s]", f"v {slide} [m/s]"),
        *(f"u [{k}]" for k in range(5)),
    ]
    whole = run.to_pandas(system)
    assert list(whole)[12:] == [
        *(f"effort {name} [N m]" for name in (*v, hinge)),
        f"effort {slide} [N]",
        *(f"passive {name} [N m]" for name in (*v, hinge)),
        f"passive {slide} [N]",
        *(f"energy {part} [J]" for part in ("kinetic", "potential", "total")),
    ]
    np.testing.assert_array_equal(table.iloc[:, 1:7], run.q)
    np.testing.assert_array_equal(whole["energy kinetic [J]"], run.energy(system)[0])


def test_csv_and_parquet_are_read_again(tmp_path, system, run):
    csv, file = tmp_path / "new" / "run.csv", tmp_path / "run.parquet"
    run.to_csv(system, csv)
    run.to_parquet(system, file)
    whole = run.to_pandas(system)
    with csv.open() as lines:
        assert next(reader(lines)) == list(whole)
        np.testing.assert_array_equal(np.loadtxt(lines, delimiter=","), whole)
    pandas.testing.assert_frame_equal(pandas.read_parquet(file), whole)
    about = parquet.read_schema(file).metadata
    assert about[b"system"] == b"machine" and about[b"result"].startswith(b"completed: 3 steps")


def test_commands_have_the_names_of_actuators():
    """They have units of their own, and none in a table."""
    arm = dl.Body(name="arm", joint=dl.Revolute(name="hinge"), com=(1, 0, 0), mass=1.0)
    system = dl.attach(dl.chain([arm]), dl.Motor("hinge", name="motor", max_torque=2.0))
    run = dl.simulate(system, [0.0], [0.0], dt=0.01, steps=2, control=jnp.ones((2, 1)))
    assert list(run.to_pandas(system))[-1] == "u motor"


def test_datasets_have_axes_and_units(tmp_path, system, run):
    data = run.to_xarray(system)
    assert data.q.dims == ("t", "coordinate") and data.effort.dims == ("t", "dof")
    assert data.t.attrs["units"] == "s" and data.v.attrs["units"] == "rad/s, m/s"
    assert data.attrs["system"] == "machine"
    np.testing.assert_array_equal(data.q.sel(coordinate="slide"), run.q[:, 5])
    assert data.v_unit.sel(dof="slide") == "m/s" and data.q_unit.sel(coordinate="slide") == "m"
    assert data.energy.sel(part="total").shape == (4,)
    data.to_netcdf(tmp_path / "run.nc", engine="scipy")
    again = xarray.load_dataset(tmp_path / "run.nc", engine="scipy")
    xarray.testing.assert_equal(again, data)


@pytest.mark.slow
def test_batches_are_datasets_only(tmp_path, system):
    """With leading axes; times that differ become a variable."""
    runs = jax.vmap(lambda rate: moved(system, rate))(jnp.arange(2.0))
    data = runs.to_xarray(system)
    assert data.q.dims == ("run", "t", "coordinate") and data.q.shape == (2, 4, 6)
    assert data.energy.dims == ("run", "t", "part")
    longer = eqx.tree_at(lambda r: r.t, runs, runs.t * jnp.array([[1.0], [2.0]]))
    assert longer.to_xarray().t.dims == ("run", "row") and longer.to_xarray().q.dims[1] == "row"
    for write in (runs.to_csv, runs.to_parquet, lambda p: runs.to_mcap(system, p)):
        with pytest.raises(ValueError, match=r"these are \(2,\) runs, and a table is of one"):
            write(tmp_path / "runs")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_mcap_file_has_poses_and_joints(tmp_path, system, run):
    """In its messages are the frames by name, and the exact numbers."""
    path = tmp_path / "run.mcap"
    run.to_mcap(system, path)
    with path.open("rb") as file:
        messages = list(make_reader(file).iter_messages())
    frames = [m for _, channel, m in messages if channel.topic == "/tf"]
    joints = [m for _, channel, m in messages if channel.topic == "/joint_states"]
    assert (
        [m.log_time for m in frames]
        == [m.log_time for m in joints]
        == [0, 10**7, 2 * 10**7, 3 * 10**7]
    )
    assert {s.name for s, _, _ in messages} == {"foxglove.FrameTransforms", "foxglove.JointStates"}
    for name in (b"the world", b"world", b"arm", b"tip"):
        assert name in frames[-1].data
    place = dl.body_poses(system, run.q[-1])[-1, :3, 3]
    for number in place:
        assert struct.pack("<d", float(number)) in frames[-1].data
    for number in (run.q[-1, 4], run.q[-1, 5], run.v[-1, 3], run.v[-1, 4], 1.0):
        assert struct.pack("<d", float(number)) in joints[-1].data
    assert b"socket" not in joints[-1].data


def test_what_cannot_be_exported_is_said(tmp_path, system, run):
    """In one sentence, and no file is left."""
    lost = type(run)(run.t, run.q.at[2, 4].set(jnp.nan), run.v, run.result)
    with pytest.raises(ValueError, match=r"the run is not finite at t = 0.02 s"):
        lost.to_mcap(system, tmp_path / "run.mcap")
    other = dl.chain([dl.Body(name="arm", joint=dl.Revolute(), com=(1, 0, 0), mass=1.0)])
    with pytest.raises(ValueError, match="give the system that was simulated"):
        run.to_csv(other, tmp_path / "run.csv")
    with pytest.raises(ValueError, match="this run is traced"):
        jax.jit(lambda run: run.to_csv(tmp_path / "run.csv"))(run)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("package", "extra"), [("pandas", "tables"), ("xarray", "tables"), ("pyarrow", "tables"),
                           ("foxglove", "mcap")],
)  # fmt: skip
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, system, run, package, extra):
    known = importlib.import_module

    def missing(name):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return known(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    write = {
        "pandas": run.to_pandas,
        "xarray": run.to_xarray,
        "pyarrow": lambda: run.to_parquet(tmp_path / "a"),
        "foxglove": lambda: run.to_mcap(system, tmp_path / "a"),
    }[package]
    with pytest.raises(ImportError, match=rf"is needed; .*pip install '\.\[{extra}\]'"):
        write()


def test_no_column_hides_another():
    """A joint may be called as an entry of another one; its column is then numbered."""
    solid = {"mass": 1.0, "inertia": np.eye(3)}
    ball = dl.Body(name="a", joint=dl.Spherical(name="ball"), **solid)
    hinge = dl.Body(name="b", joint=dl.Revolute(name="ball[0]"), parent="a", **solid)
    system = dl.tree([ball, hinge])
    run = dl.simulate(system, system.neutral(), jnp.arange(4.0), dt=0.1, steps=1)
    table = run.to_pandas()
    assert table.shape == (2, 1 + 5 + 4)
    assert table["v ball[0] [rad/s]"][0] == 0 and table["v ball[0] (2) [rad/s]"][0] == 3


def test_the_system_comes_first(tmp_path, system, run):
    """Guards one order of arguments for all exports, and the old one for a release."""
    run.to_csv(system, tmp_path / "new.csv")
    run.to_csv(path=tmp_path / "named.csv", system=system)
    with pytest.warns(DeprecationWarning, match=r"to_csv\(path, system\) is now to_csv\(system"):
        run.to_csv(tmp_path / "old.csv", system)  # pyright: ignore
    texts = {(tmp_path / f"{name}.csv").read_text() for name in ("new", "named", "old")}
    assert len(texts) == 1 and "energy" in texts.pop()
    run.to_csv(tmp_path / "bare.csv")
    assert "energy" not in (tmp_path / "bare.csv").read_text()
    with pytest.raises(TypeError, match=r"path is None; call it as to_csv\(system, path\)"):
        run.to_csv(system)
