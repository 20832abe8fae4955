"""Identifications described in files: simulated measurements, real ones, and what is wrong."""

import itertools
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from pages import Page
from scipy.spatial.transform import Rotation

import difflie as dl
from difflie.cli import main
from difflie.cli.identify import run_study
from difflie.identify import DataError, InverseDynamics, Recording, Shooting, read_recording
from difflie.identify.files import read_study, system_of, unique_names
from difflie.io.tables import ConfigError
from difflie.system.builders import bodies_of

ROOT = Path(__file__).parent.parent.parent
MEASURED = ROOT.parent / "shared" / "data"
needs_measurements = pytest.mark.skipif(not MEASURED.is_dir(), reason=f"{MEASURED} is absent")
URDF = ROOT / "configs" / "simple_pendulum.urdf"
TEXT = f"""
[system]
file = "{URDF}"
[data]
columns.q = ["angle"]
columns.v = ["rate"]
columns.a = ["acceleration"]
columns.tau = ["torque"]
[[run]]
file = "swing.csv"
to = 1.5
[[run]]
file = "swing.csv"
from = 1.5
use = "validate"
[[parameter]]
path = "arm/mass"
[[parameter]]
path = "hinge/damping"
"""


def call(*arguments) -> int:
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A swing of 2 s with a mass of 0.8 kg and a damping of 0.05, measured without noise."""
    path = tmp_path_factory.mktemp("measured")
    true = dl.load(URDF).replace(mass=jnp.asarray([0.0, 0.8]), damping=jnp.asarray([0.05]))
    t = 0.01 * np.arange(201)
    tau = jnp.asarray(2 * np.sin(4 * t)[:, None])
    run = dl.simulate(true, jnp.asarray([0.2]), jnp.zeros(1), dt=0.01, steps=200, control=tau[:-1])
    a = [
        dl.forward_dynamics(true, q, v, u + dl.passive_force(true, q, v))
        for q, v, u in zip(run.q, run.v, tau, strict=True)
    ]
    columns = np.column_stack((t, run.q, run.v, np.array(a), tau))
    header = "time,angle,rate,acceleration,torque"
    for name in ("swing.csv", "other.csv"):
        np.savetxt(path / name, columns, delimiter=",", header=header, comments="")
    (path / "study.toml").write_text(TEXT)
    return path


@pytest.mark.slow
def test_from_the_command_line(folder, tmp_path, capsys):
    out, figures = tmp_path / "out", tmp_path / "figures.json"
    given = ("--validate", folder / "other.csv", "--out", out, "--json", figures)
    assert call("identify", folder / "study.toml", *given) == 0
    found = json.loads(figures.read_text())
    assert found["converged"] and found["fit"]["steps"] < 15
    assert found["parameters"]["arm/mass"]["value"] == pytest.approx(0.8, rel=1e-8)
    assert found["parameters"]["hinge/damping"]["value"] == pytest.approx(0.05, rel=1e-8)
    assert found["parameters"]["arm/mass"]["start"] == 0.5
    runs = [row["run"] for row in found["validation"]]
    assert runs == ["swing.csv (1.5 to 2 s)", "other.csv"]
    for row in found["validation"] + found["training"]:
        assert row["joint"] == "hinge"
        assert row["torque_rmse"] < 1e-6 and row["position_rmse"] < 1e-6
    system = dl.load(out / "simple_pendulum.urdf")
    assert system.bodies.mass[-1] == pytest.approx(0.8, rel=1e-6)
    page = (out / "report.html").read_text()
    assert Page(out / "report.html").sign == "✓Worked"
    assert "arm/mass" in page and page.count("<img") == 6 and "held out, not fitted" in page
    printed = capsys.readouterr().out
    assert "converged after" in printed and "hinge/damping" in printed


@pytest.mark.slow
def test_the_shapes_of_an_original_are_kept(folder, tmp_path, capsys):
    """And one that is of another machine is refused before anything is fitted."""
    robot, out = tmp_path / "robot.urdf", tmp_path / "out"
    visual = "<visual><geometry><sphere radius='0.1'/></geometry></visual>"
    robot.write_text(URDF.read_text().replace('<link name="arm">', f'<link name="arm">{visual}'))
    given = "identify", folder / "study.toml", "--original"
    assert call(*given, robot, "--out", out) == 0
    written = out / "simple_pendulum.urdf"
    assert "<sphere" in written.read_text()
    assert dl.load(written).bodies.mass[-1] == pytest.approx(0.8, rel=1e-6)
    robot.write_text(URDF.read_text().replace('"arm"', '"leg"'))
    capsys.readouterr()
    assert call(*given, robot, "--out", tmp_path / "other") == 2
    assert "there is no link 'arm', which the system has" in capsys.readouterr().err
    assert not (tmp_path / "other" / "identification.json").exists()
    assert call(*given, robot) == 2
    assert "--original is for the machine in the folder --out" in capsys.readouterr().err


@pytest.mark.slow
def test_the_shapes_of_the_robot_are_kept_without_an_original(folder, tmp_path, recwarn):
    """Guards the saved machine's shapes, which its own URDF file has."""
    robot, study, out = tmp_path / "robot.urdf", tmp_path / "study.toml", tmp_path / "out"
    visual = "<visual><geometry><sphere radius='0.1'/></geometry></visual>"
    robot.write_text(URDF.read_text().replace('<link name="arm">', f'<link name="arm">{visual}'))
    study.write_text(TEXT.replace(str(URDF), str(robot)))
    assert call("identify", study, "--data", folder, "--out", out) == 0
    assert "<sphere" in (out / "simple_pendulum.urdf").read_text()
    assert not any("no part of a system" in str(w.message) for w in recwarn)


