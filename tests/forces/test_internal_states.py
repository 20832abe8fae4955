"""Forces and actuators with internal states: orders, derivatives, stiff laws, what is refused."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
import difflie.control as dc
import difflie.quantities as dq
from difflie.integrators import METHODS, by_name
from difflie.spatial import Force

Q, V = jnp.array([0.3, 0.8]), jnp.array([0.1, -0.2])


class Maxwell(dl.StatefulJointForce):
    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    damping: jax.Array = eqx.field(converter=dl.number(unit="N m s/rad", positive=True))
    states = (("stretch", "rad"),)

    def law(self, x, v, z):
        effort = -self.stiffness * z[0]
        return effort, jnp.stack([v + effort / self.damping])


class Bristle(dl.StatefulJointForce):
    """Dahl's friction, whose only rest is where nothing moves."""

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    level: jax.Array = eqx.field(converter=dl.number(unit="N m", positive=True))
    states = (("deflection", "rad"),)

    def law(self, x, v, z):
        speed = jnp.sqrt(v * v + 1e-16)
        return -self.stiffness * z[0], v - self.stiffness / self.level * speed * z


class Lag(dl.Stateful, dl.Actuator):
    """Two states: a torque that follows a filtered command, and less so as the joint turns."""

    tau: jax.Array = eqx.field(converter=dl.number(unit="s", positive=True))
    states = (("filtered", "N m"), ("torque", "N m"))

    def torque(self, command, q, v, z):
        return z[1] * (1 + 0.1 * v), jnp.stack(
            [command - z[0], z[0] - z[1] - 0.1 * z[1] ** 3]
        ) / self.tau


class Puff(dl.StatefulCoupling):
    """A force along x of a body that fades as it is used up."""

    needs = "one point"
    path: dl.Path = eqx.field(converter=dl.as_path)
    states = (("charge", "N"),)

    def law(self, frames, twists, z):
        push = jax.tree.map(lambda x: 0 * x, twists)
        force = eqx.tree_at(lambda f: f.x, push.linear, push.linear.x + z[0])
        return Force(push.angular, force), -3.0 * z - twists.linear.x


def command(t, q, v):
    return jnp.stack([2 * jnp.sin(3 * t), -q[0]])


@pytest.fixture(scope="module")
def arm():
    rods = [
        dl.Body(
            name=name,
            joint=dl.Revolute(axis=axis),
            mass=1.0,
            com=(0, 0, -0.5),
            inertia=np.diag([0.1, 0.1, 0.02]),
        )
        for name, axis in (("upper", (1, 0, 0)), ("lower", (0, 1, 0)))
    ]
    return dl.chain(rods)


@pytest.fixture(scope="module")
def system(arm):
    parts = (
        Maxwell("upper", 50.0, 2.0),
        Lag(0.05, joint="lower"),
        dl.Motor("upper", max_torque=50.0),
    )
    return dl.attach(arm, *parts, Puff([("lower", (0, 0, -1.0))], z0=[0.5]))


@pytest.mark.slow
def test_names_and_starts(system):
    """Guards the order of z: actuators first; and that z0 of a part is where a motion starts."""
    assert system.nz == 4
    names = ["lower/filtered", "lower/torque", "upper/stretch", "couplings/1/charge"]
    assert [name for name, _ in system.state_labels] == names
    run = dl.simulate(system, Q, V, dt=1e-3, steps=2)
    np.testing.assert_array_equal(run.z[0], [0, 0, 0, 0.5])
    moved = dl.simulate(system, Q, V, z0=[1.0, 2.0, 0.1, 0.0], dt=1e-3, steps=2)
    np.testing.assert_array_equal(moved.z[0], [1.0, 2.0, 0.1, 0.0])


# Methods that integrate z with the motion, solve for it in the middle and at the end, and split.
QUICK = "RKMK4", "VariationalMidpoint", "GeneralizedAlpha", "StormerVerlet"
# EnergyMomentum knows no forces with moments, as of the puff.
# These differ from others in their tableaux alone, and z is but one more part of the point.
ALIKE = "CG2 CG4 CF2 CF3 RKMK2 RKMK3 RKMK5 RKMK6".split()
SLOW = [m.name for m in METHODS if m.name not in (*QUICK, *ALIKE, "EnergyMomentum")]


@pytest.fixture(scope="module")
def exact(system):
    return dl.simulate(system, Q, V, dt=5e-4, duration=0.2, control=command, method="RKMK8")


