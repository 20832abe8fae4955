"""What `simulate` and `step` are given is checked once, where it comes in."""

import collections
import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl
from difflie.system.kinematic_tree import Tree

PENDULUM = pendulum(damping=0.1)
ONCE = "check_system", "formulation_of", "check_functions", "tree_numbers", "events_of"


def calls(f, *args):
    """How often functions of each name are called while f is traced."""
    counts = collections.Counter()

    def note(frame, event, _):
        if event == "call" and "/difflie/" in frame.f_code.co_filename:
            counts[frame.f_code.co_name] += 1

    jax.clear_caches()
    sys.setprofile(note)
    try:
        jax.make_jaxpr(f)(*args)
    finally:
        sys.setprofile(None)
    return counts


def law(t, q, v):
    return -v


@pytest.mark.slow
def test_simulate_checks_once():
    given = {"dt": 1e-3, "steps": 10, "control": law}
    until = lambda t, q, v: 3.0 - q[0]  # noqa: E731

    def end(q):
        return dl.simulate(PENDULUM, q, jnp.zeros(1), until=until, **given).q[-1]

    counts = calls(end, jnp.array([0.5]))
    assert {name: counts[name] for name in ONCE} == dict.fromkeys(ONCE, 1)


@pytest.mark.slow
def test_step_checks_once():
    counts = calls(lambda q: dl.step(PENDULUM, q, [0.0], 1e-3, control=law).q, jnp.array([0.5]))
    assert {name: counts[name] for name in ONCE[:4]} == dict.fromkeys(ONCE[:4], 1)


class WithMemory:
    def init(self, t, q, v):
        return q

    def __call__(self, memory, t, q, v):
        return q, memory


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"control": WithMemory()}, r"has a memory.*give difflie\.Sampled\(controller, rate\)"),
        (
            {"control": lambda t, q: q},
            r"<lambda> takes \(t, q\); it is called as control\(t, q, v\)",
        ),
        ({"wrench": lambda t: t}, r"<lambda> takes \(t\); it is called as wrench\(t, q, v\)"),
        ({"until": lambda q: q[0]}, r"<lambda> takes \(q\); it is called as until\(t, q, v\)"),
        (
            {"control": dl.Sampled(lambda m, t, q, v: q, 1000.0)},
            r"takes \(m, t, q, v\); it is called as controller\(t, q, v\)",
        ),
        ({"control": lambda t, q, v: np.sin(q)}, r"<lambda> is compiled.*use jax\.numpy in place"),
        ({"control": lambda t, q, v: q if q[0] > 0 else v}, r"and jnp\.where in place of if"),
        ({"until": lambda t, q, v: 1.0 if t < 0.5 else -1.0}, r"and jnp\.where in place of if"),
    ],
)
def test_functions_of_users_say_how_they_are_called(given, said):
    """Guards that wrong arguments, numpy and `if` in a function are answered with the way."""
    link = dl.Body(name="a", joint=dl.Revolute(), mass=1.0, com=(0, 0.5, 0))
    with pytest.raises(TypeError, match=said):
        dl.simulate(dl.chain([link]), [0.0], [0.0], dt=1e-3, steps=2, **given)


def test_errors_within_functions_of_users_stay():
    """Guards that a TypeError from within a function is not taken for a wrong call."""

    def control(t, q, v):
        return q + None

    link = dl.Body(name="a", joint=dl.Revolute(), mass=1.0, com=(0, 0.5, 0))
    with pytest.raises(TypeError, match=r"unsupported operand|not a valid"):
        dl.simulate(dl.chain([link]), [0.0], [0.0], dt=1e-3, steps=2, control=control)


@pytest.mark.slow
def test_the_tree_of_a_system_is_made_once(monkeypatch):
    """A second call makes no tree; a copy with another number, and a traced one, get their own."""
    ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    made = []
    of = Tree.of
    monkeypatch.setattr(
        Tree, "of", staticmethod(lambda system: (made.append(system), of(system))[1])
    )

    def end(system, q0=(1.0,)):
        return dl.simulate(system, q0, [0.0], dt=0.01, steps=3, control=[4.0]).v[-1, 0]

    first, count = end(ball), len(made)
    assert end(ball) == first and len(made) == count
    heavy = ball.replace(mass=[4.0])
    assert end(heavy) != first and end(ball) == first
    slope = jax.grad(lambda mass: end(ball.replace(mass=mass)))(ball.bodies.mass)
    assert slope[0] == pytest.approx(-4.0 / 2.0**2 * 0.03)
    assert end(pickle.loads(pickle.dumps(ball))) == first
