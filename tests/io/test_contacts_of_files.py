"""Shapes and contacts of MJCF, URDF and TOML files, against MuJoCo, and written again."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.io import meshes
from difflie.io.config import read_config
from difflie.io.loading import load_system
from difflie.io.toml import ConfigError

mujoco = pytest.importorskip("mujoco")
trimesh = pytest.importorskip("trimesh")


def quietly(call, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **options)


HEAP = """<mujoco><option cone="elliptic"/>
  <asset><mesh name="wedge" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3"/></asset>
  <default><geom margin="0.01" friction="0.7 0.02 0.003"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" pos="0 0 0.1" condim="1"/>
    <body name="a"><freejoint/>
      <geom name="ball" size="0.3" friction="0.9 0.01 0.001" condim="6"/>
      <geom name="rod" type="capsule" size="0.1 0.3" solmix="0"/>
      <geom name="seen" type="box" size="1 1 1" contype="0" conaffinity="0"/>
      <body name="b"><joint name="j"/>
        <geom name="brick" type="box" size="0.2 0.3 0.1" priority="1" friction="0.2" condim="4"/>
        <body name="c"><joint axis="1 0 0"/>
          <geom type="mesh" mesh="wedge" contype="2"/>
          <geom name="can" type="cylinder" size="0.1 0.2" conaffinity="2" contype="0"/>
          <body name="welded"><geom name="egg" type="ellipsoid" size="0.1 0.2 0.3"/></body>
        </body>
      </body>
    </body>
    <body name="d"><freejoint/>
      <geom name="other" size="0.2" solref="-3000 -50"/>
    </body>
    <body name="e"><freejoint/><geom name="apart" size="0.2"/></body>
  </worldbody>
  <contact>
    <exclude body1="e" body2="d"/>
    <pair geom1="ball" geom2="brick" friction="0.4 0.4 0.05 0.06 0.06" condim="6" margin="0.02"/>
  </contact>
