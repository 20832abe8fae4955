"""Random programs of some operations each, and what jax does with them.

Their values are numbers s (), vectors x (4,) and matrices m (4, 4) of floating point, whole numbers
n (4,), and truths b (4,).
"""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from difflie.native import as_written, kernel

SHAPES = {"s": (), "x": (4,), "m": (4, 4), "n": (4,), "b": (4,)}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 1e-300, 1e300]
TWICE, PAIRS = np.array([2, 0, 2, 1]), (np.array([0, 3]), np.array([1, 1]))


def _known(a):
    """Without NaN, at which slopes of extremes are numbers times truths; see below."""
    return jnp.where(jnp.isnan(a), 0.0, a)


def _definite(m):
    """A matrix that can be factored: of what is not finite LAPACK makes this and that."""
    m = jnp.tanh(jnp.where(jnp.isfinite(m), m, 0.5))
    return m @ m.T + 3 * np.eye(4)


# Without numbers times truths, which XLA makes choices of: infinity times False is 0 there.
UNARY = [
    jnp.abs,
    jnp.negative,
    jnp.sign,
    jnp.floor,
    jnp.ceil,
    jnp.round,
    jnp.sqrt,
    lax.rsqrt,
    jnp.cbrt,
    jnp.square,
    jnp.exp,
    jnp.exp2,
    jnp.expm1,
    jnp.log,
    jnp.log1p,
    jnp.log2,
    jnp.log10,
    jnp.sin,
    jnp.cos,
    jnp.tan,
    jnp.arcsin,
    jnp.arccos,
    jnp.arctan,
    jnp.sinh,
    jnp.cosh,
    jnp.tanh,
    jnp.arcsinh,
    jnp.arctanh,
    jax.nn.sigmoid,
    jax.nn.relu,
    jax.nn.softplus,
    jax.nn.silu,
    jnp.sinc,
    jnp.nan_to_num,
    jnp.reciprocal,
    jnp.trunc,
    jnp.deg2rad,
    lambda a: a**3,
    lambda a: a**-2,
    lambda a: a**0.5,
    lambda a: 2.0**a,
    lambda a: 0.0 - a,
    lambda a: 0 * a,
    lambda a: a * 1.0,
    lambda a: a + 0.0,
    lambda a: 0.0 / a,
    lambda a: a - a,
    lambda a: 1 / a,
    lambda a: -1 * a,
    lambda a: jnp.where(a > 0, jnp.sqrt(a), 0.0),
    lambda a: jnp.clip(a, -0.5, 0.5),
    lambda a: a.at[...].add(1.0),
    lambda a: jnp.mod(a, 0.7),
    lambda a: a / a,
    lambda a: jnp.where(jnp.isfinite(a), a, 0.0),
    lambda a: lax.stop_gradient(a) * a,
]
BINARY = [
    jnp.add,
    jnp.subtract,
    jnp.multiply,
    jnp.divide,
    jnp.maximum,
    jnp.minimum,
    jnp.arctan2,
    jnp.hypot,
    jnp.logaddexp,
    jnp.fmax,
    jnp.fmin,
    jnp.copysign,
    lax.add_p.bind,
    jnp.power,
    lambda a, b: jnp.where(a < b, a, b),
    lambda a, b: jnp.where(a == b, 0.0, a * b),
    lambda a, b: a * b - b,
    lambda a, b: jnp.where(jnp.isnan(a), b, a),
    lambda a, b: lax.cond(jnp.sum(a) > 0, jnp.sin, lambda c: c * b, a),
    lambda a, b: jnp.clip(a, jnp.minimum(b, 0), jnp.maximum(b, 0)),
]
OTHERS = {
    "m->x": [
        lambda m: jnp.sum(m, 0),
        lambda m: jnp.sum(m, 1),
        lambda m: jnp.prod(m, 1),
        lambda m: jnp.max(_known(m), 0),
        lambda m: jnp.min(_known(m), 1),
        lambda m: jnp.mean(m, 0),
        jnp.diagonal,
        lambda m: m[1],
        lambda m: m[:, 2],
        lambda m: jnp.std(m, 1),
        lambda m: m.ravel()[::5][:4],
        lambda m: jnp.linalg.norm(m, axis=0),
        lambda m: m[::-1, 0],
        lambda m: jnp.median(m, 0),
        lambda m: jax.nn.logsumexp(m, 1),
        lambda m: lax.slice(m, (0, 1), (4, 2))[:, 0],
    ],
    "m->m": [
        lambda m: m.T,
        lambda m: jnp.cumsum(m, 0),
        lambda m: lax.cumprod(m, 1),
        lambda m: m[::-1],
        lambda m: lax.cumsum(m, 1, reverse=True),
        lambda m: jnp.roll(m, 1, 1),
        jnp.triu,
        jnp.tril,
        lambda m: jnp.pad(m[1:, :-1], ((1, 0), (0, 1))),
        lambda m: m @ m,
        lambda m: m.T @ m,
        lambda m: lax.cummax(m, 0),
        lambda m: jnp.sort(m, 1),
        lambda m: m[TWICE][:, TWICE],
        lambda m: jnp.linalg.inv(_definite(m)),
        lambda m: jnp.linalg.cholesky(_definite(m)),
        lambda m: jax.nn.softmax(m, 1),
        lambda m: m.at[1].set(0.0),
        lambda m: m.at[:, 2].mul(2.0),
        lambda m: m.at[PAIRS].add(1.0),
        lambda m: jnp.concatenate([m[2:], m[:2]]),
        lambda m: jnp.stack([m[0], m[2], m[1], m[3]], 1),
        lambda m: m.reshape(2, 8).T.reshape(4, 4),
        lambda m: jnp.zeros((4, 4)).at[0, 1].set(1.0) @ m,
        lambda m: lax.fori_loop(0, 2, lambda i, c: c * m[i], m),
        lambda m: sum(lax.scan(lambda c, r: (jnp.tanh(c) * r, c), m[0], m)),
        lambda m: sum(lax.scan(lambda c, r: (c + r, c), m[0], m, reverse=True)),
        lambda m: jax.vmap(lambda r: r / (1 + r @ r))(m),
    ],
    "x->m": [
        jnp.diag,
        lambda x: jnp.outer(x, x),
        lambda x: jnp.tile(x, 4).reshape(4, 4),
        lambda x: jnp.broadcast_to(x, (4, 4)),
        lambda x: x[:, None] - x[None],
        lambda x: jnp.vander(x, 4),
        lambda x: jnp.eye(4).at[0].set(x),
    ],
    "x->x": [
        lambda x: x[::-1],
        jnp.sort,
        jnp.cumsum,
        lambda x: jnp.roll(x, 1),
        lambda x: x[TWICE],
        lambda x: x.at[np.array([1, 1])].add(x[:2]),
        lambda x: x.at[0].set(3.0),
        lambda x: x.at[np.array([0, 9])].set(5.0, mode="drop"),
        lambda x: jnp.pad(x[:2], 1),
        lambda x: lax.pad(x[:2], x[0], [(1, 0, 1)])[:4],
        lambda x: x - jnp.mean(x),
        jax.nn.softmax,
        lambda x: x.at[1].multiply(x[2]),
        lambda x: x.at[2].min(0.3),
        lambda x: x.at[3].max(0.3),
        lambda x: x.at[3].subtract(x[0]),
        lambda x: jnp.concatenate([x[2:], x[:2]]),
        lambda x: x.at[np.array([0, 9, 1, 2])].get(mode="fill"),
        lambda x: jnp.take(x, TWICE + 2, mode="clip"),
        lambda x: jax.checkpoint(jnp.sin)(x),
        lambda x: jax.jit(jnp.cos)(x),
        lambda x: x / jnp.linalg.norm(x),
        lambda x: jax.jvp(jnp.sin, (x,), (x,))[1],
        lambda x: jax.grad(lambda y: jnp.sum(jnp.sin(y) ** 2))(x),
        lambda x: lax.cumprod(x, 0),
        lambda x: lax.map(lambda y: y * y, x),
        lambda x: jnp.polyval(jnp.array([1.0, 0.0, 2.0]), x),
    ],
    "x->s": [
        jnp.sum,
        jnp.prod,
        lambda x: jnp.max(_known(x)),
        lambda x: jnp.min(_known(x)),
        jnp.mean,
        jnp.linalg.norm,
        lambda x: x @ x,
        lambda x: x[2],
        lambda x: x[-1],
        jnp.median,
        jnp.var,
        lambda x: x[jnp.argmax(x)],
        lambda x: lax.dynamic_index_in_dim(x, jnp.argmin(x), keepdims=False),
    ],
    "m->s": [
        jnp.sum,
        jnp.trace,
        lambda x: jnp.max(_known(x)),
        jnp.linalg.norm,
        lambda m: m[2, 1],
        lambda m: jnp.mean(m),
    ],
    "mx->x": [
        lambda m, x: m @ x,
        lambda m, x: x @ m,
        lambda m, x: jnp.einsum("ij,j->i", m, x),
        lambda m, x: jnp.linalg.solve(_definite(m), x),
        lambda m, x: jnp.where(m[0] > m[1], x, -x),
        lambda m, x: jnp.diag(jnp.array([1.0, 0, 2, 0])) @ (m @ x),
        lambda m, x: jax.scipy.linalg.solve_triangular(_definite(m), x, lower=True),
    ],
    "mx->m": [
        lambda m, x: m.at[1].set(x),
        lambda m, x: m * x[:, None],
        lambda m, x: m @ jnp.diag(x),
        lambda m, x: lax.dynamic_update_slice(m, x[None], (2, 0)),
        lambda m, x: m.at[:, 0].add(x),
        lambda m, x: jnp.concatenate([m[:3], x[None]]),
    ],
    "mm->m": [
        lambda m, o: m @ o,
        lambda m, o: jnp.einsum("ij,kj->ik", m, o),
        lambda m, o: jnp.where(m > o, m, o),
    ],
    "sx->x": [
        lambda s, x: x * s,
        lambda s, x: lax.cond(s > 0, jnp.sin, jnp.cos, x),
        lambda s, x: x.at[1].set(s),
        lambda s, x: jnp.clip(x, -1.0 * jnp.abs(s), jnp.abs(s)),
        lambda s, x: jnp.full(4, s),
    ],
    "ss->s": [lambda s, t: lax.cond(s > t, lambda: s, lambda: 2 * t), lambda s, t: s * t + s],
    "nx->x": [
        lambda n, x: x.at[n].get(mode="clip"),
        lambda n, x: x[n[0] % 4],
        lambda n, x: x * n,
        lambda n, x: lax.dynamic_slice(jnp.concatenate([x, x]), (n[1],), (4,)),
        lambda n, x: x ** n[0],
        lambda n, x: x.at[n[2]].set(1.0),
        lambda n, x: x.at[n[1]].add(x[0], mode="clip"),
        lambda n, x: lax.switch(n[0], [jnp.sin, jnp.cos, lambda y: y * y], x),
        lambda n, x: lax.select_n(jnp.clip(n, 0, 2), x, 2 * x, x * x),
        lambda n, x: lax.integer_pow(x, 2) + n,
        lambda n, x: lax.sort((n, x), num_keys=1)[1],
        lambda n, x: x[jnp.argsort(n)],
    ],
    "bx->x": [
        lambda b, x: jnp.where(b, x, 0.0),
        lambda b, x: lax.select(b, x, -x),
        lambda b, x: lax.cond(b[0], jnp.sin, lambda y: y, x),
        lambda b, x: jnp.where(b, jnp.nan, x),
        lambda b, x: jnp.sum(x, where=b) * x,
        lambda b, x: x.at[0].set(jnp.where(b[1], 1.0, x[2])),
    ],
    "x->n": [
        lambda x: jnp.floor(x * 3).astype(np.int32),
        lambda x: jnp.argsort(x).astype(np.int32),
        lambda x: jnp.sign(x).astype(np.int32),
        lambda x: jnp.full(4, jnp.argmax(x), np.int32),
        lambda x: jnp.searchsorted(jnp.array([0.0, 0.5, 1.0]), x).astype(np.int32),
    ],
    "nn->n": [
        jnp.add,
        jnp.subtract,
        jnp.multiply,
        jnp.maximum,
        jnp.minimum,
        jnp.floor_divide,
        jnp.mod,
        lax.div,
        lax.rem,
        jnp.bitwise_and,
        jnp.bitwise_or,
        jnp.bitwise_xor,
        lambda n, k: jnp.outer(n, k) @ n,
        lambda n, k: jnp.where(n > k, n, k),
    ],
    "n->n": [
        jnp.abs,
        jnp.negative,
        jnp.sign,
        jnp.invert,
        jnp.cumsum,
        jnp.sort,
        lambda n: n**2,
        lambda n: 0 - n,
        lambda n: n.at[1].apply(lambda k: 3 * k + 1),
        lambda n: n[::-1],
        lambda n: jnp.clip(n, 0, 3),
        lambda n: n.astype(np.uint32).astype(np.int32),
        lambda n: lax.while_loop(lambda k: k[0] < 5, lambda k: k + 1, n),
        lambda n: lax.fori_loop(0, n[0] % 5, lambda i, k: k + i, n),
    ],
    "xx->b": [
        jnp.less,
        jnp.less_equal,
        jnp.greater,
        jnp.equal,
        jnp.not_equal,
        lambda x, y: jnp.isclose(x, y),
    ],
    "x->b": [
        jnp.isnan,
        jnp.isfinite,
        jnp.isinf,
        lambda x: x.astype(bool),
        lambda x: jnp.signbit(x),
    ],
    "nn->b": [jnp.less, jnp.equal, lambda n, k: n % 2 == k % 2],
    "bb->b": [
        jnp.logical_and,
        jnp.logical_or,
        jnp.logical_xor,
        lambda b, c: ~b,
        lambda b, c: jnp.outer(b, c) @ b,
        lambda b, c: jnp.full(4, jnp.all(b)) | c,
        lambda b, c: jnp.sort(b) & ~c,
        lambda b, c: jnp.full(4, jnp.dot(b, c)),
    ],
    "b->n": [
        lambda b: jnp.cumsum(b).astype(np.int32),
        lambda b: b.astype(np.int32),
        lambda b: jnp.full(4, jnp.argmax(b), np.int32),
    ],
}
# Of a function of entries jax has no derivative.
FLAT = {
    "x->x": [
        lambda x: x.at[0].apply(lambda y: 3 * y),
        lambda x: x.at[np.array([1, 1])].apply(jnp.sin),
        lambda x: x.at[1:3].apply(lambda y: y * y - 1),
    ],
    "nx->x": [lambda n, x: x.at[n[0]].apply(lambda y: -y)],
}


