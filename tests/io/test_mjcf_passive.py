"""Passive forces of tendons, ball joints, gravity compensation and fluids in MJCF, as MuJoCo's."""

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


def test_springs_of_ball_and_free_joints(tmp_path):
    """Towards the initial pose, with damping."""
    system, model, said = read(tmp_path, VECTORS)
    check(system, model)
    assert "springs" not in said
    assert not any(
        isinstance(c, dl.Bushing) for c in dl.load(tmp_path / "m.xml", base="fixed").couplings[1:]
    )


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
    """The inertia-box model, with wind; shapes that are taken for ellipsoids are named."""
    text = VECTORS.replace("<option>", f'<option {option} wind="1 2 3">')
    system, model, said = read(tmp_path, text)
    check(system, model)
    assert "medium" not in said
    text = text.replace("<geom ", '<geom fluidshape="ellipsoid" ', 1)
    assert "forces of the medium on ellipsoids (fluidshape) ('a')" in read(tmp_path, text)[2]
