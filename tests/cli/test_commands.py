"""The command line, as a user calls it."""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pages import Page

import difflie as dl
from difflie import identify as di
from difflie.cli import COMMANDS, main, output
from difflie.cli.run import _own_states

ROOT = Path(__file__).parent.parent.parent
TORQUE = "passive left_hinge [N m]"
ARM = '[system]\nfile = "package:arm7"\n'
CONTACT = f"{ARM}[[contact]]\nstiffness = 1e4\n"
TO_HAND = 'path = [{point = [0, 0, 0.5]}, {body = "link7", point = [0, 0, 0]}]'


def call(*arguments: str) -> int:
    """The exit status of the command line."""
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.slow
def test_run_writes_trajectory_picture_and_figures(tmp_path, capsys):
    configuration = tmp_path / "short.toml"
    configuration.write_text(
        f'[system]\nfile = "{ROOT}/configs/satellite.urdf"\nbase = "free"\n'
        "gravity = [0.0, 0.0, 0.0]\n"
        "[initial]\nv = [0.05, 0.2, -0.1, 0.0, 0.0, 0.0, 0.3, 0.25]\n"
        "[initial.joints]\nleft_hinge = -1.2\n"
        "[simulation]\ndt = 0.02\nsteps = 100\nsave_every = 10\n"
        "[[rope]]\nstiffness = 0.5\nrest_length = 0.2\nsmoothing = 0.1\n"
        'path = [{body = "left_panel", point = [0.1, 0.2, 0]}, {body = "hub", point = [0, 0, 1]}]\n'
        "[[tension_damper]]\ndamping = 3.0\nrest_length = 50.0\n"
        'path = [{body = "left_panel", point = [0.1, 0.2, 0]}, {body = "hub", point = [0, 0, 1]}]\n'
    )
    out, figures = tmp_path / "out", tmp_path / "figures.json"
    assert call("run", configuration, "--out", out, "--json", figures) == 0
    data = np.load(out / "trajectory.npz")
    assert data["q"].shape == (11, 9)
    assert data["q"][0, 7] == -1.2
    assert list(data["joints"]) == ["root_joint", "left_hinge", "right_hinge"]
    assert data["effort"].shape == (11, 8) and not data["effort"].any()
    assert data["passive_labels"][6].tolist() == ["left_hinge", "N m"] and data["passive"].any()
    table = di.read_recording(
        out / "trajectory.csv", time="t [s]", v=["v left_hinge [rad/s]"], tau=[TORQUE]
    )
    np.testing.assert_array_equal(table.tau[:, 0], data["passive"][:, 6])
    np.testing.assert_array_equal(table.v[:, 0], data["v"][:, 6])
    assert (out / "motion.png").stat().st_size > 10_000
    page = Page(out / "report.html")
    assert page.sign == "✓Worked" and "Completed: 100 steps, 2 s." in page.text
    assert f"command difflie run {configuration} --out {out} --json {figures}" in page.text
    assert "[simulation] dt = 0.02" in page.text and "linear momentum [N s]" in page.text
    numbers = json.loads(figures.read_text())
    assert numbers["ok"]
    assert numbers["energy"]["largest_change"] < 1e-9
    np.testing.assert_allclose(numbers["momentum"]["end"], numbers["momentum"]["start"], atol=1e-9)
    assert "Completed: 100 steps, 2 s." in capsys.readouterr().out


FALL = """<robot name="fall"><link name="base"/><link name="stone"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="base"/><child link="stone"/><axis xyz="0 0 1"/>
<limit lower="-9" upper="9" effort="1" velocity="9"/><dynamics damping="DAMPING"/></joint>
</robot>"""


@pytest.mark.slow
@pytest.mark.parametrize(("damping", "ends"), [("0", 0), ("1e30", 1)])
def test_the_steps_that_were_made_are_counted(tmp_path, capsys, damping, ends):
    """Guards the count of a run that ends with its last saved state, and of one that fails."""
    (tmp_path / "fall.urdf").write_text(FALL.replace("DAMPING", damping))
    file, figures, out = tmp_path / "fall.toml", tmp_path / "figures.json", tmp_path / "out"
    file.write_text('[system]\nfile = "fall.urdf"\n[simulation]\nsteps = 95\nsave_every = 10\n')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert call("run", file, "--json", figures, "--out", out) == ends
    found = json.loads(figures.read_text())
    failed = re.search(r"\(step (\d+) of 90\)", found["messages"][0])
    made = int(failed[1]) - 1 if failed else 90
    assert found["steps"] == made and (made < 90) == bool(ends)
    said = " ".join(capsys.readouterr().out.split())
    assert "steps is 95 and save_every 10: the run ends with step 90, the last that is" in said
    assert f": {made} steps of" in Page(out / "report.html").text


