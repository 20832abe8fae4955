"""Keyframes of MJCF are named states, also in configurations."""

import mujoco
import numpy as np
import pytest

import difflie as dl
from difflie.io.config import ConfigError, read_config
from difflie.io.loading import control_of, start_of

XML = """
<mujoco model="m"><worldbody>
  <body name="a"><freejoint name="f"/><geom size=".1" mass="1" contype="0" conaffinity="0"/>
    <body name="b" pos=".3 0 0"><joint name="h" axis="0 1 0" ref="30"/>
      <geom size=".1" mass="1" contype="0" conaffinity="0"/>
      <body name="c" pos=".3 0 0"><joint name="s" type="ball"/>
        <geom size=".1" mass="1" contype="0" conaffinity="0"/>
</body></body></body></worldbody>
<actuator><motor name="drive" joint="h"/></actuator>
<keyframe>
  <key name="home" qpos="1 2 3 .6 0 .8 0 .7 1 0 0 0" qvel="1 2 3 4 5 6 7 8 9 10" ctrl="2.5"/>
  <key qpos="0 0 0 1 0 0 0 .5235987755982988 0 0 0 1" time="2"/>
</keyframe></mujoco>
"""


@pytest.fixture
def machine(tmp_path):
    """The path, the system, and MuJoCo's model of a machine with all types of joints."""
    path = tmp_path / "m.xml"
    path.write_text(XML)
    with pytest.warns(UserWarning, match=r"times of keyframes \(number 1\)"):
        system = dl.load(path)
    return path, system, mujoco.MjModel.from_xml_path(str(path))


def test_keyframes_are_those_of_mujoco(machine):
    """Guards the coordinates, ref included, and the velocities of a free joint in its own axes."""
    _, system, model = machine
    ordering = dl.MujocoOrdering(system, model)
    for k, name in enumerate(("home", "key1")):
        q, v, _ = system.state(name)
        np.testing.assert_allclose(ordering.q(q), model.key_qpos[k], atol=1e-12)
        np.testing.assert_allclose(ordering.v(q, v), model.key_qvel[k], atol=1e-12)
    assert "states: home, key1" in repr(system)
    with pytest.raises(ValueError, match="m: no state is named 'hom'; did you mean 'home'"):
        system.state("hom")
    with pytest.raises(ValueError, match="no state is named 'x'; there are none"):
        dl.load(dl.examples.path("arm7")).state("x")


def test_commands_follow_the_actuators():
    """Guards that a command is found by the names of actuators, and None without them."""
    bare = dl.tree([dl.Body(name="b", joint=dl.Revolute(), mass=1.0, com=(1, 0, 0))])
    assert bare.with_state("up", [1.0]).state("up").command is None
    made = bare.with_state("up", [1.0], commands={"one": 3.0})
    two = [dl.Motor("b", max_torque=5.0, name=name) for name in ("two", "one")]
    assert dl.attach(made, *two).state("up").command.tolist() == [0.0, 3.0]
    assert dl.attach(made, two[0]).state("up").command is None
    with pytest.raises(ValueError, match=r"q of the state 'up' has shape \(2,\); give 1 finite"):
        bare.with_state("up", [1.0, 2.0])


@pytest.mark.slow
def test_another_base_and_held_joints(machine):
    """Guards the states of a machine with fewer joints: what is left is where it was."""
    path, system, _ = machine
    with pytest.warns(UserWarning, match="not used"):
        fixed = dl.load(path, base="fixed")
    q, v, _ = system.state("home")
    np.testing.assert_allclose(fixed.state("home").q, q[7:], atol=1e-12)
    np.testing.assert_allclose(fixed.state("home").v, v[6:], atol=1e-12)
    locked = dl.lock(system, {"h": 0.1})
    np.testing.assert_allclose(locked.state("home").q, np.delete(q, 7), atol=1e-12)
    np.testing.assert_allclose(locked.state("home").v, np.delete(v, 6), atol=1e-12)
    still = dl.absolute(fixed)
    poses = dl.body_poses(fixed, fixed.state("home").q)
    np.testing.assert_allclose(dl.body_poses(still, still.state("home").q), poses, atol=1e-12)


def test_configurations_begin_in_a_state(machine, tmp_path):
    """Guards [initial] state, single joints on top of it, its command, and unknown names."""
    path, system, _ = machine
    file = tmp_path / "run.toml"
    motor = '[[motor]]\njoint = "h"\nname = "drive"\nmax_torque = 9.0\n'
    text = f'[system]\nfile = "{path}"\n{motor}[initial]\nstate = "home"\njoints = {{h = 0.5}}\n'
    file.write_text(text)
    config = read_config(file)
    with pytest.warns(UserWarning, match="not used"):
        start = start_of(config, "simulation.method", "RKMK4")
    expected = np.asarray(system.state("home").q).copy()
    expected[7] = 0.5
    np.testing.assert_allclose(start.q, expected, atol=1e-12)
    np.testing.assert_allclose(start.v, system.state("home").v, atol=1e-12)
    held = control_of(config.control, start.system, file, config.initial)
    assert held.command.tolist() == [2.5]
    file.write_text(text.replace("home", "hme"))
    with (
        pytest.warns(UserWarning, match="not used"),
        pytest.raises(
            ConfigError, match=r"run.toml: initial.state: m: no state is named 'hme'; .*'home'"
        ),
    ):
        start_of(read_config(file), "simulation.method", "RKMK4")


def test_mocap_bodies_of_keyframes_are_named(tmp_path):
    """Guards that a keyframe in which one is elsewhere is in the warning, and no other."""
    body = '<body name="m" mocap="true" pos="1 2 3"/><body name="n" mocap="true"/>'
    keys = '<key name="same"/><key name="moved" mpos="1 2 3 0 0 1"/>'
    text = XML.replace("<worldbody>", f"<worldbody>{body}").replace(' time="2"', "")
    (tmp_path / "m.xml").write_text(text.replace("</keyframe>", f"{keys}</keyframe>"))
    with pytest.warns(UserWarning, match=r"poses of mocap bodies of keyframes \('moved'\)"):
        dl.load(tmp_path / "m.xml")
