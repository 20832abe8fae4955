"""Actuators and transmissions in MJCF, against MuJoCo's own lengths, forces and accelerations."""

import dataclasses
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq
from difflie.forces.actuators.acting import generalised, lengths, torques
from difflie.io.config import read_config
from difflie.io.loading import load_system, start_of
from difflie.system.internal_states import states_of
from difflie.system.kinematic_tree import Tree

needs_mujoco_4 = pytest.mark.skipif(
    mujoco.__version__ < "4", reason="this MuJoCo has another rule for sides of wrapping"
)

BOX = '<geom type="box" size=".1 .03 .02" pos=".1 0 0" mass="{}"/>'
TREE = f"""<mujoco><option><flag contact="disable" limit="disable"/></option><worldbody>
<site name="w" pos=".1 .2 .9" euler="20 30 40"/>
<body name="a" pos="0 0 .3"><joint name="h" axis="0 1 0" ref=".3"/>{BOX.format(1.3)}
  <site name="s0" pos=".03 .01 .02"/>
  <body name="b" pos=".2 0 0"><joint name="ball" type="ball"/>{BOX.format(0.7)}
    <site name="s1" pos=".13 .01 .02" euler="10 20 30"/>
    <body name="c" pos=".2 0 0" euler="10 20 30"><joint name="sl" type="slide" axis="1 0 1"/>
      {BOX.format(0.5)}<site name="s2" pos=".13 .01 .02" euler="40 -20 50"/></body></body>
  <body name="b2" pos="-.2 0 0"><joint name="h2" axis="0 0 1"/>{BOX.format(0.7)}
    <site name="s3" pos="-.13 .01 .02" euler="70 20 30"/></body></body>
<body name="f" pos="0 1 .3"><freejoint name="free"/>{BOX.format(1.3)}
  <site name="s4" pos=".13 .01 .02" euler="10 20 30"/></body></worldbody>{{}}</mujoco>"""


def read(path, text):
    """The system with its actuators, MuJoCo's model, and what the warning says."""
    path = path / "m.xml"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = dl.load(path, actuators=True)
    said = " ".join(str(w.message).replace(str(path), "") for w in caught)
    return system, mujoco.MjModel.from_xml_path(str(path)), said


def states(system, model, count=3, scale=0.6, seed=0):
    """Random states here, and MuJoCo's data in them with random controls and activations."""
    ordering, rng = dl.MujocoOrdering(system, model), np.random.default_rng(seed)
    for _ in range(count):
        step = jnp.asarray(scale * rng.normal(size=system.nv))
        q = system.manifold.retract(system.neutral(), step)
        v = jnp.asarray(rng.normal(size=system.nv))
        data = mujoco.MjData(model)
        data.qpos, data.qvel = np.asarray(ordering.q(q)), np.asarray(ordering.v(q, v))
        data.ctrl[:] = rng.normal(size=model.nu)
        data.act[:] = rng.uniform(size=model.na)
        mujoco.mj_forward(model, data)
        yield ordering, q, v, data


@eqx.filter_jit
def lengths_of(system, q, v):
    return lengths(Tree.of(system), q, v)


@eqx.filter_jit
def efforts_of(system, forces, q, v):
    """The forces of actuators and all others, at the dofs."""
    return generalised(Tree.of(system), forces, q, v), dl.passive_force(system, q, v)


def laws(system, q, v, data):
    """The forces of all actuators, and dz/dt of those with an activation."""
    forces, rates, z = [], [], iter(data.act)
    for u, actuator, x, rate in zip(
        data.ctrl, system.actuators, *lengths_of(system, q, v), strict=True
    ):
        own = jnp.array([next(z)]) if getattr(actuator, "states", ()) else None
        force, change = actuator.torque(jnp.asarray(u), x, rate, own)
        forces.append(force)
        rates += [] if own is None else [change[0]]
    return jnp.stack(forces), np.array(rates)


