"""Steps of machines with constraints, differentiated in closed form for all directions at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import control as dc
from difflie.constraints import NullSpace
from difflie.control.discretization import Discretization, Motion, Point
from difflie.control.model import steps_to_first_order

MASS = {"mass": 1.5, "com": (0.1, -0.05, 0.2), "inertia": np.diag((0.3, 0.4, 0.5))}


def ball_on_a_rod():
    top = dl.chain([dl.Body(name="top", joint=dl.Spherical(), **MASS)])
    rod = dl.Frame(None, (0.1, 0.9, 1.3)), dl.Frame("top", (0.2, 0.1, 0.0)), 1.5
    return dl.constrain(top, dl.constraints.Distance(*rod)), jnp.array([0.5, 0.5, -0.5, 0.5])


def skate():
    blade = dl.chain([dl.Body(name="blade", joint=dl.Planar(), **MASS)])
    return dl.constrain(
        blade, dl.constraints.KnifeEdge(dl.Frame(None), dl.Frame("blade"))
    ), jnp.array([0.1, 0.2, 0.3])


def fourbar():
    leg = dl.load("configs/fourbar_leg.urdf", loops="configs/fourbar_leg.loops.toml")
    return leg, jnp.array([-0.3, 0.8, 0.1, -0.6])


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.thorough("ball_on_a_rod-how0-0.03")
@pytest.mark.parametrize(
    ("machine", "how", "off"),
    [
        (ball_on_a_rod, {}, 0.03),
        pytest.param(ball_on_a_rod, {}, 0.0, marks=SLOW),
        pytest.param(skate, {}, 0.0, marks=SLOW),
        pytest.param(ball_on_a_rod, {"stabilisation": NullSpace()}, 0.0, marks=SLOW),
        pytest.param(fourbar, {"method": "RKMK4"}, 0.0, marks=SLOW),
        pytest.param(fourbar, {"method": "RKMK4"}, 0.03, marks=SLOW),
    ],
)
def test_against_differences(machine, how, off):
    """Also where the guess of a search has left the constraints."""
    system, q = machine()
    q, v = dl.assemble(system, q, jnp.linspace(1.0, -0.5, system.nv))
    given = {"method": "SemiImplicitEuler", "dt": 0.02, "steps": 1, **how}
    knots = Discretization.of(dc.Problem(system, q, v, running=[dc.Effort(1.0)], **given))
    q = dl.integrate(system, q, off * jnp.linspace(1.0, -1.0, system.nv))
    x, u, k = Point(q, v, jnp.zeros(0)), jnp.linspace(1.0, -2.0, knots.nu), jnp.asarray(0.0)
    two = jax.tree.map(lambda a: jnp.stack((a, a)), x)
    gap, D = steps_to_first_order(knots, Motion(two, u[None]))

    @jax.jit
    def moved(d):
        return knots.difference(
            x, knots.step(knots.retract(x, d[: knots.nx]), u + d[knots.nx :], k)
        )

    np.testing.assert_allclose(gap[0], moved(jnp.zeros(D.shape[2])), atol=1e-12)
    for column, e in zip(D[0].T, 1e-5 * np.eye(D.shape[2]), strict=True):
        np.testing.assert_allclose(column, (moved(e) - moved(-e)) / 2e-5, atol=1e-7)
