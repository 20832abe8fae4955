"""Springs, dampers and forces between bodies; against MuJoCo they are tested in io/test_mjcf.py."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from trees import error, random_body, random_joint, random_states

import difflie as dl
from difflie.forces import Coupling, Path, as_path
from difflie.forces.at_joint import AtJoint
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Force, Transform


def machine(base="Free"):
    """Most joints in a tree, with springs at some, a mimic joint and fixed bodies."""
    rng = np.random.default_rng(8)
    made = (
        ("wall", "Fixed", None, {}),
        ("base", base, None, {}),
        ("arm", "Revolute", "base", {"stiffness": 3.0, "spring_reference": 0.2, "damping": 0.3}),
        ("plate", "Fixed", "arm", {}),
        ("rod", "Prismatic", "plate", {"mimic": dl.Mimic("arm", -0.6, 0.1), "stiffness": 5.0}),
        ("ball", "Spherical", "base", {}),
        ("puck", "Planar", "ball", {}),
        ("screw", "Helical", "rod", {}),
    )
    return dl.tree([random_body(rng, n, random_joint(rng, k, **kw), up) for n, k, up, kw in made])


def couplings(rest=0.4):
    """One of each kind, through moving and fixed bodies and the world."""
    rng = np.random.default_rng(9)

    def path(*bodies):
        return [(b, rng.normal(size=3) * 0.5) for b in bodies]

    return (
        dl.Spring(path("screw", "puck"), 20.0, rest),
        dl.Spring(path(None, "plate", "ball", "wall"), 15.0, rest),
        dl.Rope(path("arm", "base", "puck"), 30.0, rest),
        dl.Rope(path("arm", "ball"), 30.0, 50.0),
        dl.SmoothRope(path("rod", "wall"), 10.0, rest, 0.3),
        dl.Damper(path("screw", "ball", None), 2.0),
        dl.TensionDamper(path("arm", "ball", "puck"), 2.5, rest),
        dl.TensionDamper(path("arm", "ball"), 2.5, 50.0),
        dl.SmoothTensionDamper(path("rod", "puck"), 1.5, rest, 0.1, 0.2),
        dl.PointForce(path("puck"), (1.0, -2.0, 3.0)),
        dl.PointFriction(path("puck"), 0.4),
        dl.PointDamping(path("puck"), (0.2, 0.1)),
        dl.FollowerForce(path("plate"), (0.5, 1.0, -1.0)),
    )


@pytest.fixture(scope="module")
def coupled():
    return dl.attach(machine(), *couplings())


def elastic(system):
    """The same with its springs only."""
    kept = [c for c in system.couplings if isinstance(c, dl.Elastic)]
    joints = {name: 0 * getattr(system.joints, name) for name in ("damping", "friction")}
    bare = machine().replace(**joints)
    return dl.attach(bare, *kept)


@pytest.mark.slow
def test_the_force_is_minus_the_slope_of_the_energy(coupled):
    """And the stiffness matrix its derivative, the symmetric part of which is the Hessian."""
    system = elastic(coupled)
    q, *_ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=2))
    still = jnp.zeros(system.nv)

    @jax.jit
    @jax.vmap
    def moved(step):
        to = dl.integrate(system, q, step)
        return dl.elastic_energy(system, to), dl.passive_force(system, to, still)

    h, unit = 1e-3, jnp.eye(system.nv)
    energy, force = moved(jnp.concatenate([k * h * unit for k in (0, 1, -1, 2, -2)]))
    energy, force = energy.reshape(5, -1), force.reshape(5, system.nv, -1)

    def slope(a):
        return (8 * (a[1] - a[2]) - (a[3] - a[4])) / (12 * h)

    assert error(force[0, :1], -slope(energy)[None]) < 1e-9
    stiffness = jax.jit(dl.stiffness_matrix)(system, q)
    assert error(stiffness[None], -slope(force).T[None]) < 1e-9
    pairs = (unit[:, None] + s * unit for s in (1, -1))
    steps = jnp.concatenate([s * h * p.reshape(-1, system.nv) for p in pairs for s in (1, -1)])
    both, back, apart, across = moved(steps)[0].reshape(4, system.nv, system.nv)
    hessian = (both + back - apart - across) / (4 * h * h)
    assert error((stiffness + stiffness.T)[None] / 2, hessian[None]) < 1e-5
    # Turns of the base and the ball do not commute; all other rows do.
    plain = [i for i in range(6, system.nv) if i not in range(7, 10)]
    block = stiffness[jnp.ix_(jnp.array(plain), jnp.array(plain))]
    assert error(block[None], block.T[None]) < 1e-12
    assert error(stiffness[None], stiffness.T[None]) > 1e-3


@pytest.mark.slow
@pytest.mark.thorough("scanned")
@pytest.mark.parametrize("traversal", ["scanned", "unrolled"], indirect=True)
def test_forces_by_the_motion_of_the_points(coupled, traversal):
    """J^T f, the Jacobian of the points' positions by differentiation, the forces by definition."""
    system = dl.attach(machine(), *coupled.couplings)
    q, v, *_ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=6))

    @jax.jit
    def found(q, v):
        def positions(step):
            poses = dl.body_poses(system, dl.integrate(system, q, step))
            poses = jnp.concatenate((poses, jnp.eye(4)[None]))
            places = []
            for c in system.couplings:
                for body, point in zip(c.path.bodies, c.path.points, strict=True):
                    b = -1 if body is None else system.body_names.index(body)
                    places.append(poses[b, :3, :3] @ point + poses[b, :3, 3])
            return jnp.stack(places), poses

        still = jnp.zeros(system.nv)
        rates = jax.jvp(lambda s: positions(s)[0], (still,), (v,))[1]
        jacobian = jax.jacfwd(lambda s: positions(s)[0])(still)
        return dl.passive_force(system, q, v), *positions(still), rates, jacobian

    force, x, poses, rates, jacobian = map(np.asarray, found(q, v))
    expected, start = np.zeros(system.nv), 0
    for c in system.couplings:
        n = len(c.path.bodies)
        x_c, rates_c, forces = x[start : start + n], rates[start : start + n], np.zeros((n, 3))
        if isinstance(c, dl.PointFriction):
            forces[0] = -c.friction * np.tanh(rates_c[0] / c.friction_velocity)
        elif isinstance(c, dl.PointDamping):
            forces[0] = -(0.2 * np.abs(rates_c[0]) + 0.1 * rates_c[0] ** 2) * rates_c[0]
        elif hasattr(c, "force"):
            forces[0] = c.force
            if isinstance(c, dl.FollowerForce):
                forces[0] = poses[system.body_names.index(c.path.bodies[0]), :3, :3] @ c.force
        else:
            step = np.diff(x_c, axis=0)
            length = np.linalg.norm(step, axis=1)
            direction = step / length[:, None]
            rate = np.sum(direction * np.diff(rates_c, axis=0))
            if isinstance(c, dl.Damper):
                tension = c.damping * rate
            elif hasattr(c, "damping"):
                above = length.sum() - c.rest_length
                smooth = isinstance(c, dl.SmoothTensionDamper)
                assert not smooth or (above > c.smoothing and rate > c.rate_smoothing)
                tension = c.damping * max(rate, 0.0) if above >= 0 else 0.0
            else:
                stretch = length.sum() - c.rest_length
                slack = not isinstance(c, dl.Spring) and stretch < 0
                assert not isinstance(c, dl.SmoothRope) or stretch > c.smoothing
                tension = 0.0 if slack else c.stiffness * stretch
            forces[:-1] += tension * direction
            forces[1:] -= tension * direction
        expected += np.einsum("ij,ijk->k", forces, jacobian[start : start + n])
        start += n
    alone = dl.passive_force(machine(), q, v)
    assert error(force[None], (expected + alone)[None]) < 1e-13


