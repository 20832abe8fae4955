"""Every robot of example-robot-data, on a fixed and on a free base, against Pinocchio.

Many robots stand beside one another in one system, so that one program serves them all. What
belongs to the whole company (energy, momentum, centre of mass) is taken with the masses of one
robot alone, one robot after the other; of all else each robot has its own part, and the rest must
be zero.
"""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import ROBOTS, read
from trees import error, random_states

import difflie as dl

LEFT_OUT = {
    "ur_description/urdf/ur3.urdf": "it gives no name for the robot: Pinocchio refuses it",
    "alex_description/urdf/alex_psyonic_hands.urdf": "it mimics a joint that does not exist",
}
# Some of their hand joints move no mass, so that M is singular: what contains M^-1 is left out.
SINGULAR = ["romeo_description/urdf/romeo.urdf", "romeo_description/urdf/romeo_laas_small.urdf"]
# On a fixed base nothing of these moves: they have poses, and no dynamics.
STILL = [
    "iris_description/robots/iris_simple.urdf",
    "hector_description/robots/quadrotor_base.urdf",
]
# On a fixed base its rotors turn about axes through their centres of mass, so that nothing depends
# on velocities: what the libraries find is zero up to rounding, and not equal.
BALANCED = "iris_description/robots/iris.urdf"
OF_VELOCITY = ("coriolis force", "coriolis matrix", "inverse by v", "forward by v")
# On a free base cond M is 5e8 and accelerations are 3e7 rad/s^2: even the exact acceleration, in
# double precision, gives tau back to 2e-11 only, and so does what Pinocchio's own algorithm finds.
STIFF = "icub_description/robots/icub.urdf"

FILES = sorted({str(p.relative_to(ROBOTS)) for p in ROBOTS.rglob("*.urdf")} - set(LEFT_OUT))
# A mimic joint anywhere makes the whole system solve for its accelerations densely.
MIMICKING = [
    path
    for path in FILES
    if "<mimic" in (ROBOTS / path).read_text(errors="ignore") and path not in SINGULAR
]
PLAIN = [path for path in FILES if path not in MIMICKING + SINGULAR]
COMPANIES = {
    **{f"plain {i}": PLAIN[i::3] for i in range(3)},
    "mimicking": MIMICKING,
    "singular": SINGULAR,
}

# The axes of each quantity: r the robots, b the bodies (B: each is compared by itself), v the
# velocities, p the inertial parameters of the bodies.
AXES = {
    "kinetic energy": "r",
    "potential energy": "r",
    "total mass": "r",
    "momentum": "r.",
    "centre of mass": "r.",
    "its jacobian": "r.v",
    "centroidal matrix": "r.v",
    "body poses": "B..",
    "body twists": "B.",
    "jacobians": "B..v",
    "jacobian rates": "b..v",
    "mass matrix": "vv",
    "inverse dynamics": "v",
    "bias force": "v",
    "gravity force": "v",
    "coriolis force": "v",
    "coriolis matrix": "vv",
    "inverse by q": "vv",
    "inverse by v": "vv",
    "inverse by a": "vv",
    "regressor": "vp",
    "kinetic regressor": "p",
    "potential regressor": "p",
}
AXES_OF_SOLVED = {
    "forward dynamics": "v",
    "forward by q": "vv",
    "forward by v": "vv",
    "forward by tau": "vv",
    "inverse mass": "vv",
    "there and back": "v",
}


