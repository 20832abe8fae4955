"""The convex step: contacts, stops and dry friction against closed forms and other methods."""

from importlib.resources import files

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loops import four_bar

import difflie as dl
from difflie import quantities as dq
from difflie.constraints import HardStop, PointOnPlane, SphereOnPlane
from difflie.integrators import ConvexContact
from difflie.integrators.impulse_laws import Cones, Discs, Intervals
from difflie.system import ModelError

G = 9.81


def cube(friction=0.5, *, tan=0.0, stiffness=1e12, half=(0.05, 0.05, 0.05), mass=1.0):
    """A box on the ground, which is inclined: gravity is."""
    a, b, c = (4 * x * x for x in half)
    inertia = mass / 12 * np.diag([b + c, a + c, a + b])
    box = dl.Body(name="box", joint=dl.Free(), mass=mass, inertia=inertia)
    system = dl.chain([box]).with_shapes({"box": dl.Box("box", half), "ground": dl.Plane()})
    system = dl.touching(system, "ground", "box", friction=friction, stiffness=stiffness)
    angle = np.arctan(tan)
    return system.replace(gravity=np.array([G * np.sin(angle), 0, -G * np.cos(angle)]))


def on_ground(system, height=0.05):
    return system.neutral().at[6].set(height)


def run_of(system, q, v, dt, time, **given):
    return dl.simulate(
        system,
        q,
        v,
        dt=dt,
        steps=round(time / dt),
        method=given.pop("method", "ConvexContact"),
        **given,
    )


@pytest.mark.slow
def test_laws_are_nearest_points_and_their_slopes():
    """Guards the three laws: optimal in the cone, and slopes that are their derivatives."""
    rng = np.random.default_rng(0)
    k = 200
    softness = jnp.asarray(rng.uniform(0.5, 2, (2, k)))
    friction = jnp.asarray(rng.uniform(0, 1.5, k)).at[:20].set(0)
    target = jnp.asarray(rng.normal(size=(k, 3)))
    R = jnp.stack((softness[0], softness[1], softness[1]), 1)
    cones = Cones(R, target, friction, jnp.ones(k, bool))
    u = jnp.asarray(rng.normal(size=(k, 3)))
    g, slopes = cones.impulses(u), cones.slopes(u)
    y = (target - u) / R
    cost = jnp.sum((g - y) ** 2 * R, axis=1)
    assert jnp.all(jnp.hypot(g[:, 1], g[:, 2]) <= friction * g[:, 0] + 1e-12)
    for _ in range(20):
        other = g + rng.normal(size=(k, 3)) * 10.0 ** rng.uniform(-6, 0, (k, 1))
        inside = jnp.hypot(other[:, 1], other[:, 2]) <= friction * other[:, 0]
        assert jnp.all(~inside | (jnp.sum((other - y) ** 2 * R, axis=1) >= cost - 1e-12))
    laws = (
        (cones, u),
        (Intervals(R[:, :1], target[:, :1], -softness[0], softness[1]), u[:, :1]),
        (Discs(R[:, 1:2], target[:, :2], softness[0]), u[:, :2]),
    )
    for law, u in laws:
        whole = jax.jacfwd(law.impulses)(u)
        each = -jnp.stack([whole[i, :, i] for i in range(k)])
        np.testing.assert_allclose(law.slopes(u), each, atol=1e-12)
        assert np.linalg.eigvalsh(law.slopes(u)).min() > -1e-12
    assert slopes.shape == (k, 3, 3)


@pytest.mark.slow("0.001")
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
def test_a_block_on_a_slope_sticks_or_slides(dt):
    """Guards creep and the threshold: at rest below it to 1e-12 m/s, Coulomb's motion above."""
    v = {}
    for part in (0.9, 0.999, 1.001, 1.5):
        system = cube(tan=0.5 * part)
        run = run_of(system, on_ground(system), np.zeros(6), dt, 1.0)
        assert run.result.ok
        v[part] = float(run.v[-1, 3])
    for part in (0.9, 0.999):
        assert abs(v[part]) < 1e-12
    for part in (1.001, 1.5):
        angle = np.arctan(0.5 * part)
        a = G * (np.sin(angle) - 0.5 * np.cos(angle))
        np.testing.assert_allclose(v[part], a, rtol=2e-3)


