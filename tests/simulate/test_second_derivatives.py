"""Hessian-vector products of rollouts of every explicit method, against 25 digits and more."""

import dataclasses
import functools

import exact_rollouts as exact
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.integrators import METHODS, BodyFixedEuler, EmbeddedMuntheKaas

H, STEPS = 0.1, 2
MASS, COM, INERTIA, GRAVITY = 1.5, (0.0, 0.0, 0.3), (0.8, 1.0, 1.3), (0.0, 0.0, -9.81)

# One sub-step for each step: the errors at the points below are smaller. All attempts that a step
# allows are written out in its program, so none is allowed but the one that is made.
LOOSE = {"rtol": 0.9, "atol": 0.9, "substeps": 1}
EXPLICIT = [m for m in METHODS if hasattr(m, "tableau") and not m.implicit]
EXPLICIT += [dl.SemiImplicitEuler(), BodyFixedEuler(), dl.StormerVerlet()]
# What a free body adds, the maps and brackets of SE(3), is the same to all methods of one kind.
FREE = "SemiImplicitEuler BodyFixedEuler StormerVerlet CG3 CF4 RKMK4 BogackiShampine32".split()
# These stand for the others, whose tableaus are tested by their orders.
OFTEN = [f"free-{name}" for name in ("SemiImplicitEuler", "BodyFixedEuler")]
OFTEN += [f"pivoted-{name}" for name in "StormerVerlet CG4 CF4 RKMK4 DormandPrince54".split()]

ANYWHERE, NEUTRAL, TURNED = (0.7, -0.1, 0.5, 0.5), (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)
RATE = np.array((0.9, -1.6, 0.7, 0.4, -0.3, 0.8))
POINTS = {
    "anywhere": (ANYWHERE, RATE),
    "zero velocity": (ANYWHERE, 0 * RATE),
    "zero rotation": (NEUTRAL, RATE),
    "zero rotation and velocity": (NEUTRAL, 0 * RATE),
    "turned by pi": (TURNED, RATE),
    "spin, centre of mass and gravity aligned": (NEUTRAL, np.array((0, 0, 5.0, 0, 0, 0))),
    "turned by more than the switch of the coefficients in a step": (
        ANYWHERE,
        np.array((0.3, -0.5, 21.0, 0.4, -0.3, 0.8)),
    ),
}


def machine(free):
    joint = dl.Free() if free else dl.Spherical()
    numbers = {"mass": MASS, "com": COM, "inertia": np.diag(INERTIA)}
    return dl.chain([dl.Body(name="top", joint=joint, **numbers)], gravity=GRAVITY)


@functools.cache
def products(free, method):
    """The gradients and the products at all points (n, 2, 2 nv + 1), forward over reverse."""
    system = machine(free)

    def of_point(q, v, direction):
        def loss(z):
            start = system.manifold.retract(q, z[: system.nv]), v + z[system.nv : -1]
            run = dl.simulate(
                system, *start, dt=z[-1], steps=STEPS, save_every=STEPS, method=method
            )
            y = jnp.concatenate((run.q[-1], run.v[-1]))
            i = np.arange(y.size)
            return jnp.sum(np.cos(i) * y + (1 + i) * y**2 / 4)

        z = jnp.zeros(2 * system.nv + 1).at[-1].set(H)
        return jnp.stack(jax.jvp(jax.grad(loss), (z,), (direction,)))

    qs, vs, directions = (np.array(a) for a in zip(*given(free), strict=True))
    return np.asarray(jax.jit(jax.vmap(of_point))(qs, vs, directions))


def given(free):
    """q, v and a direction at each point."""
    rng, nv = np.random.default_rng(2), 6 if free else 3
    for q, v in POINTS.values():
        where = (0.3, -0.2, 0.5) if free else ()
        yield np.array((*q, *where)), v[:nv], rng.normal(size=2 * nv + 1)


def cases():
    for free in (False, True):
        for method in [m for m in EXPLICIT if not free or m.name in FREE]:
            name = f"{'free' if free else 'pivoted'}-{method.name}"
            marks = pytest.mark.slow if name in OFTEN else pytest.mark.thorough
            yield pytest.param(free, method, id=name, marks=marks)


@pytest.mark.parametrize(("free", "method"), list(cases()))
def test_of_every_explicit_method(free, method):
    """Guards the second derivatives of the maps and of what the compiler makes of them."""
    loose = isinstance(method, EmbeddedMuntheKaas)
    check(free, dataclasses.replace(method, **LOOSE) if loose else method)


@pytest.mark.thorough
def test_of_attempts_in_loops_and_of_programs_in_parts(monkeypatch):
    """Guards both loops of attempts and the rest, and what is too long for a single program."""
    monkeypatch.setattr("difflie.native.program.instructions.LONGEST", 50_000)
    method = dl.BogackiShampine32(**(LOOSE | {"substeps": 17}))
    with pytest.warns(UserWarning, match="more than 50000 instructions and is run in parts"):
        check(False, method)


def check(free, method):
    found = products(free, method)
    body = exact.Body(free, MASS, COM, INERTIA, GRAVITY)
    for name, one, at in zip(POINTS, found, given(free), strict=True):
        q, v, direction = at
        true = exact.gradient_and_product(method, body, q, v, H, STEPS, direction)
        for a, b in zip(one, true, strict=True):
            error = np.abs(a - b).max() / np.abs(b).max()
            assert error < 1e-11, (name, error)
