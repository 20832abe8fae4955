"""URDF files: what is read, what is named as not used, and the one sentence for each mistake."""

import importlib.metadata
import math
import re
import tracemalloc
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import difflie as dl
from difflie import io
from difflie.io.urdf import read_urdf
from difflie.system import ModelError


def _robots() -> tuple[Path, list[str]]:
    """The folder of the robots in example-robot-data, which has no module, and their files."""
    try:
        package = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return Path(), []
    folder = Path(package.locate_file("cmeel.prefix/share/example-robot-data/robots"))
    return folder, sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.urdf"))


ROBOTS, FILES = _robots()
# Neither library reads the first, which is empty; the joints the second mimics do not exist.
REFUSED = {
    "ur_description/urdf/ur3.urdf": "there is no link",
    "alex_description/urdf/alex_psyonic_hands.urdf": "did you mean 'Left_index_q1'?",
}
MASSLESS = {"romeo_description/urdf/romeo.urdf", "romeo_description/urdf/romeo_laas_small.urdf"}

INERTIAL = (
    '<inertial><mass value="2"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
)
LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, inside: str = LIMIT, kind: str = "revolute") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def robot(*lines: str) -> str:
    """A robot whose first line after <robot> is line 2."""
    return "\n".join(['<robot name="r">', *lines, "</robot>"])


def pair(inside: str = LIMIT, kind: str = "revolute") -> str:
    return robot(link("a"), link("b"), joint("j", "a", "b", inside, kind))


@pytest.fixture
def read(tmp_path):
    """Reads a string as a file; no warning may come."""

    def reader(text, **options):
        path = tmp_path / "robot.urdf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return read_urdf(path, **options)

    return reader


@pytest.fixture
def remarks(tmp_path):
    """Reads a string as a file and gives the system and the warnings."""

    def reader(text, **options):
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            system = read_urdf(path, **options)
        return system, [str(w.message) for w in caught]

    return reader


# What is read.


def test_names_and_order_are_those_of_the_file(read):
    text = robot(
        *(link(name) for name in "dcbae"),
        *(joint(*ends) for ends in ("zab", "yac", "xcd", "wbe")),
    )
    system = read(text)
    assert system.name == "r"
    assert system.body_names == tuple("abcde")
    assert system.joint_names == tuple("zyxw")
    assert system.topology.parents == (-1, 0, 0, 2, 1)


def test_a_child_before_its_parent_comes_after_it(read):
    text = robot(*(link(n) for n in "abc"), joint("second", "b", "c"), joint("first", "a", "b"))
    assert read(text).body_names == ("a", "b", "c")


def test_the_numbers_of_a_joint(read):
    origin = '<origin xyz="1 2 3" rpy="0 0.5 0"/>'
    inside = origin + '<axis xyz="0 0 1"/>' + LIMIT + '<dynamics damping="5" friction="6"/>'
    joints = read(pair(inside)).joints
    assert joints.position[1].tolist() == [1, 2, 3]
    assert joints.rotation[1].tolist() == [0, 0.5, 0]
    assert joints.axis.tolist() == [[0, 0, 1]]
    named = ("lower", "upper", "max_velocity", "max_effort", "damping", "friction")
    assert [getattr(joints, n).item() for n in named] == [-1, 2, 3, 4, 5, 6]


def test_what_a_file_leaves_out_is_as_the_specification_says(read):
    joints = read(pair('<limit lower="0" velocity="3" effort="4"/>')).joints
    assert joints.axis.tolist() == [[1, 0, 0]]
    assert not np.any(joints.position) and not np.any(joints.rotation)
    assert joints.lower.item() == joints.upper.item() == 0
    continuous = read(pair("", "continuous")).joints
    assert (continuous.lower.item(), continuous.upper.item()) == (-math.inf, math.inf)
    assert continuous.max_effort.item() == math.inf


def test_a_continuous_joint_keeps_velocity_and_effort(read):
    joints = read(pair('<limit velocity="3" effort="4"/>', "continuous")).joints
    assert joints.upper.item() == math.inf
    assert (joints.max_velocity.item(), joints.max_effort.item()) == (3, 4)


def test_roll_pitch_yaw_turn_about_fixed_axes(read):
    from difflie.groups import so3

    def turn(axis, angle):
        c, s = math.cos(angle), math.sin(angle)
        r = np.eye(3)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        r[i, i], r[i, j], r[j, i], r[j, j] = c, -s, s, c
        return r

    roll, pitch, yaw = 0.3, -1.1, 2.5
    expected = turn(2, yaw) @ turn(1, pitch) @ turn(0, roll)
    rpy = f'<origin rpy="{roll} {pitch} {yaw}"/>'
    inertial = (
        f'<inertial>{rpy}<mass value="2"/>'
        '<inertia ixx="3" ixy="0.1" ixz="0.2" iyy="4" iyz="0.3" izz="5"/></inertial>'
    )
    system = read(robot(link("a"), link("b", inertial), joint("j", "a", "b", rpy + LIMIT)))
    np.testing.assert_allclose(so3.exp(system.joints.rotation[1]), expected, atol=1e-14)
    inertia = np.array([[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]])
    rotated = expected @ inertia @ expected.T
    np.testing.assert_allclose(system.bodies.inertia[1], rotated, atol=1e-14)


