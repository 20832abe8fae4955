"""Small systems with constraints, states that keep them, and a test of their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie.constraints import RevoluteConstraint, SphericalConstraint

# The heavy top of the Lie group integrators' literature after 0.2 s (made with RKMK4 and steps that
# no longer matter, in three formulations): centre of mass, body rate and force at the pivot.
TOP_COM = np.array((0.6055505614, 0.5989576818, -0.5239830274))
TOP_RATE = np.array((-2.6915909121, 150.0, 4.9172609899))
TOP_FORCE = np.array((-640.23640799, -148.62771135, 136.92931304))


def heavy_top():
    """A free body on a ball joint; frames at the centre of mass."""
    body = dl.Body(
        name="top",
        joint=dl.Free(),
        mass=15.0,
        com=(0.0, 0.0, 0.0),
        inertia=np.diag((0.234375, 0.46875, 0.234375)),
    )
    system = dl.tree([body])
    pivot = SphericalConstraint(dl.Frame(), dl.Frame("top", (0.0, -1.0, 0.0)))
    q = jnp.array((1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0))
    v = jnp.array((0.0, 150.0, -4.61538, 4.61538, 0.0, 0.0))
    return dl.constrain(system, pivot), q, v


def bar(name, length, parent, position, **fields):
    """A uniform bar along x, thin in y and z."""
    mass = 2.0 * length
    return dl.Body(
        name=name,
        parent=parent,
        position=position,
        mass=mass,
        com=(length / 2, 0.0, 0.0),
        inertia=np.diag((1e-3, mass * length**2 / 12 + 1e-3, mass * length**2 / 12)),
        **fields,
    )


def four_bar(closure=RevoluteConstraint):
    """A crank, a coupler and a rocker in the xz plane: three joints and one that closes the loop.

    Of the equations of a closing revolute joint three say what others say, of a ball joint one.
    """
    hinge = {"joint": dl.Revolute(axis=(0.0, 1.0, 0.0))}
    bodies = [
        bar("crank", 0.4, None, (0.0, 0.0, 0.0), **hinge),
        bar("coupler", 1.0, "crank", (0.4, 0.0, 0.0), **hinge),
        bar("rocker", 0.8, "coupler", (1.0, 0.0, 0.0), **hinge),
    ]
    axis = {"axis": (0.0, 1.0, 0.0)} if closure is RevoluteConstraint else {}
    system = dl.tree(bodies)
    ground = dl.Frame(None, (1.1, 0.0, 0.0), **axis)
    system = dl.constrain(system, closure(ground, dl.Frame("rocker", (0.8, 0.0, 0.0), **axis)))
    q, v = dl.assemble(system, np.array((-1.0, 0.6, 1.5)), np.array((3.0, 0.0, 0.0)))
    return system, q, v


def spatial_loop():
    """A crank, a coupler on a ball joint and a rocker, tied by a ball joint: nothing is planar."""
    bodies = [
        bar("crank", 0.4, None, (0.0, 0.0, 0.0), joint=dl.Revolute(axis=(0.1, 1.0, 0.2))),
        bar("coupler", 1.0, "crank", (0.4, 0.0, 0.0), joint=dl.Spherical()),
        bar("rocker", 0.8, None, (1.1, 0.2, 0.0), joint=dl.Revolute(axis=(0.3, 1.0, -0.2))),
    ]
    system = dl.tree(bodies)
    ends = dl.Frame("coupler", (1.0, 0.0, 0.0)), dl.Frame("rocker", (0.8, 0.0, 0.0))
    system = dl.constrain(system, SphericalConstraint(*ends))
    guess = np.array((-1.0, 1.0, 0.1, 0.2, 0.0, -1.6))
    guess[1:5] /= np.linalg.norm(guess[1:5])
    q, v = dl.assemble(system, guess, np.array((3.0, 0.5, 0.2, -0.4, 0.0)))
    return system, q, v


def check_derivatives(function, given, step=1e-5, rtol=1e-6, atol=1e-7):
    """Of a number with respect to every leaf: both modes against central differences.

    Leaf by leaf along a random direction.
    """
    reverse = jax.tree.leaves(jax.jit(jax.grad(function))(given))
    # Compiled once, also for the values.
    forward = jax.jit(lambda x, d: jax.jvp(function, (x,), (d,)))
    still = jax.tree.map(jnp.zeros_like, given)
    leaves, structure = jax.tree.flatten(given)
    rng, moved = np.random.default_rng(5), 0
    # Both modes round in proportion to the largest parts of the number.
    rounding = 1e-12 * max(1.0, *(float(np.max(np.abs(a), initial=0)) for a in reverse))
    for k, leaf in enumerate(leaves):
        # By a part of what they are: slender bars have small moments of inertia, to which what is
        # zero, as a rotor's, may be added.
        size = np.where(np.isfinite(leaf), np.abs(leaf), 0)
        size = np.where(size == 0, np.min(size[size > 0], initial=1e-3), size)
        d = np.where(np.isfinite(leaf), size * rng.normal(size=leaf.shape), 0)
        if not d.any():
            continue

        def along(s, k=k, d=d):
            return structure.unflatten([a + s * d if i == k else a for i, a in enumerate(leaves)])

        there, back = (forward(along(s), still)[0] for s in (step, -step))
        expected = (there - back) / (2 * step)
        one = [jnp.asarray(d) if i == k else jnp.zeros_like(a) for i, a in enumerate(leaves)]
        found = forward(given, structure.unflatten(one))[1]
        name = jax.tree_util.keystr(jax.tree_util.tree_flatten_with_path(given)[0][k][0])
        # Differences of rounded values, too.
        unsure = atol + 32 * np.finfo(float).eps * float(abs(there)) / step
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=unsure, err_msg=name)
        along_d = np.sum(np.where(d == 0, 0, reverse[k]) * d)
        np.testing.assert_allclose(along_d, found, rtol=1e-9, atol=rounding, err_msg=name)
        moved += abs(float(found)) > 1e-6
    return moved
