"""Classic experiments with contact, by the convex step, against closed forms and invariants.

Blocks on slopes, balls that begin to roll, bodies that bounce and momentum are in
`test_convex_contact.py`.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import difflie as dl

G = 9.81
STIFF = 1e12


def free(name="body", mass=1.0, inertia=(0.02, 0.03, 0.04), **given):
    return dl.Body(name=name, joint=dl.Free(), mass=mass, inertia=np.diag(inertia), **given)


def run_of(system, q, v, dt, time, **given):
    given = {"method": "ConvexContact"} | given
    run = dl.simulate(system, q, v, dt=dt, steps=round(time / dt), **given)
    assert run.result.ok
    return run


def attitudes(run):
    return np.asarray(jax.vmap(dl.quaternion.to_matrix)(run.q[:, :4]))


HALF = np.array([0.1, 0.15, 0.4])


def rocking(angle):
    """A slender block, turned by an angle (rad) about its lower edge at x = 0.1 m."""
    block = free(inertia=(HALF @ HALF - HALF**2) / 3)
    system = dl.chain([block]).with_shapes({"block": dl.Box("body", HALF), "ground": dl.Plane()})
    system = dl.touching(system, "ground", "block", friction=1.0, stiffness=STIFF)
    turn = np.asarray(dl.so3.exp(np.array([0, angle, 0])))
    place = np.array([HALF[0], 0, 0]) - turn @ (HALF[0], 0, -HALF[2])
    turn = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
    return system, jnp.concatenate((jnp.array(turn), jnp.array(place)))


def test_the_loss_of_a_rocking_block_is_that_of_housner():
    """An impact on the other edge leaves 1 - 1.5 sin(alpha)^2 of the rate: at once, and in swings.

    The first swing ends when the equation of motion says.
    """
    alpha, radius = np.arctan(HALF[0] / HALF[2]), np.hypot(HALF[0], HALF[2])
    left = 1 - 1.5 * np.sin(alpha) ** 2
    system, q = rocking(0.0)
    v = np.array([0, -1, 0, *np.cross([0, -1, 0], [-HALF[0], 0, HALF[2]])])
    end = run_of(system, q, v, 1e-4, 3e-4).v[-1]
    # Contacts give a little, and push back by as much.
    np.testing.assert_allclose(end[1], -left, atol=4e-3)
    np.testing.assert_allclose(end[3:], np.cross(end[:3], [HALF[0], 0, HALF[2]]), atol=5e-3)

    fall = lambda t, y: (y[1], -0.75 * G / radius * np.sin(alpha - y[0]))  # noqa: E731
    upright = lambda t, y: y[0]  # noqa: E731
    swing = solve_ivp(fall, (0, 1), (alpha / 2, 0), events=upright, rtol=1e-10, atol=1e-12)
    system, q = rocking(alpha / 2)
    run = run_of(system, q, np.zeros(6), 5e-4, 1.3)
    turned, rate = 2 * np.arctan2(run.q[:, 2], run.q[:, 0]), np.asarray(run.v[:, 1])
    passed = np.flatnonzero(np.diff(np.sign(turned)))
    np.testing.assert_allclose(run.t[passed[0]], swing.t_events[0][0], rtol=3e-3)
    np.testing.assert_allclose(rate.min(), swing.y_events[0][0][1], rtol=5e-3)
    second = np.abs(rate[passed[0] + 5 : passed[1] + 5]).max()
    np.testing.assert_allclose(second / np.abs(rate).max(), left, rtol=5e-3)
    np.testing.assert_allclose(run.q[:, 5], 0, atol=1e-9)


@pytest.mark.slow
def test_a_tippe_top_turns_over():
    """Guards sliding friction at a fast spin: it inverts, loses energy, and keeps L . r.

    That is Jellett's invariant, of whatever acts at the contact: L about the centre of mass, r from
    there to the contact.
    """
    m, radius, low = 0.015, 0.02, 0.006
    inertia = 0.4 * m * radius**2 * np.array([0.93, 0.93, 1])
    top = free(mass=m, inertia=inertia, com=(0, 0, -low))
    alone = dl.chain([top])
    system = alone.with_shapes({"top": dl.Sphere("body", radius), "ground": dl.Plane()})
    system = dl.touching(system, "ground", "top", friction=0.3, stiffness=STIFF)
    tilt = 0.1
    q = system.neutral().at[:2].set(jnp.array([np.cos(tilt / 2), np.sin(tilt / 2)]))
    v = [0, 180 * np.sin(tilt), 180 * np.cos(tilt), 0, 0, 0]
    run = run_of(system, q.at[6].set(radius), v, 1e-3, 3.0, save_every=5)
    turn = attitudes(run)
    up, w = turn[:, :, 2], np.asarray(run.v[:, :3])
    arm = np.array([0, 0, -radius]) + low * up
    jellett = np.sum(np.einsum("kij,kj->ki", turn, w * inertia) * arm, axis=1)
    np.testing.assert_allclose(jellett, jellett[0], rtol=1e-4)
    energy = sum(jax.vmap(lambda q, v: jnp.stack(dl.energy(alone, q, v)))(run.q, run.v).T)
    assert np.diff(energy).max() < 1e-3 * (energy[0] - energy[-1])
    np.testing.assert_allclose(energy[-1] / energy[0], 0.37, atol=0.01)
    assert up[0, 2] > 0.99
    assert up[-1, 2] < -0.97


@pytest.mark.slow
def test_a_coin_spins_about_a_centre_at_rest():
    """Guards rolling on an edge, Omega^2 = 4 g / (R sin(tilt)): the tilt stays, in order 1."""
    m, radius, half, tilt = 0.01, 0.012, 1e-5, 0.4
    coin = free(mass=m, inertia=m * radius**2 / 4 * np.array([1, 1, 2]))
    shapes = {"coin": dl.Cylinder("body", radius, half), "ground": dl.Plane()}
    system = dl.touching(
        dl.chain([coin]).with_shapes(shapes), "ground", "coin", friction=2.0, stiffness=STIFF
    )
    rate = np.sqrt(4 * G / (radius * np.sin(tilt)))
    q = system.neutral().at[:4].set(jnp.array([np.cos(tilt / 2), 0, np.sin(tilt / 2), 0]))
    q = q.at[6].set(radius * np.sin(tilt) + half * np.cos(tilt))
    errors = []
    for dt in (2e-4, 1e-4):
        run = run_of(system, q, [rate * np.sin(tilt), 0, 0, 0, 0, 0], dt, 0.1)
        up = attitudes(run)[:, :, 2]
        turned = np.unwrap(np.arctan2(up[:, 1], up[:, 0]))
        np.testing.assert_allclose(abs(turned[-1]), rate * 0.1, rtol=100 * dt)
        errors.append(abs(np.arccos(up[-1, 2]) - tilt))
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.25)
    assert errors[1] < 3e-3


BALLS = [f"ball{i}" for i in range(5)]


def cradle(**law):
    """Five balls of 0.1 kg in a row, and their state: the first comes with 1 m/s, 1 mm away."""
    r = 0.02
    bodies = [free(name, 0.1, 0.04 * r * r * np.ones(3)) for name in BALLS]
    system = dl.tree(bodies, gravity=(0, 0, 0))
    system = system.with_shapes({name: dl.Sphere(name, r) for name in BALLS})
    for one, other in pairwise(BALLS):
        system = dl.touching(system, one, other, friction=0.0, dissipation=0.0, **law)
    places = 2 * r * np.arange(5) - np.array([1e-3, 0, 0, 0, 0])
    q = system.neutral().reshape(5, 7).at[:, 4].set(places).ravel()
    return system, q, np.zeros(30) + 1.0 * (np.arange(30) == 3)


@pytest.mark.slow
def test_a_cradle_of_compliant_balls():
    """Hertz's law, by forces, against the equations in a line; the convex step says it is linear.

    With a linear law it keeps the momentum to rounding, at long steps, too, and gains no energy;
    at short ones the balls part as they do in a line.
    """

    def apart(stiffness, exponent, time):
        def slope(t, y):
            pressed = stiffness * np.maximum(-np.diff(y[:5]), 0) ** exponent
            return np.r_[y[5:], np.diff(-np.r_[0, pressed, 0]) / 0.1]

        start = np.r_[-1e-3, np.zeros(4), 1.0, np.zeros(4)]
        return solve_ivp(slope, (0, time), start, max_step=1e-5, rtol=1e-9, atol=1e-12).y[5:, -1]

    system, q, v = cradle(stiffness=1e8, exponent=1.5)
    run = run_of(system, q, v, 2e-6, 2e-3, save_every=1000, method="RKMK4")
    speeds = run.v[-1].reshape(5, 6)[:, 3]
    np.testing.assert_allclose(speeds, apart(1e8, 1.5, 2e-3), atol=1e-6)
    np.testing.assert_allclose(speeds.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(sum(dl.energy(system, run.q[-1], run.v[-1])), 0.05, rtol=1e-6)
    with pytest.raises(ValueError, match=r"stiffness that is linear.*exponent 1"):
        run_of(system, q, v, 1e-3, 1e-3)

    system, q, v = cradle(stiffness=1e6)
    for dt, atol in ((2e-6, 0.02), (1e-3, 1.0)):
        run = run_of(system, q, v, dt, 4e-3, save_every=4)
        speeds = run.v[-1].reshape(5, 6)[:, 3]
        np.testing.assert_allclose(speeds, apart(1e6, 1, 4e-3), atol=atol)
        np.testing.assert_allclose(speeds.sum(), 1, rtol=1e-12)
        assert sum(dl.energy(system, run.q[-1], run.v[-1])) <= 0.05


@pytest.mark.slow
def test_a_box_comes_to_rest_in_a_corner():
    """Guards three planes at once: each carries its share of the weight, and nothing creeps."""
    half = (0.1, 0.15, 0.05)
    walls = {
        "x": dl.Plane(dl.Frame(None, (-0.1, 0, 0), (0, np.pi / 2, 0))),
        "y": dl.Plane(dl.Frame(None, (0, -0.15, 0), (-np.pi / 2, 0, 0))),
    }
    system = dl.chain([free(mass=2.0)]).with_shapes({"box": dl.Box("body", half)} | walls)
    system = system.with_shapes({"ground": dl.Plane()})
    system = system.replace(gravity=np.array([-2.0, -3.0, -9.0]))
    q = system.neutral().at[4:].set(jnp.array([0.02, 0.01, 0.08]))
    for friction in (0.0, 0.1):
        touching = dl.touching(system, "*", "box", friction=friction, stiffness=STIFF)
        run = run_of(touching, q, [0.1, 0.2, 0.3, 0, 0, 0], 5e-3, 2.0)
        report = run.contacts(touching)
        np.testing.assert_allclose(report.force[-1].sum(axis=0), (4, 6, 18), rtol=1e-9)
        assert np.abs(run.v[-1]).max() < 1e-12
        np.testing.assert_allclose(run.q[-1, 4:], (0, 0, 0.05), atol=1e-4)
        if not friction:
            shares = {"ground": 18, "x": 4, "y": 6}
            each = [shares[first] for first, _ in report.pairs]
            np.testing.assert_allclose(report.pressure[-1], each, rtol=1e-9)


@pytest.mark.slow
def test_a_capsule_lies_on_two_edges():
    """Guards contacts at edges: across them by the lever's law, along them by two normals."""
    mass, radius = 1.5, 0.03
    edge = np.pi / 4
    roof = {
        f"edge{k}": dl.Box(dl.Frame(None, (x, 0, -0.05 * 2**0.5), (0, edge, 0)), (0.05, 0.2, 0.05))
        for k, x in enumerate((-0.2, 0.1))
    }
    across = dl.chain([free(mass=mass, inertia=(0.001, 0.03, 0.03))]).with_shapes(
        {"capsule": dl.Capsule(dl.Frame("body", (0, 0, 0), (0, np.pi / 2, 0)), radius, 0.3)} | roof
    )
    groove, high = 0.02, np.sqrt(radius**2 - 0.02**2)
    sides = {
        f"edge{k}": dl.Box(dl.Frame(None, (side * (0.1 + groove), 0, -0.1)), (0.1, 0.5, 0.1))
        for k, side in enumerate((-1, 1))
    }
    along = dl.chain([free(mass=mass, inertia=(0.03, 0.001, 0.03))]).with_shapes(
        {"capsule": dl.Capsule(dl.Frame("body", (0, 0, 0), (np.pi / 2, 0, 0)), radius, 0.3)} | sides
    )
    wedged = mass * G / 2 * radius / high
    cases = (
        (across, 0.5, radius, (mass * G / 3, mass * G * 2 / 3), 1e-4),
        (along, 0.0, high, (wedged, wedged), 1e-3),
    )
    for system, friction, height, pressures, rtol in cases:
        system = dl.touching(system, "capsule", "edge*", friction=friction, stiffness=STIFF)
        q = system.neutral().at[6].set(height + 0.002)
        run = run_of(system, q, np.zeros(6), 5e-3, 2.0)
        np.testing.assert_allclose(run.contacts(system).pressure[-1], pressures, rtol=rtol)
        assert np.abs(run.v[-1]).max() < 1e-12
        np.testing.assert_allclose(run.q[-1, 6], height, atol=1e-4)


