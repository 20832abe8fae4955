"""SDF files: frames, joints, nested and included models, against MuJoCo, Drake and closed forms."""

import math
import warnings

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import difflie as dl

INERTIAL = """<inertial><pose>0.1 -0.2 0.05 0.4 0 0</pose><mass>2</mass><inertia>
<ixx>0.3</ixx><iyy>0.4</iyy><izz>0.5</izz><ixy>0.01</ixy><ixz>0.02</ixz><iyz>-0.03</iyz>
</inertia></inertial>"""


def link(name: str, inside: str = "", inertial: str = INERTIAL) -> str:
    return f'<link name="{name}">{inertial}{inside}</link>'


def joint(name: str, parent: str, child: str, inside: str = "", kind: str = "revolute") -> str:
    axis = "" if "<axis" in inside or kind in ("fixed", "ball") else "<axis><xyz>0 0 1</xyz></axis>"
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{inside}{axis}</joint>'


def model(*lines: str, name: str = "m", start: str = "") -> str:
    """A file of one model, whose first line after <model> is line 2."""
    return "\n".join(
        [f'<sdf version="1.11"><model name="{name}"{start}>', *lines, "</model></sdf>"]
    )


@pytest.fixture
def load(tmp_path):
    """Loads a text; the text of its warnings is in `load.said`."""

    def reader(text, **options):
        path = tmp_path / "m.sdf"
        path.write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            system = dl.load(path, **options)
        reader.said = "\n".join(str(w.message) for w in caught)
        return system

    return reader


# An arm whose joints are away from the links, with axes in other frames, turned by degrees.
ARM = model(
    "<pose>0.3 0 1 0 0 0.2</pose>",
    link("a", '<pose>0.1 0 0 0 0 0.5</pose><visual name="v"/>'),
    link("b", '<pose relative_to="a">0 0.5 0 0 0.2 0</pose>'),
    link("c", '<pose relative_to="elbow">0 0 0.4 0 0 0</pose>'),
    '<frame name="tip" attached_to="c"><pose degrees="true">0 0 1 90 0 0</pose></frame>',
    joint("base", "world", "a", kind="fixed"),
    joint(
        "shoulder",
        "a",
        "b",
        '<pose>0.05 0 0 0.1 0 0</pose><axis><xyz expressed_in="__model__">0 1 0</xyz><limit>'
        "<lower>-1</lower><upper>1e16</upper><effort>-1</effort><velocity>3</velocity></limit>"
        "<dynamics><damping>0.2</damping><friction>0.1</friction><spring_stiffness>5"
        "</spring_stiffness><spring_reference>0.3</spring_reference></dynamics></axis>",
    ),
    joint("elbow", "b", "c", '<pose relative_to="b">0 0 0.3 0 0.5 0</pose>', "prismatic"),
)

# The same by hand: y of the model in the frame of b, and the origin of c in that of b.
TURN = Rotation.from_euler("z", 0.5) * Rotation.from_euler("y", 0.2)
AXIS = TURN.inv().apply([0, 1, 0])
PLACE = np.array([0, 0, 0.3]) + Rotation.from_euler("y", 0.5).apply([0, 0, 0.4])
R = Rotation.from_euler("x", 0.4).as_matrix()
ABOUT = R @ np.array([[0.3, 0.01, 0.02], [0.01, 0.4, -0.03], [0.02, -0.03, 0.5]]) @ R.T
HEAVY = '<inertial pos="0.1 -0.2 0.05" mass="2" fullinertia="{} {} {} {} {} {}"/>'.format(
    *ABOUT.diagonal(), ABOUT[0, 1], ABOUT[0, 2], ABOUT[1, 2]
)
BY_HAND = f"""<mujoco><compiler angle="radian" eulerseq="XYZ"/><worldbody>
<body pos="0.3 0 1" euler="0 0 0.2"><body name="a" pos="0.1 0 0" euler="0 0 0.5">{HEAVY}
<body name="b" pos="0 0.5 0" euler="0 0.2 0">{HEAVY}
<joint name="shoulder" pos="0.05 0 0" axis="{AXIS[0]} {AXIS[1]} {AXIS[2]}" damping="0.2"
  stiffness="5" springref="0.3"/>
<body name="c" pos="{PLACE[0]} {PLACE[1]} {PLACE[2]}" euler="0 0.5 0">{HEAVY}
<joint name="elbow" type="slide" axis="0 0 1"/>
<site name="tip" pos="0 0 1" euler="{math.pi / 2} 0 0"/>
</body></body></body></body></worldbody></mujoco>"""


