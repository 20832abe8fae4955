"""Couplings by name: in paths of numbers, sweeps, files and what is shown, and names that clash."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie import quantities as dq
from difflie.io.config import read_config
from difflie.io.loading import load_system
from difflie.view.scenes import scene

ARM = dl.chain(
    [
        dl.Body(name=n, joint=dl.Revolute(name=j, axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5))
        for n, j in (("upper", "shoulder"), ("fore", "elbow"))
    ],
    name="arm",
)
PATH = [("upper", (0.1, 0.0, -0.2)), (None, (0.4, 0.0, 0.3))]
SPRUNG = dl.attach(
    ARM,
    dl.Damper(PATH, 0.5),
    dl.Spring(PATH, 40.0, 0.3, name="balancer"),
    dl.Stribeck("elbow", 0.2, 0.1, name="seal"),
)


class Brake(dl.JointForce):
    joint: str = eqx.field(static=True)
    gain: jnp.ndarray = eqx.field(converter=dl.number(unit="N m s/rad or N s/m"))

    def effort(self, x, v):
        return -self.gain * v


def test_a_coupling_is_found_by_its_name():
    """From Python, and an unknown name gives the nearest one."""
    assert SPRUNG.coupling("balancer") is SPRUNG.couplings[1]
    assert float(SPRUNG.coupling("balancer").stiffness) == 40.0
    with pytest.raises(ValueError, match="arm: no coupling is named 'balance'; did you mean 'bal"):
        SPRUNG.coupling("balance")
    with pytest.raises(ValueError, match="no coupling is named 'x'; named are none"):
        ARM.coupling("x")


def test_numbers_have_paths_with_the_name_and_without():
    """Both select the same number, which is named after the coupling; so do patterns."""
    for path in ("balancer/stiffness", "couplings/1/stiffness", "bal*/stiffness", "*/1/stiffness"):
        parameters = dl.Parameters(SPRUNG, [path])
        assert parameters.names == ("balancer/stiffness",), path
        assert parameters.units == ("N/m",)
        assert float(parameters.with_values([50.0]).coupling("balancer").stiffness) == 50.0
    assert dl.Parameters(SPRUNG, ["balancer/path/points"]).names[0] == "balancer/path/points[0, 0]"
    for path in ("seal/breakaway", "elbow/breakaway"):
        parameters = dl.Parameters(SPRUNG, [path])
        assert (parameters.names, parameters.units) == (("seal/breakaway",), ("N m",)), path
    braked = dl.attach(SPRUNG, Brake("shoulder", 0.1, name="brake"))
    assert dl.Parameters(braked, ["brake/gain"]).units == ("N m s/rad",)
    unnamed = dl.Parameters(SPRUNG, ["couplings/0/damping"])
    assert unnamed.names == ("couplings/0/damping",)


def test_wrong_paths_name_the_nearest():
    """Of the named and of the counted ones."""
    with pytest.raises(ValueError, match="the nearest is 'balancer/stiffness'"):
        dl.Parameters(SPRUNG, ["balancer/stifness"])
    with pytest.raises(ValueError, match="the nearest is 'couplings/1/stiffness'"):
        dl.Parameters(SPRUNG, ["couplings/1/stifness"])
    with pytest.raises(ValueError, match=r"select all of 'balancer/stiffness'"):
        dl.Parameters(SPRUNG, ["balancer/stiffness", "couplings/1/stiffness"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("elbow", "its name is that of a joint already; give it another"),
        ("fore", "its name is that of a body already; give it another"),
        ("balancer", "its name is that of a coupling already; give it another"),
        ("drive", "its name is that of an actuator already; give it another"),
        ("imu", "its name is that of a sensor already; give it another"),
        ("gravity", "its name is that of something else already; give it another"),
        ("a/b", r"its name is 'a/b'; give it one without / \* \? \[ \]"),
        ("", "its name is ''; give it one without"),
    ],
)
def test_names_that_clash_are_refused(name, words):
    """A path has one meaning."""
    system = dl.attach(SPRUNG, dl.PositionServo("shoulder", kp=1.0, name="drive"))
    system = di.with_sensors(system, di.Sensor("imu", dq.Origin("fore")))
    with pytest.raises(dl.ModelError, match=rf"arm: coupling 3, Damper .*: {words}"):
        dl.attach(system, dl.Damper(PATH, 1.0, name=name))


def test_later_actuators_and_sensors_keep_away():
    """From the names of couplings, as couplings do from theirs."""
    with pytest.raises(dl.ModelError, match="its name is that of a coupling already"):
        dl.attach(SPRUNG, dl.PositionServo("shoulder", kp=1.0, name="balancer"))
    with pytest.raises(dl.ModelError, match="its name is that of a coupling already"):
        di.with_sensors(SPRUNG, di.Sensor("balancer", dq.Origin("fore")))


@pytest.mark.slow
def test_names_are_shown():
    """In the text of a system, in errors, and beside what is drawn."""
    assert "Spring 'balancer' ('upper' - the world)" in str(SPRUNG)
    assert "Stribeck 'seal' ('elbow')" in str(SPRUNG)
    motion = dl.simulate(SPRUNG, [0.1, 0.2], [0.0, 0.0], dt=1e-2, steps=2)
    drawn = scene(SPRUNG, motion)
    assert [strand.name for strand in drawn.springs] == ["Damper 1", "balancer"]


def test_names_do_not_change_the_motion():
    """Nor what is compiled for it but its key: the numbers are the same to the last bit."""
    parts = dl.Damper(PATH, 0.5), dl.Spring(PATH, 40.0, 0.3), dl.Stribeck("elbow", 0.2, 0.1)
    bare = dl.attach(ARM, *parts)
    runs = [dl.simulate(s, [0.1, 0.2], [0.0, 0.0], dt=1e-2, steps=20) for s in (SPRUNG, bare)]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)


def test_sweeps_take_names():
    """By either path, with its unit."""
    motions = dl.Motions(SPRUNG, {"end": dq.Final(dq.Velocities())}, dt=1e-2, steps=5)
    tables = [
        dl.sweep(motions, dl.Grid({path: [30.0, 50.0]}))
        for path in ("balancer/stiffness", "couplings/1/stiffness")
    ]
    assert tables[0]["balancer/stiffness"].attrs["units"] == "N/m"
    np.testing.assert_array_equal(tables[0]["end elbow"], tables[1]["end elbow"])
    with pytest.raises(ValueError, match="nearest is 'balancer/stiffness'"):
        dl.sweep(motions, dl.Grid({"balancr/stiffness": [30.0]}))


FILE = """
[system]
file = "package:arm7"
[[spring]]
path = [{body = "link3", point = [0.0, 0.0, 0.1]}, {point = [0.0, 0.0, 1.0]}]
stiffness = 200.0
rest_length = 0.3
name = "balancer"
[[coupling]]
type = "Damper"
path = [{body = "link3", point = [0.0, 0.0, 0.1]}, {point = [0.0, 0.0, 1.0]}]
damping = 2.0
name = "NAME"
"""


def test_names_in_files(tmp_path):
    """Are keys of every table of a force; clashes name the file and the table."""
    file = tmp_path / "a.toml"
    file.write_text(FILE.replace("NAME", "shock"))
    system = load_system(read_config(file))
    assert dl.Parameters(system, ["shock/damping", "balancer/stiffness"]).names == (
        "shock/damping",
        "balancer/stiffness",
    )
    for name in ("balancer", "link3", "joint1"):
        file.write_text(FILE.replace("NAME", name))
        with pytest.raises(ValueError, match=r"a.toml: coupling\[0\]: .*its name is that of a"):
            load_system(read_config(file))
