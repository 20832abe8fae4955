"""Which entries gathers and scatters at known places touch, against jax's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.native.rules.indexing import gathered, scattered

X = jnp.arange(4 * 5 * 3.0).reshape(4, 5, 3)
MODES = ["clip", "fill", "promise_in_bounds"]
READS = {
    "rows": lambda x, mode: x.at[np.array([3, 0, 0])].get(mode=mode),
    "inner axis": lambda x, mode: x.at[:, np.array([[1, 4], [0, 2]])].get(mode=mode),
    "pairs": lambda x, mode: x.at[np.array([1, 3]), np.array([4, 0])].get(mode=mode),
    "apart": lambda x, mode: x.at[np.array([1, 3]), :, np.array([2, 0])].get(mode=mode),
    "batched": lambda x, mode: jax.vmap(lambda a, i: a.at[i].get(mode=mode))(
        x, np.array([[1, 2], [4, 0], [3, 3], [0, 0]])
    ),
    "batched inside": lambda x, mode: jax.vmap(
        lambda a, i: a.at[:, i].get(mode=mode), in_axes=(1, 0), out_axes=1
    )(x, np.array([2, 1, 0, 0, 1])),
    "windows": lambda x, mode: jax.lax.gather(
        x,
        np.array([[0, 1], [2, 3]]),
        jax.lax.GatherDimensionNumbers((0, 2), (2,), (0, 1)),
        (2, 2, 1),
        mode=mode,
    ),
}
WRITES = {
    "rows": lambda x, y, mode: x.at[np.array([3, 0, 0])].add(y(3, 5, 3), mode=mode),
    "inner axis": lambda x, y, mode: x.at[:, np.array([1, 4])].add(y(4, 2, 3), mode=mode),
    "pairs": lambda x, y, mode: x.at[np.array([1, 3]), np.array([4, 0])].add(y(2, 3), mode=mode),
    "batched": lambda x, y, mode: jax.vmap(lambda a, i, b: a.at[i].add(b, mode=mode))(
        x, np.array([[1, 2], [4, 0], [3, 3], [0, 0]]), y(4, 2, 3)
    ),
}


def operation(f, prefix):
    """The gather or scatter in f, applied to the places of the entries of X."""
    closed = jax.make_jaxpr(f)(X)

    def find(jaxpr, consts, args):
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

        def read(v):
            return v.val if hasattr(v, "val") else values[v]

        for e in jaxpr.eqns:
            given = [read(v) for v in e.invars]
            if e.primitive.name.startswith(prefix):
                return e, given
            if "jaxpr" in e.params:
                inner = e.params["jaxpr"]
                found = find(inner.jaxpr, inner.consts, given)
                if isinstance(found, tuple) and hasattr(found[0], "primitive"):
                    return found
                results = found
            else:
                results = e.primitive.bind(*given, **e.params)
                results = results if e.primitive.multiple_results else [results]
            values.update(zip(e.outvars, results, strict=True))
        return [read(v) for v in jaxpr.outvars]

    found = find(closed.jaxpr, closed.consts, [X])
    assert hasattr(found[0], "primitive"), "there is no such operation"
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read", READS)
def test_a_gather_takes_the_entries_that_jax_takes(read, mode):
    e, (x, indices) = operation(lambda x: READS[read](x, mode), "gather")
    places = jnp.arange(x.size).reshape(x.shape)
    for at in (indices, indices + 2, indices - 2):
        if mode == "promise_in_bounds" and at is not indices:
            continue
        params = e.params | {"fill_value": -1}
        expected = e.primitive.bind(places, at, **params)
        np.testing.assert_array_equal(gathered(e.params, x.shape, np.asarray(at)), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("write", WRITES)
def test_a_scatter_writes_where_jax_writes(write, mode):
    def f(x):
        return WRITES[write](x, lambda *shape: jnp.ones(shape), mode)

    e, (x, indices, updates) = operation(f, "scatter-add")
    numbers = 1.0 + jnp.arange(updates.size).reshape(updates.shape)
    for at in (indices, indices + 2, indices - 2):
        if mode == "promise_in_bounds" and at is not indices:
            continue
        expected = e.primitive.bind(jnp.zeros_like(x), at, numbers, **e.params)
        places = scattered(e.params, x.shape, np.asarray(at), updates.shape)
        assert places.shape == updates.shape
        found = np.zeros(x.size)
        inside = places >= 0
        np.add.at(found, places[inside], np.asarray(numbers)[inside])
        np.testing.assert_array_equal(found.reshape(x.shape), expected)
