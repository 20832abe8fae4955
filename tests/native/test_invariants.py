"""What programs and derived loops rest on, as it stands at the heads of their files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.native import loop_derivatives as ld
from difflie.native.loop import Loop
from difflie.native.loop_body import Traced
from difflie.native.program import Program, finished


def evaluated(program: Program, arguments: list[float]) -> list[float]:
    """The results of a program of sums, products and choices."""
    given, values = iter(arguments), {}
    steps = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "neg": lambda a: -a,
        "ne": lambda a, b: a != b,
        "or": lambda a, b: a or b,
        "select": lambda c, a, b: a if c else b,
    }
    for k, name in enumerate(program.operations):
        operands = [values[x] for x in program.operands[k]]
        if name == "argument":
            values[k] = next(given)
        elif name == "alias":
            values[k] = operands[0]
        else:
            known = program.known[k]
            values[k] = steps[name](*operands) if known is None else known
    return [values[x] for x in program.results]


@pytest.mark.parametrize("many", [1, 40])
def test_what_vanishes_takes_no_argument_with_it(many):
    """Folded sums and products are NaN where those written out are, however many results."""
    random, n = np.random.default_rng(many), 6
    program = Program()
    xs = [program.argument("f64") for _ in range(n)]
    factors = random.integers(-1, 2, (many, n)).astype(float)
    terms = random.integers(0, n, (many, 2))
    results = []
    for row, (i, j) in zip(factors, terms, strict=True):
        total = program.mul(xs[i], xs[j], "f64")
        for a, x in zip(row, xs, strict=True):
            total = program.add(total, program.mul(program.constant(a, "f64"), x, "f64"), "f64")
        results.append(total)
        assert program.shown[program.base(total)] & program.lost(total) == 0
        assert program.needed(total) == 2**n - 1
    program = finished(program, results)
    assert not any(map(program.lost, program.results))
    values = list(np.arange(1.0, n + 1))
    expected = [
        values[i] * values[j] + row @ values for row, (i, j) in zip(factors, terms, strict=True)
    ]
    np.testing.assert_allclose(evaluated(program, values), expected)
    for k in range(n):
        broken = [np.nan if i == k else x for i, x in enumerate(values)]
        assert np.isnan(evaluated(program, broken)).all()


def body(c, s, x):
    return jnp.sin(c * s) + x[:2], s * x[0] * c


C, S = jnp.array([0.7, -0.4]), jnp.array([0.3, 0.9])
X = jnp.array(np.random.default_rng(0).normal(size=(5, 3)))
LOOP = Loop(Traced(jax.make_jaxpr(body)(C, S, X[0])), 1, 1, (1,), (1,), 5)


def test_the_loop_of_tangents_carries_tangents_and_reads_states():
    """Its arguments are those drawn; it is the derivative, and linear in all tangents together."""
    active, active_results = ld.activity(LOOP, [True, False, False])
    assert (active, active_results) == ([True, True, False], [True, True])
    with_states, tangents = ld.jvp(LOOP, active, active_results)
    assert (tangents.consts, tangents.carry, tangents.rows, tangents.saved) == (2, 1, (1, 1), (1,))
    assert tangents.directions == (False, True, True, False, False)
    assert (with_states.saved, with_states.carry) == ((1, 1), 1)
    end, saved, states = with_states.apply(C, S, X)
    np.testing.assert_array_equal(states[0], S)
    dc, ds = jnp.array([1.0, 0.5]), jnp.array([-0.2, 0.1])
    found = tangents.apply(C, dc, ds, states, X)
    expected = jax.jvp(lambda c, s: LOOP.apply(c, s, X), (C, S), (dc, ds))[1]
    for a, b, twice in zip(
        found, expected, tangents.apply(C, 2 * dc, 2 * ds, states, X), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(twice, 2 * a, rtol=1e-12)
    together = ld.with_tangents(LOOP, active, active_results)
    assert (together.consts, together.carry) == (2, 2)
    both = together.apply(C, dc, S, ds, X)
    for a, b in zip(both, (end, found[0], saved, found[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_transposed_loop_goes_back():
    """<^y, A x> = <A^T ^y, x>, with what it carries and the sums for constants as drawn."""
    with_states, tangents = ld.jvp(LOOP, *ld.activity(LOOP, [True, True, True]))
    states = with_states.apply(C, S, X)[-1]
    linear = tangents.directions
    back = ld.transposed(tangents, linear)
    assert back.reverse and (back.consts, back.carry) == (1, 2)
    random = np.random.default_rng(1)
    dc, ds, dx = (jnp.asarray(random.normal(size=a.shape)) for a in (C, S, X))
    to_s, to_y = tangents.apply(C, dc, ds, states, X, dx)
    on_s, on_y = (jnp.asarray(random.normal(size=a.shape)) for a in (to_s, to_y))
    from_s, from_c, from_x = back.apply(C, on_s, 0 * C, states, X, on_y)
    left = jnp.sum(on_s * to_s) + jnp.sum(on_y * to_y)
    right = jnp.sum(from_s * ds) + jnp.sum(from_c * dc) + jnp.sum(from_x * dx)
    assert float(left) == pytest.approx(float(right), rel=1e-12)


def test_the_loop_of_some_results_has_the_same_numbers():
    """What is not asked for goes, with all that only it reads; what is carried and read stays."""
    smaller, left, keep = ld.needed(LOOP, [False, True])
    assert (left, keep) == ([True, True], [True, True, True])
    for a, b in zip(smaller.apply(C, S, X), LOOP.apply(C, S, X), strict=True):
        np.testing.assert_array_equal(a, b)
    smaller, left, keep = ld.needed(LOOP, [True, False])
    assert (left, keep, smaller.saved) == ([True, False], [True, True, True], ())
    np.testing.assert_array_equal(smaller.apply(C, S, X)[0], LOOP.apply(C, S, X)[0])