@pytest.mark.slow
def test_what_the_measurements_do_not_determine_is_null_and_named(folder, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TEXT + '[[parameter]]\npath = "arm/com_y"\n')
    given = ("--data", folder, "--out", tmp_path / "out")
    assert call("identify", path, *given) == 0
    found = json.loads((tmp_path / "out" / "identification.json").read_text())
    errors = {name: row["std_error"] for name, row in found["parameters"].items()}
    assert [name for name, error in errors.items() if error is None] == ["arm/com_y"]
    assert found["fit"]["undetermined"] == ["arm/com_y"]
    assert found["fit"]["unidentifiable"] == [{"arm/com_y": pytest.approx(1.0, abs=0.01)}]
    row = found["parameters"]["arm/com_y"]
    assert row["std_error_white"] is None and row["interval"] == [None, None]
    assert found["fit"]["notes"] == ["this data does not determine one direction, of arm/com_y"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("not identifiable") == 1 and "does not determine one direction" in page
    assert (tmp_path / "out" / "ellipses.png").is_file()


@pytest.mark.slow
def test_the_robot_may_lie_with_the_runs(folder, tmp_path, capsys):
    """Beside the configuration first; where it is in neither folder both are named."""
    path, data = tmp_path / "study.toml", tmp_path / "data"
    path.write_text(TEXT.replace(str(URDF), "robot.urdf"))
    assert call("identify", path, "--data", data) == 2
    assert f"{tmp_path}/robot.urdf or {data}/robot.urdf" in capsys.readouterr().err
    data.mkdir()
    (data / "robot.urdf").write_text(URDF.read_text())
    (data / "swing.csv").write_text((folder / "swing.csv").read_text())
    assert call("identify", path, "--data", data) == 0
    (tmp_path / "robot.urdf").write_text("<broken>")
    with pytest.raises(ValueError, match=str(tmp_path / "robot.urdf")):
        system_of(read_study(path, data))


@pytest.mark.slow
def test_robots_are_identified_as_their_files_are(folder, tmp_path):
    """A frame of a tool without mass, and an inertia that no body has: one note, and a fit."""
    tool = '<link name="tool0"/><joint name="flange" type="fixed"><parent link="arm"/>'
    tool += '<child link="tool0"/></joint></robot>'
    robot = URDF.read_text().replace('ixx="1e-5"', 'ixx="0"').replace("</robot>", tool)
    (tmp_path / "robot.urdf").write_text(robot.replace('iyy="1e-5"', 'iyy="3e-3"'))
    path = tmp_path / "study.toml"
    path.write_text(TEXT.replace(str(URDF), "robot.urdf").replace("arm/mass", "*/inertial"))
    with pytest.warns(UserWarning, match="no rigid body has") as seen:
        found, _ = run_study(read_study(path, folder))
    at_load, at_start = [str(w.message) for w in seen if "no rigid body has" in str(w.message)]
    assert "robot.urdf:5: <link name='arm'>" in at_load
    assert "has the inertia of arm, and the fit starts at the nearest" in at_start
    assert not any("zero has no logarithm" in str(w.message) for w in seen)
    assert found.converged and not any("tool0" in name for name in found.parameters)
    assert found.parameters["hinge/damping"].value == pytest.approx(0.05, rel=1e-6)
    assert found.training[0].torque_rmse < 1e-6


@pytest.mark.slow
def test_locked_joints_have_no_columns(folder, tmp_path):
    """A finger that was not moved; a name that is unknown is reported with the nearest one."""
    finger = dl.Body(name="tip", parent="arm", joint=dl.Prismatic(name="finger"), mass=0.1)
    dl.save(dl.tree([*bodies_of(dl.load(URDF)), finger]), tmp_path / "robot.urdf")
    path, robot = tmp_path / "study.toml", tmp_path / "robot.urdf"
    text = TEXT.replace(f'file = "{URDF}"', f'file = "{robot}"\nlocked = {{finger = 0.02}}')
    path.write_text(text)
    assert call("identify", path, "--data", folder) == 0
    path.write_text(text.replace("finger =", "fingr ="))
    with pytest.raises(ConfigError, match=r"system\.locked: .* 'fingr'; did you mean 'finger'"):
        system_of(read_study(path, folder))


@pytest.mark.slow
def test_runs_are_left_out_in_turn(folder, tmp_path):
    """The torques of one have a bias that no parameter explains: it fits the others worst."""
    columns = np.genfromtxt(folder / "swing.csv", delimiter=",", names=True)
    header = ",".join(columns.dtype.names)
    for k, bias in enumerate((0.0, 0.0, 0.5)):
        part = columns[50 * k : 50 * k + 60].copy()
        part["torque"] += bias
        np.savetxt(tmp_path / f"{k}.csv", part, delimiter=",", header=header, comments="")
    runs = "".join(f'[[run]]\nfile = "{k}.csv"\n' for k in range(3))
    text = TEXT[: TEXT.index("[[run]]")] + runs + TEXT[TEXT.index("[[parameter]]") :]
    (tmp_path / "study.toml").write_text(text + "[fit]\nleave_out = true\n")
    found, _ = run_study(read_study(tmp_path / "study.toml"), out=tmp_path / "out")
    assert [row.run for row in found.left_out] == ["0.csv", "1.csv", "2.csv"]
    left, used = ([r.torque_rmse for r in rows] for rows in (found.left_out, found.training))
    assert left[2] == pytest.approx(0.5, rel=1e-6) and used[2] < 0.5
    assert left[0] > used[0] and left[1] > used[1]
    assert (
        "Runs left out are each judged by the fit to the others"
        in (tmp_path / "out" / "report.html").read_text()
    )
    (tmp_path / "study.toml").write_text(TEXT + "[fit]\nleave_out = true\n")
    with pytest.raises(ConfigError, match=r"fit\.leave_out is True; it must be left out, with"):
        read_study(tmp_path / "study.toml")


STANDING = """
[[drive]]
joint = "hinge"
torque_bias = 0.1
delay = 0.0
[[stribeck]]
joint = "hinge"
breakaway = 0.1
stribeck_velocity = 0.5
[[encoder]]
joint = "hinge"
[[parameter]]
path = "hinge/position_bias"
[[parameter]]
path = "hinge/breakaway"
"""


@pytest.mark.slow
def test_what_stands_at_a_joint(folder, tmp_path):
    """A bias of 0.05 rad and a breakaway of 0.3 N m are found; URDF is saved without them."""
    columns = np.genfromtxt(folder / "swing.csv", delimiter=",", names=True)
    v = columns["rate"]
    columns["angle"] += 0.05
    columns["torque"] += 0.3 * np.exp(-((v / 0.5) ** 2)) * np.tanh(v / 0.05) - 0.1
    header = ",".join(columns.dtype.names)
    np.savetxt(tmp_path / "swing.csv", columns, delimiter=",", header=header, comments="")
    text = TEXT[: TEXT.index("[[run]]")] + '[[run]]\nfile = "swing.csv"\n' + STANDING
    text += TEXT[TEXT.index("[[parameter]]") :]
    (tmp_path / "study.toml").write_text(text)
    found, _ = run_study(read_study(tmp_path / "study.toml"), out=tmp_path / "out")
    numbers = {name: row.value for name, row in found.parameters.items()}
    expected = {"hinge/position_bias": 0.05, "hinge/breakaway": 0.3}
    expected |= {"arm/mass": 0.8, "hinge/damping": 0.05}
    assert numbers == pytest.approx(expected, rel=1e-7)
    assert found.parameters["hinge/position_bias"].std_error < 1e-7
    # Units are those that the classes declare, of "N m or N" that of a hinge, also in the report.
    units = [found.parameters[name].unit for name in ("hinge/breakaway", "arm/mass")]
    assert units == ["N m", "kg"]
    assert "<td>N m</td>" in (tmp_path / "out" / "report.html").read_text()
    saved = dl.load(tmp_path / "out" / "simple_pendulum.urdf")
    assert saved.bodies.mass[-1] == pytest.approx(0.8) and not saved.couplings + saved.sensors
    (tmp_path / "study.toml").write_text(text.replace("breakaway = 0.1", "breakaway = -0.1"))
    with pytest.raises(ConfigError, match=r"stribeck\[0\].breakaway is -0.1 N m or N; it must"):
        run_study(read_study(tmp_path / "study.toml"))


@pytest.mark.slow
def test_given_parameters_are_judged_only(folder, tmp_path):
    figures, given = tmp_path / "figures.json", tmp_path / "given.json"
    given.write_text('{"arm/mass": 0.8, "hinge/damping": {"value": 0.0}}')
    arguments = ("--parameters", given, "--json", figures, "--out", tmp_path / "out")
    assert call("identify", folder / "study.toml", *arguments) == 0
    found = json.loads(figures.read_text())
    assert found["converged"] is None and found["fit"] is None
    assert Page(tmp_path / "out" / "report.html").sign == "?Not judged"
    assert found["parameters"]["hinge/damping"]["value"] == 0.0
    assert 1e-3 < found["validation"][0]["torque_rmse"] < 1


@pytest.mark.slow
def test_an_identification_goes_on_where_it_was_stopped(folder, tmp_path):
    short, first, rest = (tmp_path / name for name in ("short.toml", "first.json", "rest.json"))
    short.write_text(TEXT + "[fit]\nsteps = 2\n")
    given = ("--data", folder, "--json", first, "--out", tmp_path / "out")
    assert call("identify", short, *given) == 1
    assert Page(tmp_path / "out" / "report.html").sign == "✗Did not work"
    assert not json.loads(first.read_text())["converged"]
    given = ("--resume", first, "--json", rest)
    assert call("identify", folder / "study.toml", *given) == 0
    found = json.loads(rest.read_text())
    assert found["parameters"]["arm/mass"]["value"] == pytest.approx(0.8, rel=1e-8)
    first.write_text('{"arm/mass": -1, "hinge/damping": 0}')
    assert call("identify", folder / "study.toml", "--resume", first) == 2


@pytest.mark.slow
def test_a_function_of_the_user_writes_a_number(folder, tmp_path, capsys):
    """From a module beside the file; a run goes on, though no machine tells the number."""
    path, first, rest = (tmp_path / name for name in ("study.toml", "first.json", "rest.json"))
    (tmp_path / "heavier.py").write_text(
        "def by(system, ratio):\n    return system.replace(mass=ratio * system.bodies.mass)\n"
    )
    text = TEXT.replace('"hinge/damping"', '["hinge/damping"]')
    text = text.replace('"arm/mass"', '"heavier"\nof = "heavier:by"\nstart = 1.2\nlower = 0.0')
    path.write_text(text + "[fit]\nsteps = 2\n")
    assert call("identify", path, "--allow-code", "--data", folder, "--json", first) == 1
    path.write_text(text)
    assert (
        call("identify", path, "--allow-code", "--data", folder, "--resume", first, "--json", rest)
        == 0
    )
    found = json.loads(rest.read_text())["parameters"]
    assert found["heavier"]["value"] == pytest.approx(1.6, rel=1e-8)
    assert found["hinge/damping"]["value"] == pytest.approx(0.05, rel=1e-8)
    for old, new, said in (
        ("heavier:by", "heavier:bye", "no function 'bye'; did you mean 'by'"),
        ("heavier:by", "heavy:by", "parameter[0].of: there is no module 'heavy'"),
        ("start = 1.2", "", "'heavier' is written by a function; give it one name, and a `start`"),
    ):
        path.write_text(text.replace(old, new))
        capsys.readouterr()
        assert call("identify", path, "--allow-code", "--data", folder) == 2
        shown = " ".join(capsys.readouterr().err.split())
        assert said in shown, shown


# As an identification of the release before wrote it.
OLD = {
    "name": "study",
    "system": "simple_pendulum",
    "parameters": {
        name: {"unit": unit, "start": 0.5, "value": value, "std_error": None, "interval": None}
        for name, unit, value in (("arm/mass", "kg", 0.8), ("hinge/damping", "N m s/rad", 0.05))
    },
    "fit": {"cost": 0.1, "variance": 1.0, "steps": 7, "message": "not converged", "seconds": 1.0},
    "states": [[]],
    "converged": False,
    "training": [{"run": "swing.csv", "joint": "hinge", "torque_rmse": 0.1}],
    "verdict": ["not converged after 7 steps"],
}


@pytest.mark.parametrize("option", ["--resume", "--parameters"])
def test_files_of_the_release_before_are_read(option, folder, tmp_path):
    """Guards the numbers and states of an earlier identification.json."""
    old, new = tmp_path / "identification.json", tmp_path / "new.json"
    old.write_text(json.dumps(OLD))
    assert call("identify", folder / "study.toml", option, old, "--json", new) == 0
    found = json.loads(new.read_text())
    numbers = [
        found["parameters"][name]["start" if option == "--resume" else "value"]
        for name in OLD["parameters"]
    ]
    assert numbers == pytest.approx([0.8, 0.05], rel=1e-12)
    assert found["validation"][0]["torque_rmse"] < 1e-6


@pytest.mark.slow
def test_a_fit_that_is_killed_goes_on(tmp_path):
    """What was found so far is in both files after each step, with the states of the windows."""
    write_falls(tmp_path)
    config, kept, out = (
        read_study(tmp_path / "study.toml"),
        tmp_path / "kept.json",
        tmp_path / "out",
    )

    costs = []

    def killed(step, cost):
        costs.append(cost)
        if step == 3:
            raise SystemError

    with pytest.raises(SystemError):
        run_study(config, out=out, keep=kept, progress=killed)
    so_far = json.loads(kept.read_text())
    assert so_far == json.loads((out / "identification.json").read_text())
    assert so_far["converged"] is False and len(so_far["states"][0]) == 2
    found, _ = run_study(config, resume=kept, progress=lambda step, cost: costs.append(cost))
    assert found.converged and costs[0] > 10 * costs[2]
    # Its first step starts where the other fit ended.
    assert costs[3] < costs[2]
    values = {name: row.start for name, row in found.parameters.items()}
    assert values == pytest.approx({n: row["value"] for n, row in so_far["parameters"].items()})
    so_far["states"] = [[1.0]]
    kept.write_text(json.dumps(so_far))
    with pytest.warns(UserWarning, match="the states to resume with are those of other windows"):
        run_study(config, resume=kept)


@pytest.mark.slow
def test_columns_by_their_names_in_degrees(folder, tmp_path, capsys):
    """No columns are given, the header has units, and smoothing gives what was not logged."""
    columns = np.genfromtxt(folder / "swing.csv", delimiter=",", names=True)
    table = np.column_stack((1e3 * columns["time"], np.degrees(columns["angle"])))
    table = np.column_stack((table, columns["torque"]))
    header = "t [ms],q1 [deg],tau1 [N m]"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        np.savetxt(tmp_path / name / "run.csv", table, delimiter=",", header=header, comments="")
    data = "[data]\nlowpass = 8.0\norder = 2\nevery = 3\nslow = 0.05\nresample = 0.01\n"
    runs = '[[run]]\nfile = "a/run.csv"\n[[run]]\nfile = "b/run.csv"\nuse = "validate"\n'
    text = f'[system]\nfile = "{URDF}"\n{data}{runs}'
    (tmp_path / "study.toml").write_text(text + TEXT[TEXT.index("[[parameter]]") :])
    figures = tmp_path / "found.json"
    assert call("identify", tmp_path / "study.toml", "--json", figures) == 0
    found = json.loads(figures.read_text())
    assert found["parameters"]["arm/mass"]["value"] == pytest.approx(0.8, rel=2e-2)
    # Two files of one name have their folders in theirs.
    runs = [row["run"] for row in found["training"] + found["validation"]]
    assert runs == ["a/run.csv", "b/run.csv"]
    printed = capsys.readouterr().out
    assert "run.csv: q1 in deg are read as rad" in printed
    assert "run.csv: columns by their names: q: q1; tau: tau1" in printed


def test_tables_of_several_joints(tmp_path):
    """A list of joints stands for a table of each, and a fault names the joint."""
    double = ROOT / "configs" / "double_pendulum.urdf"
    text = f'[system]\nfile = "{double}"\n{TEXT[TEXT.index("[data]") :]}'
    text += '[[drive]]\njoint = ["shoulder", "elbow"]\nload_friction = 0.2\n'
    path = tmp_path / "study.toml"
    path.write_text(text + '[[encoder]]\njoint = ["elbow", "shoulder"]\nposition_bias = 0.1\n')
    system = system_of(read_study(path))
    assert [a.joint for a in system.actuators] == ["shoulder", "elbow"]
    assert [float(a.load_friction) for a in system.actuators] == [0.2, 0.2]
    assert [e.joint for e in system.sensors] == ["elbow", "shoulder"]
    path.write_text(text + '[[encoder]]\njoint = ["elbow", "wrist"]\n')
    with pytest.raises(ConfigError, match=r"encoder\[0\] \(wrist\): .*'wrist'"):
        system_of(read_study(path))


def test_names_that_tell_files_apart():
    paths = ["x/a/run.csv", "x/b/run.csv", "y/b/run.csv", "x/a/run.csv", "x/other.csv"]
    names = ["a/run.csv", "x/b/run.csv", "y/b/run.csv", "a/run.csv", "other.csv"]
    assert unique_names([Path(path) for path in paths]) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"arm/mass"', "no table of parameters"),
        ('{"arm/mas": 1}', "no parameter 'arm/mas'; did you mean 'arm/mass'"),
        ('{"arm/mass": 1}', "'hinge/damping' is None; give a number"),
        ("{", "this is not JSON"),
    ],
)
def test_given_parameters_that_are_none(folder, tmp_path, capsys, text, said):
    given = tmp_path / "given.json"
    given.write_text(text)
    assert call("identify", folder / "study.toml", "--parameters", given) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert said in shown


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('columns.q = ["angle"]', 'columns.q = ["angel"]', "no column 'angel'; did you mean"),
        ("[[run]]", "[[runs]]", "no table [runs]; did you mean 'run'"),
        ('use = "validate"', 'use = "judge"', "run[1].use is 'judge'; it must be one of"),
        ('"arm/mass"', '"arm/mas"', "no parameter matches 'arm/mas'"),
        ('file = "swing.csv"', 'file = "swings.csv"', "there is no such file"),
        ("[data]", "[data]\nsmooth = 4", "an odd number of rows"),
        ("[data]", "[data]\nsmooth = 5\nlowpass = 9.0", "data.lowpass is 9.0 Hz; it must be left"),
        ("[data]", "[data]\nlowpass = 99.0", "swing.csv: the cutoff is 99 Hz; it must be positive"),
        ("[data]", "[data]\nlowpass = 1e-9", "is 1e-09 Hz and the recording lasts 2 s; give a cut"),
        ("[data]", "[data]\norder = 3", "data.order is 3; it must be left out without smooth or"),
        ("[data]", "[data]\nevery = 0", "data.every is 0; it must be 1 or more"),
        (
            "[data]",
            "[data]\nslow = -1.0",
            "data.slow is -1.0 rad/s or m/s; it must not be negative",
        ),
        ("[data]", "[data]\nslow = 99.0", "'rate' is never as fast as 99 rad/s"),
        ('q = ["angle"]', 'q = ["angle - x"]', "there is no column 'x'"),
        ('q = ["angle"]', 'q = ["sin(angle)"]', "'sin(angle)' is not allowed; write columns"),
        ("[data]", "[fit]\nwindow = 0.0\n[data]", "fit.window is 0.0 s; it must be positive"),
        ("columns.tau", "columns.torque", "columns is 'torque'; it must be one of"),
        ("[data]", '[[encoder]]\njoint = "hing"\n[data]', "encoder[0]: simple_pendulum: Encoder"),
        ("[data]", '[[stribeck]]\njoint = "hinge"\n[data]', "breakaway"),
        ("[data]", '[[drive]]\njoint = "hinge"\ndely = 1.0\n[data]', "did you mean 'delay'"),
        (
            'columns.q = ["angle"]',
            "columns.q = []",
            "data.columns.q is []; it must be the names of",
        ),
        ('columns.q = ["angle"]', "", "it must have the columns of q, or be left out"),
        ("[data]", "[data]\nscale.q = 0", "data.scale.q is 0; it must be finite and not zero"),
        ("[data]", "[data]\nscale.v = nan", "data.scale.v is nan; it must be finite"),
        ("[data]", "[data]\nresample = 1e-9", "swing.csv: steps of 1e-09 s make 2e+09 samples, "),
        ("[data]", "[data]\nform = 1.0", "[data] has no key 'form'; did you mean 'from'"),
        ("to = 1.5", "to = nan", "run[0].to is nan; it must be finite"),
        ("to = 1.5", "to = 'x'", "run[0].to is 'x'; it must be a number"),
        ("to = 1.5", "to = 1.5\nfrom = 2", "run[0].to is 1.5; it must be a time after 2 s"),
        (
            "[data]",
            "[fit]\ntolerance = 91\n[data]",
            "fit.tolerance is 91; it must be between 0 and 0.01",
        ),
        ("[data]", "[fit]\nlimit = 0\n[data]", "fit.limit is 0; it must be positive"),
        (
            "[data]",
            "[fit]\ntorque = [1, 0]\n[data]",
            "fit.torque is [1, 0] N m or N; it must be posi",
        ),
        (
            "[data]",
            "[fit]\nsubsteps = 10000000\n[data]",
            "substeps is 10000000; it must be between 1 and",
        ),
        ('columns.a = ["acceleration"]', "", "a is not measured; name its columns, or smooth q"),
    ],
)
def test_what_cannot_be_run_is_named(folder, tmp_path, capsys, old, new, said):
    path = tmp_path / "study.toml"
    path.write_text(TEXT.replace(old, new))
    assert call("identify", path, "--data", folder) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert said in shown, shown


