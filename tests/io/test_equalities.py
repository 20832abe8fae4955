"""MuJoCo's equality constraints against MuJoCo's own residuals, Jacobians and accelerations."""

import dataclasses
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import random_states

import difflie as dl

mujoco = pytest.importorskip("mujoco")
SPATIAL = """<tendon><fixed name="t"><joint joint="crank" coef="1"/></fixed>
<spatial name="s"><site site="hook"/><site site="grip"/></spatial></tendon>"""

# A four-bar, a free plate welded to it at an anchor, another by sites, a bob on a ball joint that
# sites tie to the world; gears with reference angles and one joint held.
LOOPS = """<mujoco model="loops">
  <compiler angle="radian"/>
  <option gravity="0.3 -1 -9"><flag contact="disable" limit="disable"/></option>
  <worldbody>
    <site name="hook" pos="0.3 0.4 1.9"/>
    <body name="crank" pos="0 0.1 1" euler="0.2 0 0.1">
      <joint name="crank" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.02"/>
      <body name="coupler" pos="0 0 0.3" euler="0 1.2 0">
        <joint axis="0 1 0" ref="0.2"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.8" size="0.02"/>
        <site name="grip" pos="0 0.05 0.4" euler="0.1 0.2 0.3"/>
      </body>
    </body>
    <body name="rocker" pos="0.7 0.3 0.9" euler="0.2 0 0.1">
      <joint name="rocker" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.1 0 0.5" size="0.02"/>
    </body>
    <body name="plate" pos="0.2 0.1 1.5" quat="0.9 0.1 -0.3 0.2">
      <freejoint/>
      <geom type="box" size="0.1 0.2 0.05" pos="0.02 0 0"/>
    </body>
    <body name="tray" pos="0.5 0.2 1.4" euler="0.3 0.4 0.5">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.02"/>
      <site name="handle" pos="0.1 0 0.05" euler="0 0 0.5"/>
      <body name="bob" pos="0.1 0.1 -0.3">
        <joint type="ball" pos="0 0 0.1"/>
        <geom type="sphere" size="0.05" pos="0 0.02 0"/>
        <site name="bob" pos="0 0 0.3"/>
      </body>
    </body>
    <body name="wheel" pos="1 0 1">
      <joint name="wheel" axis="0 1 0" ref="0.3"/>
      <geom type="cylinder" size="0.1 0.02"/>
    </body>
    <body name="rack" pos="1 0 1.2">
      <joint name="rack" type="slide" axis="1 0 0.1" ref="-0.1"/>
      <geom type="box" size="0.2 0.02 0.02"/>
    </body>
    <body name="lock" pos="2 0 0">
      <joint name="lock" axis="1 0 0" ref="0.4"/>
      <geom size="0.1"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="coupler" body2="rocker" anchor="0 0 0.8"/>
    <weld body1="plate" body2="coupler" anchor="0.1 0.05 0" torquescale="0.7"/>
    <weld site1="grip" site2="handle"/>
    <connect site1="hook" site2="bob"/>
    <joint joint1="wheel" joint2="rack" polycoef="0.1 2 -0.3 0.5 0.2"/>
    <joint joint1="lock" polycoef="0.2 0 0 0 0"/>
  </equality>
</mujoco>"""
TURNING = slice(6, 9), slice(12, 15)  # rows of rotations of the welds


