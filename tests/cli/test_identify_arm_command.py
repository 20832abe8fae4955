"""`difflie identify` for arms: files without [[parameter]], whose numbers are all found."""

import json
from pathlib import Path

import numpy as np
import pytest
from pages import Page
from test_identify import call

import difflie as dl
from difflie import identify as di
from difflie.cli.identify import run_arm, run_study
from difflie.identify.files import read_study
from difflie.io.tables import ConfigError

ROOT = Path(__file__).parent.parent.parent
URDF = ROOT / "configs" / "double_pendulum.urdf"
TEXT = f"""
[system]
file = "{URDF}"
[[run]]
file = "run.csv"
to = 8.0
[[run]]
file = "run.csv"
from = 8.0
use = "validate"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A double pendulum with motors, 10 s at 200 Hz, with Coulomb friction and noise."""
    path = tmp_path_factory.mktemp("arm")
    system = dl.load(URDF)
    t = np.arange(0, 10, 0.005)
    q = np.sin(2 * np.pi * np.outer(t, (0.3, 0.5)) + (0.0, 0.4)) * (1.0, 0.7)
    v = np.gradient(q, 0.005, axis=0)
    a = np.gradient(v, 0.005, axis=0)
    silent = di.Recording("", t, q, v, a, np.zeros_like(q))
    needed = di.InverseDynamics.of(system, [silent]).torques(system)
    noise = 0.02 * np.random.default_rng(0).normal(size=q.shape)
    tau = np.asarray(needed).reshape(q.shape) + 0.3 * np.tanh(v / 0.05) + noise
    rows = np.column_stack((t, q, tau))
    np.savetxt(path / "run.csv", rows, delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
    (path / "arm.toml").write_text(TEXT)
    return path


@pytest.mark.slow
def test_a_robot_and_a_log_are_all_that_is_needed(folder, tmp_path, capsys):
    """The verdict, the joints' friction, the report, and a machine that can be loaded."""
    out, results = tmp_path / "out", tmp_path / "results.json"
    assert call("identify", folder / "arm.toml", "--out", out, "--json", results) == 0
    assert "All joints are predicted well" in capsys.readouterr().out
    found = json.loads(results.read_text())
    assert found["converged"] and found["name"] == "arm"
    rows = [row for row in found["joints"] if row["use"] == "validation"]
    assert len(rows) == 2 and all(row["r2"] > 0.99 for row in rows)
    friction = [p["value"] for name, p in found["parameters"].items() if name.endswith("/friction")]
    assert np.allclose(friction, 0.35, atol=0.03)  # 0.05 of the file
    assert (out / "identification.json").exists()
    page = Page(out / "report.html")
    assert page.sign == "✓Worked" and f"command difflie identify {folder}" in page.text
    assert "#run-0-" in " ".join(page.values("href"))
    again = dl.load(next(out.glob("*.urdf")))
    masses = [found["parameters"][f"{name}/mass"]["value"] for name in again.body_names[1:]]
    assert np.allclose(np.asarray(again.bodies.mass)[1:], masses, rtol=1e-6)


@pytest.mark.slow
def test_keys_of_arms(folder):
    path = folder / "keys.toml"
    path.write_text(
        TEXT + "[arm]\noffsets = false\nstribeck = false\n[nearness]\nweight = 10.0\n"
        'distance = "geometric"\n[[rate_coupling]]\njoints = ["shoulder", "elbow"]\n'
    )
    names = dl.load(URDF).topology.velocity_labels
    joints = ", ".join(f'"{joint}"' for joint, _ in names)
    path.write_text(path.read_text().replace('"shoulder", "elbow"', joints))
    results, _ = run_arm(read_study(path))
    assert results.nearness.weight == 10.0
    assert not any(name.endswith("/torque_bias") for name in results.parameters)
    assert any("+" in name for name in results.parameters)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[arm]\nstribek = true", "stribeck"),
        ("[nearness]\nweight = -1.0", "nearness.weight"),
        ("[nearness]\nblocks = 1", "nearness.blocks"),
        ("[fit]\nsteps = 10", r"fit must be left out without \[\[parameter\]\]"),
        ('[[parameter]]\npath = "*/mass"\n[arm]\noffsets = false', r"beside \[\[parameter\]\]"),
    ],
)
def test_unsuitable_keys_are_named(folder, more, said):
    path = folder / "wrong.toml"
    path.write_text(TEXT + more)
    with pytest.raises(ConfigError, match=said):
        read_study(path)


@pytest.mark.parametrize("logs", [(), ("run.csv",)])
def test_a_robot_in_place_of_a_configuration(logs, capsys):
    """Guards the lines to write, for who gives the robot's file and its log."""
    assert call("identify", URDF, *logs) == 2
    said = capsys.readouterr().err
    assert f'[system]\nfile = "{URDF}"\n[[run]]\nfile = "{(*logs, "log.csv")[0]}"' in said


def test_numbers_to_judge_need_parameters(folder, tmp_path, capsys):
    given = tmp_path / "given.json"
    given.write_text("{}")
    assert call("identify", folder / "arm.toml", "--parameters", given) != 0
    assert "declare some" in "".join(capsys.readouterr())


@pytest.mark.slow
def test_nearness_beside_parameters(folder):
    """A weight of 1e6 holds the bodies at the file's, whatever the torques say."""
    path = folder / "near.toml"
    more = '[[parameter]]\npath = "*/inertial"\n[nearness]\nweight = 1e6\n'
    columns = '[data]\nsmooth = 21\norder = 4\ncolumns.q = ["q1", "q2"]\n'
    path.write_text(TEXT + columns + 'columns.tau = ["tau1", "tau2"]\n' + more)
    results, _ = run_study(read_study(path))
    for name, p in results.parameters.items():
        if name.endswith("/mass"):
            assert np.isclose(p.value, p.start, rtol=1e-2)