@pytest.mark.parametrize(
    ("kind", "inside", "kinds", "nq"),
    [
        ("fixed", "", (), 0),
        ("prismatic", LIMIT, ("prismatic",), 1),
        ("helical", '<axis xyz="0 0 1" pitch="0.25"/>' + LIMIT, ("helical",), 1),
        ("universal", "", ("revolute",) * 2, 2),
        ("planar", '<axis xyz="1 0 0"/>', ("prismatic", "prismatic", "revolute"), 3),
        ("translation", "", ("prismatic",) * 3, 3),
        ("spherical", "", ("revolute",) * 3, 4),
        ("ball", '<dynamics damping="1"/>', ("revolute",) * 3, 4),
        ("floating", "", ("revolute",) * 3 + ("prismatic",) * 3, 7),
    ],
)
def test_joint_types(read, kind, inside, kinds, nq):
    system = read(pair(inside, kind))
    assert system.topology.kinds[1] == kinds
    assert (system.nq, system.nv) == (nq, len(kinds))
    if kind == "helical":
        assert system.joints.pitch.item() == 0.25
    if kind == "ball":
        assert system.joints.damping.tolist() == [1, 1, 1]


def test_axes_of_planar_and_universal_joints(read, remarks):
    system, (message,) = remarks(pair("", "planar"))
    assert system.joints.axis[2].tolist() == [1, 0, 0]
    assert "without an axis, in its y-z plane as specified (x-y elsewhere) (1, first" in message
    normal = read(pair('<axis xyz="0 0 1"/>', "planar")).joints.axis
    assert normal.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    axes = read(pair('<axis xyz="0 1 0"/><axis2 xyz="0 0 1"/>', "universal")).joints.axis
    assert axes.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert read(pair("", "universal")).joints.axis.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_the_base(read):
    fixed, free = read(pair()), read(pair(), base="free")
    assert (fixed.nq, free.nq, free.nv) == (1, 8, 7)
    assert free.joint_names == ("root_joint", "j")
    assert fixed.topology.joints == ("root_joint", "j")
    world = pair().replace('"a"', '"world"')
    assert read(world, base="free").nv == 7
    assert read(pair().replace('"j"', '"root_joint"')).topology.joints[0] == "root_joint_"


def test_gravity(read):
    assert read(pair()).gravity.tolist() == [0, 0, -9.81]
    assert read(pair(), gravity=(1, 2, 3)).gravity.tolist() == [1, 2, 3]


def test_mimic(read):
    law = '<mimic joint="k" multiplier="-2" offset="0.5"/>'
    after = [link(n) for n in "abcd"] + [joint("j", "a", "b", law + LIMIT), joint("k", "a", "c")]
    chained = joint("l", "a", "d", '<mimic joint="j" multiplier="3" offset="1"/>' + LIMIT)
    system = read(robot(*after, chained))
    assert system.joint_names == ("k",)
    assert system.topology.mimics == (None, 2, None, 2)
    np.testing.assert_allclose(system.joints.multiplier, [-2, -6])
    np.testing.assert_allclose(system.joints.offset, [0.5, 3 * 0.5 + 1])
    plain = read(robot(*after[:4], chained, joint("j", "a", "b"), joint("k", "a", "c")))
    assert (plain.joints.multiplier.item(), plain.joints.offset.item()) == (3, 1)


def test_a_mimic_without_numbers_is_the_same_angle(read):
    follows = joint("k", "a", "c", '<mimic joint="j"/>' + LIMIT)
    system = read(robot(*(link(n) for n in "abc"), joint("j", "a", "b"), follows))
    assert (system.joints.multiplier.item(), system.joints.offset.item()) == (1, 0)


def test_any_encoding_that_the_file_declares(read):
    text = '<?xml version="1.0" encoding="iso-8859-1"?>\n' + pair().replace('"a"', '"Fuß"')
    assert read(text.encode("iso-8859-1")).body_names[0] == "Fuß"
    assert read(b"\xef\xbb\xbf" + pair().encode()).nv == 1


# What is not used.