@pytest.mark.slow
def test_an_arm_is_that_of_mujoco(load):
    """Guards poses, axes, inertias and joints away from links, against a model written by hand."""
    mujoco = pytest.importorskip("mujoco")
    reference = mujoco.MjModel.from_xml_string(BY_HAND)
    data = mujoco.MjData(reference)
    q, v = [0.7, -0.4], [0.5, 0.3]
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(reference, data)
    matrix = np.zeros((2, 2))
    for row, unit in zip(matrix, np.eye(2), strict=True):
        mujoco.mj_mulM(reference, data, row, unit)
    with jax.enable_x64(True):
        system = load(ARM)
        joints = dict(zip(system.joint_names, system.joints.friction, strict=True))
        assert joints["shoulder"] == pytest.approx(0.1)
        system = system.replace(friction=0 * system.joints.friction)
        np.testing.assert_allclose(dl.mass_matrix(system, q), matrix, atol=1e-9)
        forces = dl.bias_force(system, q, v) - dl.passive_force(system, q, v)
        np.testing.assert_allclose(forces, data.qfrc_bias - data.qfrc_passive, atol=1e-9)
        pose = dl.pose(system, q, "tip")
    np.testing.assert_allclose(pose[:3, 3], data.site_xpos[0], atol=1e-9)
    np.testing.assert_allclose(pose[:3, :3].ravel(), data.site_xmat[0], atol=1e-9)
    joints = system.joints
    assert joints.lower.tolist() == [-1, -math.inf]
    assert joints.upper.tolist() == 2 * [math.inf]
    assert joints.max_velocity.tolist() == [3, math.inf]
    assert system.joints.max_effort.tolist() == 2 * [math.inf]


GRIPPER = model(
    "<pose>0 0 0.1 0 0 0</pose>",
    link("palm"),
    link("finger", "<pose>0 0.1 0.2 0 0.3 0</pose>"),
    '<frame name="flange"><pose>0 0 -0.1 0.2 0 0</pose></frame>',
    joint("slide", "palm", "finger", "<axis><xyz>1 0 0</xyz></axis>", "prismatic"),
    name="gripper",
)
# A machine of nested, included and merged models, of all joint types.
WHOLE = model(
    link("base"),
    '<model name="arm" placement_frame="mount"><pose relative_to="base">0 0 1 0 0.1 0</pose>',
    link("upper", "<pose>0 0.2 0 0 0 0.3</pose>"),
    '<frame name="mount" attached_to="upper"><pose>0.1 0 0 0.2 0 0</pose></frame>',
    link("lower", '<pose relative_to="upper">0 0 0.7 0 0 0</pose>'),
    joint("knee", "upper", "lower", '<pose relative_to="mount">0 0 0.5 0 0 0</pose>'),
    "</model>",
    "<include><uri>model://gripper</uri><name>hand</name><placement_frame>flange</placement_frame>"
    '<pose relative_to="arm::lower">0 0 0.5 0 0 0.2</pose></include>',
    '<include merge="true"><uri>other.sdf</uri>'
    '<pose relative_to="base">1 0 0 0 0 0.4</pose></include>',
    joint("wrist", "arm::lower", "hand", kind="fixed"),
    joint("hip", "base", "arm::mount", "<axis><xyz>0.6 0 0.8</xyz></axis>", "continuous"),
    joint(
        "cross",
        "base",
        "palm",
        "<pose>0.1 0 0.2 0 0 0.1</pose><axis><xyz>1 0 0</xyz></axis>"
        "<axis2><xyz>0 1 0</xyz></axis2>",
        "universal",
    ),
    link("nut", "<pose>0 2 0 0 0 0</pose>"),
    joint("thread", "palm", "nut", "<screw_thread_pitch>0.5</screw_thread_pitch>", "screw"),
    joint("ground", "world", "base", kind="fixed"),
)
AT = {
    "hip": [0.3],
    "arm::knee": [0.4],
    "hand::slide": [0.1],
    "slide": [-0.2],
    "cross": [0.5, -0.3],
    "thread": [0.7],
}