@pytest.mark.slow
def test_a_gripper_lifts_a_box_and_lets_it_slip():
    """It carries the box with a little more than m g / (2 mu), and with less the box falls."""
    mu, m, half = 0.5, 0.4, 0.05
    finger = {"mass": 0.2, "inertia": 1e-4 * np.eye(3), "parent": "lift"}
    inertia = 2 / 3 * m * half**2 * np.ones(3)
    system = dl.tree(
        [
            dl.Body(
                name="lift", joint=dl.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3) * 1e-3
            ),
            dl.Body(name="left", joint=dl.Prismatic(axis=(1, 0, 0)), **finger),
            dl.Body(name="right", joint=dl.Prismatic(axis=(-1, 0, 0)), **finger),
            free("box", m, inertia, parent=None),
        ]
    )
    pads = {
        name: dl.Box(dl.Frame(name, (side * (half + 0.01), 0, 0)), (0.01, 0.02, 0.02))
        for name, side in (("left", -1), ("right", 1))
    }
    system = system.with_shapes(pads | {"box": dl.Box("box", 3 * (half,))})
    for name in pads:
        system = dl.touching(system, name, "box", friction=mu, stiffness=STIFF)
    servo = dl.PositionServo("lift", kp=1e4, kd=500.0)
    system = dl.attach(system, servo, dl.Drive("left"), dl.Drive("right"))
    least = m * G / (2 * mu)

    def lifting(t, q, v):
        x = jnp.clip((t - 0.1) / 0.3, 0, 1)
        return jnp.stack((0.1 * x * x * (3 - 2 * x), 2 * least, 2 * least))

    lifted = run_of(system, system.neutral(), np.zeros(9), 4e-3, 0.8, control=lifting)
    assert lifted.q[-1, 0] > 0.095
    np.testing.assert_allclose(lifted.q[-1, -1], lifted.q[-1, 0], atol=1e-5)
    q, v = lifted.q[-1], lifted.v[-1]
    for part in (1.001, 0.99):
        run = run_of(system, q, v, 4e-3, 0.2, control=np.array([0.1, part * least, part * least]))
        fallen = min(part - 1, 0) * G * 0.2
        np.testing.assert_allclose(run.v[-1, -1], fallen, rtol=0.03, atol=1e-6)


