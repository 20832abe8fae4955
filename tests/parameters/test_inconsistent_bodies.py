"""Files as they are: frames without mass are skipped, inertias that no body has are mended."""

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.parameters import (
    InertiaRatios,
    Parameter,
    Parameters,
    Scaled,
    SecondMoments,
    nearest_consistent,
)
from difflie.parameters.pseudo_inertia import inconsistency

MEASURED = Path(__file__).parents[3] / "shared" / "data"
FLAT = np.diag([0.01, 0.01, 0.1])
ARM = """<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0 0.1 0.2"/><mass value="2"/>
  <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>
<link name="flat"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
  <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.1"/></inertial></link>
<link name="point"><inertial><origin xyz="0 0 0.05"/><mass value="0.2"/>
  <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
<link name="tool0"/>
<link name="ee_link"><inertial><mass value="0"/>
  <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
"""
JOINT = """<joint name="{0}" type="{3}"><parent link="{1}"/><child link="{2}"/><axis xyz="{4}"/>
<origin xyz="0 0 0.3"/><limit lower="-3" upper="3" effort="10" velocity="5"/></joint>
"""


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    joints = [
        ("j1", "base", "upper", "revolute", "0 0 1"),
        ("j2", "upper", "flat", "revolute", "0 1 0"),
        ("j3", "flat", "point", "revolute", "1 0 0"),
        ("j4", "point", "tool0", "fixed", "1 0 0"),
        ("j5", "tool0", "ee_link", "fixed", "1 0 0"),
    ]
    path = tmp_path_factory.mktemp("arm") / "arm.urdf"
    path.write_text(ARM + "".join(JOINT.format(*joint) for joint in joints) + "</robot>")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dl.load(path)


def owners(parameters):
    return list(dict.fromkeys(name.split("/")[0] for name in parameters.names))


@pytest.mark.parametrize("leaf", ["inertial", "mass", "com", "com_z"])
def test_patterns_skip_frames_without_mass(arm, leaf):
    assert owners(Parameters(arm, [f"*/{leaf}"])) == ["upper", "flat", "point"]


def test_frames_without_mass_are_selected_by_their_own_path(arm):
    """And are fixed, or given a start, as any other body is."""
    ball = [1.0, 0, 0, 0, 0.1, 0, 0, 0.1, 0, 0.1]
    found = Parameters(arm, ["*/inertial", Parameter("tool0/inertial", start=ball)])
    assert owners(found) == ["upper", "flat", "point", "tool0"] and np.all(np.isfinite(found.start))
    assert owners(Parameters(arm, ["*/inertial", Parameter("tool*/inertial", fixed=True)])) == [
        *("upper", "flat", "point")
    ]
    with pytest.raises(ValueError, match=r"tool0/inertial has the mass 0 kg"):
        _ = Parameters(arm, ["tool*/inertial"]).start


def test_what_turns_without_mass_has_an_inertia(arm):
    """Such as the rotor of a motor: its mass is no number to fit, its inertia is one."""
    rotor = arm.replace(inertia=arm.bodies.inertia.at[-1].set(0.01 * jnp.eye(3)))
    assert owners(Parameters(rotor, ["*/inertia"])) == ["upper", "flat", "point", "ee_link"]
    assert owners(Parameters(rotor, ["*/inertial"])) == ["upper", "flat", "point"]


@pytest.mark.parametrize("leaf", ["inertial", "inertia"])
def test_bodies_start_at_the_nearest_inertia_of_a_body(arm, leaf):
    """The others, and the numbers of the machine itself, stay the file's."""
    found = Parameters(arm, [f"*/{leaf}", "*/mass"] if leaf == "inertia" else [f"*/{leaf}"])
    assert found.repaired == ("flat", "point")
    np.testing.assert_array_equal(found.system.bodies.inertia[2], FLAT)
    system = found.system_at(found.start)
    for body, given in ((2, FLAT), (3, np.zeros((3, 3)))):
        mass, inertia = float(arm.bodies.mass[body]), np.asarray(system.bodies.inertia[body])
        assert not inconsistency(inertia)
        np.testing.assert_allclose(inertia, nearest_consistent(mass, given), rtol=1e-12, atol=1e-16)
    for was, now in zip(arm.bodies.mass, system.bodies.mass, strict=True):
        np.testing.assert_allclose(now, was, rtol=1e-14)
    np.testing.assert_allclose(system.bodies.com, arm.bodies.com, atol=1e-16)
    np.testing.assert_allclose(system.bodies.inertia[1], arm.bodies.inertia[1], rtol=1e-13)
    slopes = jax.jacfwd(found.values)(found.start)
    assert np.all(np.isfinite(slopes)) and np.linalg.matrix_rank(slopes) == len(found.start)


def test_ratios_start_at_the_nearest_too(arm):
    found = Parameters(arm, [Parameter("flat/inertia", InertiaRatios())])
    inertia = found.system_at(found.start).bodies.inertia[2]
    np.testing.assert_allclose(inertia, nearest_consistent(1.0, FLAT), rtol=1e-12, atol=1e-16)


def test_declared_starts_and_factors_are_taken_as_they_are(arm):
    declared = Parameter("flat/inertia", SecondMoments(), start=FLAT)
    with pytest.raises(ValueError, match="flat/inertia is not physically consistent"):
        _ = Parameters(arm, [declared]).start
    assert Parameters(arm, [declared]).repaired == ()
    scaled = Parameters(arm, [Parameter("flat/inertia", Scaled())])
    assert scaled.repaired == ()
    np.testing.assert_allclose(scaled.system_at(scaled.start).bodies.inertia[2], FLAT, atol=1e-16)


def test_numbers_of_another_machine_are_refused(arm):
    """`x_of` inverts `machine`, and mends nothing."""
    with pytest.raises(ValueError, match="flat/inertial is not physically consistent"):
        Parameters(arm, ["*/inertial"]).x_of(arm)


@pytest.mark.skipif(not MEASURED.is_dir(), reason=f"{MEASURED} is absent")
@pytest.mark.parametrize(
    ("robot", "repaired"),
    [
        ("tx40", {"link_6"}),
        ("gen3", {"base_link", "shoulder_link", "spherical_wrist_1_link"}),
        ("ur10", set()),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_robots_as_their_files_are(robot, repaired):
    """The obvious declaration of an arm starts, whatever its file says."""
    system = dl.load(MEASURED / robot / f"{robot}.urdf")
    found = Parameters(system, ["*/inertial"])
    assert set(found.repaired) == repaired
    start = found.system_at(found.start).bodies
    moving = np.asarray(system.bodies.mass) > 0
    assert len(found.start) == 10 * moving.sum()
    for inertia in np.asarray(start.inertia)[moving]:
        assert np.all(np.linalg.eigvalsh(np.trace(inertia) / 2 * np.eye(3) - inertia) > 0)
    np.testing.assert_array_equal(np.asarray(start.inertia)[~moving], 0)
