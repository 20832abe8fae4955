"""What `simulate` and `step` are given is checked once, where it comes in."""

import collections
import sys

import jax
import jax.numpy as jnp
from pendulums import pendulum

import difflie as dl

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


def test_simulate_checks_once():
    given = {"dt": 1e-3, "steps": 10, "control": law}
    until = lambda t, q, v: 3.0 - q[0]  # noqa: E731

    def end(q):
        return dl.simulate(PENDULUM, q, jnp.zeros(1), until=until, **given).q[-1]

    counts = calls(end, jnp.array([0.5]))
    assert {name: counts[name] for name in ONCE} == dict.fromkeys(ONCE, 1)


def test_step_checks_once():
    counts = calls(lambda q: dl.step(PENDULUM, q, [0.0], 1e-3, control=law).q, jnp.array([0.5]))
    assert {name: counts[name] for name in ONCE[:4]} == dict.fromkeys(ONCE[:4], 1)
