"""Sweeps: their tables against single runs, what fails in them, and stores that go on."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from small import CHUNK, DESIGN, PENDULUM, SWINGS

import difflie as dl
from difflie import quantities as dq
from difflie.sweep import StoreError, failures, report
from difflie.sweep.store import Store

NUMBERS = "bob/mass", "q0/hinge"


def assert_alike(one, other):
    """Two tables are equal bit for bit."""
    assert list(one.variables) == list(other.variables)
    for name in one.variables:
        np.testing.assert_array_equal(one[name].values, other[name].values, err_msg=name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of an uninterrupted sweep."""
    return dl.sweep(SWINGS, DESIGN, tmp_path_factory.mktemp("whole") / "store", chunk=CHUNK).load()


def test_a_row_is_a_run(whole):
    """Guards numbers by name, reductions, units and the status against single simulations."""
    assert whole.sizes == {"variant": 1000}
    assert (whole.status == "done").all()
    assert whole["drift total"].attrs["units"] == "J"
    assert whole["bob/mass"].attrs["units"] == "kg"
    np.testing.assert_array_equal(whole["bob/mass"], DESIGN.rows(0, 1000)[:, 0])
    for k in (0, 517, 999):
        mass, angle = (float(whole[name][k]) for name in NUMBERS)
        system = PENDULUM.replace(mass=jnp.asarray([mass]))
        run = dl.simulate(system, [angle], [0.0], dt=1e-2, steps=100, method="SemiImplicitEuler")
        energy = np.sum(run.energy(system), axis=0)
        np.testing.assert_allclose(
            whole["drift total"][k], np.abs(energy - energy[0]).max(), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(whole["peak hinge"][k], np.abs(run.v).max(), rtol=1e-9)


def test_rows_do_not_depend_on_chunks(whole):
    """Guards that the same seed gives the same numbers in chunks of any size, bit for bit."""
    assert_alike(dl.sweep(SWINGS, DESIGN, chunk=333).load(), whole)


@pytest.mark.slow
def test_derivatives_are_columns():
    """Guards gradient=True against differences."""
    few = dl.Listed({"bob/mass": [1.0, 1.5], "q0/hinge": [0.3, -0.7]})
    table = dl.sweep(SWINGS, few, gradient=True, chunk=2)
    step = 1e-6

    def moved(s):
        rows = dl.Listed({"bob/mass": [1.0, 1.5], "q0/hinge": [0.3 + s, s - 0.7]})
        return dl.sweep(SWINGS, rows, chunk=2)["peak hinge"]

    difference = (moved(step) - moved(-step)) / (2 * step)
    slope = table["d peak hinge / d q0/hinge"]
    np.testing.assert_allclose(slope, difference, rtol=1e-5)
    assert slope.attrs["units"] == "rad/s / (rad)"


@pytest.mark.slow
def test_solves_are_swept():
    """Guards a sweep over solutions: the least squares of a line, and an optimal control."""
    from difflie import control as dc

    def plan(numbers):
        system = PENDULUM.replace(mass=numbers["mass"][None])
        problem = dc.Problem(
            system,
            jnp.zeros(1),
            jnp.zeros(1),
            dt=0.05,
            steps=10,
            running=[dc.Effort(0.1)],
            final=[dc.Configuration(jnp.asarray([1.0]), 10.0)],
        )
        solved = dc.solve(problem, dc.FDDP(iterations=20))
        return {"cost": solved.cost, "first": solved.u[0, 0], "ended": solved.result.status}

    masses = np.linspace(0.5, 1.5, 3)
    table = dl.sweep(plan, dl.Grid({"mass": masses}), chunk=3)
    one = plan({"mass": jnp.asarray(1.5)})
    np.testing.assert_allclose(table["cost"][2], one["cost"], rtol=1e-9)
    assert (np.diff(table["cost"]) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_killed_sweep_goes_on(moment, whole, tmp_path):
    """Guards kill -9 at some moment, after which the same call ends with the same store."""
    killed_then_same(moment, whole, tmp_path)


@pytest.mark.slow
@pytest.mark.thorough(
    "3",
    "4",
    "6",
    "7",
    "8",
    "10",
    "11",
    "12",
    "14",
    "15",
    "16",
    "18",
    "19",
    "20",
    "22",
    "5",
    "9",
    "13",
)
@pytest.mark.parametrize("moment", range(3, 23))
def test_a_killed_sweep_goes_on_from_any_moment(moment, whole, tmp_path):
    """Guards the same at twenty more moments."""
    killed_then_same(moment, whole, tmp_path)


def killed_then_same(moment, whole, tmp_path):
    rng = np.random.default_rng(moment)
    script = Path(__file__).with_name("small.py")
    store, stop = tmp_path / "store", int(rng.integers(0, 12))
    process = subprocess.Popen(
        [sys.executable, str(script), str(store)], stdout=subprocess.PIPE, text=True
    )
    for _ in range(stop + 1):
        process.stdout.readline()
    time.sleep(rng.uniform(0, 0.01))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    before = Store.opened(store).pending()
    assert len(before) < 16
    assert_alike(dl.sweep(SWINGS, DESIGN, store, chunk=CHUNK).load(), whole)


def test_a_corrupted_chunk_is_done_again(whole, tmp_path):
    """Guards checksums: of a chunk with one bit changed, and of one that lacks its end."""
    dl.sweep(SWINGS, DESIGN, tmp_path / "store", chunk=CHUNK)
    files = sorted((tmp_path / "store").glob("drift total/c/*"))
    data = bytearray(files[3].read_bytes())
    data[len(data) // 2] ^= 4
    files[3].write_bytes(data)
    files[7].write_bytes(files[7].read_bytes()[:-9])
    broken = [int(files[k].name) for k in (3, 7)]
    assert Store.opened(tmp_path / "store").pending() == sorted(broken)
    done = []
    table = dl.sweep(SWINGS, DESIGN, tmp_path / "store", progress=lambda d, n: done.append(d))
    assert len(done) == 2
    assert_alike(table.load(), whole)


@pytest.mark.slow
def test_exchanged_chunks_are_done_again(whole, tmp_path):
    """Guards that the files of two chunks, of two columns, and of two checksums are told apart."""
    out = tmp_path / "store"
    dl.sweep(SWINGS, DESIGN, out, chunk=CHUNK)
    pairs = ("drift total/c/2", "drift total/c/5"), ("drift total/c/7", "peak hinge/c/7")
    for one, other in (*pairs, ("chunks/checksum/c/9", "chunks/checksum/c/11")):
        (out / one).rename(tmp_path / "spare")
        (out / other).rename(out / one)
        (tmp_path / "spare").rename(out / other)
    assert Store.opened(out).pending() == [2, 5, 7, 9, 11]
    with pytest.raises(StoreError, match="5 of 16 chunks are not as they were written"):
        report(out, tmp_path)
    assert_alike(dl.sweep(SWINGS, DESIGN, out).load(), whole)


@pytest.mark.slow
def test_other_programs_read_a_row_once(whole, tmp_path):
    """Guards that the table has no axis but that of its rows, and the same names and columns."""
    dl.sweep(SWINGS, DESIGN, tmp_path / "store", chunk=CHUNK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw = xarray.open_zarr(tmp_path / "store", consolidated=False)
    table = raw.to_dataframe()
    assert raw.sizes == {"variant": 1000} and len(table) == 1000
    np.testing.assert_array_equal(table["drift total"], whole["drift total"])
    names = {str(name).replace("/", "%2F") for name in whole.variables} - {"variant"}
    assert set(table) == names


@pytest.mark.parametrize(
    "lost",
    ["", "status", "drift total", "bob%2Fmass", "chunks/checksum", "failures"],
)
def test_a_lost_description_is_said(tmp_path, lost):
    """Guards stores without, and with a cut, zarr.json of the whole and of its parts."""
    few, out = dl.Grid({"bob/mass": [1.0, 2.0]}), tmp_path / "store"
    dl.sweep(SWINGS, few, out, chunk=2)
    file = out / lost / "zarr.json"
    file.write_text(file.read_text()[:20])
    name = re.escape(f"{lost}/zarr.json".lstrip("/"))
    for _ in range(2):
        with pytest.raises(StoreError, match=f"{name} is lost or damaged.*remove the store"):
            dl.sweep(SWINGS, few, out)
        file.unlink(missing_ok=True)


def test_lost_reasons_are_found_again(tmp_path):
    """Guards that why rows were refused is a part of their chunk."""
    drawn = dl.Random({"bob/mass": dl.Normal(1.0, 1.0)}, 64, seed=3)
    dl.sweep(SWINGS, drawn, tmp_path / "store", chunk=32)
    said = failures(tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "failures" / "1")
    assert Store.opened(tmp_path / "store").pending() == [1]
    dl.sweep(SWINGS, drawn, tmp_path / "store")
    assert failures(tmp_path / "store") == said


def blast(numbers):
    """The logarithm of a number, and an error for some."""

    def checked(x):
        if (np.asarray(x) > 0.9).any():
            raise RuntimeError("too hot")
        return x

    x = jax.pure_callback(
        checked, jax.ShapeDtypeStruct((), float), numbers["x"], vmap_method="broadcast_all"
    )
    return {"log": jnp.log(x - 0.1)}


def test_what_fails_is_recorded_and_leaves_its_neighbours_alone(tmp_path):
    """Guards NaN, errors raised in a function, and their reasons."""
    x = np.linspace(0, 1, 40)
    table = dl.sweep(blast, dl.Grid({"x": x}), tmp_path / "store", chunk=16)
    hot, lost = x > 0.9, x < 0.1
    assert (table.status[hot] == "failed").all()
    assert (table.status[lost] == "not finite").all()
    fine = ~hot & ~lost
    assert (table.status[fine] == "done").all()
    np.testing.assert_allclose(table["log"][fine], np.log(x[fine] - 0.1), rtol=1e-14)
    why = failures(tmp_path / "store")
    assert list(why) == list(np.flatnonzero(hot))
    assert "x = 1: " in why[39] and "too hot" in why[39]


def test_a_motion_that_fails_says_why():
    """Guards the status of simulations whose state stops being finite."""
    wild = dl.Motions(
        PENDULUM,
        {"final": dq.Final(dq.Velocities())},
        dt=1e-2,
        steps=50,
        control=lambda t, q, v: jnp.where((q[0] > 1.0) & (t > 0.2), jnp.inf, 0.0) * jnp.ones(1),
    )
    table = dl.sweep(wild, dl.Listed({"v0/hinge": [0.0, 20.0, 0.1]}), chunk=3)
    assert table.status.values.tolist() == ["done", "not finite", "done"]
    assert 0.2 <= float(table["failed at"][1]) < 0.3
    assert np.isinf(table["failed at"][[0, 2]]).all()


def test_draws_that_no_machine_can_have_are_refused(tmp_path):
    """Guards the names of numbers that are refused one by one."""
    drawn = dl.Random({"bob/mass": dl.Normal(1.0, 1.0)}, 64, seed=2)
    table = dl.sweep(SWINGS, drawn, tmp_path / "store", chunk=32)
    negative = drawn.rows(0, 64)[:, 0] < 0
    assert negative.any()
    np.testing.assert_array_equal(table.status == "refused", negative)
    said = failures(tmp_path / "store")[int(np.flatnonzero(negative)[0])]
    assert "bob/mass is -" in said and "it must not be negative" in said
    assert np.isfinite(table["drift total"][~negative]).all()


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (dl.Grid({"bob/mas": [1.0]}), "no parameter matches 'bob/mas'; the nearest is 'bob/mass'"),
        (dl.Grid({"bob/mass": [1.0, -1.0]}), "bob/mass is -1.0 kg; it must not be negative"),
        (dl.Grid({"q0/hing": [1.0]}), "'q0/hing' names no coordinate; did you mean 'hinge'"),
        (dl.Grid({"bob/com": [1.0]}), "is no single number"),
        (dl.Grid({"dt": [0.0, 0.1]}), "dt is 0 s; it must be positive"),
        (dl.Grid({"control/gain": [0.0]}), "the control has no field 'gain'"),
    ],
)
def test_wrong_numbers_are_refused(design, said):
    """Guards what is said before anything is computed."""
    with pytest.raises(ValueError, match=said):
        dl.sweep(SWINGS, design)


BALL = dl.chain(
    [
        dl.Body(
            name="hull", joint=dl.Spherical(), mass=1.0, com=(0, 0, 0.1), inertia=np.diag([2, 3, 4])
        )
    ]
)
SPINS = dl.Motions(
    BALL,
    {"end": dq.Final(dq.Velocities())},
    v0=(0.3, -0.2, 0.5),
    dt=1e-2,
    steps=10,
    relative=("hull/inertia",),
)


@pytest.mark.slow
def test_entries_of_an_inertia_are_swept():
    """Guards that both mirror images are set, the unit, and inertias that no body has, by row."""
    design = dl.Listed({"hull/I_xx": [2.0, 6.9, 7.1, 5.0], "hull/I_xy": [0.5, 0.0, 0.0, 9.0]})
    table = dl.sweep(SPINS, design)
    assert table["hull/I_xx"].attrs["units"] == "kg m^2"
    assert table.status.values.tolist() == ["done", "done", "refused", "refused"]
    inertia = jnp.asarray([[[2.0, 0.5, 0.0], [0.5, 3.0, 0.0], [0.0, 0.0, 4.0]]])
    start = BALL.neutral(), jnp.asarray(SPINS.v0)
    run = dl.simulate(BALL.replace(inertia=inertia), *start, dt=1e-2, steps=10)
    ends = [float(table[name][0]) for name in table if name.startswith("end")]
    np.testing.assert_allclose(ends, run.v[-1], rtol=0, atol=1e-12)


def test_why_an_inertia_is_refused(tmp_path):
    """Guards the body, its principal moments and factors; others of one row count together."""
    together = dl.Listed({"hull/inertia": [1.0, 0.5], "hull/I_zz": [5.0, 5.0]})
    table = dl.sweep(SPINS, together, tmp_path / "store")
    assert table.status.values.tolist() == ["done", "refused"]
    assert failures(tmp_path / "store")[1] == (
        "hull/inertia = 0.5, hull/I_zz = 5: hull: no rigid body has the principal moments of "
        "inertia 1, 1.5, 5 kg m^2: each must be at most the sum of the others (triangle inequality)"
    )
    with pytest.raises(ValueError, match=r"hull/I_zz is -1.0 kg m\^2; it must not be negative"):
        dl.sweep(SPINS, dl.Grid({"hull/I_zz": [-1.0, 4.0]}))
    with pytest.raises(ValueError, match=r"vary mass, com_x, I_xx and the others, or inertia by a"):
        dl.sweep(SPINS, dl.Grid({"hull/inertial": [1.0]}))


def test_motions_last_a_duration():
    """Guards that it is the number of steps, and that dt cannot be varied beside it."""
    kept = {"end": dq.Final(dq.Velocities())}
    lasting, counted = (
        dl.Motions(PENDULUM, kept, dt=0.1, **n) for n in ({"duration": 0.5}, {"steps": 5})
    )
    angles = dl.Grid({"q0/hinge": [0.3]})
    assert_alike(dl.sweep(lasting, angles), dl.sweep(counted, angles))
    with pytest.raises(ValueError, match=r"dt is varied beside the duration 0\.5 s; give steps"):
        dl.sweep(lasting, dl.Grid({"dt": [0.1, 0.2]}))
    with pytest.raises(ValueError, match=r"Motions: duration is 0\.25 s, which is 2\.5 steps"):
        dl.Motions(PENDULUM, dt=0.1, duration=0.25)


def test_wrong_stores_and_functions_are_refused(tmp_path):
    """Guards stores of other sweeps and later versions, and functions that cannot be traced."""
    few = dl.Grid({"bob/mass": [1.0, 2.0]})
    dl.sweep(SWINGS, few, tmp_path / "store", chunk=2)
    with pytest.raises(StoreError, match=r"another sweep: design.*bob/mass\[1\] is 3.0 here"):
        dl.sweep(SWINGS, dl.Grid({"bob/mass": [1.0, 3.0]}), tmp_path / "store")
    attributes = tmp_path / "store" / "zarr.json"
    changed = json.loads(attributes.read_text())
    for other, said in (99, "update difflie"), (1, "xarray.open_zarr reads it"):
        changed["attributes"]["difflie"]["format"] = other
        attributes.write_text(json.dumps(changed))
        with pytest.raises(StoreError, match=f"does not know; {said}"):
            dl.sweep(SWINGS, few, tmp_path / "store")
    with pytest.raises(ValueError, match="cannot be traced by jax"):
        dl.sweep(lambda numbers: {"y": 1.0 if numbers["x"] > 0 else 2.0}, dl.Grid({"x": [1.0]}))
    with pytest.raises(ValueError, match="named 'status', which every table has itself"):
        dl.sweep(lambda numbers: {"status": numbers["x"]}, dl.Grid({"x": [1.0]}))
    with pytest.raises(TypeError, match="the design is 3"):
        dl.sweep(SWINGS, 3)


def test_a_full_disk_stops_cleanly(whole, tmp_path, monkeypatch):
    """Guards that what was written is kept where there is no room for more."""
    from zarr.storage import _local

    put, calls = _local._put, []

    def full(path, value, exclusive=False):
        calls.append(path)
        if len(calls) > 60:
            raise OSError(28, "No space left on device")
        return put(path, value, exclusive)

    monkeypatch.setattr(_local, "_put", full)
    with pytest.raises(StoreError, match=r"No space left on device.*goes on when there is room"):
        dl.sweep(SWINGS, DESIGN, tmp_path / "store", chunk=CHUNK)
    monkeypatch.setattr(_local, "_put", put)
    pending = Store.opened(tmp_path / "store").pending()
    assert 0 < len(pending) < 16
    assert_alike(dl.sweep(SWINGS, DESIGN, tmp_path / "store", chunk=CHUNK).load(), whole)