FLIGHT = f"""
[system]
file = "{ROOT / "configs" / "tossed_cube.urdf"}"
[data]
names = ["x", "y", "z", "qw", "qx", "qy", "qz"]
rate = 100.0
columns.q = ["qw", "qx", "qy", "qz", "x", "y", "z"]
from = 0.015
to = 0.19
[[run]]
file = "0.csv"
[[run]]
file = "1.csv"
[[run]]
file = "2.csv"
from = 0.0
use = "validate"
[[parameter]]
path = "cube/inertia"
ratios = true
[[parameter]]
path = "gravity"
[fit]
error = "motion"
position = 1e-3
states = true
[validation]
window = 0.25
observe = 8
"""


@pytest.fixture(scope="module")
def flights(tmp_path_factory):
    """Three flights of a body of ratios 1.2, 1.5 and 0.1, each with a bounce, and no noise."""
    path = tmp_path_factory.mktemp("flights")
    inertia = jnp.asarray([[[1.0, 0.1, 0.0], [0.1, 1.2, 0.0], [0.0, 0.0, 1.5]]])
    body = dl.load(ROOT / "configs" / "tossed_cube.urdf").replace(inertia=inertia)
    rng = np.random.default_rng(5)
    for k in range(3):
        v = np.concatenate((4 * rng.normal(size=3), rng.normal(size=3)))
        run = dl.simulate(body, body.neutral(), jnp.asarray(v), dt=0.01, steps=25)
        q = np.array(run.q)
        q[20:, 6] += 2.0 * (np.arange(6) - 0.4)
        np.savetxt(path / f"{k}.csv", q[:, [4, 5, 6, 0, 1, 2, 3]], delimiter=",")
    (path / "study.toml").write_text(FLIGHT)
    return path