def kinds(differentiable):
    """All kinds of operations: the types of what they read and make, and the functions."""
    found = [(f"{t}->{t}", f) for f in UNARY for t in "xms"]
    found += [(f"{a}->{a[-1]}", f) for f in BINARY for a in ("xx", "mm", "ss")]
    found += [(signature, f) for signature, fs in OTHERS.items() for f in fs]
    if not differentiable:
        found += [(signature, f) for signature, fs in FLAT.items() for f in fs]
    return found


class RandomProgram:
    """4 to 12 operations in a row, with numbers for it, one in six of them a special value."""

    def __init__(self, seed):
        self.seed, rng = seed, np.random.default_rng(seed)
        self.dtype = np.float32 if seed % 2 else np.float64
        self.differentiable = seed % 5 != 4
        table = kinds(self.differentiable)
        there, self.steps = ["x", "x", "m", "m", "n", "b", "s"], []
        for _ in range(rng.integers(4, 13)):
            signature, f = table[rng.integers(len(table))]
            reads, makes = signature.split("->")
            # Twice as often what was made last, so that operations build on each other.
            places = [[i for i, t in enumerate(there) if t == r] for r in reads]
            chosen = [int(rng.choice([*p, p[-1], p[-1]])) for p in places]
            self.steps.append((f, chosen, makes))
            there.append(makes)
        self.args = [self._floats(rng, (5, *SHAPES[t])) for t in "xxmms"]
        self.args[4:4] = [
            jnp.asarray(rng.integers(-3, 9, (5, 4)), np.int32),
            jnp.asarray(rng.integers(0, 2, (5, 4)).astype(bool)),
        ]
        self.changes = [self._floats(rng, a.shape, 0) for a in self.args]

    def _floats(self, rng, shape, special=6):
        x = rng.normal(size=shape)
        if special:
            x = np.where(rng.integers(special, size=shape) == 0, rng.choice(SPECIAL, shape), x)
        with np.errstate(over="ignore"):
            return jnp.asarray(x, self.dtype)

    def __call__(self, *args):
        values = list(args)
        for f, places, makes in self.steps:
            made = jnp.asarray(f(*(values[i] for i in places)))
            wanted = {"n": np.int32, "b": bool}.get(makes, self.dtype)
            values.append(jnp.broadcast_to(made.astype(wanted), SHAPES[makes]))
        return values[7:]

    def __str__(self):
        said = [f"{'; '.join(map(str, p))}: {_words(f)}" for f, p, _ in self.steps]
        return "\n".join([f"{np.dtype(self.dtype)}, of values 0 to 6:", *said])

    def computed(self, natively, everything, args, changes):
        """Values and derivatives by name, without `everything` one kind of derivatives."""
        f = kernel(lambda *args: as_written(self.__call__, *args)) if natively else self
        floats = [0, 1, 2, 3, 6]
        x, dx = ([a[i][0] for i in floats] for a in (args, changes))

        def moved(*x):
            given = [a[0] for a in args]
            for i, a in zip(floats, x, strict=True):
                given[i] = a
            return [y for y in f(*given) if jnp.issubdtype(y.dtype, jnp.floating)]

        def slopes(*x):
            made, back = jax.vjp(moved, *x)
            return back([jnp.ones_like(y) for y in made])

        derivatives = {
            "jvp": lambda: jax.jvp(moved, x, dx)[1],
            "vjp": lambda: slopes(*x),
            "second": lambda: jax.jvp(slopes, x, dx)[1],
        }
        chosen = list(derivatives) if everything else [list(derivatives)[self.seed // 2 % 3]]
        out = {"value": f(*[a[0] for a in args]), "vmap": jax.vmap(f)(*args)}
        return out | {name: derivatives[name]() for name in chosen if self.differentiable}


def _words(f):
    if getattr(f, "__name__", "") != "<lambda>":
        return getattr(f, "__name__", str(f))
    return inspect.getsource(f).strip()
