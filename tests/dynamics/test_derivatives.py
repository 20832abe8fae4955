"""First derivatives against central differences, forward against reverse mode, second derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from trees import random_body, random_joint, random_states

import difflie as dl

compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


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
        ("puck", "Planar", "cross"),
        ("ball", "Spherical", "puck"),
        ("drone", "Free", "ball"),
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


def central_differences(f, x):
    """The Jacobian (n, size of x) of f, of fourth order."""
    h = 3e-4
    steps = h * jnp.eye(x.size, dtype=x.dtype)
    each = jax.jit(jax.vmap(f))
    near, far = (each(x + k * steps) - each(x - k * steps) for k in (1, 2))
    return np.asarray((8 * near - far) / (12 * h)).T


CASES = {
    "forward dynamics": (every_joint, forward, 4),
    "inverse dynamics": (every_joint, inverse, 5),
    "forward dynamics with mimic joints": (followers, forward, 4),
}


@pytest.mark.parametrize("case", CASES)
def test_first_derivatives(case):
    build, f, count = CASES[case]
    for point in points(build(), count):
        x, rebuild = ravel_pytree(point)

        def flat(x, rebuild=rebuild):
            return f(*rebuild(x))

        forward_mode, reverse_mode = compiled(lambda x: (jax.jacfwd(flat)(x), jax.jacrev(flat)(x)))(
            x
        )
        differences = central_differences(flat, x)
        assert np.all(np.isfinite(forward_mode)) and np.all(np.isfinite(reverse_mode))
        names = [
            jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(point)
        ]
        sizes = [leaf.size for leaf in jax.tree.leaves(point)]
        ends = np.cumsum(sizes)
        print(case, len(x))
        for name, end, size in zip(names, ends, sizes, strict=True):
            here = slice(end - size, end)
            if not size:
                continue
            scale = np.abs(differences[:, here]).max()
            e = [
                np.abs(forward_mode[:, here] - differences[:, here]).max(),
                np.abs(forward_mode[:, here] - reverse_mode[:, here]).max(),
            ]
            print(
                "%40s %.1e %.1e %.1e"
                % (name, scale, e[0] / max(scale, 1e-300), e[1] / max(scale, 1e-300))
            )