def check(system, model, count=3, scale=0.6, tolerance=1e-9):
    """Lengths, rates, moment arms, forces, activations and accelerations are MuJoCo's."""
    close = {"rtol": tolerance, "atol": tolerance}
    for ordering, q, v, data in states(system, model, count, scale):
        x, rate = lengths_of(system, q, v)
        np.testing.assert_allclose(x, data.actuator_length, **close)
        np.testing.assert_allclose(rate, data.actuator_velocity, **close)
        forces, rates = laws(system, q, v, data)
        np.testing.assert_allclose(forces, data.actuator_force, **close)
        np.testing.assert_allclose(rates, data.act_dot, **close)
        tau, passive = efforts_of(system, forces, q, v)
        np.testing.assert_allclose(ordering.tau(q, tau), data.qfrc_actuator, **close)
        a = dl.forward_dynamics(system, q, v, tau + passive)
        np.testing.assert_allclose(ordering.a(q, v, a), data.qacc, rtol=1e-9, atol=100 * tolerance)


STATELESS = """<actuator>
<motor joint="h2"/><motor name="geared" joint="h" gear="3"/>
<motor joint="sl" gear="-3" ctrlrange="-.4 .4"/><motor joint="h2" ctrlrange="-.4 .7"/>
<position joint="h" kp="3" kv=".4"/>
<position joint="sl" kp="3" kv=".4" gear="2" ctrlrange="-.1 .5" forcerange="-1 .7"/>
<position name="servo" joint="h2" kp="3" kv=".4" forcerange="-1 1"/>
<velocity joint="h2" kv="2"/><damper joint="sl" kv="3" ctrlrange="0 1"/>
<general joint="h" gaintype="affine" gainprm="1 2 3" biastype="affine" biasprm="4 5 6" gear="2"/>
<motor joint="ball" gear="1 2 3"/><motor jointinparent="ball" gear="1 2 3"/>
<position joint="ball" kp="2" gear="1 -2 3" kv="1"/>
<position jointinparent="ball" kp="2" gear="1 -2 3" kv="1"/>
<motor joint="free" gear="1 2 3 4 5 6"/><motor jointinparent="free" gear="1 2 3 4 5 6"/>
<velocity joint="free" kv="2" gear="1 2 3 4 5 6"/></actuator>"""


@pytest.mark.slow
def test_laws_and_joint_transmissions(tmp_path):
    """Motors, servos, dampers and general actuators, at all joints, with limits and gears."""
    system, model, said = read(tmp_path, TREE.format(STATELESS))
    check(system, model)
    assert "actuator" not in said
    servo = system.actuators[system.actuator_names.index("servo")]
    assert isinstance(servo, dl.PositionServo) and servo.joint == "h2" and servo.max_torque == 1
    assert [type(a).__name__ for a in system.actuators[:3]] == ["Drive", "Drive", "Motor"]


SITES = """<actuator><motor site="s2" gear="1 2 3 4 5 6"/>
<velocity site="s4" gear="1 2 3 4 5 6"/>
<position site="s2" refsite="s3" gear="1 2 3 4 5 6"/>
<position site="s2" refsite="s0" gear="1 2 3 4 5 6"/>
<position site="s4" refsite="w" gear="1 2 3 4 5 6"/>
<position site="s2" refsite="s4" gear="1 2 3 4 5 6"/></actuator>"""
CRANKS = """<actuator>
<position cranksite="s2" slidersite="s0" cranklength=".6" gear="3" kv="1"/>
<position cranksite="s2" slidersite="w" cranklength=".1" gear="3" kv="1"/></actuator>"""
TENDONS = """<tendon>
<fixed name="t"><joint joint="h" coef="2"/><joint joint="sl" coef="-3"/></fixed>
<spatial name="p"><site site="w"/><site site="s0"/><site site="s2"/><pulley divisor="2"/>
<site site="s2"/><site site="s4"/><site site="s3"/><pulley divisor="3"/>
<site site="w"/><site site="s4"/></spatial></tendon>
<actuator><position tendon="t" kp="3" kv="1" gear="2"/>
<position tendon="p" kp="3" kv="1" gear="2"/></actuator>"""


@pytest.mark.slow("text0")
@pytest.mark.parametrize("text", [SITES, CRANKS, TENDONS])
def test_transmissions(tmp_path, text):
    """Sites with and without reference, slider-cranks, fixed tendons and pulleys."""
    system, model, said = read(tmp_path, TREE.format(text))
    check(system, model)
    assert "actuator" not in said and ("sites" not in said or "'s2'" not in said)


