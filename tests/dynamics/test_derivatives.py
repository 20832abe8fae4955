"""First derivatives against central differences, forward against reverse mode; second ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from trees import random_body, random_joint, random_states

import difflie as dl


def every_joint():
    """All joint types in one branched tree."""
    rng = np.random.default_rng(5)
    made = (
        ("wall", "Fixed", None),
        ("crank", "Revolute", "wall"),
        ("rod", "Prismatic", "crank"),
        ("plate", "Fixed", "rod"),
        ("screw", "Helical", "plate"),
        ("cross", "Universal", "screw"),
        ("puck", "Planar", "screw"),
        ("ball", "Spherical", "puck"),
        ("drone", "Free", "cross"),
        ("wheel", "Continuous", "plate"),
    )
    return dl.tree([random_body(rng, n, random_joint(rng, kind), up) for n, kind, up in made])


def followers():
    """A joint that two others follow."""
    rng = np.random.default_rng(6)
    laws = (None, dl.Mimic("b0", -0.7, 0.3), None, dl.Mimic("b0", 1.5, -0.2))
    kinds = ("Revolute", "Prismatic", "Spherical", "Revolute")
    bodies = [
        random_body(rng, f"b{i}", random_joint(rng, kind, mimic=law), f"b{i - 1}" if i else None)
        for i, (kind, law) in enumerate(zip(kinds, laws, strict=True))
    ]
    return dl.tree(bodies)


def forward(system, q, v, tau):
    return dl.forward_dynamics(system, q, v, tau)


def inverse(system, q, v, a, wrench):
    return dl.inverse_dynamics(system, q, v, a, wrench)


def points(system, count):
    """A general point, then one at rest with all coordinates zero, as arguments of a function."""
    q, v, a, _, wrench = (jnp.asarray(x[0]) for x in random_states(system, 1, seed=3))
    still = (system, system.neutral(), 0 * v, 0 * a, 0 * wrench)
    return (system, q, v, a, wrench)[:count], still[:count]


def central_differences(each, x):
    """The Jacobian (n, size of x), of fourth order, of a function of a batch."""
    h = 3e-4
    steps = h * jnp.eye(x.size, dtype=x.dtype)
    near, far = (each(x + k * steps) - each(x - k * steps) for k in (1, 2))
    return np.asarray((8 * near - far) / (12 * h)).T


CASES = {
    "forward": (every_joint, forward, 4),
    "inverse": (every_joint, inverse, 5),
    "forward with mimic joints": (followers, forward, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_first_derivatives(case):
    """With respect to every leaf of the system and every other argument, also at rest."""
    build, f, count = CASES[case]
    arguments = points(build(), count)
    rebuild = ravel_pytree(arguments[0])[1]

    def flat(x):
        return f(*rebuild(x))

    each = jax.jit(jax.vmap(flat))
    both_modes = jax.jit(lambda x: (jax.jacfwd(flat)(x), jax.jacrev(flat)(x)))
    leaves = jax.tree_util.tree_leaves_with_path(arguments[0])
    ends = np.cumsum([leaf.size for _, leaf in leaves])
    for point in arguments:
        x = ravel_pytree(point)[0]
        one_way, other_way = both_modes(x)
        differences = central_differences(each, x)
        for (path, leaf), end in zip(leaves, ends, strict=True):
            name, here = jax.tree_util.keystr(path), (slice(None), slice(end - leaf.size, end))
            if leaf.size:
                scale = max(np.abs(differences[here]).max(), 1e-3)
                assert np.abs(one_way[here] - differences[here]).max() < 1e-9 * scale, name
                assert np.abs(one_way[here] - other_way[here]).max() < 1e-13 * scale, name


@pytest.mark.slow
def test_second_derivatives_are_finite_and_symmetric():
    rng = np.random.default_rng(8)
    kinds = ("Free", "Revolute", "Spherical")
    system = dl.chain([random_body(rng, k, random_joint(rng, k)) for k in kinds])
    weights = jnp.asarray(rng.normal(size=system.nv))
    inside = [(system.bodies.mass, system.joints.axis, *point[1:]) for point in points(system, 4)]
    rebuild = ravel_pytree(inside[0])[1]

    def scalar(x):
        mass, axis, q, v, tau = rebuild(x)
        return weights @ dl.forward_dynamics(system.replace(mass=mass, axis=axis), q, v, tau)

    hessian = jax.jit(jax.jacfwd(jax.jacrev(scalar)))
    gradients = jax.jit(jax.vmap(jax.grad(scalar)))
    for point in inside:
        x = ravel_pytree(point)[0]
        found = np.asarray(hessian(x))
        scale = np.abs(found).max()
        assert np.abs(found - found.T).max() < 1e-13 * scale
        assert np.abs(found - central_differences(gradients, x)).max() < 1e-9 * scale


@pytest.mark.slow
def test_batches_of_machines_wrenches_and_gradients_of_the_public_functions():
    rng = np.random.default_rng(9)
    kinds = ("Revolute", "Spherical", "Prismatic")
    system = dl.chain([random_body(rng, k, random_joint(rng, k)) for k in kinds])
    states = [jnp.asarray(x) for x in random_states(system, 4, seed=4)]
    q, v, _, tau, wrench = (x[0] for x in states)
    masses = jnp.asarray(rng.uniform(0.5, 2, (4, 3)))

    def of_mass(mass, q, v, tau):
        return dl.forward_dynamics(system.replace(mass=mass), q, v, tau)

    together = jax.vmap(of_mass)(masses, states[0], states[1], states[3])
    one_by_one = [
        dl.forward_dynamics(system.replace(mass=m), *rest)
        for m, *rest in zip(masses, states[0], states[1], states[3], strict=True)
    ]
    np.testing.assert_allclose(together, np.stack(one_by_one), rtol=1e-12)

    # The forces of wrenches are J^T wrench: an exact derivative.
    jacobians = np.stack([dl.body_jacobian(system, q, b) for b in range(3)])
    expected = np.linalg.solve(dl.mass_matrix(system, q), np.concatenate(jacobians).T)
    found = jax.jacfwd(lambda w: dl.forward_dynamics(system, q, v, tau, w))(wrench)
    np.testing.assert_allclose(found.reshape(5, 18), expected, atol=1e-12 * np.abs(expected).max())

    # Kinetic energy is v . M v / 2 and gravity the derivative of the potential energy.
    kinetic = jax.hessian(lambda v: dl.energy(system, q, v)[0])(v)
    np.testing.assert_allclose(kinetic, dl.mass_matrix(system, q), atol=1e-13)
    still = jnp.zeros(system.nv)
    gravity = jax.grad(lambda s: dl.energy(system, dl.integrate(system, q, s), still)[1])(still)
    np.testing.assert_allclose(gravity, dl.bias_force(system, q, still), rtol=1e-11, atol=1e-12)
