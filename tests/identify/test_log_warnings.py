"""Faults of logs are named in one sentence; real logs without faults raise no alarm."""

import dataclasses
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.identify import Recording, log_warnings, rate_warnings, read_recording

MEASURED = Path(__file__).parent.parent.parent.parent / "shared" / "data"
needs_measurements = pytest.mark.skipif(not MEASURED.is_dir(), reason=f"{MEASURED} is absent")
T = 0.004 * np.arange(1000)
NAMES = {"q": ("q1", "q2", "q3"), "v": ("dq1", "dq2", "dq3"), "tau": ("u1", "u2", "u3")}


@pytest.fixture(scope="module")
def arm():
    axes = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0)
    bodies = [
        dl.Body(
            name=f"link{k}",
            joint=dl.Revolute(axis=axis, lower=-2.0, upper=2.0, damping=0.3, friction=0.5),
            mass=2.0,
            com=(0.2, 0.0, 0.0),
            inertia=0.05 * np.eye(3),
            position=(0.4 * (k > 0), 0.0, 0.0),
        )
        for k, axis in enumerate(axes)
    ]
    return dl.chain(bodies)


@pytest.fixture(scope="module")
def run(arm):
    """A motion of all joints with the torques of masses that are a third heavier, and noise."""
    w = np.array((2.0, 3.1, 4.3))
    q = 1.2 * np.sin(w * T[:, None]) * np.array((1.0, 0.8, 0.9))
    v, a = (np.gradient(q, T, axis=0), np.gradient(np.gradient(q, T, axis=0), T, axis=0))
    true = arm.replace(mass=1.3 * arm.bodies.mass)
    torque = jax.jit(
        jax.vmap(lambda *x: dl.inverse_dynamics(true, *x) - dl.passive_force(true, *x[:2]))
    )
    tau = np.asarray(torque(*(jnp.asarray(x) for x in (q, v, a))))
    tau = tau + np.random.default_rng(1).normal(0, 0.2, tau.shape)
    return Recording("run.csv", T, q, v, tau=tau, columns=NAMES)


def one(system, recording):
    (message,) = log_warnings(system, recording)
    assert message.startswith("run.csv") and "\n" not in message
    return message


def test_a_log_without_faults(arm, run):
    assert log_warnings(arm, run) == []
    assert log_warnings(arm, dataclasses.replace(run, v=None)) == []


def turned(x, j):
    return x * np.where(np.arange(x.shape[1]) == j, -1.0, 1.0)


def swapped(x, i, j):
    x = np.array(x)
    x[:, [i, j]] = x[:, [j, i]]
    return x


@pytest.mark.parametrize("j", range(3))
def test_a_sign_turned_round(arm, run, j):
    assert f"the sign of 'u{j + 1}' turned round" in one(
        arm, dataclasses.replace(run, tau=turned(run.tau, j))
    )
    off = dataclasses.replace(run, q=turned(run.q, j), v=turned(run.v, j))
    assert f"the sign of 'q{j + 1}' turned round" in one(arm, off)
    said = one(arm, dataclasses.replace(run, v=turned(run.v, j)))
    assert f"column 'dq{j + 1}'" in said and "is the sign of one of them turned round?" in said


@pytest.mark.parametrize(("i", "j"), list(itertools.combinations(range(3), 2)))
def test_columns_exchanged(arm, run, i, j):
    off = dataclasses.replace(run, tau=swapped(run.tau, i, j))
    assert f"'u{i + 1}' and 'u{j + 1}' exchanged" in one(arm, off)
    off = dataclasses.replace(run, q=swapped(run.q, i, j), v=swapped(run.v, i, j))
    assert f"'q{i + 1}' and 'q{j + 1}' exchanged" in one(arm, off)
    first, _ = log_warnings(arm, dataclasses.replace(run, v=swapped(run.v, i, j)))
    assert f"'dq{i + 1}'" in first and f"it is that of 'q{j + 1}'; are columns exchanged?" in first