BALL = """
<robot name="ball">
  <difflie gravity="0 0 -9"/>
  <link name="ground"/>
  <link name="ball">
    <inertial>
      <mass value="1"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="height" type="prismatic">
    <parent link="ground"/>
    <child link="ball"/>
    <axis xyz="0 0 1"/>
    <limit lower="-10" upper="10" effort="0" velocity="100"/>
  </joint>
</robot>
"""
FALLS = """
[system]
file = "ball.urdf"
[data]
names = ["z"]
rate = 100.0
columns.q = ["z"]
to = 0.195
[[run]]
file = "up.csv"
[[run]]
file = "down.csv"
use = "validate"
[[parameter]]
path = "gravity"
prior = [0.0, 1000.0]
[fit]
error = "motion"
position = 1e-3
states = true
[validation]
window = 0.5
observe = 4
"""


def write_falls(folder):
    t = 0.01 * np.arange(25)
    for name, v in (("up", 1.0), ("down", -1.0)):
        z = v * t - 4.905 * t**2
        z[20:] += 2.0 * (np.arange(5) + 0.6) * 0.01
        np.savetxt(folder / f"{name}.csv", z)
    (folder / "ball.urdf").write_text(BALL)
    (folder / "study.toml").write_text(FALLS)


@pytest.mark.slow
def test_falls_without_header_times_or_torques(tmp_path):
    """A ball at 9.81 m/s^2 with a bounce: only the prior tells of gravity across its path."""
    write_falls(tmp_path)
    figures, out = tmp_path / "figures.json", tmp_path / "out"
    assert call("identify", tmp_path / "study.toml", "--out", out, "--json", figures) == 0
    found = json.loads(figures.read_text())
    values = [row["value"] for row in found["parameters"].values()]
    np.testing.assert_allclose(values, (0, 0, -9.81), atol=1e-5)
    rows = found["training"] + found["validation"]
    assert [row["run"] for row in rows] == ["up.csv", "down.csv"]
    for row in rows:
        assert row["position_rmse"] < 1e-6 and row["torque_rmse"] is None
    assert (out / "run_1.png").is_file()


