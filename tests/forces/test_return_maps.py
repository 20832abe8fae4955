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


@pytest.mark.slow("GeneralizedAlpha", "RKMK4")
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


class Clutch(dl.Stateful, dl.Actuator):
    """A clutch that holds its joint against the command, and slips at some torque."""

    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    most: jax.Array = eqx.field(converter=dl.number(unit="N m", positive=True))
    states = (("plate", "rad"),)

    def torque(self, command, q, v, z):
        return command - self.stiffness * (q - z[0]), jnp.zeros(1)

    def return_map(self, q, z):
        reach = self.most / self.stiffness
        return jnp.clip(z, q - reach, q + reach)


@pytest.mark.parametrize("method", ["RKMK4", "SemiImplicitEuler"])
def test_an_actuator_with_a_return_map(method):
    """A clutch under a steady torque slips with the rest of it, and holds a smaller one."""
    bodies = [dl.Body(name="b", joint=dl.Revolute(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))]
    system = dl.attach(dl.chain(bodies), Clutch(400.0, 2.0, joint="b", name="clutch"))
    run = dl.simulate(system, [0.0], [0.0], control=[3.0], dt=1e-3, steps=1000, method=method)
    slips = np.arccos(1 - 2 / 3) / 20  # its angle is 3 / 400 (1 - cos 20 t) until it slips
    speed = 3 / 20 * np.sin(20 * slips) + (3 - 2) * (1 - slips)
    assert float(run.v[-1, 0]) == pytest.approx(speed, rel=2e-3)
    assert float(run.q[-1, 0] - run.z[-1, 0]) == pytest.approx(2 / 400, rel=1e-9)
    held = dl.simulate(system, [0.0], [0.0], control=[0.9], dt=1e-3, steps=1000, method=method)
    assert np.abs(held.z).max() == 0 and np.abs(held.q).max() < 2 * 0.9 / 400 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["SemiImplicitEuler", "GeneralizedAlpha", "RKMK4"])
def test_rotations_and_tendons_that_yield(method):
    """Guards return maps between bodies and along tendons: methods of all kinds agree."""
    box = {"mass": 1.0, "inertia": 0.1 * np.eye(3), "com": (0.1, 0.2, 0.0)}
    bodies = [
        dl.Body(name="c", joint=dl.Spherical(name="ball"), **box),
        dl.Body(name="s", joint=dl.Prismatic(axis=(0, 1, 1)), position=(0, 1, 0), **box),
    ]
    along = dl.SpatialTendon([(None, (0.0, 0.5, 0.2)), ("c", (0.3, 0, 0.1))])
    system = dl.attach(
        dl.chain(bodies),
        dl.YieldingRotation([(None, (0, 0, 0)), ("c", (0, 0, 0))], (9.0, 4.0, 2.0), 0.4),
        dl.YieldingTendon(
            transmission=along, stiffness=(60.0, 9.0, 0.0), elastic_stretch=0.03, z0=(0.0, 0.58)
        ),
        dl.YieldingJointTendon(
            dl.FixedTendon("s", (2.0,)), stiffness=(40.0, 9.0, 3.0), elastic_stretch=0.1, z0=(0, 0)
        ),
    )
    start = system.neutral(), jnp.array([3.0, -4.0, -5.0, 2.0])
    fine = dl.simulate(system, *start, dt=1e-4, steps=2000, save_every=2000)
    run = dl.simulate(system, *start, dt=1e-3, steps=200, save_every=200, method=by_name(method))
    assert bool(run.result.ok) and np.abs(fine.z[-1] - fine.z[0])[[1, 5, 6]].min() > 0.01
    for one, other in ((run.q, fine.q), (run.z, fine.z)):
        np.testing.assert_allclose(one[-1], other[-1], atol=3e-2 if "Euler" in method else 1e-3)