LEGS = """<robot name="legs"><link name="base"/>
<link name="foot"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
  iyz="0"/></inertial></link>
<link name="heel"><inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
  iyz="0"/></inertial></link>
<joint name="front" type="prismatic"><parent link="base"/><child link="foot"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="100" velocity="100"/></joint>
<joint name="back" type="prismatic"><parent link="base"/><child link="heel"/><axis xyz="0 0 1"/>
  <limit lower="-0.2" upper="1" effort="100" velocity="100"/></joint>
</robot>"""


@pytest.mark.slow
def test_contacts_and_stops(tmp_path):
    """Two masses fall, one upon a plane, the other to the end of its slide, and come to rest."""
    (tmp_path / "legs.urdf").write_text(LEGS)
    configuration, figures = tmp_path / "contact.toml", tmp_path / "figures.json"
    configuration.write_text(
        '[system]\nfile = "legs.urdf"\n[simulation]\nsteps = 3000\nsave_every = 3000\n'
        "[[contact]]\nstiffness = 2e3\ndissipation = 2.0\nfriction = 0.5\nradius = 0.05\n"
        "normal = [0, 0, 2]\n"
        'path = [{point = [0, 0, -0.1]}, {body = "foot", point = [0, 0, 0]}]\n'
        "[[joint_stop]]\nstiffness = 1e3\ndissipation = 2.0\njoints = ['back']\n"
    )
    assert call("run", configuration, "--json", figures) == 0
    end = json.loads(figures.read_text())["final"]["q"]
    np.testing.assert_allclose(end, [-0.05 - 2 * 9.81 / 2e3, -0.2 - 3 * 9.81 / 1e3], atol=1e-6)


# Two links of 1 m, and a third of length l from the world to the end of the second.
LINKS = "".join(
    f'<link name="{n}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>'
    for n in "abc"
)
JOINTS = "".join(
    f'<joint name="{child}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
    f'<origin xyz="{x} 0 0"/><axis xyz="0 1 0"/></joint>'
    for parent, child, x in (("base", "a", 0), ("a", "b", 1), ("base", "c", 1))
)
FOUR_BAR = f'<robot name="r"><link name="base"/>{LINKS}{JOINTS}</robot>'
CLOSED = (
    '[system]\nfile = "r.urdf"\n[simulation]\nsteps = 20\nmethod = "RKMK2"\n'
    "[initial.joints]\na = -1.2\nb = 1.4\nc = -1.6\n"
    '[[constraint]]\ntype = "SphericalConstraint"\nfirst = {body = "b", position = [1, 0, 0]}\n'
    'second = {body = "c", position = [1.0, 0, 0]}\n'
)


@pytest.mark.slow
def test_run_assembles_a_closed_loop(tmp_path, capsys):
    configuration, out, figures = (tmp_path / n for n in ("a.toml", "out", "a.json"))
    (tmp_path / "r.urdf").write_text(FOUR_BAR)
    configuration.write_text(CLOSED)
    assert call("run", configuration, "--out", out, "--json", figures) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Assembly moved the initial coordinates by up to 0." in printed
    numbers = json.loads(figures.read_text())
    assert 0.1 < numbers["assembly"]["configuration"] < 0.5
    assert numbers["constraint_residual"] < 1e-10 and numbers["constraint_rate"] < 1e-10
    assert numbers["energy"]["largest_change"] < 1e-4
    q = np.load(out / "trajectory.npz")["q"]
    page = Page(out / "report.html")
    assert page.sign == "✓Worked" and "Assembly moved the initial coordinates" in page.text
    assert "#constraints" in page.values("href") and (out / "constraints.png").exists()
    # A parallelogram.
    np.testing.assert_allclose(q[:, 0], q[:, 2], atol=1e-10)
    np.testing.assert_allclose(q[:, 0] + q[:, 1], 0, atol=1e-10)


@pytest.mark.slow
def test_a_run_that_fails_says_so_on_its_page(tmp_path):
    """Guards the sign, the reason and limits on the page of a run that ends early."""
    configuration, out = tmp_path / "fast.toml", tmp_path / "out"
    configuration.write_text(
        '[system]\nfile = "package:arm7"\n[simulation]\ndt = 0.5\nsteps = 20\n'
        "[initial.joints]\njoint2 = 1.0\n"
    )
    assert call("run", configuration, "--out", out) == 1
    page = Page(out / "report.html")
    assert page.sign == "✗Did not work" and "Failed: the state is not finite" in page.text
    assert "least distance to a position limit" in page.text


