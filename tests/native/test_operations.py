"""Every operation of programs does what it does in jax, in numbers, batches and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from transformations import assert_same, natively

from difflie.native import kernel
from difflie.native.jaxprs import nested
from difflie.native.program import Unsupported
from difflie.native.rules import RULES, SCALAR_RULES
from difflie.native.rules.parameters import PARAMETERS, check

# Functions of floating-point numbers x (4,) in (0, 1) and m (3, 4), of whole numbers n (4,) in
# 0..9, of which the first are 2, 0 and 7, and of truths b (4,).
SMOOTH = {
    "sums": lambda x, m, n, b: (x + m, x - m, x * m, m / x, -x, lax.add(x, x), 0.1 * m - x),
    "roots and powers": lambda x, m, n, b: (
        jnp.sqrt(x), lax.rsqrt(x), jnp.cbrt(x), x**2.5, x**-3, x**7, m**2, jnp.square(m),
        lax.integer_pow(m, 5), lax.pow(x, m[0]), lax.pow(x, n),
    ),
    "exponentials": lambda x, m, n, b: (
        jnp.exp(m), jnp.exp2(m), jnp.expm1(m), jnp.log(x), jnp.log1p(x), lax.logistic(m),
        jnp.tanh(m), jnp.sinh(m), jnp.cosh(m), jnp.arcsinh(m), jnp.arccosh(1 + x), jnp.arctanh(x),
        jnp.log2(x), jnp.polyval(jnp.stack((x, m[0], x * x)), m),
    ),
    "angles": lambda x, m, n, b: (
        jnp.sin(m), jnp.cos(m), jnp.tan(x), jnp.arcsin(x), jnp.arccos(x), jnp.arctan(m),
        jnp.arctan2(x, m), lax.rem(x, m[0]), jnp.mod(m, x),
    ),
    "error functions": lambda x, m, n, b: (lax.erf(m), lax.erfc(m)),
    "signs": lambda x, m, n, b: (
        jnp.abs(m), jnp.sign(m), jnp.floor(3 * m), jnp.ceil(3 * m), lax.round(3 * m, 1),
        jnp.maximum(x, m), jnp.minimum(x, m), jnp.clip(m, -0.5, 0.5), lax.clamp(x, m[0], 2 * x),
    ),
    "choices": lambda x, m, n, b: (
        jnp.where(b, x, m), jnp.where(x > 0.5, x, 2 * x), lax.select(b, x, -x),
        lax.select_n(jnp.clip(n, 0, 2), x, 2 * x, x * x), lax.select_n(b[0], m, -m),
    ),
    "reductions": lambda x, m, n, b: (
        jnp.sum(m), jnp.sum(m, 0), jnp.sum(m, (1,)), jnp.prod(m, 1), jnp.max(m, 0), jnp.min(m),
        jnp.mean(m, 1), jnp.sum(m[:, :0], 1), jnp.sum(m[:0], 1), jnp.sum(m[:0]), jnp.sum(m[:0], 0),
        jnp.std(m),
    ),
    "cumulative": lambda x, m, n, b: (
        jnp.cumsum(m, 0), jnp.cumsum(m, 1), lax.cumsum(m, 1, reverse=True), lax.cumprod(m, 0),
        lax.cumsum(m[:, :0], 1), lax.cumsum(m[:0], 0),
    ),
    "products": lambda x, m, n, b: (
        m @ x, m @ m.T, jnp.outer(x, x), jnp.einsum("ij,kj->ik", m, m),
        jnp.einsum("bi,bij->bj", m, jnp.einsum("bi,j->bij", m, x)), jnp.vdot(x, x),
        jnp.cross(x[:3], m[:, 0]), m[:0] @ x, m[:, :0] @ x[:0], jnp.tensordot(m, m),
    ),
    "shapes": lambda x, m, n, b: (
        m.T, m.reshape(2, 6), m.ravel()[::-2], m[1:, ::2], x[None, :, None], jnp.squeeze(m[:1]),
        jnp.broadcast_to(x, (2, 4)), jnp.concatenate([m, m], 1), jnp.stack([x, x], 1),
        jnp.flip(m, 1), jnp.split(m, (1, 3), 1), jnp.tile(x, 2), jnp.roll(m, 1, 1),
        jnp.moveaxis(m[None], 0, 2), lax.rev(m, (0, 1)), m[:0], jnp.expand_dims(x, 1),
    ),
    "pads": lambda x, m, n, b: (
        jnp.pad(x, (1, 2)), lax.pad(x, x[0], [(1, 2, 1)]), lax.pad(x, x[0], [(-1, 2, 1)]),
        lax.pad(m, x[1], [(-1, -1, 0), (2, -3, 2)]), lax.pad(x, x[0], [(-2, -2, 0)]),
        lax.pad(x[:0], x[0], [(1, 1, 1)]), jnp.pad(m, 1, constant_values=2.0),
    ),
    "known places": lambda x, m, n, b: (
        m[1], m[:, 2], m[np.array([2, 0, 2])], m[:, np.array([3, 1])],
        m[np.array([0, 2]), np.array([1, 1])], x[np.array([[0, 3], [1, 2]])], x[-1],
        x.at[np.array([0, 9])].get(mode="fill"), x.at[np.array([0, 9])].get(mode="clip"),
        n.at[np.array([0, 9])].get(mode="fill"), b.at[np.array([0, 9])].get(mode="fill"),
        jnp.take_along_axis(m, np.array([[0], [1], [3]]), 1), jnp.diag(x), jnp.diagonal(m),
        jnp.diag(m[:, :3]),
        x.at[np.array([1, 3])].set(m[0, :2]), m.at[:, 1].add(1.0),
        x.at[np.array([1, 1])].add(x[:2]), x.at[1].subtract(x[0]),
        m.at[1:, 1:3].set(0.0), x.at[np.array([0, 9])].set(5.0, mode="drop"), m.at[0].multiply(2.0),
        jnp.triu(m), m[np.eye(3, 4, dtype=bool)],
    ),
    "places from run time": lambda x, m, n, b: (
        m[n[0]], x[n[1]], m.at[n[0], n[1]].get(mode="clip"), x.at[n].get(mode="clip"),
        x[n[0]],
        lax.dynamic_slice(m, (n[0], n[1]), (2, 2)), lax.dynamic_slice(x, (n[2],), (2,)),
        lax.dynamic_slice(m, (n[2], np.int32(1)), (2, 3)), lax.dynamic_slice(x, (-n[0],), (2,)),
        lax.dynamic_update_slice(m, -m[:2, :2], (n[0], n[1])),
        lax.dynamic_update_slice(x, -x[:2], (n[2],)),
        lax.dynamic_index_in_dim(m, n[0], 0), lax.dynamic_slice(x, (n[2],), (4,)),
        x.at[n[0]].set(m[0, 0]), m.at[n[1]].add(x), x.at[n[2]].set(3.0), m.at[:, n[0]].set(m[:, 0]),
        x.at[n[2]].set(3.0, mode="clip"), lax.dynamic_slice(x, (n[0].astype(np.uint32),), (2,)),
    ),
    "several places from run time": lambda x, m, n, b: (
        x[n % 4], x.at[n].get(mode="fill"), x.at[n - 3].get(mode="fill", fill_value=2.0),
        m[n % 3, n % 4],
        m.at[:, n].get(mode="clip"), n.at[n].get(mode="fill"), b.at[n].get(mode="fill"),
        jax.vmap(lambda r, k: lax.dynamic_slice(r, (k,), (2,)))(m, n[:3]),
        jax.vmap(lambda r, k: r.at[k].get(mode="fill"), (1, 0))(m, n),
        jnp.take_along_axis(m, n[:3, None], 1), x.at[n].add(m[0]), x.at[n].add(m[0], mode="clip"),
        m.at[n, n[::-1]].add(x), m.at[:, n].add(m), m.at[n[:3]].subtract(m),
        jax.vmap(lambda r, k, y: r.at[k].set(y))(m, n[:3], x[:3]),
        jax.vmap(lambda r, k: lax.dynamic_update_slice(r, r[:2] * r[0], (k,)))(m, n[:3]),
        jax.ops.segment_sum(m.T, n % 2, 3),
    ),
    "branches": lambda x, m, n, b: (
        lax.cond(b[0], lambda x: jnp.sin(x), lambda x: x * x, x),
        lax.cond(x[0] > x[1], lambda: m, lambda: -m),
        lax.switch(n[0], [lambda x: x, lambda x: 2 * x, lambda x: x**2], x),
        lax.switch(n[2], [lambda x: x, lambda x: 2 * x], x),
        lax.switch(-n[2], [jnp.sin, jnp.cos], x),
        lax.cond(b[1], lambda: (x, n), lambda: (2 * x, n + 1)),
        lax.cond(b[0], lambda: jnp.float32(1), lambda: jnp.float32(2)),
        jax.grad(lambda x: jnp.sum(lax.cond(b[0], lambda: lax.map(jnp.sin, x * m), lambda: m)))(x),
    ),
    "loops of known length": lambda x, m, n, b: (
        lax.scan(lambda c, r: (jnp.sin(c) * r, c[0]), x, m),
        lax.scan(lambda c, r: (jnp.sin(c) * r, c[0]), x, m, reverse=True),
        lax.fori_loop(0, 3, lambda i, c: c * m[i], x), lax.map(jnp.sum, m),
        lax.scan(lambda c, r: (c, r * c), x[0], x[:0]), lax.fori_loop(0, 0, lambda i, c: 2 * c, x),
    ),
    "systems and orders": lambda x, m, n, b: (
        jnp.linalg.cholesky(m @ m.T + jnp.eye(3)), jnp.linalg.solve(m[:, :3] + 3 * jnp.eye(3), m),
        jax.scipy.linalg.solve_triangular(m[:, :3] + 3 * jnp.eye(3), x[:3], lower=True),
        jnp.sort(x), jnp.argsort(x), jnp.sort(n), jnp.sort(b),
        lax.sort((n, x), num_keys=1), lax.sort((b.astype(np.int32), x), num_keys=2),
        jnp.sort(jnp.where(b, jnp.nan, x)), jnp.median(x), jnp.sort(x[:0]),
        jnp.argsort(-n, stable=True),
    ),
    "functions within": lambda x, m, n, b: (
        jax.jit(jnp.sin)(x), jax.checkpoint(jnp.sin)(x), jax.nn.relu(m), jax.nn.softplus(m),
        lax.stop_gradient(x) * x, lax.optimization_barrier(x), jnp.linalg.norm(x),
        kernel(lambda x: jnp.sin(x) * x)(x), jax.nn.gelu(m), jax.nn.silu(m), jnp.hypot(x, x),
        lax.custom_linear_solve(lambda v: 2 * v, x, lambda _, b: b / 2, lambda _, b: b / 2),
        jax.jvp(jnp.sin, (x,), (x,)), jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(x), jnp.copy(x),
        jnp.logaddexp(x, m), jnp.linspace(x[0], x[1], 5),
    ),
}  # fmt: skip
OTHER = {
    "factors": lambda x, m, n, b: (
        jnp.linalg.qr(m), jnp.linalg.qr(m.T), jnp.linalg.qr(m * (m > 0), mode="r"),
        jnp.linalg.qr(m.T, mode="complete"), jnp.linalg.qr(0 * m), jnp.linalg.qr(jnp.diag(-x)),
        jnp.linalg.qr(x[:, None], mode="complete"), jnp.linalg.qr(x[None]),
        jnp.linalg.qr(jnp.triu(m)), jnp.linalg.qr(jnp.stack((m, -m))),
    ),
    "what nothing comes to": lambda x, m, n, b: (
        jnp.max(m[:, :0], 1, initial=-jnp.inf), lax.reduce_max(m[:, :0], (1,)),
        lax.reduce_min(m[:, :0], (1,)), jnp.prod(m[:, :0], 1), jnp.all(b[:0]), jnp.any(b[:0]),
        lax.reduce_max(n[:0], (0,)), lax.reduce_min(n[:0], (0,)), jnp.max(x[:0], initial=2.0),
        lax.reduce_and(n[:0], (0,)), lax.reduce_or(n[:0], (0,)),
    ),
    "comparisons": lambda x, m, n, b: (
        x < m, x <= m, x > m, x >= m, x == x, x != m, n < 3, n >= 2, n == 7, b == b[0],
        jnp.isfinite(m / (n - 7)), jnp.isnan(m), jnp.isinf(m / n), n.astype(np.uint32) > 3,
        (n - 3).astype(np.uint32) > 3, (n - 3).astype(np.uint32) < n.astype(np.uint32),
    ),
    "logic": lambda x, m, n, b: (
        b & (x > 0.5), b | b[::-1], b ^ b[0], ~b, jnp.all(b), jnp.any(b), b & True, False | b,
        jnp.where(b, b[::-1], ~b), b.at[n[0]].set(True), jnp.max(b), jnp.sum(b), b & b,
        jnp.cumsum(b), jnp.logical_and(x, b), jnp.all(m > 0, 1), b.astype(x.dtype), b.astype(int),
    ),
    "whole numbers": lambda x, m, n, b: (
        n + 1, n - n[::-1], n * n, -n, n & 3, n | 4, n ^ 5, ~n, jnp.abs(n - 4), jnp.sign(n - 4),
        n**3, jnp.max(n), jnp.min(n), jnp.sum(n), jnp.prod(n), n @ n, jnp.cumsum(n),
        jnp.clip(n, 1, 3),
        (n - 5) // 3, (n - 5) % 3, lax.rem(n - 5, np.int32(3)), lax.div(n - 5, np.int32(-3)),
        7 // (n - 4),
        jnp.maximum(n, 3), jnp.minimum(n, 3), jnp.sum(n[:0]), 3 - n, n.astype(np.int64) * 2**40,
    ),
    "division of whole numbers by nothing": lambda x, m, n, b: (
        lax.div(n + 1, n), lax.rem(n + 1, n), jnp.where(n == 0, 0, 7 // n), n % n,
        lax.div(np.int32(-(2**31)) + 0 * n, n[1] - 1),
        lax.rem(np.int32(-(2**31)) + 0 * n, n[1] - 1),
        lax.div(n.astype(np.uint32), n[1].astype(np.uint32)),
        lax.rem(n.astype(np.uint64), n[::-1].astype(np.uint64)),
        lax.rem(np.int32(-5), np.int32(3)) + n,
        lax.div(np.int64(2**62 + 1), np.int64(-1)) + n.astype(np.int64),
    ),
    "types": lambda x, m, n, b: (
        x.astype(np.float32), x.astype(np.float64), (3 * m).astype(np.int32),
        (3 * m).astype(np.int64),
        n.astype(np.float32), n.astype(np.float64), n.astype(bool), m.astype(bool),
        b.astype(np.int64),
        b.astype(np.float32), (1e30 * m).astype(np.int32), (m / (n[1])).astype(np.int32),
        n.astype(np.int64),
        (n - 3).astype(np.uint32), (n - 3).astype(np.uint64),
        n.astype(np.int64).astype(np.int32) + 2,
        (9 * x).astype(np.uint32), (n.astype(np.int64) * 2**33 + 5).astype(np.int32),
        jnp.arange(4) + n,
        (n - 3).astype(np.uint32).astype(x.dtype),
        jnp.asarray(np.float64([1e30, -1e30, np.nan])).astype(np.int32),
        jnp.arange(4.0, dtype=x.dtype), lax.iota(np.uint32, 3),
        lax.broadcasted_iota(np.int32, (2, 3), 1),
    ),
    "the best": lambda x, m, n, b: (
        jnp.argmax(m), jnp.argmin(m, 0), jnp.argmax(m, 1), jnp.argmax(n), jnp.argmin(n),
        jnp.argmax(b),
        jnp.argmax(jnp.where(b, jnp.nan, x)), jnp.argmin(jnp.where(b[::-1], jnp.nan, x)),
        lax.argmax(m, 1, np.int32), lax.cummax(m, 1), jnp.sort(m, 1), jnp.sort(m, 0),
        lax.cummin(m, 0), jnp.argmax(0 * x),
        jnp.max(n),
        m[jnp.argmax(m[:, 0])],
    ),
    "functions of entries": lambda x, m, n, b: (
        x.at[1].apply(lambda y: 3 * y + 1), n.at[np.array([1, 1])].apply(lambda k: 2 * k + 1),
        m.at[0].apply(jnp.sin), x.at[n[0]].apply(jnp.cos), b.at[2].apply(jnp.logical_not),
        x.at[2].min(0.3), x.at[2].max(0.3), m.at[n[1], :2].max(0.1), m.at[1:, 0].min(x[:2]),
    ),
    "products of whole numbers and truths": lambda x, m, n, b: (
        b @ b, jnp.dot(b, ~b), jnp.outer(b, b) @ b, jnp.outer(n, n) @ jnp.outer(n, n),
        jnp.tile(jnp.outer(n, n), (2, 2)) @ jnp.tile(jnp.outer(n, n), (2, 2)),
        jnp.tile(jnp.outer(b, b), (2, 2)) @ jnp.tile(jnp.outer(b, b[::-1]), (2, 2)),
        jnp.tile(jnp.outer(n, n), (2, 2)).astype(np.uint32) @ jnp.ones((8, 8), np.uint32),
    ),
    "what is no number": lambda x, m, n, b: (
        jnp.maximum(jnp.where(b, jnp.nan, x), 0.5), jnp.minimum(0.5, jnp.where(b, jnp.nan, x)),
        jnp.max(jnp.where(b, jnp.nan, x)), jnp.sign(jnp.where(b, jnp.nan, -x)), jnp.sqrt(m),
        jnp.log(m),
        jnp.clip(jnp.where(b, jnp.nan, x), 0.2, 0.5), m / n, -m / n, jnp.abs(m) ** 0.5, m ** 0.5,
        jnp.where(b, jnp.nan, x) > 0.5, jnp.where(b, jnp.nan, x) != 0.5, jnp.arcsin(4 * x),
        jnp.fmax(jnp.where(b, jnp.nan, x), 0.1), jnp.nan_to_num(m / n),
        jnp.nansum(jnp.where(b, jnp.nan, x)),
        jnp.isclose(x, x + 1e-12), jnp.exp(1000 * m), jnp.tanh(1000 * m),
    ),
    "loops of unknown length": lambda x, m, n, b: (
        lax.while_loop(lambda c: jnp.all(c < 5), lambda c: 2 * c, x),
        lax.while_loop(lambda c: c[0] < n[2], lambda c: (c[0] + 1, c[1] * m), (0, m)),
        lax.fori_loop(n[1], n[2], lambda i, c: c * x + i, x),
        lax.fori_loop(n[2], n[1], lambda i, c: c * x + i, x),
        lax.while_loop(
            lambda c: c[0] < 3,
            lambda c: (c[0] + 1, lax.fori_loop(0, n[0] + c[0], lambda i, y: jnp.sin(y) + i, c[1])),
            (np.int32(0), x),
        ),
        lax.while_loop(
            lambda c: c[1], lambda c: (c[0] + 1, c[0] + 1 < n[2], c[2]), (n[0], b[0], b)
        ),
        lax.while_loop(
            lambda c: c[0] < 4, lambda c: (c[0] + 1, c[2], c[1]), (np.int32(0), x, 2 * x)
        ),
        lax.while_loop(lambda c: False, lambda c: 2 * c, x),
        jax.vmap(
            lambda k, y: lax.while_loop(
                lambda c: c[0] < k, lambda c: (c[0] + 1, c[1] * y), (0, y)
            )
        )(n[:3], m),
        jax.vmap(lambda y: lax.while_loop(lambda c: c < 3, lambda c: 2 * c, y))(x),
        jax.vmap(jax.vmap(lambda y: lax.while_loop(lambda c: c < 3, lambda c: 2 * c, y)))(m**2 + 1),
        jax.vmap(lambda y: lax.while_loop(lambda c: c < 3, lambda c: 2 * c, y))(x[:0]),
        lax.while_loop(lambda c: c < 7, lambda c: c + 2, 0),
    ),
    "nothing computed": lambda x, m, n,
    b: (x, jnp.zeros(2), m[1], np.int32(3), b, np.zeros((0, 3))),
}  # fmt: skip
ALL = SMOOTH | OTHER


def arguments(dtype, size):
    rng = np.random.default_rng(0)
    x, m = rng.uniform(0.05, 0.95, (size, 4)), rng.normal(size=(size, 3, 4))
    n = rng.integers(0, 9, (size, 4)).astype(np.int32)
    b = rng.integers(0, 2, (size, 4)).astype(bool)
    n[0], b[0] = (2, 0, 7, 3), (True, False, False, True)
    return jnp.asarray(x, dtype), jnp.asarray(m, dtype), jnp.asarray(n), jnp.asarray(b)


def total(f):
    def summed(x, m, n, b):
        leaves = [jnp.asarray(y) for y in jax.tree.leaves(f(x, m, n, b))]
        return sum(
            jnp.sum(jnp.where(jnp.isfinite(y), y, 0) * (1 + 0.1 * k))
            for k, y in enumerate(leaves)
            if jnp.issubdtype(y.dtype, jnp.floating)
        )

    return summed


def program(f, name):
    """Values for one and for a batch, and gradients of both."""

    def run(*args):
        one = [a[0] for a in args]
        found = [f(*one), jax.vmap(f)(*args)]
        if name in SMOOTH and args[0].dtype == np.float64:
            gradient = jax.grad(total(f), (0, 1))
            found += [gradient(*one), jax.vmap(gradient)(*args)]
        return found

    return run


@pytest.mark.slow(
    "*-float32",
    "several places from run time-float64",
    "branches-float64",
    "functions within-float64",
    "known places-float64",
    "places from run time-float64",
    "several places from run time-float64",
    "systems and orders-float64",
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ALL)
def test_same_as_jax(name, dtype):
    """Each operation, natively, gives what jax gives, and so do its derivatives."""
    args = arguments(dtype, 9)
    ordinary, native = program(ALL[name], name), program(kernel(ALL[name]), name)
    calls = 6 if name in SMOOTH and dtype == np.float64 else 2
    if name == "error functions" and jax.__version_info__ >= (0, 12):
        # Their derivatives take numbers apart by bits, and run the ordinary way.
        calls = min(calls, 4)
    assert_same(
        natively(calls, native, *args),
        jax.jit(ordinary)(*args),
        1e-12 if dtype == np.float64 else 3e-5,
    )


def test_a_loop_in_a_branch_not_taken_makes_no_iterations():
    """All branches are computed, but a loop that would never end must not run in vain."""

    def f(x):
        def to_ten(c):
            return lax.while_loop(lambda c: c < 10, lambda c: c + x, c)

        return lax.cond(x > 0, lambda c: lax.cond(x < 9, to_ten, lambda c: -c, c), lambda c: c, x)

    xs = jnp.array([-3.0, 0.0, 4.0, 20.0])
    for found in (
        [natively(1, kernel(f), x) for x in xs],
        natively(1, jax.vmap(kernel(f)), xs),
    ):
        np.testing.assert_array_equal(found, [-3.0, 0.0, 12.0, -20.0])


def names_in(jaxpr):
    found = set()
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for inner in nested(equation.params):
            found |= names_in(inner.jaxpr)
    return found


# Names in other versions of jax, and operations in derivatives only.
ELSEWHERE = set(
    "add_any checkpoint closed_call copy copy_p core_call custom_vjp_call custom_vjp_call_jaxpr "
    "jit pjit remat2 scatter-add scatter_add scatter-mul scatter_mul scatter-min scatter_min "
    "scatter-max scatter_max scatter-sub scatter_sub stop_gradient pcast pvary reshard "
    "reduced_vary_cast "
    "empty2 stack tile unstack lu_pivots_to_permutation log2 one_minus_square polynomial".split()
)


def test_parameters_that_no_rule_reads_are_refused():
    """Every rule says which parameters it knows; another one, or another value, has no program."""
    assert (RULES.keys() | SCALAR_RULES.keys()) == PARAMETERS.keys()
    check("cumsum", {"axis": 0, "reverse": True})
    for name, params in {
        "cumsum": {"axis": 0, "exclusive": True},
        "mul": {"out_dtype": np.float32},
        "sin": {"accuracy": 1e-3},
        "gather": {"mode": "ONE_HOT"},
    }.items():
        with pytest.raises(Unsupported, match=name):
            check(name, params)


def test_every_rule_is_tested():
    """The functions above have all operations but those that this version of jax does not have."""
    args = [a[0] for a in arguments(np.float64, 1)]
    found = set()
    for f in ALL.values():
        found |= names_in(jax.make_jaxpr(f)(*args).jaxpr)
    missing = (RULES.keys() | SCALAR_RULES.keys()) - found - ELSEWHERE
    assert not missing
