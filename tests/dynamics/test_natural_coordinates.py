"""Natural coordinates: against the recursions on joint coordinates, and against themselves."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import random_body, zoo

import difflie as dl
from difflie.dynamics.natural.coordinates import natural_coordinates
from difflie.dynamics.natural.equations import combined
from difflie.groups import directors
from difflie.system.kinematic_tree import Tree


def machine() -> dl.System:
    """Every joint type but the helical and the translation, in one tree."""
    others = {"screw": dl.Revolute(), "crane": dl.Prismatic()}
    bodies = [replace(b, joint=others.get(b.name, b.joint)) for b in zoo()]
    return dl.tree(bodies, gravity=(0.3, 0.2, -9.0))


MACHINE = machine()
RNG = np.random.default_rng(0)
Q = dl.integrate(MACHINE, MACHINE.neutral(), RNG.normal(size=MACHINE.nv))
V = jnp.asarray(RNG.normal(size=MACHINE.nv))


@jax.jit
def node(system, q, v):
    natural = natural_coordinates(Tree.of(system))
    bodies = natural.bodies(q)
    return natural, bodies, natural.velocities(bodies, q, v)


@jax.jit
def measured(system, q, v, near):
    """What the coordinates say of a state: energies and momenta, errors, and the way back."""
    natural, bodies, velocities = node(system, q, v)
    armature = system.joints.armature[np.argsort(system.topology.dof_velocity)]
    free = system.replace(gravity=jnp.zeros(3))
    momentum = natural.body_momentum(bodies, velocities)
    return {
        "kinetic": natural.kinetic_energy(velocities) + jnp.sum(armature * v**2) / 2,
        "momentum": natural.momentum(bodies, velocities),
        "constraints": natural.constraints(bodies),
        "rates": natural.constraints.rates(bodies, velocities),
        "q": natural.coordinates(bodies, near),
        "v": dl.forward_dynamics(free, q, jnp.zeros_like(v), armature * v, momentum),
        "expected": (dl.energy(system, q, v)[0], dl.momentum(system, q, v)),
    }


@pytest.mark.slow
def test_state_and_back():
    near = dl.integrate(MACHINE, Q, 0.5 * V)
    got = measured(MACHINE, Q, V, near)
    np.testing.assert_allclose(got["kinetic"], got["expected"][0], rtol=1e-13)
    np.testing.assert_allclose(got["momentum"], got["expected"][1], atol=1e-12)
    np.testing.assert_allclose(got["constraints"], 0, atol=1e-14)
    np.testing.assert_allclose(got["rates"], 0, atol=1e-13)
    np.testing.assert_allclose(got["q"], on_side(Q, near), atol=1e-14)
    np.testing.assert_allclose(got["v"], V, atol=1e-11)  # the velocity with their momentum


def on_side(q, near):
    """q with its quaternions on the side of those of another configuration."""
    q = np.array(q)
    t = MACHINE.topology
    for start, space in zip(t.coordinate_start[:-1], t.manifolds, strict=True):
        if not space.plain and q[start : start + 4] @ near[start : start + 4] < 0:
            q[start : start + 4] *= -1
    return q


@pytest.mark.slow
def test_points_and_attitudes_of_all_bodies():
    natural, bodies, _ = node(MACHINE, Q, V)
    poses = dl.body_poses(MACHINE, Q)
    n = len(MACHINE.body_names)
    points = jnp.asarray(RNG.normal(size=(n + 1, 3)))
    rows = natural.attached(np.arange(n + 1), points)
    at = combined(rows, bodies)
    expected = poses[:, :3, 3] + jnp.einsum("mij,mj->mi", poses[:, :3, :3], points[:-1])
    np.testing.assert_allclose(at, jnp.concatenate((expected, points[-1:])), atol=1e-13)
    attitudes = natural.attitudes(bodies, np.arange(n)).to_array()
    np.testing.assert_allclose(attitudes, poses[:, :3, :3], atol=1e-14)


@partial(jax.jit, static_argnames="h")
def stepped(natural, bodies, rates, tau, h):
    middle = directors.middle(bodies, rates, h)
    arms = natural.arms(middle, rates, h)
    end = bodies + h * directors.motion(middle, rates)
    return middle, end, natural.joint_rates(arms, rates), natural.joint_load(arms, tau)


@pytest.mark.slow
def test_joints_over_a_long_step():
    """The rates of a step between two configurations are those of the coordinates, and dual."""
    natural, bodies, _ = node(MACHINE, Q, V)
    there = dl.integrate(MACHINE, Q, 0.7 * V)
    end = node(MACHINE, there, V)[1]
    h = 0.5
    mean, change = (bodies + end) / 2, (end - bodies) / h
    g = directors.rates(mean, change)
    # w from d1 - d0 = h w x mean: the directors of the mean are not orthonormal.
    axes = mean[:, 1:]
    matrix = jnp.einsum("bkx,bkx,ij->bij", axes, axes, jnp.eye(3))
    matrix = matrix - jnp.einsum("bki,bkj->bij", axes, axes)
    w = jnp.linalg.solve(matrix, 2 * g[:, :3, None])[..., 0]
    rates = jnp.concatenate((w, g[:, 3:]), axis=1)
    tau = jnp.asarray(RNG.normal(size=MACHINE.nv))
    middle, reached, v, load = stepped(natural, bodies, rates, tau, h)
    np.testing.assert_allclose(middle, mean, atol=1e-13)
    np.testing.assert_allclose(reached, end, atol=1e-13)
    t = MACHINE.topology
    plain = np.array([space.plain for space in t.manifolds])[t.dof_body]
    difference = (there - Q)[t.dof_coordinate[plain]]
    np.testing.assert_allclose(h * v[t.dof_velocity[plain]], difference, atol=1e-12)
    np.testing.assert_allclose(jnp.sum(load * rates), tau @ v, atol=1e-11)
    # Joints between bodies act on both, so that no force or moment is left; those on the world not.
    on_world = {b for b, p in enumerate(natural.layout.parent) if p == len(bodies)}
    hung = [int(natural.layout.moving[b]) for b in on_world]
    t = MACHINE.topology
    inner = np.array(tau)
    for b in hung:
        inner[t.velocity_start[b] : t.velocity_start[b + 1]] = 0
    load = stepped(natural, bodies, rates, jnp.asarray(inner), h)[3]
    moment = jnp.sum(load[:, :3] + jnp.cross(mean[:, 0], load[:, 3:]), axis=0)
    np.testing.assert_allclose(moment, 0, atol=1e-12)
    np.testing.assert_allclose(jnp.sum(load[:, 3:], axis=0), 0, atol=1e-12)


def test_angles_go_on_over_full_turns():
    system = dl.chain([random_body(np.random.default_rng(1), "a", dl.Continuous(axis=(1, 2, 2)))])

    @jax.jit
    def found(angle, near):
        natural = natural_coordinates(Tree.of(system))
        return natural.coordinates(natural.bodies(jnp.stack((angle,))), jnp.stack((near,)))

    for angle in (3.0, 100.0, -2000.0):
        for near in (angle - 3.0, angle + 3.0):
            np.testing.assert_allclose(found(angle, near), [angle], rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize(
    ("joint", "rank"),
    [
        (dl.Spherical(), 15),
        (dl.Revolute(axis=(1.0, 2.0, 0.5)), 17),
        (dl.Universal(axis=(1.0, 0.2, 0.0), second_axis=(0.3, 1.0, 0.4)), 16),
        (dl.Prismatic(axis=(0.3, -1.0, 0.2)), 17),
        (dl.Planar(normal=(0.1, 0.2, -1.0)), 15),
        (dl.Free(), 12),
        (dl.Fixed(), 6),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, dl.Joint) else "",
)
def test_no_equation_is_redundant(joint, rank):
    """Two bodies and a joint, as the rank of all equations, those of rigidity included."""
    rng = np.random.default_rng(2)
    system = dl.chain([random_body(rng, "a", dl.Free()), random_body(rng, "b", joint)])
    v = jnp.asarray(rng.normal(size=system.nv))
    q = dl.integrate(system, system.neutral(), v)
    change, f = jnp.asarray(rng.normal(size=(2, 4, 3))), jnp.asarray(rng.normal(size=rank))
    jacobian, rates, force = linearised(system, q, v, change, f)
    assert jacobian.shape[0] == rank == np.linalg.matrix_rank(jacobian)
    own = jacobian[6 * (2 if system.nv > 6 else 1) :]
    np.testing.assert_allclose(rates, own @ change.ravel()[: own.shape[1]], atol=1e-12)
    np.testing.assert_allclose(force, f[: len(own)] @ own, atol=1e-12)


@jax.jit
def linearised(system, q, v, change, f):
    """The derivative of all equations, and what the joints' own do with it."""
    natural, bodies, _ = node(system, q, v)

    def equations(bodies):
        axes = bodies[:, 1:]
        products = jnp.sum(axes[:, :, None] * axes[:, None], axis=-1)
        rigid = products[:, *np.triu_indices(3)].ravel()
        return jnp.concatenate((rigid, natural.constraints(bodies)))

    own = natural.constraints
    rates = own.rates(bodies, change[: len(bodies)])
    force = own.force(bodies, f[: own.constant.size]).ravel()
    return jax.jacfwd(equations)(bodies).reshape(-1, bodies.size), rates, force


