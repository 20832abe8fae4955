"""Code that is kept is found by a digest, the same in every process and of one loop only."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie import native
from difflie.native.fingerprint import fingerprint, sources
from difflie.native.loop import Loop
from difflie.native.loop_body import Traced
from difflie.native.loop_derivatives import transposed


def loop(f, *args, consts=0, carry=0, rows=1, **settings):
    """A loop whose iteration is f, with arguments like these."""
    closed = jax.make_jaxpr(f)(*args)
    n = len(args) - consts - carry
    saved = (1,) * (len(closed.out_avals) - carry)
    return Loop(Traced(closed), consts, carry, (rows,) * n, saved, 10, **settings)


def digest(f, *args, **settings):
    return fingerprint(loop(f, *args, **settings))


X = jnp.arange(3.0)
TABLE = np.arange(2000.0)
OTHER = np.where(np.arange(2000) == 1000, 0.5, TABLE)


@jax.custom_jvp
def custom(x):
    return jnp.sin(x)


@custom.defjvp
def _custom(x, dx):
    return custom(x[0]), dx[0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.sin(x) * 2.0,
        lambda x: jnp.where(x > 1, x, 0.0)[jnp.array([0, 2])],
        lambda x: x.at[1].set(3.0),
        lambda x: jax.lax.scan(lambda s, y: (s + y, s), 0.0, x)[1],
        lambda x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: s + 1, x),
        lambda x: jnp.linalg.solve(jnp.eye(3) + x, x),
        jax.jacfwd(jnp.sin),
        custom,
    ],
)
def test_a_function_traced_again_has_the_same_digest(f):
    """Objects that jax makes anew with every trace do not count."""
    assert digest(f, X) == digest(lambda x: f(x), X) is not None


def test_different_functions_have_different_digests():
    """Numbers to the last bit, large constants, operations, parameters, types, shapes, order."""
    half = jnp.float32(0.1) + jnp.zeros(3, jnp.float32)
    found = [
        digest(lambda x: x * 2.0, X),
        digest(lambda x: x * np.nextafter(2.0, 3.0), X),
        digest(lambda x: x + 2.0, X),
        digest(lambda x: x * 2.0, jnp.ones(4)),
        digest(lambda x: x * 2.0, half),
        digest(lambda x: x * 2, jnp.arange(3)),
        digest(lambda x: x[::-1], X),
        digest(lambda x: x[np.array([1, 0, 2])], X),
        digest(lambda x: x[np.array([1, 2, 0])], X),
        digest(lambda x: x.at[1].add(3.0), X),
        digest(lambda x: x.at[1].mul(3.0), X),
        digest(lambda x: x**3, X),
        digest(lambda x: x**4, X),
        digest(lambda x: jnp.cumsum(x), X),
        digest(lambda x: jnp.cumsum(x, axis=0)[1:], X),
        digest(lambda x: jnp.sum(x * TABLE[:, None]), X),
        digest(lambda x: jnp.sum(x * OTHER[:, None]), X),
        digest(lambda x, y: x - y, X, X),
        digest(lambda x, y: y - x, X, X),
        digest(lambda x, y: x - y, X, X, consts=1),
        digest(lambda x, y: x - y, X, X, carry=1),
        digest(lambda x, y: x - y, X, X, rows=2),
        digest(lambda x, y: x - y, X, X, reverse=True),
        digest(lambda x: jax.lax.scan(lambda s, y: (s + y, s), 0.0, x)[1], X),
        digest(lambda x: jax.lax.scan(lambda s, y: (s - y, s), 0.0, x)[1], X),
        digest(lambda x: jax.lax.scan(lambda s, y: (s + y, s), 0.0, x, reverse=True)[1], X),
        digest(custom, X),
    ]
    assert None not in found and len(set(found)) == len(found)


def test_transposes_are_known_by_what_they_are_linear_in():
    """The way back of one loop differs with the arguments whose cotangents are asked for."""
    one = loop(lambda x, y: x + 2.0 * y, X, X)
    found = [fingerprint(transposed(one, f)) for f in [(True, True), (True, False), (False, True)]]
    assert len({*found, fingerprint(one)}) == 4


def test_the_number_of_iterations_does_not_count_unless_a_loop_is_inside():
    """Machine code runs any number of iterations, but writes out those of a loop inside."""
    assert digest(jnp.sin, X) == fingerprint(
        Loop(Traced(jax.make_jaxpr(jnp.sin)(X)), 0, 0, (1,), (1,), 7)
    )

    def inner(length):
        from difflie.native import scan

        return digest(lambda x: scan(lambda s, _: (s * x, None), x, None, length)[0], X)

    assert inner(3) != inner(4)


def test_options_count():
    one = loop(jnp.sin, X)
    assert fingerprint(one, (True,), 8) != fingerprint(one, (False,), 8) != fingerprint(one)


def test_all_of_the_compiler_counts():
    """Code of another compiler is not found, in whichever of its folders it differs."""
    folder = Path(native.__file__).parent
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*.py")]
    assert sorted(name for name, _ in sources(folder)) == sorted(names)


def test_what_cannot_be_read_has_no_digest():
    """An operation with an unknown parameter is known by its written program alone."""

    def f(x):
        return jax.pure_callback(lambda a: np.asarray(a), jax.ShapeDtypeStruct((3,), x.dtype), x)

    assert digest(f, X) is None