LAWS = (
    dl.Spring((), 3.0, 0.7),
    dl.Rope((), 3.0, 0.7),
    dl.SmoothRope((), 3.0, 0.7, 0.2),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_laws(law, dtype):
    """Tension is the derivative of the potential, at every length, and slack is zero exactly."""
    law = jax.tree.map(lambda a: a.astype(dtype), law)
    y = jnp.asarray([0.0, 0.1, 0.49, 0.5, 0.51, 0.69, 0.7, 0.71, 0.9, 0.91, 5.0, 1e4], dtype)
    tension = law.tension(y)
    assert tension.dtype == law.potential(y).dtype == dtype
    slope = jax.vmap(jax.grad(law.potential))(y)
    np.testing.assert_allclose(tension, slope, rtol=1e-5 if dtype == "float32" else 1e-13)
    curvature = jax.vmap(jax.grad(law.tension))(y)
    assert np.all(np.isfinite(jax.vmap(jax.grad(jax.grad(law.tension)))(y)))
    if isinstance(law, dl.Spring):
        np.testing.assert_allclose(tension, 3 * (y - law.rest_length))
        return
    smooth = isinstance(law, dl.SmoothRope)
    slack, taut = (y < 0.5, y > 0.9) if smooth else (y < 0.7, y >= law.rest_length)
    assert not np.any(tension[slack]) and not np.any(law.potential(y)[slack])
    np.testing.assert_allclose(tension[taut], 3 * (y[taut] - law.rest_length), rtol=1e-6)
    np.testing.assert_allclose(curvature, 3 * np.clip(curvature / 3, 0, 1), rtol=1e-6)
    np.testing.assert_allclose(curvature[taut], 3)


def test_smoothing_vanishes():
    """The smooth law tends to the exact one, its potential up to a constant."""
    y = jnp.linspace(0, 2, 41)
    exact = dl.Rope((), 3.0, 0.7)
    smooth = dl.SmoothRope((), 3.0, 0.7, 1e-4)
    np.testing.assert_allclose(smooth.tension(y), exact.tension(y), atol=2e-4)
    np.testing.assert_allclose(smooth.potential(y), exact.potential(y), atol=1e-8)


def hanging(*couplings, kind="Prismatic"):
    """A body on a joint along or about x, from the world's origin, without gravity."""
    body = dl.Body(
        name="bob", joint=getattr(dl, kind)(axis=(1.0, 0.0, 0.0)), mass=2.0, inertia=np.eye(3)
    )
    return dl.attach(dl.chain([body], gravity=(0.0, 0.0, 0.0)), *couplings)


@pytest.mark.slow
@pytest.mark.thorough("float32")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_points_that_coincide(dtype):
    """No direction and no NaN there; a spring at rest at length zero is smooth."""
    path = [(None, (0.0, 0.0, 0.0)), ("bob", (0.0, 0.0, 0.0))]
    longer = [path[0], (None, (0.0, 0.0, 0.0)), path[1]]
    rough = (
        dl.Spring(path, 3.0, 0.5),
        dl.Rope(path, 3.0, 0.5),
        dl.SmoothRope(path, 3.0, 0.5, 0.1),
        dl.Spring(longer, 3.0, 0.5),
        dl.Spring(longer, 3.0, 0.0),
        dl.Damper(path, 2.0),
        dl.TensionDamper(path, 2.0),
        dl.SmoothTensionDamper(path, 2.0, 0.0, 0.1, 0.1),
    )
    x = jnp.zeros(3, dtype)

    @jax.jit
    def at_the_points(couplings):
        """What is felt at the last point, and its derivatives by its position and the numbers."""

        def force(x, coupling):
            at = jnp.zeros((len(coupling.path.bodies), 3), dtype).at[-1].set(x)
            frames = Transform(Matrix.from_array(jnp.eye(3, dtype=dtype)), Vector.from_array(at))
            return coupling.forces(frames, Vector.from_array(at + 1)).to_array()[-1]

        def energy(x, coupling):
            at = jnp.zeros((len(coupling.path.bodies), 3), dtype).at[-1].set(x)
            frames = Transform(Matrix.from_array(jnp.eye(3, dtype=dtype)), Vector.from_array(at))
            return coupling.energy(frames) if coupling.stores_energy else x[0]

        return [
            (
                force(x, c),
                jax.jacfwd(force, (0, 1))(x, c),
                jax.jacrev(force, (0, 1))(x, c),
                jax.jacfwd(jax.jacrev(force))(x, c),
                jax.grad(energy)(x, c),
                jax.hessian(energy)(x, c),
            )
            for c in couplings
        ]

    given = jax.tree.map(lambda a: a.astype(dtype), (dl.Spring(path, 7.0, 0.0), *rough))
    found = at_the_points(given)
    assert all(np.all(np.isfinite(a)) and a.dtype == dtype for a in jax.tree.leaves(found))
    assert not any(np.any(force) for force, *_ in found)
    _, forward, reverse, _, slope, hessian = found[0]
    for stiffness in (hessian, -forward[0], -reverse[0]):
        np.testing.assert_array_equal(stiffness, 7 * np.eye(3))
    assert not np.any(slope)

    system = hanging(*given).astype(dtype)
    force, slope = jax.jit(
        lambda q: (dl.passive_force(system, q, q + 1), jax.jacrev(dl.elastic_energy, 1)(system, q))
    )(x[:1])
    assert force == 0 and slope == 0


def test_slack_and_taut():
    """A rope pulls when it is longer than at rest, and does nothing when it is not."""
    path = [(None, (-1.0, 0.0, 0.0)), ("bob", (0.0, 0.0, 0.0))]
    system = hanging(dl.Rope(path, 10.0, 1.5))
    q = jnp.array([[-0.3], [0.4], [0.5], [0.75]])
    force = jax.vmap(lambda q: dl.passive_force(system, q, 0 * q))(q)
    np.testing.assert_allclose(force[:, 0], [0, 0, 0, -2.5])
    stiffness = jax.vmap(lambda q: dl.stiffness_matrix(system, q))(q)
    np.testing.assert_allclose(stiffness[:, 0, 0], [0, 0, 10, 10])
    energy = jax.vmap(lambda q: dl.elastic_energy(system, q))(q)
    np.testing.assert_allclose(energy, [0, 0, 0, 0.3125])


RATES = np.array([-2.0, -1e-3, 0.0, 1e-3, 0.2, 0.5, 1.5])


@pytest.mark.slow
@pytest.mark.thorough("float32")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dampers_of_ropes(dtype):
    """They pull while they are taut and lengthen, never give energy, and are zero otherwise."""
    exact = dl.TensionDamper((), 2.0, 0.7)
    smooth = dl.SmoothTensionDamper((), 2.0, 0.7, 0.1, 0.5)
    given = jax.tree.map(lambda a: a.astype(dtype), (exact, smooth))
    y, r = jnp.meshgrid(*(jnp.asarray(a, dtype) for a in ([0.5, 0.7, 0.75, 0.9], RATES)))
    for law in given:
        tension = jax.jit(jax.vmap(law.tension))(y.ravel(), r.ravel()).reshape(y.shape)
        assert tension.dtype == dtype and np.all(tension >= 0)
        assert not np.any(tension[(y < 0.7) | (r <= 0)])
        whole = (y >= 0.8) & (r >= 0.5)
        np.testing.assert_allclose(tension[whole], 2 * r[whole], rtol=1e-6)
        slopes = jax.vmap(jax.hessian(law.tension, (0, 1)))(y.ravel(), r.ravel())
        assert all(np.all(np.isfinite(a)) for a in jax.tree.leaves(slopes))
    # At the kinks and the jump the derivative is that of the side that pulls.
    law, there = given[0], jnp.asarray(0.7, dtype)
    for rate, slope in ((0.0, 2.0), (0.5, 2.0), (-0.5, 0.0)):
        for derivative in (jax.jacfwd, jax.jacrev):
            found = derivative(law.tension, (0, 1))(there, jnp.asarray(rate, dtype))
            np.testing.assert_array_equal(found, (0.0, slope))
    # Two continuous derivatives of the smooth law, across both ends of both blends.
    if dtype == "float64":
        at = jnp.array([[0.7, 0.3], [0.8, 0.3], [0.75, 0.0], [0.75, 0.5]])
        step = 1e-7 * jnp.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
        hessian = jax.vmap(jax.hessian(lambda x: smooth.tension(*x)))
        np.testing.assert_allclose(hessian(at + step), hessian(at - step), atol=1e-2)
        assert np.abs(hessian(at + 0.02)).max() > 10


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [False, True])
def test_the_energy_that_a_rope_takes(smooth):
    """dE/dt = -T dy/dt by differentiating the energy along the motion, and all along a run."""
    path = [(None, (-1.0, 0.5, 0.0)), ("bob", (0.0, 0.0, 0.2)), (None, (-1.0, 0.0, 0.3))]
    law = dl.SmoothTensionDamper(path, 3.0, 2.0, 0.05, 0.1)
    law = law if smooth else dl.TensionDamper(path, 3.0, 2.0)
    pull = dl.Spring([(None, (-1.0, 0.0, 0.0)), ("bob", (0.0, 0.0, 0.0))], 30.0, 1.0)
    system = hanging(pull, law)

    def length(q):
        x = jnp.stack((q[0], 0 * q[0], 0 * q[0])) + jnp.array([0.0, 0.0, 0.2])
        return sum(jnp.linalg.norm(x - jnp.asarray(p)) for p in (path[0][1], path[2][1]))

    @jax.jit
    def rates(q, v):
        a = dl.forward_dynamics(system, q, v, dl.passive_force(system, q, v))
        gain = jax.jvp(lambda q, v: sum(dl.energy(system, q, v)), (q, v), (v, a))[1]
        y, rate = jax.jvp(length, (q,), (v,))
        return gain, y, rate, law.tension(y, rate) * rate

    for q, v in ((0.3, 0.4), (0.3, -0.4), (-0.5, 0.4)):
        gain, y, rate, loss = rates(jnp.array([q]), jnp.array([v]))
        pulls = q > 0 and v > 0
        assert (y > 2) == (q > 0) and (rate > 0) == (v > 0) and (loss > 0) == pulls
        np.testing.assert_allclose(gain, -loss, atol=1e-14)
    run = dl.simulate(system, jnp.array([0.6]), jnp.zeros(1), dt=2e-3, steps=1500)
    total = sum(run.energy(system))
    assert float(jnp.max(jnp.diff(total))) < 1e-8 and float(total[-1]) < 0.5 * float(total[0])
    assert float(jnp.max(jnp.abs(total[-50:] - total[-1]))) < 0.1


