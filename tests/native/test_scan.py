"""A native loop gives the same numbers as the loop of jax, under every transformation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from transformations import assert_same, natively

from difflie.native import kernel, scan
from difflie.native.rules import control_flow

LENGTH = 12
X, GAIN = jnp.array([0.3, -1.2, 2.0]), jnp.float64(1.7)
ROWS = jnp.sin(jnp.arange(3.0 * LENGTH)).reshape(LENGTH, 3)


def ordinary(f, start, rows, length, reverse=False, every=1):
    """What `scan` should do: outputs of every n-th iteration, in the order of the rows."""
    end, out = lax.scan(f, start, rows, length, reverse)
    return end, jax.tree.map(lambda y: y[every - 1 :: every], out)


def loop(scan, length=LENGTH, reverse=False, every=1, dtype=np.float64):
    """A function of x (3,), a number and rows, with constants, carries and rows of all kinds."""

    def run(x, gain, rows):
        def body(state, row):
            x, total, count, single, ahead, empty = state
            moved = x + 0.1 * gain * jnp.sin(x[::-1]) * row["r"]
            x = jnp.where(ahead, moved, moved * jnp.cos(x))
            total = total + jnp.outer(x, x) * x0[0]
            single = single * jnp.float32(0.9) + count.astype(np.float32)
            ahead = ~ahead | (jnp.abs(total[0, 0]) > 30)
            state = x, total, count + row["n"], single, ahead, empty
            return state, (x * gain, count, {"a": ahead, "e": empty[None], "t": x[0] * x[1]})

        x0 = 2 * x
        start = x, jnp.zeros((3, 3), dtype), jnp.int32(1), jnp.float32(0.5), jnp.array(True)
        n = jnp.arange(length, dtype=np.int32)
        given = {"r": rows[:length], "n": n, "empty": jnp.zeros((length, 0))}
        return scan(body, (*start, jnp.zeros((0, 2))), given, length, reverse, every)

    return run


def scalar(f):
    def summed(*args):
        return sum(
            jnp.sum(jnp.cos(y)) for y in jax.tree.leaves(f(*args)) if y.dtype in (float, "float32")
        )

    return summed


@pytest.mark.parametrize(
    ("length", "reverse", "every"),
    [(LENGTH, False, 1), (LENGTH, True, 3), (LENGTH, False, 4), (1, False, 1), (1, True, 1)],
)
def test_values_and_gradients(length, reverse, every):
    """Carries of all types, rows, empty arrays and what f closes over, in either direction."""

    def program(scan):
        f = loop(scan, length, reverse, every)
        return lambda *args: (f(*args), jax.grad(scalar(f), (0, 1, 2))(*args))

    found = natively(3, program(scan), X, GAIN, ROWS)
    assert_same(found, jax.jit(program(ordinary))(X, GAIN, ROWS), 1e-12)


def test_no_iterations():
    """Without iterations a loop returns the start, empty outputs, and gradients of the start."""
    for reverse in (False, True):

        def program(scan, reverse=reverse):
            f = loop(scan, 0, reverse)
            gradient = jax.grad(scalar(f), (0, 1, 2))
            batch = [jnp.stack([a, 2 * a]) for a in (X, GAIN, ROWS)]
            return lambda *args: (f(*args), gradient(*args), jax.vmap(f)(*batch))

        found = jax.jit(program(scan))(X, GAIN, ROWS)
        assert_same(found, jax.jit(program(ordinary))(X, GAIN, ROWS))


SOME = [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)]


def moved(axes):
    """Arguments with batches along these axes, which have 3 environments."""
    return [
        a if axis is None else jnp.stack([a, 0.5 * a, 1.1 * a], axis)
        for a, axis in zip((X, GAIN, ROWS), axes, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("axes", SOME)
def test_batches(axes, every):
    """Values, directions and gradients of and in batches, whichever arguments have them."""
    args = moved(axes)

    def program(scan):
        f = loop(scan, every=every)
        batched, gradient = jax.vmap(f, axes), jax.grad(scalar(f), (0, 1, 2))

        def total(*args):
            return jnp.sum(jax.vmap(scalar(f), axes)(*args))

        def along(*args):
            return jax.jvp(scalar(f), args, args)

        return lambda *args: (
            batched(*args),
            jax.vmap(gradient, axes)(*args),
            jax.grad(total, (0, 1, 2))(*args),
            jax.vmap(along, axes)(*args),
        )

    assert_same(natively(7, program(scan), *args), jax.jit(program(ordinary))(*args), 1e-11)


TRANSFORMATIONS = {
    "gradient along a direction": lambda f: (
        lambda *a: jax.jvp(jax.grad(scalar(f), (0, 1, 2)), a, a)
    ),
    "gradient of a direction": lambda f: jax.grad(
        lambda *a: jax.jvp(scalar(f), a, a)[1] ** 2, (0, 1, 2)
    ),
    "gradient of a gradient": lambda f: jax.grad(
        lambda *a: sum(jnp.sum(g * g) for g in jax.grad(scalar(f), (0, 1))(*a)), (0, 1, 2)
    ),
    "hessian": lambda f: jax.hessian(scalar(f)),
    "reverse over reverse": lambda f: lambda *a: jax.jacrev(jax.grad(scalar(f)))(*a),
    "batch of batches": lambda f: (
        lambda *a: jax.vmap(jax.vmap(f, (0, None, None)), (None, 0, None))(
            *(moved((0, None, None))[:1]), moved((None, 0, None))[1], a[2]
        )
    ),
    "batch of hessians": lambda f: (
        lambda *a: jax.vmap(jax.hessian(scalar(f)), (0, None, None))(
            moved((0, None, None))[0], *a[1:]
        )
    ),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(scalar(f)), (0, 1, 2)),
    "linearize": lambda f: lambda *a: jax.linearize(scalar(f), *a)[1](*a),
    "only one output": lambda f: lambda *a: f(*a)[1][2]["t"],
    "gradient of one output": lambda f: jax.grad(lambda *a: jnp.sum(f(*a)[1][2]["t"]), (0, 2)),
    "in a loop": lambda f: (
        lambda x, *a: lax.scan(lambda x, _: (f(x, *a)[0][0], None), x, None, length=2)
    ),
    "in a kernel": lambda f: kernel(f),
    "gradient of a kernel": lambda f: jax.grad(kernel(scalar(f)), (0, 1, 2)),
}
# Calls of native code where there are not four.
CALLS = {
    "batch of batches": 1,
    "checkpoint": 2,
    "linearize": 2,
    "only one output": 1,
    "gradient of one output": 2,
    "in a loop": 1,
    "in a kernel": 1,
    "gradient of a kernel": 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name, every):
    """Derivatives of derivatives, batches of batches, and what jax does with functions."""
    transform, args = TRANSFORMATIONS[name], (X, GAIN, ROWS)
    one, two = (transform(loop(s, every=every)) for s in (scan, ordinary))
    assert_same(natively(CALLS.get(name, 4), one, *args), jax.jit(two)(*args), 1e-10)


@pytest.mark.slow
def test_single_precision():
    """Loops of single precision stay so, and run in twice as many lanes."""
    args = [a.astype(np.float32) for a in (X, GAIN, ROWS)]
    batches = [jnp.stack([a] * 5) for a in args]

    def program(scan):
        f = loop(scan, dtype=np.float32)
        gradient = jax.grad(scalar(f), (0, 1, 2))
        return lambda: (
            f(*args),
            gradient(*args),
            jax.vmap(f)(*batches),
            jax.vmap(gradient)(*batches),
        )

    assert_same(natively(6, program(scan)), jax.jit(program(ordinary))(), 1e-4)


@pytest.mark.slow
def test_ahead_of_time_and_without_jit():
    """Programs compiled ahead of time, one after the other and evaluated at once agree."""
    f, args = loop(scan), (X, GAIN, ROWS)
    found = jax.jit(f).lower(*args).compile()(*args)
    assert_same(found, f(*args))
    assert_same(jax.grad(scalar(f))(*args), jax.jit(jax.grad(scalar(f)))(*args))
    with jax.disable_jit():
        assert_same(f(*args), found, 1e-12)


@pytest.mark.parametrize("every", [1, 3])
def test_linear_transpose(every):
    """A linear loop is transposed without a point at which it is differentiated."""

    def run(scan):
        return lambda x, rows: scan(
            lambda c, r: (0.5 * c + r, c[::-1] * 2), x, rows, LENGTH, False, every
        )

    on = jnp.cos(X), jnp.cos(ROWS[: LENGTH // every])
    found = jax.linear_transpose(run(scan), X, ROWS)(on)
    # jax 0.8 cannot do this with a loop of its own.
    assert_same(found, jax.vjp(run(ordinary), X, ROWS)[1](on), 1e-13)


@pytest.mark.slow
def test_rows_of_a_batch_do_not_depend_on_its_size():
    """An environment has the same bits in batches of every size, and so have its gradients."""
    f = loop(scan)
    both = jax.jit(jax.vmap(lambda x, g: (f(x, g, ROWS), jax.grad(scalar(f))(x, g, ROWS))))
    x = jax.random.normal(jax.random.key(0), (1000, 3))
    gain = jnp.linspace(0.5, 2.0, 1000)
    whole = both(x, gain)
    for size in (1, 3, 63, 65):
        for first in (0, 1000 - size):
            rows = slice(first, first + size)
            for one, all_ in zip(
                jax.tree.leaves(both(x[rows], gain[rows])), jax.tree.leaves(whole), strict=True
            ):
                np.testing.assert_array_equal(one, all_[rows])


def test_what_is_not_a_number_shows():
    """In a carry, a constant or one row: where the loop of jax shows it, and what follows it."""
    f, g = jax.jit(loop(scan)), jax.jit(loop(ordinary))
    for args in (
        (X.at[1].set(jnp.nan), GAIN, ROWS),
        (X, GAIN * jnp.nan, ROWS),
        (X, GAIN, ROWS.at[5, 2].set(jnp.nan)),
    ):
        assert_same(f(*args), g(*args), 1e-12)


def test_carries_that_vanish_keep_what_is_not_a_number():
    """0 x is 0 natively, but a state that is not a number becomes none in a later iteration."""

    def run(scan, x):
        def body(c, _):
            return c * np.array([0.0, 1.0]) + jnp.sin(c[::-1]) * np.array([1.0, 0.0]), None

        return scan(body, x, None, 3)[0]

    for x in (jnp.array([jnp.nan, 1.0]), jnp.array([1.0, jnp.nan])):
        found = jax.jit(lambda x: run(scan, x))(x)
        assert np.isnan(found[0])
        expected = jax.jit(lambda x: run(lambda *a: ordinary(*a), x))(x)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


def test_the_way_back_of_a_solve_whose_matrix_has_lost_an_argument():
    """It is a native loop as well, and shows what is not a number."""

    def end(x, a, z, loop):
        def body(x, _):
            m = jnp.diag(jnp.array([2.0, 3.0])) + jnp.outer(a, a) * a[0] + jnp.zeros((2, 2)) * z
            return jnp.linalg.solve(m, x), None

        return jnp.sum(loop(body, x, None, 3)[0] ** 2)

    args = jnp.array([1.0, 2.0]), jnp.array([0.3, 0.4]), jnp.float64(0.7)
    gradients = [
        jax.grad(lambda *args, loop=loop: end(*args, loop)) for loop in (scan, jax.lax.scan)
    ]
    assert_same(natively(2, gradients[0], *args), gradients[1](*args))
    for wrong in ((jnp.nan * args[0], *args[1:]), (*args[:2], jnp.nan)):
        assert all(np.isnan(g(*wrong)).all() for g in gradients)


@pytest.mark.slow("2-True")
@pytest.mark.parametrize(("every", "reverse"), [(1, False), (2, True)])
def test_loops_without_a_program(every, reverse):
    """A body with an operation that has no program runs the ordinary way, derivatives included."""

    def program(scan):
        def run(x):
            def body(x, row):
                noise = jax.random.normal(jax.random.key(3), (2,))
                values = jnp.real(jnp.fft.fft(jnp.sin(x))) + noise
                return 0.3 * values + row, (values, jnp.zeros((0, 3)))

            return scan(body, x, jnp.ones((4, 2)), 4, reverse, every)

        def total(x):
            return sum(jnp.sum(y) for y in jax.tree.leaves(run(x)))

        x = jnp.array([0.3, 0.5])
        b = jnp.stack([x, 2 * x, 3 * x])
        return lambda: (
            run(x), jax.grad(total)(x), jax.vmap(run)(b), jax.vmap(jax.grad(total))(b),
            jax.hessian(total)(x),
        )  # fmt: skip

    assert_same(natively(0, program(scan)), jax.jit(program(ordinary))(), 1e-9)


def test_nothing_carried():
    """Loops that only map rows, carry nothing that is used, or have no rows."""

    def program(scan):
        return lambda x: (
            scan(lambda c, r: (c, jnp.sin(r)), (), x, 4),
            scan(lambda c, r: (c, None), x, None, 4),
            scan(lambda c, r: (c, {}), {}, {}, 4),
            scan(lambda c, _: ((c[1], c[0]), c[0]), (x, 2 * x), None, 3),
            scan(lambda c, r: (2.0, r), 1.0, x[:, 0], 4),
            jax.vmap(lambda x: scan(lambda c, _: (c, jnp.arange(3.0)), x, None, 3))(x),
        )

    x = ROWS[:4]
    assert_same(jax.jit(program(scan))(x), jax.jit(program(ordinary))(x))


@pytest.mark.slow
def test_loops_in_lanes_that_end_at_different_times():
    """What an iteration writes spoils neither which lanes go on, nor what is computed once."""

    def solved(x, gain):
        """Attempts of an iteration with an inner one, both with many values on the way."""

        def improve(state):
            y, _, count = state
            signs = [jnp.cos(k * y) > 0 for k in range(9)]
            wave = sum(jnp.cos((k + 1) * gain) * jnp.cos(y + k) for k in range(300))
            wave += sum(jnp.where(s, 0.1, 0.2) for s in signs)
            new = y - (y * y * y + y - x + 1e-3 * wave) / (3 * y * y + 2)
            return new, jnp.abs(new - y), count + 1

        def attempt(state):
            y, size, iterations = state
            y, size, count = lax.while_loop(
                lambda s: (s[1] > 1e-3 * gain) & (s[2] < 9), improve, (y, jnp.inf, 0)
            )
            return y, size * gain, iterations + count

        def unfinished(state):
            sums = sum(jnp.cos(k * gain + state[0]) ** 2 for k in range(40))
            return (state[1] > 1e-9) & (state[2] < 60) & (sums < 50)

        return lax.while_loop(unfinished, attempt, (x, jnp.asarray(jnp.inf), 0))

    x, gain = jnp.array([0.0, 1.0, jnp.nan, 30.0, jnp.inf, -2.0]), jnp.linspace(0.5, 3.0, 6)
    found = natively(1, jax.vmap(kernel(solved)), x, gain)
    for k in range(6):
        assert_same(tuple(a[k] for a in found), jax.jit(solved)(x[k], gain[k]), 1e-12)


@pytest.mark.parametrize("count", [1, 4, 5, 11])
@pytest.mark.parametrize("points", [1, 3])
def test_many_directions_at_a_point(count, points):
    """Guards directions of a derivative that are computed in groups, at one point or more."""

    def motion(x, gain):
        def body(state, row):
            state = state + 0.1 * gain[:3] * jnp.sin(state[::-1]) * row + 0.01 * gain[3]
            return state, jnp.stack((state[0] * state[1], gain[0] * row))

        end, seen = scan(body, x, jnp.arange(1.0, 7.0), 6, every=2)
        return jnp.concatenate((end, seen.ravel()))

    x = jnp.linspace(-1.0, 1.0, 3 * points).reshape(points, 3)
    gain = jnp.asarray([0.3, -0.7, 1.1, 0.2])
    rng = np.random.default_rng(0)
    directions = jnp.asarray(rng.normal(size=(count, 4)))

    def along(direction):
        f = lambda gain: jax.vmap(motion, (0, None))(x, gain)  # noqa: E731
        return jax.jvp(f, (gain,), (direction,))[1]

    together = jax.jit(jax.vmap(along))(directions)
    one_by_one = jnp.stack([jax.jit(along)(direction) for direction in directions])
    np.testing.assert_allclose(together, one_by_one, rtol=1e-13, atol=1e-15)


@pytest.mark.slow("False")
@pytest.mark.parametrize("reverse", [False, True])
def test_long_loops_inside_are_not_written_out(monkeypatch, reverse):
    """As those written out: rows known and given, derivatives, batches, in one loop around it."""
    monkeypatch.setenv("DIFFLIE_CACHE", "0")
    monkeypatch.setattr(control_flow, "_entries", lambda jaxpr: 10**9)
    used = set()

    def counted(name):
        f = getattr(control_flow, name)
        monkeypatch.setattr(control_flow, name, lambda *args: used.add(name) or f(*args))

    counted("rolled")
    counted("rolled_linear")
    known = np.linspace(0.3, 1.1, 5)

    def run(scan, x, rows):
        def body(x, row):
            def inside(state, row):
                y, count = state
                factor, k, first = row
                y = jnp.where(first, jnp.sin(y), y) + 0.1 * factor * k * x[::-1]
                return (y, count + 1), None

            places = known, rows[:5, 0], jnp.arange(5) == 0
            (y, count), _ = lax.scan(inside, (x * row, 0), places, reverse=reverse)
            return y / (1 + y @ y), count

        return scan(body, x, rows, LENGTH)

    def mine(x, rows):
        return run(scan, x, rows)

    def jaxs(x, rows):
        return run(lax.scan, x, rows)

    for f, g in ((mine, jaxs), (scalar(mine), scalar(jaxs)), *_derivatives(mine, jaxs)):
        natively_made, right = jax.jit(f)(X, ROWS), g(X, ROWS)
        for a, b in zip(*map(jax.tree.leaves, (natively_made, right)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert used == {"rolled", "rolled_linear"}
    for k in range(3):
        broken = X.at[k].set(np.nan), ROWS
        found, right = (jax.jit(jax.grad(scalar(f)))(*broken) for f in (mine, jaxs))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(right))
    batch = X + jnp.arange(3.0)[:, None]
    both = [jax.jit(jax.vmap(f, (0, None)))(batch, ROWS)[0] for f in (mine, jaxs)]
    np.testing.assert_allclose(*both, rtol=1e-12)


def test_long_loops_inside_that_wait_for_a_condition(monkeypatch):
    """They are repeated, not written out, in gradients too, which no branch takes from them."""
    monkeypatch.setenv("DIFFLIE_CACHE", "0")
    monkeypatch.setattr(control_flow, "_entries", lambda jaxpr: control_flow._MOST_TRANSPOSED // 4)
    rolled_linear, used = control_flow.rolled_linear, []
    monkeypatch.setattr(
        control_flow, "rolled_linear", lambda *args: used.append(1) or rolled_linear(*args)
    )

    def run(scan, x, rows):
        def body(x, row):
            def attempt(state):
                left, x = state
                inside = lax.scan(lambda y, _: (jnp.sin(y) + 0.1 * row, None), x, None, 2)[0]
                return left - 0.3, x / (1 + inside @ inside)

            def guarded(state, _):
                return lax.cond(state[0] > 0, attempt, lambda state: state, state), None

            _, x = lax.scan(guarded, (jnp.abs(row[0]), x * row), None, 2)[0]
            return x, x[0]

        return scan(body, x, rows, LENGTH)

    mine, jaxs = scalar(lambda *args: run(scan, *args)), scalar(lambda *args: run(lax.scan, *args))
    gradient = natively(2, jax.grad(mine, (0, 1)), X, ROWS)
    assert_same(gradient, jax.jit(jax.grad(jaxs, (0, 1)))(X, ROWS), 1e-12)
    assert used


def _derivatives(mine, jaxs):
    """Gradients, the tangent along ones, and second derivatives."""
    along_ones = lambda f: lambda *x: jax.jvp(f, x, jax.tree.map(jnp.ones_like, x))  # noqa: E731
    for change in (jax.grad, lambda f: jax.grad(f, (0, 1)), along_ones, jax.hessian):
        yield change(scalar(mine)), change(scalar(jaxs))
