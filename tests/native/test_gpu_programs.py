"""Robots' motions on a GPU, without one: their PTX run on the CPU, and what their kernels take."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_programs import FIELDS, GPU, MEASURED, TYPES, motion, recorded, rows
from kernels import Kernels, nvrtc_required
from ptx import Ptx

from difflie import native
from difflie.native.gpu import cuda, nvrtc


class Interpreted(Kernels):
    """Kernels as PTX, as NVRTC writes it for an H100."""

    def launched(self, text, given, outs):
        code = nvrtc.compiled(text, GPU.replace("sm", "compute"), 12).decode().rstrip("\0")
        threads = -(-int(given[0][1]) // cuda.THREADS)
        Ptx(code, cuda.NAME).run([*given, *outs], threads, cuda.THREADS)


@pytest.fixture
def on_ptx():
    nvrtc_required()
    return Interpreted()


def ordinarily(monkeypatch, f, *args):
    with monkeypatch.context() as m:
        m.setenv("DIFFLIE_NATIVE", "0")
        return jax.jit(lambda *xs: f(*xs))(*args)


def alike(found, wanted, tolerance):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert np.all(np.isfinite(x))
        assert np.max(np.abs(x - y)) <= tolerance * max(np.max(np.abs(y)), 1)


def test_threads_that_part_meet_again(on_ptx, monkeypatch):
    """Each environment searches as long as it takes, in two blocks of which one is not full."""

    def f(a):
        def better(state):
            x, n = state
            return 0.5 * (x + a / x), n + 1

        def body(x, _):
            x, n = jax.lax.while_loop(lambda s: jnp.abs(s[0] ** 2 - a) > 1e-9, better, (x, 0))
            return x + 1, (n, jnp.where(x > 2, x, -x))

        return native.scan(body, a, None, 3)

    a = jnp.exp(jnp.linspace(-5.0, 5.0, 40))
    wanted = ordinarily(monkeypatch, jax.vmap(f), a)
    assert len(set(np.asarray(wanted[1][0]).ravel().tolist())) > 5
    alike(on_ptx(jax.vmap(f), a), wanted, 1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "program", "steps", "dtype"),
    [
        ("arm", "step", 100, "float32"),
        ("arm", "RKMK4", 20, "float64"),
        ("arm", "gradient", 20, "float32"),
        ("arm", "gradient", 20, "float64"),
        ("quadruped", "step", 20, "float64"),
    ],
)
def test_motions_as_ptx(on_ptx, monkeypatch, robot, program, steps, dtype):
    """What two warps on a GPU would compute is what the ordinary way computes."""
    tolerance = {"float32": 1e-6, "float64": 1e-13}[dtype]
    f, args = motion(robot, program, dtype, steps)
    alike(on_ptx(f, *args), ordinarily(monkeypatch, f, *args), tolerance)


@pytest.mark.slow
def test_the_benchmark_says_that_there_is_no_gpu():
    """In one sentence, before it measures anything."""
    file = Path(__file__).parents[2] / "experiments/bench_gpu.py"
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    ended = subprocess.run(
        [sys.executable, str(file)], env=environment, capture_output=True, text=True, timeout=900
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("bench_gpu: jax has no GPU here") and not ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("robot", "program"), MEASURED)
def test_what_kernels_take_of_a_gpu(robot, program, dtype):
    """A kernel that grows is noticed: registers, memory for want of them, size of the code."""
    nvrtc_required()
    table = recorded()
    anew = "python tests/native/gpu_programs.py writes the table anew"
    assert table["nvrtc"] == "{}.{}".format(*nvrtc.library(12)[1]), anew
    found = rows(robot, program, dtype)
    wanted = table[robot][f"{program}_{dtype}"]
    assert [x.keys() for x in found] == [x.keys() for x in wanted], anew
    for here, before in zip(found, wanted, strict=True):
        for x in FIELDS:
            assert abs(here[x] - before[x]) <= 0.1 * before[x] + 64, f"{x}: {found}; {anew}"
