"""Passive forces of tendons, ball joints, gravity compensation and fluids in MJCF, as MuJoCo's."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from test_mjcf_actuators import BOX, TREE, WRAPPED, states

import difflie as dl


def read(path, text, **options):
    """The system, MuJoCo's model, and what the warning says."""
    path = path / "m.xml"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = dl.load(path, **options)
    said = " ".join(str(w.message).replace(str(path), "") for w in caught)
    return system, mujoco.MjModel.from_xml_path(str(path)), said


def check(system, model, count=4, scale=0.6):
    """The passive force, and the acceleration, are MuJoCo's."""
    for ordering, q, v, data in states(system, model, count, scale):
        force = dl.passive_force(system, q, v)
        np.testing.assert_allclose(ordering.tau(q, force), data.qfrc_passive, rtol=1e-9, atol=1e-9)
        a = ordering.a(q, v, dl.forward_dynamics(system, q, v, force))
        np.testing.assert_allclose(a, data.qacc, rtol=1e-8, atol=1e-8)


SPRINGS = """<tendon><fixed name="t" stiffness="20" springlength=".1 .4" damping=".3">
<joint joint="h" coef="2"/><joint joint="sl" coef="-3"/></fixed>
<spatial name="p" stiffness="20" damping="2" springlength=".2 .3"><site site="w"/><site site="s0"/>
<pulley divisor="2"/><site site="s2"/><site site="s4"/></spatial></tendon>"""


def test_tendons(tmp_path):
    """Fixed tendons, and spatial ones with a pulley, with a dead band."""
    system, model, said = read(tmp_path, TREE.format(SPRINGS))
    check(system, model)
    assert "tendon" not in said


@pytest.mark.slow("sphere")
@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_wrapped_tendons(tmp_path, kind):
    """A spring and a damper around shapes; the force is minus the gradient of the energy."""
    text = WRAPPED.format(kind=kind, one="", other="")
    text = text.replace('name="t"', 'name="t" stiffness="40" damping="2" springlength=".3"')
    text = text[: text.index("<actuator>")] + "</mujoco>"
    system, model, _ = read(tmp_path, text)
    check(system, model, scale=0.9)
    for _, q, *_ in states(system, model, 2, 0.9):
        still = dl.passive_force(system, q, jnp.zeros(2))
        slope = jax.grad(lambda q: dl.elastic_energy(system, q))(q)
        np.testing.assert_allclose(still, -slope, atol=1e-10)


HEAVY = """<tendon>
<fixed name="t" armature=".7"><joint joint="h" coef="2"/><joint joint="sl" coef="-3"/></fixed>
<spatial name="p" armature="2" stiffness="3"><site site="w"/><site site="s0"/><site site="s2"/>
</spatial></tendon>"""


def test_armature_of_tendons(tmp_path):
    """Of fixed and spatial ones, as inertia along them; also in the saved file."""
    system, model, said = read(tmp_path, TREE.format(HEAVY))
    assert "tendon" not in said and sum(isinstance(c, dl.Inerter) for c in system.couplings) == 2
    check(system, model)
    dl.save(system, tmp_path / "again.xml")
    check(system, mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml")))


def test_friction_of_tendons_is_smooth():
    """Coulomb friction against the rate of the length: 0.5 N times the moment arm."""
    cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(name="x"), mass=1.0)])
    tendon = dl.JointTendon(dl.FixedTendon("x", [-2.0]), friction=0.5)
    system = dl.attach(cart, tendon)
    np.testing.assert_allclose(dl.passive_force(system, [0.0], [3.0]), [-1.0], rtol=1e-12)
    np.testing.assert_allclose(dl.passive_force(system, [0.0], [-3.0]), [1.0], rtol=1e-12)