@pytest.mark.slow
def test_an_oscillator():
    """x = a cos(w t) in closed form, by simulation, and its derivatives to k, l and m."""
    path = [(None, (-1.0, 0.0, 0.0)), ("bob", (0.0, 0.0, 0.0))]
    system = hanging(dl.Spring(path, 8.0, 1.2))
    q0, v0 = jnp.array([0.5]), jnp.zeros(1)

    def end(system):
        run = dl.simulate(system, q0, v0, dt=2e-2, steps=50, method=dl.RKMK6(), save_every=50)
        return run.q[-1, 0]

    value, gradient = jax.value_and_grad(end)(system)
    a, w = 0.3, 2.0
    np.testing.assert_allclose(value, 0.2 + a * np.cos(w), atol=1e-10)
    spring = gradient.couplings[0]
    np.testing.assert_allclose(spring.stiffness, -a * np.sin(w) * w / 16, atol=1e-9)
    np.testing.assert_allclose(spring.rest_length, 1 - np.cos(w), atol=1e-9)
    np.testing.assert_allclose(gradient.bodies.mass[0], a * np.sin(w) * w / 4, atol=1e-9)


@pytest.mark.slow
def test_goetz_three_links():
    """The mono-articular chain of Goetz 2024, Table 5.1, against a reference to twelve digits.

    The reference was made in minimal coordinates, by DOP853 with tolerance 1e-13.
    """
    inertia = np.eye(3)
    links = [
        dl.Body(
            name=f"link{i}",
            joint=dl.Revolute(axis=(0.0, 0.0, 1.0)),
            position=(float(i > 1), 0.0, 0.0),
            mass=1.0,
            com=(0.5, 0.0, 0.0),
            inertia=inertia,
        )
        for i in (1, 2, 3)
    ]
    fastenings = [(None, (0.0, 0.4, 0.0)), *((f"link{i}", (1.0, 0.4, 0.0)) for i in (1, 2, 3))]
    plain = dl.chain(links, gravity=(0.0, -1.0, 0.0))
    springs = [dl.Spring(pair, 1.0, 0.2) for pair in pairwise(fastenings)]
    system = dl.attach(plain, *springs)
    q = jnp.zeros(3)
    run = dl.simulate(system, q, q, dt=0.01, steps=200, method=dl.RKMK8(), save_every=100)
    end = [-1.146361468719, 0.463948208894, 0.916165475931]
    rate = [-0.857628398068, -0.002258173069, 0.779407622757]
    np.testing.assert_allclose(run.q[-1], end, atol=1e-11)
    np.testing.assert_allclose(run.v[-1], rate, atol=1e-11)
    np.testing.assert_allclose(sum(run.energy(system)), 0.96, atol=1e-11)
    # Multi-articular: one element through all fastenings, (k/2) (sum (|s_i| - s0))^2.
    multi = dl.attach(plain, dl.Spring(fastenings, 1.0, 0.6))
    phi = jnp.array([-1.1, 0.5, 0.9])
    s = [np.hypot(np.cos(a) - 0.4 * np.sin(a), np.sin(a) + 0.4 * np.cos(a) - 0.4) for a in phi]
    np.testing.assert_allclose(dl.elastic_energy(multi, phi), (sum(s) - 0.6) ** 2 / 2, rtol=1e-14)


