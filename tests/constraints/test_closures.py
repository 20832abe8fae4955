"""Motion under every kind of constraint against closed forms, and what assembling does."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loops import check_derivatives, spatial_loop
from scipy.spatial.transform import Rotation

import difflie as dl
from difflie import constraints as dc

INERTIA = np.diag((0.05, 0.07, 0.03))


def free_body(name="body", **given):
    return dl.Body(name=name, joint=dl.Free(), **{"mass": 1.4, "inertia": INERTIA, **given})


def placed(rotation, position):
    x, y, z, w = rotation.as_quat()
    return np.array((w, x, y, z, *position))


def accelerated(bodies, constraint, q, v, tau=None):
    system = dl.constrain(dl.tree(bodies), constraint)
    np.testing.assert_allclose(dl.constraint_residual(system, q), 0, atol=1e-12)
    np.testing.assert_allclose(dl.constraint_jacobian(system, q) @ v, 0, atol=1e-12)
    return dl.constrained_dynamics(system, q, v, np.zeros(len(v)) if tau is None else tau)


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0, 40])
def test_a_nut_falls_along_its_thread(turns):
    pitch, x = -0.02, 2 * np.pi * turns + 0.7
    nut = dc.HelicalConstraint(dc.Frame(), dc.Frame("body"), pitch)
    q = placed(Rotation.from_euler("z", x), (0, 0, pitch * x))
    rate = 3.0
    a, _ = accelerated([free_body()], nut, q, np.array((0, 0, rate, 0, 0, pitch * rate)))
    fall = -9.81 * 1.4 / (1.4 + 0.03 / pitch**2)
    np.testing.assert_allclose(a, (0, 0, fall / pitch, 0, 0, fall), atol=1e-9)


@pytest.mark.slow
def test_a_rod_carries_a_pendulum():
    rod = dc.Distance(dc.Frame(), dc.Frame("body"), 0.5)
    q, v = placed(Rotation.identity(), (0, 0, -0.5)), np.array((0, 0, 0, 0.8, 0, 0))
    a, pull = accelerated([free_body()], rod, q, v)
    np.testing.assert_allclose(a, (0, 0, 0, 0, 0, 0.8**2 / 0.5), atol=1e-12)
    np.testing.assert_allclose(pull, -1.4 * (9.81 + 0.8**2 / 0.5))


@pytest.mark.slow
def test_a_bead_slides_on_a_parabola():
    """(x, 0, k x^2): the acceleration along x of a bead under gravity."""
    k, x, u = 0.8, 0.3, 1.7
    curve = dc.PolynomialCurve(((0, 0, 0), (1, 0, 0), (0, 0, k)))
    bead = dc.PointOnCurve(dc.Frame(), dc.Frame("body"), curve)
    q = placed(Rotation.identity(), (x, 0, k * x * x))
    a, _ = accelerated([free_body()], bead, q, np.array((0, 0, 0, u, 0, 2 * k * x * u)))
    slope = 2 * k * x
    along = -slope * (2 * k * u * u + 9.81) / (1 + slope**2)
    np.testing.assert_allclose(a[3:], (along, 0, slope * along + 2 * k * u * u), atol=1e-11)


def steady_disk(tilt, precession):
    """A disk that circles: its state at the time t, by the closed form of steady motion."""
    m, radius, axial, transverse = 1.4, 0.35, 1.4 * 0.35**2 / 2, 1.4 * 0.35**2 / 4
    inner = axial + m * radius**2
    s, c = np.sin(tilt), np.cos(tilt)
    spin = (transverse * precession**2 * s * c - m * 9.81 * radius * s) / (inner * precession * c)
    along = spin - precession * s
    # The centre circles about the vertical through the point that moves with neither rotation.
    away = -radius * spin / precession
    assert abs(along - 8) < 1e-8

    def state(t):
        heading = precession * t
        lean = Rotation.from_euler("z", heading) * Rotation.from_euler("y", np.pi / 2 - tilt)
        turn = lean * Rotation.from_euler("z", along * t)
        out = np.array((np.cos(heading), np.sin(heading), 0))
        w = precession * np.array((0, 0, 1)) + along * turn.as_matrix()[:, 2]
        centre = away * out + (0, 0, radius * c)
        return (
            turn,
            centre,
            turn.inv().apply(w),
            turn.inv().apply(np.cross((0, 0, precession), centre)),
        )

    return state, dl.Body(
        name="body", joint=dl.Free(), mass=m, inertia=np.diag((transverse, transverse, axial))
    )


def test_a_disk_circles_steadily():
    state, disk = steady_disk(0.2, -0.4782051992)
    turn, centre, w, v = state(0.0)
    rolling = dc.RollingDisk(dc.Frame(), dc.Frame("body"), 0.35)
    a, _ = accelerated([disk], rolling, placed(turn, centre), np.r_[w, v])
    h = 1e-5
    ahead, behind = (np.concatenate(state(t)[2:]) for t in (h, -h))
    np.testing.assert_allclose(a, (ahead - behind) / (2 * h), atol=1e-7)


@pytest.mark.slow
def test_a_sleigh_glides():
    """Chaplygin's sleigh, its centre of mass a before the blade: u' = b w^2, w' = -m b u w / J."""
    b, u, w = 0.3, 1.2, 0.9
    sleigh = free_body(com=(b, 0, 0))
    v = np.array((0, 0, w, u, 0, 0))
    system = dl.constrain(
        dl.tree([sleigh]),
        dc.PlanarConstraint(dc.Frame(), dc.Frame("body")),
        dc.KnifeEdge(dc.Frame(), dc.Frame("body")),
    )
    q = placed(Rotation.from_euler("z", 0.4), (0.2, 0.5, 0))
    a, _ = dl.constrained_dynamics(system, q, v, np.zeros(6))
    turned = -1.4 * b * u * w / (0.03 + 1.4 * b * b)
    np.testing.assert_allclose(a, (0, 0, turned, b * w * w, 0, 0), atol=1e-12)
    assert dl.mobility(system, q) == 2
    np.testing.assert_allclose(dl.constraint_residual(system, q), 0, atol=1e-14)