VECTORS = f"""<mujoco><worldbody><body name="a" pos="0 0 .3" euler="10 20 30">
<joint name="h" axis="0 1 0"/>{BOX.format(1.3)}
<body name="b" pos=".2 .1 0" euler="-30 20 50"><joint name="slide" type="slide"/>
<joint name="ball" type="ball" pos=".1 0 .02" stiffness="3" damping=".2"/>{BOX.format(0.7)}</body>
</body><body name="f" pos="0 1 .3" euler="50 20 10"><joint type="free" stiffness="4" damping=".3"/>
{BOX.format(1.3)}</body></worldbody><option><flag contact="disable"/></option></mujoco>"""


@pytest.mark.slow
def test_springs_of_ball_and_free_joints(tmp_path):
    """Towards the initial pose, with damping."""
    system, model, said = read(tmp_path, VECTORS)
    check(system, model)
    assert "springs" not in said
    assert not any(
        isinstance(c, dl.Bushing) for c in dl.load(tmp_path / "m.xml", base="fixed").couplings[1:]
    )


@pytest.mark.slow
def test_gravity_compensation(tmp_path):
    """A part of the weight of some bodies; none without gravity."""
    text = VECTORS.replace('name="b"', 'name="b" gravcomp=".7"').replace(
        'name="f"', 'name="f" gravcomp="1"'
    )
    system, model, said = read(tmp_path, text)
    check(system, model)
    assert "gravity" not in said
    weightless = dl.load(tmp_path / "m.xml", gravity=(0, 0, 0))
    assert not any(isinstance(c, dl.PointForce) for c in weightless.couplings)


@pytest.mark.parametrize("option", ['density="3"', 'viscosity=".2"', 'density="3" viscosity=".2"'])
def test_fluids(tmp_path, option):
    """The inertia-box model, with wind."""
    text = VECTORS.replace("<option>", f'<option {option} wind="1 2 3">')
    system, model, said = read(tmp_path, text)
    check(system, model)
    assert "medium" not in said


SHAPES = [
    'type="box" size=".1 .03 .02"',
    'type="sphere" size=".1"',
    'type="capsule" size=".03 .1"',
    'type="cylinder" size=".03 .1"',
    'type="ellipsoid" size=".1 .2 .15" fluidcoef=".4 .3 1.2 .9 .8"',
]


def in_water(count):
    """So many bodies, each of another shape, in a wind."""
    bodies = "".join(
        f'<body name="b{i}" pos="{i} 0 0"><freejoint/><geom {shape} euler="10 20 30" mass="1.3" '
        'pos=".1 0 .02" fluidshape="ellipsoid"/></body>'
        for i, shape in enumerate(SHAPES[-count:])
    )
    return f"""<mujoco><option density="30" viscosity=".2" wind="1 2 3"><flag contact="disable"/>
</option><worldbody>{bodies}</worldbody></mujoco>"""


@pytest.mark.slow
def test_fluid_on_ellipsoids(tmp_path):
    """The added mass, lift and drag of each kind of shape; gradients also without motion."""
    system, model, said = read(tmp_path, in_water(len(SHAPES)))
    check(system, model, count=2)
    assert "fluid" not in said and "medium" not in said
    assert sum(isinstance(c, dl.EllipsoidInFluid) for c in system.couplings) == len(SHAPES)