def errors(method, system, exact, dts):
    ends = []
    for dt in dts:
        run = dl.simulate(system, Q, V, dt=dt, duration=0.2, control=command, method=method)
        assert bool(run.result.ok)
        end = jnp.concatenate((run.q[-1] - exact.q[-1], run.z[-1] - exact.z[-1]))
        ends.append(float(jnp.max(jnp.abs(end))))
    return ends


@pytest.mark.slow("RKMK4", "VariationalMidpoint", "GeneralizedAlpha")
@pytest.mark.thorough(
    "GaussLegendre6", "BDF1", "RungeKutta43", "BogackiShampine32", "Rattle", "CF4", "CG3"
)
@pytest.mark.parametrize(
    "method", [*QUICK, *(pytest.param(m, marks=pytest.mark.slow) for m in SLOW)]
)
def test_order(system, exact, method):
    """Guards that z is integrated with the order of the method."""
    found = by_name(method)
    order = getattr(found, "order", 2)
    coarse, fine = errors(method, system, exact, (4e-3, 2e-3))
    if fine > 1e-10 and not hasattr(found, "rtol"):
        assert np.log2(coarse / fine) > order - 0.25
    assert fine < (1e-2 if order == 1 else 1e-3 if order == 2 else 1e-5)


SLOWER = [
    pytest.param(m, marks=pytest.mark.slow) for m in ("VariationalMidpoint", "ImplicitMidpoint")
]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GeneralizedAlpha", *SLOWER])
def test_stiff_bristles_are_solved_in_the_step(arm, method):
    """Guards states that are ten times as fast as the step, and a machine that comes to rest."""
    rubbed = dl.attach(arm, Bristle("upper", 1e5, 0.5), Bristle("lower", 1e5, 0.2))
    exact = dl.simulate(rubbed, Q, V, dt=2e-5, duration=0.2, method="GaussLegendre4")
    run = dl.simulate(rubbed, Q, V, dt=1e-3, duration=0.2, method=method)
    assert bool(run.result.ok)
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=5e-5)
    np.testing.assert_allclose(run.z[-1], exact.z[-1], atol=1e-6)


def value(system, p, method, adjoint=None):
    parts = lambda s: (s.couplings[0].stiffness, s.actuators[0].tau)  # noqa: E731
    changed = eqx.tree_at(parts, system, (p[0], p[1]))
    given = {} if adjoint is None else {"adjoint": adjoint}
    run = dl.simulate(
        changed, Q, V, z0=p[2:], dt=2e-3, steps=40, method=method, control=command, **given
    )
    return jnp.sum(run.q[-1] ** 2) + run.z[-1] @ jnp.arange(1.0, 5.0) + jnp.sum(run.v[-1])


P = jnp.array([50.0, 0.05, 0.1, -0.02, 0.01, 0.3])


@pytest.mark.slow
@pytest.mark.thorough("StormerVerlet", "VariationalMidpoint")
@pytest.mark.parametrize(
    "method",
    ["RKMK4", "GeneralizedAlpha", "VariationalMidpoint", "StormerVerlet", "SemiImplicitEuler"],
)
def test_derivatives(system, method):
    """Guards gradients by numbers of parts and by the start of z, in both modes."""
    gradient = jax.grad(lambda p: value(system, p, method))(P)
    along = jnp.array([1.0, 1e-3, 1e-2, 1e-2, 1e-3, 1e-2])
    forward = jax.jvp(lambda p: value(system, p, method), (P,), (along,))[1]
    np.testing.assert_allclose(gradient @ along, forward, rtol=1e-10)
    h = 1e-4
    there, back = (value(system, P + s * h * along, method) for s in (1, -1))
    np.testing.assert_allclose(forward, (there - back) / (2 * h), rtol=1e-6)


@pytest.mark.slow
def test_checkpoints_keep_the_states(system):
    """Guards that recomputed steps begin with the z that they began with."""
    direct = jax.grad(lambda p: value(system, p, "GaussLegendre4"))(P)
    other = jax.grad(lambda p: value(system, p, "GaussLegendre4", dl.RecursiveCheckpoint()))(P)
    np.testing.assert_allclose(other, direct, rtol=1e-8)


# One method of each way to integrate z: as a part of the point, explicitly and implicitly, within
# the equations of the step, and in halves around it.
EACH_WAY = "StormerVerlet", "ImplicitMidpoint", "VariationalMidpoint", "EnergyMomentum"
OFTEN = [(name, "float64") for name in EACH_WAY]
OFTEN += [(name, "float32") for name in ("StormerVerlet", "ImplicitMidpoint")]
OTHERS = [(m.name, "float64") for m in METHODS if m.time_symmetric]
OTHERS += [(name, "float32") for name in EACH_WAY]
IN_BOTH = [
    *OFTEN,
    *(pytest.param(*c, marks=pytest.mark.thorough) for c in OTHERS if c not in OFTEN),
]