@pytest.mark.thorough
def test_flights_without_header_times_or_torques(flights, tmp_path):
    figures, out = tmp_path / "figures.json", tmp_path / "out"
    assert call("identify", flights / "study.toml", "--out", out, "--json", figures) == 0
    found = json.loads(figures.read_text())
    values = [row["value"] for row in found["parameters"].values()]
    np.testing.assert_allclose(values, (0.1, 0, 1.2, 0, 1.5, 0, 0, -187.2), atol=1e-7)
    assert list(found["parameters"])[2] == "cube/I_yy/I_xx"
    assert [row["run"] for row in found["validation"]] == ["2.csv (0 to 0.18 s)"] * 6
    for row in found["training"] + found["validation"]:
        assert row["position_rmse"] < 1e-8 and row["torque_rmse"] is None
    assert (out / "run_2.png").is_file() and (out / "tossed_cube.urdf").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("from = 0.015", "from = 0.185", "0.csv: times have shape (0,); two or more are needed"),
        ("rate = 100.0", "rate = 0.0", "data.rate is 0.0 1/s; it must be positive"),
        ("rate = 100.0", 'rate = 1.0\ntime = "t"', "data.rate is 1.0; it must be left out"),
        ("observe = 8", "observe = 1", "validation.observe is 1; it must be 2 or more"),
        ("ratios = true", "ratios = true\nscaled = true", "parameter[0].ratios is True"),
        ('"cube/inertia"', '"cube/com"', "InertiaRatios does not suit com"),
        ("position = 1e-3", "velocity = 1.0", "v is not measured; leave its deviation out"),
        ('"z", "qw"', '"z"', "but the header 6"),
    ],
)
def test_flights_that_cannot_be_read_are_named(flights, tmp_path, capsys, old, new, said):
    path = tmp_path / "study.toml"
    path.write_text(FLIGHT.replace(old, new))
    assert call("identify", path, "--data", flights) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert said in shown, shown


