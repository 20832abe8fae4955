"""Named frames stand wherever a body's name does; checked against MuJoCo and Pinocchio."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import difflie as dl
import difflie.quantities as dq

XML = """
<mujoco model="two"><worldbody>
  <site name="mark" pos="1 2 3" euler="10 20 30"/>
  <body name="base" pos="0 0 1"><freejoint/>
    <geom size=".1" mass="1" contype="0" conaffinity="0"/>
    <site name="base" pos="9 9 9" euler="0 90 0"/>
    <body name="hand" pos=".3 .1 0" euler="0 40 0">
      <joint name="wrist" axis="1 2 3" pos=".1 .2 .3"/>
      <geom size=".1" mass="1" contype="0" conaffinity="0"/>
      <site name="tcp" pos=".1 .2 .3" euler="30 50 170"/><site pos="0 0 1"/>
</body></body></worldbody></mujoco>
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A floating body with a hand, of a file with four sites, and MuJoCo's model of it."""
    path = tmp_path_factory.mktemp("frames") / "two.xml"
    path.write_text(XML)
    system = dl.load(path)
    return system, mujoco.MjModel.from_xml_path(str(path))


def state(system, seed=0):
    rng = np.random.default_rng(seed)
    q = system.manifold.retract(system.neutral(), rng.normal(size=system.nv))
    return q, jnp.asarray(rng.normal(size=system.nv))


@pytest.mark.slow("site:base-1")
@pytest.mark.parametrize(("name", "k"), [("mark", 0), ("site:base", 1), ("tcp", 2), ("site3", 3)])
def test_sites_are_where_mujoco_has_them(two, name, k):
    """Guards poses and Jacobians of sites of moving bodies and of the world."""
    system, model = two
    data, ordering = mujoco.MjData(model), dl.MujocoOrdering(system, model)
    q, v = state(system)
    data.qpos[:] = ordering.q(q)
    mujoco.mj_forward(model, data)
    T = dl.pose(system, q, name)
    np.testing.assert_allclose(T[:3, 3], data.site_xpos[k], atol=1e-12)
    np.testing.assert_allclose(T[:3, :3], data.site_xmat[k].reshape(3, 3), atol=1e-12)
    if name == "mark":
        with pytest.raises(ValueError, match="'mark' is on the world; the world does not move"):
            dl.jacobian(system, q, name)
        return
    linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacSite(model, data, linear, angular, k)
    rates = np.concatenate((angular, linear)) @ np.asarray(ordering.v(q, v))
    np.testing.assert_allclose(dl.jacobian(system, q, name) @ v, rates, atol=1e-12)
    turned = np.kron(np.eye(2), T[:3, :3].T) @ rates
    np.testing.assert_allclose(dl.jacobian(system, q, name, "frame") @ v, turned, atol=1e-12)


def test_frames_of_pinocchio(robots_urdf):
    """Guards LOCAL and LOCAL_WORLD_ALIGNED of a frame of an arm, the angular rows first."""
    pin = pytest.importorskip("pinocchio")
    system, model = dl.load(robots_urdf), pin.buildModelFromUrdf(str(robots_urdf))
    ordering, (q, v) = dl.PinocchioOrdering(system, model), state(dl.load(robots_urdf), 1)
    own = dl.Frame(system.body_names[-1], (0.1, -0.2, 0.3), (0.4, 0.5, -0.6))
    body = model.frames[model.getFrameId(own.body)]
    inner = pin.SE3(np.asarray(dl.so3.exp(own.rotation)), np.asarray(own.position))
    k = model.addFrame(
        pin.Frame("tcp", body.parentJoint, body.placement * inner, pin.FrameType.OP_FRAME)
    )
    system, data = system.with_frames({"tcp": own}), model.createData()
    x = np.asarray(ordering.q(q))
    pin.framesForwardKinematics(model, data, x)
    np.testing.assert_allclose(dl.pose(system, q, "tcp"), data.oMf[k].homogeneous, atol=1e-12)
    for axes, of in (("frame", pin.LOCAL), ("world", pin.LOCAL_WORLD_ALIGNED)):
        J = pin.computeFrameJacobian(model, data, x, k, of) @ np.asarray(ordering.v(q, v))
        seen = dl.jacobian(system, q, "tcp", axes) @ v
        np.testing.assert_allclose(seen, np.roll(J, 3), atol=1e-11)


@pytest.fixture
def robots_urdf():
    return dl.examples.path("arm7")


@pytest.mark.slow
def test_rates_of_jacobians_at_a_frame(two):
    """Guards the three rates at a frame against derivatives along the motion."""
    system, _ = two
    q, v = state(system, 2)
    for kind in ("body", "spatial", "geometric"):
        J, rate = (getattr(dl, f"{kind}_jacobian{end}") for end in ("", "_rate"))
        along = lambda t, J=J: J(system, system.manifold.retract(q, t * v), "tcp")  # noqa: E731
        expected = jax.jvp(along, (0.0,), (1.0,))[1]
        np.testing.assert_allclose(rate(system, q, v, "tcp"), expected, atol=1e-12)


