"""Sensors of MJCF read what MuJoCo's do; the others are named, and fits are left alone."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di

XML = """
<mujoco model="m"><option gravity="0.5 -1 -9" magnetic="0.1 0.2 -0.5">
  <flag contact="disable" limit="disable"/></option>
<worldbody>
  <body name="base" pos=".1 .2 .3" euler="20 30 -10"><freejoint name="float"/>
    <inertial pos=".02 .01 -.03" mass="2" fullinertia=".03 .04 .05 .002 -.003 .001"/>
    <site name="low" pos=".1 0 .2" euler="30 20 10"/>
    <body name="arm" pos=".2 0 .1" euler="0 40 10">
      <joint name="swing" axis="1 2 -1" armature=".2" damping=".1" ref="20"/>
      <inertial pos=".1 0 .02" mass="1.2" diaginertia=".02 .03 .04" euler="10 20 30"/>
      <geom name="skin" size=".1" pos=".1 .1 0" euler="0 0 40" contype="0" conaffinity="0"/>
      <camera name="eye" pos=".1 0 0" euler="10 0 0"/>
      <body name="hand" pos="0 .1 .3" euler="-30 10 5">
        <joint name="slide" type="slide" axis="0 1 1" ref=".1"/>
        <inertial pos="0 .03 .1" mass=".7" diaginertia=".01 .02 .015"/>
        <site name="imu" pos=".02 .03 .04" quat=".7 .1 .5 -.3"/>
        <body name="ball" pos="0 0 .2"><joint name="socket" type="ball" pos="0 0 -.05"/>
          <inertial pos="0 0 .1" mass=".3" diaginertia=".01 .02 .015"/>
          <site name="tip" pos="0 0 .2"/>
</body></body></body></body>
<site name="mark" pos="1 2 3" euler="10 20 30"/></worldbody>
<actuator><motor name="push" joint="slide" gear="3"/><motor joint="swing" gear="-2"/></actuator>
<sensor>
  <accelerometer site="imu" noise="0.1" cutoff="2"/> <gyro name="rates" site="imu"/>
  <velocimeter site="tip"/> <magnetometer site="imu"/>
  <force site="imu"/> <torque site="imu"/> <force name="f" site="tip"/>
  <jointpos name="angle" joint="swing"/> <jointpos joint="slide"/> <jointvel joint="slide"/>
  <ballquat joint="socket"/> <ballangvel joint="socket"/>
  <framepos objtype="site" objname="tip"/> <framequat objtype="site" objname="tip"/>
  <framepos name="p" objtype="site" objname="tip" reftype="site" refname="low"/>
  <framequat name="r" objtype="body" objname="arm" reftype="site" refname="low"/>
  <framepos name="g" objtype="geom" objname="skin" reftype="camera" refname="eye"/>
  <framexaxis objtype="site" objname="imu"/> <frameyaxis objtype="xbody" objname="hand"/>
  <framezaxis name="z" objtype="site" objname="imu" reftype="body" refname="arm"/>
  <framelinvel objtype="body" objname="arm"/> <frameangvel objtype="site" objname="tip"/>
  <framelinvel name="lr" objtype="site" objname="tip" reftype="site" refname="low"/>
  <frameangvel name="ar" objtype="site" objname="tip" reftype="geom" refname="skin"/>
  <framelinacc objtype="site" objname="tip"/> <frameangacc objtype="body" objname="hand"/>
  <framelinacc name="still" objtype="site" objname="mark"/>
  <subtreecom body="arm"/> <subtreelinvel body="arm"/> <subtreeangmom body="arm"/>
  <subtreecom name="all" body="base"/>
  <actuatorpos actuator="push"/> <actuatorvel actuator="push"/>
  <clock/>
</sensor></mujoco>
"""
LEFT = """
<mujoco model="m"><worldbody>
  <body name="hand/left"><joint name="j"/><geom size=".1" contype="0" conaffinity="0"/>
  <site name="s" size=".01"/></body></worldbody>
<sensor>
  <touch name="t" site="s"/> <rangefinder name="r" site="s"/> <user name="u" dim="3"/>
  <jointpos name="j" joint="j"/> <gyro name="hand/imu" site="s"/>
