"""MJCF files against MuJoCo's own numbers, what is named as not used, and what is refused."""

import importlib.resources
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import error, random_states

import difflie as dl
from difflie.io.mjcf import body_names, read_mjcf

mujoco = pytest.importorskip("mujoco")
QUIET = '<option><flag contact="disable" limit="disable" energy="enable"/></option>'

# A walker on a free joint: defaults, classes, euler angles, fromto, frames, meshless inertia,
# anchors off the origin, several joints in a body, ref and springref.
WALKER = f"""<mujoco model="walker">
  <compiler angle="degree" eulerseq="XYZ"/>
  {QUIET}
  <option gravity="0.3 -1 -9"/>
  <default>
    <geom contype="0" conaffinity="0" density="700"/>
    <joint damping="0.4" armature="0.02"/>
    <default class="leg">
      <joint axis="0 1 0.2" damping="1.5" stiffness="12" springref="20"/>
    </default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="trunk" pos="0 0.2 1" euler="10 20 30">
      <freejoint name="root"/>
      <geom type="box" size="0.2 0.1 0.3" pos="0.05 0 0.1" euler="0 30 0"/>
      <frame pos="0.1 -0.2 0" euler="0 0 45">
        <body name="hip" pos="0.1 0 -0.3" euler="5 -40 0" childclass="leg">
          <joint name="yaw" pos="0.02 0.1 -0.05" ref="25" axis="0 0.1 1" range="-40 60"/>
          <joint name="slider" type="slide" axis="1 0 1" pos="0.3 0 0" ref="0.1" springref="0.3"/>
          <joint name="pitch" pos="-0.1 0 0.07" stiffness="0"/>
          <geom type="capsule" fromto="0 0 0 0.1 0.05 -0.4" size="0.05"/>
          <body name="shin" pos="0.1 0.05 -0.4">
            <joint name="knee" ref="-30"/>
            <geom type="ellipsoid" size="0.05 0.06 0.2" pos="0 0 -0.2"/>
            <body name="foot" pos="0 0 -0.4" quat="1 0.2 0 0.1">
              <inertial mass="0.8" pos="0.03 0 0.01" fullinertia="0.02 0.03 0.025 0.001 0 0.002"/>
            </body>
          </body>
        </body>
      </frame>
      <body name="head" pos="0 0 0.5" euler="0 0 90">
        <joint name="neck" type="ball" pos="0.02 -0.03 -0.1" armature="0.05"/>
        <geom type="sphere" size="0.12" pos="0 0 0.1"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""

# A gantry fixed to the world, with drives, unnamed bodies and joints, and a free body beside it.
GANTRY = f"""<mujoco model="gantry">
  {QUIET}
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="rail" pos="1 0 2" euler="0.4 0 0.2">
      <geom type="box" size="1 0.1 0.1"/>
      <body pos="0.3 0 0">
        <joint type="slide" axis="1 0 0" damping="3"/>
        <joint name="turn" axis="0 0 1" damping="0.2"/>
        <geom type="cylinder" size="0.1 0.2"/>
        <body name="turn" pos="0 0 -0.5" euler="0 0.3 0">
          <geom type="capsule" size="0.04 0.2"/>
          <body name="lamp" pos="0 0.1 -0.3">
            <joint type="ball" damping="0.3"/>
            <geom type="sphere" size="0.1" pos="0.05 0 -0.2"/>
          </body>
        </body>
      </body>
    </body>
    <body pos="0 0 3"><joint type="free" damping="0.2"/><geom type="box" size="0.1 0.2 0.3"/></body>
  </worldbody>
  <actuator>
    <motor joint="turn" gear="-5" ctrlrange="-2 3"/>
    <position joint="turn" kp="10" forcerange="-1.5 1"/>
  </actuator>
