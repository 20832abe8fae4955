"""Sensors of touch, distance and limits in MJCF, against MuJoCo's own."""

import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq
from difflie.system.shared import sharing

NEAR = """<mujoco><option><flag gravity="disable" {}/></option><worldbody>
<geom name="floor" type="plane" size="1 1 1"/>
<body name="a" pos="0 0 .6" euler="10 20 30"><joint name="h" axis="0 1 0" range="-10 20"/>
  <joint name="s" type="slide" axis="1 0 0"/>
  <geom name="ball" size=".1"/><geom name="rod" type="capsule" size=".05 .2" pos=".1 .2 .3"/></body>
<body name="b" pos=".5 .2 .5"><joint name="k" axis="1 1 0"/>
  <geom name="knob" size=".12" pos=".1 .1 0"/></body></worldbody>
<sensor><distance name="d" geom1="ball" geom2="knob" cutoff="2"/>
<distance name="near" geom1="ball" geom2="knob" cutoff=".1"/>
<normal name="n" geom1="ball" geom2="knob" cutoff="2"/>
<fromto name="f" geom1="ball" geom2="knob" cutoff="2"/>
<normal name="no" geom1="ball" geom2="knob" cutoff=".01"/>
<fromto name="bodies" body1="a" body2="b" cutoff="2"/><distance name="g" geom1="rod" geom2="floor"
cutoff="2"/><jointlimitpos name="lp" joint="h"/>
<jointlimitvel name="lv" joint="h"/></sensor></mujoco>"""


def loaded(path, text, **options):
    """The system, MuJoCo's model, and what the warning says."""
    (path / "m.xml").write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = dl.load(path / "m.xml", **options)
    said = " ".join(str(w.message) for w in caught)
    return system, mujoco.MjModel.from_xml_path(str(path / "m.xml")), said


def saved(system, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dl.save(system, path)
    return mujoco.MjModel.from_xml_path(str(path))


@pytest.mark.slow
def test_distances_and_limits(tmp_path):
    """Distances, normals, nearest points, overruns and their rates, also of the saved file."""
    system, model, said = loaded(tmp_path, NEAR.format(""))
    assert "sensors" not in said
    labels = [dq.Overrun("h", rate).labels(system) for rate in (False, True)]
    assert labels == [(("overrun of 'h'", "rad"),), (("rate of the overrun of 'h'", "rad/s"),)]
    again, rng = saved(system, tmp_path / "again.xml"), np.random.default_rng(0)
    read = jax.jit(
        lambda q, v: [s.predicted(system, q, v, None, None, 0.0) for s in system.sensors]
    )
    for _ in range(8):
        q, v = rng.normal(size=(2, 3)) * [0.5, 0.4, 0.8]
        readings = jnp.concatenate([jnp.ravel(r) for r in read(jnp.asarray(q), jnp.asarray(v))])
        for each in (model, again):
            data = mujoco.MjData(each)
            data.qpos, data.qvel = q, v
            mujoco.mj_forward(each, data)
            np.testing.assert_allclose(readings, data.sensordata, atol=1e-9)
    off = loaded(tmp_path, NEAR.format('limit="disable"'))[2]
    assert "sensors ('lp', 'lv')" in off


def test_distances_say_what_is_missing():
    """An unknown shape, and an unknown reading."""
    ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=1.0)])
    ball = ball.with_shapes({"ball": dl.Sphere("ball", 0.1), "ground": dl.Plane()})
    with pytest.raises(dl.ModelError, match="no shape is named 'bal'; did you mean 'ball'"):
        dq.ShapeGap("bal", "ground", 1.0)(ball, jnp.zeros(1), jnp.zeros(1), None, 0.0)
    with pytest.raises(dl.ModelError, match="the reading is 'n'; it is distance, normal or points"):
        dq.ShapeGap("ball", "ground", 1.0, "n")
    with pytest.raises(dl.ModelError, match="a group of shapes is empty"):
        dq.ShapeGap((), "ball", 1.0)
    with pytest.raises(dl.ModelError, match="the zone of a touch sensor is a Plane"):
        dq.Touch(dl.Plane())
    with pytest.raises(dl.ModelError, match="no shapes are in contact"):
        dq.Touch(dl.Sphere("ball", 0.1))(ball, jnp.zeros(1), jnp.zeros(1), None, 0.0)


COUNT = 20
ZONES = "sphere", "capsule", "ellipsoid", "cylinder", "box"


def felt(rng):
    """A ball and a box on the ground, with many zones on them."""
    sites = ["", ""]
    for i in range(COUNT):
        x, y = rng.uniform(-1, 1, size=2) * ([0.15, 0.15], [0.3, 0.25])[i % 2]
        z = rng.uniform(-0.2, 0)
        a, b, c = rng.uniform(0.03, 0.25, size=3) if i > 1 else (1, 1, 1)
        turn = " ".join(map(str, rng.normal(size=4)))
        sites[i % 2] += (
            f'<site name="t{i}" type="{ZONES[i % 5]}" size="{a} {b} {c}" pos="{x} {y} {z}" '
            f'quat="{turn}"/>'
        )
    sensors = "".join(f'<touch name="n{i}" site="t{i}"/>' for i in range(COUNT))
    return f"""<mujoco><worldbody><geom name="floor" type="plane" size="2 2 1"/>
<body name="a" pos="0 0 .095"><freejoint/><geom name="ball" size=".1" mass="1"/>{sites[0]}</body>
<body name="b" pos="1 0 .098"><freejoint/><geom name="box" type="box" size=".2 .15 .1" mass="1"/>
{sites[1]}</body></worldbody><sensor>{sensors}</sensor></mujoco>"""


@pytest.mark.slow
def test_touch(tmp_path):
    """A zone feels the contacts whose rays meet it, as in MuJoCo: all, none, or some corners."""
    text = felt(np.random.default_rng(1))
    system, model, said = loaded(tmp_path, text, contacts=True)
    assert "sensors (" not in said
    again, data = saved(system, tmp_path / "again.xml"), mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    q = dl.MujocoOrdering(system, model).from_q(data.qpos)
    still = jnp.zeros(system.nv)

    @jax.jit
    def read(q):
        with sharing(system) as known:
            return [s.predicted(known, q, still, None, None, 0.0) for s in system.sensors]

    readings = np.array(read(q)).reshape(-1, 2)
    whole = readings.max(axis=0)
    share, theirs = readings / whole, data.sensordata.reshape(-1, 2)
    np.testing.assert_allclose(share, theirs / theirs.max(axis=0), atol=1e-6)
    assert len(np.unique(share[:, 1].round(3))) >= 3
    total = dq.ContactForce("b")(system, q, still, None, 0.0)[2]
    np.testing.assert_allclose(whole[1], total, rtol=1e-12)
    other = mujoco.MjData(again)
    other.qpos = data.qpos
    mujoco.mj_forward(again, other)
    np.testing.assert_array_equal(other.sensordata > 0, data.sensordata > 0)
    assert "sensors ('n0'" in loaded(tmp_path, text)[2]