</mujoco>"""


OVERRIDE = """<option o_margin=".015" o_friction=".6 .6 .04 .003 .003" o_solref=".05 .8">
<flag override="enable"/></option>"""


@pytest.mark.slow
@pytest.mark.parametrize("option", ["", OVERRIDE], ids=["own", "override"])
def test_the_pairs_are_those_of_mujoco(tmp_path, option):
    """Guards which geoms touch, with which friction and margin: of a heap in which all overlap."""
    (tmp_path / "m.xml").write_text(HEAP.replace("<asset>", f"{option}<asset>"))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    system = quietly(dl.load, tmp_path / "m.xml", contacts=True)
    assert "seen" not in system.shapes and "c/geom0" in system.shapes
    name = [model.geom(g).name or "c/geom0" for g in range(model.ngeom)]
    theirs = {}
    for c in data.contact:
        pair = frozenset(name[g] for g in c.geom)
        spin, roll = (c.friction[2] if c.dim > 3 else 0), (c.friction[3] if c.dim > 4 else 0)
        theirs[pair] = (c.friction[0] if c.dim > 1 else 0, spin, roll, c.includemargin)
    (contact,) = system.couplings
    rows = zip(contact.friction, contact.spinning, contact.rolling, contact.margin, strict=True)
    ours = dict(zip(map(frozenset, contact.pairs), rows, strict=True))
    assert ours.keys() == theirs.keys()
    for pair, numbers in ours.items():
        np.testing.assert_allclose(numbers, theirs[pair], atol=1e-12, err_msg=str(pair))
    if option:
        assert all(c.solref.tolist() == [0.05, 0.8] for c in data.contact)
        # By mass, which the stiffness is in proportion to.
        usual = tmp_path / "usual.xml"
        usual.write_text(HEAP.replace('solref="-3000 -50"', ""))
        others = quietly(dl.load, usual, contacts=True).couplings[0].stiffness
        ratios = np.asarray(contact.stiffness) / np.asarray(others)
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)


FALL = """<mujoco><option cone="elliptic" timestep="0.001"/><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body name="b" pos="0 0 0.1"><freejoint/><geom name="foot" size="0.1" {}/></body>
</worldbody></mujoco>"""


@pytest.mark.slow("")
@pytest.mark.parametrize("numbers", ["", 'solref="0.05 1"', 'solref="-20000 -300"'])
def test_a_ball_sinks_in_as_in_mujoco(tmp_path, numbers):
    """Guards the stiffness at rest that solref and solimp mean."""
    (tmp_path / "m.xml").write_text(FALL.format(numbers))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    for _ in range(3000):
        mujoco.mj_step(model, data)
    system = quietly(dl.load, tmp_path / "m.xml", contacts=True)
    run = dl.simulate(system, system.neutral().at[6].set(0.1), np.zeros(6), dt=2e-4, steps=10000)
    depth, expected = 0.1 - run.q[-1, 6], 0.1 - data.qpos[2]
    np.testing.assert_allclose(depth, expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("option", "numbers"),
    [
        ("", 'friction="2 0.1 0.1"'),
        ("", 'friction="0.6"'),
        ("", 'friction="0.7 0.1 0.1" condim="6"'),
        ('impratio="4"', 'friction="1.2" condim="4"'),
        ("", 'condim="1"'),
    ],
)
def test_a_ball_on_pyramids_sinks_in_as_in_mujoco(tmp_path, option, numbers):
    """Guards the stiffness that the edges of a pyramidal cone, the default, have together."""
    text = FALL.replace('cone="elliptic"', option).replace(
        'type="plane"', 'type="plane" friction="0"'
    )
    (tmp_path / "m.xml").write_text(text.format(numbers))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    for _ in range(3000):
        mujoco.mj_step(model, data)
    system = quietly(dl.load, tmp_path / "m.xml", contacts=True)
    q = system.neutral().at[6].set(data.qpos[2])
    force = dl.passive_force(system, q, np.zeros(6))[5]
    np.testing.assert_allclose(force, 9.81 * float(dl.total_mass(system)), rtol=1e-3)


def test_without_contacts_nothing_changes(tmp_path):
    """Guards that shapes alone change no motion, and that results say that they do not touch."""
    (tmp_path / "m.xml").write_text(FALL.format(""))
    with pytest.warns(UserWarning, match=r"load\(..., contacts=True\) lets its shapes touch"):
        system = dl.load(tmp_path / "m.xml")
    assert system.couplings == () and set(system.shapes) == {"foot", "world/geom0"}
    run = dl.simulate(system, system.neutral(), np.zeros(6), dt=1e-3, steps=100)
    np.testing.assert_allclose(run.q[-1, 6], -9.81 / 2 * 0.1**2, rtol=1e-9)
    assert "contacts of geoms" in repr(run.result)
    assert system.not_modelled == ("contacts of geoms (number 0 of the world, 'foot')",)
    assert dl.touching(system, "foot", "world/geom0").not_modelled == ()


ROBOT = """<robot name="r">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision name="pad"><origin xyz="0 0 .1" rpy=".1 .2 .3"/>
      <geometry><box size=".2 .4 .6"/></geometry></collision>
    <collision><geometry><capsule radius=".1" length=".4"/></geometry></collision></link>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius=".05"/></geometry></collision></link>
  <link name="tip"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><mesh filename="ball.stl" scale="1 1 2"/></geometry></collision></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/>
    <origin xyz="0 0 1"/></joint>
  <joint name="k" type="continuous"><parent link="arm"/><child link="tip"/>
    <origin xyz="0 0 1"/></joint>
