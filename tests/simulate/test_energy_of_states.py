"""Energy that internal states store and lose, and steps that do not resolve their rates."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
import difflie.quantities as dq

Q, V = jnp.array([0.3, 0.8]), jnp.array([0.5, -0.2])


class Maxwell(dl.StatefulJointForce):
    """A spring and a damper in series; the spring stores energy."""

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    damping: jax.Array = eqx.field(converter=dl.number(unit="N m s/rad", positive=True))
    states = (("stretch", "rad"),)

    def law(self, x, v, z):
        effort = -self.stiffness * z[0]
        return effort, jnp.stack([v + effort / self.damping])

    def potential(self, x):
        return self.stiffness * self.z[0] ** 2 / 2


class Bristle(dl.StatefulJointForce):
    """Dahl's friction."""

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    level: jax.Array = eqx.field(converter=dl.number(unit="N m", positive=True))
    states = (("deflection", "rad"),)

    def law(self, x, v, z):
        speed = jnp.sqrt(v * v + 1e-16)
        return -self.stiffness * z[0], v - self.stiffness / self.level * speed * z


class Circuit(dl.Stateful, dl.Actuator):
    """Two states that swing, as of a coil and a capacitor."""

    frequency: jax.Array = eqx.field(converter=dl.number(unit="rad/s", positive=True))
    states = (("current", "A"), ("charge", "A s"))

    def torque(self, command, q, v, z):
        w = self.frequency
        return z[0], jnp.stack([command - w * w * z[1], z[0]])


def rods(**numbers):
    given = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.diag([0.1, 0.1, 0.02])}
    joints = ("upper", (1, 0, 0)), ("lower", (0, 1, 0))
    arm = dl.chain([dl.Body(name=n, joint=dl.Revolute(axis=a), **given) for n, a in joints])
    return arm.replace(**{k: jnp.array(x) for k, x in numbers.items()})


def swung(t, q, v):
    return jnp.stack([2 * jnp.sin(3 * t), -q[0]])


def unaccounted(system, method, dt):
    """The change of the energy less what came in and was lost, in J, by Simpson's rule."""
    steps = round(0.4 / dt)
    run = dl.simulate(system, Q, V, z0=[0.1], dt=dt, steps=steps, control=swung, method=method)
    # The last command of a run is that of its last step, and not that at its end.
    run = dataclasses.replace(run, u=jax.vmap(swung)(run.t, run.q, run.v))
    total = sum(run.energy(system))
    np.testing.assert_allclose(dq.along(dq.Energy(), system, run)[:, 2], total, rtol=1e-12)
    rate = dq.along(dq.Power(), system, run).sum(axis=1) - dq.along(dq.Dissipation(), system, run)
    weights = np.full(steps + 1, 2.0)
    weights[1::2], weights[[0, -1]] = 4.0, 1.0
    return float(total[-1] - total[0] - dt / 3 * weights @ rate)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "order"),
    [("RKMK4", 4), ("GeneralizedAlpha", 2), ("StormerVerlet", 2), ("EnergyMomentum", 2)],
)
def test_books_close_to_the_order(method, order):
    """Guards energy, power and losses of springs, dampers, friction and states together."""
    arm = rods(damping=[0.1, 0.2], friction=[0.05, 0.0], friction_velocity=[0.5, 0.5])
    parts = (Maxwell("upper", 50.0, 2.0),)
    if method != "EnergyMomentum":
        parts += (dl.Spring([(None, (0, 0.5, 0)), ("lower", (0, 0, -0.5))], 20.0, 0.3),)
    system = dl.attach(arm, *parts)
    coarse, fine = (abs(unaccounted(system, method, dt)) for dt in (0.02, 0.01))
    assert fine < (1e-4 if order == 4 else 1e-2)
    assert np.log2(coarse / fine) > order - 0.4


def test_what_a_state_loses():
    """Guards the loss of a Maxwell element, that of its damper: (k z)^2 / d."""
    system = dl.attach(rods(), Maxwell("upper", 50.0, 2.0))
    run = dl.simulate(system, Q, V, z0=[0.1], dt=1e-3, steps=5)
    lost = dq.along(dq.Dissipation(), system, run)
    np.testing.assert_allclose(lost, (50.0 * run.z[:, 0]) ** 2 / 2.0, rtol=1e-10)
    bare = jax.vmap(lambda q, v: dl.energy(rods(), q, v)[1])(run.q, run.v)
    stored = run.energy(system)[1] - bare
    np.testing.assert_allclose(stored, 25.0 * run.z[:, 0] ** 2, rtol=1e-10, atol=1e-12)


def found(system, method="RKMK4", dt=1e-3, v=V):
    run = dl.simulate(system, Q, v, dt=dt, steps=1, method=method)
    return run.result.resolution


@pytest.mark.slow
def test_rates_of_states_are_looked_at():
    """Guards the numbers: of a relaxation, of what swings, and of a spring behind a state."""
    relaxed = found(dl.attach(rods(), Maxwell("upper", 50.0, 2.0)))
    np.testing.assert_allclose(relaxed.rate, 1e-3 * 50.0 / 2.0, rtol=1e-10)
    swinging = found(dl.attach(rods(), Circuit(300.0, joint="lower")))
    np.testing.assert_allclose(swinging.rate, 0.3, rtol=0.1)
    inverse = np.linalg.inv(dl.mass_matrix(rods(), Q))
    np.testing.assert_allclose(relaxed.stiffness, 1e-3 * np.sqrt(50.0 * inverse[0, 0]), rtol=1e-6)
    assert relaxed.good and found(rods(damping=[0.1, 0.1])).rate == 0


@pytest.mark.slow
def test_a_state_that_is_too_fast_is_named():
    """Guards the sentence, and that methods which solve for z have no such limit."""
    rubbed = dl.attach(rods(), Bristle("lower", 1e5, 0.5))
    with pytest.warns(UserWarning, match="internal state 'lower/deflection': RKMK4 does not"):
        looked = found(rubbed)
    np.testing.assert_allclose(looked.rate, 1e-3 * 1e5 / 0.5 * 0.2, rtol=1e-6)
    assert not looked.good
    assert found(rubbed, "SemiImplicitEuler").rate == 0
    assert found(rubbed, "GeneralizedAlpha") is None
    with pytest.warns(UserWarning, match="step: internal state 'lower/deflection'"):
        dl.step(rubbed, Q, V, 2e-3, method="RKMK4")
