"""Actuators of MJCF with controllers, several commands or states, and orientations, as MuJoCo's."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from test_mjcf_actuators import TREE, read, states

import difflie as dl
from difflie.forces.actuators.acting import generalised, lengths, output_rates, torques
from difflie.io.mjcf.names import control_names
from difflie.system.internal_states import with_states
from difflie.system.kinematic_tree import Tree

pytestmark = pytest.mark.skipif(mujoco.__version__ < "4", reason="this MuJoCo has no controllers")


def check(system, model, count=4, scale=0.6):
    """Efforts, rates of states, accelerations and sensors are MuJoCo's, in random states."""

    @jax.jit
    def of(q, v, u, z):
        at = with_states(system, z)
        tree = Tree.of(at)
        force = torques(tree, u, q, v)
        tau = generalised(tree, force, q, v)
        rates = output_rates(at, u, *lengths(tree, q, v))
        a = dl.forward_dynamics(at, q, v, tau + dl.passive_force(at, q, v))
        readings = [jnp.ravel(s.predicted(at, q, v, a, u, 0.0)) for s in system.sensors]
        return tau, jnp.concatenate([jnp.zeros(0), *rates]), a, readings

    controls = control_names(model)
    assert set(controls) <= set(system.actuator_names) and system.nz == model.na
    for ordering, q, v, data in states(system, model, count, scale):
        data.ctrl[:] *= 3
        mujoco.mj_forward(model, data)
        given = dict(zip(controls, data.ctrl, strict=True))
        u = jnp.array([given.get(name, 7.0) for name in system.actuator_names])
        tau, rates, a, readings = of(q, v, u, jnp.asarray(data.act))
        np.testing.assert_allclose(ordering.tau(q, tau), data.qfrc_actuator, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(rates, data.act_dot, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ordering.a(q, v, a), data.qacc, rtol=1e-9, atol=1e-8)
        measured = jnp.concatenate([jnp.zeros(0), *readings])
        np.testing.assert_allclose(measured, data.sensordata, rtol=1e-9, atol=1e-8)


PID = """<tendon><fixed name="t"><joint joint="h" coef="2"/><joint joint="sl" coef="-3"/></fixed>
</tendon><actuator>
<pid name="p" joint="h" kp="3" kv=".5" gear="2" posrange="-1 1" velrange="-.5 .7"/>
<pid name="whole" joint="h2" kp="3" kv=".5" input="pos vel ff" ki="2" imax=".5" slewmax="3"
  forcerange="-4 4" ffrange="-1 2"/>
<pid name="wind" joint="sl" kp="3" input="pos" ki="2"/>
<pid name="slew" joint="sl" kp="3" kv=".2" slewmax="20"/>
<general name="early" joint="h" gaintype="pid" biastype="affine" dyntype="pid" input="pos"
  gainprm="2" biasprm="0 -3 -.5" dynprm=".6" actearly="true" actlimited="true" actrange="-2 2"/>
<general name="two" joint="h" gaintype="pid" biastype="affine" dyntype="pid" input="pos"
  gainprm="2" biasprm="0 -3 -.5" dynprm="0 30" actearly="true"/>
<pid name="vel" tendon="t" kp="3" kv=".5" input="vel ff"/><motor joint="h2" gear="2"/></actuator>
<sensor><actuatorfrc actuator="whole"/><tendonactuatorfrc tendon="t"/></sensor>"""
MOTORS = """<actuator>
<dcmotor name="a" joint="h" resistance="2" motorconst=".5" inductance="0 .05" saturation=".1 0 5"
  cogging=".2 6 .3"/>
<dcmotor name="b" joint="h2" gear="3" resistance="2" motorconst=".5" inductance="0 .05"
  thermal="3 4 0 .01 20 25"/>
<dcmotor name="c" joint="sl" resistance="2" motorconst=".5" thermal="3 4 0 .01 20 25"
  lugre="20 .3 .2 .3 .5"/>
<dcmotor name="d" joint="h" resistance="2" motorconst=".5" input="pos vel ff voltage"
  controller="3 2 .5 4 .3 6" thermal="3 4 0 .01 20 25" inductance="0 .05" ctrlrange="-2 1"/>
<dcmotor name="e" joint="h" resistance="2" motorconst=".5" input="vel ff"
  controller="0 0 .5 4 0 6" thermal="3 4 0 .01 20 25" saturation="0 2 0"/>
<dcmotor name="f" joint="h2" resistance="2" motorconst=".5" input="pos voltage"
  controller="3 0 .5 0 0 0"/>
<dcmotor name="g" joint="h" resistance="2" motorconst=".5" input="pos" controller="3 0 .5 0 0 2"/>
</actuator><sensor><actuatorfrc actuator="d"/></sensor>"""
ORIENTATIONS = """<actuator><motor joint="h2" gear="3"/>
<orientation name="o" joint="ball" kp="2" kv=".3" forcerange="0 1" ctrlrange="-1 .5"/>
<orientation name="q" site="s2" refsite="s0" input="quat" kp="2" kv=".1" forcerange="0 .6"/>
<motor joint="sl" gear="2"/><position joint="ball" kp="2" gear="1 -2 3" kv="1"/>
<position site="s2" refsite="s3" gear="0 0 0 4 5 6" kp="2"/></actuator>
<sensor><actuatorfrc actuator="o"/><actuatorpos actuator="o"/><actuatorvel actuator="o"/>
<actuatorpos actuator="q"/></sensor>"""
JOINED = """<actuator><dcmotor name="a" joint="h" resistance="2" motorconst=".5" input="none"/>
<dcmotor name="b" joint="h2" gear="3" resistance="2" motorconst=".5" input="none"
  thermal="3 4 0 .01 20 25" inductance="0 .05" cogging=".2 6 .3" lugre="20 .3 .2 .3 .5"/>
<motor name="m" joint="sl" gear="2"/></actuator><sensor><actuatorfrc actuator="a"/>
<actuatorfrc actuator="b"/><actuatorvel actuator="b"/><jointactuatorfrc joint="h2"/></sensor>
<keyframe><key name="k" ctrl="3" act=".1 .2 .3"/></keyframe>"""
MUSCLES = """<tendon><spatial name="p"><site site="w"/><site site="s0"/><site site="s2"/></spatial>
</tendon><actuator>
<general tendon="p" lengthrange=".2 1.1" gaintype="muscle" biastype="muscle"
  gainprm=".7 1.1 20 200 .4 1.7 1.4 1.3 1.2" biasprm=".7 1.1 20 200 .4 1.7 1.4 1.3 1.2"/>
<general tendon="p" lengthrange=".2 1.1" gaintype="muscle" ctrlrange="0 1"
  gainprm=".7 1.1 20 200 .4 1.7 1.4 1.3 1.2"/>
<general joint="h" dyntype="muscle" dynprm=".01 .04" gainprm="3" biastype="affine"
  biasprm="1 2 3"/><general joint="h" dyntype="muscle" dynprm=".01 .04 .3" gainprm="3"
  actearly="true"/>
<general tendon="p" lengthrange=".2 1.1" gaintype="muscle" dyntype="filter" dynprm=".05"
  gainprm=".7 1.1 20 200 .4 1.7 1.4 1.3 1.2" biastype="affine" biasprm="1 -2 -.3"/>
<general tendon="p" lengthrange=".2 1.1" gaintype="affine" gainprm="3 1 -.2" dyntype="integrator"
  actrange="-1 1" biastype="muscle" biasprm=".6 1.2 30 200 .5 1.6 1.5 1.1 1.2"/>
<general tendon="p" lengthrange=".2 1.1" gaintype="muscle" dyntype="muscle" dynprm=".01 .04"
  gainprm=".7 1.1 20 200 .4 1.7 1.4 1.3 1.2" biastype="muscle" actearly="true"
  biasprm=".6 1.2 -1 100 .5 1.6 1.5 1.1 1.2"/>
<general joint="h" lengthrange="-1 1" biastype="muscle" forcerange="-9 9"
  biasprm=".6 1.2 30 200 .5 1.6 1.5 1.1 1.2"/></actuator>"""


@pytest.mark.slow("text1", "text2", "text3")
@pytest.mark.parametrize("text", [PID, MOTORS, ORIENTATIONS, MUSCLES, JOINED])
def test_laws(tmp_path, text):
    """Controllers, motors with states, orientations and parts of muscles; also written again."""
    system, model, said = read(tmp_path, TREE.format(text))
    assert "actuators" not in said and "sensor" not in said
    check(system, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dl.save(system, tmp_path / "again.xml")
        again = dl.load(tmp_path / "again.xml", actuators=True)
    check(again, mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml")), count=1)
    same = jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-12, atol=1e-12), system, again)
    assert all(jax.tree.leaves(same.actuators)) and again.actuator_names == system.actuator_names


def test_commands_of_keyframes_and_originals(tmp_path):
    """Each command of an actuator with several is that of a keyframe; ranges of inputs stay."""
    ctrl, act = np.arange(1, 14) / 10, np.arange(1, 8) / 10
    words = [" ".join(map(str, values)) for values in (ctrl, act)]
    key = f'<keyframe><key name="k" ctrl="{words[0]}" act="{words[1]}"/></keyframe>'
    system, model, _ = read(tmp_path, TREE.format(PID + key))
    names = "p", "p/velocity", "whole", "whole/velocity", "whole/effort"
    assert system.actuator_names[:5] == names
    np.testing.assert_allclose(system.state("k").command, model.key_ctrl[0])
    np.testing.assert_allclose(system.internal_state("k"), model.key_act[0])
    servo = dataclasses.replace(system.actuators[2], kp=jnp.asarray(5.0))
    drives = (*system.actuators[:2], servo, *system.actuators[3:])
    changed = dataclasses.replace(system, actuators=drives)
    dl.save(changed, tmp_path / "changed.xml", original=tmp_path / "m.xml")
    check(changed, mujoco.MjModel.from_xml_path(str(tmp_path / "changed.xml")), count=1)


SLOW = """<actuator><pid name="whole" joint="h2" kp="3" kv=".5" input="pos vel ff" ki="2"
  imax=".5" slewmax="3" forcerange="-4 4" ffrange="-1 2"/>
<dcmotor name="e" joint="h" resistance="2" motorconst=".5" input="vel ff"
  controller="0 0 .5 4 0 6" thermal="3 4 0 .01 20 25" saturation="0 2 0"/></actuator>"""


@pytest.mark.slow
@pytest.mark.parametrize(("text", "steps", "tolerance"), [(SLOW, 200, 1e-8), (MOTORS, 10000, 3e-4)])
def test_states_move_as_mujoco_moves_them(tmp_path, text, steps, tolerance):
    """With RK4. MuJoCo integrates currents and bristles to the first order of its step."""
    text = text.replace('lugre="20', 'lugre="2')
    if steps > 200:  # their setpoints follow within a step
        text = text.replace("3 2 .5 4 .3 6", "3 2 .5 0 .3 6").replace(
            "0 0 .5 4 0 6", "0 0 .5 0 0 6"
        )
    option = f'<option timestep="{0.2 / steps}" integrator="RK4">'
    system, model, _ = read(tmp_path, TREE.replace("<option>", option).format(text))
    ordering, q, v, data = next(states(system, model, 1))
    data.act[:] *= 0.1
    u, z = data.ctrl.copy(), data.act.copy()
    run = dl.simulate(system, q, v, z0=z, control=u, dt=1e-3, steps=200, save_every=200)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(ordering.q(run.q[-1]), data.qpos, atol=tolerance)
    np.testing.assert_allclose(run.z[-1], data.act, atol=tolerance)


@pytest.mark.slow("text2", "text1")
@pytest.mark.parametrize("text", [PID, MOTORS, ORIENTATIONS])
def test_derivatives(tmp_path, text):
    """Of the generalised force by commands, velocities, states and numbers, in both modes."""
    system, model, _ = read(tmp_path, TREE.format(text))
    _, q, v, data = next(states(system, model, 1))
    leaves, structure = jax.tree.flatten(system.actuators)
    x = jnp.concatenate([data.ctrl, v, data.act, *map(jnp.ravel, leaves)])
    ends = np.cumsum([system.nu, system.nv, system.nz, *map(jnp.size, leaves)])

    @jax.jit
    def force(x):
        u, v, z, *numbers = jnp.split(x, ends[:-1])
        numbers = [jnp.reshape(n, jnp.shape(leaf)) for n, leaf in zip(numbers, leaves, strict=True)]
        drives = jax.tree.unflatten(structure, numbers)
        tree = Tree.of(with_states(dataclasses.replace(system, actuators=drives), z))
        return generalised(tree, torques(tree, u, q, v), q, v)

    random = np.random.default_rng(1)
    way, back = jnp.asarray(random.normal(size=len(x))), jnp.asarray(random.normal(size=system.nv))
    ahead = jax.jvp(force, (x,), (way,))[1]
    slope = (force(x + 1e-6 * way) - force(x - 1e-6 * way)) / 2e-6
    np.testing.assert_allclose(ahead, slope, rtol=1e-5, atol=1e-6)
    assert float(back @ ahead) == pytest.approx(
        float(jax.vjp(force, x)[1](back)[0] @ way), rel=1e-9
    )
    still = jax.vjp(force, x.at[: ends[2]].set(0))[1](back)[0]
    assert np.all(np.isfinite(still))


def test_motors_without_controls(tmp_path):
    """They have a command that does nothing, of which a keyframe says nothing, also when saved."""
    system, model, _ = read(tmp_path, TREE.format(JOINED))
    assert system.actuator_names == ("a", "b", "m") and model.nu == 1
    np.testing.assert_allclose(system.state("k").command, [0, 0, 3])
    dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    np.testing.assert_allclose(again.key_ctrl, model.key_ctrl)
    np.testing.assert_allclose(again.key_act, model.key_act)
    motor = dl.DCMotor("h2", takes="none", slew_rate=1.0, torque_constant=1, resistance=1, name="d")
    with pytest.raises(dl.ModelError, match="it takes no command"):
        dl.attach(system, motor)


def test_what_is_wrong_with_controllers():
    """Unknown commands, an integral without a position, and partners that are not there."""
    cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(), mass=1.0)])
    with pytest.raises(dl.ModelError, match="its commands are place; give some of position"):
        dl.attach(cart, dl.PIDServo("cart", takes="place"))
    with pytest.raises(dl.ModelError, match=r"integrates .ki. without a command of the position"):
        dl.attach(cart, dl.PIDServo("cart", takes="velocity", ki=1.0))
    servo = dl.PIDServo("cart", further=[("velocity", "cart/speed")])
    with pytest.raises(dl.ModelError, match=r"no actuator is named 'cart/speed'.*in one call"):
        dl.attach(cart, servo)
    whole = dl.attach(cart, servo, dl.ExtraCommand("cart", name="cart/speed"))
    assert whole.nu == 2


LEFT = """<actuator><motor name="late" joint="h" delay=".01" nsample="9" interp="cubic"/>
<general name="odd" joint="h" dyntype="user"/><motor name="push" joint="h2" gear="2"/></actuator>"""


def test_what_is_left_out_is_named(tmp_path):
    """Delays that interpolate by cubic polynomials, laws of users."""
    system, _, said = read(tmp_path, TREE.format(LEFT))
    assert system.actuator_names == ("push",)
    for what in (
        "actuators with delays that interpolate by cubic polynomials ('late')",
        "dynamics but those of affine laws and muscles ('odd')",
    ):
        assert what in said