</sensor></mujoco>
"""


def loaded(tmp_path, text):
    path = tmp_path / "m.xml"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        system = dl.load(path)
    return system, mujoco.MjModel.from_xml_path(str(path)), " ".join(str(w.message) for w in said)


@pytest.fixture
def machine(tmp_path):
    return loaded(tmp_path, XML)


class States(eqx.Module):
    """States of a motion that is none, to measure in."""

    t: jax.Array
    q: jax.Array
    v: jax.Array
    u: jax.Array | None = None


def random_states(system, n=3):
    rng = np.random.default_rng(0)
    q = [system.manifold.retract(system.neutral(), rng.normal(size=system.nv)) for _ in range(n)]
    t, v = rng.normal(size=n), rng.normal(size=(n, system.nv))
    return States(jnp.asarray(t), jnp.stack(q), jnp.asarray(v))


@pytest.mark.slow
def test_readings_are_those_of_mujoco(machine):
    """Guards every type of sensor that is read, in random states, frames of all kinds included."""
    from difflie.sensors import readings

    system, model, said = machine
    assert "sensors" not in said
    run = random_states(system)
    found = readings(system, run)
    assert len(found) == model.nsensor == len(system.sensors)
    ordering, data = dl.MujocoOrdering(system, model), mujoco.MjData(model)
    for row, (t, q, v) in enumerate(zip(run.t, run.q, run.v, strict=True)):
        data.time, data.qpos[:], data.qvel[:] = float(t), ordering.q(q), ordering.v(q, v)
        mujoco.mj_forward(model, data)
        for k, (name, values) in enumerate(found.items()):
            start = model.sensor_adr[k]
            expected = data.sensordata[start : start + model.sensor_dim[k]].copy()
            if model.sensor_cutoff[k]:
                values = readings(system, run, [name], cutoff=True)[name]
            if name.startswith("framequat") or name == "r":
                expected *= np.sign(expected[0])
            np.testing.assert_allclose(values[row], expected, atol=1e-9, err_msg=name)


def test_names_say_what_is_measured(machine):
    """Guards names of unnamed sensors, and the columns and units of readings."""
    system, _, _ = machine
    by_name = {sensor.name: sensor for sensor in system.sensors}
    assert by_name["accelerometer_imu"].columns(system)[0] == ("accelerometer_imu x", "m/s^2")
    assert by_name["force_imu"].columns(system)[2] == ("force_imu force z", "N")
    assert by_name["angle"].columns(system) == [("angle swing", "rad")]
    assert {"rates", "jointpos_slide", "actuatorpos_push", "subtreecom_arm", "clock_33"} <= set(
        by_name
    )


@pytest.mark.slow
def test_readings_of_a_run(machine):
    """Guards readings along a simulation, their noise and cutoff, and an unknown name."""
    system, _, _ = machine
    fast = jnp.full(system.nv, 9.0)
    run = dl.simulate(system, system.neutral(), fast, dt=1e-3, steps=10)
    plain = run.readings(system, ["accelerometer_imu", "rates"])
    assert {k: x.shape for k, x in plain.items()} == {
        "accelerometer_imu": (11, 3),
        "rates": (11, 3),
    }
    noisy = run.readings(system, ["accelerometer_imu", "rates"], noise=jax.random.key(0))
    off = noisy["accelerometer_imu"] - plain["accelerometer_imu"]
    assert 0.05 < float(off.std()) < 0.2
    np.testing.assert_array_equal(noisy["rates"], plain["rates"])
    clipped = run.readings(system, ["accelerometer_imu"], cutoff=True)["accelerometer_imu"]
    assert float(jnp.abs(clipped).max()) == 2.0
    with pytest.raises(ValueError, match="m: no sensor is named 'rate'; did you mean 'rates'"):
        run.readings(system, ["rate"])


def test_what_is_left_out_and_renamed_is_named(tmp_path):
    """Guards that touch, rangefinder and user sensors, and changed names, are in the warning."""
    system, _, said = loaded(tmp_path, LEFT)
    assert "sensors ('t', 'r', 'u')" in said
    assert "called otherwise: 'j' as 'j_sensor', 'hand/imu' as 'hand_imu'" in said
    assert [s.name for s in system.sensors] == ["j_sensor", "hand_imu"]


@pytest.mark.skipif(mujoco.__version__ < "4", reason="this MuJoCo has no sensors that are late")
def test_late_sensors_are_named(tmp_path):
    """Guards that delays and intervals, which readings have not, are in the warning."""
    late = """<mujoco><worldbody><body><joint name="h"/>
    <geom size=".1" contype="0" conaffinity="0"/></body></worldbody><sensor>
    <jointpos name="a" joint="h" delay=".02" nsample="4"/>
    <jointvel name="b" joint="h" interval=".05"/><jointpos name="c" joint="h"/></sensor></mujoco>"""
    system, _, said = loaded(tmp_path, late)
    assert "delays and intervals of sensors ('a', 'b')" in said
    assert not system.not_modelled


@pytest.mark.slow
def test_fits_do_not_see_sensors_of_files(machine, tmp_path):
    """Guards patterns of parameters, names, linear fits and held joints against such sensors."""
    system, _, _ = machine
    bare = eqx.tree_at(lambda s: s.sensors, system, ())
    for pattern in ("*", "*/position", "*/bias*"):
        names = [
            dl.Parameters(s, [pattern]).names if pattern != "*/bias*" else None
            for s in (system, bare)
        ]
        assert names[0] == names[1]
    assert dl.Parameters(system, ["rates/bias"]).names
    own = di.with_sensors(system, di.Sensor("rates", dl.quantities.Gyroscope("hand")))
    assert sum(s.name == "rates" for s in own.sensors) == 1
    assert own.sensors[-1].from_file is False
    named = dl.attach(system, dl.PointForce([("hand", (0, 0, 0))], (0, 0, 1), name="angle"))
    assert named.coupling("angle")
    with pytest.warns(UserWarning, match=r"joints that are gone are taken off: 'jointpos_slide'"):
        held = dl.lock(system, {"slide": 0.1})
    assert "jointvel_slide" not in {s.name for s in held.sensors}
    assert "force_imu" in {s.name for s in held.sensors}


def test_closed_loops_have_no_wrenches(tmp_path):
    """Guards that a force that depends on reactions is named, not read."""
    loop = '<equality><connect body1="hand" anchor="0 0 0"/></equality></mujoco>'
    system, _, said = loaded(tmp_path, XML.replace("</mujoco>", loop))
    assert "sensors (number 4, number 5, 'f')" in said
    assert "force_imu" not in {s.name for s in system.sensors}