@pytest.mark.slow
@pytest.mark.thorough("EnergyMomentum-float64", "*-float32", "VariationalMidpoint-float64")
@pytest.mark.parametrize(("method", "dtype"), IN_BOTH)
def test_symmetric_methods_recover_the_states(method, dtype):
    """Guards that stepping back undoes what changes z, whether in the method or beside it."""
    rod = dl.Body(name="rod", mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.02]))
    rod = dataclasses.replace(rod, joint=dl.Revolute(axis=(1, 0, 0)))
    bare = dl.attach(dl.chain([rod]), Maxwell("rod", 50.0, 2.0), Lag(0.05, joint="rod"))
    bare = bare.astype(dtype)
    q0, v0 = (x[:1].astype(dtype) for x in (Q, V))
    given = {"dt": 2e-3, "steps": 24, "save_every": 8, "method": method}
    given["control"] = lambda t, q, v: 2 * jnp.sin(3 * t) - q

    def reached(p, adjoint):
        parts = lambda s: (s.couplings[0].stiffness, s.actuators[0].tau)  # noqa: E731
        changed = eqx.tree_at(parts, bare, (p[0], p[1]))
        run = dl.simulate(changed, q0, v0, z0=p[2:], adjoint=adjoint, **given)
        weights = jnp.arange(1.0, 4.0, dtype=dtype)
        return jnp.sum(run.q**2) + jnp.sum(run.z @ weights) + jnp.sum(run.v[-1])

    p = P[:5].astype(dtype)
    direct, other = (jax.grad(reached)(p, a) for a in (dl.Direct(), dl.Reversible(tolerance=1e-2)))
    np.testing.assert_allclose(other, direct, rtol=1e-10 if dtype == "float64" else 1e-3)
    with pytest.raises(TypeError):
        jax.jvp(lambda p: reached(p, dl.Reversible()), (p,), (p,))


@pytest.mark.slow
def test_single_precision_and_steps(system):
    """Guards f32, and that steps one by one are the run."""
    run = dl.simulate(system, Q, V, dt=1e-3, steps=3, control=[0.5, 0.2])
    q, v, z = Q, V, None
    for _ in range(3):
        q, v, solved, z = dl.step(system, q, v, 1e-3, z=z, control=[0.5, 0.2])
        assert bool(solved)
    np.testing.assert_allclose(z, run.z[-1], rtol=1e-12)
    np.testing.assert_allclose(q, run.q[-1], rtol=1e-12)
    single = system.astype("float32")
    given = {"dt": 1e-3, "steps": 3, "method": "StormerVerlet"}
    split = [
        dl.simulate(s, *at, **given)
        for s, at in ((single, (Q.astype("float32"), V.astype("float32"))), (system, (Q, V)))
    ]
    assert split[0].z.dtype == jnp.float32
    np.testing.assert_allclose(split[0].z, split[1].z, atol=1e-6)
    low = dl.simulate(
        single,
        Q.astype("float32"),
        V.astype("float32"),
        dt=1e-3,
        steps=3,
        control=jnp.array([0.5, 0.2], "float32"),
    )
    assert low.z.dtype == jnp.float32
    np.testing.assert_allclose(low.z, run.z, atol=1e-6)


class Slow(dl.Actuator):
    """A command that acts a step later: a memory."""

    def init(self, command, q, v):
        return command

    def torque(self, command, q, v, memory):
        return memory.kept, memory._replace(kept=command)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RKMK4", "GeneralizedAlpha"])
def test_memories_beside_states(arm, method):
    """Guards a memory and internal states in one machine: a constant command is not delayed."""
    lag = Lag(0.05, joint="lower")
    slow, plain = (dl.attach(arm, lag, a) for a in (Slow(joint="upper"), dl.Drive("upper")))
    given = {"dt": 1e-3, "steps": 5, "control": [1.0, 0.5], "method": method}
    runs = [dl.simulate(system, Q, V, **given) for system in (slow, plain)]
    np.testing.assert_allclose(runs[0].z, runs[1].z, rtol=1e-12)
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=1e-12)