WRAPPED = f"""<mujoco><option><flag contact="disable" limit="disable"/></option><worldbody>
<site name="w" pos="-.1 .02 .5"/><site name="up" pos=".05 .02 .6"/>
<site name="in" pos=".05 .02 .32"/>
<geom name="g" type="{{kind}}" size=".06 .2" pos=".05 .02 .32" euler="80 10 0"/>
<body name="a" pos="0 0 .3"><joint name="h" axis="0 1 0"/>{BOX.format(1.3)}
  <site name="s0" pos=".23 .01 .02"/><site name="down" pos=".23 .01 -.2"/>
  <body name="b" pos=".2 0 0"><joint name="h2" axis="0 .6 .8"/>{BOX.format(0.7)}
  <geom name="g2" type="{{kind}}" size=".04 .2" pos=".05 .01 -.02" euler="70 10 0"/>
  <site name="s1" pos=".2 .01 .02"/></body></body></worldbody>
<tendon><spatial name="t"><site site="w"/><geom geom="g" {{one}}/><site site="s0"/>
<geom geom="g2" {{other}}/><site site="s1"/></spatial></tendon>
<actuator><position tendon="t" kp="30" kv="1"/></actuator></mujoco>"""
SIDES = 'sidesite="up"', 'sidesite="down"'


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_wrapping(tmp_path, kind):
    """Around spheres and cylinders, on the shorter way."""
    system, model, _ = read(tmp_path, WRAPPED.format(kind=kind, one="", other=""))
    check(system, model, count=8, scale=0.9)