</robot>"""


@pytest.fixture
def robot(tmp_path):
    trimesh.creation.icosphere(2, 0.1).export(tmp_path / "ball.stl")
    (tmp_path / "r.urdf").write_text(ROBOT)
    return tmp_path / "r.urdf"


@pytest.mark.slow
def test_shapes_of_urdf(robot, monkeypatch):
    """Guards names, sizes and pairs, and that meshes are opened only where they may touch."""
    quietly(dl.load, robot)  # imports what reading files takes
    with monkeypatch.context() as patch:
        patch.setattr(meshes.importlib, "import_module", None)
        system = quietly(dl.load, robot)
    assert set(system.shapes) == {"pad", "base/collision1", "arm/collision0"}
    np.testing.assert_allclose(system.shapes["pad"].half_sizes, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(system.shapes["base/collision1"].half_length, 0.2)
    assert system.not_modelled == ("link/collision",)
    assert dl.load(robot, strict=True).not_modelled == ("link/collision",)
    assert dl.touching(system, "pad", "arm/*").not_modelled == ("link/collision",)
    system = dl.load(robot, base="free", contacts=True)
    assert system.not_modelled == ()
    hull = system.shapes["tip/collision0"]
    assert len(hull.vertices) == 64
    np.testing.assert_allclose(jnp.ptp(hull.vertices, axis=0), [0.2, 0.2, 0.4], rtol=0.02)
    (contact,) = system.couplings
    assert set(contact.pairs) == {("pad", "tip/collision0"), ("base/collision1", "tip/collision0")}


@pytest.mark.slow
def test_written_again(robot, tmp_path):
    """Guards shapes in URDF and MJCF that are written, and pairs in MJCF."""
    system = quietly(dl.load, robot)
    quietly(dl.save, system, tmp_path / "again.urdf")
    again = quietly(dl.load, tmp_path / "again.urdf")
    for name, shape in system.shapes.items():
        same = again.shapes[name]
        assert type(same) is type(shape) and same.body == shape.body
        np.testing.assert_allclose(same.frame.rotation, shape.frame.rotation, atol=1e-14)
    (tmp_path / "m.xml").write_text(HEAP)
    system = quietly(dl.load, tmp_path / "m.xml", contacts=True)
    with pytest.warns(UserWarning, match="contacts are MuJoCo's soft ones"):
        dl.save(system, tmp_path / "again.xml")
    again = quietly(dl.load, tmp_path / "again.xml", contacts=True)
    (old,), (new,) = system.couplings, again.couplings
    assert set(map(frozenset, old.pairs)) == set(map(frozenset, new.pairs))
    at = [old.pairs.index(p) if p in old.pairs else old.pairs.index(p[::-1]) for p in new.pairs]
    for number in ("stiffness", "dissipation", "friction", "spinning", "rolling", "margin"):
        expected = getattr(old, number)[jnp.array(at)]
        np.testing.assert_allclose(getattr(new, number), expected, rtol=1e-10, atol=1e-15)
    for name, shape in system.shapes.items():
        assert type(again.shapes[name]) is type(shape)


@pytest.mark.parametrize("dissipation", [3.0, 50.0])
def test_rest_depths_of_written_contacts_are_those_of_mujoco(tmp_path, dissipation):
    """Guards stiffness and dissipation in files: of a box on four points, whatever the damping."""
    body = dl.Body(name="box", joint=dl.Free(), mass=2.0, inertia=np.diag([0.03, 0.02, 0.04]))
    shapes = {"box": dl.Box("box", (0.1, 0.2, 0.05)), "ground": dl.Plane()}
    law = {"stiffness": 3e3, "dissipation": dissipation, "margin": 0.002}
    system = dl.touching(dl.chain([body]).with_shapes(shapes), "ground", "box", **law)
    critical = dissipation * 9.81 > 2 * np.sqrt(3e3 / 2.0)
    with pytest.warns(UserWarning, match="ground and box had more" if critical else "soft ones"):
        dl.save(system, tmp_path / "box.xml")
    (again,) = quietly(dl.load, tmp_path / "box.xml", contacts=True).couplings
    np.testing.assert_allclose(again.stiffness, 3e3, rtol=1e-10)
    if not critical:
        np.testing.assert_allclose(again.dissipation, dissipation, rtol=1e-10)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "box.xml"))
    data = mujoco.MjData(model)
    data.qpos[2] = 0.05
    for _ in range(8000):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.qpos[2], 0.052 - 2 * 9.81 / 4 / 3e3, atol=1e-6)


HILLS = """<mujoco>
  <asset><hfield name="hills" nrow="3" ncol="4" size="2 1 0.5 0.1"
    elevation="0 1 2 3  4 5 6 7  8 9 10 20"/></asset>
  <worldbody><geom name="ground" type="hfield" hfield="hills" pos="0 0 -0.1"/>
    <body name="ball" pos="0.5 0.3 0.6"><freejoint/><geom name="ball" size="0.3"/></body>
  </worldbody></mujoco>"""


@pytest.mark.slow
def test_height_fields_are_those_of_mujoco(tmp_path):
    """Guards heights from a file against MuJoCo's contact, and that they are written again."""
    (tmp_path / "m.xml").write_text(HILLS)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    system = quietly(dl.load, tmp_path / "m.xml", contacts=True)
    heights = np.asarray(system.shapes["ground"].heights)
    np.testing.assert_allclose(heights.ravel(), 0.5 * model.hfield_data, rtol=1e-7)
    for place in ([0.5, 0.3, 0.3], [-1.2, 0.1, 0.25], [1.5, -0.8, 0.2]):
        data.qpos[:3] = place
        mujoco.mj_forward(model, data)
        q = system.neutral().at[4:].set(jnp.asarray(place))
        found = dl.distance(system, q, "ground", "ball")
        k = int(np.argmin(data.contact.dist))
        np.testing.assert_allclose(found.distance[0], data.contact.dist[k], atol=1e-5)
        np.testing.assert_allclose(found.normal[0], data.contact.frame[k, :3], atol=1e-4)
    quietly(dl.save, system, tmp_path / "again.xml")
    again = quietly(dl.load, tmp_path / "again.xml", contacts=True)
    at = again.shapes["ground"].frame.position[2]
    np.testing.assert_allclose(again.shapes["ground"].heights + at, heights - 0.1, atol=1e-7)
    np.testing.assert_allclose(again.shapes["ground"].half_sizes, [2, 1])


