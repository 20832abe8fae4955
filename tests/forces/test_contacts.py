"""Compliant contacts, against closed forms of impacts, sliding and rolling."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import quad
from scipy.optimize import brentq
from trees import error, random_body, random_joint, random_states

import difflie as dl
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Motion, Transform

ORIGIN = (0.0, 0.0, 0.0)
UP = (0.0, 0.0, 1.0)
G = 9.81


def law(**numbers):
    numbers = {"stiffness": 3.0, "exponent": 1.0, "dissipation": 0.4, "smoothing": 0.1} | numbers
    return dl.PlaneContact([(None, ORIGIN), ("ball", ORIGIN)], normal=UP, **numbers)


GAPS = np.array([-2.0, -0.3, -0.02, 0.0, 0.01, 0.05, 0.4, 3.0])
RATES = np.array([-3.0, 0.5, 4.0, -1.0, 2.0, -0.2, 30.0, -5.0])


@pytest.mark.slow("0.0-1.0")
@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 0.1])
def test_the_law(exponent, smoothing):
    """As it is written down; and the potential by quadrature of the force."""
    made = law(exponent=exponent, smoothing=smoothing)
    root = np.sqrt(GAPS**2 + smoothing**2)
    depth, share = (root - GAPS) / 2, (1 - GAPS / np.where(root > 0, root, 1)) / 2
    force = 3 * depth**exponent * np.maximum(0, 1 - 0.4 * RATES * share)
    found = made.pressure(jnp.asarray(GAPS), jnp.asarray(RATES))
    np.testing.assert_allclose(found, force, rtol=1e-8, atol=1e-14)

    still = jnp.zeros(())
    energy = np.asarray(jax.vmap(made.potential)(jnp.asarray(GAPS)))
    push = jax.jit(lambda gap: made.pressure(gap, still))
    for a, b, step in zip(GAPS[:-1], GAPS[1:], -np.diff(energy), strict=True):
        work = quad(push, a, b, epsabs=1e-12, epsrel=1e-12, limit=200)[0]
        np.testing.assert_allclose(step, work, rtol=1e-9, atol=1e-12)
    slope = jax.vmap(jax.grad(made.potential))(jnp.asarray(GAPS))
    np.testing.assert_allclose(-slope, push(jnp.asarray(GAPS)), rtol=1e-10, atol=1e-13)
    if not smoothing:
        np.testing.assert_array_equal(energy[GAPS >= 0], 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_smoothing_vanishes_and_stays_precise(dtype):
    """Far from the contact the force is eps^2 / 4 phi, without loss of digits."""
    made = jax.tree.map(lambda a: a.astype(dtype), law(smoothing=1e-3))
    gap = jnp.asarray([0.5, 1.0, 20.0], dtype)
    force = made.pressure(gap, jnp.zeros(3, dtype))
    assert force.dtype == dtype
    tolerance = 1e-5 if dtype == "float32" else 4e-6
    np.testing.assert_allclose(force, 3 * 1e-6 / (4 * gap), rtol=tolerance)
    np.testing.assert_allclose(law(smoothing=1e-9).pressure(-gap, 0 * gap), 3 * gap, rtol=1e-9)


def ball():
    """A sphere of 2 kg that moves along x and z and turns about y, above the plane z = 0."""
    rail = dl.Body(name="rail", joint=dl.Prismatic(axis=(1.0, 0.0, 0.0)))
    lift = dl.Body(name="lift", joint=dl.Prismatic(axis=UP))
    turning = dl.Revolute(axis=(0.0, 1.0, 0.0))
    sphere = dl.Body(name="ball", joint=turning, mass=2.0, inertia=0.4 * 2 * 0.1**2 * np.eye(3))
    contact = dl.PlaneContact([(None, ORIGIN), ("ball", ORIGIN)], 1e5, UP)
    return dl.attach(dl.chain([rail, lift, sphere]), contact)


NUMBERS = ("stiffness", "exponent", "dissipation", "friction", "slip_velocity", "radius")
CASE = {
    **{"stiffness": 1e5, "exponent": 1.0, "dissipation": 0.0, "friction": 0.0},
    **{"slip_velocity": 1e-2, "radius": 0.0, "gravity": (0.0, 0.0, -G)},
    **{"q": ORIGIN, "v": ORIGIN, "time": 0.05},
}
THETA = np.radians(15)
WEIGHTLESS = {"gravity": ORIGIN}
DEEP = 2 * G / 1e5
CASES = {
    "hunt crossley": WEIGHTLESS | {"dissipation": 0.3, "v": (0, -2.0, 0)},
    "strongly damped": WEIGHTLESS
    | {"dissipation": 1.5, "exponent": 1.5, "stiffness": 1e6, "v": (0, -1.0, 0)},
    "another exponent": WEIGHTLESS
    | {"dissipation": 0.3, "exponent": 1.2, "stiffness": 3e4, "v": (0, -2.0, 0)},
    "linear": {"v": (0, -1.7, 0), "time": 0.0142804017696},
    "sliding": {"friction": 0.4, "q": (0, -DEEP, 0), "v": (1.0, 0, 0), "time": 0.25},
    "creeping": {
        **{"friction": 0.4, "gravity": (G * np.sin(THETA), 0, -G * np.cos(THETA))},
        **{"q": (0, -DEEP * np.cos(THETA), 0), "time": 0.25},
    },
    "slipping": {"friction": 0.4, "radius": 0.1, "q": (0, 0.1 - DEEP, 0), "v": (1.0, 0, 0)},
    "rolling": {
        **{"friction": 0.4, "radius": 0.1, "q": (0, 0.1 - DEEP, 0)},
        **{"v": (1.0, 0, 0), "time": 0.5},
    },
}


@pytest.fixture(scope="module")
def ends():
    """The states in which the cases end, by name."""
    system = ball()

    def end(case):
        contact = replace(system.couplings[0], **{name: case[name] for name in NUMBERS})
        changed = replace(system, couplings=(contact,)).replace(gravity=case["gravity"])
        method = dl.DormandPrince54(rtol=1e-12, atol=1e-13, substeps=1000)
        options = {"dt": case["time"] / 20, "steps": 20, "save_every": 20, "method": method}
        run = dl.simulate(changed, case["q"], case["v"], **options)
        return run.q[-1], run.v[-1], run.result.ok

    cases = [{k: np.asarray(x, float) for k, x in (CASE | c).items()} for c in CASES.values()]
    q, v, ok = jax.jit(jax.vmap(end))({k: np.stack([c[k] for c in cases]) for k in CASE})
    assert np.all(ok)
    return dict(zip(CASES, zip(np.asarray(q), np.asarray(v), strict=True), strict=True))


@pytest.mark.parametrize(
    ("name", "d", "v", "restitution"),
    [
        ("hunt crossley", 0.3, 2.0, 0.7119501796),
        ("another exponent", 0.3, 2.0, 0.7119501796),
        ("strongly damped", 1.5, 1.0, 0.4877412560),
    ],
)
def test_restitution(ends, name, d, v, restitution):
    """d v - ln(1 + d v) = -d e v - ln(1 - d e v), whatever the stiffness, exponent and mass."""

    def balance(e):
        return d * v - np.log1p(d * v) + d * e * v + np.log1p(-d * e * v)

    e = brentq(balance, 1e-3, min(1, (1 - 1e-9) / (d * v)), xtol=1e-15)
    assert abs(e - restitution) < 6e-11
    assert abs(ends[name][1][1] / v - e) < 2e-10


def test_contact_time(ends):
    """(2/w) (pi - atan(v w / g)); then it leaves as fast as it came."""
    w = np.sqrt(1e5 / 2)
    assert abs(2 / w * (np.pi - np.arctan(1.7 * w / G)) - CASES["linear"]["time"]) < 1e-13
    q, v = ends["linear"]
    assert abs(q[1]) < 1e-12
    assert abs(v[1] - 1.7) < 1e-10


def slowed(start, distance, vs=1e-2):
    """The velocity after mu g t = distance, in closed form: sqrt(v^2 + vs^2) - vs asinh(vs / v)."""

    def f(v):
        return np.sqrt(v * v + vs * vs) - vs * np.arcsinh(vs / v)

    return brentq(lambda v: f(start) - f(v) - distance, 1e-9, start, xtol=1e-16)


def test_sliding(ends):
    expected = slowed(1.0, 0.4 * G * 0.25)
    assert abs(expected - 0.0212609934) < 6e-11
    assert abs(ends["sliding"][1][0] - expected) < 1e-11


def test_creep(ends):
    """vs tan th / sqrt(mu^2 - tan^2 th): the smooth law never sticks."""
    expected = 1e-2 * np.tan(THETA) / np.sqrt(0.4**2 - np.tan(THETA) ** 2)
    assert abs(expected - 0.0090221534) < 6e-11
    assert abs(ends["creeping"][1][0] - expected) < 1e-11


def test_rolling(ends):
    """The slip is slowed 7/2 times as fast as a block, and takes 2/7 of itself of the velocity."""
    slip = slowed(1.0, 3.5 * 0.4 * G * 0.05)
    for name, left in (("slipping", slip), ("rolling", 0.0)):
        v, _, w = ends[name][1]
        assert abs(v - 0.1 * w - left) < 1e-11
        assert abs(v - (1 - (1 - left) * 2 / 7)) < 1e-11
        assert abs(v + 0.4 * 0.1 * w - 1) < 1e-12  # the angular momentum about the ground


def pucks():
    """Two spheres of 1 and 3 kg that move in the plane z = 0."""
    bodies = [
        dl.Body(name=name, joint=dl.Planar(), mass=m, inertia=0.4 * m * r * r * np.eye(3))
        for name, m, r in (("small", 1.0, 0.1), ("large", 3.0, 0.2))
    ]
    path = [("small", ORIGIN), ("large", ORIGIN)]
    return dl.attach(dl.tree(bodies, gravity=ORIGIN), dl.SphereContact(path, 1e5, (0.1, 0.2)))


@pytest.mark.slow
def test_two_spheres():
    """Head-on by restitution; obliquely, with friction and spin, both momenta are kept."""
    system = pucks()

    def end(numbers, velocity):
        d, mu, eps = numbers
        contact = replace(system.couplings[0], dissipation=d, friction=mu, smoothing=eps)
        changed = replace(system, couplings=(contact,))
        method = dl.DormandPrince54(rtol=1e-11, atol=1e-12, substeps=1000)
        options = {"dt": 2e-3, "steps": 10, "save_every": 5, "method": method}
        start = jnp.array([0, 0, 0, 0.3, 0, 0])
        run = dl.simulate(changed, start, velocity, **options)
        return run.q, run.v, jax.vmap(partial(dl.elastic_energy, changed))(run.q), run.result.ok

    numbers = jnp.array([[0.3, 0, 0], [0.3, 0.7, 0], [0, 0, 1e-4]])
    oblique = [1.5, 0.4, 9, -0.5, 0, 5]
    velocities = jnp.array([[1.5, 0, 0, -0.5, 0, 0], oblique, oblique])
    q, v, stored, ok = map(np.asarray, jax.jit(jax.vmap(end))(numbers, velocities))
    assert np.all(ok)
    mass = np.array([1.0, 1, 0.4 * 0.1**2, 3, 3, 3 * 0.4 * 0.2**2])
    p, energy = mass * v, (mass * v * v).sum(-1) / 2 + stored
    spin = p[..., 2] + p[..., 5]
    orbit = q[..., 0] * p[..., 1] - q[..., 1] * p[..., 0]
    orbit += q[..., 3] * p[..., 4] - q[..., 4] * p[..., 3]
    kept = np.stack((p[..., 0] + p[..., 3], p[..., 1] + p[..., 4], spin + orbit))
    np.testing.assert_allclose(kept, kept[:, :, :1] + 0 * kept, atol=1e-11)
    np.testing.assert_allclose(
        v[0, -1, [0, 3]], [-2 * 0.7119501796 * 3 / 4, 0.3559750898], atol=2e-9
    )
    np.testing.assert_allclose(energy[2], energy[2, 0], atol=1e-9)
    assert np.all(np.diff(energy[:2]) < 1e-12) and np.all(np.abs(v[1, -1] - v[1, 0])[[2, 5]] > 1)


def machine():
    """A tree on a free base, of which bodies touch the world, each other and a plane of its own."""
    rng = np.random.default_rng(8)
    made = (
        ("base", "Free", None),
        ("arm", "Revolute", "base"),
        ("plate", "Fixed", "arm"),
        ("ball", "Spherical", "base"),
        ("rod", "Prismatic", "ball"),
    )
    return dl.tree([random_body(rng, n, random_joint(rng, k), up) for n, k, up in made])


def contacts(smoothing=0.5, exponent=1.5, dissipation=0.2, friction=0.6):
    rng = np.random.default_rng(9)
    numbers = {"smoothing": smoothing, "exponent": exponent, "dissipation": dissipation}
    numbers |= {"friction": friction, "slip_velocity": 0.5}

    def path(*bodies):
        return [(b, rng.normal(size=3) * 0.5) for b in bodies]

    return (
        dl.PlaneContact(path(None, "rod", "plate", "base"), 20.0, rng.normal(size=3), **numbers),
        dl.PlaneContact(path("plate", "ball", None), 30.0, (1, 2, -1), radius=0.8, **numbers),
        dl.SphereContact(path("rod", "plate"), 40.0, (1.5, 0.9), **numbers),
        dl.SphereContact(path(None, "base"), 40.0, (0.5, 0.9), **numbers),
        dl.JointStop(25.0, "rod", smoothing=smoothing, dissipation=0.3),
    )


@pytest.fixture(scope="module")
def touching():
    bare = machine()
    limits = {"lower": bare.joints.lower.at[-1].set(-0.3), "upper": bare.joints.upper.at[-1].set(0)}
    return dl.attach(bare.replace(**limits), *contacts())


@pytest.mark.slow
@pytest.mark.thorough("scanned")
@pytest.mark.parametrize("traversal", ["unrolled", "scanned"], indirect=True)
def test_without_losses_the_force_is_minus_the_slope_of_the_energy(touching, traversal):
    system = touching
    q = jnp.asarray(random_states(system, 1, seed=2)[0][0])

    @jax.jit
    def found(system):
        def energy(step):
            return dl.elastic_energy(system, dl.integrate(system, q, step))

        still = jnp.zeros(system.nv)
        force = dl.passive_force(system, q, still)
        return force, jax.grad(energy)(still), dl.stiffness_matrix(system, q)

    fast, slope, stiffness = found(system)
    assert np.abs(fast).max() > 1
    assert error(fast[None], -slope[None]) < 1e-12
    assert np.all(np.isfinite(stiffness))


@pytest.mark.slow
def test_what_moves_along_is_only_pushed(touching):
    """The power of the contacts: what the energy loses, friction and damping included."""
    system = touching
    q, v, *_ = (jnp.asarray(x) for x in random_states(system, 40, seed=3))

    @jax.jit
    @jax.vmap
    def powers(q, v):
        def stored(s):
            return dl.elastic_energy(system, dl.integrate(system, q, s * v))

        kept = replace(system, couplings=tuple(map(lossless, system.couplings)))
        rate = jax.jvp(stored, (jnp.zeros(()),), (jnp.ones(()),))[1]
        return dl.passive_force(system, q, v) @ v, dl.passive_force(kept, q, v) @ v, rate

    power, elastic, rate = powers(q, v)
    np.testing.assert_allclose(elastic, -rate, atol=1e-11)
    assert np.all(power <= elastic) and np.any(power < elastic - 1)


def lossless(coupling):
    zero = jnp.zeros_like(coupling.dissipation)
    if isinstance(coupling, dl.JointStop):
        return replace(coupling, dissipation=zero)
    return replace(coupling, dissipation=zero, friction=zero)


@pytest.mark.slow
def test_derivatives_of_every_number(touching):
    """Forward and reverse mode against differences, by every number of the contacts, q and v."""
    system = touching
    q, v, *_ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=5))
    x, rebuild = ravel_pytree((system.couplings, q, v))

    def force(x):
        couplings, q, v = rebuild(x)
        return dl.passive_force(eqx.tree_at(lambda s: s.couplings, system, couplings), q, v)

    forwards, backwards = jax.jit(lambda x: (jax.jacfwd(force)(x), jax.jacrev(force)(x)))(x)
    h, unit = 1e-3, jnp.eye(x.size)
    moved = jax.jit(jax.vmap(force))
    near, far = (
        (lambda a: a[: x.size] - a[x.size :])(moved(x + k * h * jnp.concatenate((unit, -unit))))
        for k in (1, 2)
    )
    differences = (8 * near - far).T / (12 * h)
    assert error(forwards[None], differences[None]) < 1e-8
    assert error(backwards[None], forwards[None]) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["plane", "sphere"])
def test_singular_points(dtype, kind):
    """Touching, at rest and with one centre, without any smoothing: everything is finite."""
    path = [(None, ORIGIN), ("bob", ORIGIN)]
    numbers = {"friction": 0.5, "dissipation": 0.1, "slip_velocity": 0.0}
    plane = dl.PlaneContact(path, 5.0, UP, **numbers)
    sphere = dl.SphereContact(path, 5.0, (0.3, 0.4), **numbers)
    made, name, sizes = {
        "plane": (plane, "radius", jnp.array([0, 0.2])),
        "sphere": (sphere, "radii", jnp.array([[0, 0], [0.3, 0.4]])),
    }[kind]
    moving = [0, 0, 0, 1.0, -2, 0, 1, 2, -3]
    cases = [(s, e, x) for s in sizes for e in (1.0, 1.5) for x in ([0.0] * 9, moving)]
    cases = [jnp.array(c, dtype) for c in zip(*cases, strict=True)]
    given = jax.tree.map(lambda a: a.astype(dtype), made)

    @jax.jit
    @jax.vmap
    def found(size, exponent, x):
        contact = replace(given, **{name: size}, exponent=exponent)

        def frames(x):
            at = jnp.zeros((2, 3), dtype).at[1].set(x[:3])
            attitudes = jnp.broadcast_to(jnp.eye(3, dtype=dtype), (2, 3, 3))
            return Transform(Matrix.from_array(attitudes), Vector.from_array(at))

        def wrench(x, contact):
            twists = jnp.zeros((2, 6), dtype).at[1].set(x[3:])
            return contact.wrenches(frames(x), Motion.from_array(twists)).to_array()

        forwards, backwards = (d(wrench, (0, 1))(x, contact) for d in (jax.jacfwd, jax.jacrev))
        energy = jax.grad(lambda x, contact: contact.energy(frames(x)), (0, 1))(x, contact)
        second = jax.jacfwd(jax.grad(lambda x: wrench(x, contact).sum()))(x)
        return wrench(x, contact), forwards, backwards, energy, second

    values = found(*cases)
    assert all(np.all(np.isfinite(a)) and a.dtype == dtype for a in jax.tree.leaves(values))
    # At the surface of a plane, and where the centres coincide, nothing is felt.
    pressed = values[0][4:] if kind == "plane" else values[0][:0]
    assert not np.any(values[0][: 8 - len(pressed)]) and np.all(pressed[:, 1, 5] > 0)


@pytest.mark.slow
def test_action_is_reaction(touching):
    """About any point, whatever the bodies do."""
    rng = np.random.default_rng(1)
    for contact in touching.couplings[:-1]:
        n = len(contact.path.bodies)
        x = rng.normal(size=(n, 3))
        turned = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
        frames = Transform(
            Matrix.from_array(jnp.asarray(turned)), Vector.from_array(jnp.asarray(x))
        )
        twists = Motion.from_array(jnp.asarray(rng.normal(size=(n, 6))))
        moment, force = np.split(np.asarray(contact.wrenches(frames, twists).to_array()), 2, axis=1)
        assert np.abs(force).max() > 0.01
        np.testing.assert_allclose(force.sum(0), 0, atol=1e-12)
        np.testing.assert_allclose((moment + np.cross(x, force)).sum(0), 0, atol=1e-12)


def cube():
    """A cube of 10 cm and 0.37 kg, with a contact at each of its corners."""
    corners = np.array(np.meshgrid(*[[-0.05, 0.05]] * 3)).reshape(3, -1).T
    inertia = 0.37 * 0.1**2 / 6 * np.eye(3)
    body = dl.Body(name="cube", joint=dl.Free(), mass=0.37, inertia=inertia)
    path = [(None, ORIGIN), *(("cube", corner) for corner in corners)]
    numbers = {"dissipation": 3.0, "friction": 0.3, "smoothing": 1e-4}
    return dl.attach(dl.chain([body]), dl.PlaneContact(path, 5e3, UP, **numbers))


@pytest.mark.slow
def test_a_tossed_cube():
    """Its energy never grows, and it comes to rest on one of its faces."""
    system = cube()
    turn = np.array([0.9, 0.3, -0.2, 0.1])
    q0 = jnp.array([*turn / np.linalg.norm(turn), 0.0, 0.0, 0.2])
    v0 = jnp.array([3.0, -4.0, 2.0, 0.5, 0.3, 0.0])
    run = dl.simulate(system, q0, v0, dt=2e-4, steps=7500, save_every=10)
    assert run.result.ok
    kinetic, potential = map(np.asarray, run.energy(system))
    energy = kinetic + potential
    assert np.max(np.diff(energy)) < 1e-7 * energy[0]
    assert kinetic[0] > 0.05 and kinetic[-1] < 1e-7
    attitude = np.abs(dl.body_poses(system, run.q[-1])[0, 2, :3])
    np.testing.assert_allclose(np.sort(attitude), [0, 0, 1], atol=1e-4)
    np.testing.assert_allclose(run.q[-1, 6], 0.05, atol=1e-3)


def monopod(smoothing=1e-4):
    """A body on a slide, on a leg that is a slide with a spring, on a point foot; 20 cm tall."""
    trunk = dl.Body(name="trunk", joint=dl.Prismatic(axis=UP), mass=4.0)
    leg = dl.Prismatic(axis=UP, stiffness=1500.0, spring_reference=-0.2, lower=-0.25, upper=-0.05)
    foot = dl.Body(name="foot", joint=leg, mass=0.3)
    numbers = {"exponent": 1.5, "smoothing": smoothing}
    contact = dl.PlaneContact([(None, ORIGIN), ("foot", ORIGIN)], 2e6, UP, **numbers)
    stop = dl.JointStop(2e6, exponent=1.5, smoothing=smoothing)
    return dl.attach(dl.chain([trunk, foot]), contact, stop)


@pytest.mark.slow
def test_a_monopod_hops():
    """Without losses its energy is kept over its hops, on the foot and against its stops."""
    system = monopod()
    start = jnp.array([0.35, -0.2]), jnp.zeros(2)
    run = dl.simulate(system, *start, dt=5e-5, steps=30000, method=dl.RKMK4(), save_every=50)
    height = np.asarray(run.q.sum(axis=1))
    steps_off = np.sum((height[:-1] < 1e-3) & (height[1:] >= 1e-3))
    assert run.result.ok and steps_off >= 3 and height.max() > 0.05
    energy = np.asarray(sum(run.energy(system)))
    np.testing.assert_allclose(energy, energy[0], atol=1e-6 * energy[0])


def hop(factors):
    """Where a damped monopod is after its first landing and leap, by factors of its numbers."""
    system = monopod(smoothing=1e-3)
    contact, stop = system.couplings
    contact = replace(
        contact,
        stiffness=2e4 * factors[0],
        dissipation=0.2 * factors[1],
        smoothing=1e-3 * factors[2],
        exponent=1.5 * factors[3],
    )
    system = replace(system, couplings=(contact, stop))
    system = system.replace(stiffness=system.joints.stiffness * factors[4])
    q0 = jnp.array([0.25, -0.2], factors.dtype) * factors[5]
    system, q0 = system.astype(factors.dtype), q0.astype(factors.dtype)
    run = dl.simulate(system, q0, 0 * q0, dt=5e-4, steps=700, save_every=700, method=dl.RKMK4())
    return run.q[-1]


alone = jax.jit(hop)
H = 1e-4


@pytest.fixture(scope="module")
def hundred():
    """A hundred variants: steps of H along each factor in the first places."""
    steps = H * jnp.concatenate([k * jnp.eye(6) for k in (1, -1, 2, -2)])
    rng = np.random.default_rng(4)
    factors = jnp.concatenate((1 + steps, rng.uniform(0.8, 1.2, (76, 6))))
    return factors, jax.jit(jax.vmap(hop))(factors)


@pytest.mark.slow
def test_a_hundred_variants(hundred):
    """A batch of machines and states is what they are alone; also in single precision."""
    factors, ends = hundred
    assert ends.shape == (100, 2) and np.all(np.isfinite(ends)) and np.ptp(ends[24:, 0]) > 0.01
    for k in (0, 50, 99):
        np.testing.assert_allclose(ends[k], alone(factors[k]), rtol=1e-10)
    single = alone(factors[50].astype("float32"))
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, ends[50], atol=1e-4)


@pytest.mark.slow
def test_derivatives_through_a_hop(hundred):
    """Forward and reverse against differences, over an impact."""
    forwards, backwards = jax.jit(lambda x: (jax.jacfwd(hop)(x), jax.jacrev(hop)(x)))(jnp.ones(6))
    ahead, back, far, far_back = hundred[1][:24].reshape(4, 6, 2)
    differences = (8 * (ahead - back) - (far - far_back)).T / (12 * H)
    assert np.abs(forwards).max() > 0.1
    assert error(forwards[None], differences[None]) < 1e-6
    assert error(backwards[None], forwards[None]) < 1e-9


PATH = [(None, ORIGIN), ("cube", ORIGIN)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: dl.PlaneContact([PATH[0], ("cub", ORIGIN)], 1.0, UP),
            "'cub'; did you mean 'cube'",
        ),
        (lambda: dl.PlaneContact(PATH[:1], 1.0, UP), "1 points; give it two points or more"),
        (lambda: dl.SphereContact(3 * PATH, 1.0, (1, 1)), "6 points; give it two points"),
        (
            lambda: dl.PlaneContact(PATH, -1.0, UP),
            r"PlaneContact \(the world - 'cube'\): stiffness",
        ),
        (lambda: dl.PlaneContact(PATH, 1.0, ORIGIN), "the normal is zero; give it a direction"),
        (lambda: dl.PlaneContact(PATH, 1.0, 1.0), r"normal has shape \(\), needed is \(3,\)"),
        (lambda: dl.SphereContact(PATH, 1.0, 1.0), r"radii has shape \(\), needed is \(2,\)"),
        (lambda: dl.SphereContact(PATH, 1.0, (1, -1)), r"radii is \[1.0, -1.0\] m; it must not be"),
        (lambda: dl.PlaneContact(PATH, 1.0, UP, exponent=0.9), "exponent is 0.9; it must be 1 or"),
        (lambda: dl.PlaneContact(PATH, 1.0, UP, friction=np.inf), "friction is inf; .* finite"),
        (
            lambda: dl.PlaneContact(PATH, 1.0, UP, slip_velocity=-1),
            "slip_velocity is -1.0 m/s; it must",
        ),
        (
            lambda: dl.PlaneContact(PATH, 1.0, UP, smoothing=-1),
            "smoothing is -1.0 m; it must not",
        ),
        (lambda: dl.PlaneContact(PATH, "hard", UP), "'hard' was given .* a number is needed"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(dl.ModelError, match=message):
        dl.attach(cube(), make())


def test_energy_momentum_knows_no_contacts():
    system = cube()
    with pytest.raises(ValueError, match=r"no mean force of PlaneContact .* use another method"):
        dl.simulate(system, system.neutral(), [0] * 6, steps=2, method=dl.EnergyMomentum())