@pytest.mark.slow
def test_springs_inside_keep_the_momentum(coupled):
    """Of a free machine without weight; what pulls on the world changes it."""
    inside = [c for c in coupled.couplings if {None, "wall"}.isdisjoint(c.path.bodies)]
    inside = [c for c in inside if len(c.path.bodies) > 1]
    bare = machine()
    # Armature has no part in the momentum.
    bare = bare.replace(gravity=(0.0, 0.0, 0.0), armature=0 * bare.joints.armature)
    system = dl.attach(bare, *inside)
    q, v, *_ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=3))
    run = dl.simulate(system, q, v / 4, dt=2e-3, steps=50, method=dl.RKMK4(), save_every=50)
    momentum = run.momentum(system)
    np.testing.assert_allclose(momentum[1], momentum[0], atol=1e-8)
    assert error(run.v[1:], run.v[:1]) > 0.1


@pytest.mark.slow
def test_derivatives_of_every_number(coupled):
    """Forward and reverse mode against differences, by every number of the couplings, q and v."""
    system = coupled
    q, v, *_ = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=5))
    x, rebuild = ravel_pytree((system.couplings, q, v))

    def force(x):
        couplings, q, v = rebuild(x)
        return dl.passive_force(eqx.tree_at(lambda s: s.couplings, system, couplings), q, v)

    forwards, backwards = jax.jit(lambda x: (jax.jacfwd(force)(x), jax.jacrev(force)(x)))(x)
    h, unit = 1e-3, jnp.eye(x.size)
    near, far = (
        a[: x.size] - a[x.size :]
        for a in (
            jax.jit(jax.vmap(force))(x + k * h * jnp.concatenate((unit, -unit))) for k in (1, 2)
        )
    )
    differences = (8 * near - far).T / (12 * h)
    assert error(forwards[None], differences[None]) < 1e-8
    assert error(backwards[None], forwards[None]) < 1e-13