@pytest.mark.slow
def test_gears_on_a_turning_carrier():
    """In joint coordinates, by three bodies and by their angles: a planet on an arm and its sun."""
    wheel = {"mass": 1.0, "inertia": np.diag((0.1, 0.1, 0.2))}
    bodies = [
        dl.Body(name="sun", joint=dl.Continuous(), **wheel),
        dl.Body(name="arm", joint=dl.Continuous(), **wheel),
        dl.Body(name="planet", joint=dl.Continuous(), parent="arm", position=(0.5, 0, 0), **wheel),
    ]
    system = dl.tree(bodies)
    bearings = (
        dc.RevoluteConstraint(dc.Frame("arm"), dc.Frame("sun")),
        dc.RevoluteConstraint(dc.Frame("arm", (0.5, 0, 0)), dc.Frame("planet")),
    )
    # The sun, seen from the arm, turns by its own angle less that of the arm.
    offset = 2 * np.pi * 3 + 0.1
    laws = (
        dc.Proportional(("sun", "arm", "planet"), (1, -1, 1.5), offset),
        dc.Gear(*bearings, 1.5, 0.1, teeth=20),
        dc.Transmission(*bearings, 1.5),
    )
    q = np.array((offset + 9.0 - 1.5 * 8.0, 9.0, 8.0))
    v, tau = np.array((1.0 - 1.5 * 2, 1.0, 2.0)), np.array((0.3, 0.1, -0.2))
    found = []
    for law in laws:
        machine = dl.constrain(system, law)
        np.testing.assert_allclose(dl.constraint_residual(machine, q), 0, atol=1e-12)
        np.testing.assert_allclose(dl.constraint_jacobian(machine, q), [[1, -1, 1.5]], atol=1e-12)
        found.append(dl.constrained_dynamics(machine, q, v, tau)[0])
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)
    np.testing.assert_allclose(found[2], found[0], atol=1e-12)
    A, M = np.array([[1, -1, 1.5]]), np.asarray(dl.mass_matrix(system, q))
    kkt = np.block([[M, -A.T], [A, np.zeros((1, 1))]])
    exact = np.linalg.solve(kkt, np.r_[tau, 0.0])
    np.testing.assert_allclose(found[0], exact[:3], atol=1e-12)


def four_bar(lengths):
    """Crank, rod and rocker in the plane y = 0, closed on the ground."""
    crank, rod, rocker, ground = lengths
    y, bar = (0, 1, 0), {"mass": 1.0, "inertia": INERTIA}
    system = dl.chain(
        [
            dl.Body(name="crank", joint=dl.Revolute(axis=y), **bar),
            dl.Body(name="rod", joint=dl.Revolute(axis=y), position=(0.5, 0, 0), **bar),
            dl.Body(name="rocker", joint=dl.Revolute(axis=y), position=(1.0, 0, 0), **bar),
        ],
        name="four-bar",
    )
    position = system.joints.position.at[1:, 0].set(jnp.stack((crank, rod)))
    end = dc.Frame("rocker", jnp.stack((rocker, 0 * rocker, 0 * rocker)), axis=y)
    pivot = dc.Frame(None, jnp.stack((ground, 0 * ground, 0 * ground)), axis=y)
    return dl.constrain(system.replace(position=position), dc.RevoluteConstraint(pivot, end))


LENGTHS = jnp.array((0.4, 1.0, 0.8, 0.9))


@pytest.mark.slow
def test_assembling_from_bad_guesses():
    system = four_bar(LENGTHS)
    rng = np.random.default_rng(0)
    for _ in range(10):
        q, v = dl.assemble(system, rng.uniform(-3, 3, 3), rng.normal(size=3))
        np.testing.assert_allclose(dl.constraint_residual(system, q), 0, atol=1e-11)
        np.testing.assert_allclose(dl.constraint_jacobian(system, q) @ v, 0, atol=1e-11)
    assert dl.mobility(system, q) == 1
    assert len(dl.redundant_equations(system, q)) == 3


