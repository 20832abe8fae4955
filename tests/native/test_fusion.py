"""Which products are rounded together with sums: one rule, whatever a compiler optimises."""

import hashlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernels import nvrtc_required

import difflie as dl
from difflie import native
from difflie.native import attempts
from difflie.native.cpu import background, object_code, vectorized_loop
from difflie.native.cpu.relay import Relay
from difflie.native.gpu import cuda, nvrtc
from difflie.native.loop import Loop
from difflie.native.loop_body import Traced
from difflie.native.program import Program, finished, fused

pytest.importorskip("llvmlite.binding")


def written(body, *kinds):
    """A program of what `body` makes of a program and of its arguments."""
    program = Program()
    return finished(program, body(program, *(program.argument(kind) for kind in kinds)))


def operations(program):
    """All that is computed, in order."""
    return [program.operations[k] for k in program.used() if program.operations[k] != "argument"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda p, x, y, z: [p.add(p.mul(x, y, "f64"), z, "f64")], ["fma"]),
        (lambda p, x, y, z: [p.add(z, p.mul(x, y, "f64"), "f64")], ["fma"]),
        (lambda p, x, y, z: [p.sub(p.mul(x, y, "f64"), z, "f64")], ["fms"]),
        (lambda p, x, y, z: [p.sub(z, p.mul(x, y, "f64"), "f64")], ["fnma"]),
        (lambda p, x, y, z: [p.add(p.mul(x, y, "f64"), p.mul(x, z, "f64"), "f64")], ["mul", "fma"]),
    ],
    ids=["x y + z", "z + x y", "x y - z", "z - x y", "x y + x z"],
)
def test_a_product_in_a_sum(body, expected):
    """Each way to write it is one instruction; of two products one is left."""
    assert operations(fused(written(body, "f64", "f64", "f64"), 0)) == expected


def test_a_product_used_twice_is_computed_once():
    """In two sums, in a sum and as a result, or doubled, it stays an instruction."""

    def in_two_sums(p, x, y, z):
        product = p.mul(x, y, "f64")
        return [p.add(product, z, "f64"), p.sub(product, z, "f64")]

    def as_result(p, x, y, z):
        product = p.mul(x, y, "f64")
        return [p.add(product, z, "f64"), product]

    def doubled(p, x, y, z):
        product = p.mul(x, y, "f64")
        return [p.add(product, product, "f64"), z]

    for body in (in_two_sums, as_result, doubled):
        program = written(body, "f64", "f64", "f64")
        assert operations(fused(program, 0)) == operations(program)


def test_whole_numbers_and_what_is_computed_once_stay():
    """Integers are exact; a product of constants of a loop is not moved into its iterations."""

    def body(p, x, y, z):
        return [p.add(p.mul(x, y, p.types[x]), z, p.types[x])]

    whole = written(body, "i64", "i64", "i64")
    assert operations(fused(whole, 0)) == ["mul", "add"]
    program = written(body, "f64", "f64", "f64")
    assert operations(fused(program, 2)) == ["mul", "add"]
    assert operations(fused(program, 3)) == ["fma"]
    assert operations(program) == ["mul", "add"]


@pytest.fixture
def at_level(monkeypatch):
    """A function (level, f, *args): the results of f as LLVM compiles it at a level."""
    digest_of = vectorized_loop.fingerprint

    def run(level, f, *args):
        found = []

        def of_level(*options):
            found.append(digest_of(*options))
            return hashlib.sha256(f"{level} {found[-1]}".encode()).hexdigest()

        with monkeypatch.context() as m:
            m.setenv("DIFFLIE_TIERED", "0")
            m.setattr(object_code, "_OPTIONS", {**object_code._OPTIONS, "opt": level})
            m.setattr(vectorized_loop, "fingerprint", of_level)
            # What is known already has been compiled at another level.
            handler = attempts.with_fallback(vectorized_loop._registered, pytest.fail)
            m.setattr(vectorized_loop, "_handler", handler)
            results = jax.jit(lambda *xs: f(*xs))(*args)
        assert found and None not in found
        return results

    return run


