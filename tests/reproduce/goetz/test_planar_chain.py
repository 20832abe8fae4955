"""The planar chain against a chain of the package's own bodies, and against geometry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError
from planar import PHI, RATE, ROUTES, two_links

import difflie as dl
from difflie.reproduce.goetz.chain import PlanarChain, PlanarSprings, angles, mechanics


@jax.jit
def of_angles(chain, phi, rate):
    return (
        chain.mass_matrix(phi),
        chain.acceleration(phi, rate),
        chain.kinetic_energy(phi, rate),
        chain.potential(phi),
        chain.rate(phi, chain.mass_matrix(phi) @ rate),
    )


@jax.jit
def of_centres(chain, phi, rate):
    q, v = jax.jvp(lambda phi: chain.centres(phi).ravel(), (phi,), (rate,))
    problem = mechanics(chain)
    return {
        "angles": angles(chain, q),
        "kinetic": problem.kinetic_energy(v),
        "constraint": problem.constraint(q),
        "constraint rate": jax.jacfwd(problem.constraint)(q) @ v,
        "potential": problem.potential(q),
    }


def test_dynamics_are_those_of_the_same_bodies():
    chain = two_links(routes=())
    bodies = [
        dl.Body(
            name=f"link {i}",
            joint=dl.Revolute(axis=(0, 0, 1)),
            position=(0.0 if i == 0 else float(chain.length[i - 1]), 0, 0),
            com=(*map(float, chain.com[i]), 0),
            mass=float(chain.mass[i]),
            inertia=np.diag((1.0, 1.0, 1.0)) * float(chain.inertia[i]),
        )
        for i in range(2)
    ]
    system = dl.chain(bodies, gravity=(0, -float(chain.gravity), 0))
    mass, acceleration, kinetic, potential, rate = of_angles(chain, PHI, RATE)
    np.testing.assert_allclose(mass, dl.mass_matrix(system, PHI), rtol=1e-14)
    expected = dl.forward_dynamics(system, PHI, RATE, jnp.zeros(2))
    np.testing.assert_allclose(acceleration, expected, rtol=1e-13)
    np.testing.assert_allclose((kinetic, potential), dl.energy(system, PHI, RATE), rtol=1e-14)
    np.testing.assert_allclose(rate, RATE, rtol=1e-14)


@pytest.mark.parametrize("case", ROUTES)
def test_centres_of_mass_say_the_same_as_angles(case):
    chain = two_links(ROUTES[case])
    _, _, kinetic, potential, _ = of_angles(chain, PHI, RATE)
    seen = of_centres(chain, PHI, RATE)
    np.testing.assert_allclose(seen["angles"], PHI, rtol=1e-14)
    np.testing.assert_allclose(seen["kinetic"], kinetic, rtol=1e-14)
    np.testing.assert_allclose(seen["potential"], potential, rtol=1e-14)
    np.testing.assert_allclose(seen["constraint"], 0, atol=1e-15)
    np.testing.assert_allclose(seen["constraint rate"], 0, atol=1e-14)


@pytest.mark.parametrize("case", ["mono", "multi"])
def test_spring_energy_by_geometry(case):
    """The lengths from the fastenings in space, with rotation matrices."""
    chain = two_links(ROUTES[case])
    springs = chain.springs
    joint, angle, fastening = np.zeros(2), 0.0, np.array((0.0, springs.fastening[0]))
    stretch = []
    for i in range(2):
        angle += PHI[i]
        x, y = np.array((np.cos(angle), np.sin(angle))), np.array((-np.sin(angle), np.cos(angle)))
        joint = joint + chain.length[i] * x
        end = joint + springs.fastening[i + 1] * y
        stretch.append(np.linalg.norm(end - fastening) - springs.slack[i])
        fastening = end
    expected = sum(
        k * sum(stretch[i] for i in route) ** 2 / 2
        for k, route in zip(springs.stiffness, springs.routes, strict=True)
    )
    without = of_angles(two_links(()), PHI, RATE)[3]
    np.testing.assert_allclose(of_angles(chain, PHI, RATE)[3] - without, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("routes", "segments", "slack", "gradient"),
    [
        # Taut, of no slack length: a linear spring, also where its ends coincide.
        (((0,), (1,)), ((0.3, 0.4), (0, 0)), (0, 0), ((0.3, 0.4), (0, 0))),
        # Slack, and a single point: no force.
        (((0,), (1,)), ((0.03, 0.04), (0, 0)), (0.1, 0.1), ((0, 0), (0, 0))),
        # A segment without length has no direction; the other one feels the whole spring.
        (((0, 1),), ((0.3, 0.4), (0, 0)), (0.1, 0.1), ((0.18, 0.24), (0, 0))),
        (((0, 1),), ((0.3, 0.4), (0, 0.1)), (0.4, 0.4), ((0, 0), (0, 0))),
    ],
)
def test_spring_force_at_special_points(routes, segments, slack, gradient):
    springs = PlanarSprings(jnp.array(slack, float), jnp.zeros(3), jnp.ones(len(routes)), routes)

    @jax.jit
    def derivatives(segments):
        return jax.grad(springs.energy)(segments), jax.hessian(springs.energy)(segments)

    slope, curvature = derivatives(jnp.array(segments, float).T)
    np.testing.assert_allclose(slope.T, gradient, atol=1e-15)
    assert np.all(np.isfinite(curvature))
    if slack[0] == 0:
        np.testing.assert_allclose(curvature[:, 1, :, 1], np.eye(2), atol=1e-15)


def test_shapes_are_checked():
    """By the shapes that the fields declare: one spring segment and one mass for each link."""
    chain = two_links()
    two = (chain.length, chain.com)
    with pytest.raises(TypeCheckError, match="mass"):
        PlanarChain(*two, jnp.ones(3), chain.inertia, chain.gravity, chain.springs)
    with pytest.raises(TypeCheckError, match="fastening"):
        PlanarSprings(jnp.ones(2), jnp.ones(2), jnp.ones(2), ROUTES["mono"])
