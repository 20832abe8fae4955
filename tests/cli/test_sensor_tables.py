"""Sensors described in identification files: found from simulated readings, and what is wrong."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_identify import URDF, call

import difflie as dl
from difflie import identify as di
from difflie import quantities as dq
from difflie.cli.identify import run_study
from difflie.identify.files import read_study, recordings_of, system_of
from difflie.io.tables import ConfigError

SENSORS = """
[[sensor]]
name = "imu"
kind = "accelerometer"
body = "arm"
position = [0.1, 0.0, -0.3]
rotation = [0.0, 0.0, 1.2]
columns = ["ax", "ay", "az"]
deviation = 0.05
[[sensor]]
name = "rates"
kind = "gyroscope"
body = "arm"
columns = ["wx", "wy", "wz"]
deviation = [0.01, 0.02, 0.01]
bias = [0.0, 0.1, 0.0]
[[sensor]]
name = "tip"
kind = "pose"
body = "arm"
position = [0.0, 0.0, -0.4]
columns = ["qw", "qx", "qy", "qz", "x", "y", "z"]
deviation = [0.01, 0.01, 0.01, 0.001, 0.001, 0.001]
[[sensor]]
name = "bearing"
kind = "wrench"
joint = "hinge"
columns = ["mx", "my", "mz", "fx", "fy", "fz"]
deviation = 0.1
[[sensor]]
name = "height"
kind = "own:height"
columns = ["h"]
deviation = 0.01
"""
TEXT = f"""
[system]
file = "{URDF}"
[data]
columns.q = ["q"]
columns.v = ["v"]
columns.a = ["a"]
columns.tau = ["tau"]
[[run]]
file = "swing.csv"
to = 1.0
[[run]]
file = "swing.csv"
from = 1.0
use = "validate"
{SENSORS}
"""
OWN = """
import difflie as dl


