"""Accelerometers, gyroscopes and wrenches in joints, against MuJoCo and closed forms."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import difflie as dl
from difflie import quantities as dq
from difflie.groups import so3

# The sensors of MuJoCo stand at the site, which the frames below repeat.
PLACE, TURN = (0.03, -0.1, 0.05), (0.4, -0.7, 0.2)
QUAT = " ".join(map(str, dl.quaternion.exp(jnp.array(TURN))))
MJCF = f"""
<mujoco>
  <option gravity="0.5 -1 -9"/>
  <worldbody>
    <body name="base" pos="0.1 0.2 0.3" euler="20 30 -10">
      <freejoint name="float"/>
      <inertial pos="0.02 0.01 -0.03" mass="2" fullinertia="0.03 0.04 0.05 0.002 -0.003 0.001"/>
      <body name="arm" pos="0.2 0 0.1" euler="0 40 10">
        <joint name="swing" axis="1 2 -1" armature="0.2"/>
        <inertial pos="0.1 0 0.02" mass="1.2" diaginertia="0.02 0.03 0.04"/>
        <body name="hand" pos="0 0.1 0.3" euler="-30 10 5">
          <joint name="slide" type="slide" axis="0 1 1"/>
          <inertial pos="0 0.03 0.1" mass="0.7" diaginertia="0.01 0.02 0.015"/>
          <site name="imu" pos="{" ".join(map(str, PLACE))}" quat="{QUAT}"/>
        </body>
      </body>
    </body>
  </worldbody>
  <sensor>
    <accelerometer site="imu"/> <gyro site="imu"/> <torque site="imu"/> <force site="imu"/>
  </sensor>