@pytest.mark.slow
def test_batches_and_single_precision(coupled):
    """A batch of stiffnesses and states under vmap, and float32 in and out."""
    q, v, *_ = (jnp.asarray(x) for x in random_states(coupled, 3, seed=4))
    factors = jnp.array([0.0, 1.0, 2.0])

    def force(system, factor, q, v):
        first = system.couplings[0].stiffness * factor
        changed = eqx.tree_at(lambda s: s.couplings[0].stiffness, system, first)
        return dl.passive_force(changed, q, v)

    batch = jax.jit(jax.vmap(force, in_axes=(None, 0, 0, 0)))(coupled, factors, q, v)
    alone = jax.jit(force)
    single = [alone(coupled, *each) for each in zip(factors, q, v, strict=True)]
    assert error(batch, jnp.stack(single)) < 1e-14
    half = alone(*jax.tree.map(lambda a: a.astype("float32"), (coupled, factors[1], q[1], v[1])))
    assert half.dtype == "float32"
    assert error(half[None], single[1][None]) < 1e-5


def test_couplings_follow_the_system():
    system = hanging(dl.Spring([(None, np.zeros(3)), ("bob", np.ones(3))], 1, 0))
    single = system.astype("float32")
    assert single.couplings[0].stiffness.dtype == "float32"
    more = dl.attach(single, dl.PointForce([("bob", (0, 0, 0))], (3, 0, 0)))
    assert len(more.couplings) == 2 and more.couplings[1].force.dtype == "float32"
    assert dl.passive_force(more, [0.0], [0.0]).dtype == "float32"


