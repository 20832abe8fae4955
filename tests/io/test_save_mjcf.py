"""Systems written as MJCF: MuJoCo moves them alike, and they are read back equal."""

import dataclasses
import importlib.metadata
import struct
import sys
import warnings

import equinox as eqx
import jax
import mujoco
import numpy as np
import pytest
from test_equalities import LOOPS
from test_keyframes import XML as KEYS
from test_mjcf import GANTRY, TENSEGRITY, WALKER
from test_mjcf_actuators import ACTIVE, CRANKS, DRIVEN, SITES, STATELESS, TENDONS, TREE, WRAPPED
from test_mjcf_passive import SPRINGS, VECTORS
from test_mjcf_sensors import XML as SENSORS

import difflie as dl
from difflie import constraints as dc
from difflie.identify.fitting import save_bare
from difflie.io.mjcf.names import actuator_names, body_names, joint_names, site_names

pytestmark = pytest.mark.skipif(
    int(mujoco.__version__.split(".")[0]) < 4, reason="the files are of MuJoCo 4"
)
OFF = mujoco.mjtDisableBit
FLAGS = OFF.mjDSBL_CONTACT, OFF.mjDSBL_LIMIT, OFF.mjDSBL_FRICTIONLOSS


def quietly(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


def model_of(path):
    """MuJoCo's model of a file, without contacts, limits and dry friction."""
    model = mujoco.MjModel.from_xml_path(str(path))
    for flag in FLAGS:
        model.opt.disableflags |= int(flag)
    return model


def check_motion(old, new, states=3):
    """Accelerations, rates of activations and sensors are the same in random states."""
    rng = np.random.default_rng(0)
    for _ in range(states):
        a, b = mujoco.MjData(old), mujoco.MjData(new)
        q = old.qpos0.copy()
        mujoco.mj_integratePos(old, q, 0.4 * rng.normal(size=old.nv), 1)
        a.qpos, b.qpos = q, q
        for j in np.flatnonzero(old.jnt_type >= 2):
            # Only `ref` may be another, which is no part of a system.
            at = old.jnt_qposadr[j]
            b.qpos[at] = q[at] - old.qpos0[at] + new.qpos0[at]
        a.qvel = b.qvel = rng.normal(size=old.nv)
        if new.nu:
            a.ctrl = b.ctrl = rng.normal(size=new.nu)
        a.act = b.act = rng.uniform(size=old.na)
        mujoco.mj_forward(old, a)
        mujoco.mj_forward(new, b)
        scale = max(1.0, np.abs(a.qacc).max(initial=0))
        np.testing.assert_allclose(b.qacc, a.qacc, rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(b.act_dot, a.act_dot, rtol=0, atol=1e-12)
        for name in {new.sensor(k).name for k in range(new.nsensor)}:
            if mujoco.mj_name2id(old, mujoco.mjtObj.mjOBJ_SENSOR, name) < 0:
                continue  # it has no name in the original
            one, other = a.sensor(name), b.sensor(name)
            np.testing.assert_allclose(other.data, one.data, atol=1e-10 * scale, err_msg=name)


def check_equal(loaded, system):
    """All numbers that both have are equal; the other has at most frames besides."""
    assert loaded.topology == system.topology
    frames = {name: loaded.frames[name] for name in system.frames}
    loaded = dataclasses.replace(loaded, frames=frames)
    assert jax.tree.structure(loaded) == jax.tree.structure(system)
    for new, old in zip(jax.tree.leaves(loaded), jax.tree.leaves(system), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-12, atol=1e-12)


ACTUATED = {"stateless": STATELESS, "sites": SITES, "cranks": CRANKS, "tendons": TENDONS}
ACTUATED |= {"active": ACTIVE, "driven": DRIVEN}
WRAPS = {
    kind: WRAPPED.format(kind=kind, one='sidesite="up"', other='sidesite="down"')
    for kind in ("sphere", "cylinder")
}
CASES = {
    **{name: (TREE.format(text), True) for name, text in ACTUATED.items()},
    **{kind: (text, True) for kind, text in WRAPS.items()},
    "walker": (WALKER, False),
    "gantry": (GANTRY, True),
    "undriven": (GANTRY, False),
    "tensegrity": (TENSEGRITY, False),
    "springs": (TREE.format(SPRINGS), False),
    "vectors": (VECTORS, False),
    "weightless": (VECTORS.replace('name="b"', 'name="b" gravcomp=".7"'), False),
    # Its softness, of which torquescale is a part, is MuJoCo's alone.
    "loops": (LOOPS.replace('torquescale="0.7"', ""), False),
    "keys": (KEYS, True),
}


def written(tmp_path, text, actuators):
    """The system in a file, and both files: the old one, and that which is written."""
    old, new = tmp_path / "old.xml", tmp_path / "new.xml"
    old.write_text(text)
    system = quietly(dl.load, old, actuators=actuators)
    quietly(dl.save, system, new)
    return system, old, new


@pytest.mark.parametrize("case", CASES)
def test_mujoco_moves_the_written_file_as_the_original(tmp_path, case):
    """Accelerations of MuJoCo in both files, names, and all numbers when it is read back."""
    text, actuators = CASES[case]
    system, old, new = written(tmp_path, text, actuators)
    models = model_of(old), model_of(new)
    if not actuators:
        models[0].opt.disableflags |= int(OFF.mjDSBL_ACTUATION)
    check_motion(*models)
    for names in (body_names, joint_names, *([actuator_names] if actuators else [])):
        assert names(models[0]) == names(models[1])
    assert {*site_names(models[0])} <= {*site_names(models[1])}
    check_equal(quietly(dl.load, new, actuators=actuators), system)


def test_fluids_and_sensors(tmp_path):
    """The medium, whose boxes may get other axes, and sensors, whose frames may become sites."""
    option = '<option density="3" viscosity=".2" wind="1 2 3">'
    _, old, new = written(tmp_path, VECTORS.replace("<option>", option), False)
    check_motion(model_of(old), model_of(new))
    system, old, new = written(tmp_path, SENSORS, True)
    check_motion(model_of(old), model_of(new))
    again = quietly(dl.load, new, actuators=True)
    assert [s.name for s in again.sensors] == [s.name for s in system.sensors]
    assert [(s.noise, s.cutoff) for s in again.sensors] == [
        (s.noise, s.cutoff) for s in system.sensors
    ]


def check_dynamics(system, path):
    """The accelerations here are MuJoCo's; joints are hinges, slides, balls and free ones."""
    model = model_of(path)
    model.opt.disableflags |= int(OFF.mjDSBL_EQUALITY)
    ordering, rng = dl.MujocoOrdering(system, model), np.random.default_rng(1)
    smooth = system.replace(friction=0 * system.joints.friction)
    q = smooth.manifold.retract(smooth.neutral(), 0.4 * rng.normal(size=smooth.nv))
    v, data = rng.normal(size=smooth.nv), mujoco.MjData(model)
    data.qpos, data.qvel = np.asarray(ordering.q(q)), np.asarray(ordering.v(q, v))
    mujoco.mj_forward(model, data)
    a = dl.forward_dynamics(smooth, q, v, dl.passive_force(smooth, q, v))
    scale = np.abs(data.qacc).max()
    np.testing.assert_allclose(ordering.a(q, v, a), data.qacc, rtol=0, atol=1e-10 * scale)
    full = np.zeros((model.nv, model.nv))
    for k, e in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, full[k], e)
    own = np.stack([ordering.tau(q, row) for row in dl.mass_matrix(smooth, q)])
    mine = np.stack([ordering.tau(q, column) for column in own.T])
    np.testing.assert_allclose(mine, full, rtol=0, atol=1e-10 * np.abs(full).max())


def test_a_urdf_arm_becomes_mjcf(tmp_path):
    """Of the shipped arm: mass matrix and accelerations are MuJoCo's, and what is lost is named."""
    system, path = dl.load(dl.examples.path("arm7")), tmp_path / "arm.mjcf"
    with pytest.warns(UserWarning, match="no part of a system: material.*max_velocity") as caught:
        dl.save(system, path)
    assert len(caught) == 1 and caught[0].filename == __file__
    check_dynamics(system, path)
    again = quietly(dl.load, path)
    np.testing.assert_allclose(again.joints.upper, system.joints.upper, rtol=1e-15)
    np.testing.assert_array_equal(again.joints.max_effort, system.joints.max_effort)


ROBOTS = (
    "ur_description/urdf/ur5_robot.urdf",
    "solo_description/robots/solo12.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "g1_description/urdf/g1_29dof_rev_1_0.urdf",
)


@pytest.mark.slow
@pytest.mark.thorough("talos*")
@pytest.mark.parametrize("name", ROBOTS)
def test_urdf_robots_become_mjcf(tmp_path, name):
    """Floating robots of URDF: mass matrix and accelerations are MuJoCo's."""
    try:
        package = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs example-robot-data")
    file = package.locate_file(f"cmeel.prefix/share/example-robot-data/robots/{name}")
    system = quietly(dl.load, file, base="free")
    quietly(dl.save, system, tmp_path / "x.xml")
    check_dynamics(system, tmp_path / "x.xml")


BODY = {"mass": 1.3, "com": (0.1, 0.02, 0.3), "inertia": np.diag([0.3, 0.2, 0.25])}


def branched(mimic):
    """Bodies on joints of several axes, and one that may follow another."""
    plane = dl.Planar(damping=(0.1, 0.2, 0.3))
    last = dl.Prismatic(mimic=dl.Mimic("h", 0.3, 0.1) if mimic else None)
    return dl.tree(
        [
            dl.Body(name="p", joint=plane, rotation=(0.1, 2, 3), **BODY),
            dl.Body(name="u", joint=dl.Universal(stiffness=(3.0, 1.0)), parent="p", **BODY),
            dl.Body(name="t", joint=dl.Translation(armature=0.2), parent="u", **BODY),
            dl.Body(name="h", joint=dl.Revolute(axis=(1, 2, 3)), parent="u", **BODY),
            dl.Body(name="m", joint=last, parent="h", position=(1, 2, 0), **BODY),
        ]
    )


def test_joints_of_several_axes(tmp_path):
    """Universal, planar and translation joints become hinges and slides of the same motion."""
    system, rng = branched(mimic=False), np.random.default_rng(2)
    dl.save(system, tmp_path / "x.xml")
    model = model_of(tmp_path / "x.xml")
    names = ["p[0]", "p[1]", "p[2]", "u[0]", "u[1]", "t[0]", "t[1]", "t[2]", "h", "m"]
    assert joint_names(model) == names
    data, (q, v) = mujoco.MjData(model), rng.normal(size=(2, 10))
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(model, data)
    a = dl.forward_dynamics(system, q, v, dl.passive_force(system, q, v))
    np.testing.assert_allclose(data.qacc, a, rtol=1e-10, atol=1e-10)


def test_mimic_joints_become_equalities(tmp_path):
    """The follower has its coordinate in keyframes, and the law is in the file."""
    system = branched(mimic=True).with_state("low", np.linspace(0, 1, 9), np.linspace(1, 0, 9))
    with pytest.warns(UserWarning, match="constraints and mimic joints are soft in MuJoCo"):
        dl.save(system, tmp_path / "x.xml")
    model = model_of(tmp_path / "x.xml")
    q, v, _ = system.state("low")
    key = model.key("low")
    np.testing.assert_allclose(key.qpos, [*q, 0.3 * q[-1] + 0.1], rtol=1e-15)
    np.testing.assert_allclose(key.qvel, [*v, 0.3 * v[-1]], rtol=1e-15, atol=1e-16)
    np.testing.assert_array_equal(model.eq_data[0][:5], [0.1, 0.3, 0, 0, 0])


@pytest.mark.slow
def test_actuators_that_mjcf_has_not(tmp_path):
    """Current, voltage, an axis and a thruster are general actuators; a differential is a gear."""
    names = "elbow", "wrist"
    arm = dl.chain([dl.Body(name=n, joint=dl.Revolute(axis=(0, 1, 0)), **BODY) for n in names])
    given = (
        dl.CurrentMotor("elbow", torque_constant=0.1, gear_ratio=30.0, max_current=2.0),
        dl.VoltageMotor(
            "wrist",
            torque_constant=0.1,
            resistance=2.0,
            gear_ratio=-5.0,
            max_voltage=3.0,
            max_current=1.0,
        ),
        dl.Thruster(axis=dl.Axis("wrist", (0.1, 0, 0.2), (1, 2, 3)), max_thrust=2.0),
        dl.Drive("elbow", torque_scale=0.9, torque_bias=0.3, name="offset"),
    )
    system = dl.attach(
        arm, *(dataclasses.replace(a, name=a.name or f"a{k}") for k, a in enumerate(given))
    )
    dl.save(system, tmp_path / "x.xml")
    model, again = model_of(tmp_path / "x.xml"), dl.load(tmp_path / "x.xml", actuators=True)
    assert again.actuator_names == system.actuator_names == tuple(actuator_names(model))
    rng = np.random.default_rng(3)
    for _ in range(4):
        q, v, u = rng.normal(size=2), rng.normal(size=2), 3 * rng.normal(size=4)
        data = mujoco.MjData(model)
        data.qpos, data.qvel, data.ctrl = q, v, u
        mujoco.mj_forward(model, data)
        end = dl.step(system, q, v, dt=1e-6, control=u)
        np.testing.assert_allclose((end.v - v) / 1e-6, data.qacc, rtol=1e-4, atol=1e-4)
    geared = dc.constrain(arm, dc.Proportional(("elbow", "wrist"), (2.0, 1.0), 0.3))
    quietly(dl.save, geared, tmp_path / "x.xml")
    law = model_of(tmp_path / "x.xml").eq_data[0][:5]
    np.testing.assert_allclose(law, [0.15, -0.5, 0, 0, 0], rtol=1e-15)


def test_what_has_no_place_is_named_once(tmp_path):
    """Contacts, limits of balls and velocities, dry friction, and the name of the world."""
    text = """<mujoco><worldbody><body name="a"><joint name="j" type="ball" range="0 1"/>
    <geom size=".1"/></body></worldbody></mujoco>"""
    (tmp_path / "x.xml").write_text(text)
    system = quietly(dl.load, tmp_path / "x.xml")
    with pytest.warns(UserWarning, match="not modelled: contacts of geoms .*give the MJCF file"):
        dl.save(system, tmp_path / "y.xml")
    ball = dl.Spherical(name="j", friction=0.1, friction_velocity=0.2, max_velocity=1.0, upper=1.0)
    on = dl.Body(name="world", joint=dl.Revolute(max_effort=3.0, lower=-1.0), **BODY)
    system = dl.chain([on, dl.Body(name="b", joint=ball, **BODY)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dl.save(system, tmp_path / "y.xml")
    (said,) = [str(w.message) for w in caught]
    for words in (
        "no place for max_velocity of j",
        "friction_velocity of j",
        "limits of j",
        "friction of j is dry in MuJoCo (frictionloss), and smoothed here",
        "the body 'world' is called 'world_'",
    ):
        assert words in said
    model = model_of(tmp_path / "y.xml")
    assert body_names(model) == ["world_", "b"] and model.jnt_actfrcrange[0].tolist() == [-3, 3]
    again = quietly(dl.load, tmp_path / "y.xml")
    assert again.joints.lower[0] == -1 and again.joints.upper[0] == np.inf


EVERY = """<mujoco model="all"><compiler angle="radian"/> <option timestep=".001" integrator="RK4"
gravity="0 .1 -9.7" wind="1 2 0" density="3" viscosity=".1"/> <worldbody><site name="w" pos="0 0
1.5"/> <body name="a" pos="0 0 1" gravcomp=".5"><joint name="j" axis="0 1 0" ref=".1" range="-1
1.2" margin=".01" solreflimit=".05 .7" solimplimit=".5 .95 .01" frictionloss=".1"
solreffriction=".03 1" damping=".2 .1 .05" stiffness="3 1" springref=".3" armature=".05"
actuatorfrcrange="-4 5"/> <geom name="g" size=".1" mass="1" friction=".7 .01 .001" condim="4"
solref=".03 1"/><site name="s" pos=".1 0 0"/> <body name="b" pos=".5 0 0"><joint name="k"
type="ball" range="0 1" damping=".1" stiffness="2"/> <geom name="h" type="box" size=".1 .2 .1"
mass="1"/><site name="e" pos=".2 0 0" quat=".9 .1 .2 .3"/></body></body> <body name="c" pos="0 1
0.5"><freejoint name="fr"/><geom name="i" type="capsule" size=".1 .2" mass="2"
margin=".01"/></body> <body name="d" pos="2 0 1"><joint name="sl" type="slide" axis="1 0 0"
range="0 .4" solreflimit="-900 -30"/><geom name="o" size=".1" mass="1"/> <site
name="ds"/></body> </worldbody> <contact><pair name="p" geom1="g" geom2="i" condim="3"
friction="1 1 .01 .001 .001" solref=".02 1.1"/><exclude body1="a" body2="d"/></contact>
<tendon><fixed name="f" range="-.1 2" stiffness="4" springlength=".1" frictionloss=".05"
damping=".2" solreflimit=".04 1"><joint joint="j" coef="2"/><joint joint="sl"
coef="-1"/></fixed> <spatial name="q" range="0 3" stiffness="5" springlength="0 .4"><site
site="w"/><site site="s"/></spatial></tendon> <equality><joint name="e1" joint1="sl" joint2="j"
polycoef=".1 .2 .05 0 0" solref=".03 1"/><connect name="e2" site1="e" site2="ds"
active="false"/></equality> <actuator><general name="u1" joint="j" gear="2" ctrlrange="-1 1"
forcerange="-3 3" dyntype="filterexact" dynprm=".05" gainprm="4" biastype="affine" biasprm="0 -4
-.3" actrange="-.5 .5"/> <position name="u2" joint="sl" kp="20" kv="1"/><motor name="u3"
tendon="q" gear="-1"/><muscle name="u4" tendon="f" range=".6 1.2"/></actuator> <sensor><jointpos
name="s1" joint="j" noise=".01"/><gyro name="s2" site="e" noise=".1" cutoff="3"/><actuatorfrc
name="s3" actuator="u1" cutoff="2"/><jointlimitfrc name="s4" joint="j"/><force name="s5"
site="e"/><framepos name="s6" objtype="site" objname="e"/></sensor> <keyframe><key name="home"
qpos=".2 1 0 0 0 0 1 .5 1 0 0 0 .1" qvel=".1 .2 .3 .4 0 0 0 0 0 0 .5" act=".1 .2" ctrl=".1 .2 .3
.4"/></keyframe></mujoco>"""
GONE = (
    "margins of limits ('j')",
    "solimpfriction) of friction ('j')",
    "switched off ('e2')",
    "softness (solref, solimp) of equality constraints ('e1')",
)
NUMBERS = "contacts of geoms", "limits of ball", "limits of tendons", "solimplimit) of limits"


@pytest.mark.slow("True")
@pytest.mark.parametrize("acting", [True, False])
def test_every_kind_is_written_or_named(tmp_path, acting):
    """Guards that what a system holds of a file is read back equal, and what it lost is named."""
    (tmp_path / "x.xml").write_text(EVERY)
    options = {"actuators": True, "limits": acting, "contacts": acting}
    system = quietly(dl.load, tmp_path / "x.xml", **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dl.save(system, tmp_path / "y.xml")
    (said,) = [str(w.message) for w in caught]
    for words in GONE if acting else (*GONE, *NUMBERS, "limits of j, sl stop these in MuJoCo"):
        assert words in said
    again = quietly(dl.load, tmp_path / "y.xml", **options)
    check_equal(again, system)
    assert again.states.keys() == system.states.keys()
    pairs = zip(*(jax.tree.leaves(each.states) for each in (again, system)), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert len(again.couplings) == len(system.couplings) and len(again.sensors) > 3
    assert [c.name for c in again.couplings] == [c.name for c in system.couplings]


def stl(path):
    """Writes a tetrahedron."""
    points = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])
    faces = (0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)
    rows = [struct.pack("<12fH", 0, 0, 0, *points[list(face)].ravel(), 0) for face in faces]
    path.write_bytes(bytes(80) + struct.pack("<I", 4) + b"".join(rows))


SHAPES = """<mujoco model="m"><compiler meshdir="shapes" angle="degree" inertiafromgeom="true"/>
<asset><mesh name="hull" file="hull.stl"/></asset>
<default><default class="leg"><joint damping="0.3"/><position kp="5" forcerange="-2 2"/></default>
</default>
<worldbody><geom type="plane" size="1 1 1"/><body name="a"><joint name="j" ref="20" class="leg"/>
<geom type="mesh" mesh="hull"/><!-- a remark --><include file="more.xml"/>
<body name="b" pos="0 0 .2"><freejoint/></body></body></worldbody>
<actuator><position name="p" joint="j" class="leg"/><motor joint="j" gear="2"/></actuator></mujoco>
"""


def shapes(tmp_path):
    """A file with a mesh, classes, degrees, a file inside, and unnamed elements."""
    (tmp_path / "shapes").mkdir(exist_ok=True)
    stl(tmp_path / "shapes/hull.stl")
    text = SHAPES.replace("<freejoint/>", '<joint type="ball"/><geom size=".1"/>')
    (tmp_path / "more.xml").write_text('<mujocoinclude><geom size="0.01"/></mujocoinclude>')
    old = tmp_path / "old.xml"
    old.write_text(text)
    return quietly(dl.load, old, actuators=True), old


def changed(system):
    """Other numbers of all kinds that are written to an original."""
    joints = system.joints
    limits = {"lower": joints.lower.at[0].set(-1.0), "upper": joints.upper.at[0].set(0.5)}
    system = system.replace(
        mass=1.1 * system.bodies.mass,
        com=system.bodies.com + 0.01,
        inertia=1.2 * system.bodies.inertia,
        damping=joints.damping + 0.1,
        armature=joints.armature + 0.2,
        friction=joints.friction + 0.3,
        stiffness=joints.stiffness.at[0].set(3.0),
        spring_reference=joints.spring_reference.at[0].set(0.2),
        gravity=system.gravity + 1,
        position=joints.position + 0.05,
        rotation=joints.rotation + 0.1,
        **limits,
    )
    servo, motor = system.actuators
    laws = servo.kp * 2, servo.kd + 0.1, servo.max_torque * 3
    servo = eqx.tree_at(lambda s: (s.kp, s.kd, s.max_torque), servo, laws)
    motor = eqx.tree_at(lambda m: m.transmission.gear, motor, motor.transmission.gear * 3)
    return eqx.tree_at(lambda s: s.actuators, system, (servo, motor))


@pytest.mark.parametrize("folder", ["", "elsewhere"])
def test_numbers_are_written_to_an_original(tmp_path, folder):
    """All else stays: shapes, contacts, remarks; meshes are found from other folders, too."""
    system, old = shapes(tmp_path)
    new, system = tmp_path / folder / "new.xml", changed(system)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dl.save(system, new, original=old)
    again = quietly(dl.load, new, actuators=True)
    check_equal(again, system)
    models = [mujoco.MjModel.from_xml_path(str(path)) for path in (old, new)]
    for own in ("ngeom", "nmesh", "nu"):
        assert getattr(models[0], own) == getattr(models[1], own)
    np.testing.assert_array_equal(models[0].geom_contype, models[1].geom_contype)
    text = new.read_text()
    assert "<!-- a remark -->" in text and 'class="leg"' in text and ("shapes" in text)
    dl.save(again, new, original=new)  # on itself
    check_equal(quietly(dl.load, new, actuators=True), system)


def test_an_identified_machine_is_written_to_its_mjcf_file(tmp_path):
    """Results are saved with the file that the machine was read from, without its actuators."""
    system, old = shapes(tmp_path)
    system = dataclasses.replace(system, actuators=(), states={})
    # One body alone, in a file that would take inertias from shapes.
    heavier = system.replace(mass=system.bodies.mass.at[1].multiply(1.5))
    save_bare(heavier, tmp_path / "out", old)
    check_equal(quietly(dl.load, tmp_path / "out/m.xml"), heavier)


def test_what_an_original_cannot_take(tmp_path):
    """Other bodies, positions and actuators are errors; other parts are named and stay."""
    system, old = shapes(tmp_path)
    new = tmp_path / "new.xml"
    apart = tmp_path / "apart.xml"
    apart.write_text(old.read_text().replace('ref="20"', 'ref="20" pos=".1 0 0"'))
    moved = quietly(dl.load, apart)
    moved = moved.replace(position=moved.joints.position + 0.1)
    named = r"apart\.xml: its position cannot be changed to those of the system \(of a/j, a\)"
    with pytest.raises(dl.ModelError, match=named):
        dl.save(moved, new, original=apart)
    other = dl.chain([dl.Body(name="z", joint=dl.Revolute(name="j"), **BODY)])
    with pytest.raises(dl.ModelError, match=r"old\.xml: there is no body 'z', which the"):
        dl.save(other, new, original=old)
    driven = dl.attach(quietly(dl.load, old), dl.Drive("j", name="fred"))
    with pytest.raises(dl.ModelError, match="there is no actuator 'fred'"):
        dl.save(driven, new, original=old)
    uneven = system.replace(damping=system.joints.damping.at[1].add(0.1))
    with pytest.raises(dl.ModelError, match="damping of the joint 'b/ball' is not the same"):
        dl.save(uneven, new, original=old)
    assert not new.exists()
    with pytest.warns(UserWarning, match=r"frames of the system are not those of .*old\.xml"):
        dl.save(system.with_frames({"tip": dl.Frame("a")}), new, original=old)


def test_mistakes(tmp_path, monkeypatch):
    """What the file cannot hold, and what MuJoCo refuses, is an error, and nothing is written."""
    path = tmp_path / "x.xml"
    body = dl.Body(name="a", joint=dl.Revolute(), **BODY)
    arm = dl.chain([body])

    def one(**changes):
        return dl.chain([dataclasses.replace(body, **changes)])

    lagging = dl.Thruster(axis=dl.Axis("a", (0, 0, 1.0)), lag=0.1)
    pull = dl.PointForce([("a", (0.0, 0.0, 0.0))], (1.0, 0, 0))
    for system, words in (
        (one(joint=dl.Helical(pitch=0.1)), "no words for the helical joint 'a'"),
        (
            one(joint=dl.Free(), position=(1, 0, 0)),
            "free joint 'a', which is not that of the world",
        ),
        (
            one(joint=dl.Spherical(damping=(1, 2, 3))),
            "damping of the spherical joint 'a', which is",
        ),
        (dl.attach(arm, lagging), "no words for the actuator Thruster"),
        (dl.attach(arm, pull), "no words for the coupling PointForce"),
        (
            dc.constrain(arm, dc.Distance(dl.Frame("a"), dl.Frame(), 1.0)),
            "no words for the constraint Distance",
        ),
        (one(inertia=np.diag([1, 1, 5.0])), r"x\.xml: not written, as MuJoCo refuses it: .*A \+ B"),
        (jax.tree.map(lambda a: a[None], arm), "this is a batch of systems; take one"),
    ):
        with pytest.raises(dl.ModelError, match=words):
            quietly(dl.save, system, path)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"x\.xml: MJCF is written by MuJoCo, .*pip install"):
        dl.save(arm, path)
    assert not path.exists()
