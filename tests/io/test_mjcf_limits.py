"""Limits of joints and tendons in MJCF as compliant stops, with MuJoCo's stiffness."""

import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq
from difflie.io.mjcf.softness import _reference

HANGING = """<mujoco><option timestep=".001"/><worldbody>
<body><joint name="s" type="slide" axis="0 0 1" range="-.1 1" {}/>
  <geom size=".1" mass="2" contype="0"/><site name="end" pos="0 0 -.2"/></body>
<body pos="1 0 0"><joint name="t" type="slide" axis="0 0 1"/>
  <geom size=".1" mass="3" contype="0"/></body>
<body pos="2 0 1"><joint name="r" type="slide" axis="0 0 1"/>
  <geom size=".1" mass="1.5" contype="0"/><site name="low"/></body>
<site name="up" pos="2 0 2"/></worldbody>
<tendon><fixed name="f" range="-.1 2"><joint joint="t" coef="1"/></fixed>
<spatial name="p" range="0 1.1"><site site="up"/><site site="low"/></spatial></tendon></mujoco>"""


def loaded(path, text, **options):
    (path / "m.xml").write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = dl.load(path / "m.xml", **options)
    said = " ".join(str(w.message) for w in caught)
    return system, mujoco.MjModel.from_xml_path(str(path / "m.xml")), said


def rest(model):
    """Where MuJoCo's machine comes to rest."""
    data = mujoco.MjData(model)
    data.qpos[:] = -0.1
    for _ in range(20000):
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() < 1e-9
    return data.qpos.copy()