def read(text, path):
    """The system a string describes, MuJoCo's model and the warnings."""
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = dl.load(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return system, model, " ".join(str(w.message) for w in caught)


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    """The system, MuJoCo's model, and what we compute of a state, the same in its ordering."""
    system, model, message = read(LOOPS, tmp_path_factory.mktemp("loops") / "loops.xml")
    assert message.count("equal") == 1 and "softness (torquescale)" in message
    ordering = dl.MujocoOrdering(system, model)

    @jax.jit
    def ours(q, v, tau):
        a, multipliers = dl.constrained_dynamics(system, q, v, tau)
        return {
            "state": (ordering.q(q), ordering.v(q, v)),
            "velocities": jax.jacfwd(partial(ordering.v, q))(v),
            "residual": dl.constraint_residual(system, q),
            "jacobian": dl.constraint_jacobian(system, q),
            "tau": ordering.tau(q, tau),
            "acceleration": ordering.a(q, v, a),
            "multipliers": multipliers,
        }

    start = ordering.from_q(jnp.asarray(model.qpos0))
    return system, model, start, lambda *state: jax.tree.map(np.asarray, ours(*state))


def theirs(model, x, rate):
    """MuJoCo's data, residual and Jacobian of the equalities at a state of its own."""
    data = mujoco.MjData(model)
    data.qpos, data.qvel = x, rate
    mujoco.mj_forward(model, data)
    assert np.all(data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    return data, data.efc_pos.copy(), data.efc_J.reshape(-1, model.nv).copy()


def as_ours(g, J, scales):
    """Our equations from MuJoCo's: d = r_2 - r_1, and sin(angle) for sin(angle / 2)."""
    g, J = -g, -J
    for rows, scale in zip(TURNING, scales, strict=True):
        s, ds = g[rows] / scale, J[rows] / scale
        c = np.sqrt(1 - s @ s)
        J[rows] = 2 * (c * np.eye(3) - np.outer(s, s) / c) @ ds
        g[rows] = 2 * c * s
    g[18:], J[18:] = -g[18:], -J[18:]
    return g, J


def test_the_kinds(loops):
    kinds = [type(c).__name__ for c in loops[0].constraints]
    closed = "Spherical", "Fixed", "Fixed", "Spherical"
    assert kinds == [*(f"{name}Constraint" for name in closed), "Polynomial", "Polynomial"]


@pytest.mark.slow("0.0", "0.05")
@pytest.mark.parametrize("size", [0.0, 0.05, 0.4])
def test_residuals_and_jacobians_are_mujocos(loops, size):
    """At the initial pose, where bodies are connected and welded, and ever farther away."""
    system, model, start, ours = loops
    _, v, _, tau, _ = random_states(system, 1, seed=5)
    found = ours(system.manifold.retract(start, size * v[0]), v[0], tau[0])
    if size == 0:
        np.testing.assert_allclose(found["residual"][:9], 0, atol=1e-15)
    g, J = as_ours(*theirs(model, *found["state"])[1:], (0.7, 1.0))
    np.testing.assert_allclose(found["residual"], g, atol=1e-14)
    np.testing.assert_allclose(found["jacobian"], J @ found["velocities"], atol=1e-13)


def test_accelerations_are_those_of_mujocos_matrices(loops):
    """The equations of motion with its mass matrix and Jacobians, dJ/dt by central differences."""
    system, model, start, ours = loops
    _, v, _, tau, _ = random_states(system, 1, seed=2)
    q, tau = system.manifold.retract(start, 0.05 * v[0]), tau[0]
    A = np.asarray(dl.constraint_jacobian(system, q))
    v = v[0] - np.linalg.lstsq(A, A @ np.asarray(v[0]), rcond=1e-10)[0]
    found = ours(q, v, tau)
    x, rate = found["state"]

    def jacobian(t):
        moved = x.copy()
        mujoco.mj_integratePos(model, moved, rate, t)
        return theirs(model, moved, rate)[2]

    data, _, J = theirs(model, x, rate)
    c = (jacobian(1e-5) - jacobian(-1e-5)) @ rate / 2e-5
    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:  # MuJoCo 3
        mujoco.mj_fullM(model, M, data.qM)
    whole = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    right = np.concatenate((found["tau"] - data.qfrc_bias, -c))
    expected = np.linalg.lstsq(whole, right, rcond=1e-12)[0][: model.nv]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found["acceleration"], expected, atol=1e-7 * scale)


def equalities(text, option=""):
    end = LOOPS.index("<equality>")
    option = f"<option>{option}</option>"
    return LOOPS[:end] + SPATIAL + option + f"<equality>{text}</equality></mujoco>"


CONNECT = '<connect body1="coupler" body2="rocker" anchor="0 0 0.8" {}/>'


@pytest.mark.parametrize(
    ("text", "remark", "count"),
    [
        (
            CONNECT.format('active="false"'),
            "equality constraints that are switched off (number 0)",
            0,
        ),
        (
            CONNECT.format('solref="0.1 1"'),
            "softness (solref, solimp) of equality constraints (number 0)",
            1,
        ),
        (CONNECT.format('solimp="0.5 0.9 0.001 0.5 2"'), "of equality constraints (number 0)", 1),
        ('<weld body1="plate" body2="tray" torquescale="0"/>', "", 1),
    ],
)
def test_what_is_not_used_is_named(tmp_path, text, remark, count):
    system, _, message = read(equalities(text), tmp_path / "m.xml")
    assert remark in message and len(system.constraints) == count
    assert ("equality" in message) == bool(remark)
    for constraint in system.constraints:
        assert isinstance(constraint, dl.constraints.SphericalConstraint)


TENDONS = """<tendon><fixed name="one"><joint joint="wheel" coef="2"/>
<joint joint="rack" coef="3"/><joint joint="crank" coef="-1"/></fixed>
<fixed name="two"><joint joint="lock" coef=".5"/><joint joint="wheel" coef="1"/></fixed>
<spatial name="cable"><site site="hook"/><geom geom="post"/><site site="grip"/></spatial>
<spatial name="hose"><site site="handle"/><site site="grip"/><pulley divisor="2"/>
<site site="grip"/><site site="bob"/></spatial></tendon>"""


@pytest.mark.slow('tendon1="cable" tendon2="hose"*')
@pytest.mark.parametrize(
    ("law", "rounding"),
    [
        ('tendon1="one"', 1e-14),
        ('tendon1="one" tendon2="two" polycoef="0.1 2 0 0 0"', 1e-14),
        ('tendon1="one" tendon2="two" polycoef="0.1 2 .3 .4 .5"', 1e-13),
        ('tendon1="cable" polycoef="0.1 0 0 0 0"', 1e-13),
        ('tendon1="cable" tendon2="hose" polycoef="0.1 2 .3 .4 .5"', 1e-12),
        ('tendon1="cable" tendon2="one" polycoef="0.1 2 .3 .4 .5"', 1e-12),
        ('tendon1="two" tendon2="hose" polycoef="0.1 2 .3 .4 .5"', 1e-12),
    ],
)
def test_equalities_of_tendons(tmp_path, law, rounding):
    """Residual and Jacobian are MuJoCo's, from reference angles on, also of the file written."""
    post = '<geom name="post" type="cylinder" size=".05 .2" pos=".3 .2 1.5" contype="0"/>'
    text = equalities(f"<tendon {law}/>").replace(SPATIAL, TENDONS)
    text = text.replace('<site name="hook"', f'{post}<site name="hook"')
    system, model, message = read(text, tmp_path / "m.xml")
    assert "equality" not in message
    ordering, start = dl.MujocoOrdering(system, model), system.neutral()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dl.save(system, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    _, speeds, *_ = random_states(system, 2, seed=5)
    for size, v in zip((1.0, 0.3), speeds, strict=True):
        q = system.manifold.retract(start, size * v)
        for other in (model, again):
            other.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
            order = dl.MujocoOrdering(system, other)
            _, g, J = theirs(other, np.asarray(order.q(q)), np.asarray(order.v(q, v)))
            np.testing.assert_allclose(dl.constraint_residual(system, q), g, atol=rounding)
            rates = jax.jacfwd(partial(ordering.v, q))(v)
            found = dl.constraint_jacobian(system, q)
            np.testing.assert_allclose(found, J @ rates, atol=rounding)


@pytest.mark.slow
@pytest.mark.parametrize("wound", [False, True])
def test_derivatives_with_cables(wound):
    """Accelerations of two bobs on a cable over a drum, by state and numbers: both modes."""
    balls = [dl.Body(name=n, joint=dl.Translation(), mass=m) for n, m in (("a", 1.0), ("b", 2.0))]
    drum = dl.Wrap(0, dl.Frame(None, (0.0, 0, 0), (np.pi / 2, 0, 0)), 0.1, cylinder=True)
    cable = dl.SpatialTendon([("a", (0.0, 0, 0)), ("b", (0.0, 0, 0))], [drum])
    other = dl.SpatialTendon([(None, (0.0, 0, 1)), ("a", (0.0, 0.1, 0))])
    law = dl.constraints.LengthConstraint(cable, other, (1.9, 0.1, 0.2))
    system = dl.tree(balls)
    if wound:  # a bob on a cable that a winch winds up
        winch = dl.Body(name="b", joint=dl.Revolute(axis=(0, 1, 0)), mass=1.0, inertia=np.eye(3))
        law = dl.constraints.LengthConstraint(other, dl.FixedTendon("b", (0.3,)), (1.7, 0.9, 0.2))
        system = dl.tree([balls[0], winch])
    system = dl.constrain(system, law)
    q = jnp.array([-0.2, 0.01, -0.8, 0.3, 0.02, -0.7])[: system.nq]
    leaves, structure = jax.tree.flatten(system.constraints)
    sizes = np.cumsum([system.nq, system.nv, *map(jnp.size, leaves)])
    x = jnp.concatenate([q, 0.1 * q[::-1], *map(jnp.ravel, leaves)])

    @jax.jit
    def acceleration(x):
        q, v, *numbers = jnp.split(x, sizes[:-1])
        shaped = [n.reshape(jnp.shape(leaf)) for n, leaf in zip(numbers, leaves, strict=True)]
        tied = dataclasses.replace(system, constraints=jax.tree.unflatten(structure, shaped))
        return dl.constrained_dynamics(tied, q, v, jnp.zeros(system.nv))[0]

    rate = x[system.nq : 2 * system.nq]
    rows = dl.constraint_jacobian(system, q)
    drift = jax.jvp(lambda q: dl.constraint_jacobian(system, q) @ rate, (q,), (rate,))[1]
    np.testing.assert_allclose(rows @ acceleration(x), -drift, rtol=1e-9, atol=1e-12)
    ends = len(x), system.nv
    way, back = (jnp.asarray(np.random.default_rng(0).normal(size=n)) for n in ends)
    ahead = jax.jvp(acceleration, (x,), (way,))[1]
    slope = (acceleration(x + 1e-6 * way) - acceleration(x - 1e-6 * way)) / 2e-6
    np.testing.assert_allclose(ahead, slope, rtol=1e-6, atol=1e-6)
    behind = jax.vjp(acceleration, x)[1](back)[0]
    assert float(back @ ahead) == pytest.approx(float(behind @ way), rel=1e-9)
    wrong = dl.SpatialTendon([("a", (0.0, 0, 0)), ("c", (0.0, 0, 0))])
    with pytest.raises(dl.ModelError, match="no body is named 'c'"):
        dl.constrain(dl.tree(balls), dl.constraints.LengthConstraint(wrong))


def test_equalities_that_an_option_switches_off(tmp_path):
    for flag in ("equality", "constraint"):
        text = equalities(CONNECT.format(""), f'<flag {flag}="disable"/>')
        system, _, message = read(text, tmp_path / "m.xml")
        assert "equality constraints that are switched off (number 0)" in message
        assert not system.constraints


def test_constraints_are_not_saved_as_urdf(loops, tmp_path):
    with pytest.raises(dl.ModelError, match=r"its constraints: SphericalConstraint \('coupler'"):
        dl.save(loops[0], tmp_path / "loops.urdf")
    assert not (tmp_path / "loops.urdf").exists()
