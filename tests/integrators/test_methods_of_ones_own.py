"""Methods that the package does not know, as someone outside writes them, and their names."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from loops import four_bar
from pendulums import pendulum

import difflie as dl
from difflie.cli.run import run_config
from difflie.integrators import ButcherTableau, FieldMethod, RungeKuttaMuntheKaas, State, by_name
from difflie.io.config import read_config
from difflie.solvers.newton import Newton
from difflie.solvers.root import root


@dl.register
class Ralston(RungeKuttaMuntheKaas):
    """An explicit Runge-Kutta method of order 3 by its tableau. Ralston 1962."""

    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        a=((), (1 / 2,), (0, 3 / 4)), b=(2 / 9, 1 / 3, 4 / 9), c=(0, 1 / 2, 3 / 4), order=3
    )


class Theta(FieldMethod):
    """y' = y . exp(h ((1 - theta) f(t, y) + theta f(t + h, y')))."""

    implicit: ClassVar[bool] = True
    stages: ClassVar[int] = 2
    order: ClassVar[int] = 1

    theta: float = eqx.field(default=0.5, static=True)

    def step(self, problem, t, state, h):
        y, field, retract = state.y, problem.field, problem.manifold.retract
        start, tangent = ravel_pytree(field(t, y))

        def residual(x):
            end, _ = ravel_pytree(field(t + h, retract(y, tangent(x))))
            return x - h * ((1 - self.theta) * start + self.theta * end)

        x, solved = root(residual, h * start, Newton())
        return State(retract(y, tangent(x))), solved


@dl.register
class Trapezoidal(Theta):
    """Of order 2, and its own adjoint."""

    time_symmetric: ClassVar[bool] = True
    order: ClassVar[int] = 2


@dl.register
class DriftKickDrift(FieldMethod):
    """A splitting: half a drift, a kick, half a drift. Of order 2 for forces of the positions."""

    time_symmetric: ClassVar[bool] = True
    stages: ClassVar[int] = 1
    order: ClassVar[int] = 2

    def step(self, problem, t, state, h):
        (positions, velocities), (q, v) = problem.manifold.factors, state.y
        q = positions.retract(q, v * (h / 2))
        _, a = problem.field(t + h / 2, (q, v))
        v = velocities.retract(v, a * h)
        return State((positions.retract(q, v * (h / 2)), v)), True


OWN = ("Ralston", "Trapezoidal", "DriftKickDrift")
every_method = pytest.mark.parametrize("name", OWN)

PENDULUM = pendulum()


@pytest.mark.slow("Trapezoidal")
@every_method
def test_the_order_is_that_of_the_method(name):
    """In `simulate`, by name, against a method of order 8."""

    def end(method, steps):
        run = dl.simulate(PENDULUM, [1.9], [0.4], dt=0.4 / steps, steps=steps, method=method)
        return np.concatenate((run.q[-1], run.v[-1]))

    exact = end("RKMK8", 40)
    coarse, fine = (np.abs(end(name, steps) - exact).max() for steps in (20, 40))
    assert np.log2(coarse / fine) == pytest.approx(by_name(name).order, abs=0.15)


@pytest.mark.slow
@pytest.mark.thorough("Ralston-3")
@pytest.mark.parametrize(
    ("name", "order"), [("Ralston", 3), ("Trapezoidal", 2), ("DriftKickDrift", 1)]
)
def test_constraints_are_kept(name, order):
    """Methods of vector fields get those of machines with constraints; forces here depend on v."""
    system, q, v = four_bar()

    def run(dt, method):
        return dl.simulate(system, q, v, dt=dt, steps=40, method=method)

    coarse, fine, known = run(2e-3, name), run(1e-3, name), run(1e-3, "RKMK4")
    assert coarse.result.ok
    assert max(np.max(x) for x in coarse.constraint_violation(system)) < 1e-12
    errors = (np.abs(q - known.q[40]).max() for q in (coarse.q[20], fine.q[40]))
    assert np.log2(np.divide(*errors)) == pytest.approx(order, abs=0.15)


@pytest.mark.slow
@every_method
def test_every_adjoint(name):
    """All derivatives are those of the steps; stepping back is for methods that say they can."""
    reverse = [dl.Direct(), dl.RecursiveCheckpoint(8)]
    if by_name(name).time_symmetric:
        reverse.append(dl.Reversible())
    else:
        with pytest.raises(ValueError, match=f"{name} is not symmetric in time"):
            dl.simulate(PENDULUM, [1.9], [0.4], method=name, adjoint=dl.Reversible())

    def end(x, adjoint):
        system = PENDULUM.replace(mass=PENDULUM.bodies.mass * x)
        push = {"control": lambda t, q, v: 2 * jnp.cos(q), "method": name, "adjoint": adjoint}
        return dl.simulate(system, x * 1.9, x * 0.4, dt=0.02, steps=12, **push).q[-1, 0]

    @jax.jit
    def derivatives(x):
        forward = jax.jvp(lambda x: end(x, dl.Forward()), (x,), (jnp.ones(1),))
        return *forward, *(jax.grad(end)(x, adjoint)[0] for adjoint in reverse)

    x, e = jnp.ones(1), 1e-5
    _, forward, *others = derivatives(x)
    difference = (derivatives(x + e)[0] - derivatives(x - e)[0]) / (2 * e)
    np.testing.assert_allclose(forward, difference, rtol=1e-8)
    np.testing.assert_allclose(others, forward, rtol=1e-10)


@pytest.mark.slow
def test_one_step_is_that_of_simulate():
    """Also of methods of one's own."""
    for name in OWN:
        run = dl.simulate(PENDULUM, [1.9], [0.4], dt=0.05, steps=1, method=name)
        q, v, solved = dl.step(PENDULUM, [1.9], [0.4], 0.05, method=name)
        assert solved
        np.testing.assert_allclose((q, v), (run.q[1], run.v[1]), rtol=1e-15)


