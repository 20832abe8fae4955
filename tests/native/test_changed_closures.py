"""Programs are compiled anew after a change of what a function of the user depends on."""

import functools
import types
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
import difflie.quantities as dq
from difflie.native.closures import Watched, closed_over, content_of, watched

GAIN, TABLE, SETTINGS = 1.0, np.ones(3), {"gain": 1.0, "rows": [1.0, 2.0]}
HERE = types.SimpleNamespace(gain=1.0)


def helper(x):
    return GAIN * x


class Law:
    factor = 2.0

    def __init__(self):
        self.gain, self.table = 1.0, np.ones(2)

    def __call__(self, t, q, v):
        return self.inner(q)

    def inner(self, q):
        return -self.factor * self.gain * q * self.table[0] * GAIN


def closing(x):
    return lambda t, q, v: x * q


def cell(f):
    return f.__closure__[0]


LAW, CLOSING = Law(), closing(1.0)
OWN = closing(jnp.ones(2))
CHANGES = {
    "a global": (lambda x: GAIN * x, lambda: globals().update(GAIN=2.0)),
    "a global of another type": (lambda x: GAIN * x, lambda: globals().update(GAIN=1)),
    "minus one and minus two": (closing(-1), lambda f: setattr(cell(f), "cell_contents", -2)),
    "a global in an inner function": (
        lambda x: jax.vmap(lambda y: GAIN * y)(x),
        lambda: globals().update(GAIN=2.0),
    ),
    "what a helper reads": (lambda x: helper(x), lambda: globals().update(GAIN=2.0)),
    "an array in place": (lambda x: x @ TABLE, lambda: TABLE.__setitem__(1, 5.0)),
    "an entry of a dictionary": (lambda x: SETTINGS["gain"], lambda: SETTINGS.update(gain=3.0)),
    "an entry of a list": (
        lambda x: SETTINGS["rows"],
        lambda: SETTINGS["rows"].__setitem__(0, 7.0),
    ),
    "an attribute of an object": (lambda x: HERE.gain * x, lambda: setattr(HERE, "gain", 2.0)),
    "an attribute of a callable": (LAW, lambda: setattr(LAW, "gain", 2.0)),
    "an array of a callable": (LAW, lambda: LAW.table.__setitem__(0, 2.0)),
    "an attribute of a class": (LAW, lambda: setattr(Law, "factor", 4.0)),
    "a global in a method": (LAW, lambda: globals().update(GAIN=2.0)),
    "a bound method": (LAW.inner, lambda: setattr(LAW, "gain", 2.0)),
    "a closed value": (CLOSING, lambda f: setattr(cell(f), "cell_contents", 2.0)),
    "another array of jax": (OWN, lambda f: setattr(cell(f), "cell_contents", jnp.ones(2))),
    "an argument of a partial function": (
        functools.partial(lambda a, x: a * x, TABLE),
        lambda: TABLE.__setitem__(0, 5.0),
    ),
}


@pytest.fixture
def restored():
    """All values that a test changes have their values again."""

    def reset():
        globals().update(GAIN=1.0)
        TABLE[:], LAW.table[:], LAW.gain, Law.factor, HERE.gain = 1.0, 1.0, 1.0, 2.0, 1.0
        SETTINGS.update(gain=1.0, rows=[1.0, 2.0])
        cell(CLOSING).cell_contents = 1.0

    reset()
    yield
    reset()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name, restored):
    f, change = CHANGES[name]
    before = closed_over(f)
    assert before == closed_over(f)
    change(f) if change.__code__.co_argcount else change()
    assert before != closed_over(f)


def test_other_globals_and_other_functions_do_not_count(restored):
    """Only names that the code reads count, and libraries not beyond their identity."""
    f = lambda x: jnp.sin(x) * GAIN  # noqa: E731
    before = closed_over(f)
    SETTINGS["gain"], HERE.gain = 9.0, 9.0
    assert before == closed_over(f)
    assert len(before) < 100