def test_units(arm, run):
    degrees = dataclasses.replace(run, q=np.degrees(run.q), v=np.degrees(run.v))
    said = one(arm, degrees)
    assert all(f"'q{k}' of 'link{k - 1}'" in said for k in (1, 2, 3))
    assert "is its q in degrees (scale.q = 0.0174533, scale.v = 0.0174533)?" in said
    for factor, unit in ((1e3, "ms"), (1e6, "us"), (1e9, "ns")):
        late = dataclasses.replace(run, t=factor * T, v=None, columns={**NAMES, "time": ("t",)})
        assert (
            f'are the times in {unit}? Then give time = "t * {1 / factor:g}"'
            in log_warnings(arm, late)[0]
        )


def test_signals_that_tell_nothing(arm, run):
    tau = np.array(run.tau)
    tau[:, 1] = 0.25
    assert "'u2' is 0.25 in all rows; was tau recorded there?" in one(
        arm, dataclasses.replace(run, tau=tau)
    )
    tau[:, 1] = np.nan
    assert "'u2' is empty in all rows" in one(arm, dataclasses.replace(run, tau=tau))
    still = dataclasses.replace(run, q=1e-4 * run.q, v=1e-4 * run.v)
    assert "no joint moves more than 0.001 rad or m" in one(arm, still)


def test_a_run_into_a_stop(arm):
    """At 1 rad/s into the limit of 2 rad, where it stays."""
    q = np.stack((np.minimum(-1 + T, 1.995), 0.5 * np.sin(2 * T), 0.3 * np.sin(3 * T)), 1)
    said = one(arm, Recording("run.csv", T, q, columns=NAMES))
    assert "column 'q1'" in said and "runs into a stop near its limit at 2.9" in said
    smooth = np.stack((1.99 * np.sin(T), 1.99 * np.sin(2 * T), 1.99 * np.cos(3 * T)), 1)
    assert log_warnings(arm, Recording("run.csv", T, smooth)) == []


def test_recordings_of_different_rates(run):
    slow = dataclasses.replace(run.resampled(0.02), name="slow.csv")
    (said,) = rate_warnings([run, slow])
    assert said.startswith("slow.csv has a row every 0.02 s, but run.csv one every 0.004 s")
    assert rate_warnings([run, run]) == []


@pytest.mark.slow("tx40")
@needs_measurements
@pytest.mark.parametrize("name", ["tx40", "ur10", "gen3", "panda"])
def test_real_logs_raise_no_alarm(name, recwarn):
    """And with the signs of one torque turned round they do, the panda's first, which is noise."""
    folder = MEASURED / name
    system = dl.load(folder / f"{name}.urdf")
    log = "opti_traj_testing1.csv" if name == "gen3" else "run.csv"
    run = read_recording(folder / log)
    if system.nv > run.q.shape[1]:
        wide = {k: getattr(run, k) for k in "q v tau".split()}
        wide = {k: np.pad(x, ((0, 0), (0, system.nv - x.shape[1]))) for k, x in wide.items()}
        run = dataclasses.replace(run, **wide)
    messages = [m for m in log_warnings(system, run) if "is 0 in all rows" not in m]
    assert messages == []
    for j in range(1, 6):
        off = dataclasses.replace(run, tau=turned(run.tau, j))
        assert any("turned round" in m for m in log_warnings(system, off))
    assert not [w for w in recwarn if "rows are missing" in str(w.message)]


def test_a_jump_of_a_position(arm, run):
    """As of a sensor that lost its place; with no complaint of what follows from it."""
    q = np.array(run.q)
    q[500:, 1] += 0.7
    warnings = log_warnings(arm, dataclasses.replace(run, q=q, v=None, tau=None))
    assert [w for w in warnings if "jumps" in w] == [
        "run.csv: 'q2' jumps by 0.7119 rad or m at 1.996 s; cut the run there (from, to), or leave "
        "these cells empty"
    ]
