"""Every robot of example-robot-data, on a fixed and on a free base, against Pinocchio.

Many robots stand beside one another in one system, so that one program serves them all; energies
and momentum are those of the whole company, everything else is compared robot by robot.
"""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from robots import QUICKLY, ROBOTS, read
from trees import error, random_states

import difflie as dl

LEFT_OUT = {
    "ur_description/urdf/ur3.urdf": "it gives no name for the robot: Pinocchio refuses it",
    "alex_description/urdf/alex_psyonic_hands.urdf": "it mimics a joint that does not exist",
    "romeo_description/urdf/romeo.urdf": "its hand joints move no mass: M is singular",
    "romeo_description/urdf/romeo_laas_small.urdf": "as in romeo.urdf",
}
FILES = sorted({str(p.relative_to(ROBOTS)) for p in ROBOTS.rglob("*.urdf")} - set(LEFT_OUT))
# A mimic joint anywhere makes the whole system solve for its accelerations densely.
MIMICKING = [path for path in FILES if "<mimic" in (ROBOTS / path).read_text(errors="ignore")]
PLAIN = [path for path in FILES if path not in MIMICKING]
COMPANIES = {**{f"plain {i}": PLAIN[i::4] for i in range(4)}, "mimicking": MIMICKING}


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


@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("company", COMPANIES)
def test_agrees_with_pinocchio(company, base):
    paths = COMPANIES[company]
    twins = [read(ROBOTS / path, base) for path in paths]
    system = together([twin.system for twin in twins])
    bodies = slices(len(twin.system.body_names) for twin in twins)
    q, v, a, tau, _ = random_states(system, 2, seed=0)

    @jax.vmap
    def inverse(q, v, a):
        return dl.inverse_dynamics(system, q, v, a)

    @jax.vmap
    def rest(q, v, tau):
        return {
            "forward dynamics": dl.forward_dynamics(system, q, v, tau),
            "mass matrix": dl.mass_matrix(system, q),
            "body poses": dl.body_poses(system, q),
            "jacobian": dl.body_jacobian(system, q, len(system.body_names) - 1),
            "energy": jnp.stack(dl.energy(system, q, v)),
            "momentum": dl.momentum(system, q, v),
        }

    def everything(q, v, a, tau):
        found = rest(q, v, tau)
        accelerations = jnp.concatenate((a, 0 * a, found["forward dynamics"]))
        efforts = inverse(*[jnp.concatenate((x,) * 3) for x in (q, v)], accelerations)
        names = ("inverse dynamics", "bias force", "there and back")
        return found | dict(zip(names, jnp.split(efforts, 3), strict=True))

    found = jax.jit(everything, compiler_options=QUICKLY)(q, v, a, tau)
    jax.clear_caches()  # the programs are large and serve but once
    assert error(found["there and back"], tau) < 1e-11
    energy, momentum, mass = 0, 0, np.array(found["mass matrix"])
    mine = [slices(getattr(twin.system, size) for twin in twins) for size in ("nq", "nv")]
    for path, twin, qs, vs, bs in zip(paths, twins, *mine, bodies, strict=True):
        states = zip(q[:, qs], v[:, vs], a[:, vs], tau[:, vs], strict=True)
        samples = [twin.expected(*s) for s in states]
        expected = {name: np.array([s[name] for s in samples]) for name in samples[0]}
        energy += np.stack((expected["kinetic energy"], expected["potential energy"]), axis=1)
        momentum += expected["momentum"]
        condition = np.linalg.cond(expected["mass matrix"]).max() if twin.system.nv else 1
        amplified = max(1e-12, 1e-14 * condition)
        for name, value, tolerance in (
            ("mass matrix", mass[:, vs, vs], 1e-12),
            ("inverse dynamics", found["inverse dynamics"][:, vs], 1e-12),
            ("bias force", found["bias force"][:, vs], 1e-12),
            ("forward dynamics", found["forward dynamics"][:, vs], amplified),
            ("body poses", found["body poses"][:, bs], 1e-12),
        ):
            e = error(value, expected[name])
            assert e < tolerance, (path, name, e)
        mass[:, vs, vs] = 0
    assert not mass.any(), "robots that do not touch are not coupled"
    assert error(found["jacobian"][:, :, vs], expected["jacobian"]) < 1e-12
    assert error(found["energy"], energy) < 1e-12
    assert error(found["momentum"], momentum) < 1e-12