@pytest.mark.slow("0.05")
@pytest.mark.parametrize("height", [0.05, 0.06])
def test_a_sliding_block_stays_on_the_ground(height):
    """Guards the gap that a cone law holds what slides at, h mu v, and what a landing throws up."""
    system = cube()
    run = run_of(system, on_ground(system, height), [0, 0, 0, 3.0, 0, 0], 5e-3, 0.2)
    assert run.result.ok
    assert abs(run.q[-1, 6] - 0.05) < 1e-5
    assert run.q[:, 6].max() <= height + 1e-5
    np.testing.assert_allclose(run.v[-1, 3], 3 - 0.5 * G * 0.2, rtol=1e-6)


@pytest.mark.slow
def test_a_sliding_ball_rolls_in_the_end():
    """The speed is then 5/7 of that at the start, after 2 v / (7 mu g)."""
    body = dl.Body(name="ball", joint=dl.Free(), mass=2.0, inertia=0.4 * 2 * 0.01 * np.eye(3))
    ball = dl.chain([body]).with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
    system = dl.touching(ball, "ground", "ball", friction=0.3, stiffness=1e12)
    q, v = system.neutral().at[6].set(0.1), np.array([0, 0, 0, 2.1, 0, 0])
    run = run_of(system, q, v, 2e-3, 0.4)
    poses = dl.body_poses(system, run.q[-1])[0]
    speed = poses[:3, :3] @ run.v[-1, 3:]
    np.testing.assert_allclose(speed, (1.5, 0, 0), atol=2e-3)
    sliding = np.asarray(run.v[:, 1]) < 14.9
    np.testing.assert_allclose(sliding.sum() * 2e-3, 2 * 2.1 / (7 * 0.3 * G), atol=4e-3)


@pytest.mark.slow
def test_the_report_of_contacts_has_the_impulses():
    """Guards forces that are taken from overlaps: weight, and friction of a block that sticks."""
    system = cube(tan=0.3)
    run = run_of(system, on_ground(system), np.zeros(6), 5e-3, 0.2)
    report = run.contacts(system)
    np.testing.assert_allclose(report.force[-1, 0], -system.gravity, atol=1e-9)
    np.testing.assert_allclose(report.pressure[-1, 0], -system.gravity[2], atol=1e-9)
    assert report.slip[-1, 0] < 1e-12
    scene = dl.view.scene(system, run)
    (arrows,) = scene.contacts
    np.testing.assert_allclose(arrows.forces[-1, 0], -system.gravity, atol=1e-9)


@pytest.mark.slow
def test_moments_brake_a_spinning_and_a_rolling_ball():
    """By mu_s m g and mu_r m g, in closed form; without the moments of the method an error."""
    body = dl.Body(name="ball", joint=dl.Free(), mass=2.0, inertia=0.4 * 2 * 0.01 * np.eye(3))
    ball = dl.chain([body]).with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
    system = dl.touching(
        ball, "ground", "ball", friction=0.8, spinning=1e-3, rolling=2e-3, stiffness=1e12
    )
    q = system.neutral().at[6].set(0.1)
    with pytest.raises(ValueError, match="moments=True"):
        run_of(system, q, np.zeros(6), 2e-3, 0.1)
    method, inertia = ConvexContact(moments=True), 8e-3
    spun = run_of(system, q, [0, 0, 5.0, 0, 0, 0], 2e-3, 0.5, method=method)
    rate = 5 - 1e-3 * 2 * G / inertia * 0.5
    np.testing.assert_allclose(spun.v[-1, 2], rate, rtol=2e-3)
    rolled = run_of(system, q, [0, 10.0, 0, 1.0, 0, 0], 2e-3, 0.5, method=method)
    slowed = 10 - 2e-3 * 2 * G / (inertia + 2 * 0.01) * 0.5
    np.testing.assert_allclose(rolled.v[-1, 1], slowed, rtol=2e-3)
    still = run_of(system, q, [0, 0, 0.5, 0, 0, 0], 2e-3, 1.0, method=method)
    assert np.abs(still.v[-1]).max() < 1e-12


@pytest.mark.slow("1.0", "0.7")
@pytest.mark.parametrize("restitution", [1.0, 0.7, 0.0])
def test_a_ball_bounces_by_its_restitution(restitution):
    """To e^2 of the height, and it rests on the ground without overlap in the end."""
    body = dl.Body(name="ball", joint=dl.Free(), mass=0.4, inertia=1e-3 * np.eye(3))
    contact = SphereOnPlane(dl.Frame("ball"), dl.Frame(), radius=0.05, restitution=restitution)
    system = dl.constrain(dl.tree([body]), contact)
    run = run_of(system, system.neutral().at[6].set(1.05), np.zeros(6), 1e-3, 1.0)
    height = np.asarray(run.q[:, 6]) - 0.05
    assert height.min() > -2e-4
    np.testing.assert_allclose(height[500:].max(), restitution**2, atol=2e-3)
    if not restitution:
        np.testing.assert_allclose(run.states.contacts[-1, 0, 0] / 1e-3, 0.4 * G, rtol=1e-6)