def test_a_body_wins_over_a_site_of_its_name(two):
    """Guards which of both a name means, that the site is reached, and errors with the nearest."""
    system, _ = two
    q, _ = state(system)
    np.testing.assert_array_equal(dl.pose(system, q, "base"), dl.body_poses(system, q)[0])
    assert system.frame("base").position.tolist() == [0, 0, 0]
    assert system.frame("site:base").position.tolist() == [9, 9, 9]
    assert list(system.frames) == ["mark", "base", "tcp", "site3"]
    with pytest.raises(ValueError, match="no body is named 'tpc', and no frame; did you mean 'tc"):
        dl.pose(system, q, "tpc")
    with pytest.raises(TypeError, match="two: None is none of its 3 bodies; give the name of a"):
        dl.pose(system, q, None)
    with pytest.raises(IndexError, match="two: 3 is none of its 3 bodies"):
        dl.jacobian(system, q, 3)
    with pytest.raises(ValueError, match="axes is 'local'; it must be 'world' or 'frame'"):
        dl.jacobian(system, q, "tcp", "local")


@pytest.mark.slow
def test_quantities_take_frames(two):
    """Guards positions, gyroscopes and accelerations at a name, and at a frame on a named one."""
    system, _ = two
    q, v = state(system)
    on_hand = system.frame("tcp")
    for quantity in (dq.Origin, dq.Pose, dq.Gyroscope, dq.Accelerometer):
        values = [quantity(frame)(system, q, v, None, 0.0) for frame in ("tcp", on_hand)]
        np.testing.assert_allclose(*values, atol=1e-12)
    beyond = dl.Frame("tcp", (0, 0, 0.5), (0.1, 0.2, 0.3))
    expected = dl.pose(system, q, "tcp") @ beyond.pose.to_array()
    np.testing.assert_allclose(dl.pose(system, q, beyond), expected, atol=1e-12)
    np.testing.assert_allclose(dq.Distance("tcp", beyond)(system, q, v, None, 0.0), 0.5)


@pytest.mark.slow
def test_poses_depend_on_frames(two):
    """Guards that frames are leaves, batched and differentiated, and keep a system's precision."""
    system, _ = two
    q, _ = state(system)

    def height(position):
        frame = dl.Frame("hand", position, system.frames["tcp"].rotation)
        return dl.pose(system.with_frames({"tcp": frame}), q, "tcp")[2, 3]

    up = dl.body_poses(system, q)[system.body_names.index("hand")][2, :3]
    np.testing.assert_allclose(jax.grad(height)(jnp.ones(3)), up, atol=1e-12)
    many = jax.vmap(lambda q: dl.pose(system, q, "tcp"))(jnp.stack((q, system.neutral())))
    np.testing.assert_allclose(many[0], dl.pose(system, q, "tcp"), atol=1e-14)
    single = system.astype(jnp.float32)
    assert dl.pose(single, q.astype(jnp.float32), "tcp").dtype == jnp.float32
    frozen = system.frozen()
    np.testing.assert_allclose(dl.pose(frozen, q, "tcp"), dl.pose(system, q, "tcp"), atol=1e-12)


COUPLINGS = {
    "spring": lambda a, b: dl.Spring([(a, (0.1, 0.2, 0.3)), (b, (0, 0, 0.1))], 50.0, 0.1),
    "bushing": lambda a, b: dl.Bushing(
        [(a, (0.1, 0, 0)), (b, (0, 0.2, 0))],
        np.diag([1.0, 2, 3, 4, 5, 6]),
        first_rotation=(0.3, 0.1, 0),
        second_rotation=(0, 0.2, 0.1),
    ),
    "torsion": lambda a, b: dl.TorsionalSpring([(a, (0, 0, 0)), (b, (0, 0, 0))], (1, 2, 3), 4.0),
    "stop": lambda a, b: dl.RotationStop(
        [(a, (0, 0, 0)), (b, (0, 0, 0))], 4.0, 0.1, first_rotation=(0.3, 0.1, 0)
    ),
    "jet": lambda a, b: dl.FollowerForce([(a, (0.1, 0, 0))], (1.0, 2.0, 3.0)),
    "plane": lambda a, b: dl.PlaneContact([(a, (0, 0, 9)), (b, (0.1, 0, 0))], 10.0, (1, 2, 3)),
}