SEVERAL = """
[data]
columns.q = ["angle"]
columns.tork = ["torque"]
smooth = 4
from = 2.0
to = 1.0
[[run]]
file = "swing.csv"
use = "fitt"
[[run]]
file = "swing.csv"
weight = 0.0
[[parameter]]
path = "arm/mass"
prior = [0.1]
[fit]
loss = "hubber"
toleranc = 1e-6
window = -1.0
[validation]
substeps = 1.5
"""


def test_all_faults_of_a_study_are_told_at_once(tmp_path):
    """A line for each, also of those between keys; a part at fault says nothing of the others."""
    path = tmp_path / "study.toml"
    path.write_text(f'[system]\nfile = "{URDF}"\n{SEVERAL}')
    with pytest.raises(ConfigError) as caught:
        read_study(path)
    expected = {
        "a key of data.columns is 'tork'; it must be one of 'q', 'v', 'a', 'tau'",
        "data.smooth is 4; it must be an odd number of rows",
        "data.to is 1.0; it must be a time after 2.0 s",
        "run[0].use is 'fitt'; it must be one of 'fit', 'validate'; did you mean 'fit'?",
        "run[1].weight is 0.0; it must be positive",
        "parameter[0].prior is [0.1]; it must be a mean and a standard deviation",
        "fit.loss is 'hubber'; it must be one of 'squares', 'huber', 'cauchy'; did you mean "
        "'huber'?",
        "[fit] has no key 'toleranc'; did you mean 'tolerance'?",
        "fit.window is -1.0 s; it must be positive",
        "validation.substeps is 1.5; it must be a whole number below 2147483647",
    }
    assert set(str(caught.value).split("\n")) == {f"{path}: {fault}" for fault in expected}