@pytest.mark.parametrize(
    ("joint", "reason"),
    [
        (dl.Helical(pitch=0.1), "helical"),
        (dl.Translation(), "prismatic, prismatic, prismatic"),
        (dl.Revolute(mimic=dl.Mimic("a")), "mimics"),
    ],
    ids=["helical", "translation", "mimic"],
)
def test_what_is_not_described_is_refused_by_name(joint, reason):
    rng = np.random.default_rng(3)
    bodies = [random_body(rng, "a", dl.Revolute()), random_body(rng, "b", joint)]
    system = dl.chain(bodies)
    with pytest.raises(ValueError, match=f"'b'.*{reason}.*use another method"):
        dl.simulate(
            system, system.neutral(), jnp.zeros(system.nv), method="EnergyMomentum", steps=1
        )


@pytest.mark.slow
def test_gradients_with_respect_to_every_number():
    """Coordinates and mass, by forward and reverse mode against central differences."""
    rng = np.random.default_rng(4)
    weight = [jnp.asarray(rng.normal(size=s)) for s in ((13, 4, 3), (13, 4, 4))]
    names = ("mass", "com", "inertia", "position", "rotation", "axis")

    @jax.jit
    def value(changes):
        leaves = {
            n: getattr(MACHINE.bodies if hasattr(MACHINE.bodies, n) else MACHINE.joints, n)
            for n in names
        }
        system = MACHINE.replace(**{n: leaves[n] + changes[n] for n in names})
        natural, bodies, _ = node(system, Q, V)
        size = len(bodies)
        constants = jnp.sum(natural.constraints.first * 0.3) + jnp.sum(natural.slides.second)
        mass = jnp.sum(natural.mass * weight[1][:size])
        return jnp.sum(bodies * weight[0][:size]) + mass + constants

    shapes = {n: getattr(MACHINE.bodies, n, None) for n in names}
    shapes = {n: a if a is not None else getattr(MACHINE.joints, n) for n, a in shapes.items()}
    zero = jax.tree.map(jnp.zeros_like, shapes)
    gradient = jax.grad(value)(zero)
    for n in names:
        way = {k: a * 0 for k, a in zero.items()}
        way[n] = jnp.asarray(rng.normal(size=zero[n].shape))
        if n == "axis":  # across the horizontal the frame of a row jumps
            way[n] = jnp.where(MACHINE.joints.axis[:, 2:] == 0, 0.0, way[n])
        ahead, behind = (value(jax.tree.map(lambda w, s=s: s * w, way)) for s in (1e-6, -1e-6))
        slope = (ahead - behind) / 2e-6
        np.testing.assert_allclose(jnp.sum(gradient[n] * way[n]), slope, rtol=1e-6, atol=1e-7)