def same_bits(found, wanted):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.all(np.isfinite(x))
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def pendulums(dtype):
    """The gradient of a motion, with a search inside and a product of matrices."""

    def motion(q, v, turned):
        def body(state, _):
            q, v = state
            force = turned @ jnp.sin(q) - 0.1 * v * jnp.abs(v) + q[::-1] * jnp.exp(-(q**2))
            root = jax.lax.while_loop(
                lambda r: jnp.any(jnp.abs(r[0] - r[1]) > 1e-3 * r[0]),
                lambda r: (0.5 * (r[0] + (1 + q**2) / r[0]), r[0]),
                (1 + q**2, jnp.zeros_like(q)),
            )[0]
            v = v + 0.05 * (force - jax.lax.stop_gradient(root) * q)
            return (q + 0.05 * v, v), v @ v - jnp.cos(q).sum()

        (q, v), energy = native.scan(body, (q, v), None, 12)
        return q @ v + jnp.sum(energy)

    random = np.random.default_rng(2)
    args = (random.normal(size=(5, 9)), random.normal(size=(5, 9)), random.normal(size=(9, 9)))
    return jax.value_and_grad(motion, (0, 1)), tuple(jnp.asarray(x, dtype) for x in args)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_levels_of_optimisation_give_the_same_bits(at_level, dtype):
    """Alone and in lanes, with loops and products of matrices inside, and derivatives."""
    f, (q, v, turned) = pendulums(dtype)
    same_bits(at_level(0, f, q[0], v[0], turned), at_level(1, f, q[0], v[0], turned))
    g = jax.vmap(f, (0, 0, None))
    same_bits(at_level(0, g, q, v, turned), at_level(1, g, q, v, turned))
    same_bits(at_level(2, g, q, v, turned), at_level(1, g, q, v, turned))


@pytest.mark.slow
def test_a_robot_has_the_same_bits_at_all_levels(at_level):
    """A motion of an arm, alone and in lanes, which also agree with each other."""
    arm = dl.load(Path(dl.__file__).parent / "data/arm7.urdf", base="fixed")

    def end(q, v):
        run = dl.simulate(arm, q, v, dt=1e-2, steps=10, save_every=10, method="RKMK4")
        return run.q, run.v

    q, v = 0.3 * np.random.default_rng(1).normal(size=(2, 3, 7))
    same_bits(at_level(0, end, q[0], v[0]), at_level(1, end, q[0], v[0]))
    many = at_level(0, jax.vmap(end), q, v)
    same_bits(many, at_level(1, jax.vmap(end), q, v))
    same_bits(jax.tree.map(lambda x: x[0], many), at_level(1, end, q[0], v[0]))


@pytest.mark.slow
def test_a_robot_has_the_same_bits_when_its_code_is_replaced(monkeypatch, tmp_path):
    """One compiled function, called before and after, whose calls go to other code then."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path))
    handed_on, hand_on = [], Relay.hand_on

    def noted(relay, code):
        handed_on.append(relay)
        hand_on(relay, code)

    monkeypatch.setattr(Relay, "hand_on", noted)
    monkeypatch.setattr(background, "_MOMENT", 1e6)
    arm = dl.load(Path(dl.__file__).parent / "data/arm7.urdf", base="fixed")
    # No other test has this code.
    arm = arm.replace(gravity=jnp.array([0.0, 0.1, -9.7])).frozen()

    def end(q):
        return jnp.sum(dl.simulate(arm, q, jnp.cos(q), dt=1e-2, steps=31, save_every=31).q[-1])

    f, q = jax.jit(jax.value_and_grad(end)), 0.3 * jnp.arange(7.0)
    before, waiting = f(q), background._thread
    monkeypatch.setattr(background, "_MOMENT", 0)
    waiting.join(600)
    assert len(handed_on) - len(set(handed_on)) >= 2
    same_bits(f(q), before)


def test_a_processor_without_fused_operations(monkeypatch):
    """There each would be a call of a function: products and sums stay apart, also of matrices."""
    host = object_code._host()
    for triple, features, fuses in (
        ("x86_64-unknown-linux-gnu", "+avx,-fma", False),
        ("x86_64-unknown-linux-gnu", "+avx,+fma", True),
        ("aarch64-unknown-linux-gnu", "+neon", True),
    ):
        with monkeypatch.context() as m:
            other = host._replace(triple=triple, features=features)
            m.setattr(object_code, "_host", lambda other=other: other)
            assert object_code.fuses() == fuses

    closed = jax.make_jaxpr(lambda m, x: m @ m + x * m - 1.0)(jnp.ones((12, 12)), 2.0)
    loop = Loop(Traced(closed), 0, 1, (1,), (), 3)
    for fuses in (False, True):
        monkeypatch.setattr(object_code, "fuses", lambda fuses=fuses: fuses)
        for lanes in (1, 8):
            text = vectorized_loop.text_of(loop, (True, True) if lanes > 1 else (), lanes)
            assert ("@llvm.fma." in text) == fuses


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_kernels_fuse_as_written(dtype):
    """The compiler of CUDA C fuses what is written as fused, and no other product."""
    nvrtc_required()

    def body(x, y, z, w):
        product = x * y
        return [x * z + y * w, z - y * z, product + w, -product - z]

    avals = [jax.ShapeDtypeStruct((), dtype)] * 4
    loop = Loop(Traced(jax.make_jaxpr(body)(*avals)), 0, 4, (), (), 3)
    kinds = operations(fused(loop.program(), 0))
    ptx = nvrtc.compiled(cuda.source(loop, ()), "compute_90", 12).decode()
    assert ptx.count("fma.rn") == sum(kind in ("fma", "fms", "fnma") for kind in kinds) == 2
    assert ptx.count("mul.rn.f") == 1
