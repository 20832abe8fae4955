"""What URDF files carry beside URDF: transmissions, and elements of Drake, Gazebo and MuJoCo."""

import math
import warnings

import numpy as np
import pytest

import difflie as dl

SIMPLE = "<type>transmission_interface/SimpleTransmission</type>"
DRIVE = f"""<transmission name="t">{SIMPLE}
  <joint name="j"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
  <actuator name="motor"><mechanicalReduction>50</mechanicalReduction>
    <hardwareInterface>EffortJointInterface</hardwareInterface></actuator>
</transmission>"""
ROTOR = DRIVE.replace(
    "</actuator>", '<drake:rotor_inertia value="0.01"/><drake:gear_ratio value="20"/></actuator>'
)


def slider(*more: str, kind: str = "prismatic", inside: str = "") -> str:
    """A mass of 2 kg that moves on a table; further elements begin in line 5."""
    return "\n".join(
        [
            '<robot name="r" xmlns:drake="d"><link name="a"/>',
            '<link name="b"><inertial><mass value="2"/>'
            '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>',
            f'<joint name="j" type="{kind}"><parent link="a"/><child link="b"/>{inside}',
            '<limit lower="-9" upper="9" velocity="3" effort="4"/></joint>',
            *more,
            "</robot>",
        ]
    )


@pytest.fixture
def load(tmp_path):
    """Loads a text; the text of its warnings is in `load.said`."""

    def reader(text, **options):
        path = tmp_path / "r.urdf"
        path.write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            system = dl.load(path, **options)
        reader.said = "\n".join(str(w.message) for w in caught)
        return system

    return reader


def test_a_simple_transmission_is_a_drive_with_a_gear(load):
    """Guards the reduction, the name, the limit at the joint, and that all of it is read."""
    system = load(slider(DRIVE), actuators=True, strict=True)
    assert system.actuator_names == ("motor",) and "transmission" not in load.said
    # 50 times 0.1 N at 2 kg for 0.1 s
    end = dl.step(system, [0.0], [0.0], dt=0.1, control=np.array([0.1]))
    assert end.v[0] == pytest.approx(0.25)
    assert system.joints.max_effort.tolist() == [4]
    assert not load(slider(DRIVE)).actuators and "transmission (1, first line 5)" in load.said
    plain = load(slider(DRIVE.replace("50", "1")), actuators=True)
    assert plain.actuators[0].joint == "j"
    offset = load(slider(DRIVE.replace('"j">', '"j"><offset>0.3</offset>')), actuators=True)
    assert float(offset.actuators[0].transmission.reference) == pytest.approx(-0.3)


def test_the_older_form_of_a_transmission(load):
    """Guards the type as an attribute, and the reduction beside the actuator."""
    old = (
        '<transmission name="t" type="pr2_mechanism_model/SimpleTransmission"><joint name="j"/>'
        '<actuator name="m"/><mechanicalReduction>-3</mechanicalReduction></transmission>'
    )
    (drive,) = load(slider(old), actuators=True).actuators
    assert drive.transmission.gear.tolist() == -3


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("", "there is no <transmission>, and a URDF has no other actuators"),
        (DRIVE.replace("Simple", "Differential"), ":5: .*a transmission_interface/Differential"),
        (DRIVE.replace("Simple", "FourBarLinkage"), "FourBarLinkageTransmission is not read"),
        (DRIVE.replace('joint name="j"', 'joint name="k"'), ":5: .*no joint.*'k'"),
        (DRIVE.replace(">50<", ">0<"), "mechanicalReduction is 0"),
        (DRIVE.replace(">50<", ">fifty<"), ":7: .*its text needs one number, got 'fifty'"),
        (DRIVE.replace(SIMPLE, ""), "the element <type> is missing"),
        (DRIVE.replace("<actuator", '<joint name="j"/><actuator'), "it has 2 elements <joint>"),
    ],
)
def test_transmissions_that_are_refused(load, inside, words):
    with pytest.raises(dl.ModelError, match=words):
        load(slider(inside), actuators=True)


def test_rotors_of_drake_are_armature(load):
    """Guards gear^2 times inertia, with and without actuators; that of difflie comes first."""
    for actuators in (True, False):
        system = load(slider(ROTOR), actuators=actuators, strict=True)
        assert system.joints.armature.tolist() == [20**2 * 0.01]
    assert dl.mass_matrix(system, [0.0])[0, 0] == pytest.approx(2 + 4)
    own = slider(ROTOR, inside='<difflie armature="0.5"/>')
    assert load(own).joints.armature.tolist() == [0.5]
    with pytest.raises(dl.ModelError, match="has not one degree of freedom"):
        load(slider(ROTOR, kind="fixed"))
    with pytest.raises(dl.ModelError, match="the joint 'k' does not exist"):
        load(slider(ROTOR.replace('joint name="j"', 'joint name="k"')))


