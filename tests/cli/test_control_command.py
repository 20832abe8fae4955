"""`difflie control`, as a user calls it."""

import json
from pathlib import Path

import numpy as np
import pytest
from pages import Page

from difflie import control as dc
from difflie.cli import main
from difflie.control import tables
from difflie.io.tables import keys_of

BLOCK = """<robot name="block"><link name="rail"/>
<link name="block"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="rail"/><child link="block"/><axis xyz="1 0 0"/>
  <limit lower="-0.5" upper="2" effort="20" velocity="10"/></joint>
</robot>"""
PROBLEM = """
[system]
file = "block.urdf"
[horizon]
dt = 0.02
steps = 50
[limits]
robot = false
[[input]]
type = "Motors"
joints = ["sl*"]
[[cost]]
type = "Effort"
[[cost]]
type = "State"
at = "final"
joints.slide = 1.0
weight = 1e6
"""


def call(*arguments: object) -> int:
    """The exit status of the command line."""
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def written(folder: Path, text: str) -> Path:
    (folder / "block.urdf").write_text(BLOCK)
    (folder / "push.toml").write_text(text)
    return folder / "push.toml"


@pytest.mark.slow
def test_a_block_is_pushed(tmp_path, capsys):
    """Guards the whole way: file, problem, plan, tables, report; u = 6 - 12 t costs 6 m^2/s^3."""
    file, out, figures = written(tmp_path, PROBLEM), tmp_path / "out", tmp_path / "a.json"
    assert call("control", file, "--out", out, "--json", figures) == 0
    assert "FDDP: converged after" in capsys.readouterr().out
    results = json.loads(figures.read_text())
    assert (results["problem"], results["solver"], results["status"]) == (
        *("push", "FDDP"),
        "CONVERGED",
    )
    np.testing.assert_allclose(results["cost"], 6, rtol=2e-3)
    assert results["kkt"]["stationarity"] < 1e-6
    assert results["time"]["cold"] > results["time"]["warm"] > 0
    plan = np.load(out / "plan.npz")
    np.testing.assert_allclose(plan["u"][:, 0], 6 - 12 * (plan["t"][:-1] + 0.01), atol=0.02)
    assert plan["gains"].shape == (50, 1, 2) and plan["q_labels"].tolist() == [["slide", "m"]]
    table = np.genfromtxt(out / "plan.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(table[table.dtype.names[1]], plan["q"][:, 0])
    gains = np.genfromtxt(out / "gains.csv", delimiter=",", skip_header=1)
    np.testing.assert_array_equal(gains[:, 1:], plan["gains"][:, 0])
    page = Page(out / "report.html")
    assert page.sign == "✓Worked" and "FDDP: converged after" in page.text
    assert page.values("alt") == ["Plan", "Machine"] and f"configuration {file}" in page.text
    assert (out / "plan.png").stat().st_size > 10_000


@pytest.mark.slow
def test_a_plan_reports_itself(tmp_path):
    """Guards `plan.report`: the page of the command, without times that were not measured."""
    problem, guess = dc.problem_of(dc.read_control(written(tmp_path, PROBLEM)))
    plan = dc.solve(problem, guess=guess)
    page = Page(plan.report(problem, tmp_path / "page", about={"made by": "hand"}))
    assert page.sign == "✓Worked" and "Converged after" in page.text and "made by hand" in page.text
    assert "What is left of the conditions of an optimum" in page.text
    assert page.values("alt") == ["Plan", "Machine"] and "cold" not in page.text


@pytest.mark.slow
def test_a_search_that_fails_ends_with_its_reason_and_status_1(tmp_path, capsys):
    text = PROBLEM + '[solver]\ntype = "FDDP"\niterations = 1\ntolerance = 1e-30\n'
    assert call("control", written(tmp_path, text), "--out", tmp_path / "out") == 1
    assert Page(tmp_path / "out" / "report.html").sign == "✗Did not work"
    printed = " ".join(capsys.readouterr().out.split())
    assert "FDDP: out of iterations after 1: the derivative by the controls is" in printed


@pytest.mark.slow
def test_a_guess_and_bounds_of_a_file(tmp_path):
    """A line to a state, a point to reach, spheres, a function beside the file."""
    (tmp_path / "walls.py").write_text("def speed(system, q, v, u, t):\n    return v\n")
    figures = tmp_path / "a.json"
    text = PROBLEM.replace("weight = 1e6", "weight = 1.0").replace("robot = false", "") + (
        "[guess]\njoints.slide = 1.0\n"
        '[[bound]]\ntype = "Reach"\nframe = {body = "block"}\npoint = [1, 0, 0]\n'
        '[[bound]]\ntype = "Function"\nfunction = "walls:speed"\nupper = 1.3\n'
        '[[bound]]\ntype = "MinDistance"\nfirst = {body = "block"}\n'
        "second = {position = [0, 1, 0]}\n"
        "least = 0.5\n"
    )
    assert call("control", written(tmp_path, text), "--json", figures, "--allow-code") == 0
    results = json.loads(figures.read_text())
    assert results["kkt"]["violation"] < 1e-6 and results["cost"] > 1


@pytest.mark.parametrize(
    ("written_as", "words"),
    [
        ("way(system):\n    return 0, 0", "cannot be called with (system, t): too many"),
        ("way(system, t):\n    return t", "returns arrays of the shapes [()]; let it"),
        (
            "way(system, t):\n    return t, t, t",
            "returns arrays of the shapes [(), (), ()]",
        ),
    ],
)
def test_a_guess_of_another_signature(tmp_path, capsys, written_as, words):
    """One sentence that names the file, the function and the fix, and no traceback."""
    name = tmp_path.name
    (tmp_path / f"{name}.py").write_text(f"def {written_as}\n")
    text = PROBLEM + f'[guess]\nfunction = "{name}:way"\n'
    assert call("control", written(tmp_path, text), "--allow-code") == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert f"guess.function: {name}:way {words}" in printed
    assert "Traceback" not in printed


STATE = "q v joints rates state "
KEYS = {
    "Pose": "frame goal weight at",
    "Point": "frame goal weight at",
    "State": f"{STATE} weight at",
    "Configuration": f"{STATE} weight at",
    "Velocity": "goal weight at",
    "Effort": "goal weight at",
    "CenterOfMass": "goal weight at",
    "Energy": "goal weight at",
    "Duration": "weight at",
    "Reach": "frame goal point at",
    "ReachState": f"{STATE} at",
    "MinDistance": "first second least at",
    "Motors": "joints",
    "Thrusters": "axes lower upper actuators",
}


def test_the_keys_of_tables():
    """Guards the keys of files, which follow from the arguments of classes."""
    every = tables.COSTS | tables.BOUNDS | tables.INPUTS
    del every["Function"]
    found = {name: set(keys_of(cls)) for name, cls in every.items()}
    assert found == {name: set(keys.split()) for name, keys in KEYS.items()}
    assert set(keys_of(tables.COSTS["Function"])) == {"function", "weight", "at"}
    assert set(keys_of(tables.BOUNDS["Function"])) == {"function", "lower", "upper", "at"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            PROBLEM.replace("steps", "stebs").replace('"Motors"', '"Motor"'),
            [
                "[horizon] has no key 'stebs'; did you mean 'steps'?",
                "input[0]: there is no type 'Motor' of input; did you mean 'Motors'?",
            ],
        ),
        (PROBLEM.replace("dt = 0.02", "dt = 0"), ["horizon.dt is 0 s; it must be positive"]),
        (PROBLEM.replace("weight = 1e6", "weight = -1"), ["cost[1].weight is -1; it must not"]),
        (PROBLEM.replace("[[cost]]", "[[costs]]"), ["there is no table [costs]; did you mean"]),
        (PROBLEM.replace('at = "final"', 'at = "end"'), ["it must be one of 'running', 'final'"]),
        (PROBLEM.replace('"sl*"', '"hip"'), ["input: block: no joint that moves by itself fits"]),
        (PROBLEM.replace("joints.slide", "joints.slid"), ["cost[1].joints: block has no joint"]),
        (
            PROBLEM + '[solver]\ntype = "DDP"\n',
            ["there is no type 'DDP' of solver; known are FDDP"],
        ),
        (PROBLEM + "[guess]\nu = [1, 2]\n", ["guess.u has 2 numbers; 1 are needed"]),
        (
            PROBLEM + '[[bound]]\ntype = "Reach"\nframe = {body = "block"}\n',
            ["bound[0]: give either goal, a pose"],
        ),
        (
            PROBLEM + '[[cost]]\ntype = "Pose"\nframe = {body = "block"}\ngoal = {body = "rail"}\n',
            ["cost[2]: the goal is a frame on 'rail'; leave out its body, it is in the world"],
        ),
        (
            PROBLEM + '[[cost]]\ntype = "Velocity"\ngoal = [1.0, 2.0]\nweight = [[1.0]]\n',
            ["cost[2].weight is [[1.0]]; it must be a number or a list of numbers"],
        ),
        (
            PROBLEM + '[[cost]]\ntype = "Velocity"\ngoal = [1.0, 2.0]\n',
            ["cost[2].goal has 2 numbers; 1 are needed"],
        ),
        (
            PROBLEM + '[[cost]]\ntype = "Function"\nfunction = "wals:speed"\n',
            ["cost[2].function: there is no module 'wals'; put wals.py into the folder"],
        ),
    ],
)
def test_mistakes_are_told_together(tmp_path, capsys, text, words):
    assert call("control", written(tmp_path, text), "--allow-code") == 2
    printed = " ".join(capsys.readouterr().err.split())
    for sentence in words:
        assert sentence in printed
    assert "Traceback" not in printed