class Sticking(AtJoint):
    """What is at a joint, but of a kind that nothing acts upon."""

    joint: str = eqx.field(static=True)


GOOD = [(None, (0.0, 0.0, 0.0)), ("bob", (1.0, 0.0, 0.0))]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dl.Spring([("bop", (0, 0, 0)), GOOD[0]], 1, 0), r"'bop'; did you mean 'bob'"),
        (lambda: dl.Spring(GOOD, -1.0, 0.0), r"Spring \(the world - 'bob'\): stiffness is -1.0"),
        (
            lambda: dl.Rope(GOOD, 1.0, -0.1),
            "rest_length is -0.1 m; it must not be",
        ),
        (lambda: dl.Damper(GOOD, -2.0), "damping is -2.0 N s/m; it must not be negative"),
        (lambda: dl.SmoothRope(GOOD, 1.0, 1.0, 0.0), "positive, or use Rope"),
        (
            lambda: dl.TensionDamper(GOOD, 1.0, -1.0),
            "rest_length is -1.0 m; it must not be",
        ),
        (
            lambda: dl.SmoothTensionDamper(GOOD, 1.0, 1.0, 0.1, -0.1),
            "rate_smoothing is -0.1 m/s; it must be positive, or use TensionDamper",
        ),
        (lambda: dl.Spring(GOOD, np.nan, 0.0), "stiffness is nan; it must be finite"),
        (
            lambda: dl.Spring(GOOD, [1.0, 2.0], 0.0),
            r"stiffness has shape \(2,\), needed is \(\)$",
        ),
        (lambda: dl.Spring(GOOD[:1], 1.0, 0.0), "1 points; give it two points or more"),
        (lambda: dl.PointForce(GOOD, (0, 0, 1)), "2 points; give it one point"),
        (lambda: dl.PointForce(GOOD[1:], 3.0), r"force has shape \(\), needed is \(3,\)"),
        (lambda: dl.Spring([("bob", (0, 0))], 1.0, 0.0), "point 0 of a path is"),
        (lambda: dl.Spring("bob", 1.0, 0.0), "point 0 of a path is 'b'"),
        (lambda: dl.Spring([GOOD[0], ("bob", (0, np.inf, 0))], 1.0, 0.0), "points is .*finite"),
        (lambda: dl.Spring(GOOD, "stiff", 0.0), "'stiff' was given .* a number is needed"),
        (lambda: 3.0, "3.0 cannot be attached"),
        (lambda: Sticking("bob"), "Sticking.* cannot be attached"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(dl.ModelError, match=message):
        hanging(make())


class Bushing(Coupling):
    """Of a user: soft in three directions of the world, at one point."""

    needs = "one point"

    path: Path = eqx.field(converter=as_path)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N/m", shape=(3,), nonnegative=True))
    rest: float = 0.0

    def wrenches(self, frames, twists):
        x = frames.translation
        pull = jax.tree.map(lambda k, x: -k * (x - self.rest), Vector(*self.stiffness), x)
        return Force(jax.tree.map(jnp.zeros_like, pull), pull)


class Unsure(Bushing):
    needs = "a point"


def test_fields_of_a_coupling_of_ones_own_have_the_shapes_that_they_declare():
    """Whatever their names; what is not declared need only be finite."""
    stiffness = np.array((1.0, 2.0, 3.0))
    system = hanging(Bushing(GOOD[1:], stiffness))
    q, last = system.neutral(), len(system.body_names) - 1
    arm = np.array((1.0, 0.0, 0.0))
    pull = -stiffness * (np.asarray(dl.body_poses(system, q))[last] @ (*arm, 1.0))[:3]
    wrench = np.concatenate((np.cross(arm, pull), pull))
    expected = dl.geometric_jacobian(system, q, last).T @ wrench
    np.testing.assert_allclose(dl.passive_force(system, q, 0 * expected), expected, atol=1e-14)
    for bushing, message in (
        (Bushing(GOOD[1:], 1.0), r"stiffness has shape \(\), needed is \(3,\)"),
        (
            Bushing(GOOD[1:], (1, -1, 1)),
            r"stiffness is \[1.0, -1.0, 1.0\] N/m; it must not be negative",
        ),
        (Bushing(GOOD[1:], (1, 1, 1), np.nan), "rest is nan; it must be finite"),
        (Bushing(GOOD[1:], (1, 1, 1), np.full(3, np.nan)), "rest is .*; it must be finite"),
        (Bushing(GOOD, (1, 1, 1)), "its path has 2 points; give it one point"),
        (Unsure(GOOD[1:], (1, 1, 1)), "needs 'a point'; let it say one point, two points, "),
    ):
        with pytest.raises(dl.ModelError, match=message):
            hanging(bushing)