@pytest.fixture
def whole(load, tmp_path):
    """The machine, with the files that it includes beside it."""
    (tmp_path / "gripper").mkdir()
    (tmp_path / "gripper/model.config").write_text(
        '<model><sdf version="1.9">old.sdf</sdf><sdf version="1.11">new.sdf</sdf></model>'
    )
    (tmp_path / "gripper/new.sdf").write_text(GRIPPER)
    (tmp_path / "gripper/old.sdf").write_text("not read")
    (tmp_path / "other.sdf").write_text(GRIPPER)
    with jax.enable_x64(True):
        yield load(WHOLE, strict=True)


def state(system: dl.System) -> np.ndarray:
    return np.concatenate([AT[name] for name in system.joint_names])


def test_names_of_nested_and_merged_models(whole):
    """Guards "MODEL::NAME", that merged ones have the names of their own, and named frames."""
    names = [name for name in whole.body_names if "/" not in name]
    assert names == [
        *("base", "arm::upper", "arm::lower", "hand::palm", "hand::finger"),
        *("palm", "finger", "nut"),
    ]
    assert set(whole.frames) == {"arm::mount", "hand::flange", "flange"}
    assert set(whole.joint_names) == AT.keys()
    kinds = {type(k) for k in whole.topology.types}
    assert kinds == {dl.Fixed, dl.Revolute, dl.Continuous, dl.Prismatic, dl.Universal, dl.Helical}


