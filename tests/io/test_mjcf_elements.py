"""Actuators, flags, friction and files in MJCF, against MuJoCo's own model."""

import warnings

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import difflie as dl
from difflie import control as dc
from difflie.io.mjcf.check import _MOST_COPIES

BOX = '<geom type="box" size=".1 .03 .02" pos=".1 0 0" mass="1.3" contype="0" conaffinity="0"/>'
FILE = """<mujoco><option>{option}</option><worldbody><body name="a" pos="0 0 .3">
<joint name="j" {joint}/>{geom}</body></worldbody>{rest}</mujoco>"""


def read(path, joint, option="", rest="", geom=BOX):
    """The system of one body on a joint, MuJoCo's model and its ordering, and the warnings."""
    path = path / "m.xml"
    path.write_text(FILE.format(joint=joint, option=option, rest=rest, geom=geom))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = dl.load(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    return system, model, " ".join(str(w.message) for w in caught)


def accelerations(system, model, speed=1.0):
    """Of the body in some state: with all passive forces, here and in MuJoCo."""
    ordering = dl.MujocoOrdering(system, model)
    rng = np.random.default_rng(3)
    q = system.manifold.retract(system.neutral(), jnp.asarray(0.4 * rng.normal(size=system.nv)))
    v = jnp.asarray(speed * rng.normal(size=system.nv))
    data = mujoco.MjData(model)
    data.qpos, data.qvel = np.asarray(ordering.q(q)), np.asarray(ordering.v(q, v))
    mujoco.mj_forward(model, data)
    found = dl.forward_dynamics(system, q, v, dl.passive_force(system, q, v))
    return ordering.a(q, v, found), data.qacc


ACTUATOR = "<actuator><motor {} {}/></actuator>"
HEAVY = 'armature="0.02" damping="0.03"'
needs_mujoco_4 = pytest.mark.skipif(
    mujoco.__version__ < "4", reason="this MuJoCo has no armature and damping of actuators"
)


@needs_mujoco_4
@pytest.mark.parametrize("gear", ["3 0 0 0 0 0", "-2 1 5 0 0 0", "0 4 0 0 0 0"])
@pytest.mark.parametrize("on", ["joint", "jointinparent"])
def test_actuators_of_ball_joints_are_heavy(tmp_path, gear, on):
    """Their armature and damping enter M and qacc, as in MuJoCo by the gear's first number."""
    motor = ACTUATOR.format(f'{on}="j" gear="{gear}"', HEAVY)
    system, model, said = read(tmp_path, 'type="ball" damping=".1" armature=".01"', rest=motor)
    ours, theirs = accelerations(system, model)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert "actuators of ball and free joints but for armature and damping (number 0)" in said


@needs_mujoco_4
def test_heavy_actuators_of_tendons(tmp_path):
    """Their armature and damping are along the tendon."""
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="2"/></fixed></tendon>'
    motor = ACTUATOR.format('name="m" tendon="t" gear="3"', HEAVY)
    system, model, said = read(tmp_path, "", rest=tendon + motor)
    ours, theirs = accelerations(system, model)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert "actuators of tendons and others but for armature and damping ('m')" in said


@pytest.mark.parametrize(
    "flags",
    [
        'constraint="disable"',
        'frictionloss="disable"',
        'damper="disable"',
        'spring="disable"',
        'spring="disable" damper="disable"',
    ],
)
def test_flags_switch_off(tmp_path, flags):
    """Friction, dampers and springs of joints and tendons, and the medium without both of these."""
    joint = 'axis="0 1 0" damping=".4" stiffness="4" frictionloss="{}"'.format(
        "0.9" if "constraint" in flags or "frictionloss" in flags else "0"
    )
    rest = '<tendon><spatial stiffness="30" damping="2"><site site="s"/><site site="e"/></spatial>'
    geom = BOX + '<site name="e" pos=".2 0 0"/></body><body pos="0 0 1"><site name="s"/>'
    option = f"<flag {flags}/>"
    system, model, said = read(tmp_path, joint, option, rest + "</tendon>", geom)
    ours, theirs = accelerations(system, model)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert "option" not in said


def test_friction_of_free_joints_is_along_the_world(tmp_path):
    """A body that is turned by 45 degrees and slides along x: 0.50 N, not 0.707 N."""
    joint = 'type="free" damping=".2" frictionloss=".5"'
    heavy = BOX.replace("1.3", "1300")  # MuJoCo's friction is soft, and would hold a light body
    system, model, _ = read(tmp_path, joint, '<flag gravity="disable"/>', geom=heavy)
    turned = dl.quaternion.exp(jnp.array([0.0, 0.0, jnp.pi / 4]))
    q = jnp.concatenate((turned, jnp.zeros(3)))
    v = jnp.array([0.0, 0.0, 0.0, 1.0, -1.0, 0.0]) / jnp.sqrt(2)
    force = dl.MujocoOrdering(system, model).tau(q, dl.passive_force(system, q, v))
    np.testing.assert_allclose(force[:3], [-0.5 - 0.2, 0, 0], atol=1e-12)
    # Its angular part is about the axes of the body, there too.
    ours, theirs = accelerations(system, model, 5.0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    assert not dl.load(tmp_path / "m.xml", base="fixed").couplings


def test_uneven_efforts_are_limits(tmp_path):
    """A range of -3 to 4 is no limit of 4 both ways; signs of gears count; a file keeps it."""
    rest = ACTUATOR.format('joint="j" gear="-5"', 'ctrlrange="-2 .7"')
    system, _, said = read(tmp_path, 'actuatorfrcrange="-3 4"', rest=rest)
    assert system.joints.max_effort.tolist() == [4] and system.joints.min_effort.tolist() == [-3]
    assert "effort of" not in said
    low, high = dc.Limits.of(system).u_lower, dc.Limits.of(system).u_upper
    assert (low.tolist(), high.tolist()) == ([-3], [4])
    assert "-3 to 4 N m" in str(system)
    dl.save(system, tmp_path / "again.urdf")
    assert dl.load(tmp_path / "again.urdf").joints.min_effort.tolist() == [-3]
    system, _, said = read(tmp_path, "", rest=ACTUATOR.format('joint="j"', 'ctrlrange="0 2"'))
    assert [x.tolist() for x in system.joints.effort_limits] == [[0], [2]]
    system, _, said = read(tmp_path, "", rest=ACTUATOR.format('joint="j"', 'ctrlrange="1 2"'))
    assert "the effort of 'j' is between 1 and 2 N m, and may be 0 here" in said
    assert "effort of" not in read(tmp_path, "")[2]
    plain = read(tmp_path, 'actuatorfrcrange="-4 4"')[0].replace(max_effort=np.array([2.0]))
    assert [x.tolist() for x in plain.joints.effort_limits] == [[-2], [2]]


LOST = '<inertial pos="0 0 .1" mass="1" diaginertia=".01 .01 .01"/><geom name="g" {}/>'
MESH = '<asset><mesh name="m" file="gone.stl"/></asset>'


@pytest.mark.parametrize(
    ("geom", "rest", "said"),
    [
        ('type="mesh" mesh="m"', MESH + '<sensor><contact geom1="g"/></sensor>', "gone.stl"),
        (
            'type="mesh" mesh="m"',
            MESH + '<contact><pair geom1="g" geom2="h"/></contact>',
            "skipped: gone.stl",
        ),
        (
            'type="cylinder" mesh="m"',
            MESH + '<tendon><spatial name="t" stiffness="3"><site site="s"/><geom geom="g"/>'
            '<site site="e"/></spatial></tendon>',
            "tendons around shapes that are missing ('t')",
        ),
        ('size=".1"', '<deformable><skin name="s" file="gone.skn"/></deformable>', "gone.skn"),
        (
            'size=".1" material="m"',
            '<asset><texture name="t" type="cube" fileup="up.png" filedown="down.png"/>'
            '<material name="m" texture="t"/></asset>',
            "up.png, down.png",
        ),
    ],
    ids=["sensor", "pair", "tendon", "skin", "cube"],
)
def test_missing_files_that_no_motion_depends_on(tmp_path, geom, rest, said):
    """Sensors, pairs and tendons name the geoms of lost meshes; cubes have several files."""
    more = '<geom name="h" size=".1" pos="1 0 0"/><site name="s"/><site name="e" pos="0 0 1"/>'
    path = tmp_path / "m.xml"
    path.write_text(FILE.format(joint="", option="", rest=rest, geom=LOST.format(geom) + more))
    with pytest.warns(UserWarning, match="skipped") as caught:
        system = dl.load(path)
    (message,) = (str(w.message) for w in caught)
    assert said in message and "missing, and skipped" in message
    assert system.bodies.mass.tolist() == [1.0]


BODY = '<body name="{0}"><joint name="j{0}"/><geom size=".1"/></body>'
PART = f"<mujocoinclude>{BODY.format('b')}</mujocoinclude>"
MODEL = f"<mujoco><worldbody>{BODY.format('b')}</worldbody></mujoco>"
INCLUDES = '<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>'
ATTACHES = (
    '<mujoco><asset><model name="m" file="part.xml"/></asset><worldbody>'
    '<attach model="m" body="b" prefix="x"/></worldbody></mujoco>'
)


@pytest.mark.parametrize(
    ("main", "part", "words"),
    [
        (INCLUDES, PART * 2, r"part.xml:1: something follows the root element"),
        (ATTACHES, MODEL + PART, r"part.xml:1: something follows the root element"),
        (
            INCLUDES,
            '<!DOCTYPE a [<!ENTITY d ".5">]>' + PART.replace("<joint", '<joint damping="&d;"'),
            r"part.xml:1: <!ENTITY d> is not expanded in MJCF",
        ),
        (
            INCLUDES.replace("<include", '<replicate count="70"><include').replace(
                "</world", "</replicate></world"
            ),
            PART.replace("<body", '<replicate count="60"><body').replace(
                "</mujoco", "</replicate></mujoco"
            ),
            rf"part.xml:1: <replicate> makes 4200 copies, more than {_MOST_COPIES}",
        ),
        (
            ATTACHES.replace("<attach", '<replicate count="70"><attach').replace(
                "</world", "</replicate></world"
            ),
            MODEL.replace("<body", '<replicate count="60"><body').replace(
                "</world", "</replicate></world"
            ),
            r"part.xml:1: <replicate> makes 4200 copies",
        ),
        (ATTACHES, ATTACHES, r"part.xml: it takes in .*part.xml, which it is a part of"),
    ],
)
def test_files_inside_are_checked(tmp_path, main, part, words):
    """What MuJoCo drops of them without a word, and how much they make."""
    (tmp_path / "m.xml").write_text(main)
    (tmp_path / "part.xml").write_text(part)
    with pytest.raises(dl.ModelError, match=words):
        dl.load(tmp_path / "m.xml")


def test_files_inside_are_found_where_mujoco_finds_them(tmp_path):
    """Beside the model, then beside the file that includes; of what is attached beside itself."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "m.xml").write_text(ATTACHES.replace("part", "inner/part"))
    (inner / "part.xml").write_text(MODEL.replace("<joint", '<include file="rest.xml"/><joint'))
    (inner / "rest.xml").write_text("<mujocoinclude><site/></mujocoinclude><mujocoinclude/>")
    with pytest.raises(dl.ModelError, match=r"inner/rest.xml:1: something follows"):
        dl.load(tmp_path / "m.xml")
    (inner / "rest.xml").write_text("<mujocoinclude><site/></mujocoinclude>")
    with pytest.warns(UserWarning, match="not used"):
        assert dl.load(tmp_path / "m.xml").joint_names == ("xjb",)