@needs_mujoco_4
@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_wrapping_on_a_side(tmp_path, kind):
    """Around spheres and cylinders, on the side of a site."""
    system, model, _ = read(tmp_path, WRAPPED.format(kind=kind, one=SIDES[0], other=SIDES[1]))
    check(system, model, count=8, scale=0.9)


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_wrapping_within(tmp_path, kind):
    """Through the inside. MuJoCo stops its iteration at 1e-6, which moment arms show."""
    text = WRAPPED.format(kind=kind, one='sidesite="in"', other="")
    system, model, _ = read(tmp_path, text)
    check(system, model, count=8, scale=0.9, tolerance=1e-6)
    for _, q, v, data in states(system, model, 8, 0.9):
        np.testing.assert_allclose(lengths_of(system, q, v)[0], data.actuator_length, rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize("one", ["", SIDES[0], 'sidesite="in"'])
def test_moment_arms_are_derivatives_of_lengths(tmp_path, kind, one):
    """J = dl/dq, and dJ/dq is that of differences: also where a tendon does not touch."""
    system, model, _ = read(tmp_path, WRAPPED.format(kind=kind, one=one, other=""))

    def length(q):
        return lengths(Tree.of(system), q, jnp.zeros(2))[0][0]

    def arm(q):
        return jax.vmap(lambda v: lengths(Tree.of(system), q, v)[1][0])(jnp.eye(2))

    arms, gradient, slopes = (jax.jit(f) for f in (arm, jax.grad(length), jax.jacrev(arm)))
    for _, q, *_ in states(system, model, 4, 0.9):
        np.testing.assert_allclose(gradient(q), arms(q), atol=1e-12)
        h = 1e-5 * jnp.eye(2)
        slope = jnp.stack([(arms(q + e) - arms(q - e)) / 2e-5 for e in h], axis=1)
        np.testing.assert_allclose(slopes(q), slope, atol=1e-7)


ACTIVE = """<tendon><spatial name="p"><site site="w"/><site site="s0"/><site site="s2"/></spatial>
</tendon><actuator>
<general joint="h" dyntype="integrator" gainprm="3" gear="2"/>
<general joint="h" dyntype="filter" dynprm=".3" gainprm="3" ctrlrange="-.5 .5"/>
<position joint="sl" kp="3" kv=".4" timeconst=".2" forcerange="-1 1"/>
<intvelocity joint="h2" kp="3" actrange="-1 1"/><cylinder joint="h" area=".3" bias="1 2 3"/>
<muscle tendon="p" lengthrange=".6 1.6" force="20"/>
<muscle tendon="p" lengthrange=".2 1.1" scale="30" tausmooth=".4" range=".6 1.2"/>
<general tendon="p" lengthrange=".2 1.1" dyntype="muscle" gaintype="muscle" dynprm=".01 .04"
  gainprm=".7 1.1 20 200 .4 1.7 1.4 1.3 1.2"/></actuator>"""


@pytest.mark.slow
def test_laws_with_activation(tmp_path):
    """Integrators, filters and muscles: their forces, and the rates of their activations."""
    system, model, said = read(tmp_path, TREE.format(ACTIVE))
    check(system, model, count=6)
    assert "actuator" not in said


DRIVEN = """<tendon><spatial name="p"><site site="w"/><site site="s0"/><site site="s2"/></spatial>
</tendon><actuator><general name="int" joint="h" dyntype="integrator" gainprm="3" gear="2"/>
<general name="lag" joint="h" dyntype="filter" dynprm=".3" gainprm="3" ctrlrange="-.5 .5"/>
<position name="servo" joint="sl" kp="30" kv="4" timeconst=".2"/>
<muscle name="pull" tendon="p" lengthrange=".6 1.6" force="20"/><motor joint="h2" gear="2"/>
</actuator><sensor><actuatorfrc actuator="lag"/><actuatorfrc actuator="servo"/>
<actuatorfrc actuator="pull"/><actuatorvel actuator="int"/></sensor>
<keyframe><key name="ready" ctrl=".1 .2 .05 .4 .3" act=".1 -.2 .05 .3"/>
</keyframe>"""


@pytest.mark.slow
def test_activations_move_as_mujoco_moves_them(tmp_path):
    """A thousand steps of RK4 from a keyframe: motion, activations and sensors of actuators."""
    text = TREE.replace("<option>", '<option timestep="0.001" integrator="RK4">').format(DRIVEN)
    system, model, said = read(tmp_path, text)
    assert "actuator" not in said and "sensor" not in said
    q, v, u = system.state("ready")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    z = system.internal_state("ready")
    np.testing.assert_allclose(z, data.act, rtol=0, atol=0)
    run = dl.simulate(system, q, v, z0=z, control=u, dt=1e-3, steps=1000, save_every=1000)
    for _ in range(1000):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    ordering = dl.MujocoOrdering(system, model)
    np.testing.assert_allclose(ordering.q(run.q[-1]), data.qpos, atol=1e-8)
    np.testing.assert_allclose(run.z[-1], data.act, atol=1e-8)
    readings = jnp.concatenate([x[-1] for x in run.readings(system).values()])
    np.testing.assert_allclose(readings, data.sensordata, atol=1e-6)


def test_activations_of_keyframes(tmp_path):
    """They are read with their actuators, written again, where a run begins, and named if not."""
    system, model, said = read(tmp_path, TREE.format(DRIVEN))
    assert "keyframes" not in said
    with pytest.warns(UserWarning, match=r"activations of keyframes \('ready'\)"):
        assert not dl.load(tmp_path / "m.xml").internal_state("ready").size
    dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    np.testing.assert_allclose(again.key_act, model.key_act, rtol=0, atol=0)
    text = '[system]\nfile = "m.xml"\nactuators = true\n[initial]\nstate = "ready"\n'
    (tmp_path / "run.toml").write_text(text)
    start = start_of(read_config(tmp_path / "run.toml"), "simulation.method", "RKMK4").system
    np.testing.assert_allclose(states_of(start), model.key_act[0], rtol=0, atol=0)
    with pytest.raises(ValueError, match="no state is named 'redy'"):
        system.internal_state("redy")


MEASURED = """<tendon>
<fixed name="t"><joint joint="h" coef="2"/><joint joint="sl" coef="-3"/></fixed>
<spatial name="p"><site site="w"/><site site="s0"/><site site="s2"/></spatial></tendon>
<actuator><position name="a" tendon="t" kp="3" kv="1" gear="2"/>
<position name="b" site="s2" refsite="s3" gear="1 2 3 4 5 6"/><motor name="c" joint="sl"/>
</actuator><sensor><tendonpos tendon="t"/><tendonvel tendon="t"/><tendonpos tendon="p"/>
<tendonvel tendon="p"/><tendonactuatorfrc tendon="t"/><jointactuatorfrc joint="sl"/>
<actuatorpos actuator="a"/><actuatorvel actuator="a"/><actuatorpos actuator="b"/>
<actuatorpos name="ref" actuator="c"/><actuatorvel actuator="b"/><actuatorfrc actuator="b"/>
<e_potential/><e_kinetic/></sensor>"""


@pytest.mark.slow
def test_sensors_of_tendons_actuators_and_energies(tmp_path):
    """Lengths, rates, forces and energies are MuJoCo's, also of the file that is written."""
    system, model, said = read(tmp_path, TREE.format(MEASURED))
    assert "sensor" not in said
    dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    pairs = zip(states(system, model), states(system, again), strict=True)
    for (_, q, v, data), (*_, other) in pairs:
        given = system, q, v, None, jnp.asarray(data.ctrl), 0.0
        readings = [jnp.ravel(sensor.predicted(*given)) for sensor in system.sensors]
        np.testing.assert_allclose(jnp.concatenate(readings), data.sensordata, atol=1e-9)
        np.testing.assert_allclose(other.sensordata, data.sensordata, atol=1e-9)
    with pytest.warns(UserWarning, match=r"sensors \('tendonactfrc_t', 'jointactfrc_sl'"):
        bare = dl.load(tmp_path / "again.xml")
    assert {"tendonpos_p", "e_kinetic_13", "ref"} <= {sensor.name for sensor in bare.sensors}


def test_sensors_of_unknown_parts():
    """A transmission and an actuator that a system has not are refused by name."""
    rod = dl.chain([dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0))])
    zero = jnp.zeros(1)
    with pytest.raises(dl.ModelError, match="no joint that moves by itself is named 'elbow'"):
        dq.TransmissionLength(dl.FixedTendon("elbow", (1.0,)))(rod, zero, zero, None, 0.0)
    with pytest.raises(dl.ModelError, match="no actuator is named 'drive'"):
        dq.ActuatorVelocity("drive")(rod, zero, zero, None, 0.0)