@pytest.mark.slow
def test_quantities_and_events_see_the_states(system):
    """Guards torques along a run, which depend on z, and the shorter last step at an event."""
    run = dl.simulate(
        system, Q, V, dt=1e-3, steps=300, control=command, until=lambda t, q, v: 0.1234 - t
    )
    assert bool(run.result.ending.event == 0)
    effort = dq.along(dq.Effort(), system, run)
    np.testing.assert_allclose(effort[:, 1], run.z[:, 1] * (1 + 0.1 * run.v[:, 1]), rtol=1e-12)
    exact = dl.simulate(system, Q, V, dt=run.t[-1] / 200, steps=200, control=command)
    np.testing.assert_allclose(run.z[-1], exact.z[-1], rtol=1e-6)


@pytest.mark.slow
def test_tables_have_the_states(system, tmp_path):
    """Guards that what is written of a run has z, with names and units."""
    run = dl.simulate(system, Q, V, dt=1e-3, steps=2)
    run.to_csv(system, tmp_path / "run.csv")
    head = (tmp_path / "run.csv").read_text().splitlines()[0]
    assert "z lower/torque [N m]" in head and "z couplings/1/charge [N]" in head


@pytest.mark.slow
def test_linearised_step(system):
    """Guards A and B with states: against differences of a step."""
    z = jnp.array([0.1, 0.2, 0.01, 0.3])
    A, B = dl.linearize(system, Q, V, 1e-2, z=z, control=[0.5, 0.2])
    assert A.shape == (8, 8) and B.shape == (8, 2)
    x = jnp.concatenate((Q, V, z))

    def end(x, u):
        q, v, _, z = dl.step(system, x[:2], x[2:4], 1e-2, z=x[4:], control=u)
        return jnp.concatenate((q, v, z))

    u, h = jnp.array([0.5, 0.2]), 1e-6
    for i in (2, 5, 6):
        step = jnp.zeros(8).at[i].set(h)
        np.testing.assert_allclose(
            A[:, i], (end(x + step, u) - end(x - step, u)) / (2 * h), rtol=1e-6, atol=1e-8
        )


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["FDDP", "InteriorPoint"])
def test_optimal_control_of_a_lagging_motor(arm, solver):
    """Guards that a problem carries z: the plan is the motion that simulate finds."""
    machine = dl.attach(arm, Lag(0.05, joint="lower"), dl.Motor("upper", max_torque=50.0))
    still, goal = jnp.zeros(2), jnp.array([0.3, 0.3])
    problem = dc.Problem(
        machine,
        still,
        still,
        dt=0.02,
        steps=25,
        method="RKMK4",
        running=[dc.Effort(1e-2)],
        final=[dc.State(goal, 50.0)],
    )
    plan = dc.solve(problem, getattr(dc, solver)())
    assert bool(plan.result.converged)
    replayed = dl.simulate(
        machine, jnp.zeros(2), jnp.zeros(2), dt=0.02, steps=25, control=dl.ZeroOrderHold(plan.u)
    )
    np.testing.assert_allclose(replayed.q[-1], plan.q[-1], atol=1e-6)
    np.testing.assert_allclose(replayed.z[-1], plan.own[0][-1], atol=1e-6)


def test_what_is_refused(arm, system):
    """Guards one clear sentence for a law, a start and a machine that do not fit."""

    class Wrong(Maxwell):
        def law(self, x, v, z):
            return -z[0]

    class WrongPuff(Puff):
        def law(self, frames, twists, z):
            return z

    class Half(dl.Actuator):
        states = (("lost", ""),)

        def torque(self, command, q, v, z):
            return z[0], z

    for part, words in (
        (Wrong("upper", 1.0, 1.0), "let law return the force and dz/dt"),
        (WrongPuff([("lower", (0, 0, 0))]), "let law return the force and dz/dt"),
        (
            Maxwell("upper", 1.0, 1.0, z0=[1.0, 2.0]),
            "give one number for each of its states stretch",
        ),
        (Half(joint="upper"), "derive its class from dl.Stateful first"),
    ):
        with pytest.raises(dl.ModelError, match=words):
            dl.attach(arm, part)
    with pytest.raises(ValueError, match="no actuator or coupling has internal states"):
        dl.simulate(arm, Q, V, z0=[1.0])
    with pytest.raises(ValueError, match="z0"):
        dl.simulate(system, Q, V, z0=[1.0])


def test_servos_beside_states_limit_the_step():
    """Guards what methods that integrate states beside the motion are asked of stiff servos."""
    rod = dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.3, 0, 0))
    servo = dl.PositionServo("rod", kp=1e6)
    system = dl.attach(dl.chain([rod]), Maxwell("rod", 50.0, 2.0), servo)
    with pytest.warns(UserWarning, match="SemiImplicitEuler does not resolve its stiff"):
        dl.simulate(system, [0.0], [0.0], dt=1e-2, steps=1, method="SemiImplicitEuler")