@pytest.mark.slow
def test_dry_friction_holds_an_arm():
    """Guards creep: friction a little above the load holds for good, at any step."""
    arm = dl.load(str(files("difflie") / "data" / "arm7.urdf"))
    q, rest = np.linspace(0.3, -0.7, arm.nv), np.zeros(arm.nv)
    load = np.abs(dl.inverse_dynamics(arm, q, rest, rest))
    held = arm.replace(friction=1.001 * load + 1e-6)
    for dt in (2e-2, 1e-3):
        run = run_of(held, q, rest, dt, 10.0, save_every=100)
        assert np.abs(run.q[-1] - q).max() < 1e-6
        assert np.abs(run.v[-1]).max() < 1e-14


@pytest.mark.slow
def test_a_stop_carries_by_its_stiffness():
    """A weight on a compliant stop sinks in by m g / k, and one at a hard stop not at all."""
    lift = dl.Body(name="lift", joint=dl.Prismatic(axis=(0, 0, 1), lower=-0.1), mass=2.0)
    soft = dl.attach(dl.chain([lift]), dl.JointStop(stiffness=1e4, dissipation=1.0))
    end = run_of(soft, [0.0], [0.0], 5e-3, 2.0).q[-1, 0]
    np.testing.assert_allclose(end, -0.1 - 2 * G / 1e4, rtol=1e-9)
    hard = dl.constrain(dl.chain([lift]), HardStop("lift", lower=-0.1))
    run = run_of(hard, [0.0], [0.0], 5e-3, 2.0)
    np.testing.assert_allclose(run.q[-1, 0], -0.1, atol=1e-5)
    np.testing.assert_allclose(run.states.contacts[-1, 0], (2 * G * 5e-3, 0, 0), atol=1e-9)


def two_links(*parts):
    inertia, com = 0.02 * np.eye(3), (0, 0, -0.25)
    hinge = dl.Revolute(axis=(0, 1, 0), friction=0.2, damping=0.1, stiffness=2.0)
    links = [
        dl.Body(name="upper", joint=hinge, mass=1.0, com=com, inertia=inertia),
        dl.Body(
            name="lower", joint=hinge, position=(0, 0, -0.5), mass=1.0, com=com, inertia=inertia
        ),
    ]
    return dl.attach(dl.chain(links), *parts)


@pytest.mark.slow
def test_order_of_a_smooth_motion():
    """Order 1, towards RKMK4, with springs, dampers and a servo that act at the end of a step."""
    system = two_links(
        dl.PositionServo("upper", kp=20.0, kd=2.0), dl.PositionServo("lower", kp=20.0, kd=2.0)
    )
    system = system.replace(friction=np.zeros(2))
    q, v, control = [0.3, -0.2], [1.0, 0.5], np.array([0.8, -0.5])
    exact = run_of(system, q, v, 1e-4, 0.5, method="RKMK4", control=control).q[-1]
    errors = [
        float(np.abs(run_of(system, q, v, dt, 0.5, control=control).q[-1] - exact).max())
        for dt in (2e-3, 1e-3)
    ]
    assert errors[1] < 3e-3
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.1)


def test_stiff_servos_take_long_steps():
    """Guards servos at the end of a step: 1e5 N m/rad at 5 ms, which explicit steps throw up."""
    servos = [dl.PositionServo(name, kp=1e5, kd=100.0) for name in ("upper", "lower")]
    system = two_links(*servos)
    run = run_of(system, [0.0, 0.0], [0.0, 0.0], 5e-3, 1.0, control=np.array([0.1, -0.2]))
    assert run.result.ok
    np.testing.assert_allclose(run.q[-1], (0.1, -0.2), atol=1e-3)