@pytest.mark.slow
@needs_measurements
def test_the_measured_pendulum(tmp_path):
    """The published mass, 0.6755 kg at 0.5 m, is in the interval; their friction is not."""
    figures = tmp_path / "figures.json"
    study = ROOT / "configs" / "simple_pendulum.toml"
    assert call("identify", study, "--data", MEASURED, "--json", figures) == 0
    found = json.loads(figures.read_text())
    mass, friction = (found["parameters"][k] for k in ("arm/mass", "hinge/friction"))
    assert mass["interval"][0] < 0.6755 < mass["interval"][1]
    assert abs(mass["value"] - 0.6755) < 2 * mass["std_error_white"] < 0.2
    assert friction["interval"][1] < 1.3
    # There is no rotor inertia: its interval begins at zero, where it stands.
    armature = found["parameters"]["hinge/armature"]
    assert armature["at_bound"] and armature["interval"][0] == 0 < armature["interval"][1] < 0.03
    assert found["validation"][0]["torque_rmse"] < 0.45
    assert found["validation"][0]["position_rmse"] < 0.02


@needs_measurements
def test_the_measured_flights():
    """Every toss is cut above the ground, and falls by 9.81 m/s^2 in half edges of 5.24 cm."""
    study = read_study(ROOT / "configs" / "tossed_cube.toml")
    table, fall = study.data, []
    assert len(study.run) == 30 and study.system.robot([study.path.parent]).is_file()
    for run in study.run:
        path, q = MEASURED / run.file, table.columns["q"]
        whole = read_recording(path, names=table.names, rate=table.rate, q=q)
        flight = whole.between(-np.inf, run.last)
        assert 11 <= len(flight.t) <= 23 and flight.t[1] == 1 / table.rate
        assert len(flight.t) - len(flight.between(table.first, np.inf).t) == 4
        second = np.diff(whole.q[: len(flight.t) + 2, 6], 2) * table.rate**2
        off = [abs(second[k] - np.median(second[:k])) > 100 for k in range(3, len(second))]
        assert off[-1] and not any(off[:-1])
        turn = Rotation.from_quat(flight.q[-1, [1, 2, 3, 0]])
        corners = turn.apply(np.array(list(itertools.product((-1, 1), repeat=3))))
        assert flight.q[-1, 6] + corners[:, 2].min() > -0.05
        fall.append(2 * np.polyfit(flight.t, flight.q[:, 6], 2)[0])
    assert -np.mean(fall) * 0.0524 == pytest.approx(9.81, rel=0.03)