@pytest.mark.slow("bushing", "plane", "stop")
@pytest.mark.parametrize("kind", COUPLINGS)
def test_forces_at_frames_are_those_at_massless_bodies(kind):
    """Guards points and directions in frames: a frame acts as a body without mass fixed there."""
    place = {"position": (0.1, 0.2, 0.3), "rotation": np.array([0.5, -0.4, 0.9])}
    bodies = [
        dl.Body(name="base", joint=dl.Free(), mass=1.0, inertia=np.eye(3)),
        dl.Body(name="hand", parent="base", joint=dl.Spherical(), mass=1.0, inertia=np.eye(3)),
    ]
    fixed = [
        dl.Body(name="a", parent="base", joint=dl.Fixed(), **place),
        dl.Body(name="b", parent="hand", joint=dl.Fixed(), **place),
    ]
    named = {"a": dl.Frame("base", **place), "b": dl.Frame("hand", **place)}
    coupling = COUPLINGS[kind]("a", "b")
    expected, seen = dl.tree([*bodies, *fixed]), dl.tree(bodies, frames=named)
    q, v = state(seen)
    forces = [dl.passive_force(dl.attach(s, coupling), q, v) for s in (expected, seen)]
    assert np.abs(forces[0]).max() > 1e-3
    np.testing.assert_allclose(forces[1], forces[0], atol=1e-12)


def test_thrusters_at_frames():
    """Guards the axis of an actuator in a frame, and its name."""
    hull = dl.Body(name="hull", joint=dl.Free(), mass=2.0, inertia=np.eye(3))
    hull = dl.chain([hull], frames={"nozzle": dl.Frame("hull", (0, 0, -1), axis=(1, 0, 0))})
    system = dl.attach(hull, dl.Thruster(axis={"body": "nozzle"}, max_thrust=5.0))
    assert system.actuator_names == ("nozzle",)
    axis = system.actuators[0].axis
    np.testing.assert_allclose(axis.position, (0, 0, -1))
    np.testing.assert_allclose(axis.unit, (1, 0, 0), atol=1e-12)
    with pytest.raises(dl.ModelError, match=r"no body is named 'nozle', and no frame; .*'nozzle'"):
        dl.attach(hull, dl.PointForce([("nozle", (0, 0, 0))], (0, 0, 1)))


def test_constraints_at_frames():
    """Guards that a loop closed at named frames is the one closed at points of the bodies."""
    rods = [
        dl.Body(name="one", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0)),
        dl.Body(name="two", joint=dl.Revolute(), position=(1, 0, 0), mass=1.0, com=(0.5, 0, 0)),
    ]
    tips = {name: dl.Frame(name, (1, 0, 0)) for name in ("one", "two")}
    system = dl.tree(rods, frames={f"{name} tip": tip for name, tip in tips.items()})
    of = dl.constraints.Distance
    pair = [
        dl.constrain(system, of(dl.Frame(first), dl.Frame(second), length=1.0))
        for first, second in (("one tip", "two tip"),)
    ]
    pair.append(dl.constrain(system, of(tips["one"], tips["two"], length=1.0)))
    q = np.array([0.4, 0.9])
    seen = [dl.constraint_jacobian(each, q) for each in pair]
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-12)
    with pytest.raises(dl.ModelError, match=r"constraint 0, .*no body is named 'on tip'"):
        dl.constrain(system, of(dl.Frame("on tip"), dl.Frame("two"), length=1.0))


def test_frames_in_configurations(tmp_path):
    """Guards [system.frames], one frame on another, and faults with their place."""
    from difflie.io.config import ConfigError, read_config
    from difflie.io.loading import load_system

    file = tmp_path / "run.toml"
    head = '[system]\nfile = "package:arm7"\n'
    last = dl.load(dl.examples.path("arm7")).body_names[-1]
    file.write_text(
        f'{head}frames.tip = {{body = "{last}", position = [0.0, 0.0, 1.0]}}\n'
        '[system.frames.top]\nbody = "tip"\nposition = [0.0, 0.0, 0.5]\n'
    )
    top = load_system(read_config(file)).frames["top"]
    assert (top.body, top.position.tolist()) == (last, [0, 0, 1.5])
    file.write_text(f'{head}frames.tip = {{bodi = "x"}}\n')
    with pytest.raises(ConfigError, match=r"system.frames.tip has no key 'bodi'; .* 'body'"):
        read_config(file)
    file.write_text(f'{head}frames.tip = {{body = "x"}}\n')
    with pytest.raises(ConfigError, match=r"run.toml: system.frames: .* no body is named 'x'"):
        load_system(read_config(file))


@pytest.mark.slow
def test_frames_stay_with_copies(two):
    """Guards that locked and absolute machines keep the frames, and that text shows them."""
    system, _ = two
    locked = dl.lock(system, {"wrist": 0.3})
    q = np.asarray(locked.neutral())
    T = dl.pose(locked, q, "tcp")
    whole = dl.pose(system, jnp.append(q, 0.3), "tcp")
    np.testing.assert_allclose(T, whole, atol=1e-12)
    arm = dl.load(dl.examples.path("arm7")).with_frames({"tip": dl.Frame("link7", (0, 0, 1))})
    machine = dl.absolute(arm, without=("armature", "damping", "friction", "limits"))
    assert list(machine.frames) == ["tip"]
    assert "frames: mark, base, tcp, site3" in repr(system)