def height(system, q, v, u, t):
    return dl.center_of_mass(system, q)[2]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A swing of 2 s as all sensors tell it, with other biases than the file says."""
    path = tmp_path_factory.mktemp("sensed")
    (path / "study.toml").write_text(TEXT + '[[parameter]]\npath = "imu/bias"\n')
    (path / "own.py").write_text(OWN)
    true = dl.load(URDF).replace(mass=jnp.asarray([0.0, 0.8]), damping=jnp.asarray([0.05]))
    t = 0.01 * np.arange(201)
    tau = jnp.asarray(2 * np.sin(4 * t)[:, None])
    run = dl.simulate(true, jnp.asarray([0.2]), jnp.zeros(1), dt=0.01, steps=200, control=tau[:-1])
    place = dl.Frame("arm", (0.1, 0.0, -0.3), (0.0, 0.0, 1.2))
    tip = dl.Frame("arm", (0.0, 0.0, -0.45))
    quantities = (
        dq.Accelerometer(place),
        dq.Gyroscope("arm"),
        dq.Pose(tip),
        dq.JointWrench("hinge"),
        lambda system, q, v, u, t: dl.center_of_mass(system, q)[2:],
    )

    def at(q, v, u):
        a = dl.forward_dynamics(true, q, v, u + dl.passive_force(true, q, v))
        state = true, q, v, u, jnp.zeros(())
        return a, jnp.concatenate([of(*state) for of in quantities])

    a, read = (np.array(x) for x in jax.jit(jax.vmap(at))(run.q, run.v, tau))
    read[:, :3] += [0.5, -0.2, 0.3]
    read[:, 4] += 0.1
    read += 1e-4 * np.random.default_rng(0).normal(size=read.shape)
    quaternions = jax.vmap(dl.quaternion.exp)(jnp.asarray(read[:, 6:9]))
    columns = np.column_stack((t, run.q, run.v, a, tau, read[:, :6], quaternions, read[:, 9:]))
    names = "time q v a tau ax ay az wx wy wz qw qx qy qz x y z mx my mz fx fy fz h".split()
    columns[40:60, names.index("qx")] = np.nan
    np.savetxt(path / "swing.csv", columns, delimiter=",", header=",".join(names), comments="")
    return path


def study(folder, more, name="case.toml"):
    (folder / name).write_text(TEXT + more)
    return read_study(folder / name, allow_code=True)


FREE = """
[[parameter]]
path = ["imu/bias", "tip/frame/position", "arm/mass", "hinge/damping"]
"""


@pytest.mark.slow
@pytest.mark.thorough("motion")
@pytest.mark.parametrize("error", ["torque", "motion"])
def test_readings_find_biases_places_and_masses(error, folder):
    """Along the measured and the simulated motion; errors of each sensor are in its unit."""
    more = f'[fit]\nerror = "{error}"\nvelocity = 0.1\nwindow = 0.5\n{FREE}'
    found, _ = run_study(study(folder, more))
    assert found.converged
    values = {name: row.value for name, row in found.parameters.items()}
    expected = {"arm/mass": 0.8, "tip/frame/position_z": -0.45, "imu/bias_x": 0.5}
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=2e-3)
    rows = found.sensors
    units = [(row.sensor, row.unit) for row in rows if row.use == "validation"]
    assert units == [
        ("imu", "m/s^2"),
        ("rates", "rad/s"),
        ("tip", "rad"),
        ("tip", "m"),
        ("bearing", "N m"),
        ("bearing", "N"),
        ("height", ""),
    ]
    assert len(rows) == 14
    assert all(row.rmse < 1e-3 and row.simulated_rmse < 0.03 for row in rows)


@pytest.mark.slow
def test_without_angles_the_readings_find_the_motion(folder):
    """Angles without weight, as the poses and the IMU find the states and the damping."""
    more = '[fit]\nerror = "motion"\npositions = false\nstates = true\nwindow = 0.5\n'
    more += '[[parameter]]\npath = "hinge/damping"\nstart = 0.2\n'
    more += '[[parameter]]\npath = ["imu/bias", "tip/frame/position", "arm/mass"]\n'
    found, _ = run_study(study(folder, more))
    values = {name: row.value for name, row in found.parameters.items()}
    np.testing.assert_allclose(values["hinge/damping"], 0.05, rtol=1e-2)
    np.testing.assert_allclose(values["arm/mass"], 0.8, rtol=1e-3)


@pytest.mark.slow
def test_report_and_recordings(folder, tmp_path):
    """A table of the sensors; quaternions are read as rotation vectors, with gaps."""
    out = tmp_path / "out"
    assert call("identify", folder / "study.toml", "--allow-code", "--out", out) == 0
    page = (out / "report.html").read_text()
    assert "Sensors" in page and "RMSE, simulated motion" in page
    rows = json.loads((out / "identification.json").read_text())["sensors"]
    assert {row["sensor"] for row in rows} == {"imu", "rates", "tip", "bearing", "height"}
    config = read_study(folder / "study.toml", allow_code=True)
    (recording, *_) = recordings_of(config, system_of(config))["fit"]
    tip = recording.readings["tip"]
    assert tip.shape == (100, 6)
    assert (np.isnan(tip).all(axis=1) == ((recording.t > 0.395) & (recording.t < 0.595))).all()
    np.testing.assert_allclose(tip[:30, :3], recording.q[:30] * [[0, 1, 0]], atol=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "imu"', 'name = "hinge"', "sensor[0]: simple_pendulum: Sensor ('hinge'"),
        ('"accelerometer"', '"acelerometer"', "did you mean 'accelerometer'"),
        ('"accelerometer"', '"camera"', "write one of accelerometer"),
        ('body = "arm"', "", "body is missing; a sensor of kind 'accelerometer' needs it"),
        ('body = "arm"', 'body = "amr"', "did you mean 'arm'"),
        ('joint = "hinge"', 'body = "arm"', "body is 'arm'; it must be left out of kind 'wrench'"),
        ('["ax", "ay", "az"]', '["ax", "ay"]', "have 2 columns, the sensor 3: imu x, imu y"),
        ('["ax", "ay", "az"]', '["ax", "ay", "au"]', "there is no column 'au'"),
        ('["ax", "ay", "az"]', "[]", "columns is []; it must be the names of one column"),
        ("deviation = 0.05", "deviation = 0.0", "deviation is 0.0; it must be positive"),
        ("deviation = 0.05", "deviation = [0.1, 0.2]", "give one positive number, or 3"),
        ('"own:height"', '"own:hight"', "did you mean 'height'"),
        ('"own:height"', '"own:height"\nposition = [1, 0, 0]', "position and rotation must be"),
        ("[0.0, 0.0, 1.2]", "[0.0, 1.2]", "it must be a list of three numbers"),
        ('path = "imu/bias"', 'path = "imu/bais"', "the nearest is 'imu/bias'"),
    ],
)
def test_faults_are_named(old, new, said, folder):
    text = (folder / "study.toml").read_text()
    assert old in text
    (folder / "wrong.toml").write_text(text.replace(old, new, 1))
    with pytest.raises((ConfigError, di.DataError)) as error:
        run_study(read_study(folder / "wrong.toml", allow_code=True))
    assert said in str(error.value)


def test_sensors_are_not_for_the_fit_of_a_whole_arm(folder):
    (folder / "arm.toml").write_text(TEXT)
    with pytest.raises(ConfigError, match="must be left out without"):
        read_study(folder / "arm.toml", allow_code=True)


def test_rotation_vectors_may_jump(folder):
    """Poses with six columns, whose rotation vectors jump at pi, are resampled through the turn."""
    angle = np.linspace(2.8, 3.5, 29)
    angle = np.where(angle > np.pi, angle - 2 * np.pi, angle)
    q = np.linspace(0.0, 0.1, 29)
    columns = np.column_stack((0.1 * np.arange(29), q, 0 * q, angle, 0 * q, q, q, q))
    header = "time,q,rx,ry,rz,x,y,z"
    np.savetxt(folder / "turn.csv", columns, delimiter=",", header=header, comments="")
    text = (
        TEXT[: TEXT.index("[data]")]
        + """
[data]
columns.q = ["q"]
resample = 0.05
[[run]]
file = "turn.csv"
[[sensor]]
name = "tip"
kind = "pose"
body = "arm"
columns = ["rx", "ry", "rz", "x", "y", "z"]
deviation = 0.01
[[parameter]]
path = "tip/frame/position"
"""
    )
    (folder / "turn.toml").write_text(text)
    config = read_study(folder / "turn.toml", allow_code=True)
    (recording,) = recordings_of(config, system_of(config))["fit"]
    turns = recording.readings["tip"][:, 1]
    np.testing.assert_allclose(turns, np.linspace(2.8, 3.5, 57), atol=1e-9)


def test_a_class_instead_of_an_object_is_named(folder):
    text = (folder / "study.toml").read_text().replace('"own:height"', '"kinds:Level"')
    code = "from difflie import quantities as dq\n\n\nclass Level(dq.Energy):\n    pass\n"
    (folder / "kinds.py").write_text(code)
    (folder / "wrong.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"sensor\[4\]: 'kinds:Level' is a class; name an object"):
        system_of(read_study(folder / "wrong.toml", allow_code=True))