def test_one_warning_names_what_is_not_used(remarks):
    extra = "<visual><geometry/></visual>\n<visual/><collision/>"
    text = robot(
        link("a", INERTIAL + extra),
        '<link name="b" type="x"/>',
        '<link name="c"/><link name="d"/>',
        joint("j", "a", "b", LIMIT.replace("/>", ' jerk="1"/>') + "<calibration/>"),
        joint("k", "a", "c", '<axis xyz="0 0 0"/><mimic joint="q"/>', "fixed"),
        joint("l", "a", "d", LIMIT, "continuous"),
        "<transmission><joint/></transmission><gazebo/>",
    )
    _, messages = remarks(text.replace("<robot", '<robot xmlns:x="y" version="2.0"'))
    (message,) = [m for m in messages if "not used" in m]
    assert message.split("robot.urdf: not used: ")[1].split(", ") == [
        *("robot/@version (1", "first line 1)"),
        *("link/collision (1", "first line 3)", "link/@type (1", "first line 4)"),
        *("joint/limit/@jerk (1", "first line 6)", "joint/calibration (1", "first line 6)"),
        *("fixed joint/axis (1", "first line 7)", "fixed joint/mimic (1", "first line 7)"),
        *("continuous joint/limit/@lower (1", "first line 8)"),
        *("continuous joint/limit/@upper (1", "first line 8)"),
        *("transmission (1", "first line 9)", "gazebo (1", "first line 9)"),
    ]


def test_missing_meshes_are_named_in_the_one_warning(remarks, tmp_path):
    """Sought beside the file and, in packages, in the folders above; the machine is the same."""

    def shaped(*meshes):
        shapes = "".join(
            f'<{kind}><geometry><mesh filename="{mesh}"/></geometry></{kind}>'
            for mesh in meshes
            for kind in ("visual", "collision")
        )
        return pair().replace('name="a">', f'name="a">{shapes}')

    system, (message,) = remarks(shaped("arm.stl", "meshes/b.dae", "package://no/c.stl"))
    assert message.endswith("; meshes that are missing, and skipped: arm.stl, b.dae, c.stl")
    plain, _ = remarks(pair())
    for a, b in zip(jax.tree.leaves(system), jax.tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(a, b)
    (tmp_path / "arm.stl").touch()
    (tmp_path / "b.dae").touch()
    there = ("arm.stl", f"file://{tmp_path}/arm.stl", f"package://{tmp_path.name}/b.dae")
    assert "skipped" not in remarks(shaped(*there))[1][0]
    _, (message,) = remarks(shaped("arm.stl", *(f"{i}.stl" for i in range(20))))
    assert message.endswith("skipped: " + ", ".join(f"{i}.stl" for i in range(8)) + " and 12 more")


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (pair('<axis xyz="0 0 2"/>' + LIMIT), "axis not of unit length, normalised (1, first line"),
        (pair(""), "revolute joint without a limit, unlimited (1, first line 4)"),
        (pair('<limit lower="-1"/>'), "limit without velocity, unlimited (1, first line 4), limit"),
        (pair('<limit effort="1" velocity="1"/>'), "without lower and upper, both 0 as specified"),
        (pair().replace('<robot name="r"', "<robot"), "robot without a name, called 'robot' (1,"),
    ],
)
def test_what_is_supplied_is_named(remarks, text, remark):
    _, messages = remarks(text)
    assert len(messages) == 1 and remark in messages[0]


def test_axes_are_normalised(remarks):
    system, _ = remarks(pair('<axis xyz="0 -3 4"/>' + LIMIT))
    np.testing.assert_allclose(system.joints.axis, [[0, -0.6, 0.8]])


def test_doubtful_masses_are_named_with_their_place(remarks):
    text = robot(link("a"), link("b", ""), joint("j", "a", "b"))
    _, messages = remarks(text)
    assert (
        len(messages) == 1
        and "robot.urdf:3: <link name='b'>: joint 'j' moves no mass" in messages[0]
    )
    light = INERTIAL.replace('"2"', '"0"')
    assert not remarks(text.replace(link("b", ""), link("b", light)))[1]
    nothing = light.replace('"1"', '"0"')
    assert "moves no mass" in remarks(text.replace(link("b", ""), link("b", nothing)))[1][0]
    flat = INERTIAL.replace('izz="1"', 'izz="9"')
    _, messages = remarks(robot(link("a"), link("b", flat), joint("j", "a", "b")))
    assert len(messages) == 1 and "robot.urdf:3: <link name='b'>: no rigid body" in messages[0]


# What is refused: the line, and what the message must say.

