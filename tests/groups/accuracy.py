"""How the accuracy of a map is measured: samples, derivatives in one batch, scaled errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from math import pi

import exact_maps as exact
import jax
import numpy as np

SMALL = (0.0, 1e-160, 1e-30, 1e-16, 1e-8, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, pi - 1e-3)

# A few ulps, and derivatives hardly worse: a coefficient evaluated out of its range shows there.
TOLERANCE = {
    np.float64: {"value": 1e-15, "first": 1e-14, "second": 1e-13},
    np.float32: {"value": 5e-7, "first": 5e-6, "second": 5e-5},
}
PRECISIONS = tuple(TOLERANCE)


def samples(lengths: Iterable[float], size: int, axes: int, dtype: type = np.float64) -> np.ndarray:
    """Coordinates (count, size) with angular parts of the given lengths, `axes` for each.

    The translations have length 1. The first axis is random, the second a coordinate axis or its
    opposite, and so on in turn.
    """
    rng = np.random.default_rng(7)
    rows = []
    for i, length in enumerate(lengths):
        for j in range(axes):
            axis, shift = (a / np.linalg.norm(a) for a in rng.normal(size=(2, 3)))
            if j % 2:
                axis = np.roll([(-1.0) ** (i + j // 2), 0.0, 0.0], i + j // 2)
            rows.append(np.concatenate((length * axis, shift))[:size])
    return np.array(rows, dtype=dtype)


def half_turns(size: int, dtype: type) -> np.ndarray:
    """Matrices of rotations by exactly pi, or poses with them, that are symmetric when rounded."""
    axes = [*np.eye(3), *-np.eye(3), [0.6, 0.8, 0], [0, -0.8, 0.6], [-0.48, 0.6, 0.64]]
    g = np.tile(np.eye(4), (len(axes), 1, 1))
    g[:, :3, :3] = [2 * np.outer(a, a) - np.eye(3) for a in axes]
    g[:, :3, 3] = axes[::-1]
    return (g if size == 6 else g[:, :3, :3]).astype(dtype)


def largest(a: np.ndarray) -> np.ndarray:
    """The largest absolute entry of every sample."""
    return np.abs(a).reshape(len(a), -1).max(axis=1)


def scaled_error(measured: np.ndarray, reference: np.ndarray, scale: np.ndarray | float) -> float:
    """The worst error of an entry over scale * max(1, largest entry of the exact result).

    `reference` is in fixed point.
    """
    error = exact.to_float(exact.fixed(measured) - reference)
    unit = scale * np.maximum(1.0, largest(exact.to_float(reference)))
    return float((largest(error) / unit).max())


# Values are held to a few ulps as users compile them; other programs of tests are hardly optimised.
OPTIMISED = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}


@cache
def compiled(f: Callable) -> Callable:
    return jax.jit(jax.vmap(f), compiler_options=OPTIMISED)


@cache
def derivatives(f: Callable) -> Callable:
    """(x, ...) -> first derivatives [n, ..., i] by forward and by reverse mode, and second ones
    [n, ..., i, j] by both, of f with respect to its first argument x (n, k).

    Every pair of an entry of the result and a direction is one row of a large batch, which compiles
    faster than nested Jacobians.
    """

    @jax.jit
    @jax.vmap
    def row(x, entry, direction, *others):
        def value_and_gradient(x):
            value, pullback = jax.vjp(lambda x: f(x, *others), x)
            return value, pullback(entry.reshape(value.shape))[0]

        (_, gradient), (forward, second) = jax.jvp(value_and_gradient, (x,), (direction,))
        return forward, gradient, second

    def evaluate(x: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = jax.eval_shape(f, x[0], *(o[0] for o in others)).shape
        n, k = x.shape
        entries = int(np.prod(shape))
        i, entry, direction = (a.ravel() for a in np.indices((n, entries, k)))
        unit = np.eye(max(entries, k), dtype=x.dtype)
        out = row(x[i], unit[entry, :entries], unit[direction, :k], *(o[i] for o in others))
        assert {a.dtype for a in out} == {x.dtype}
        forward, gradient, second = (np.asarray(a).reshape(n, entries, k, -1) for a in out)
        return (
            forward[:, 0].swapaxes(1, 2).reshape(n, *shape, k),
            gradient[:, :, 0].reshape(n, *shape, k),
            second.reshape(n, *shape, k, k),
        )

    return evaluate


def derivative_errors(
    f: Callable, jets: list[exact.Jet], scale: np.ndarray | float, *arguments: np.ndarray
) -> dict[str, float]:
    """The scaled errors of the derivatives of f at the arguments against the jets."""
    first, second = (np.array(a) for a in zip(*(j.derivatives() for j in jets), strict=True))
    forward, reverse, mixed = derivatives(f)(*arguments)
    return {
        "forward": scaled_error(forward, first, scale),
        "reverse": scaled_error(reverse, first, scale),
        "second": scaled_error(mixed, second, scale),
    }