</mujoco>
"""
FRAME = dl.Frame("hand", PLACE, TURN)
SENSORS = dq.Accelerometer(FRAME), dq.Gyroscope(FRAME), dq.JointWrench("slide", PLACE, TURN)


@pytest.fixture(scope="module")
def floating(tmp_path_factory):
    path = tmp_path_factory.mktemp("mjcf") / "floating.xml"
    path.write_text(MJCF)
    return path, dl.load(path)


def state(system, seed=0):
    random = np.random.default_rng(seed)
    q = system.manifold.retract(system.neutral(), jnp.asarray(random.normal(size=system.nv)))
    return q, *(jnp.asarray(random.normal(size=system.nv)) for _ in range(2))


@pytest.mark.slow
def test_sensors_are_those_of_mujoco(floating):
    """Proper acceleration, angular velocity, moment and force at a site of a floating arm."""
    mujoco = pytest.importorskip("mujoco")
    path, system = floating
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    q, v, a = state(system)
    rotation = np.asarray(dl.quaternion.to_matrix(q[:4]))
    # MuJoCo has the position first, and the linear velocity of a free joint in world axes.
    data.qpos = np.concatenate((q[4:7], q[:4], q[7:]))
    data.qvel = np.concatenate((rotation @ v[3:6], v[:3], v[6:]))
    linear = rotation @ (a[3:6] + np.cross(v[:3], v[3:6]))
    data.qacc = np.concatenate((linear, a[:3], a[6:]))
    forced = data.qacc.copy()
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    data.qacc = forced
    mujoco.mj_rnePostConstraint(model, data)
    mujoco.mj_sensorVel(model, data)
    mujoco.mj_sensorAcc(model, data)
    found = (
        SENSORS[0].at(system, q, v, a, None, 0.0),
        SENSORS[1](system, q, v, None, 0.0),
        SENSORS[2].at(system, q, v, a, None, 0.0),
    )
    np.testing.assert_allclose(np.concatenate(found), data.sensordata, rtol=1e-6, atol=1e-7)


def test_sensors_are_those_of_pinocchio(tmp_path):
    """In the middle of a chain of joints about skew axes, from one file that both read."""
    pin = pytest.importorskip("pinocchio")
    links, joints = "", ""
    for k, axis in enumerate(("0 0 1", "0.6 0.8 0", "1 0 0")):
        links += f'''<link name="l{k}"><inertial><mass value="{1 + k}"/>
            <origin xyz="0.1 0 {0.1 * k}"/><inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0"
            ixz="0" iyz="0"/></inertial></link>'''
        joints += f'''<joint name="j{k}" type="revolute"><axis xyz="{axis}"/>
            <parent link="{f"l{k - 1}" if k else "base"}"/><child link="l{k}"/>
            <origin xyz="0.1 0.2 0.3" rpy="0.3 {0.2 * k} 0.1"/>
            <limit lower="-9" upper="9" effort="9" velocity="9"/></joint>'''
    urdf = f'<robot name="skew"><link name="base"/>{links}{joints}</robot>'
    path = tmp_path / "skew.urdf"
    path.write_text(urdf)
    system = dl.load(path)
    model = pin.buildModelFromXML(urdf)
    data = model.createData()
    random = np.random.default_rng(3)
    q, v, a = random.normal(size=(3, 3))
    pin.rnea(model, data, q, v, a)
    pin.forwardKinematics(model, data, q, v, a)
    classical = pin.getClassicalAcceleration(model, data, 2, pin.LOCAL).linear
    proper = classical - data.oMi[2].rotation.T @ model.gravity.linear
    wrench = np.concatenate((data.f[2].angular, data.f[2].linear))
    at = system, jnp.asarray(q), jnp.asarray(v), jnp.asarray(a), None, 0.0
    np.testing.assert_allclose(dq.Accelerometer("l1").at(*at), proper, rtol=1e-12)
    np.testing.assert_allclose(dq.JointWrench("j1").at(*at), wrench, rtol=1e-12)
    gyro = dq.Gyroscope("l1")(*at[:3], None, 0.0)
    np.testing.assert_allclose(gyro, data.v[2].angular, rtol=1e-12)


@pytest.mark.slow
def test_along_a_free_motion_an_accelerometer_sees_no_gravity(floating):
    """At the centre of mass of one body in free flight; and the wrench in its joint is zero."""
    com, joint = (0.1, 0.2, 0.0), dl.Free(name="f")
    system = dl.chain([dl.Body(name="b", joint=joint, mass=1.3, com=com, inertia=np.eye(3))])
    q, v, _ = state(system)
    accelerometer = dq.Accelerometer(dl.Frame("b", com))
    for sensor in (accelerometer, dq.JointWrench("f")):
        np.testing.assert_allclose(sensor(system, q, v, None, 0.0), 0, atol=1e-12)


def test_wrench_works_on_the_joint_like_its_torque(floating):
    """The part of the wrench along the axis is the generalised force less that of the rotor."""
    _, system = floating
    q, v, a = state(system, 1)
    wrench = dq.JointWrench("swing").at(system, q, v, a, None, 0.0)
    axis = np.array([1, 2, -1]) / np.sqrt(6)
    tau = dl.inverse_dynamics(system, q, v, a)[6]
    np.testing.assert_allclose(axis @ wrench[:3], tau - 0.2 * a[6], rtol=1e-10)


def machine():
    """An arm on a fixed joint, with a spring to the world, one across the joints and a thruster."""
    bodies = [
        dl.Body(name="plate", joint=dl.Fixed(name="mount"), mass=0.5, com=(0, 0, 0.1)),
        dl.Body(
            name="arm",
            joint=dl.Revolute(name="hinge", stiffness=2.0, friction=0.3),
            mass=1.0,
            position=(0, 0, 0.2),
            com=(0.2, 0, 0),
            inertia=0.1 * np.eye(3),
        ),
        dl.Body(name="tip", joint=dl.Fixed(name="flange"), position=(0.4, 0, 0), mass=0.3),
    ]
    inside = [("plate", (0, 0.1, 0)), ("arm", (0.1, 0, 0.1))]
    system = dl.attach(
        dl.chain(bodies),
        dl.Spring(inside, stiffness=50.0, rest_length=0.1),
        dl.Spring([(None, (1.0, 0, 0)), ("arm", (0.2, 0, 0))], stiffness=30.0, rest_length=0.2),
        dl.Thruster(axis=dl.Axis("arm", (0.3, 0, 0), (0, 1, 0.5))),
    )
    return system


@pytest.mark.slow
def test_wrenches_of_couplings_count_where_they_act():
    """Through a fixed joint at the base goes all but what the world's spring and the jet give."""
    system = machine()
    q, v, u = jnp.array([0.4]), jnp.array([0.8]), jnp.array([3.0])
    seen = dq.JointWrench("mount")(system, q, v, u, 0.0)
    # The rate of the momentum about the world origin, by differences along the motion.
    a = dl.forward_dynamics(
        system, q, v, dl.passive_force(system, q, v) + dq.Effort()(system, q, v, u, 0.0)
    )
    h = 1e-5
    moving = [dl.momentum(system, q + s * h * v + h * h / 2 * a, v + s * h * a) for s in (-1, 1)]
    rate = (moving[1] - moving[0]) / (2 * h)
    poses = dl.body_poses(system, q)
    masses, coms = system.bodies.mass, system.bodies.com
    points = jnp.einsum("bij,bj->bi", poses[:, :3, :3], coms) + poses[:, :3, 3]
    weights = masses[:, None] * system.gravity
    outer = [(points, weights)]
    arm = poses[1]
    at = arm[:3, :3] @ jnp.array([0.2, 0, 0]) + arm[:3, 3]
    pull = jnp.array([1.0, 0, 0]) - at
    length = jnp.linalg.norm(pull)
    outer.append((at[None], 30.0 * (length - 0.2) * (pull / length)[None]))
    jet = arm[:3, :3] @ jnp.array([0.3, 0, 0]) + arm[:3, 3]
    along = jnp.array([0, 1, 0.5]) / np.sqrt(1.25)
    outer.append((jet[None], 3.0 * (arm[:3, :3] @ along)[None]))
    force = sum(f.sum(0) for _, f in outer)
    moment = sum(jnp.cross(x, f).sum(0) for x, f in outer)
    np.testing.assert_allclose(seen, rate - jnp.concatenate((moment, force)), atol=1e-6)