def test_what_no_height_field_touches_is_named(tmp_path):
    """Guards that a file with an ellipsoid over a height field loads, with its other contacts."""
    egg = '<geom name="egg" type="ellipsoid" size="0.1 0.2 0.3"/><geom name="ball"'
    (tmp_path / "m.xml").write_text(HILLS.replace('<geom name="ball"', egg))
    with pytest.warns(UserWarning, match="no ellipsoids and cylinders; left out: ground and egg"):
        system = dl.load(tmp_path / "m.xml", contacts=True)
    (contact,) = system.couplings
    assert contact.pairs == (("ground", "ball"),)


TABLES = """
[system]
file = "r.urdf"
base = "free"
[shapes.floor]
type = "Plane"
[shapes.bumper]
type = "Box"
frame = {body = "arm", position = [0.2, 0.0, 0.1]}
half_sizes = [0.01, 0.1, 0.05]
[shapes.hills]
type = "HeightField"
half_sizes = [2.0, 1.0]
heights = [[0.0, 0.1, 0.0], [0.0, 0.2, 0.1]]
[[touching]]
first = "floor"
second = "*"
friction = 0.6
without = [["floor", "pad"]]
[simulation]
dt = 1e-3
steps = 5
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", ""),
        ("friction", "frction", "has no key 'frction'; did you mean 'friction'"),
        ('first = "floor"', 'first = "flor"', "no shape is named 'flor'; did you mean 'floor'"),
        ('"pad"]', '"pad", "tip"]', r"touching\[0\].without has pairs of names; write"),
        ('"Plane"', '"Plan"', "there is no type 'Plan' of shape; did you mean 'Plane'"),
        ("half_sizes", "half_size", "has no key 'half_size'"),
        ('body = "arm"', 'body = "am"', "shapes: r: no body is named 'am'"),
        ("[0.01, 0.1, 0.05]", "[0.01, -0.1, 0.05]", "must be positive"),
    ],
)
def test_tables(robot, tmp_path, old, new, message):
    """Guards [shapes.NAME] and [[touching]], and one sentence for each fault."""
    path = tmp_path / "c.toml"
    path.write_text(TABLES.replace(old, new, 1) if old else TABLES)
    if message:
        with pytest.raises((ConfigError, dl.ModelError), match=message):
            quietly(load_system, read_config(path))
        return
    system = quietly(load_system, read_config(path))
    (contact,) = system.couplings
    assert set(contact.pairs) == {
        ("floor", name) for name in ("bumper", "arm/collision0", "base/collision1")
    }
    np.testing.assert_allclose(contact.friction, 0.6)


RESTING = """<mujoco><option cone="elliptic" timestep="0.001"/>
  <asset><mesh name="hull" vertex="{}"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <geom name="table" type="box" size="0.3 0.3 0.1" pos="2 0 0"/>{}
  </worldbody></mujoco>"""
RESTING_LINK = """<robot name="r"><link name="body">
  <inertial><origin xyz="{}"/><mass value="2"/>
    <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin rpy="{} 0 0"/><geometry>{}</geometry></collision></link></robot>"""
# The shape in both formats, its turn about x, its half height, its centre of mass.
RESTING_SHAPES = {
    "box": ('type="box" size=".1 .07 .05"', '<box size=".2 .14 .1"/>', 0, 0.05, ".02 .01 .01"),
    "capsule": (
        'type="capsule" size=".05 .08"',
        '<capsule radius=".05" length=".16"/>',
        np.pi / 2,
        0.05,
        "0 .02 -.01",
    ),
    "hull": ('type="mesh" mesh="hull"', '<mesh filename="hull.stl"/>', 0, 0.05, ".02 .01 .01"),
}


def resting(tmp_path, kind):
    """Systems of one free body each a little above the ground, from a file, and where it starts."""
    corners = np.array(
        [[x, y, z] for x in (-0.1, 0.1) for y in (-0.07, 0.06) for z in (-0.05, 0.05)]
    )
    for shape, (geom, collision, turn, height, com) in RESTING_SHAPES.items():
        place = np.array([0, 0, height])
        if kind == "urdf":
            trimesh.convex.convex_hull(corners).export(tmp_path / "hull.stl")
            path = tmp_path / f"{shape}.urdf"
            path.write_text(RESTING_LINK.format(com, turn, collision))
            system = quietly(dl.load, path, base="free", contacts=True)
            system = dl.touching(system.with_shapes({"floor": dl.Plane()}), "floor", "*")
        else:
            on_table = kind == "mjcf, on a table"
            place = place + on_table * np.array([2, 0, 0.1])
            body = f"""<body name="body" pos="{" ".join(map(str, place))}"><freejoint/>
              <inertial pos="{com}" mass="2" diaginertia=".01 .01 .01"/>
              <geom {geom} euler="{np.degrees(turn)} 0 0"/></body>"""
            path = tmp_path / f"{shape}.xml"
            path.write_text(RESTING.format(" ".join(map(str, corners.ravel())), body))
            system = quietly(dl.load, path, contacts=True)
        yield shape, system, system.neutral().at[4:].set(place)


@pytest.mark.slow
@pytest.mark.thorough("mjcf, on a table*")
@pytest.mark.parametrize(
    ("kind", "seconds"), [("mjcf", 60), ("mjcf, on a table", 10), ("urdf", 10)]
)
def test_what_rests_on_the_ground_stays(tmp_path, kind, seconds):
    """Guards rest for a minute of a box, a capsule and a hull, centres of mass off the middle."""
    for shape, system, q in resting(tmp_path, kind):
        steps = 2000 * (seconds + 1)
        run = dl.simulate(system, q, np.zeros(6), dt=5e-4, steps=steps, save_every=2000)
        after = run.q[1:]  # s
        moved = np.abs(after - after[0]).max()
        assert run.result.ok and moved < 1e-9, (shape, moved)
        assert np.abs(run.q[-1, 4:] - q[4:]).max() < 2e-3, shape


def quadruped():
    """A trunk on four legs of two links with servos, and feet that are balls."""
    legs, motors = "", ""
    for name, x, y in (("fl", 1, 1), ("fr", 1, -1), ("hl", -1, 1), ("hr", -1, -1)):
        legs += f"""<body name="{name}_thigh" pos="{0.2 * x} {0.12 * y} 0">
          <joint name="{name}_hip" axis="0 1 0" damping="0.2" armature="0.005"/>
          <geom type="capsule" fromto="0 0 0 -0.08 0 -0.12" size="0.02"
            contype="0" conaffinity="0"/>
          <body name="{name}_shank" pos="-0.08 0 -0.12">
            <joint name="{name}_knee" axis="0 1 0" damping="0.2" armature="0.005"/>
            <geom type="capsule" fromto="0 0 0 0.08 0 -0.12" size="0.015"
              contype="0" conaffinity="0"/>
            <geom name="{name}_foot" pos="0.08 0 -0.12" size="0.025"/>
          </body></body>"""
        for joint in ("hip", "knee"):
            motors += f'<position joint="{name}_{joint}" kp="60" kv="1"/>'
    return f"""<mujoco><option cone="elliptic" timestep="0.001"/>
      <worldbody><geom name="floor" type="plane" size="1 1 1" friction="0.8"/>
        <body name="trunk" pos="0 0 0.3"><freejoint/>
          <geom type="box" size="0.25 0.1 0.05" mass="8"/>{legs}</body></worldbody>
      <actuator>{motors}</actuator>
      <keyframe><key name="stand" qpos="0 0 0.3 1 0 0 0 {"0.1 -0.1 " * 4}"
        ctrl="{"0.1 -0.1 " * 4}"/></keyframe></mujoco>"""


@pytest.mark.slow
@pytest.mark.thorough("RKMK4")
@pytest.mark.parametrize(
    ("method", "dt"), [(dl.RKMK4(), 2e-4), (dl.GeneralizedAlpha(), 1e-3)], ids=["RKMK4", "alpha"]
)
def test_a_quadruped_stands_as_in_mujoco(tmp_path, method, dt):
    """Guards a machine from its file: it falls 1 cm onto its feet and stands for 2 s."""
    path = tmp_path / "q.xml"
    path.write_text(quadruped())
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(2000):
        mujoco.mj_step(model, data)
    system = quietly(dl.load, path, actuators=True, contacts=True)
    start = system.state("stand")
    run = dl.simulate(
        system,
        start.q,
        start.v,
        dt=dt,
        steps=round(2 / dt),
        save_every=100,
        control=lambda t, q, v: start.command,
        method=method,
    )
    assert run.result.ok
    poses = np.asarray(dl.body_poses(system, run.q[-1]))
    for b, name in enumerate(system.body_names):
        np.testing.assert_allclose(poses[b, :3, 3], data.body(name).xpos, atol=5e-3)
    report = run.contacts(system)
    weight = 9.81 * float(dl.total_mass(system))
    feet = [k for k, pair in enumerate(report.pairs) if "foot" in " ".join(pair)]
    np.testing.assert_allclose(report.force[-1, feet, 2].sum(), weight, rtol=2e-2)
