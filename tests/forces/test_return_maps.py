"""Internal states with a return map: springs that yield, dry bristles; with all methods."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
import difflie.quantities as dq
from difflie.integrators import METHODS, by_name

MASS, STIFFNESS, ELASTIC, SPEED = 2.0, 50.0, 0.1, 2.0


def block(*parts):
    bodies = [dl.Body(name="b", joint=dl.Prismatic(axis=(1, 0, 0)), mass=MASS)]
    return dl.attach(dl.chain(bodies), *parts)


def spring(stiffness=STIFFNESS, elastic=ELASTIC):
    return dl.YieldingSpring("b", (stiffness, 0.0, 0.0), elastic, name="s")


def exact(t):
    """The coordinate in closed form: elastic, then at the level k y, then elastic again."""
    w = np.sqrt(STIFFNESS / MASS)
    yields = np.arcsin(ELASTIC * w / SPEED) / w
    speed, level = SPEED * np.cos(w * yields), STIFFNESS * ELASTIC / MASS
    turns, most = yields + speed / level, ELASTIC + speed**2 / (2 * level)
    assert turns < t < turns + np.pi / w  # before it yields the other way
    return most - ELASTIC + ELASTIC * np.cos(w * (t - turns)), most - ELASTIC


# Methods that carry states, solve for them at the end and in the middle, and split.
QUICK = "RKMK4", "GeneralizedAlpha", "VariationalMidpoint", "SemiImplicitEuler"
SLOW = [m.name for m in METHODS if m.name not in QUICK]


@pytest.mark.parametrize(
    "method", [*QUICK, *(pytest.param(m, marks=pytest.mark.slow) for m in SLOW)]
)
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_closed_form(method, dtype):
    """Guards that every method finds steps where the spring yields, and its motion."""
    system, found = block(spring()).astype(dtype), by_name(method)
    errors = []
    for steps in (150, 600):
        start = jnp.zeros(1, dtype), jnp.full(1, SPEED, dtype)
        run = dl.simulate(system, *start, dt=1.2 / steps, steps=steps, method=found)
        assert bool(run.result.ok), str(run)
        errors.append(np.max(np.abs(np.array([run.q[-1, 0], run.z[-1, 0]]) - exact(1.2))))
    order = min(getattr(found, "order", 2) or 2, 2)
    assert errors[1] < (2e-2 if order == 1 else 2e-4)
    assert errors[1] < 0.5 * errors[0] or errors[1] < 2e-5


@pytest.mark.parametrize("method", ["RKMK4", "SemiImplicitEuler", "GeneralizedAlpha"])
def test_derivatives(method):
    """Of a motion with yielding, by its numbers and start: both modes, and differences."""

    def end(x):
        system = block(spring(x[0], x[1]))
        run = dl.simulate(
            system, jnp.zeros(1), x[2:3], z0=x[3:4], dt=1e-2, steps=120, method=by_name(method)
        )
        return jnp.concatenate([run.q[-1], run.z[-1]])

    x, end = jnp.array([STIFFNESS, ELASTIC, SPEED, 0.01]), jax.jit(end)
    ahead, back = (jax.jit(f(end))(x) for f in (jax.jacfwd, jax.jacrev))
    columns = [(end(x + e) - end(x - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(ahead, np.stack(columns, axis=1), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ahead, back, rtol=1e-9, atol=1e-11)


class DryBristle(dl.StatefulJointForce):
    """Stiction of one's own: an elastic bristle whose anchor z slides at a level."""

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N/m", positive=True))
    level: jax.Array = eqx.field(converter=dl.number(unit="N", positive=True))
    states = (("anchor", "m"),)

    def law(self, x, v, z):
        return -self.stiffness * (x - z[0]), jnp.zeros(1)

    def return_map(self, x, z):
        most = self.level / self.stiffness
        return jnp.clip(z, x - most, x + most)


@pytest.mark.parametrize("method", ["GeneralizedAlpha", "SemiImplicitEuler"])
def test_a_dry_bristle_of_ones_own(method):
    """A block slides to a stop under Coulomb's friction, 30 times stiffer than a step of 2 ms."""
    level, stiffness = 3.0, 2e4
    system = block(DryBristle("b", stiffness, level))
    run = dl.simulate(system, [0.0], [1.0], dt=2e-3, steps=500, method=by_name(method))
    assert bool(run.result.ok)
    way = MASS / (2 * level)  # v^2 m / (2 f)
    assert abs(float(run.z[-1, 0]) - way) < 4e-3
    assert abs(float(run.q[-1, 0]) - float(run.z[-1, 0])) <= level / stiffness + 1e-9
    sliding = np.asarray(run.v[:, 0]) > 0.1
    force = stiffness * np.asarray(run.z - run.q)[sliding, 0]
    np.testing.assert_allclose(force[5:], -level, rtol=1e-9)


def test_books_of_energy():
    """Guards that a spring loses what its rest moves times its level, as `Dissipation` says."""
    system = block(spring())
    run = dl.simulate(system, [0.0], [SPEED], dt=1e-3, steps=1200)
    energy = np.sum(run.energy(system), axis=0)
    lost = STIFFNESS * ELASTIC * float(run.z[-1, 0])
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-5)
    power = np.asarray(dq.along(dq.Dissipation(), system, run))
    assert float(np.trapezoid(power, run.t)) == pytest.approx(lost, rel=1e-3)