</mujoco>"""

# Bodies of which springs and dampers go through sites: on the world, over three bodies, slack.
TENSEGRITY = f"""<mujoco model="tensegrity">
  {QUIET}
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="hook" pos="0.1 0.2 2.5"/>
    <body name="plate" pos="0 0 1.5">
      <freejoint/>
      <geom type="box" size="0.3 0.2 0.05" pos="0.05 0 0"/>
      <site name="corner" pos="0.3 0.2 0.05"/>
      <site name="edge" pos="-0.3 0.1 0"/>
      <body name="swing" pos="0 0.1 -0.4">
        <joint name="swing" type="hinge" axis="1 0.3 0" pos="0 0 0.4" stiffness="3" damping="0.1"/>
        <geom type="capsule" size="0.04 0.2"/>
        <site name="tip" pos="0.02 0 -0.25"/>
        <body name="bob" pos="0.1 0 -0.3">
          <joint type="ball" pos="0 0.05 0"/>
          <geom type="sphere" size="0.1"/>
          <site name="inside" pos="0.01 0.02 -0.07"/>
        </body>
      </body>
    </body>
    <body name="cart" pos="1 0 1">
      <joint name="rail" type="slide" axis="0 1 0.1"/>
      <geom type="box" size="0.1 0.1 0.1"/>
      <site name="cart" pos="0 0 0.1"/>
    </body>
  </worldbody>
  <tendon>
    <spatial stiffness="30" springlength="0.4" damping="2">
      <site site="hook"/><site site="corner"/>
    </spatial>
    <spatial stiffness="20" damping="0.7"><site site="hook"/><site site="cart"/></spatial>
    <spatial stiffness="50" springlength="0 0.9">
      <site site="edge"/><site site="tip"/><site site="cart"/><site site="inside"/>
    </spatial>
    <spatial stiffness="50" springlength="0 90"><site site="edge"/><site site="tip"/></spatial>
    <spatial stiffness="50" springlength="0.1 0.2"><site site="edge"/><site site="tip"/></spatial>
    <spatial limited="true" range="0 3"><site site="edge"/><site site="inside"/></spatial>
    <fixed stiffness="2"><joint joint="rail" coef="1.5"/></fixed>
  </tendon>
</mujoco>"""


@pytest.fixture
def read(tmp_path):
    """Reads a string as a file; gives the system, MuJoCo's model and the warnings."""

    def reader(text, **options):
        path = tmp_path / "m.xml"
        path.write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            system = dl.load(path, **options)
        model = mujoco.MjModel.from_xml_path(str(path))
        return system, model, [str(w.message) for w in caught]

    return reader


def full_mass_matrix(model, data):
    mass = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, mass)
    except TypeError:  # MuJoCo 3
        mujoco.mj_fullM(model, mass, data.qM)
    return mass


def check(system, model, forward):
    """What MuJoCo computes of random states, in its own ordering; forward dynamics if wanted."""
    ordering, names = dl.MujocoOrdering(system, model), body_names(model)
    shown = np.array([system.body_names.index(name) for name in names])
    q, v, a, tau, _ = random_states(system, 3, seed=4)

    @jax.jit
    @jax.vmap
    def ours(q, v, a, tau):
        x, rate = ordering.q(q), ordering.v(q, v)
        passive = dl.passive_force(system, q, v)
        found = {
            "poses": dl.body_poses(system, q)[shown],
            "passive force": ordering.tau(q, passive),
            "energy": jnp.stack(dl.energy(system, q, v)),
            "inverse dynamics": ordering.tau(q, dl.inverse_dynamics(system, q, v, a)),
        }
        if forward:
            acceleration = dl.forward_dynamics(system, q, v, tau + passive)
            found["forward dynamics"] = ordering.a(q, v, acceleration)
        theirs = x, rate, ordering.a(q, v, a), ordering.tau(q, tau)
        again = ordering.from_q(x), ordering.from_v(x, rate), ordering.from_tau(x, theirs[3])
        return found, theirs, again

    found, theirs, again = ours(q, v, a, tau)
    for back, given in zip(again, (q, v, tau), strict=True):
        np.testing.assert_allclose(back, given, atol=1e-13)
    data, expected = mujoco.MjData(model), {name: [] for name in found}
    for x, rate, change, effort in zip(*map(np.asarray, theirs), strict=True):
        data.qpos, data.qvel, data.qfrc_applied = x, rate, effort
        data.ctrl[:] = 0
        mujoco.mj_forward(model, data)
        mass = full_mass_matrix(model, data)
        poses = np.tile(np.eye(4), (model.nbody, 1, 1))
        poses[:, :3, :3], poses[:, :3, 3] = data.xmat.reshape(-1, 3, 3), data.xpos
        expected["poses"].append(poses[1:])
        expected["passive force"].append(data.qfrc_passive.copy())
        fixed = model.body_weldid == 0  # MuJoCo counts the weight of what cannot move
        weight = model.body_mass[fixed] @ data.xipos[fixed] @ model.opt.gravity
        expected["energy"].append(data.energy[::-1] + np.array([0, weight]))
        expected["inverse dynamics"].append(mass @ change + data.qfrc_bias)
        if forward:
            rest = effort + data.qfrc_passive - data.qfrc_bias
            expected["forward dynamics"].append(np.linalg.solve(mass, rest))
    for name, value in found.items():
        assert error(value, np.array(expected[name])) < 1e-12, name