@pytest.mark.parametrize(
    "soft", ["", 'solreflimit=".05 .7" solimplimit=".5 .95 .01"', 'solreflimit="-900 -30"']
)
def test_limits_carry_weights_where_mujoco_does(tmp_path, soft):
    """Of a slide, a fixed and a spatial tendon: at rest the forces are the weights."""
    system, model, said = loaded(tmp_path, HANGING.format(soft), limits=True)
    assert "of tendons" not in said
    q = jnp.asarray(rest(model))
    np.testing.assert_allclose(
        dl.passive_force(system, q, jnp.zeros(3)), 9.81 * np.array([2, 3, 1.5]), rtol=1e-6
    )
    slope = jax.grad(lambda q: dl.elastic_energy(system, q))(q)
    np.testing.assert_allclose(slope, -dl.passive_force(system, q, jnp.zeros(3)), rtol=1e-9)
    with pytest.warns(UserWarning, match="stops at limits are MuJoCo's soft ones"):
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    np.testing.assert_allclose(again.tendon_range, model.tendon_range, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the original has the same stops
        dl.save(system, tmp_path / "kept.xml", original=tmp_path / "m.xml")


@pytest.mark.parametrize("flag", ["enable", "disable"])
@pytest.mark.parametrize("soft", [".02 0", ".0005 1", ".05 .7", "-900 -30", "0 0"])
def test_references_of_soft_constraints(tmp_path, soft, flag):
    """k and b are MuJoCo's: of mixed and of short references, with and without `refsafe`."""
    text = HANGING.format(f'solreflimit="{soft}"')
    text = text.replace("<option ", f'<option><flag refsafe="{flag}"/></option><option ')
    system, model, _ = loaded(tmp_path, text, limits=True)
    data = mujoco.MjData(model)
    data.qpos[0] = -0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mujoco.mj_forward(model, data)
    expected = data.efc_KBIP[0, :2]
    found = _reference(model, model.jnt_solref[0], model.jnt_solimp[0])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    force = dl.passive_force(system, jnp.array([-0.2, 0, 0]), jnp.zeros(3))
    assert np.all(np.isfinite(force)) and (force[0] > 0) == (expected[0] > 0)


def test_limits_are_read_on_request(tmp_path):
    """Without, those of tendons are named, margins always; flags switch them off; URDF has none."""
    text = HANGING.format("")
    system, _, said = loaded(tmp_path, text)
    assert "limits of tendons ('f', 'p')" in said and not system.couplings
    margins = text.replace('name="f"', 'name="f" margin=".1"')
    assert "margins of limits of tendons ('f')" in loaded(tmp_path, margins, limits=True)[2]
    off = text.replace("<option ", '<option><flag limit="disable"/></option><option ')
    assert not loaded(tmp_path, off, limits=True)[0].couplings
    with pytest.raises(ValueError, match=r"leave out limits=True, and attach dl.JointStop"):
        dl.load(dl.examples.path("arm7"), limits=True)


BALL = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
<body euler=".3 .2 .1"><joint name="h" axis="0 1 0"/><geom size=".1" mass="2" contype="0"/>
<body pos=".1 .2 .3" euler=".1 -.4 .3"><joint name="b" type="ball" range="0 .7"/>
<geom type="box" size=".1 .2 .3" mass="1" contype="0" pos=".2 0 0"/></body></body></worldbody>
</mujoco>"""


def test_limits_of_ball_joints(tmp_path):
    """Stop where MuJoCo's do, along the same axis; the force is minus the slope of the energy."""
    system, model, said = loaded(tmp_path, BALL, limits=True)
    assert "limits of ball" not in said and "limits of ball joints" in loaded(tmp_path, BALL)[2]
    (stop,) = system.couplings
    data, random = mujoco.MjData(model), np.random.default_rng(3)
    push = jax.jit(lambda q, v: dl.passive_force(system, q, v))
    energy = jax.jit(
        jax.grad(lambda s, q: dl.elastic_energy(system, system.manifold.retract(q, s)))
    )
    still = jnp.zeros(4)
    for angle in (0.3, 0.8, 1.4, 3.0):
        axis, v = random.normal(size=3), random.normal(size=4)
        mujoco.mju_axisAngle2Quat(data.qpos[1:], axis / np.linalg.norm(axis), angle)
        data.qpos[0], data.qvel[:] = random.normal(), v
        mujoco.mj_forward(model, data)
        expected = np.zeros(4)
        if data.nefc:
            along, depth = data.efc_J.reshape(-1, 4)[0], -data.efc_pos[0]
            damped = max(1 - stop.dissipation * (along @ v), 0)
            expected = stop.stiffness * depth * damped * along
        q = jnp.asarray(data.qpos)
        np.testing.assert_allclose(push(q, v), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(push(q, still), -energy(still, q), rtol=1e-9, atol=1e-9)
    slope = jax.jit(jax.jacrev(push, (0, 1)))(system.neutral(), still)
    assert all(np.all(np.isfinite(part)) for part in slope)
    with pytest.warns(UserWarning, match="stops at limits are MuJoCo's soft ones"):
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    np.testing.assert_allclose(again.jnt_range, model.jnt_range, atol=1e-12)


@pytest.mark.slow
def test_sensors_of_limits_of_ball_joints(tmp_path):
    """Angles and rates are MuJoCo's, the force is that of the stop; written again."""
    kinds = "".join(f'<jointlimit{what} joint="b"/>' for what in ("pos", "vel", "frc"))
    text = BALL.replace("</mujoco>", f"<sensor>{kinds}</sensor></mujoco>")
    system, model, said = loaded(tmp_path, text, limits=True)
    assert "sensors (" not in said and len(loaded(tmp_path, text)[0].sensors) == 2
    with pytest.warns(UserWarning, match="stops at limits"):
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    assert again.sensor_type.tolist() == model.sensor_type.tolist()
    given = [sensor.predicted for sensor in system.sensors]
    read = jax.jit(lambda q, v: jnp.concatenate([f(system, q, v, v, None, 0.0) for f in given]))
    push = jax.jit(lambda q, v: dl.passive_force(system, q, v))
    data, random = mujoco.MjData(model), np.random.default_rng(3)
    for angle in (0.3, 0.8, 2.0):
        axis, v = random.normal(size=3), random.normal(size=4)
        mujoco.mju_axisAngle2Quat(data.qpos[1:], axis / np.linalg.norm(axis), angle)
        data.qvel[:] = v
        mujoco.mj_forward(model, data)
        readings = read(jnp.asarray(data.qpos), jnp.asarray(v))
        np.testing.assert_allclose(readings[:2], data.sensordata[:2], atol=1e-12)
        moment = np.linalg.norm(push(jnp.asarray(data.qpos), jnp.asarray(v))[1:])
        assert float(readings[2]) == pytest.approx(moment, rel=1e-9)
        assert (angle > 0.7) == (float(readings[0]) < 0)
    still = jax.jacfwd(read)(system.neutral(), jnp.zeros(4))
    assert np.all(np.isfinite(still))
    with pytest.raises(dl.ModelError, match="'h' is not spherical"):
        dq.RotationOverrun("h", 0.7).labels(system)


SENSORS = """<sensor><tendonlimitpos tendon="f"/><tendonlimitvel tendon="f"/>
<tendonlimitpos tendon="p"/><tendonlimitvel tendon="p"/><jointlimitpos joint="s"/>
<jointlimitvel joint="s"/><tendonlimitfrc tendon="f"/><tendonlimitfrc tendon="p"/>
<jointlimitfrc joint="s"/></sensor></mujoco>"""


def test_sensors_of_limits(tmp_path):
    """Positions and rates are MuJoCo's, forces those that carry the weights; written again."""
    text = HANGING.format("").replace("</mujoco>", SENSORS)
    system, model, said = loaded(tmp_path, text, limits=True)
    assert "sensors" not in said.replace("test_sensors", "")
    free = loaded(tmp_path, text)[0]  # without stops there are no forces of them
    assert len(free.sensors) == 6 and len(system.sensors) == 9
    given = [sensor.predicted for sensor in system.sensors]
    read = jax.jit(lambda q, v: jnp.concatenate([f(system, q, v, v, None, 0.0) for f in given]))
    data, random = mujoco.MjData(model), np.random.default_rng(1)
    with pytest.warns(UserWarning, match="stops at limits"):
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    other = mujoco.MjData(again)
    seen = np.zeros(6, bool)
    for _ in range(12):
        data.qpos[:], data.qvel[:] = random.normal(size=(2, 3))
        mujoco.mj_forward(model, data)
        readings = read(jnp.asarray(data.qpos), jnp.asarray(data.qvel))
        np.testing.assert_allclose(readings[:6], data.sensordata[:6], atol=1e-12)
        seen |= data.sensordata[:6] != 0
        other.qpos, other.qvel = data.qpos, data.qvel
        mujoco.mj_forward(again, other)
        np.testing.assert_allclose(other.sensordata[:6], data.sensordata[:6], atol=1e-12)
    assert seen.all() and again.sensor_type.tolist() == model.sensor_type.tolist()
    q = jnp.asarray(rest(model))
    weights = 9.81 * np.array([3, 1.5, 2])
    np.testing.assert_allclose(read(q, jnp.zeros(3))[6:], weights, rtol=1e-6)
    with pytest.raises(dl.ModelError, match="no tendon is named 'g'"):
        dq.StopForce("g")(system, q, q, None, 0.0)