def test_the_digest_of_all_processes_is_made_of_names_and_contents(restored):
    """It holds no number of an object, and arrays of jax by their content."""
    one, other = closing(jnp.ones(2)), closing(jnp.ones(2))
    assert closed_over(one) != closed_over(other)
    assert content_of(one) == content_of(other) != content_of(closing(jnp.zeros(2)))
    assert content_of(lambda x: x + 1) != content_of(lambda x: x + 2)


def test_things_that_hold_each_other_end():
    ring = types.SimpleNamespace(f=None)
    ring.f = lambda t, q, v: ring.f
    assert closed_over(ring.f) == closed_over(ring.f)


def test_modules_and_functions_of_packages_are_left_as_they_are():
    module = eqx.nn.Linear(2, 2, key=jax.random.PRNGKey(0))
    assert watched(module) is module and watched(jnp.sin) is jnp.sin
    assert isinstance(watched(LAW), Watched) and watched(watched(LAW)).function is LAW


@pytest.fixture(scope="module")
def pendulum():
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0))
    return dl.chain([dl.Body(name="a", joint=joint, mass=1.0, com=(0.0, 0.0, -0.3))])


def motion(system, **given):
    return dl.simulate(system, [0.5], [0.2], dt=1e-2, steps=20, method="SemiImplicitEuler", **given)


class WithMemory(Law):
    def init(self, t, q, v):
        return jnp.zeros(1)

    def __call__(self, memory, t, q, v):
        return self.inner(q), memory


class Wind(dl.JointForce):
    joint: str = eqx.field(static=True)

    def effort(self, x, v):
        return GAIN * jnp.ones_like(x)


SLOW = WithMemory()


def ended(system):
    run = motion(system, until=lambda t, q, v: q[0] - 0.5 + 0.02 * GAIN)
    return run.result.ending.t


USES = {
    "control": lambda s: motion(s, control=lambda t, q, v: -GAIN * q).q[-1, 0],
    "wrench": lambda s: motion(s, wrench=lambda t, q, v: jnp.full((1, 6), GAIN)).q[-1, 0],
    "until": ended,
    "sampled": lambda s: motion(s, control=dl.Sampled(SLOW, 100.0)).q[-1, 0],
    "step": lambda s: dl.step(s, [0.5], [0.2], 0.1, control=lambda t, q, v: -GAIN * q).q,
    "quantity": lambda s: dq.along(lambda s, q, v, u, t: GAIN * q, s, motion(s))[0],
    "reduction": lambda s: motion(
        s, reductions={"peak": dq.Peak(lambda s, q, v, u, t: GAIN * q[0])}
    ).reduced["peak"],
    "force": lambda s: motion(dl.attach(s, Wind(joint="a"))).q[-1, 0],
}


@pytest.mark.parametrize("name", USES)
def test_the_next_call_knows(name, pendulum, restored):
    """A change of a global, and the way back, which is compiled already."""
    run = USES[name]
    first = run(pendulum)
    globals().update(GAIN=3.0)
    second = run(pendulum)
    globals().update(GAIN=1.0)
    third = run(pendulum)
    assert not np.allclose(first, second) and np.array_equal(first, third)


def test_without_a_change_nothing_is_traced_again(pendulum, restored):
    traced = []

    def control(t, q, v):
        len(traced)
        return -GAIN * q

    def counted(t, q, v):
        traces[0] += 1
        return control(t, q, v)

    traces = np.zeros(1, int).view(_Silent)
    motion(pendulum, control=counted)
    made = int(traces[0])
    for _ in range(3):
        motion(pendulum, control=counted)
    assert int(traces[0]) == made


class _Silent(np.ndarray):
    """A counter that a digest sees as the same."""

    def tobytes(self, *args, **kwargs):
        return b""


def test_a_function_that_changes_itself_is_given_up_with_one_warning(pendulum):
    class Counting(Law):
        calls = 0

        def __call__(self, t, q, v):
            self.calls += 1
            return -self.gain * q

    law = Counting()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ends = [motion(pendulum, control=law).q[-1, 0] for _ in range(4)]
    assert len([w for w in found if "whenever it is called" in str(w.message)]) == 1
    assert len(set(map(float, ends))) == 1 and law.calls < 8