def test_a_configuration_file_names_it(tmp_path):
    """As any other method."""
    dl.save(PENDULUM, tmp_path / "pendulum.urdf")
    (tmp_path / "run.toml").write_text(
        '[system]\nfile = "pendulum.urdf"\n[simulation]\nmethod = "Ralston"\nsteps = 2\n'
    )
    results, _ = run_config(read_config(tmp_path / "run.toml"), None)
    assert results.ok and results.method == "Ralston"


def test_names_are_checked():
    """One sentence each, before anything runs."""
    with pytest.raises(ValueError, match=r"the name 'Ralston' is taken by Ralston\(.*another name"):
        dl.register(Ralston)
    with pytest.raises(ValueError, match="the name 'RKMK4' is taken"):
        dl.register(type("RKMK4", (Ralston,), {}))
    with pytest.raises(TypeError, match=r"Unfinished.* is not possible .*abstract"):
        dl.register(type("Unfinished", (dl.Method,), {}))
    with pytest.raises(TypeError, match="3 is no Method"):
        dl.register(3)
    with pytest.raises(
        ValueError, match=r"unknown method 'Theta'; .*difflie\.register adds others"
    ):
        dl.simulate(PENDULUM, [0.0], [0.0], method="Theta")
    with pytest.raises(ValueError, match="did you mean Trapezoidal"):
        dl.step(PENDULUM, [0.0], [0.0], 0.1, method="trapezoid")
    with pytest.raises(TypeError, match="method is 4; give a Method"):
        dl.simulate(PENDULUM, [0.0], [0.0], method=4)
    lost = type("Lost", (Theta,), {"equations": int, "__module__": __name__})
    with pytest.raises(TypeError, match=r"Lost.equations is .*; it must be one of VectorField"):
        dl.simulate(PENDULUM, [0.0], [0.0], method=lost())


class Euler(FieldMethod):
    stages: ClassVar[int] = 1
    order: ClassVar[int] = 1

    def step(self, problem, t, state, h):
        rate = problem.field(t, state.y)
        return State(problem.manifold.retract(state.y, jax.tree.map(lambda k: h * k, rate))), True


class Fieldless(dl.Method):
    equations: ClassVar[type] = Euler.equations
    order: ClassVar[int] = 1
    step = Euler.step


class Startless(Euler):
    def init(self, problem, t, y, h):
        return y


class Speechless(Euler):
    def step(self, problem, t, state, h):
        return super().step(problem, t, state, h)[0]


class Doubling(Euler):
    def step(self, problem, t, state, h):
        q, v = state.y
        return State((jnp.concatenate((q, q)), v)), True


class Remembering(Euler):
    def step(self, problem, t, state, h):
        return state._replace(memory=state.y[1]), True


class Doubtful(Euler):
    def step(self, problem, t, state, h):
        return state, jnp.ones(1, bool)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Fieldless, "Fieldless integrates a VectorField and is no FieldMethod; derive"),
        (Startless, r"Startless: init returns no state of a point .*; let it return State\(y\)"),
        (Speechless, "Speechless: step returns .*; let it return two things: the state, and"),
        (Doubling, r"Doubling: step makes .*float64\[2\].*; let it return what init returns"),
        (Remembering, "Remembering: step makes .*; let it return what init returns"),
        (Doubtful, "Doubtful: step says that it was solved by .*; let it be one boolean"),
    ],
)
def test_methods_that_break_the_protocol_are_told(method, words):
    """In one sentence, in a loop as in one step."""
    for moved in (dl.step, dl.simulate):
        how = (0.1,) if moved is dl.step else ()
        with pytest.raises(TypeError, match=words):
            moved(PENDULUM, [0.0], [0.0], *how, method=method())