def test_what_a_method_moves_beyond_q_and_v_is_written():
    own = dl.NaturalMotion(*(jnp.zeros((2, n)) for n in (7, 12, 12, 6)))
    written = _own_states(SimpleNamespace(states=own))
    assert list(written) == ["states_q", "states_bodies", "states_velocities", "states_rotors"]
    assert written["states_rotors"] is own.rotors
    assert not _own_states(SimpleNamespace(states=None))
    none, contacts = jnp.zeros((2, 0)), jnp.zeros((2, 1, 3))
    impulses = dl.formulations.ContactMotion(none, contacts, jnp.zeros(2), jnp.zeros(2))
    found = _own_states(SimpleNamespace(states=impulses))
    assert list(found) == ["states_bilateral", "states_contacts", "states_rounds", "states_impacts"]


@pytest.mark.slow
@pytest.mark.thorough("stewart")
@pytest.mark.parametrize("name", ["fourbar_leg", "stewart"])
def test_the_machines_with_loops_run_as_shipped(tmp_path, name):
    figures = tmp_path / "figures.json"
    assert call("run", ROOT / f"configs/{name}.toml", "--json", figures) == 0
    numbers = json.loads(figures.read_text())
    assert numbers["ok"] and numbers["within_limits"]
    assert numbers["constraint_residual"] < 1e-10 and numbers["constraint_rate"] < 1e-10
    assert numbers["assembly"]["configuration"] > 0.05


@pytest.mark.slow(
    "text15-a.toml: initial: r: from this guess no configuration keeps all constraints"
)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[system]\nfile = "package:arm"', "no machine 'arm' comes with difflie"),
        ('[system]\nfile = "package:arm7"\n[initial]\nq = [1.0]', "initial.q has 1 numbers; 7"),
        ('[system]\nfile = "package:arm7"\n[initial.joints]\njoint8 = 1.0', "did you mean"),
        (f"{ARM}[initial.joints]\njoint7 = nan", "initial.joints.joint7 is nan; it must be finite"),
        (
            '[system]\nfile = "package:arm7"\nbase = "free"\n'
            "[initial]\nq = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
            "initial.q: arm7: the quaternion q[0:4] of joint 'root_joint' has length 2",
        ),
        ('[system]\nfile = "package:arm7"\n[simulation]\nmethod = "RK4"', "did you mean RKMK4"),
        ('[system]\nfile = "package:arm7"\n[control]\neffort = [1.0]', "control.effort has 1"),
        ('[system]\nfile = "broken.urdf"', "broken.urdf"),
        (
            '[system]\nfile = "package:arm7"\n[[damper]]\ndamping = 1.0\n'
            'path = [{point = [0, 0, 1]}, {body = "link9", point = [0, 0, 0]}]',
            r"damper[0]: arm7: coupling 0, Damper (the world - 'link9'): no body is named 'link9'",
        ),
        (
            f"{CONTACT}radii = [0.1, 0.1]\n{TO_HAND.replace('link7', 'link9')}",
            "contact[0]: arm7: coupling 0, SphereContact (the world - 'link9'): no body is named",
        ),
        (
            f"{CONTACT}normal = [0, 0]\n{TO_HAND}",
            "contact[0].normal is [0, 0]; it must be a list of three numbers",
        ),
        (
            f"{CONTACT}radii = [0.1, -1]\n{TO_HAND}",
            "radii is [0.1, -1.0] m; it must not be",
        ),
        (
            f"{CONTACT}normal = [0, 0, 0]\n{TO_HAND}",
            "contact[0].normal is zero; give it a direction",
        ),
        (
            f"{ARM}[[joint_stop]]\nstiffness = 9.0\njoints = ['join1']",
            "joint_stop[0]: arm7: coupling 0, JointStop ('join1'): no joint is named 'join1'; did",
        ),
        (
            CLOSED.replace('"b", p', '"d", p'),
            "constraint[0]: r: constraint 0, SphericalConstraint ('d' - 'c'): no body is named 'd'",
        ),
        (
            CLOSED.replace("[1.0, 0, 0]", "[9.0, 0, 0]"),
            "a.toml: initial: r: from this guess no configuration keeps all constraints",
        ),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, capsys, text, words):
    (tmp_path / "r.urdf").write_text(FOUR_BAR)
    (tmp_path / "broken.urdf").write_text("<robot name='r'><link/></robot>")
    configuration = tmp_path / "a.toml"
    configuration.write_text(text)
    assert call("run", configuration) == 2
    printed = capsys.readouterr().err.replace("\n", " ")
    assert words in " ".join(printed.split())
    assert "Traceback" not in printed