LEFT = """<actuator><general name="half" joint="h" dyntype="user"/>
<motor name="push" joint="h2" gear="2"/></actuator>"""


def test_what_is_left_out_is_named(tmp_path):
    """Laws of users; and by default all of them, with how to read them."""
    system, _, said = read(tmp_path, TREE.format(LEFT))
    assert system.actuator_names == ("push",)
    assert "dynamics but those of affine laws and muscles ('half')" in said
    with pytest.warns(UserWarning, match=r"load\(..., actuators=True\) reads its actuators"):
        assert not dl.load(tmp_path / "m.xml").actuators


def test_limits_of_joints(tmp_path):
    """actuatorfrcrange limits the one actuator of its joint; with gravcomp it is named."""
    limited = TREE.replace('name="h2"', 'name="h2" actuatorfrcrange="-.2 .3"')
    one = '<actuator><motor joint="h2" gear="-2"/><motor joint="h" gear="3"/></actuator>'
    system, model, said = read(tmp_path, limited.format(one))
    for ordering, q, v, data in states(system, model):
        force = generalised(Tree.of(system), laws(system, q, v, data)[0], q, v)
        np.testing.assert_allclose(ordering.tau(q, force), data.qfrc_actuator, atol=1e-12)
    assert "limits of the sum" not in said
    held = limited.replace("actuatorfrcrange", 'actuatorgravcomp="true" actuatorfrcrange')
    assert "limits of the sum" not in read(tmp_path, held.format(one))[2]
    held = held.replace('name="b2"', 'name="b2" gravcomp="1"')
    assert "sum of actuators with gravity compensation" in read(tmp_path, held.format(one))[2]