@pytest.mark.slow
def test_momentum_of_what_touches_only_each_other():
    """Guards action and reaction: two boxes that collide in space keep all momenta to rounding."""
    names = ("one", "two")
    inertia = np.diag([0.02, 0.03, 0.025])
    bodies = [dl.Body(name=n, joint=dl.Free(), mass=2.0, inertia=inertia) for n in names]
    system = dl.tree(bodies).with_shapes({n: dl.Box(n, (0.1, 0.15, 0.12)) for n in names})
    system = dl.touching(system, "one", "two", friction=0.6, stiffness=1e12)
    system = system.replace(gravity=np.zeros(3))
    q = system.neutral().at[4:7].set(jnp.array([-0.3, 0.02, 0.05])).at[11].set(0.1)
    v = np.array([0.3, 0.5, -0.2, 1.5, 0.1, 0, -0.4, 0.2, 0.6, -0.5, 0, 0.2])
    run = run_of(system, q, v, 2e-3, 0.6)
    assert run.result.ok
    hit = np.abs(np.asarray(run.states.points)).max()
    assert hit > 0.1
    momenta = jax.vmap(lambda q, v: dl.momentum(system, q, v))(run.q, run.v)
    for part in jax.tree.leaves(momenta):
        np.testing.assert_allclose(part, np.broadcast_to(part[0], part.shape), atol=2e-13)
    energy = np.asarray(
        jax.vmap(
            lambda v: 0.5 * jnp.sum(v**2 * jnp.tile(jnp.array([0.02, 0.03, 0.025, 2, 2, 2]), 2))
        )(run.v)
    )
    assert np.diff(energy).max() < 1e-4


def starts(count, dtype):
    rng = np.random.default_rng(3)
    turn = rng.normal(size=(count, 4))
    q = np.c_[turn, np.zeros((count, 2)), rng.uniform(0.05, 0.09, count)]
    q[:, :4] /= np.linalg.norm(turn, axis=1)[:, None]
    v = np.c_[3 * rng.normal(size=(count, 3)), rng.normal(size=(count, 3))]
    return q.astype(dtype), v.astype(dtype)