def test_frames_that_are_placed(whole):
    """Guards, at zero, a placement frame, relative_to, and that the merged model moves as one."""
    q = np.zeros(whole.nv)
    mount = np.eye(4)
    mount[:3, :3], mount[:3, 3] = Rotation.from_euler("y", 0.1).as_matrix(), [0, 0, 1]
    np.testing.assert_allclose(dl.pose(whole, q, "arm::mount"), mount, atol=1e-12)
    merged = dl.pose(whole, q, "palm")
    np.testing.assert_allclose(merged[:3, 3], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(
        merged[:3, :3], Rotation.from_euler("z", 0.4).as_matrix(), atol=1e-12
    )


def test_the_machine_is_that_of_drake(whole, tmp_path):
    """Guards all of it against libsdformat and Drake: poses, masses and gravity."""
    pytest.importorskip("pydrake")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import BodyIndex

    plant = MultibodyPlant(0.0)
    parser = Parser(plant)
    parser.package_map().Add("gripper", str(tmp_path / "gripper"))
    # It takes the files of packages only.
    parser.package_map().Add("here", str(tmp_path))
    named = WHOLE.replace("model://gripper", "model://gripper/new.sdf")
    named = named.replace("other.sdf", "model://here/other.sdf")
    (tmp_path / "drake.sdf").write_text(named)
    parser.AddModels(str(tmp_path / "drake.sdf"))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    rows = []
    there = plant.GetPositions(context)
    joints = {}
    for index in plant.GetJointIndices():
        j = plant.get_joint(index)
        scope = plant.GetModelInstanceName(j.model_instance()).removeprefix("m").lstrip(":")
        joints[f"{scope}::{j.name()}" if scope else j.name()] = j
    joints["hip"] = joints["arm::hip"]  # Drake gives a joint to the model of its child.
    for name in whole.joint_names:
        j = joints[name]
        there[j.position_start() :][: j.num_positions()] = AT[name]
        rows += [*range(j.velocity_start(), j.velocity_start() + j.num_velocities())]
    plant.SetPositions(context, there)
    q = state(whole)
    matrix = plant.CalcMassMatrix(context)[np.ix_(rows, rows)]
    np.testing.assert_allclose(dl.mass_matrix(whole, q), matrix, atol=1e-9)
    force = plant.CalcGravityGeneralizedForces(context)[rows]
    np.testing.assert_allclose(-dl.bias_force(whole, q, 0 * q), force, atol=1e-9)
    for k in range(1, plant.num_bodies()):
        body = plant.get_body(BodyIndex(k))
        name = body.scoped_name().get_full().removeprefix("m::")
        pose = plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4()
        np.testing.assert_allclose(dl.pose(whole, q, name), pose, atol=1e-9)


# One thing at a time.


def test_a_model_without_a_joint_to_its_world_is_free(load):
    """Guards the free base at the pose of the file, and that `base` fixes it there."""
    text = model("<pose>0 0 2 0 0 0</pose>", link("a", "<pose>1 0 0 0 0 0</pose>"))
    system = load(text)
    assert system.joint_names == ("root_joint",) and system.nv == 6
    np.testing.assert_allclose(dl.pose(system, system.neutral(), "a")[:3, 3], [1, 0, 2])
    fixed = load(text, base="fixed")
    assert fixed.nv == 0
    np.testing.assert_allclose(dl.pose(fixed, [], "a")[:3, 3], [1, 0, 2])
    grounded = model(link("a"), joint("w", "world", "a", kind="fixed"))
    with pytest.raises(dl.ModelError, match="base is 'free', and each link has a joint already"):
        load(grounded, base="free")
    several = load(model(link("a"), link("b")))
    assert several.joint_names == ("a::root_joint", "b::root_joint")


@pytest.mark.slow
def test_gravity(load):
    """Guards gravity of a world, of the argument, and of a link that has none."""
    inner = model(link("a", "<gravity>0</gravity>", INERTIAL.replace("0.4 0 0", "0 0 0")))
    assert load(inner).gravity.tolist() == pytest.approx([0, 0, -9.81])
    end = dl.step(load(inner), load(inner).neutral(), np.zeros(6), dt=0.1)
    np.testing.assert_allclose(end.v, 0, atol=1e-5)
    fallen = load(inner.replace("<gravity>0", "<gravity>1"), gravity=(0, 0, -2))
    end = dl.step(fallen, fallen.neutral(), np.zeros(6), dt=0.1)
    np.testing.assert_allclose(end.v[-1], -0.2, rtol=1e-5)
    world = inner.replace("<model", '<world name="w"><gravity>0 0 -1.6</gravity><model')
    world = world.replace("</model>", "</model></world>")
    assert load(world).gravity.tolist() == pytest.approx([0, 0, -1.6])
    none = world.replace("<gravity>0 0 -1.6</gravity>", "")
    assert load(none).gravity.tolist() == pytest.approx([0, 0, -9.8])


def test_a_world_may_have_a_ground(load):
    """Guards that models which are static are left out and named, and others are not."""
    ground = f'<model name="ground"><static>true</static>{link("g")}</model>'
    moving = f'<model name="m">{link("a")}</model>'
    both = '<sdf version="1.9"><world name="w">\n{}\n{}</world></sdf>'
    system = load(both.format(ground, moving), strict=True)
    assert system.body_names == ("a",)
    assert "static model, but for its shapes (1, first line 2)" in load.said
    with pytest.raises(dl.ModelError, match="the model is static"):
        load(both.format(ground, ""))


@pytest.mark.slow
def test_several_models(load):
    """Guards that all models of a world that move are in one system, each with its place."""
    moving = f'<model name="m"><pose>0 0 2 0 0 0</pose>{link("a")}{link("b")}'
    moving += f"{joint('j', 'a', 'b')}</model>"
    other = '<model name="n"><pose relative_to="m">1 0 0 0 0 0</pose>' + link("a") + "</model>"
    world = '<sdf version="1.9"><world name="w">{}</world></sdf>'
    system = load(world.format(moving + other))
    assert system.body_names == ("m::a", "m::b", "n::a") and system.name == "m"
    assert system.joint_names == ("m::a::root_joint", "m::j", "n::a::root_joint")
    np.testing.assert_allclose(dl.pose(system, system.neutral(), "n::a")[:3, 3], [1, 0, 2])
    alone = load(world.format(moving))
    own = dl.mass_matrix(system, system.neutral())
    np.testing.assert_allclose(own[:7, :7], dl.mass_matrix(alone, alone.neutral()), rtol=1e-12)
    with pytest.raises(dl.ModelError, match="has a frame of this name too; rename"):
        load(world.format(moving + moving))


COLLISIONS = """<collision name="c"><pose relative_to="side">0 0 .1 0 0 0</pose><geometry>
<sphere><radius>.2</radius></sphere></geometry></collision><collision name="d"><geometry>
<capsule><radius>.1</radius><length>.5</length></capsule></geometry></collision><collision name="e">
<pose>0 0 0 .3 0 0</pose><geometry><box><size>.2 .4 .6</size></box></geometry></collision>
<collision name="f"><geometry><ellipsoid><radii>.1 .2 .3</radii></ellipsoid></geometry></collision>
<collision name="g"><geometry><cylinder><radius>.1</radius><length>.4</length></cylinder></geometry>
<surface/></collision><collision name="h"><geometry><heightmap/></geometry></collision>"""


@pytest.mark.slow
def test_shapes(load):
    """Guards shapes with their poses and sizes, and contacts with what stands still."""
    side = '<frame name="side"><pose>.5 0 0 0 0 0</pose></frame>'
    ground = """<model name="floor"><static>true</static><pose>0 0 -1 0 0 0</pose><link name="l">
<collision name="c"><geometry><plane><normal>0 0 2</normal><size>1 1</size></plane></geometry>
</collision></link></model>"""
    ball = f'<model name="m">{side}{link("a", COLLISIONS)}</model>'
    text = f'<sdf version="1.9"><world name="w">{ground}{ball}</world></sdf>'
    system = load(text)
    assert set(system.shapes) == {*(f"a/{name}" for name in "cdefg"), "floor::l/c"}
    sphere, box = system.shapes["a/c"], system.shapes["a/e"]
    np.testing.assert_allclose(sphere.frame.position, [0.5, 0, 0.1], atol=1e-15)
    np.testing.assert_allclose(box.half_sizes, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(box.frame.rotation, [0.3, 0, 0], atol=1e-12)
    assert system.shapes["a/d"].half_length == 0.25 and system.shapes["a/g"].half_length == 0.2
    np.testing.assert_allclose(system.shapes["a/f"].radii, [0.1, 0.2, 0.3])
    assert "link/collision (6" in load.said and not system.couplings
    gaps = dl.distance(system, system.neutral(), "floor::l/c", "a/c").distance
    np.testing.assert_allclose(gaps, [0.9], atol=1e-12)
    touching = load(text, contacts=True)
    assert len(touching.couplings[-1].pairs) == 5
    assert "link/collision/surface" in load.said and "this is no box" in load.said
    with pytest.raises(dl.ModelError, match="link/collision/surface may change the motion"):
        load(text, contacts=True, strict=True)


def test_mimic_and_ball(load):
    """Guards the law with its reference, and a ball joint in a frame that is turned."""
    law = '<mimic joint="j" axis="axis"><multiplier>2</multiplier><offset>0.1</offset>'
    axis = f"<axis><xyz>0 0 1</xyz>{law}<reference>0.3</reference></mimic></axis>"
    ends = joint("w", "world", "a"), joint("j", "a", "b"), joint("k", "b", "c", axis)
    system = load(model(link("a"), link("b"), link("c"), *ends))
    assert system.nv == 2
    assert system.joints.multiplier.tolist() == [2]
    assert system.joints.offset.tolist() == pytest.approx([0.1 - 2 * 0.3])
    turned = joint("j", "world", "a", "<pose>0 0 0 0 0.5 0</pose>", "ball")
    system = load(model(link("a"), turned))
    q = [math.cos(0.2), math.sin(0.2), 0, 0]  # 0.4 rad about x of the joint
    about = Rotation.from_euler("y", 0.5).as_matrix()
    wanted = about @ Rotation.from_euler("x", 0.4).as_matrix() @ about.T
    np.testing.assert_allclose(dl.pose(system, q, "a")[:3, :3], wanted, atol=1e-6)


def test_screws_of_both_kinds(load):
    """Guards m for a turn to the right, and the older rad/m to the left."""
    for pitch, metres in (
        ("<screw_thread_pitch>0.5</screw_thread_pitch>", 0.5 / math.tau),
        ("<thread_pitch>-4</thread_pitch>", 0.25),
    ):
        system = load(model(link("a"), joint("j", "world", "a", pitch, "screw")))
        assert system.joints.pitch.tolist() == pytest.approx([metres])


def test_poses_by_quaternions(load):
    pose = '<pose rotation_format="quat_xyzw">1 2 3 0 0 1 1</pose>'
    system = load(model(link("a", pose), joint("w", "world", "a", kind="fixed")))
    turned = dl.pose(system, [], "a")
    np.testing.assert_allclose(turned[:3, 3], [1, 2, 3])
    np.testing.assert_allclose(turned[:3, 0], [0, 1, 0], atol=1e-6)


def test_older_axes_in_the_frame_of_the_model(load):
    """Guards use_parent_model_frame, which versions before 1.7 have."""
    axis = "<axis><xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>"
    text = model(link("a", f"<pose>0 0 0 0 0 {math.pi / 2}</pose>"), joint("j", "world", "a", axis))
    system = load(text.replace("1.11", "1.6"))
    np.testing.assert_allclose(system.joints.axis, [[0, -1, 0]], atol=1e-6)


def test_what_is_not_used_is_named_with_its_file(load, tmp_path):
    """Guards lines and files, in the warning and strictly; usual flags are no faults."""
    inner = model(
        link("b", "\n<velocity_decay><linear>1</linear></velocity_decay><kinematic>0</kinematic>")
    )
    (tmp_path / "inner.sdf").write_text(inner)
    merged = '<include merge="1"><uri>file://inner.sdf</uri></include>'
    text = model(
        merged,
        '<link name="a"><collision name="c"/></link>',
        joint("w", "world", "a"),
        joint("j", "a", "b", "<physics/>", "fixed"),
        '<plugin name="p" filename="x.so"/>',
    )
    system = load(text)
    assert system.not_modelled == ("joint/physics", "plugin", "link/velocity_decay")
    assert "link/collision (1, first line 3)" in load.said
    assert "link without inertial, 1 kg and 1 kg m^2 as specified (1, first line 3)" in load.said
    assert "not used of inner.sdf: link/velocity_decay (1, first line " in load.said
    with pytest.raises(dl.ModelError) as raised:
        load(text, strict=True)
    faults = str(raised.value).splitlines()
    assert faults[0].startswith(f"{tmp_path / 'm.sdf'}:5: joint/physics may change the motion")
    assert faults[2].startswith(f"{tmp_path / 'inner.sdf'}:") and len(faults) == 3


TWO = link("a", "", ""), link("b", "", "")
AXIS_OF_NOTHING = "<axis><xyz>0 0 0</xyz></axis>"
MISTAKES = {
    "another root": ("<gazebo/>", 1, "whose root element is <sdf>"),
    "old": ('<sdf version="1.4"/>', 1, "version 1.4 is not read, but 1.5 and later"),
    "no model": ('<sdf version="1.9"/>', 1, "there is no <model>; add one"),
    "no link": (model("<frame name='f'/>"), 1, "there is no link"),
    "parent": (model(*TWO, joint("j", "c", "b")), 4, "there is no link, joint, frame or model 'c'"),
    "no child": (model(*TWO, "<joint name='j' type='ball'/>"), 4, "<child> is missing"),
    "loop": (
        model(*TWO, joint("j", "a", "b"), joint("k", "world", "b")),
        5,
        "'b' is the child of <joint name='j'> of <model name='m'> in line 4 too",
    ),
    "gearbox": (model(*TWO, joint("j", "a", "b", kind="gearbox")), 4, "a gearbox couples two"),
    "type": (model(*TWO, joint("j", "a", "b", kind="revolut")), 4, "did you mean 'revolute'?"),
    "axis": (model(*TWO, joint("j", "a", "b", AXIS_OF_NOTHING)), 4, "the axis is zero"),
    "no axis2": (model(*TWO, joint("j", "a", "b", kind="universal")), 4, "<axis2> is missing"),
    "no pitch": (model(*TWO, joint("j", "a", "b", kind="screw")), 4, "in m for a turn"),
    "same names": (model(*TWO, link("a")), 4, "line 2 has a frame of this name too"),
    "reserved": (model(link("a::b")), 2, "the name 'a::b' is reserved"),
    "cycle": (
        model(link("a", "<pose relative_to='f'/>"), "<frame name='f' attached_to='a'/>"),
        2,
        "the frames a -> f -> a are placed in each other",
    ),
    "pose": (model(link("a", "<pose>1 2</pose>", "")), 2, "its text needs six numbers, got '1 2'"),
    "number": (model(link("a", "", "<inertial><mass>x</mass></inertial>")), 2, "one number"),
    "auto": (model(link("a", "", "<inertial auto='true'/>")), 2, "follow from shapes"),
    "static": (model("<static>true</static>", link("a")), 1, "the model is static"),
    "network": (
        model("<include><uri>https://x.org/m</uri></include>"),
        2,
        "'https://x.org/m' is not fetched; put the model beside this file",
    ),
    "not there": (model("<include><uri>model://x</uri></include>"), 2, "'model://x' is not there"),
    "itself": (model("<include><uri>m.sdf</uri></include>"), 2, "m.sdf includes itself"),
    "light": (
        model("<include><uri>light.sdf</uri></include>"),
        2,
        "the file light.sdf has 0 models; it must have one: take the <include> out",
    ),
    "entity": (
        '<!DOCTYPE s [<!ENTITY e SYSTEM "/etc/hostname">]>' + model("&e;"),
        1,
        "from another file",
    ),
    "joint of the world": (
        f'<sdf version="1.11"><world name="w"><model name="m">{TWO[0]}</model>\n'
        '<joint name="j"/></world></sdf>',
        2,
        "a joint of the world is not read",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_sdf(load, tmp_path, mistake):
    """Guards one sentence with file, line, element and fix."""
    text, line, words = MISTAKES[mistake]
    (tmp_path / "light.sdf").write_text('<sdf version="1.9"><light name="sun"/></sdf>')
    with pytest.raises(dl.ModelError) as raised:
        load(text)
    assert str(raised.value).startswith(f"{tmp_path / 'm.sdf'}:{line}: ")
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_shapes_are_not_drawn(load, tmp_path):
    """Guards that drawing says so, in place of an error on URDF."""
    system = load(ARM)
    with pytest.warns(UserWarning, match=r"m\.sdf: not drawn: <visual> of SDF files"):
        assert dl.io.read_appearance(tmp_path / "m.sdf", system) == {}


def test_numbers_of_a_file_have_gradients(load):
    """Guards that a system that was read is one of arrays: masses have derivatives, in a batch."""
    system = load(ARM)

    def stored(mass, q):
        return sum(dl.energy(system.replace(mass=mass), q, np.zeros(2)))

    slopes = jax.jit(jax.vmap(jax.grad(stored), (None, 0)))(
        system.bodies.mass, np.array([[0.1, 0.2], [0.3, 0.4]])
    )
    assert slopes.shape == (2, len(system.body_names)) and np.all(np.isfinite(slopes))


def test_options_that_sdf_does_not_have(load):
    text = model(link("a"))
    with pytest.raises(dl.ModelError, match="an SDF has no actuators; leave out actuators=True"):
        load(text, actuators=True)
    with pytest.raises(dl.ModelError, match="did you mean 'fixed'"):
        load(text, base="fix")