TWO = (link("a"), link("b"))
MISTAKES = {
    "empty": ("", 1, ["the file is empty"]),
    "blank": ("\n  \n", 1, ["the file is empty"]),
    "text": ("not a robot", 1, ["not XML", "syntax error", "column 1"]),
    "not closed": (
        "<robot>\n<link name='a'>\n</robot>",
        3,
        ["mismatched", "close", "<link name='a'>"],
    ),
    "cut off": ("<robot>\n<link name='a'/>\n", 3, ["close the element <robot>"]),
    "bad character": (
        "<robot>\n<link name=a/>\n</robot>",
        2,
        ["not well-formed", "correct it there"],
    ),
    "encoding": ('<?xml version="1.0" encoding="no-such"?>\n<robot/>', 1, ["encoding"]),
    "another root": ("<!-- x -->\n<mujoco model='m'/>", 2, ["<mujoco>", "URDF", "<robot>"]),
    "no links": (robot(), 1, ["<robot name='r'>: there is no link", "add <link"]),
    "link without a name": (
        robot("<link/>"),
        2,
        ["<link>", "attribute name is missing", "add name="],
    ),
    "joint without a name": (
        robot(*TWO, "<joint type='fixed'/>"),
        4,
        ["<joint>: the attribute name is missing"],
    ),
    "two links of a name": (robot(*TWO, link("a")), 4, ["<link name='a'>", "line 2", "rename"]),
    "two joints of a name": (
        robot(*TWO, link("c"), joint("j", "a", "b"), joint("j", "b", "c")),
        6,
        ["<joint name='j'>", "line 5", "rename"],
    ),
    "two roots": (robot(*TWO), 3, ["2 root links", "'a' (line 2), 'b' (line 3)", "by a joint"]),
    "three roots": (robot(*TWO, link("c")), 3, ["3 root links"]),
    "all in a cycle": (
        robot(*TWO, joint("j", "a", "b"), joint("k", "b", "a")),
        3,
        ["<link name='b'>", "b -> a -> b form a cycle", "remove one of their joints"],
    ),
    "a cycle beside the tree": (
        robot(*TWO, link("c"), joint("j", "c", "b"), joint("k", "b", "c")),
        3,
        ["b -> c -> b form a cycle"],
    ),
    "joint of a link with itself": (robot(*TWO, joint("j", "b", "b")), 3, ["b -> b form a cycle"]),
    "two parents": (
        robot(*TWO, link("c"), joint("j", "a", "c"), joint("k", "b", "c")),
        6,
        ["<joint name='k'>", "'c'", "<joint name='j'> in line 5 too", "remove one"],
    ),
    "no such parent": (
        robot(link("base_link"), link("b"), joint("j", "base_lnk", "b")),
        4,
        ["<parent> of <joint name='j'>", "'base_lnk' does not exist; did you mean 'base_link'?"],
    ),
    "no such child": (
        robot(*TWO, joint("j", "a", "hand")),
        4,
        ["<child> of <joint name='j'>", "'hand' does not exist; add it or name another"],
    ),
    "no parent": (
        robot(*TWO, '<joint name="j" type="fixed"><child link="b"/></joint>'),
        4,
        ["<joint name='j'>: the element <parent> is missing", "add <parent link="],
    ),
    "no child": (
        robot(*TWO, '<joint name="j" type="fixed"><parent link="a"/></joint>'),
        4,
        ["<child> is missing"],
    ),
    "two children": (
        robot(*TWO, joint("j", "a", "b", '\n<child link="b"/>')),
        5,
        ["<child> of <joint name='j'>", "another <child> in line 4; remove one"],
    ),
    "parent without a link": (
        pair().replace('<parent link="a"/>', "<parent/>"),
        4,
        ["<parent> of <joint name='j'>: the attribute link is missing"],
    ),
    "no type": (pair().replace(' type="revolute"', ""), 4, ["the attribute type is missing"]),
    "no such type": (
        pair("", "revolut"),
        4,
        ["no joint type 'revolut'; did you mean 'revolute'?", "known are fixed"],
    ),
    "no mass": (
        robot(link("a", "<inertial>\n<inertia/></inertial>")),
        2,
        ["<inertial> of <link name='a'>: the element <mass> is missing", 'add <mass value="..."/>'],
    ),
    "no inertia": (
        robot(link("a", '<inertial>\n<mass value="1"/></inertial>')),
        2,
        ["the element <inertia> is missing"],
    ),
    "no mass value": (
        robot(link("a", "<inertial>\n<mass/><inertia/></inertial>")),
        3,
        ["<mass> of <inertial> of <link name='a'>: the attribute value is missing"],
    ),
    "no ixy": (
        robot(link("a", INERTIAL.replace('ixy="0"', ""))),
        2,
        ["<inertia> of <inertial> of <link name='a'>: the attribute ixy is missing"],
    ),
    "too few numbers": (
        pair('\n<origin xyz="0 0"/>'),
        5,
        ["<origin> of <joint name='j'>: xyz needs three numbers, got '0 0'"],
    ),
    "commas": (pair('<axis xyz="0,0,1"/>'), 4, ["xyz needs three numbers, got '0,0,1'"]),
    "no number": (pair(LIMIT.replace('"2"', '"two"')), 4, ["upper needs one number, got 'two'"]),
    "underscores": (pair(LIMIT.replace('"2"', '"1_0"')), 4, ["upper needs one number"]),
    "nan": (pair('<origin rpy="0 nan 0"/>'), 4, ["rpy must be finite, got '0 nan 0'"]),
    "nan limit": (pair(LIMIT.replace('"2"', '"nan"')), 4, ["upper must be finite"]),
    "infinite mass": (pair().replace('"2"/><inertia', '"inf"/><inertia'), 2, ["must be finite"]),
    "negative mass": (
        pair().replace('"2"/><inertia', '"-2"/><inertia'),
        2,
        ["<link name='a'>: mass is -2.0 kg; it must not be negative"],
    ),
    "zero axis": (
        pair('\n<axis xyz="0 0 0"/>'),
        5,
        ["<axis> of <joint name='j'>: the axis is zero; give it a direction"],
    ),
    "axis without numbers": (pair("<axis/>"), 4, ["<axis>", "xyz is missing"]),
    "helical without a pitch": (
        pair('<axis xyz="0 0 1"/>' + LIMIT, "helical"),
        4,
        ["<axis> of <joint name='j'>: the attribute pitch is missing"],
    ),
    "lower above upper": (
        pair(LIMIT.replace('"2"', '"-2"')),
        4,
        ["<joint name='j'>: the lower limit", "lies above the upper limit", "exchange"],
    ),
    "negative effort": (pair(LIMIT.replace('"4"', '"-4"')), 4, ["max_effort", "not be negative"]),
    "negative damping": (
        pair(LIMIT + '<dynamics damping="-1"/>'),
        4,
        ["damping", "not be negative"],
    ),
    "mimic of nothing": (
        robot(*TWO, joint("finger_1", "a", "b", '<mimic joint="finger_2"/>' + LIMIT)),
        4,
        ["<joint name='finger_1'>: mimics the joint 'finger_2', which does not exist"],
    ),
    "mimic without a joint": (
        pair("<mimic/>" + LIMIT),
        4,
        ["<mimic> of <joint", "joint is missing"],
    ),
    "mimic of itself": (
        pair('<mimic joint="j"/>' + LIMIT),
        4,
        ["'j' mimics itself; let it follow"],
    ),
    "mimics in a ring": (
        robot(
            *(*TWO, link("c")),
            joint("j", "a", "b", '<mimic joint="k"/>' + LIMIT),
            joint("k", "a", "c", '<mimic joint="j"/>' + LIMIT),
        ),
        6,
        ["'j' mimics itself by way of k"],
    ),
    "mimic of a ball joint": (
        robot(
            *(*TWO, link("c"), joint("j", "a", "b", "", "ball")),
            joint("k", "a", "c", '<mimic joint="j"/>' + LIMIT),
        ),
        6,
        ["<joint name='k'>", "'j' has 3"],
    ),
    "mimic by a planar joint": (
        robot(
            *(*TWO, link("c"), joint("j", "a", "b")),
            joint("k", "a", "c", '<mimic joint="j"/>', "planar"),
        ),
        6,
        ["<joint name='k'>", "'k' has 3"],
    ),
    "xacro": (
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">\n'
        '<xacro:macro name="m"/>\n</robot>',
        2,
        ["<xacro:macro> is a xacro macro", "expand the file first: xacro"],
    ),
    "xacro by another name": (
        '<robot name="r" xmlns:x="http://ros.org/wiki/xacro">\n<x:macro name="m"/>\n</robot>',
        2,
        ["expand the file first"],
    ),
    "xacro without a namespace": ("<robot>\n<xacro:leg/>\n</robot>", 2, ["expand the file first"]),
    "xacro property": (
        robot('<link name="${side}_leg"/>'),
        2,
        ["'${side}_leg'", "expand the file"],
    ),
    "external entity": (
        f'<!DOCTYPE robot [\n<!ENTITY b SYSTEM "b.xml">]>{robot(link("a"), "&b;")}',
        2,
        ["<!ENTITY b> takes a part of the text from another file", "put what it stands for"],
    ),
    "external parameter entity": (
        f'<!DOCTYPE robot [\n<!ENTITY % b SYSTEM "b.dtd">\n%b;]>{robot(link("a"), "&c;")}',
        2,
        ["<!ENTITY b> takes a part of the text from another file"],
    ),
    "external DTD": (
        f'<!DOCTYPE robot\nPUBLIC "b" "http://b/b.dtd">{robot(link("a"), "&b;")}',
        2,
        ["<!DOCTYPE> takes a document type from another file"],
    ),
    "deep nesting": (
        robot(link("a"), "<b>" * 10_000, "</b>" * 10_000),
        3,
        ["<b> of <b> of <b> of <b>: elements are nested more than 100 deep"],
    ),
    "long attribute": (
        robot(link("a" * 100_000, INERTIAL.replace('"2"', f'"{"b" * 100_000}"'))),
        2,
        ["<link name='aaa", "...aaa", "value needs one number, got 'bbb", "...bbb"],
    ),
    "empty name": (robot(link("a"), link("")), 3, ["its name is empty; give it one"]),
    "large numbers": (
        robot(link("a", INERTIAL.replace('ixx="1"', 'ixx="1e308"'))),
        2,
        ["<inertia> of <inertial> of <link name='a'>: ixx must be at most 1e+30, got '1e308'"],
    ),
    "long names of elements": (f"<{'a' * 100_000}/>", 1, ["<aaa", "...aaa", "root element"]),
    "line breaks in a name": (
        robot(*TWO, link("c"), joint("j&#10;&#x85;k", "a", "d")),
        5,
        ["'j", "k'", "the link 'd' does not exist"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(read, tmp_path, mistake):
    text, line, parts = MISTAKES[mistake]
    with pytest.raises(ModelError) as error:
        read(text)
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'robot.urdf'}:{line}: ")
    assert "\n" not in message and len(message) < 2500
    for part in parts:
        assert part in message


def test_entities_of_the_file_itself_are_used(read):
    """And elements nobody needs may be many and named at length, in little memory."""
    text = pair().replace("<link", "&mass;<link", 1).replace('mass value="2"', 'mass value="&two;"')
    system = read(f'<!DOCTYPE robot [<!ENTITY mass ""> <!ENTITY two "2">]>{text}')
    assert system.bodies.mass.tolist() == [2, 2]


def test_labels_of_nested_elements_take_no_memory(remarks):
    nested = f'<b name="{"n" * 500}">' * 90 + "<b/>" * 2000 + "</b>" * 90
    tracemalloc.start()
    _, messages = remarks(pair(LIMIT + nested))
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()
    assert len(messages) == 1 and "not used: joint/b (1" in messages[0]


def test_warnings_are_those_of_the_line_that_loads(remarks, tmp_path):
    """And short, whatever the file says."""
    _, messages = remarks(pair(LIMIT + "".join(f"<b{i}{'x' * 50}/>" for i in range(2000))))
    assert len(messages[0]) < 2500
    for text, reader in ((pair("<b/>"), io.load), (pair("<b/>"), read_urdf)):
        (tmp_path / "robot.urdf").write_text(text)
        with pytest.warns(UserWarning, match="not used") as caught:
            reader(tmp_path / "robot.urdf")
        assert {w.filename for w in caught} == {__file__}


def test_an_expanded_file_that_still_declares_xacro_is_read(read):
    declared = pair().replace("<robot", '<robot xmlns:xacro="http://ros.org/wiki/xacro"')
    assert read(declared).nv == 1


def test_the_base_must_be_known(read):
    with pytest.raises(
        ModelError, match="'fix'; it must be 'fixed' or 'free'; did you mean 'fixed'"
    ):
        read(pair(), base="fix")


# Files.


def test_load_takes_urdf_by_any_name_it_goes_by(tmp_path):
    for name in ("robot.urdf", "robot.URDF", "robot.xml"):
        (tmp_path / name).write_text(pair())
        assert io.load(tmp_path / name, base="free", gravity=(0, 0, 0)).nv == 7
        assert io.load(str(tmp_path / name)).nv == 1


def test_load_names_what_is_supported(tmp_path):
    (tmp_path / "robot.xml").write_text("<scene/>")
    with pytest.raises(ValueError, match="<scene>; what is read is URDF"):
        io.load(tmp_path / "robot.xml")
    with pytest.raises(ValueError, match=r"robot\.usd: a file \.usd is not supported; .* URDF"):
        io.load(tmp_path / "robot.usd")
    (tmp_path / "robot.urdf.xacro").write_text("<robot><xacro:leg/></robot>")
    with pytest.raises(ValueError, match="expand the file first"):
        io.load(tmp_path / "robot.urdf.xacro")


@pytest.mark.parametrize("reader", [io.load, read_urdf])
def test_files_that_are_none(tmp_path, reader):
    (tmp_path / "panda.urdf").write_text(pair())
    with pytest.raises(FileNotFoundError, match=r"panad\.urdf does not exist; did you mean 'panda"):
        reader(tmp_path / "panad.urdf")
    # Names that share their ending only are not near.
    (tmp_path / "b.urdf").touch()
    with pytest.raises(FileNotFoundError, match=r"robot\.urdf does not exist$"):
        reader(tmp_path / "robot.urdf")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        reader(tmp_path / "no" / "robot.urdf")
    with pytest.raises(FileNotFoundError, match="is a directory"):
        reader(tmp_path)


# The robots of example-robot-data, against Pinocchio.


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_robots_that_are_refused(name):
    if name not in FILES:
        pytest.skip("needs example-robot-data")
    with pytest.raises(ModelError, match=REFUSED[name].replace("?", r"\?")):
        io.load(ROBOTS / name)


@pytest.mark.parametrize("name", [name for name in FILES if name not in REFUSED])
def test_robots_are_those_of_pinocchio(name):
    pin = pytest.importorskip("pinocchio")
    path = str(ROBOTS / name)
    model = pin.buildModelFromUrdf(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = io.load(path)
    messages = [str(w.message) for w in caught]
    assert sum("not used" in m for m in messages) <= 1
    assert any("moves no mass" in m for m in messages) == (name in MASSLESS)
    same_machine(pin, model, system)


def same_machine(pin, model, system):
    """Names, degrees of freedom, limits, friction, places, axes and inertias are equal."""
    system = jax.tree.map(np.asarray, system)  # indexing NumPy is far faster
    t, joints = system.topology, system.joints
    assert system.name == model.name
    links = {f.name for f in model.frames if f.type == pin.FrameType.BODY}
    assert set(system.body_names) == links and len(system.body_names) == len(links)
    moving = [b for b, kinds in enumerate(t.kinds) if kinds]
    assert sorted(t.joints[b] for b in moving) == sorted(model.names[1:])
    assert t.n_dofs == model.nv
    assert system.nv == model.nv - sum(m is not None for m in t.mimics)

    data = model.createData()
    q = pin.neutral(model)
    pin.framesForwardKinematics(model, data, q)
    pin.computeJointJacobians(model, data, q)
    world = pin.LOCAL_WORLD_ALIGNED
    places, carriers = [], []
    inertias = np.zeros((model.njoints, 6, 6))
    for b, parent in enumerate(t.parents):
        place = pin.SE3(pin.exp3(joints.rotation[b]), joints.position[b])
        places.append(place if parent < 0 else places[parent] * place)
        frame = data.oMf[model.getFrameId(t.bodies[b], pin.FrameType.BODY)]
        np.testing.assert_allclose(places[b].homogeneous, frame.homogeneous, atol=1e-12)
        mine = (
            model.getJointId(t.joints[b]) if t.kinds[b] else carriers[parent] if parent >= 0 else 0
        )
        carriers.append(mine)
        m, inertia = system.bodies.mass[b], system.bodies.inertia[b]
        c = pin.skew(system.bodies.com[b])
        spatial = np.block([[m * np.eye(3), -m * c], [m * c, inertia - m * c @ c]])
        x = places[b].actInv(data.oMi[mine]).action
        inertias[mine] += x.T @ spatial @ x
    for mine, theirs in zip(inertias, model.inertias, strict=True):
        np.testing.assert_allclose(mine, theirs.matrix(), rtol=1e-9, atol=1e-12)

    for b in moving:
        j = model.getJointId(t.joints[b])
        row, v, at = t.dof_start[b], model.joints[j].idx_v, model.joints[j].idx_q
        column = pin.getJointJacobian(model, data, j, world)[:, v]
        half = column[:3] if t.kinds[b] == ("prismatic",) else column[3:]
        np.testing.assert_allclose(places[b].rotation @ joints.axis[row], half, atol=1e-9)
        if t.types[b].type_name() != "continuous":  # there Pinocchio limits the cosine and the sine
            assert joints.lower[row] == model.lowerPositionLimit[at]
            assert joints.upper[row] == model.upperPositionLimit[at]
        assert joints.max_velocity[row] == model.upperVelocityLimit[v]
        assert joints.max_effort[row] == model.upperEffortLimit[v]
        assert joints.damping[row] == model.damping[v]
        assert joints.friction[row] == model.upperDryFrictionLimit[v]


def test_a_free_base_is_that_of_pinocchio(tmp_path):
    pin = pytest.importorskip("pinocchio")
    path = tmp_path / "robot.urdf"
    path.write_text(pair())
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    system = read_urdf(path, base="free")
    assert system.joint_names == tuple(model.names)[1:]
    assert (system.nq, system.nv) == (model.nq, model.nv)


@pytest.mark.parametrize(
    "name",
    [
        "panda_description/urdf/panda.urdf",
        "baxter_description/urdf/baxter.urdf",
        "pr2_description/urdf/pr2.urdf",
        "tiago_pro_description/robots/tiago_pro.urdf",
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_mimics_are_those_of_pinocchio(name):
    pin = pytest.importorskip("pinocchio")
    if name not in FILES:
        pytest.skip("needs example-robot-data")
    model = pin.buildModelFromUrdf(str(ROBOTS / name), mimic=True)
    system = io.load(ROBOTS / name)
    assert system.nv == model.nv
    t = system.topology
    mine = {t.joints[b]: t.joints[m] for b, m in enumerate(t.mimics) if m is not None}
    pairs = zip(model.mimicking_joints, model.mimicked_joints, strict=True)
    assert mine == {model.names[a]: model.names[b] for a, b in pairs}


@pytest.mark.filterwarnings("ignore")
def test_a_robot_with_a_mended_mimic_is_read(tmp_path):
    """The hands whose mimics name no joint are read when these are named in full."""
    name = "alex_description/urdf/alex_psyonic_hands.urdf"
    if name not in FILES:
        pytest.skip("needs example-robot-data")
    text = re.sub(
        r'<joint\b[^>]*name="(Left|Right)_.*?</joint>',
        lambda found: re.sub(r'(<mimic\b[^>]*joint *= *")', rf"\1{found[1]}_", found[0]),
        (ROBOTS / name).read_text(),
        flags=re.DOTALL,
    )
    path = tmp_path / "hands.urdf"
    path.write_text(text)
    assert io.load(path).nv == 39 - 8


# Newer versions, and what is no URDF.


ORIGIN = '<origin xyz="0.2 0.1 0.3" {}/>' + LIMIT
QUATERNION = 'quat_xyzw="0.1 -0.3 0.5 0.806225775"'


def test_quaternions_are_read(read, remarks, tmp_path):
    """quat_xyzw of URDF 1.1, of joints and of inertias, of any length; saved with the original."""
    text = robot(
        link("a"),
        link("b", INERTIAL.replace("<inertial>", f"<inertial><origin {QUATERNION}/>")),
        joint("j", "a", "b", ORIGIN.format(QUATERNION)),
    )
    text = text.replace("<robot", '<robot version="1.1"')
    system = read(text)
    turn = Rotation.from_quat([0.1, -0.3, 0.5, 0.806225775])
    np.testing.assert_allclose(system.joints.rotation[1], turn.as_rotvec(), atol=1e-12)
    plain = read(text.replace(f"<origin {QUATERNION}/>", ""))
    R = turn.as_matrix()
    np.testing.assert_allclose(
        system.bodies.inertia[1], R @ plain.bodies.inertia[1] @ R.T, atol=1e-12
    )
    doubled = text.replace(QUATERNION, 'quat_xyzw="0.2 -0.6 1 1.61245155"')
    again, (message,) = remarks(doubled)
    assert "quat_xyzw not of unit length, normalised (2, first line" in message
    np.testing.assert_allclose(again.joints.rotation, system.joints.rotation, atol=1e-9)
    path, copy = tmp_path / "robot.urdf", tmp_path / "copy.urdf"
    path.write_text(text)
    dl.save(system, copy, original=path)
    assert 'version="1.1"' in copy.read_text()
    np.testing.assert_allclose(read_urdf(copy).joints.rotation, system.joints.rotation, atol=1e-15)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (ORIGIN.format(f'rpy="0 0 1" {QUATERNION}'), "it has rpy and quat_xyzw; leave one"),
        (ORIGIN.format('quat_xyzw="0 0 0 0"'), "quat_xyzw is zero"),
        (f"<origin>0.2 0.1 0.3</origin>{LIMIT}", "<origin> .* its text '0.2 0.1 0.3' is not read"),
        (f"<dynamics>0.5</dynamics>{LIMIT}", "<dynamics> .* its text '0.5' is not read"),
        ('<origin xyz="0,2 0,1 0,3"/>' + LIMIT, "got '0,2 0,1 0,3'; write decimal points"),
    ],
)
def test_what_is_no_attribute_and_no_number(read, inside, words):
    """Text in place of attributes, two rotations, decimal commas: none of it is skipped."""
    with pytest.raises(dl.ModelError, match=words):
        read(pair(inside))


def test_text_between_elements_is_named(remarks):
    """Where it stands for nothing."""
    _, (message,) = remarks(pair(LIMIT + " stray ").replace("</robot>", "x</robot>"))
    assert "not used: text in robot (1, first line 1), text in joint (1, first line 4)" in message


def test_words_of_other_formats(read):
    """A screw, a hinge; joints in another namespace leave links without a parent."""
    for kind, words in (
        ("screw", "'screw', which is called helical here, with its pitch in m/rad"),
        ("hinge", "'hinge', which is called revolute here"),
    ):
        with pytest.raises(dl.ModelError, match=words):
            read(pair(kind=kind))
    foreign = joint("k", "a", "c").replace("<joint", "<other:joint", 1)[: -len("</joint>")]
    text = robot(link("a"), link("b"), link("c"), joint("j", "a", "b"), foreign + "</other:joint>")
    with pytest.raises(dl.ModelError, match="<other:joint> in line 6, which has 'c' as its child"):
        read(text.replace("<robot", '<robot xmlns:other="d"'))


@pytest.mark.parametrize(
    "inside",
    [
        '<origin rpy="90 0 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/>',
        '<origin rpy="90 45 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/>',
        '<limit effort="1" velocity="1" lower="-90" upper="90"/>',
    ],
)
def test_degrees_of_a_file_are_warned_of(tmp_path, inside):
    """Guards the warning of angles in degrees, for one angle and for several."""
    (tmp_path / "robot.urdf").write_text(pair(inside))
    with pytest.warns(UserWarning, match=r"robot\.urdf.*degrees; radians are needed"):
        io.load(tmp_path / "robot.urdf")