@pytest.mark.slow
@pytest.mark.thorough("float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivatives_of_sticking_sliding_and_open_contacts(dtype):
    """Against differences, by pose, velocity, friction and size, in both modes; also f32."""
    system = cube(mass=0.4).astype(dtype)
    numbers = dl.Parameters(system, ["contacts/friction[0]", "box/half_sizes_x"])
    there = numbers.values_of(system)
    q, v = starts(24, dtype)

    def end(x, q, v):
        moved = numbers.with_values(there + x[12:])
        start = system.manifold.retract(q, x[:6])
        run = run_of(moved, start, v + x[6:12], 5e-3, 0.01)
        return jnp.concatenate((run.q[-1], run.v[-1]))

    zero = jnp.zeros(14, dtype)
    over = lambda f: jax.jit(jax.vmap(lambda q, v: f(q, v)))  # noqa: E731
    forward = over(lambda q, v: jax.jacfwd(end)(zero, q, v))(q, v)
    reverse = over(lambda q, v: jax.jacrev(end)(zero, q, v))(q, v)
    size = np.abs(forward).max(axis=(1, 2), keepdims=True)
    exact = dtype == "float64"
    assert (np.abs(forward - reverse) / size).max() < (1e-12 if exact else 1e-3)
    if exact:
        step = 1e-7 * jnp.eye(14)
        both = [
            jax.vmap(lambda d, s=s: jax.vmap(end, (None, 0, 0))(s * d, q, v))(step) for s in (1, -1)
        ]
        slopes = np.moveaxis(np.asarray((both[0] - both[1]) / 2e-7), 0, -1)
        assert (np.abs(slopes - forward) / size).max() < 1e-6


@pytest.mark.parametrize("shape", ["cube", "rod", "plate"])
@pytest.mark.slow
def test_every_step_of_tosses_is_solved(shape):
    """Guards convergence from anywhere, and energy: friction 0.2, 1, 2, in f64 and f32."""
    half = {"cube": (0.05,) * 3, "rod": (0.2, 0.01, 0.01), "plate": (0.1, 0.1, 0.005)}[shape]
    friction = {"cube": 0.2, "rod": 1.0, "plate": 2.0}[shape]
    rng = np.random.default_rng(1)
    turn = rng.normal(size=(100, 4))
    q = np.c_[turn / np.linalg.norm(turn, axis=1)[:, None], np.tile((0, 0, 0.3), (100, 1))]
    v = np.c_[6 * rng.normal(size=(100, 3)), rng.normal(size=(100, 3))]
    for dtype in ("float64", "float32"):
        system = cube(friction, half=half, mass=0.4).astype(dtype)
        toss = jax.jit(jax.vmap(lambda q, v, s=system: run_of(s, q, v, 5e-3, 1.5)))
        run = toss(q.astype(dtype), v.astype(dtype))
        assert run.result.ok.all()
        rates, z = np.asarray(run.v, float), np.asarray(run.q[..., 6], float)
        inertia = np.r_[np.diag(np.asarray(system.bodies.inertia[0], float)), [0.4] * 3]
        energy = 0.5 * (rates**2 * inertia).sum(axis=2) + 0.4 * G * z
        assert np.diff(energy, axis=1).max() < 1e-2
        at_rest = np.abs(np.asarray(run.v[:, -1])).max(axis=1)
        assert np.median(at_rest) < (1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.slow
def test_closed_loops_move_and_have_derivatives():
    """Guards equations that nothing can violate, of a planar loop, and the order of loops."""
    system, q, v = four_bar()

    def end(v, dt, method="ConvexContact"):
        return run_of(system, q, v, dt, 0.05, method=method)

    exact = end(v, 1e-4, "RKMK4")
    runs = [end(v, dt) for dt in (1e-3, 5e-4)]
    errors = [float(np.abs(run.q[-1] - exact.q[-1]).max()) for run in runs]
    assert runs[1].constraint_violation(system)[0].max() < 1e-12
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.15)
    along = np.asarray(v)
    slope = jax.jvp(lambda v: end(v, 5e-4).q[-1], (v,), (along,))[1]
    other = jax.jvp(lambda v: end(v, 1e-4, "RKMK4").q[-1], (v,), (along,))[1]
    np.testing.assert_allclose(slope, other, rtol=2e-2)


@pytest.mark.slow
def test_impulses_are_in_the_order_of_the_constraints():
    """Guards hard contacts and stops that alternate, whose impulses are solved for apart."""
    names = ("a", "b", "c")
    lifts = [
        dl.Body(name=n, joint=dl.Prismatic(axis=(0, 0, 1), lower=0.0), mass=m)
        for n, m in zip(names, (1.0, 2.0, 4.0), strict=True)
    ]
    system = dl.constrain(
        dl.tree(lifts),
        HardStop("a", lower=0.0),
        SphereOnPlane(dl.Frame("b"), dl.Frame(None, (0, 0, -0.1)), radius=0.1),
        HardStop("c", lower=0.0),
    )
    run = run_of(system, np.zeros(3), np.zeros(3), 5e-3, 0.5)
    np.testing.assert_allclose(run.states.contacts[-1, :, 0] / 5e-3, G * np.array([1, 2, 4]))


@pytest.mark.slow
def test_only_what_is_explicit_limits_the_step():
    """Guards warnings: of a spring between points that is too stiff, and not of contacts."""
    stiff = cube(stiffness=1e9)
    assert run_of(stiff, on_ground(stiff), np.zeros(6), 5e-3, 0.1).result.resolution.good
    dl.step(stiff, on_ground(stiff), np.zeros(6), dt=5e-3, method="ConvexContact")
    spring = dl.Spring([(None, (0, 0, 1)), ("box", (0, 0, 0))], 1e7, 0.95)
    sprung = dl.attach(stiff, spring)
    with pytest.warns(UserWarning, match="ConvexContact does not resolve its stiffness"):
        run_of(sprung, on_ground(sprung), np.zeros(6), 5e-3, 0.01)


@pytest.mark.slow
def test_contact_forces_along_a_run_are_its_impulses():
    """Guards that no other law's force is given: friction that sticks, hard points."""
    system = cube(tan=0.45)
    run = run_of(system, on_ground(system), np.zeros(6), 5e-3, 0.2)
    weight = -np.asarray(system.gravity) * float(system.bodies.mass[0])
    force = dq.along(dq.ContactForce("box"), system, run)
    np.testing.assert_allclose(force[-1], weight, rtol=1e-6, atol=1e-9)
    peak = {"force": dq.Peak(dq.ContactForce("box"))}
    with pytest.raises(ValueError, match="contact force by the smooth law"):
        run_of(system, on_ground(system), np.zeros(6), 5e-3, 0.2, reductions=peak)

    feet = [
        PointOnPlane(dl.Frame("b", (x, y, 0)), dl.Frame(), friction=0.5)
        for x, y in ((0.1, 0), (-0.1, 0.1), (-0.1, -0.1))
    ]
    body = dl.Body(name="b", joint=dl.Free(), mass=2.0, inertia=0.1 * np.eye(3))
    stool = dl.constrain(dl.chain([body]), *feet).replace(gravity=system.gravity)
    for method in ("ConvexContact", "Moreau"):
        run = run_of(stool, stool.neutral(), np.zeros(6), 5e-3, 0.2, method=method)
        force = dq.along(dq.ContactForce("b"), stool, run)
        np.testing.assert_allclose(force[-1], -2 * system.gravity, rtol=1e-5, atol=1e-6)
    with pytest.raises(ModelError, match="hard contacts of 'b'"):
        dq.ContactForce("b")(stool, stool.neutral(), np.zeros(6), None, 0.0)