def together(systems):
    """One system in which all stand on the same ground."""
    parents, mimics, names, first = [], [], [], 0
    for i, s in enumerate(systems):
        t = s.topology
        parents += [p if p < 0 else p + first for p in t.parents]
        mimics += [None if m is None else m + first for m in t.mimics]
        names += [f"{i} {name}" for name in t.bodies]
        first += len(t.bodies)
    topology = replace(
        systems[0].topology,
        bodies=tuple(names),
        joints=tuple(names),
        parents=tuple(parents),
        mimics=tuple(mimics),
        types=sum((s.topology.types for s in systems), ()),
        kinds=sum((s.topology.kinds for s in systems), ()),
    )

    def joined(*leaves):
        return jnp.concatenate(leaves)

    return replace(
        systems[0],
        bodies=jax.tree.map(joined, *[s.bodies for s in systems]),
        joints=jax.tree.map(joined, *[s.joints for s in systems]),
        topology=topology,
    )


def slices(sizes):
    ends = np.cumsum([0, *sizes])
    return [slice(a, b) for a, b in pairwise(ends)]


def quantities(system, q, v, a, wrench, robots):
    """What needs no M^-1, by name; robots (count, nb): which bodies belong to each robot."""

    @jax.vmap
    def of_one_robot(mine):
        mass, inertia = system.bodies.mass * mine, system.bodies.inertia * mine[:, None, None]
        alone = system.replace(mass=mass, inertia=inertia)
        kinetic, potential = dl.energy(alone, q, v)
        return {
            "kinetic energy": kinetic,
            "potential energy": potential,
            "momentum": dl.momentum(alone, q, v),
            "total mass": dl.total_mass(alone),
            "centre of mass": dl.center_of_mass(alone, q),
            "its jacobian": dl.center_of_mass_jacobian(alone, q),
            "centroidal matrix": dl.centroidal_momentum_matrix(alone, q),
        }

    @jax.vmap
    def of_one_body(b):
        jacobians = (dl.body_jacobian, dl.spatial_jacobian, dl.geometric_jacobian)
        rates = (dl.body_jacobian_rate, dl.spatial_jacobian_rate, dl.geometric_jacobian_rate)
        return {
            "jacobians": jnp.stack([j(system, q, b) for j in jacobians]),
            "jacobian rates": jnp.stack([r(system, q, v, b) for r in rates]),
        }

    by_q, by_v, by_a = dl.inverse_dynamics_derivatives(system, q, v, a, wrench)
    coriolis = dl.coriolis_matrix(system, q, v)
    return {
        **of_one_robot(robots),
        **of_one_body(np.arange(len(system.body_names))),
        "body poses": dl.body_poses(system, q),
        "body twists": dl.body_twists(system, q, v),
        "mass matrix": dl.mass_matrix(system, q),
        "gravity force": dl.gravity_force(system, q),
        "coriolis matrix": coriolis,
        "coriolis force": coriolis @ v,
        "regressor": dl.inverse_dynamics_regressor(system, q, v, a),
        "kinetic regressor": dl.kinetic_energy_regressor(system, q, v),
        "potential regressor": dl.potential_energy_regressor(system, q),
        "inverse by q": by_q,
        "inverse by v": by_v,
        "inverse by a": by_a,
    }


def solved(system, q, v, tau, wrench):
    """What needs M^-1, by name."""
    by_q, by_v, by_tau = dl.forward_dynamics_derivatives(system, q, v, tau, wrench)
    return {
        "forward dynamics": dl.forward_dynamics(system, q, v, tau, wrench),
        "inverse mass": dl.inverse_mass_matrix(system, q),
        "forward by q": by_q,
        "forward by v": by_v,
        "forward by tau": by_tau,
    }


def everything(system, q, v, a, tau, wrench, robots, *, invertible):
    """All quantities by name, for states with a leading axis."""

    @jax.vmap
    def inverse(q, v, a, wrench):
        return dl.inverse_dynamics(system, q, v, a, wrench)

    found = jax.vmap(lambda *s: quantities(system, *s, robots))(q, v, a, wrench)
    batch = {"inverse dynamics": (a, wrench), "bias force": (0 * a, 0 * wrench)}
    if invertible:
        found |= jax.vmap(lambda *s: solved(system, *s))(q, v, tau, wrench)
        batch["there and back"] = found["forward dynamics"], wrench
    accelerations, wrenches = map(jnp.concatenate, zip(*batch.values(), strict=True))
    again = len(batch)
    efforts = inverse(
        jnp.concatenate([q] * again), jnp.concatenate([v] * again), accelerations, wrenches
    )
    return found | dict(zip(batch, jnp.split(efforts, again), strict=True))