SUMS = """<tendon><fixed name="t" actuatorfrcrange="-.3 .2"><joint joint="h" coef="2"/>
<joint joint="sl" coef="-3"/></fixed></tendon>
<actuator><motor joint="h2" gear="-2"/><motor joint="h2" gear="3"/><motor joint="h" gear=".2"/>
<motor tendon="t" gear="2"/><position tendon="t" gear="-3" kp="3"/>
<motor site="s3" gear="0 .1 .2 .3 .4 .1"/></actuator>"""


def test_commands_that_are_not_clipped(tmp_path):
    """Without clampctrl the ranges of commands limit neither an actuator nor a joint's effort."""
    drive = '<motor joint="h2" ctrlrange="-.1 .1"/>'
    text = TREE.replace('name="h2"', 'name="h2" actuatorfrcrange="-.5 .5"')
    text = text.replace("<flag ", '<flag clampctrl="disable" ', 1)
    system, model, _ = read(tmp_path, text.format(f"<actuator>{2 * drive}</actuator>"))
    check(system, model)
    dof = system.topology.dof_start[system.topology.joints.index("h2")]
    low, high = (ends[dof] for ends in system.joints.effort_limits)
    assert (low, high) == (-0.5, 0.5)


OWN = SUMS.replace('<motor tendon="t"', '<motor tendon="t" forcerange="-.1 .05"')