def test_springs_of_gazebo(load):
    """Guards springs and that what changes the motion, and is not read, is named with its line."""
    spring = "<springStiffness>7</springStiffness><springReference>0.3</springReference>"
    still = "<provideFeedback>true</provideFeedback><implicitSpringDamper>1</implicitSpringDamper>"
    text = slider(
        f'<gazebo reference="j">{spring}{still}</gazebo>',
        '<gazebo reference="b"><gravity>true</gravity><material>Red</material></gazebo>',
    )
    system = load(text, strict=True)
    assert dl.passive_force(system, [0.1], [0.0])[0] == pytest.approx(7 * 0.2)
    lost = ("<gravity>false</gravity>", "<mu1>1</mu1>", "<dampingFactor>0.1</dampingFactor>")
    with pytest.raises(dl.ModelError) as raised:
        load(slider('<gazebo reference="b">' + "\n".join(lost) + spring + "</gazebo>"), strict=True)
    faults = str(raised.value).splitlines()
    for line, name in (
        (5, "gravity"),
        (6, "mu1"),
        (7, "dampingFactor"),
        (7, "springStiffness"),
        (7, "springReference"),
    ):
        assert any(f"r.urdf:{line}: gazebo/{name} may change" in fault for fault in faults)
    assert len(faults) == 5


def test_gravity_of_mujoco(load):
    """Guards the order: an argument, <difflie>, the option of MuJoCo; and what it has beside."""
    option = '<mujoco><option gravity="0 0 -1" timestep="0.1"/><compiler meshdir="x"{}/></mujoco>'
    system = load(slider(option.format("")), strict=True)
    assert system.gravity.tolist() == [0, 0, -1]
    assert "mujoco/compiler/@meshdir" in load.said
    own = slider('<difflie gravity="0 0 -2"/>', option.format(""))
    assert load(own).gravity.tolist() == [0, 0, -2]
    assert load(own, gravity=(0, 0, -3)).gravity.tolist() == [0, 0, -3]
    with pytest.raises(dl.ModelError, match=":5: mujoco/compiler/@boundmass may change"):
        load(slider(option.format(' boundmass="1"')), strict=True)


@pytest.mark.parametrize(
    ("kind", "inside", "cls"),
    [
        ("ball", '<dynamics damping="3"/>', dl.Spherical),
        ("planar", '<axis xyz="0 1 0"/><dynamics damping="1 2 3"/>', dl.Planar),
        ("universal", '<dynamics damping="3"/>', dl.Universal),
        ("screw", '<drake:screw_thread_pitch value="0.5"/><axis xyz="0 1 0"/>', dl.Helical),
    ],
)
def test_joints_of_drake(load, kind, inside, cls):
    """Guards class, place and damping; a screw advances by its pitch in a turn."""
    text = slider(kind=kind, inside='<origin xyz="1 2 3"/>' + inside)
    text = text.replace("<joint", "<drake:joint").replace("</joint", "</drake:joint")
    text = text.replace('<limit lower="-9" upper="9" velocity="3" effort="4"/>', "")
    system = load(text, strict=True)
    assert isinstance(system.topology.types[1], cls)
    assert system.joints.position[1].tolist() == [1, 2, 3]
    damping = {"planar": [1, 2, 3], "screw": [0], "universal": [3, 3], "ball": [3, 3, 3]}
    assert system.joints.damping.tolist() == damping[kind]
    if kind == "planar":  # As Drake 1.51 has it: x, and -z, and about y.
        pose = dl.pose(system, [0.1, 0.2, 0.3], "b")
        np.testing.assert_allclose(pose[:3, 3], [1.1, 2, 2.8], atol=1e-6)
        turned = [math.cos(0.3), 0, -math.sin(0.3)]
        np.testing.assert_allclose(pose[:3, 0], turned, atol=1e-6)
    if kind == "screw":
        pose = dl.pose(system, [2 * math.pi], "b")
        np.testing.assert_allclose(pose[:3, 3], [1, 2.5, 3], atol=1e-6)


def test_joints_of_drake_that_are_not_read(load):
    text = slider(kind="curvilinear").replace("joint", "drake:joint")
    words = r":3: .*type 'curvilinear' is not read.*known are ball"
    with pytest.raises(dl.ModelError, match=words):
        load(text)
    bushing = "<drake:linear_bushing_rpy/>"
    with pytest.raises(dl.ModelError, match=":5: drake:linear_bushing_rpy may change the motion"):
        load(slider(bushing), strict=True)


def test_what_was_read_is_written_once(load, tmp_path):
    """Guards a file with its original: changed numbers are not those of its other elements."""
    spring = '<gazebo reference="j"><springStiffness>7</springStiffness></gazebo>'
    text = slider(ROTOR, spring)
    system = load(text)
    changed = system.replace(armature=[0.0], stiffness=[0.0])
    original = tmp_path / "original.urdf"
    original.write_text(text)
    dl.save(changed, tmp_path / "r.urdf", original=original)
    again = load((tmp_path / "r.urdf").read_text())
    assert again.joints.armature.tolist() == again.joints.stiffness.tolist() == [0.0]
    assert "<transmission" in (tmp_path / "r.urdf").read_text()
    drake = text.replace('<joint name="j" type', '<drake:joint name="j" type')
    drake = drake.replace('effort="4"/></joint>', 'effort="4"/></drake:joint>')
    drake = drake.replace("prismatic", "screw")
    drake = drake.replace("<limit", '<drake:screw_thread_pitch value="1"/><limit')
    original.write_text(drake)
    system = load(drake)
    dl.save(system, tmp_path / "s.urdf", original=original)
    again = dl.load(tmp_path / "s.urdf", strict=True)
    assert again.joint_names == system.joint_names
    assert again.joints.pitch.tolist() == system.joints.pitch.tolist()
