"""Python's garbage collector is off only while programs are made."""

import gc
import threading

import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.native import collector_off, kernel


@pytest.fixture(autouse=True)
def restored():
    yield
    gc.enable()


def run(control):
    ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    return dl.simulate(ball, [1.0], [0.0], dt=0.01, steps=3, control=control)


def test_off_while_tracing_and_on_again():
    """While a user's function is traced it is off, and on when the run is there."""
    seen = []

    def control(t, q, v):
        seen.append(gc.isenabled())
        return -q

    with pytest.warns(UserWarning, match="changes what it depends on"):
        run(control)
    assert seen and not any(seen) and gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_an_error_in_a_users_function_leaves_it_as_it_was(enabled):
    """It is on again after an error, and one that the user switched off stays off."""

    def fails(*args):
        raise RuntimeError("as users write")

    (gc.enable if enabled else gc.disable)()
    with pytest.raises(RuntimeError, match="as users write"):
        run(fails)
    assert gc.isenabled() == enabled
    with pytest.raises(RuntimeError, match="as users write"):
        kernel(fails)(jnp.ones(3))
    assert gc.isenabled() == enabled


def test_users_own_choice_is_kept():
    """A program that is made with the collector off leaves it off."""
    gc.disable()
    run(lambda t, q, v: -2 * q)
    assert not gc.isenabled()


def test_nested_and_in_threads():
    """It is on when the last of all that wanted it off has ended, in whatever order."""
    first, second = threading.Event(), threading.Event()

    def other():
        with collector_off():
            first.set()
            second.wait(10)

    thread = threading.Thread(target=other)
    with collector_off():
        thread.start()
        assert first.wait(10)
        with collector_off():
            pass
        assert not gc.isenabled()
    assert not gc.isenabled()
    second.set()
    thread.join()
    assert gc.isenabled()


def test_on_while_a_program_runs():
    """A kernel that is called again runs with the collector as it is."""
    f = kernel(lambda x: 2 * x)
    np.testing.assert_array_equal(f(jnp.ones(3)), f(jnp.ones(3)))
    assert gc.isenabled()