@pytest.mark.slow("walker")
@pytest.mark.parametrize("text", [WALKER, GANTRY], ids=["walker", "gantry"])
def test_the_numbers_are_mujocos(read, text):
    system, model, _ = read(text)
    check(system, model, forward=True)


@pytest.mark.slow
def test_tendons_are_springs_and_dampers(read):
    system, model, messages = read(TENSEGRITY)
    kinds = [type(c).__name__ for c in system.couplings]
    assert kinds == [*["Spring", "Damper"] * 2, "Rope", "Rope", "Tendon", "JointTendon"]
    assert not messages  # the limit of a tendon is off, as all are
    check(system, model, forward=True)


@pytest.mark.slow
def test_mujocos_own_model():
    path = importlib.resources.files(mujoco) / "testdata" / "model.xml"
    if not path.is_file():
        pytest.skip("this MuJoCo comes without it")
    with pytest.warns(UserWarning, match=r"limits of tendons \('spatial'\)"):
        system = dl.load(str(path))
    assert [str(c) for c in system.constraints] == ["FixedConstraint (the world - 'cylinder')"]
    model = mujoco.MjModel.from_xml_path(str(path))
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT | flags.mjDSBL_CONTACT)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    check(system, model, forward=False)


def test_names_limits_and_springs(read):
    system, _, messages = read(WALKER)
    helpers = ("hip/yaw", "hip/slider", "hip/pitch", "head/neck")
    assert system.body_names == ("trunk", *helpers[:3], "hip", "shin", "foot", helpers[3], "head")
    assert system.joint_names == ("root", "yaw", "slider", "pitch", "knee", "neck")
    np.testing.assert_allclose(system.gravity, [0.3, -1, -9])
    rows = system.joints
    yaw, slider, knee = 6, 7, 9
    np.testing.assert_allclose(np.degrees([rows.lower[yaw], rows.upper[yaw]]), [-65, 35])
    np.testing.assert_allclose(rows.spring_reference[slider], 0.2)
    np.testing.assert_allclose(np.degrees(rows.spring_reference[knee]), 50)
    np.testing.assert_allclose(rows.stiffness[6:10], [12, 12, 0, 12])
    assert messages == []  # its geoms touch nothing


def test_drives_limit_the_effort(read):
    system, _, messages = read(GANTRY)
    assert system.joint_names == ("body2/slide", "turn", "lamp/ball", "body5/free")
    np.testing.assert_allclose(system.joints.max_effort[:2], [np.inf, 11])
    np.testing.assert_allclose(system.joints.min_effort[:2], [-np.inf, -5 * 3 - 1.5])
    said = "but for armature, damping and the limits of effort (number 0, number 1)"
    assert said in messages[0]


BODY = '<body name="b"><joint name="j" {}/><geom size="0.1"/></body>'


def world(inside, before=""):
    return f"<mujoco>{before}<worldbody>{inside}</worldbody></mujoco>"


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (world(BODY.format("")), "contacts of geoms (number 0 of 'b'); load("),
        (world(BODY.format('type="ball" range="0 1"')), "limits of ball joints ('j')"),
        (
            world(BODY.format("") + '<camera/><camera name="c"/>'),
            "cameras (number 0 of the world, 'c')",
        ),
    ],
)
def test_what_is_not_used_is_named_once(read, text, remark):
    _, _, messages = read(text)
    assert len(messages) == 1 and remark in messages[0]