def test_derivatives_of_fluid_on_an_ellipsoid(tmp_path):
    """By the velocity: that of differences, and finite where the body rests in the fluid."""
    text = in_water(1).replace('wind="1 2 3"', "")
    system, *_ = read(tmp_path, text)
    q, v = system.neutral(), jnp.array([0.3, -0.2, 0.5, 1.0, -0.4, 0.7])
    force = jax.jit(lambda v: dl.passive_force(system, q, v))
    slope = jax.jit(jax.jacfwd(force))
    step = 1e-6
    columns = [(force(v + step * e) - force(v - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(slope(v), np.stack(columns, axis=1), rtol=1e-6, atol=1e-7)
    assert np.all(np.isfinite(slope(jnp.zeros(6))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(0.1, 0.2, 0.15), (1e-3, 2e-3, 5e-3), (1.0, 1.0, 1e-3)])
def test_slow_and_small_ellipsoids(dtype, size):
    """Forces and derivatives are finite down to no velocity, in single precision as well."""
    ball = dl.chain([dl.Body(name="b", joint=dl.Free(), mass=1.0, inertia=np.eye(3))])
    part = dl.EllipsoidInFluid([("b", (0.0, 0, 0))], size, density=1e3, viscosity=0.2)
    system = dl.attach(ball, part).astype(dtype)
    q = system.neutral()
    force = jax.jit(jax.vmap(lambda v: dl.passive_force(system, q, v)))
    slope = jax.jit(jax.vmap(jax.jacrev(lambda v: dl.passive_force(system, q, v))))
    pace = jnp.asarray([[0], [1e-40], [1e-24], [1e-18], [1e-14], [1e-9], [1e-4], [1]], dtype)
    v = pace * jnp.asarray([0.1, 0.2, 0.3, 0.3, -0.2, 0.5], dtype)
    assert np.all(np.isfinite(force(v))) and np.all(np.isfinite(slope(v)))


POLYNOMIALS = f"""<mujoco><compiler angle="radian"/>
<option><flag contact="disable" limit="disable"/></option><worldbody>
<body name="a"><joint name="h" axis="0 1 0" stiffness="3 2 1" damping=".1 .2 .3" springref=".2"/>
{BOX.format(1.3)}<site name="s0" pos=".1 .2 .3"/>
<body name="b" pos=".2 0 0"><joint name="sl" type="slide" axis="1 0 1" damping="0 .2 0"/>
{BOX.format(0.5)}<site name="s1" pos=".1 .2 -.3"/></body></body>
<body name="f" pos="0 1 0"><freejoint name="free"/>{BOX.format(0.9)}</body>
<site name="w" pos="0 1 0"/></worldbody>
<tendon><fixed name="t" stiffness="20 30 40" springlength=".1 .3" damping=".3 .2 .1">
<joint joint="h" coef="2"/><joint joint="sl" coef="-3"/></fixed>
<spatial name="p" stiffness="10 20 30" springlength="1.1"><site site="w"/><site site="s1"/>
</spatial>
<spatial name="r"><site site="w"/><site site="s0"/></spatial></tendon>
<default><general gainprm="0"/></default>
<actuator><general joint="h" gear="3" damping=".1 .2 .3"/><general tendon="r" gear="2"
damping=".1 .2 .3"/><general joint="free" gear="3 0 0 0 0 0" damping=".2"/></actuator>
</mujoco>"""


@pytest.mark.slow
def test_polynomial_springs_and_dampers(tmp_path):
    """Of hinges, slides, tendons and actuators; forces are minus the gradient of the energy."""
    system, model, said = read(tmp_path, POLYNOMIALS)
    check(system, model)
    assert "nonlinear" not in said
    for _, q, *_ in states(system, model, 2):
        still = dl.passive_force(system, q, jnp.zeros(system.nv))
        slope = jax.grad(lambda s, q=q: dl.elastic_energy(system, system.manifold.retract(q, s)))
        np.testing.assert_allclose(still, -slope(jnp.zeros(system.nv)), atol=1e-9)


ROUND = VECTORS.replace('stiffness="3" damping=".2"', 'stiffness="3 2 1" damping=".2 .3 .1"')
ROUND = ROUND.replace(
    'type="free" stiffness="4" damping=".3"',
    'name="free" type="free" stiffness="0 3 2" damping=".3 .1 .2"',
)


@pytest.mark.slow
def test_polynomials_of_ball_and_free_joints(tmp_path):
    """Springs along the rotation and the displacement; dampers along each axis by itself."""
    system, model, said = read(tmp_path, ROUND)
    check(system, model)
    assert "nonlinear" not in said
    moved = system.manifold.retract
    elastic = jax.jit(jax.grad(lambda s, q: dl.elastic_energy(system, moved(q, s))))
    still = jnp.zeros(system.nv)
    for _, q, *_ in states(system, model, 2):
        force = dl.passive_force(system, q, still)
        np.testing.assert_allclose(force, -elastic(still, q), atol=1e-9)
    at_rest = jax.jit(jax.jacrev(lambda s: dl.passive_force(system, system.neutral(), s)))
    assert np.all(np.isfinite(at_rest(still)))
    bare = dataclasses.replace(system, couplings=())
    with pytest.raises(dl.ModelError, match=r"set stiffness to 0, and attach a dl\.Bushing"):
        dl.attach(bare, dl.PolynomialForce("ball", stiffness=(1.0, 0)))


YIELD = dl.YieldingRotation | dl.YieldingTendon | dl.YieldingJointTendon
YIELDING = """<mujoco><compiler angle="radian"/><option gravity="0 0 0" timestep="{}">
<flag contact="disable"/></option><worldbody><body><joint name="h" axis="0 1 0" ref=".3"
stiffness="3 1 .5" springyield=".4" springref=".5" damping=".01 .02"/>
<geom size=".1" mass="2" pos=".3 0 .1"/><body pos="0 1 0">
<joint name="s"
type="slide" axis="0 1 1" stiffness="40" springyield=".05" armature=".1"/><geom size=".1" mass="1"/>
</body></body>
</worldbody><keyframe><key name="k" qpos=".4 .1" plastic=".6 .07"/></keyframe></mujoco>"""


@pytest.mark.slow
def test_springs_that_yield(tmp_path):
    """Like MuJoCo's within their range, and in a motion to the order of its step; dissipation."""
    system, model, said = read(tmp_path, YIELDING.format(1e-5))
    assert "yield" not in said and [name for name, _ in system.state_labels] == ["h/rest", "s/rest"]
    data, ordering = mujoco.MjData(model), dl.MujocoOrdering(system, model)
    np.testing.assert_allclose(system.internal_state("k"), [0.3, 0.07], atol=1e-12)
    for rest in (0.1, -0.3):
        data.qpos[:], data.qvel[:] = (0.5 + rest, rest / 10), (1.0, -2.0)
        mujoco.mj_forward(model, data)
        q, v = ordering.from_q(data.qpos), jnp.asarray(data.qvel)
        a = dl.forward_dynamics(system, q, v, dl.passive_force(system, q, v))
        np.testing.assert_allclose(a, data.qacc, rtol=1e-9, atol=1e-9)
    mujoco.mj_resetData(model, data)
    data.qvel[:] = 4.0, 3.0
    q0, v0 = ordering.from_q(data.qpos), data.qvel.copy()
    for _ in range(100000):
        mujoco.mj_step(model, data)
    run = dl.simulate(system, q0, v0, dt=1e-4, steps=10000)
    np.testing.assert_allclose(run.q[-1], ordering.from_q(data.qpos), atol=4e-4)
    np.testing.assert_allclose(run.z[-1], data.plastic - [0.3, 0], atol=4e-4)
    assert np.abs(run.z[-1] - run.z[0]).min() > 0.01
    energy = np.sum(run.energy(system), axis=0)
    assert energy[-1] < energy[0]


@pytest.mark.slow
def test_derivatives_of_springs_that_yield(tmp_path):
    """Of a motion in which they yield, by their numbers: both modes, and differences."""
    system, *_ = read(tmp_path, YIELDING.format(2e-3))
    spring = next(c for c in system.couplings if isinstance(c, dl.YieldingSpring))
    others = [c for c in system.couplings if c is not spring]

    def end(x):
        part = dataclasses.replace(spring, stiffness=x[:3], elastic_stretch=x[3])
        moved = dataclasses.replace(system, couplings=(part, *others))
        return dl.simulate(moved, jnp.zeros(2), jnp.array([4.0, 3.0]), dt=1e-2, steps=60).q[-1]

    x = jnp.append(spring.stiffness, spring.elastic_stretch)
    ahead, back = (jax.jit(f(end))(x) for f in (jax.jacfwd, jax.jacrev))
    columns = [(end(x + e) - end(x - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(ahead, np.stack(columns, axis=1), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(ahead, back, rtol=1e-9, atol=1e-12)
    assert np.all(np.abs(ahead[0]) > 1e-4)


def test_springs_that_yield_are_written_again(tmp_path):
    """With their rests, also those of keyframes."""
    system, model, _ = read(tmp_path, YIELDING.format(2e-3))
    dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    for field in ("jnt_stiffness", "jnt_stiffnesspoly", "jnt_springyield"):
        np.testing.assert_allclose(getattr(again, field), getattr(model, field), atol=1e-12)
    for field in ("qpos_spring", "key_plastic"):  # from the initial pose
        rests = [getattr(each, field) - each.qpos0 for each in (again, model)]
        np.testing.assert_allclose(*rests, atol=1e-12)


YIELDING_BALL = """<mujoco><compiler angle="radian"/><option gravity="0 0 0" timestep="{}">
<flag contact="disable"/></option><worldbody><site name="w" pos="0 .5 .2"/><body euler=".1 .2 .3">
<joint name="ball" type="ball" stiffness="9 4 2" springyield=".4" pos="0 0 .1"/>
<geom size=".1" mass="2" pos=".2 0 .1"/><site name="s" pos=".3 0 .1"/>
<body pos="0 1 0"><joint name="s" type="slide" axis="0 1 1" ref=".2"/>
<joint name="h" axis="1 0 0" ref=".1" armature=".2"/><geom size=".1" mass="1"/></body></body>
</worldbody><tendon><spatial name="rope" stiffness="60 9" springlength="0 .58" springyield=".03"
damping=".3"><site site="w"/><site site="s"/></spatial>
<fixed name="f" stiffness="40 9 3" springlength=".1 .4"
springyield=".1"><joint joint="s" coef="2"/><joint joint="h" coef="-1"/></fixed></tendon><keyframe>
<key name="k" qpos="0.9 .1 .2 .3 .3 .2" plastic="1 .2 0 .1 0 .6 .2 .5"/></keyframe></mujoco>"""


@pytest.mark.slow
def test_balls_and_tendons_that_yield(tmp_path):
    """Like MuJoCo's within their range; in a motion to the order of its step; written again."""
    system, model, said = read(tmp_path, YIELDING_BALL.format(1e-4))
    assert "yield" not in said and system.nz == model.nplastic
    np.testing.assert_allclose(system.internal_state("k"), model.key_plastic[0], atol=1e-12)
    ordering, rng = dl.MujocoOrdering(system, model), np.random.default_rng(1)
    data = mujoco.MjData(model)
    force = jax.jit(lambda q, v: dl.passive_force(system, q, v))
    for _ in range(3):
        step = jnp.asarray([0.1, 0.1, 0.05, 0.03, 0.02] * rng.normal(size=5))
        q = system.manifold.retract(system.neutral(), step)
        v = jnp.asarray(rng.normal(size=5))
        data.qpos, data.qvel = np.asarray(ordering.q(q)), np.asarray(ordering.v(q, v))
        mujoco.mj_forward(model, data)
        a = ordering.a(q, v, dl.forward_dynamics(system, q, v, force(q, v)))
        np.testing.assert_allclose(a, data.qacc, rtol=1e-9, atol=1e-9)
    mujoco.mj_resetData(model, data)
    v0 = np.array([3.0, -4.0, -5.0, 2.0, -3.0])
    q0 = ordering.from_q(data.qpos)
    data.qvel[:] = ordering.v(q0, v0)
    for _ in range(2000):
        mujoco.mj_step(model, data)
    run = dl.simulate(system, q0, v0, dt=1e-3, steps=200, save_every=200)
    assert np.abs(run.z[-1] - run.z[0])[[1, 5, 6, 7]].min() > 0.01 and run.z[-1][4] == 0
    np.testing.assert_allclose(ordering.q(run.q[-1]), data.qpos, atol=2e-3)
    np.testing.assert_allclose(run.z[-1], data.plastic, atol=2e-3)
    dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    # Coordinates of the file written are 0 where those of the first are `ref`.
    rests = model.key_plastic[0] - np.array([0, 0, 0, 0, 0, 0, 0.3, 0.3])
    np.testing.assert_allclose(again.key_plastic[0], rests, atol=1e-12)
    other, _, said = read(tmp_path, (tmp_path / "again.xml").read_text())
    assert "yield" not in said
    q, v = run.q[-1], run.v[-1]
    np.testing.assert_allclose(dl.passive_force(other, q, v), force(q, v), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_balls_and_tendons_that_yield(tmp_path):
    """Of a motion in which they yield, by numbers and start: both modes, and differences."""
    system, *_ = read(tmp_path, YIELDING_BALL.format(2e-3))
    springs = [c for c in system.couplings if isinstance(c, YIELD)]
    v0 = jnp.array([3.0, -4.0, -5.0, 2.0, -3.0])

    def end(x):
        parts = (dataclasses.replace(c, elastic_stretch=x[i]) for i, c in enumerate(springs))
        others = (c for c in system.couplings if not isinstance(c, YIELD))
        moved = dataclasses.replace(system, couplings=(*others, *parts))
        run = dl.simulate(moved, system.neutral(), v0 * x[3], dt=1e-2, steps=20, method=dl.RKMK2())
        return jnp.concatenate([run.v[-1], run.z[-1]])

    x = jnp.array([*(float(c.elastic_stretch) for c in springs), 1.0])
    end = jax.jit(end)
    columns = [(end(x + e) - end(x - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    both = jax.jit(lambda x: (jax.jacfwd(end)(x), jax.vjp(end, x)[1](jnp.ones(13))[0]))
    ahead, back = both(x)
    np.testing.assert_allclose(ahead, np.stack(columns, axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ahead.sum(axis=0), back, rtol=1e-9, atol=1e-10)
    assert np.all(np.abs(ahead).max(axis=0) > 1e-2)


@pytest.mark.slow
def test_derivatives_of_polynomials(tmp_path):
    """Of the passive force by the velocities, in forward mode, as of differences."""
    system, model, _ = read(tmp_path, POLYNOMIALS)
    ((_, q, v, _),) = states(system, model, 1)
    force = jax.jit(lambda v: dl.passive_force(system, q, v))
    columns = [(force(v + e) - force(v - e)) / 2e-5 for e in 1e-5 * np.eye(system.nv)]
    np.testing.assert_allclose(jax.jacfwd(force)(v), np.stack(columns, axis=1), atol=1e-7)


def test_armature_of_free_joints(tmp_path):
    """Acts along the axes of the world, as a point mass without weight does."""
    text = VECTORS.replace('<joint type="free"', '<joint name="free" type="free" armature=".7"')
    drive = '<general joint="free" gainprm="0" gear="3 0 0 0 0 0" armature=".1"/>'
    text = text.replace("</mujoco>", f"<actuator>{drive}</actuator></mujoco>")
    system, model, said = read(tmp_path, text)
    check_accelerations(system, model)
    assert "actuators of ball and free joints but for armature and damping" in said
    (part,) = (c for c in system.couplings if isinstance(c, dl.WorldArmature))
    k = system.topology.dof_start[system.topology.joints.index("free")]
    uneven = system.joints.armature.at[k + 3].add(1.0)
    bare = dataclasses.replace(system.replace(armature=uneven), couplings=())
    with pytest.raises(dl.ModelError, match="not the same in all directions"):
        dl.attach(bare, part)


def check_accelerations(system, model):
    for ordering, q, v, data in states(system, model):
        force = dl.passive_force(system, q, v)
        a = ordering.a(q, v, dl.forward_dynamics(system, q, v, force))
        np.testing.assert_allclose(a, data.qacc, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("text", [POLYNOMIALS, ROUND, in_water(3), None])
def test_passive_forces_are_written_again(tmp_path, text):
    """The forces of a saved file are those of the one it was read from."""
    text = text or VECTORS.replace('type="free"', 'name="free" type="free" armature=".7"')
    system, model, _ = read(tmp_path, text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    for ordering, q, v, _ in states(system, model):
        found = []
        for each in (model, again):
            data = mujoco.MjData(each)
            data.qpos, data.qvel = np.asarray(ordering.q(q)), np.asarray(ordering.v(q, v))
            mujoco.mj_forward(each, data)
            found.append(data.qacc)
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-8)