def test_steps_done_are_told_where_there_is_no_terminal(capsys, monkeypatch):
    """One line every few seconds, also where a log file is all there is to see."""
    told = output.step_counter("a.toml", print)
    told(5, 10)
    assert not capsys.readouterr().out
    monkeypatch.setattr(output, "_SECONDS", 0.0)
    told(6, 10)
    assert capsys.readouterr().out == "a.toml: step 6 of 10\n"


def test_unknown_result_and_command(capsys):
    assert call("reproduce", "park-chun") == 2
    assert "did you mean 'park-chung'" in " ".join(capsys.readouterr().err.split())
    assert call("simulate") == 2


def test_help_names_every_command():
    done = subprocess.run(
        [sys.executable, "-m", "difflie.cli", "--help"], capture_output=True, text=True, check=True
    )
    for command in COMMANDS:
        assert command in done.stdout
    assert "Run the simulation a TOML file describes." in done.stdout


def test_help_imports_neither_jax_nor_numpy():
    """It is there at once: the file of a command is imported when the command is called."""
    code = (
        "import sys; from difflie.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print({'jax', 'numpy', 'matplotlib', 'difflie.io'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


WITHOUT_RESULTS = "view", "examples", "docs"


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in WITHOUT_RESULTS])
def test_commands_explain_their_options(command, capsys):
    assert call(command, "--help") == 0
    shown = capsys.readouterr().out
    assert "--out" in shown and "--json" in shown and "a file for the" in shown


def test_docs_print_pages_and_find_words(capsys):
    """Guards reading the pages without a network."""
    assert call("docs") == 0 and "explain/gradients" in capsys.readouterr().out
    assert call("docs", "faq") == 0
    assert capsys.readouterr().out.startswith("# Questions that are asked often")
    assert call("docs", "RecursiveCheckpoint") == 0
    shown = capsys.readouterr().out
    assert "howto/long_gradients: " in shown
    assert "reference/names: difflie.simulate.RecursiveCheckpoint: " in shown
    assert call("docs", "reference/names") == 0
    shown = capsys.readouterr().out
    assert "difflie.control.solve: " in shown and "difflie.groups.so3.exp: " in shown
    assert call("docs", "acceleration frame velocity") == 0
    assert "howto/index: | get the velocity" in capsys.readouterr().out
    assert call("docs", "gradients/explain") == 2
    assert "lists the pages" in capsys.readouterr().err


@pytest.mark.slow
def test_matrix_solves_of_batches_end_on_few_cores():
    """Guards: the command line sets what keeps them from waiting for each other for ever."""
    program = """
import os, jax, jax.numpy as jnp
from difflie import cli
os.environ.pop("PJRT_NPROC", None)
try:
    cli.main(["--help"])
except SystemExit:
    pass
@jax.jit
def f(A, x):
    solve = lambda k: jax.lax.linalg.triangular_solve(A * k, jnp.sin(k * x), left_side=True)
    return sum(jnp.sum(solve(k)) for k in range(1, 9))
for k in range(20):
    f(jnp.eye(60) * jnp.ones((64, 1, 1)), jnp.full((64, 60, 60), 1.0 * k)).block_until_ready()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=900, capture_output=True)


@pytest.mark.slow
def test_small_matrices_have_one_thread_on_few_cores():
    """Guards that this is set while NumPy, which reads it, is not there yet."""
    program = """
import os, sys
os.environ.pop("OPENBLAS_NUM_THREADS", None)
os.sched_getaffinity = lambda process: {0, 1}
from difflie import cli
assert "numpy" not in sys.modules
cli.main(["examples"])
assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.slow
def test_demo(tmp_path, capsys):
    """Its numbers, shown as they come, and that few programs are compiled for them."""
    figures, compiled = tmp_path / "figures.json", []

    def note(event, seconds, **about):
        if event.endswith("backend_compile_duration"):
            compiled.append(about)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        assert call("demo", "--out", tmp_path / "demo", "--json", figures) == 0
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert len(compiled) <= 20
    said = capsys.readouterr().out
    assert said.index("SemiImplicitEuler, 10 s") < said.index("payload: ") < said.index("1. Motion")
    for name in ("flight.png", "drift.png", "payload.png", "summary.md"):
        assert (tmp_path / "demo" / name).is_file()
    numbers = json.loads(figures.read_text())
    drift = numbers["drift"]
    assert drift["RKMK4"]["energy"] < 1e-7 < drift["RKMK2"]["energy"]
    assert drift["RKMK2"]["energy"] < 1e-3 < drift["SemiImplicitEuler"]["energy"]
    assert numbers["gradient"]["relative_difference"] < 1e-7
    assert numbers["payload"]["relative_error"] < 0.02
