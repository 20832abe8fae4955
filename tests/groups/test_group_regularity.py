"""Precision, shapes, batches: what holds for every function of the groups."""

from __future__ import annotations

from math import pi

import accuracy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.groups import quaternion, se3, so3

SHAPES = {
    **{(so3, f): [(3,)] for f in ("hat", "exp", "dexp", "dexp_inv", "cay", "dcay", "dcay_inv")},
    **{(so3, f): [(3, 3)] for f in ("vee", "log", "cay_inv")},
    **{
        (se3, f): [(6,)]
        for f in ("hat", "exp", "dexp", "dexp_inv", "cay", "dcay", "dcay_inv", "ad")
    },
    **{(se3, f): [(4, 4)] for f in ("vee", "log", "cay_inv", "Ad", "inverse")},
    (quaternion, "multiply"): [(4,), (4,)],
    (quaternion, "conjugate"): [(4,)],
    (quaternion, "exp"): [(3,)],
    (quaternion, "log"): [(4,)],
    (quaternion, "to_matrix"): [(4,)],
    (quaternion, "from_matrix"): [(3, 3)],
}
FUNCTIONS = [
    pytest.param(getattr(group, name), shapes, id=f"{group.__name__.rsplit('.')[-1]}.{name}")
    for (group, name), shapes in SHAPES.items()
]


@pytest.mark.parametrize(("f", "shapes"), FUNCTIONS)
def test_precision_of_the_argument_is_kept(f, shapes):
    single = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    assert jax.eval_shape(f, *single).dtype == np.float32
    assert jax.eval_shape(jax.jacrev(f), *single).dtype == np.float32


@pytest.mark.parametrize(("f", "shapes"), FUNCTIONS)
def test_integers_are_taken_as_floats(f, shapes):
    arguments = [jax.ShapeDtypeStruct(shape, int) for shape in shapes]
    assert jax.eval_shape(f, *arguments).dtype == float


@pytest.mark.parametrize(("f", "shapes"), FUNCTIONS)
def test_other_shapes_are_refused(f, shapes):
    for wrong in [(5,), (), (2, *shapes[0]), (*shapes[0], 2)]:
        with pytest.raises(ValueError, match=r"expected .* shape .*got"):
            f(np.ones(wrong), *(np.ones(s) for s in shapes[1:]))


W = np.array([0.3, -0.5, 0.2])
V = np.append(W, [0.1, 0.4, -0.7])
Q = np.append(0.9, W)


@pytest.mark.parametrize(
    ("f", "regular", "singular"),
    [
        pytest.param(quaternion.log, Q, np.zeros(4), id="quaternion.log"),
        pytest.param(quaternion.to_matrix, Q, np.zeros(4), id="quaternion.to_matrix"),
        pytest.param(so3.cay_inv, so3.exp(W), np.diag([1.0, -1, -1]), id="so3.cay_inv"),
        pytest.param(se3.cay_inv, se3.exp(V), np.diag([1.0, -1, -1, 1]), id="se3.cay_inv"),
        pytest.param(so3.dexp_inv, W, np.array([2 * pi, 0, 0]), id="so3.dexp_inv"),
        pytest.param(se3.dexp_inv, V, np.full(6, np.inf), id="se3.dexp_inv"),
    ],
)
def test_a_singular_row_leaves_its_neighbours_alone(f, regular, singular):
    def gradient(x):
        return jax.grad(lambda x: jnp.sum(jnp.sin(f(x))))(x)

    def second(x):
        return jax.jvp(gradient, (x,), (jnp.ones_like(x),))[1]

    def evaluate(x):
        return f(x), gradient(x), second(x)

    evaluate = jax.jit(jax.vmap(evaluate))
    among = evaluate(np.stack([regular, singular, regular]))
    alone = evaluate(np.stack([regular, regular, regular]))
    for a, b in zip(among, alone, strict=True):
        assert np.isfinite(b).all()
        np.testing.assert_array_equal(a[::2], b[::2])


@pytest.mark.parametrize("dtype", accuracy.PRECISIONS)
@pytest.mark.parametrize(("group", "size"), [(so3, 3), (se3, 6)], ids=["so3", "se3"])
def test_log_at_half_turns(group, size, dtype):
    """The matrix is symmetric: the sign of the axis is free, and either is right."""
    g = accuracy.half_turns(size, dtype)
    x = accuracy.compiled(group.log)(g)
    tolerance = 10 * accuracy.TOLERANCE[dtype]["value"]
    assert x.dtype == dtype
    assert np.abs(np.linalg.norm(x[:, :3], axis=1) - pi).max() <= tolerance
    assert np.abs(accuracy.compiled(group.exp)(x) - g).max() <= tolerance


def test_large_rotations_stay_finite():
    # A step of an integrator may turn by many times pi.
    w = np.array([40.0, -300.0, 1e4])
    for f in (quaternion.exp, so3.exp, so3.dexp):
        value = f(w)
        assert np.isfinite(value).all()
    np.testing.assert_allclose(so3.exp(w) @ so3.exp(w).T, np.eye(3), atol=1e-14)
