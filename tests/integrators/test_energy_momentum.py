"""The energy-momentum scheme: its invariants, its order, and the full equations it reduces."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import random_body, random_joint

import difflie as dl
from difflie.dynamics.natural.coordinates import natural_coordinates
from difflie.integrators import by_name
from difflie.system.kinematic_tree import Tree

METHOD = dl.EnergyMomentum()


def link(name, joint, first=False):
    """1 kg and 0.5 m, hanging down."""
    return dl.Body(
        name=name,
        joint=joint,
        position=(0.0, 0.0, 0.0 if first else -0.5),
        mass=1.0,
        com=(0.0, 0.0, -0.25),
        inertia=np.diag([0.021, 0.022, 0.004]),
    )


def chain() -> dl.System:
    """Five links with a spring over four of them, and two more."""
    system = dl.chain(
        [
            link("a", dl.Spherical(), first=True),
            link("b", dl.Revolute(axis=(1.0, 0.0, 0.0))),
            link("c", dl.Spherical()),
            link("d", dl.Revolute(axis=(0.0, 1.0, 0.0))),
            link("e", dl.Universal(axis=(1.0, 0.0, 0.0), second_axis=(0.0, 1.0, 0.0))),
        ]
    )
    side = [("a", (0.1, 0, -0.1)), ("b", (0.1, 0, -0.3)), ("d", (0, 0.1, -0.2))]
    return dl.attach(
        system,
        dl.Spring([*side, ("e", (0.05, 0, -0.4))], stiffness=20.0, rest_length=0.9),
        dl.Spring([("a", (0, 0.1, -0.2)), ("c", (0, 0.1, -0.3))], stiffness=10.0, rest_length=0.5),
        dl.Spring([("b", (0, -0.1, -0.2)), ("e", (0, -0.1, 0))], stiffness=10.0, rest_length=0.8),
    )


CHAIN = chain()
RNG = np.random.default_rng(0)
Q0 = dl.integrate(CHAIN, CHAIN.neutral(), RNG.normal(size=CHAIN.nv) * 0.4)
V0 = jnp.asarray(RNG.normal(size=CHAIN.nv))


def drift(values):
    return float(jnp.max(jnp.abs(values - values[0])))


def run_chain(steps):
    run = dl.simulate(CHAIN, Q0, V0, dt=1e-2, steps=steps, method=METHOD)
    assert bool(run.result.ok)
    return (
        drift(sum(run.states.energy(CHAIN))),
        drift(run.states.momentum(CHAIN)[:, 2]),
        drift(run.momentum(CHAIN)[:, 2]),
        float(jnp.max(run.states.constraint_error(CHAIN))),
        run,
    )


@pytest.mark.slow
def test_energy_momentum_and_constraints_of_a_chain_with_springs():
    energy, momentum, read, constraints, run = run_chain(100)
    assert energy < 1e-13
    assert momentum < 1e-14
    assert read < 1e-14
    assert constraints < 2e-15
    # What is read has the energy of the scheme, less what the node velocities have across.
    assert drift(sum(run.energy(CHAIN))) < 2e-2


@pytest.mark.thorough
def test_the_chain_over_fifty_seconds():
    energy, momentum, read, constraints, _ = run_chain(5000)
    assert energy < 2e-12
    assert momentum < 1e-13
    assert read < 1e-13
    assert constraints < 1e-14


@pytest.mark.thorough
def test_it_is_the_full_scheme_reduced():
    """Against the equations in all 12 coordinates a body, with the multipliers of rigidity."""
    natural = natural_coordinates(Tree.of(CHAIN))
    nb, h, steps = 5, 1e-2, 5
    mass = jax.scipy.linalg.block_diag(*natural.mass)
    paths = [(c.path, c.stiffness, c.rest_length) for c in CHAIN.couplings]
    index = {name: i for i, name in enumerate(CHAIN.body_names)}
    points = [natural.attached(np.array([index[b] for b in p.bodies]), p.points) for p, *_ in paths]

    def equations(q):
        axes = q.reshape(nb, 4, 3)[:, 1:]
        products = jnp.sum(axes[:, :, None] * axes[:, None], axis=-1) - jnp.eye(3)
        rigid = products[:, *np.triu_indices(3)].ravel()
        return jnp.concatenate((rigid, natural.constraints(q.reshape(nb, 4, 3))))

    def mean_gradient(q0, q1):
        total = jnp.zeros((4 * nb, 3))
        for rows, (_, k, rest) in zip(points, paths, strict=True):
            a = (rows[1:] - rows[:-1])[:, :-1].reshape(-1, 4 * nb)
            s0, s1 = a @ q0.reshape(-1, 3), a @ q1.reshape(-1, 3)
            l0, l1 = jnp.linalg.norm(s0, axis=1), jnp.linalg.norm(s1, axis=1)
            u = (s0 + s1) / (l0 + l1)[:, None]
            total = total + k * ((l0.sum() + l1.sum()) / 2 - rest) * a.T @ u
        weight = natural.mass[:, 0].reshape(-1, 1) * CHAIN.gravity
        return (total - weight).ravel()

    @jax.jit
    def newton(q0, v0, x):
        def residual(x):
            dv, mu = x[: q0.size], x[q0.size :]
            q1 = q0 + h * (v0 + dv / 2)
            jacobian = jax.jacfwd(equations)((q0 + q1) / 2)
            momentum = (mass @ dv.reshape(-1, 3)).ravel()
            balance = momentum - h * jacobian.T @ mu + h * mean_gradient(q0, q1)
            return jnp.concatenate((balance, equations(q1)))

        return x - jnp.linalg.solve(jax.jacfwd(residual)(x), residual(x))

    bodies = natural.bodies(Q0)
    q, v = bodies.ravel(), natural.velocities(bodies, Q0, V0).ravel()
    x = jnp.zeros(q.size + equations(q).size)
    run = dl.simulate(CHAIN, Q0, V0, dt=h, steps=steps, method=METHOD)
    for i in range(steps):
        for _ in range(12):
            x = newton(q, v, x)
        q, v = q + h * (v + x[: q.size] / 2), v + x[: q.size]
        np.testing.assert_allclose(run.states.bodies[i + 1].ravel(), q, atol=1e-13)
        np.testing.assert_allclose(run.states.velocities[i + 1].ravel(), v, atol=1e-11)


def mixed() -> dl.System:
    """Every joint that natural coordinates describe, with springs and armature, on a free base."""
    rng = np.random.default_rng(5)

    def joint(kind, count):
        made = random_joint(rng, kind)
        k, rest = rng.uniform(1, 20, count), rng.normal(size=count) * 0.1
        return replace(made, stiffness=tuple(k), spring_reference=tuple(rest)) if count else made

    kinds = {"Free": 0, "Universal": 2, "Planar": 3, "Fixed": 0, "Spherical": 0}
    made = [(kind, joint(kind, n)) for kind, n in kinds.items()]
    bodies = [random_body(rng, name, joint) for name, joint in made]
    bodies = [replace(b, parent=p) for b, p in zip(bodies, [None, *kinds], strict=False)]
    for kind, parent in (("Prismatic", "Universal"), ("Continuous", "Planar")):
        bodies.append(random_body(rng, kind, joint(kind, 1), parent))
    system = dl.tree(bodies, gravity=(0.0, 0.0, 0.0))
    rope = [("Fixed", (0.3, 0, 0)), ("Universal", (0, 0.2, 0)), ("Prismatic", (0, 0, 0.3))]
    return dl.attach(system, dl.Rope(rope, stiffness=30.0, rest_length=1.0))


@pytest.mark.thorough
def test_every_joint_with_springs_and_armature():
    system = mixed()
    rng = np.random.default_rng(6)
    # Armature is no part of a body, and the momentum of it is its joint's alone.
    q0 = dl.integrate(system, system.neutral(), rng.normal(size=system.nv) * 0.3)
    v0 = jnp.asarray(rng.normal(size=system.nv))
    run = dl.simulate(system, q0, v0, dt=1e-2, steps=100, method=METHOD)
    assert bool(run.result.ok)
    assert drift(sum(run.states.energy(system))) < 1e-12
    assert float(jnp.max(run.states.constraint_error(system))) < 5e-15
    inner = system.replace(armature=system.joints.armature.at[:6].set(0.0))
    run = dl.simulate(inner, q0, v0, dt=1e-2, steps=100, method=METHOD)
    np.testing.assert_allclose(run.states.momentum(inner), run.momentum(inner), atol=1e-13)
    assert drift(run.momentum(inner)) < 2e-13
    assert drift(sum(run.states.energy(inner))) < 1e-12


def small() -> dl.System:
    """A universal joint and a slide, damped, with a spring to the world and one across."""
    rng = np.random.default_rng(8)
    system = dl.chain(
        [
            random_body(rng, "a", dl.Universal(stiffness=5.0, armature=0.1)),
            random_body(rng, "b", dl.Prismatic(axis=(1.0, 1.0, 0.0), stiffness=40.0)),
            random_body(rng, "c", dl.Spherical()),
        ]
    )
    return dl.attach(
        system,
        dl.Spring([(None, (1, 1, 1)), ("b", (0.1, 0, 0))], stiffness=20.0, rest_length=1.0),
        dl.Damper([("a", (0.2, 0, 0)), ("c", (0, 0.3, 0))], damping=0.0),
    )


SMALL = small()
START = jnp.asarray([0.3, -0.2, 0.1, 1.0, 0.0, 0.0, 0.0]), jnp.asarray([1.0, -2.0, 0.5, 1, 2, 3])


@pytest.mark.slow
def test_order_two():
    """Against a Runge-Kutta method of order 4 with small steps."""
    duration = 0.2
    exact = dl.simulate(SMALL, *START, dt=duration / 400, steps=400, save_every=400)
    errors, across = [], []
    for steps in (10, 20, 40):
        run = dl.simulate(SMALL, *START, dt=duration / steps, steps=steps, method=METHOD)
        across.append(float((sum(run.states.energy(SMALL)) - sum(run.energy(SMALL)))[-1]))
        errors.append([jnp.max(jnp.abs(getattr(run, x)[-1] - getattr(exact, x)[-1])) for x in "qv"])
    order = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    np.testing.assert_allclose(order, 2, atol=0.06)
    # What is read lacks the energy of the node velocities across the joints.
    np.testing.assert_allclose(np.log2(np.array(across[:-1]) / across[1:]), 4, atol=0.3)


@pytest.mark.slow
def test_drives_and_dampers_do_the_work_they_should():
    tau = jnp.asarray([1.0, -2.0, 3.0, 0.0, 0.0, 0.0])
    held = jnp.broadcast_to(tau, (40, 6))
    run = dl.simulate(SMALL, *START, dt=2e-2, steps=40, method=METHOD, control=held)
    work = (run.q - run.q[0])[:, :3] @ tau[:3]
    gain = sum(run.states.energy(SMALL))
    np.testing.assert_allclose(gain - gain[0], work, atol=1e-12)
    damped = replace(SMALL.couplings[1], damping=jnp.asarray(3.0))
    damped = replace(SMALL, couplings=(SMALL.couplings[0], damped))
    damped = damped.replace(damping=jnp.full(6, 0.2), friction=jnp.full(6, 0.1))
    run = dl.simulate(damped, *START, dt=2e-2, steps=40, method=METHOD, control=0 * held)
    total = sum(run.states.energy(damped))
    assert bool(jnp.all(jnp.diff(total) < 0))
    assert float(total[-1]) < float(total[0]) - 5.0


@pytest.mark.slow
def test_a_step_that_is_not_solved_is_reported():
    wild = dl.simulate(SMALL, START[0], 300 * START[1], dt=0.5, steps=40, method="EnergyMomentum")
    assert not bool(wild.result.ok)
    assert "were not solved; try a smaller dt" in str(wild.result)


@pytest.mark.slow
def test_single_precision():
    system = SMALL.astype(jnp.float32)
    q0, v0 = (x.astype(jnp.float32) for x in START)
    run = dl.simulate(system, q0, v0, dt=2e-2, steps=40, method=METHOD)
    assert bool(run.result.ok)
    assert run.q.dtype == run.v.dtype == run.states.bodies.dtype == jnp.float32
    total = sum(run.states.energy(system))
    assert drift(total) < 1e-6 * float(total[0])
    assert float(jnp.max(run.states.constraint_error(system))) < 1e-6


def changed(x):
    """The small system with some of its numbers, and the start, moved by the entries of x (14,)."""
    system = SMALL.replace(
        mass=SMALL.bodies.mass + x[:3],
        position=SMALL.joints.position.at[1].add(x[3:6]),
        axis=SMALL.joints.axis.at[2].add(x[6:9]),
        inertia=SMALL.bodies.inertia.at[2].add(x[9] * jnp.eye(3)),
    )
    spring = SMALL.couplings[0]
    path = replace(spring.path, points=spring.path.points.at[1].add(x[10:13]))
    spring = replace(spring, path=path, stiffness=spring.stiffness + x[13], rest_length=1.0 + x[14])
    system = replace(system, couplings=(spring, replace(SMALL.couplings[1], damping=1.0 + x[15])))
    return system, START[0], START[1].at[:2].add(x[16:18])


@pytest.mark.slow
def test_gradients():
    """By forward and reverse mode, against central differences, entry by entry."""
    weight = jnp.asarray(np.random.default_rng(9).normal(size=13))

    def value(x):
        run = dl.simulate(*changed(x), dt=2e-2, steps=10, method=METHOD)
        return weight @ jnp.concatenate((run.q[-1], run.v[-1]))

    x, way = jnp.zeros(18), jnp.asarray(np.random.default_rng(10).normal(size=18))
    both = jax.jit(jax.value_and_grad(value))
    _, reverse = both(x)
    step = 1e-5
    difference = [(both(step * e)[0] - both(-step * e)[0]) / (2 * step) for e in jnp.eye(18)]
    np.testing.assert_allclose(reverse, jnp.stack(difference), rtol=1e-6, atol=1e-7)
    _, forward = jax.jit(lambda x: jax.jvp(value, (x,), (way,)))(x)
    np.testing.assert_allclose(forward, reverse @ way, rtol=1e-9)


def free_body(position, spin):
    inertia = np.diag([0.1, 0.2, 0.25])
    body = dl.Body(name="a", joint=dl.Free(), mass=2.0, com=position, inertia=inertia)
    system = dl.chain([body], gravity=(0.0, 0.0, 0.0))
    return system, system.neutral(), jnp.asarray([*spin, 0.3, 0.1, -0.2])


@pytest.mark.slow
def test_a_free_body_keeps_energy_and_all_of_its_momentum():
    system, q0, v0 = free_body((0.1, -0.05, 0.2), (1.0, 4.0, 2.0))
    run = dl.simulate(system, q0, v0, dt=1e-2, steps=1000, method=METHOD)
    assert bool(run.result.ok)
    for values in (sum(run.states.energy(system)), run.states.momentum(system)):
        assert drift(values) < 3e-13
    assert drift(run.momentum(system)) < 3e-13


def test_it_is_known_by_name():
    assert by_name("EnergyMomentum") == METHOD
    assert METHOD.order == 2


def rods(stiffness, joint):
    """Two rods without inertia about their own axis, one after the other on joints of a kind."""
    return dl.chain(
        [
            dl.Body(
                name=name,
                joint=joint,
                position=(0.0, 0.0, 0.0 if name == "a" else -0.5),
                mass=1.0,
                com=(0.0, 0.0, -0.25),
                inertia=np.diag([0.02, 0.02, 0.0]),
            )
            for name in "ab"
        ]
    ).replace(**({} if stiffness is None else {"stiffness": stiffness}))


@pytest.mark.slow
def test_directors_without_mass_and_stiff_springs():
    """Of frequencies far beyond the step: the energy stays, in steps that are all solved."""
    joint = dl.Universal(axis=(1.0, 0.0, 0.0), second_axis=(0.0, 1.0, 0.0), stiffness=1.0)
    q0, v0 = jnp.array([0.4, -0.3, 0.01, 0.2]), jnp.array([1.0, 2.0, -0.5, 1.0])

    @jax.jit
    def run(stiffness):
        system = rods(stiffness, joint)
        run = dl.simulate(system, q0, v0, dt=1e-2, steps=200, method=METHOD)
        return run.result, sum(run.states.energy(system)), run.states.constraint_error(system)

    for k, rounding in ((0.0, 1e-14), (1e4, 1e-13)):
        result, total, error = run(jnp.array([0.0, 0.0, k, 0.0]))
        assert bool(result.ok)
        assert drift(total) < rounding * (20 + k * 0.01**2)
        assert float(jnp.max(error)) < 2e-15


@pytest.mark.slow
def test_a_motion_without_mass_is_reported():
    system = rods(None, dl.Spherical())
    q0 = dl.integrate(system, system.neutral(), jnp.array([0.4, 0.2, 0.1, -0.3, 0.2, 0.1]))
    run = dl.simulate(system, q0, jnp.ones(6), dt=1e-2, steps=3, method=METHOD)
    assert not bool(run.result.ok)