@pytest.mark.slow
def test_both_errors_and_the_weight_of_a_run(folder, tmp_path):
    """Perfect measurements suit the torques and the motions alike, whatever counts most."""
    text = TEXT.replace("to = 1.5", "to = 1.5\nweight = 3.0")
    (folder / "both.toml").write_text(text + '[fit]\nerror = "both"\nwindow = 0.2\n')
    assert call("identify", folder / "both.toml", "--json", tmp_path / "both.json") == 0
    found = json.loads((tmp_path / "both.json").read_text())
    assert found["parameters"]["arm/mass"]["value"] == pytest.approx(0.8, rel=1e-5)


@pytest.mark.slow
def test_a_weight_counts_as_so_many_runs():
    system = dl.load(URDF)
    t = 0.01 * np.arange(21)
    given = {"q": t[:, None], "v": t[:, None], "a": t[:, None], "tau": 0 * t[:, None]}
    heavy = Recording("heavy", t, **given, weight=4.0)
    plain = Recording("plain", t, **given)
    for problem in (InverseDynamics.of, Shooting.of):
        double, single = (problem(system, [r]) for r in (heavy, plain))
        np.testing.assert_allclose(
            double.residual(system, double.own), 2 * single.residual(system, single.own)
        )
    with pytest.raises(DataError, match="the weight is 0"):
        Recording("none", t, weight=0.0)


@pytest.mark.slow
def test_what_cannot_be_judged_is_said_before_the_fit(folder, tmp_path, capsys):
    """A gap in the torques spoils no fit of torques; a file without torques is judged by motion."""
    rows = (folder / "swing.csv").read_text().splitlines()
    rows[40] = ",".join([*rows[40].split(",")[:-1], ""])
    (folder / "gap.csv").write_text("\n".join(rows))
    out = tmp_path / "found.json"
    assert (
        call("identify", folder / "study.toml", "--validate", folder / "gap.csv", "--json", out)
        == 0
    )
    assert "gap.csv: tau has gaps; fill them, or cut there; its motion" in capsys.readouterr().err
    last = json.loads(out.read_text())["validation"][-1]
    assert last["torque_rmse"] < 1e-6 and last["position_rmse"] is None

    still = TEXT.replace('columns.tau = ["torque"]\n', "").replace(
        'columns.a = ["acceleration"]\n', ""
    )
    still += '[fit]\nerror = "motion"\nwindow = 0.2\nsteps = 1\n'
    path = tmp_path / "still.toml"
    path.write_text(still.replace("[data]", "[data]\nsmooth = 5"))
    assert call("identify", path, "--data", folder, "--json", out) in (0, 1)
    assert json.loads(out.read_text())["validation"][0]["torque_rmse"] is None
    path.write_text(still.replace("[data]", "[data]\nsmooth = 5\norder = 1"))
    assert call("identify", path, "--data", folder) == 2
    assert "accelerations need 2 or more" in " ".join(capsys.readouterr().err.split())
    path.write_text(still + "[validation]\nobserve = 99\n")
    assert call("identify", path, "--data", folder) == 2
    assert "validation.observe is 99" in " ".join(capsys.readouterr().err.split())
    given = ("--parameters", out, "--resume", out)
    assert call("identify", folder / "study.toml", *given) == 2