@pytest.mark.slow("sums0")
@pytest.mark.parametrize("sums", [SUMS, OWN])
def test_limits_of_sums(tmp_path, sums):
    """Of several actuators at a joint, along tendons and at sites: qfrc_actuator is MuJoCo's."""
    limited = TREE
    for name, ends in (("h2", "-.2 .3"), ("h", "-.15 .1")):
        limited = limited.replace(f'name="{name}"', f'name="{name}" actuatorfrcrange="{ends}"')
    system, model, said = read(tmp_path, limited.format(sums))
    assert "limits of the sum" not in said
    assert [type(c).__name__ for c in system.couplings] == 2 * ["EffortLimit"] + ["SharedLimit"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    pairs = zip(states(system, model, 4), states(system, again, 4), strict=True)
    for (ordering, q, v, data), (*_, other) in pairs:
        tree, u = Tree.of(system), jnp.asarray(data.ctrl)
        forces = torques(tree, u, q, v)
        np.testing.assert_allclose(forces, data.actuator_force, atol=1e-12)
        force = ordering.tau(q, generalised(tree, forces, q, v))
        np.testing.assert_allclose(force, data.qfrc_actuator, atol=1e-12)
        np.testing.assert_allclose(other.qfrc_actuator, data.qfrc_actuator, atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_limits_of_sums(tmp_path):
    """Of the generalised force by the commands, in reverse mode, as of differences."""
    text = TREE.replace('name="h2"', 'name="h2" actuatorfrcrange="-.2 .3"').format(OWN)
    system, model, _ = read(tmp_path, text)
    ((_, q, v, data),) = states(system, model, 1)

    @jax.jit
    def force(u):
        tree = Tree.of(system)
        return generalised(tree, torques(tree, u, q, v), q, v)

    u = jnp.asarray(data.ctrl)
    columns = [(force(u + e) - force(u - e)) / 2e-6 for e in 1e-6 * np.eye(system.nu)]
    np.testing.assert_allclose(jax.jacrev(force)(u), np.stack(columns, axis=1), atol=1e-8)


EARLY = """<tendon><spatial name="p"><site site="w"/><site site="s0"/><site site="s2"/></spatial>
</tendon><actuator>
<general joint="h" dyntype="integrator" gainprm="3" gear="2" actrange="0 1"/>
<general joint="h" dyntype="filter" dynprm=".03" gainprm="3"/>
<general joint="sl" dyntype="filterexact" dynprm=".03" gainprm="3"/>
<general tendon="p" lengthrange=".2 1.1" dyntype="muscle" gaintype="muscle" dynprm=".01 .04"
  gainprm=".7 1.1 20 200 .4 1.7 1.4 1.3 1.2"/></actuator>"""


def test_early_activations(tmp_path):
    """actearly: forces are those of the activations one step later, also in the saved file."""
    text = EARLY.replace("<general ", '<general actearly="true" ')
    system, model, said = read(tmp_path, TREE.format(text))
    check(system, model)
    assert "actearly" not in said
    exact = system.actuators[2]
    alike = dataclasses.replace(exact, lead=jnp.asarray(model.opt.timestep))
    system = dataclasses.replace(system, actuators=(*system.actuators[:2], alike))
    dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    assert again.opt.timestep == model.opt.timestep and again.actuator_actearly.all()
    check(system, again, count=1)


DC_MOTORS = """<actuator><dcmotor joint="h" resistance="2" motorconst=".3" gear="3"/>
<dcmotor joint="sl" resistance="2" motorconst=".3 .4" ctrlrange="-.5 .5" saturation=".05 0 0"/>
<dcmotor joint="h2" nominal="12 .5 30"/>
<dcmotor joint="h" resistance="2" motorconst=".3" input="pos" controller="3 0 .2 0 0 0"/>
<dcmotor joint="h" resistance="2" motorconst=".3" input="vel" controller="3 0 .2 0 0 0"/>
<pid joint="h" kp="3" kv=".4" input="pos"/><pid joint="sl" kp="3" kv=".4" input="vel"/>
<pid joint="h2" kp="3" kv=".4" input="ff" forcerange="-1 1"/></actuator>"""


@needs_mujoco_4
def test_dc_motors_and_controllers(tmp_path):
    """Of one input and without states, as affine laws."""
    system, model, said = read(tmp_path, TREE.format(DC_MOTORS))
    check(system, model)
    assert "actuators" not in said
    assert not any(isinstance(a, dl.DCMotor | dl.PIDServo) for a in system.actuators)


LATE = """<actuator><motor joint="h2" delay=".006" nsample="4" ctrlrange="-1 1"/>
<position joint="h" delay=".002" nsample="1" kp="3"/>
<general joint="sl" delay=".01" nsample="5" biastype="affine" biasprm="0 -1 -.3"/>
<pid joint="sl" kp="3" kv=".5" input="pos vel" delay=".004" nsample="2"/>
<orientation joint="ball" kp=".2" kv=".03" delay=".004" nsample="3"/>
<motor joint="h2" delay=".0051" nsample="5" interp="linear"/>
<general joint="h" gainprm="0" dyntype="integrator" delay=".004" nsample="2"/></actuator>"""


UNEVEN = LATE.replace('".006"', '".0051"').replace('nsample="5"', 'nsample="2"')


@pytest.mark.slow("late0")
@needs_mujoco_4
@pytest.mark.parametrize("late", [LATE, UNEVEN])
def test_delays(tmp_path, late):
    """Commands act later, as MuJoCo's do, in whole steps of the file; also in the saved file."""
    system, model, said = read(tmp_path, TREE.format(late))
    assert "delay" not in said
    assert (system.nu, system.nz) == (10, 1)
    commands = np.random.default_rng(0).normal(size=(40, 10))
    commands[0] = 0  # MuJoCo's histories begin with zeros, ours with the first command
    run = dl.simulate(
        *(system, system.neutral(), jnp.zeros(system.nv)),
        control=dl.ZeroOrderHold(jnp.asarray(commands)),
        method="SemiImplicitEuler",
        dt=0.002,
        steps=40,
    )
    ordering = dl.MujocoOrdering(system, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    again.opt.disableflags = model.opt.disableflags
    for each in (model, again):
        data = mujoco.MjData(each)
        data.qpos = ordering.q(system.neutral())
        for command in commands:
            data.ctrl[:] = command
            mujoco.mj_step(each, data)
        np.testing.assert_allclose(ordering.q(run.q[-1]), data.qpos, atol=1e-9)
        np.testing.assert_allclose(run.z[-1], data.act, atol=1e-12)


@needs_mujoco_4
def test_delays_are_as_many_steps_as_the_file_has(tmp_path):
    """Beside an early activation, whose step is that of the saved file, a delay has room."""
    early = '<general joint="sl" dyntype="filter" dynprm=".3" actearly="true"/></actuator>'
    text = LATE.replace(' nsample="4"', "").replace("</actuator>", early)
    text = TREE.replace("<option>", '<option timestep=".0001">').format(
        text.replace('delay=".006"', 'delay=".006" nsample="60"')
    )
    system, model, _ = read(tmp_path, text)
    drives = [dataclasses.replace(system.actuators[0], most_steps=1), *system.actuators[1:]]
    dl.save(dataclasses.replace(system, actuators=tuple(drives)), tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    assert again.opt.timestep == model.opt.timestep and again.actuator_history[0, 0] >= 60


def test_switched_off(tmp_path):
    """The flag `actuation`, groups that are off, and controls that are not clamped."""
    text = TREE.format('<actuator><motor joint="h" group="3" ctrlrange="-1 1"/></actuator>')
    off = read(tmp_path, text.replace("<flag ", '<flag actuation="disable" '))
    group = read(tmp_path, text.replace("<option>", '<option actuatorgroupdisable="3">'))
    for system, _, said in (off, group):
        assert not system.actuators and "actuators that are switched off (number 0)" in said
    free = read(tmp_path, text.replace("<flag ", '<flag clampctrl="disable" '))[0]
    assert isinstance(free.actuators[0], dl.Drive)


def test_a_fixed_base_loses_its_actuators(tmp_path):
    """A joint that is fixed has no actuator, which the warning names."""
    (tmp_path / "m.xml").write_text(TREE.format('<actuator><motor joint="free"/></actuator>'))
    with pytest.warns(UserWarning, match="actuators of joints that are fixed"):
        assert not dl.load(tmp_path / "m.xml", base="fixed", actuators=True).actuators


def test_a_urdf_without_transmissions_has_no_actuators():
    """The error says what to do."""
    with pytest.raises(ValueError, match="a URDF has no other actuators; leave out actuators=True"):
        dl.load(dl.examples.path("arm7"), actuators=True)


@pytest.mark.slow
def test_gains_and_gears_have_gradients(tmp_path):
    """Of a motion driven through a wrapped tendon, a site and a joint, as by differences."""
    text = WRAPPED.format(kind="sphere", one="", other="").replace(
        "</actuator>",
        '<motor joint="h" gear="3"/><motor site="s1" gear="1 2 3 0 0 1"/></actuator>',
    )
    system, _, _ = read(tmp_path, text)
    q, v, u = jnp.array([0.3, -0.2]), jnp.array([0.1, 0.2]), jnp.array([0.3, 0.2, -0.1])

    def end(numbers):
        kp, gear, along, radius = numbers
        servo, motor, thrust = system.actuators
        wrap = dataclasses.replace(servo.transmission.wraps[0], radius=radius)
        wraps = (wrap, *servo.transmission.wraps[1:])
        tendon = dataclasses.replace(servo.transmission, wraps=wraps)
        joint = dataclasses.replace(motor.transmission, gear=gear[None])
        site = dataclasses.replace(thrust.transmission, gear=jnp.zeros(6).at[4].set(along))
        actuators = (
            dataclasses.replace(servo, kp=kp, transmission=tendon),
            dataclasses.replace(motor, transmission=joint),
            dataclasses.replace(thrust, transmission=site),
        )
        changed = dataclasses.replace(system, actuators=actuators)
        run = dl.simulate(changed, q, v, dt=0.005, steps=20, control=u)
        return jnp.sum(run.q[-1] ** 2)

    at = jnp.array([30.0, 3.0, 2.0, 0.06])
    slope = [(end(at + h) - end(at - h)) / 2e-5 for h in 1e-5 * jnp.eye(4)]
    np.testing.assert_allclose(jax.grad(end)(at), slope, rtol=1e-5, atol=1e-9)


def test_in_a_configuration(tmp_path):
    """actuators = true in [system], and control.command in the units of the file."""
    (tmp_path / "m.xml").write_text(TREE.format('<actuator><motor joint="h2"/></actuator>'))
    text = '[system]\nfile = "m.xml"\nactuators = true\n[simulation]\ndt = 0.01\nduration = 0.1\n'
    (tmp_path / "run.toml").write_text(text + "[control]\ncommand = [0.5]\n")
    system = load_system(read_config(tmp_path / "run.toml"))
    assert system.actuator_names == ("actuator0",)
