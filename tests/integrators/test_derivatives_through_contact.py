"""Derivatives of motions whose contacts close, slide and open, by `ConvexContact(located=True)`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import difflie as dl
from difflie.constraints import PointOnPlane

G = 9.81
LOCATED = dl.ConvexContact(located=True)


def in_both_modes(f, at, expected, part):
    """Each entry within a part of the largest one, and modes as one another."""
    slope = jax.jit(jax.jacfwd(f))(at)
    assert_allclose(slope, expected, atol=part * np.abs(expected).max())
    assert_allclose(jax.jit(jax.jacrev(f))(at), slope, atol=1e-8 * np.abs(expected).max())


@pytest.mark.slow
def test_of_a_rolling_ball_that_falls_off_an_edge():
    """Guards what a contact point does as it comes to an edge: the ball tips over it, and falls."""
    radius, dt, time = 0.05, 5e-4, 0.45
    inertia = 0.4 * radius**2 * np.eye(3)
    body = dl.Body(name="ball", joint=dl.Free(), mass=1.0, inertia=inertia)
    table = dl.Box(dl.Frame(None, (-0.5, 0, -0.1)), (0.5, 0.2, 0.1))
    system = dl.chain([body]).with_shapes({"ball": dl.Sphere("ball", radius), "table": table})
    system = dl.touching(system, "table", "ball", friction=1.0, stiffness=1e9)

    def run(y, steps):
        x, speed = y
        q = system.neutral().at[jnp.array([4, 6])].set(jnp.stack([x, radius]))
        v = jnp.zeros(6).at[jnp.array([1, 3])].set(jnp.stack([speed / radius, speed]))
        moved = dl.simulate(system, q, v, dt=dt, steps=steps, save_every=steps, method=LOCATED)
        return moved.q[-1, jnp.array([4, 6])]

    steps = round(time / dt)
    at, d = np.array([-0.05, 0.5]), 1.5e-3
    # What starts a little further on is a little ahead in time. Over many steps of them,
    # differences by the speed do not tell in which step the ball comes to the edge.
    ahead = (run(at, steps + 10) - run(at, steps - 10)) / (20 * dt) / at[1]
    ends = jax.jit(jax.vmap(lambda y: run(y, steps)))(at + np.array([[0, d], [0, -d]]))
    expected = np.stack([ahead, (ends[0] - ends[1]) / (2 * d)], axis=1)
    assert expected[1, 0] < -5
    in_both_modes(lambda y: run(y, steps), at, expected, 1e-2)


@pytest.mark.slow
def test_of_a_hopping_leg():
    """Guards a foot that lands, a spring that gives, and a lift-off, of a tree of two bodies."""
    mass, foot, k, c, length, time = 1.0, 0.2, 300.0, 6.0, 0.3, 0.5

    up = dl.Prismatic(axis=(0, 0, 1))
    sprung = dl.Prismatic(axis=(0, 0, 1), stiffness=k, damping=c)
    trunk = dl.Body(name="trunk", joint=up, mass=mass, inertia=np.eye(3))
    sole = dl.Body(name="foot", joint=sprung, mass=foot, inertia=np.eye(3))
    sole_down = PointOnPlane(dl.Frame("foot", (0, 0, -length)), dl.Frame())
    leg = dl.constrain(dl.chain([trunk, sole]), sole_down)

    def end(y):
        z, speed, stiffness = y
        q, v = jnp.stack([z + length, 0 * z]), jnp.stack([speed, 0 * z])
        system = leg.replace(stiffness=jnp.stack([0 * z, stiffness]))
        run = dl.simulate(system, q, v, dt=1e-4, steps=5000, save_every=5000, method=LOCATED)
        return jnp.concatenate((run.q[-1], run.v[-1]))

    def reference(y):
        """In the air, on the ground, in the air; places of the trunk and of the foot in it."""
        z, speed, stiffness = y

        def pull(s):
            return -stiffness * s[1] - c * s[3]

        def flight(_, s):
            relative = pull(s) * (1 / mass + 1 / foot)
            return [s[2], s[3], -G - pull(s) / mass, relative]

        def stance(_, s):
            a = -G - pull(s) / mass
            return [s[2], -s[2], a, -a]

        def lands(_, s):
            return s[0] + s[1] - length

        def lifts(_, s):
            return foot * G - pull(s)

        lands.terminal, lands.direction = True, -1
        lifts.terminal, lifts.direction = True, -1
        s, t = np.array([z + length, 0, speed, 0]), 0.0
        for law, event in ((flight, lands), (stance, lifts), (flight, lands)):
            way = solve_ivp(law, (t, time), s, events=event, rtol=1e-11, atol=1e-12)
            s, t = way.y[:, -1].copy(), way.t[-1]
            if law is flight and t < time:
                s[3] = -s[2]
        assert t == time and way.t[0] > 0.2
        return s

    at = np.array([0.2, -0.5, k])
    ends = [[reference(at * (1 + s * d)) for d in np.eye(3)] for s in (1e-5, -1e-5)]
    expected = (np.array(ends[0]) - np.array(ends[1])).T / 2e-5
    assert_allclose(end(at), reference(at), atol=1e-2)
    in_both_modes(lambda y: end(y * at), np.ones(3), expected, 1e-2)


@pytest.mark.slow
def test_of_a_pushed_box_that_starts_to_slide():
    """Guards the end of sticking, whose time nothing locates: a force that grows, closed form."""
    body = dl.Body(name="box", joint=dl.Free(), mass=1.0, inertia=0.01 * np.eye(3))
    box, time = dl.chain([body]), 0.5
    corners = [dl.Frame("box", (x, y, -0.05)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]

    def path(y):
        friction, growth = y
        feet = [PointOnPlane(corner, dl.Frame(), friction=friction) for corner in corners]
        system = dl.constrain(box, *feet)

        def push(t, q, v):
            return jnp.zeros(6).at[3].set(growth * t)

        q = system.neutral().at[6].set(0.05)
        options = {"dt": 2e-3, "steps": 250, "save_every": 250, "method": LOCATED}
        return dl.simulate(system, q, jnp.zeros(6), control=push, **options).q[-1, 4]

    friction, growth = 0.3, 12.0
    slides = time - friction * G / growth
    expected = np.array([-G * slides**2 / 2, slides**3 / 6 + slides**2 / 2 * (time - slides)])
    in_both_modes(path, np.array([friction, growth]), expected, 1e-2)
