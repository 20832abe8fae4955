"""One way into native code: a rollout is one call, and what it calls inside is written into it."""

import sys
from pathlib import Path

import gpu_programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.native.jaxprs import nested

PACKAGE = str(Path(dl.__file__).parent)
BINDING = [sys.modules[f"difflie.native.{name}"] for name in ("primitive", "kernel")]


def frames() -> int:
    """How many functions of the package are on the stack."""
    frame, count = sys._getframe(1), 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith(PACKAGE)
        frame = frame.f_back
    return count


def natives(jaxpr, inside=False):
    """The native calls in a jaxpr, each with whether it stands in another one."""
    for e in jaxpr.eqns:
        here = e.primitive.name == "native"
        if here:
            yield e.params["loop"], inside
            yield from natives(e.params["loop"].body.closed().jaxpr, True)
        for inner in nested(e.params):
            yield from natives(inner.jaxpr, inside)


def moved(system, method="RKMK4", **how):
    q = np.random.default_rng(0).normal(size=system.nq)
    q = q / np.linalg.norm(q[:4])

    def end(q):
        run = dl.simulate(
            *(system, q, jnp.zeros(system.nv)), steps=100, save_every=100, method=method, **how
        )
        return jnp.sum(run.q[-1] ** 2)

    return end, q


@pytest.mark.slow("arm-RKMK4", "quadruped-RKMK4", "quadruped-SemiImplicitEuler")
@pytest.mark.parametrize("method", ["RKMK4", "SemiImplicitEuler"])
@pytest.mark.parametrize("name", ["arm", "quadruped"])
def test_a_rollout_is_one_call(monkeypatch, name, method):
    """It is bound once, no call stands in another, and none is bound far down the stack."""
    depths, bind = [], BINDING[0].bind

    def counted(*args, **kwargs):
        depths.append(frames())
        return bind(*args, **kwargs)

    for module in BINDING:
        monkeypatch.setattr(module, "bind", counted)
    jax.clear_caches()
    end, q = moved(gpu_programs.robot(name, "float64"), method)
    calls = list(natives(jax.make_jaxpr(end)(q).jaxpr))
    assert [loop.length for loop, _ in calls].count(100) == 1
    assert not any(inside for _, inside in calls)
    assert depths and max(depths) <= 20


@pytest.mark.slow
def test_a_gradient_is_two_calls():
    """The states, then the loop back: rules of derivatives are written into them as well."""
    end, q = moved(gpu_programs.robot("arm", "float64"))
    calls = list(natives(jax.make_jaxpr(jax.grad(end))(q).jaxpr))
    assert [loop.length for loop, _ in calls].count(100) == 2
    assert not any(inside for _, inside in calls)


@pytest.mark.slow
def test_dynamics_are_native_under_a_control_that_is_not():
    """What a call has no program for is left to XLA; the kernels within are calls of their own."""
    system = gpu_programs.robot("arm", "float64")

    def control(t, q, v):
        return -jnp.linalg.svd(jnp.outer(q, q) + jnp.eye(7))[1] * q - v

    end, q = moved(system, control=control)
    batch = jnp.stack((q, q + 0.1))
    for f, at in ((end, q), (jax.grad(end), q), (jax.vmap(jax.grad(end)), batch)):
        text = jax.jit(f).lower(at).as_text()
        assert "custom_call @difflie_" in text
        assert "difflie_kernel" not in text


def test_what_was_traced_inside_is_not_used_outside():
    """Functions that jax keeps once traced are native by themselves, also after a rollout."""
    system = gpu_programs.robot("arm", "float64")

    def control(t, q, v):
        return -dl.gravity_force(system, q) * 0.1

    end, q = moved(system, control=control)
    jax.clear_caches()
    end(q)
    text = jax.jit(lambda q: dl.gravity_force(system, q)).lower(q).as_text()
    assert "custom_call @difflie_" in text
    assert "difflie_kernel" not in text