def test_gravity_and_friction(read):
    option = '<option><flag gravity="disable"/></option>'
    system, _, _ = read(world(BODY.format('frictionloss="0.7"'), option))
    assert system.gravity.tolist() == [0, 0, 0] and system.joints.friction.tolist() == [0.7]
    assert read(world(BODY.format("")), gravity=(1, 2, 3))[0].gravity.tolist() == [1, 2, 3]


def test_the_base(read):
    still = world('<body name="b" pos="0 0 1"><geom size="0.1"/></body>')
    assert read(still)[0].nv == read(still, base="fixed")[0].nv == 0
    freed, _, _ = read(still, base="free")
    assert freed.joint_names == ("root_joint",) and not np.any(freed.joints.position)
    text = BODY.format('type="free"').replace('name="b"', 'name="b" pos="1 2 3" euler="0 0 90"')
    held, _, _ = read(world(text), base="fixed")
    turned = [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]
    assert held.nv == 0
    np.testing.assert_allclose(dl.body_poses(held, held.neutral())[0], turned, atol=1e-15)
    for text, base, words in (
        (world(BODY.format("")), "free", "the root moves on the joint 'j' of the file already"),
        (still.replace("<worldbody>", "<worldbody><body/>"), "free", "2 root bodies: 'body1', 'b'"),
        (still, "fix", "it must be 'fixed' or 'free'"),
    ):
        with pytest.raises(dl.ModelError, match=words):
            read(text, base=base)


MESHES = """<mujoco><compiler meshdir="m"/><asset><mesh name="hull" file="hull.stl"/>
<texture name="t" type="2d" file="t.png"/><material name="g" texture="t"/></asset>
<worldbody><body name="b">{}<joint name="j"/><geom type="mesh" mesh="hull" material="g"/>
<geom size="0.1" mass="0"/></body></worldbody></mujoco>"""


def test_files_that_are_missing(tmp_path):
    """Guards meshes and textures that are not there: skipped unless an inertia needs them."""
    path = tmp_path / "m.xml"
    path.write_text(MESHES.format('<inertial mass="2" pos="0 0 0.1" diaginertia="1 1 1"/>'))
    with pytest.warns(UserWarning, match="missing, and skipped: hull.stl, t.png"):
        assert dl.load(path).bodies.mass.tolist() == [2.0]
    path.write_text(MESHES.format(""))
    said = "body 'b' takes its inertia from hull.stl, which is missing; put the file there"
    with pytest.raises(dl.ModelError, match=said):
        dl.load(path)


def test_mistakes(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log
    unreadable = '<equality><connect body1="b" anchor=""/></equality>'
    for text, words in (
        ("<mujoco><worldbdy/></mujoco>", "MuJoCo does not read it: .*worldbdy"),
        (world(""), "there is no body in <worldbody>"),
        (f'<!DOCTYPE a [<!ENTITY b "c">]>{world("&b;")}', "1: <!ENTITY b> is not expanded in MJCF"),
        (world(BODY.format(""), unreadable), "MuJoCo fails to read it"),
        (world(BODY.format(""), '<option gravity="nan"/>'), "MuJoCo does not read it"),
        (world('<replicate count="200">' * 2 + "</replicate>" * 2), "1: <replicate> makes 40000"),
        (world("") * 2, r"\d+: something follows the root element"),
        (f'<!DOCTYPE a SYSTEM "b">{world("")}', "1: <!DOCTYPE> takes a document type from another"),
    ):
        with pytest.raises(dl.ModelError, match=rf"m\.xml: ?{words}"):
            read(text)
    with pytest.raises(FileNotFoundError, match=r"did you mean 'm\.xml'"):
        read_mjcf(tmp_path / "mm.xml")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[mjcf\]'.*pip install 'mujoco>=3'"):
        read_mjcf(tmp_path / "m.xml")