@pytest.mark.slow
def test_acceleration_in_a_closed_loop():
    """A wheel geared to another one at the same joint axis feels its inertia, too."""

    def wheel(name):
        return dl.Body(
            name=name,
            joint=dl.Revolute(axis=(0, 1, 0), name=f"{name} axle"),
            mass=1.0,
            inertia=0.2 * np.eye(3),
        )

    system = dl.constrain(
        dl.tree([wheel("one"), wheel("two")]),
        dl.constraints.Proportional(("one axle", "two axle"), (1.0, -1.0)),
    )
    frame = dl.Frame("one", (0.5, 0, 0))
    seen = dq.Accelerometer(frame)(system, jnp.zeros(2), jnp.zeros(2), jnp.array([0.8, 0.0]), 0.0)
    np.testing.assert_allclose(seen, [0, 0, 9.81 - 0.5 * 0.8 / 0.4], atol=1e-12)
    with pytest.raises(dl.ModelError, match="reactions of its constraints"):
        dq.JointWrench("one axle")(system, jnp.zeros(2), jnp.zeros(2), None, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("sensor", SENSORS, ids=lambda s: type(s).__name__)
def test_derivatives(floating, sensor):
    """Forward and reverse, by state, by the sensor's place and by the numbers of the machine."""
    _, system = floating
    q, v, _ = state(system)

    def measured(mass, sensor, x, v):
        mass, sensor, x, v = jax.tree.map(jnp.asarray, (mass, sensor, x, v))
        changed = dataclasses.replace(system, bodies=dataclasses.replace(system.bodies, mass=mass))
        moved = system.manifold.retract(q, x)
        return sensor(changed, moved, v, None, 0.0)

    at = system.bodies.mass, sensor, jnp.zeros(system.nv), v
    check_grads(measured, at, order=1, modes=("fwd", "rev"), atol=1e-4, rtol=1e-4)


@pytest.mark.slow("Accelerometer", "JointWrench")
@pytest.mark.parametrize("sensor", SENSORS, ids=lambda s: type(s).__name__)
def test_single_precision(floating, sensor):
    """In single precision the results are single, and equal to rounding."""
    _, system = floating
    q, v, _ = state(system)
    double = sensor(system, q, v, None, 0.0)
    single = sensor(system.astype("float32"), *(x.astype("float32") for x in (q, v)), None, 0.0)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, rtol=2e-4, atol=2e-4)


def test_differences_of_poses():
    """Beyond half a turn, where subtracted rotation vectors would be wrong by a whole one."""
    pose = dq.Pose("hand")
    one = jnp.array([0, 0, np.pi - 0.01, 1, 2, 3])
    two = jnp.array([0, 0, 0.01 - np.pi, 1, 2, 3.5])
    np.testing.assert_allclose(pose.difference(one, two), [0, 0, -0.02, 0, 0, -0.5], atol=1e-12)
    turned = so3.log(so3.exp(two[:3]) @ so3.exp(jnp.array([0.1, 0.2, 0.3])))
    moved = jnp.concatenate((turned, two[3:]))
    np.testing.assert_allclose(pose.difference(moved, two)[:3], [0.1, 0.2, 0.3], atol=1e-12)


@pytest.mark.parametrize(
    ("sensor", "said"),
    [
        (dq.Accelerometer("hnad"), "hand"),
        (dq.Gyroscope("hnad"), "hand"),
        (dq.JointWrench("slid"), "slide"),
    ],
)
def test_unknown_places_are_named(floating, sensor, said):
    _, system = floating
    with pytest.raises(dl.ModelError, match=said):
        sensor(system, *state(system)[:2], None, 0.0)