@pytest.mark.slow
def test_ten_boxes_stand():
    """Guards creep of a stack, at 5 ms, each box off by up to 5 mm: it settles in some seconds."""
    half, count = 0.05, 10
    names = [f"box{k}" for k in range(count)]
    inertia = 2 / 3 * half**2 * np.ones(3)
    system = dl.tree([free(name, 1.0, inertia) for name in names]).with_shapes(
        {name: dl.Box(name, 3 * (half,)) for name in names} | {"ground": dl.Plane()}
    )
    for lower, upper in zip(["ground", *names], names, strict=False):
        system = dl.touching(system, lower, upper, friction=0.5, stiffness=STIFF)
    off = np.random.default_rng(0).uniform(-0.005, 0.005, (count, 2))
    heights = half + 2 * half * np.arange(count)
    q = system.neutral().reshape(count, 7).at[:, 4:].set(np.c_[off, heights]).ravel()
    run = run_of(system, q, np.zeros(6 * count), 5e-3, 20.0, save_every=200)
    places = np.asarray(run.q).reshape(-1, count, 7)[..., 4:]
    assert np.abs(places[-1] - places[1]).max() < 1e-4
    assert np.abs(places[-1] - places[10]).max() < 1e-6


@pytest.mark.slow
def test_derivatives_through_stick_slip_and_lift_off():
    """Against differences to 1e-6, in both modes: a block pulled until it slides, then lifted."""
    half = (0.05, 0.05, 0.05)
    system = dl.chain([free(mass=1.0, inertia=3 * (1 / 600,))]).with_shapes(
        {"box": dl.Box("body", half), "ground": dl.Plane()}
    )
    system = dl.touching(system, "ground", "box", friction=0.5, stiffness=1e6)
    numbers = dl.Parameters(system, ["contacts/friction[0]", "body/mass"])
    there = numbers.values_of(system)
    phases = (0.02, 0.0), (0.06, 8.0), (0.02, 8.0)
    pulls = np.concatenate([np.full(round(time / 4e-3), pull) for time, pull in phases])
    lifts = np.where(np.arange(len(pulls)) * 4e-3 < 0.08, 0.0, 15.0)

    def motion(x):
        wrenches = jnp.zeros((len(pulls), 1, 6)).at[:, 0, 3].set(pulls * (1 + x[2]))
        wrenches = wrenches.at[:, 0, 5].set(lifts)
        v = jnp.zeros(6).at[3:5].set(x[3:5])
        return dl.simulate(
            numbers.with_values(there + x[:2]),
            *(system.neutral().at[6].set(0.05 - 2.5e-6), v),
            dt=4e-3,
            steps=len(pulls),
            method="ConvexContact",
            wrench=wrenches,
        )

    def end(x):
        run = motion(x)
        return jnp.concatenate((run.q[-1, 4:], run.v[-1]))

    zero = jnp.zeros(5)
    run = motion(zero)
    speed, height = np.asarray(run.v[:, 3]), np.asarray(run.q[:, 6]) - 0.05
    assert np.abs(speed[:6]).max() < 1e-12  # it sticks
    assert speed[20] > 0.1  # it slides
    assert np.abs(height[:20]).max() < 1e-4
    assert height[-1] > 1e-4  # it is lifted
    forward, reverse = jax.jacfwd(end)(zero), jax.jacrev(end)(zero)
    step = 1e-7 * jnp.eye(5)
    slopes = jnp.stack([(end(d) - end(-d)) / 2e-7 for d in step], axis=1)
    size = np.abs(forward).max()
    np.testing.assert_allclose(forward, reverse, atol=1e-12 * size)
    np.testing.assert_allclose(forward, slopes, atol=1e-6 * size)