@pytest.mark.slow
def test_derivatives_of_assembling_are_those_of_differences():
    guess = dl.assemble(four_bar(LENGTHS), (-0.8, 1.0, 1.6))[0]

    @jax.jit
    def found(lengths):
        return jnp.concatenate(dl.assemble(four_bar(lengths), guess, (1.0, 0.5, -0.2)))

    h = 1e-6
    expected = np.stack(
        [(found(LENGTHS + d) - found(LENGTHS - d)) / (2 * h) for d in h * np.eye(4)]
    )
    forward = jax.jit(jax.jacfwd(found))(LENGTHS)
    reverse = jax.jit(jax.jacrev(found))(LENGTHS)
    np.testing.assert_allclose(forward.T, expected, atol=1e-7)
    np.testing.assert_allclose(reverse, forward, atol=1e-10)


@pytest.mark.slow
def test_derivatives_of_assembling_by_every_number():
    """Guards masses and placements in the metric of the way there, on a loop with a ball joint."""
    system, q, v = spatial_loop()
    rate = v + jnp.asarray([0.4, -0.3, 0.2, 0.1, -0.5])

    def found(system):
        y = jnp.concatenate(dl.assemble(system, q, rate))
        return jnp.sum(jnp.cos(jnp.arange(y.size)) * y) + jnp.sum(y**2) / 2

    assert check_derivatives(found, system) > 5


def test_by_how_much_a_traced_start_breaks_them():
    """More than is allowed where a concrete start is refused: in position, velocity, overlap."""
    rod = dc.Distance(dc.Frame(), dc.Frame("bead"), 0.5)
    bead = dl.Body(name="bead", joint=dl.Translation(), mass=1.0)
    system = dl.constrain(dl.chain([bead]), rod)

    floor = dc.PointOnPlane(dc.Frame("bead"), dc.Frame(None, (0, 0, -0.55)))
    system = dl.constrain(system, floor)

    def error(z, rate):
        return dc.start_error(
            system, jnp.stack((0 * z, 0 * z, z)), jnp.stack((1 + 0 * z, 0 * z, rate))
        )

    z, rate = jnp.asarray([-0.5, -0.6, -0.5, 0.5]), jnp.asarray([0.0, 0.0, 1.0, 0.0])
    errors = jax.jit(jax.vmap(error))(z, rate)
    np.testing.assert_array_equal(errors <= 1, (True, False, False, True))


def test_what_cannot_be_assembled_is_named():
    with pytest.raises(dl.ModelError, match="constraint 0, Revolute"):
        dl.assemble(four_bar(jnp.array((0.4, 1.0, 0.8, 3.0))), (0.1, 0.2, 0.3))
    system = four_bar(LENGTHS)
    q, _ = dl.assemble(system, (-0.8, 1.0, 1.6))
    locked = dl.constrain(system, dc.Proportional(("crank",), (1.0,), q[0]))
    with pytest.raises(dl.ModelError, match="leave no degree of freedom; take one of"):
        dl.simulate(locked, q, np.zeros(3), dt=1e-3, steps=1)
    with pytest.raises(dl.ModelError, match="the position breaks x of the point of constraint 0"):
        dl.simulate(system, np.array((0.1, 0.2, 0.3)), np.zeros(3), dt=1e-3, steps=1)
    # Turned over: the axis of the closure points the other way.
    (closure,) = system.constraints
    over = dc.Frame(None, closure.first.position, axis=(0, -1, 0))
    wrong = replace(system, constraints=(dc.RevoluteConstraint(over, closure.second),))
    with pytest.raises(dl.ModelError, match="met the wrong way round"):
        dl.assemble(wrong, q)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda a, b: dc.HelicalConstraint(a, b, 0.0), "pitch is zero; take Revolute"),
        (lambda a, b: dc.Distance(a, b, -1.0), "length is -1.0 m.*take Spherical"),
        (lambda a, b: dc.RollingDisk(a, b, 0.0), "radius is 0.0 m"),
        (
            lambda a, b: dc.Gear(dc.SphericalConstraint(a, b), dc.RevoluteConstraint(a, b), 1.0),
            "SphericalConstraint has not one",
        ),
        (
            lambda a, b: dc.Gear(
                dc.RevoluteConstraint(a, b), dc.RevoluteConstraint(a, b), 1.0, teeth=0
            ),
            "0 teeth",
        ),
        (lambda a, b: dc.Distance(a, a, 1.0), "two of its frames are on one body"),
        (
            lambda a, b: dc.Gear(dc.RevoluteConstraint(a, a), dc.RevoluteConstraint(a, b), 1.0),
            "on one body",
        ),
        (lambda a, b: dc.Distance(a, b, "far"), "'far' was given where a number"),
        (
            lambda a, b: dc.Proportional(("x", "y"), (1.0,)),
            r"shape \(1,\); give .* one for each of its 2",
        ),
        (lambda a, b: dc.SplineCurve(((0, 0, 0),)), r"needed is \(n, 3\), n of 2 or more"),
    ],
)
def test_bad_numbers_are_named(made, message):
    system = dl.tree([free_body()])
    with pytest.raises(dl.ModelError, match=message):
        dl.constrain(system, made(dc.Frame(), dc.Frame("body")))