def tolerance(name, path, base, mass_matrices):
    if name == "there and back":
        return 1e-10 if (path, base) == (STIFF, "free") else 1e-11
    return 1e-12 if name in AXES else max(1e-12, 1e-14 * np.linalg.cond(mass_matrices).max())


@pytest.mark.slow
@pytest.mark.thorough("mimicking", "singular")
@pytest.mark.parametrize(
    "company",
    [
        pytest.param(c, marks=pytest.mark.thorough if c in ("plain 1", "plain 2") else ())
        for c in COMPANIES
    ],
)
def test_agrees_with_pinocchio(company):
    members = [(path, "free") for path in COMPANIES[company]]
    members += [(path, "fixed") for path in COMPANIES[company] if path not in STILL]
    twins = [read(ROBOTS / path, base) for path, base in members]
    system = together([twin.system for twin in twins])
    places = {
        "q": slices(twin.system.nq for twin in twins),
        "v": slices(twin.system.nv for twin in twins),
        "b": slices(len(twin.system.body_names) for twin in twins),
        "p": slices(10 * len(twin.system.body_names) for twin in twins),
        "r": range(len(twins)),
        ".": [slice(None)] * len(twins),
    }
    robots = np.zeros((len(twins), len(system.body_names)))
    for i, bodies in enumerate(places["b"]):
        robots[i, bodies] = 1
    drawn = [random_states(twin.system, 2, seed=0) for twin in twins]
    states = [np.concatenate(x, axis=1) for x in zip(*drawn, strict=True)]
    invertible = company != "singular"

    @jax.jit
    def ours(*states):
        return everything(system, *states, robots, invertible=invertible)

    found = {name: np.array(value) for name, value in ours(*states).items()}
    jax.clear_caches()  # the programs are large and serve but once
    names = AXES | (AXES_OF_SOLVED if invertible else {})
    assert found.keys() == names.keys()
    for i, ((path, base), twin) in enumerate(zip(members, twins, strict=True)):
        mine = [x[:, places[axis][i]] for x, axis in zip(states, "qvvvb", strict=True)]
        samples = [twin.all_expected(*state) for state in zip(*mine, strict=True)]
        expected = {name: np.array([s[name] for s in samples]) for name in samples[0]}
        expected["there and back"] = mine[3]
        mass = expected["mass matrix"]
        for name, axes in names.items():
            part = (slice(None), *(places[axis][i] for axis in axes.lower()))
            pair = found[name][part], expected[name]
            if base == "fixed" and path == BALANCED and name in OF_VELOCITY:
                scale = expected["forward by tau" if "forward" in name else "mass matrix"]
                assert np.max(np.abs(pair)) < 1e-12 * np.max(scale), (path, base, name)
            else:
                if axes.startswith("B"):
                    pair = [x.reshape(-1, *x.shape[2:]) for x in pair]
                e = error(*pair)
                assert e < tolerance(name, path, base, mass), (path, base, name, e)
            found[name][part] = 0
    for name, rest in found.items():
        assert not rest.any(), f"{name}: robots that do not touch are not coupled"


@pytest.mark.parametrize("path", STILL)
def test_robots_that_do_not_move(path):
    twin = read(ROBOTS / path, "fixed")
    q, v, a, tau, _ = (x[0] for x in random_states(twin.system, 1, seed=0))
    assert error(dl.body_poses(twin.system, q), twin.expected(q, v, a, tau)["body poses"]) < 1e-12
    assert dl.energy(twin.system, q, v) == (0, 0)
