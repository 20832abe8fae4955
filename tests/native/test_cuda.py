"""Kernels for GPUs, without one: compiled by NVRTC, and run on the CPU by a compiler of C."""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import warnings
from pathlib import Path

import jax
import jax.ffi
import jax.numpy as jnp
import numpy as np
import pytest
from kernels import Kernels, nvrtc_required, required

from difflie import native
from difflie.native import attempts, primitive
from difflie.native.attempts import Unavailable
from difflie.native.cpu import ffi, vectorized_loop
from difflie.native.gpu import cuda, launch, nvrtc
from difflie.native.loop import Loop
from difflie.native.loop_body import Traced
from difflie.native.program import Unsupported

CC = shutil.which("cc") or shutil.which("gcc")
STREAM = 0x5EED
# What CUDA has, in C; and in place of the driver a function that runs one thread after another.
SHIM = """
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <string.h>
#define __global__
#define __launch_bounds__(...)
static struct { int x; } blockIdx, threadIdx;
static double __longlong_as_double(long long i) { double x; memcpy(&x, &i, 8); return x; }
static float __int_as_float(int i) { float x; memcpy(&x, &i, 4); return x; }
static double __dmul_rn(double x, double y) { return x * y; }
static float __fmul_rn(float x, float y) { return x * y; }
"""
DRIVER = """
void* streams;
int launch(void* kernel, unsigned grid, unsigned y, unsigned z, unsigned threads, unsigned ty,
           unsigned tz, unsigned shared, void* stream, void** p, void** extra) {
  if (y * z * ty * tz != 1 || shared || extra || kernel != (void*)7) return 1;
  streams = stream;
  for (unsigned b = 0; b < grid; ++b)
    for (unsigned t = 0; t < threads; ++t) {
      blockIdx.x = b; threadIdx.x = t;
      run_loop(ARGUMENTS);
    }
  return 0;
}
"""


class Buffer(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class Buffers(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(Buffer))),
    )


class Frame(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("args", Buffers),
        ("rets", Buffers),
    )


def buffers(arrays):
    made = [
        Buffer(48, None, 0, x.ctypes.data, x.ndim, (ctypes.c_int64 * x.ndim)(*x.shape))
        for x in arrays
    ]
    pointers = (ctypes.POINTER(Buffer) * len(made))(*map(ctypes.pointer, made))
    return Buffers(40, None, len(made), None, pointers)


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
def stream_get(args):
    assert args[0] == 32
    args[3] = STREAM
    return None


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
def error_create(args):
    assert ctypes.string_at(args[2]).startswith(b"The CUDA driver")
    return 13


class Compiled(Kernels):
    """Kernels compiled as C, through the handlers that would launch them."""

    def __init__(self, folder):
        self.folder = folder
        self.known = {}

    def library(self, text):
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        if name not in self.known:
            count = text.split(") {")[0].count("__restrict__")
            given = ", ".join(f"*(void**)p[{i}]" for i in range(count))
            source = SHIM + text.replace('extern "C"', "") + DRIVER.replace("ARGUMENTS", given)
            path = self.folder / f"{name}.c"
            path.write_text(source)
            options = ["-O1", "-shared", "-fPIC", "-w", "-o", f"{path}.so", str(path), "-lm"]
            subprocess.run([str(CC), *options], check=True)
            self.known[name] = ctypes.CDLL(f"{path}.so"), count
        return (f"test_{name}", *self.known[name])

    def launched(self, text, given, outs, function=7):
        name, library, count = self.library(text)
        assert count == len(given) + len(outs)
        handler = launch.handler_of(name, len(given), len(outs))
        launch.give(handler, launch._address(library.launch), function)
        api = (ctypes.c_uint64 * 24)()
        api[launch._STREAM_GET // 8] = launch._address(stream_get)
        api[ffi._ERROR_CREATE // 8] = launch._address(error_create)
        frame = Frame(1, None, ctypes.addressof(api), 5, 3, buffers(given), buffers(outs))
        error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler)(ctypes.addressof(frame))
        if error is None:
            assert ctypes.c_void_p.in_dll(library, "streams").value == STREAM
        return error


@pytest.fixture(scope="module")
def on_kernels(tmp_path_factory):
    required(CC, "there is no compiler of C")
    return Compiled(tmp_path_factory.mktemp("kernels"))


def swing(length=6, every=1, reverse=False):
    """A few iterations of two pendulums, driven by rows; what is saved has two shapes and types."""

    def f(machine, start, rows):
        def body(state, row):
            (q, v), push = state, row["push"]
            force = -jnp.sin(q) * jnp.exp(machine["gravity"]) + jnp.array(
                [q[1] - q[0], jnp.cos(q[0])]
            )
            v = v + 0.05 * machine["inertia"] @ (force + push)
            q = q + 0.05 * v
            out = {
                "energy": v @ v - jnp.cos(q).sum(),
                "low": q < jnp.maximum(v, 0.1),
                "swap": q[::-1],
            }
            return (q, v), out

        return native.scan(body, start, rows, length, reverse, every)

    return f


def given(dtype, batch=None, length=6):
    random = np.random.default_rng(3)
    lead = () if batch is None else (batch,)
    machine = {"gravity": random.normal(), "inertia": random.normal(size=(2, 2))}
    start = tuple(random.normal(size=(*lead, 2)) for _ in range(2))
    rows = {"push": random.normal(size=(*lead, length, 2))}
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), (machine, start, rows))


def ordinarily(monkeypatch, f, *args):
    with monkeypatch.context() as m:
        m.setenv("DIFFLIE_NATIVE", "0")
        return jax.jit(lambda *xs: f(*xs))(*args)


def alike(found, wanted, tolerance=1e-12):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_a_loop_of_one_and_of_batches(on_kernels, monkeypatch, dtype, tolerance):
    alike(
        on_kernels(swing(), *given(dtype)),
        ordinarily(monkeypatch, swing(), *given(dtype)),
        tolerance,
    )
    for batch in (1, 3, 65):
        args = given(dtype, batch)
        f = jax.vmap(swing(), in_axes=(None, 0, 0))
        alike(on_kernels(f, *args), ordinarily(monkeypatch, f, *args), tolerance)


@pytest.mark.parametrize(("every", "reverse"), [(3, False), (1, True)])
def test_every_third_is_saved_and_turns_back(on_kernels, monkeypatch, every, reverse):
    f = swing(every=every, reverse=reverse)
    for g, args in ((f, given(float)), (jax.vmap(f, (None, 0, 0)), given(float, 3))):
        alike(on_kernels(g, *args), ordinarily(monkeypatch, g, *args))


@pytest.mark.slow
def test_gradients(on_kernels, monkeypatch):
    def loss(*args):
        end, out = swing(every=2)(*args)
        return sum(jnp.sum(x**2) for x in (*end, out["energy"], out["swap"]))

    g = jax.grad(loss, argnums=(0, 1, 2))
    alike(on_kernels(g, *given(float)), ordinarily(monkeypatch, g, *given(float)), 1e-10)
    g = jax.vmap(g, in_axes=(None, 0, 0))
    args = given(float, 3)
    alike(on_kernels(g, *args), ordinarily(monkeypatch, g, *args), 1e-10)


def root(x, a):
    """A square root by a search of as many iterations as it takes."""

    def better(state):
        y, _, n = state
        return 0.5 * (y + a / y), y, n + 1

    y, _, n = jax.lax.while_loop(
        lambda s: (jnp.abs(s[0] - s[1]).max() > 1e-9) & (s[2] < 30), better, (x, x + 1, 0)
    )
    return y, n


def test_a_loop_inside(on_kernels, monkeypatch):
    def f(a, x):
        def body(x, _):
            y, n = root(x, a)
            return y + 1, (n, jnp.sum(y))

        return native.scan(body, x, None, 3)

    a, x = jnp.array([2.0, 5.0]), jnp.array([[1.0, 2.0], [30.0, 2.0], [1e-3, 9.0]])
    alike(on_kernels(f, a, x[0]), ordinarily(monkeypatch, f, a, x[0]))
    g = jax.vmap(f, in_axes=(None, 0))
    alike(on_kernels(g, a, x), ordinarily(monkeypatch, g, a, x))


def operations(x, n, u, b):
    """Whatever has to be written with care in C."""
    whole = jnp.array([3, -3, 0, -1, 7])
    low = jnp.iinfo(jnp.int64).min
    return (
        [jnp.tanh(x), jnp.exp2(x), jnp.expm1(x), jnp.log1p(jnp.abs(x)), jnp.arctan2(x, x[::-1])],
        [jnp.cbrt(x), jnp.round(x), jax.nn.sigmoid(x), jax.lax.erf(x), jax.lax.rem(x, x[::-1])],
        [jnp.sign(x), -x, jnp.where(b, x, jnp.inf), jnp.where(b, -jnp.inf, jnp.abs(x)), x**3],
        [jax.lax.div(n, whole), jax.lax.rem(n, whole), jnp.abs(n), -n, ~n, n ^ 5, jnp.sign(n)],
        [n * low, n + low, jnp.maximum(n, 2), n == low, jnp.where(b, n, low), n.astype(jnp.int32)],
        [u.astype(float), u - 7, jax.lax.div(u, u[::-1] + 1), u.astype(jnp.int64), jnp.sign(u)],
        [(1e30 * x).astype(jnp.int64), (1e30 * x).astype(jnp.uint32), x.astype(bool)],
        [~b, b & (x > 0), b | (n > 0), b ^ (x < 0), b.astype(float), b.astype(jnp.int32)],
        [jnp.maximum(x, jnp.sqrt(x)), jnp.minimum(jnp.sqrt(x), x)],
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_operations(on_kernels, monkeypatch, dtype):
    x = jnp.array([0.3, -1.7, 2.5, -0.0, 40.0], dtype)
    n, u = jnp.array([17, -17, 5, jnp.iinfo(jnp.int64).min, -1]), jnp.arange(5, dtype=jnp.uint32)
    args = x, n, u, x > 0.5
    found = on_kernels(native.kernel(operations), *args)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    alike(found, ordinarily(monkeypatch, operations, *args), tolerance)


def loop_of(f, avals, consts, carry, **options):
    closed = jax.make_jaxpr(f)(*(jnp.zeros(s, t) for s, t in avals))
    rows, saved = len(avals) - consts - carry, len(closed.out_avals) - carry
    options = {"rows": (1,) * rows, "saved": (1,) * saved, "length": 5} | options
    return Loop(Traced(closed), consts, carry, **options)


def small_loop(**options):
    def body(c, x, r):
        y, n = root(jnp.abs(x) + 1, jnp.abs(c) + r**2)
        return x + 0.1 * jnp.sin(y), n, jnp.cos(x)

    return loop_of(body, [((2,), float), ((2,), float), ((2,), float)], 1, 1, **options)


@pytest.mark.parametrize("batched_args", [(), (False, True, True)])
def test_the_comparison_with_the_ordinary_way(on_kernels, batched_args):
    loop = small_loop(saved=(1, 25), length=100)
    small, batch, args = launch.trial(loop, batched_args)
    assert (small.length, small.saved) == (4, (1, 2))
    assert cuda.source(small, batched_args) == cuda.source(loop, batched_args)
    right = cuda.source(loop, batched_args)
    wrong = right.replace("cos(", "0.999999 * cos(")
    assert right != wrong
    problems = [
        launch.disagreement(
            lambda *xs, text=text: on_kernels.run(small, batch, batched_args, xs, text),
            *(jax.jit(small.applied(batch, batched_args)), args),
        )
        for text in (right, wrong)
    ]
    assert problems[0] is None
    assert problems[1] is not None and "differ" in problems[1]


def test_nothing_is_said_of_what_has_no_result():
    loop = loop_of(lambda x: (jnp.log(-x),), [((2,), float)], 0, 1)
    small, _, args = launch.trial(loop, ())
    found = launch.disagreement(jax.jit(small.apply), jax.jit(small.apply), args)
    assert found == "there is too little to compare"


def test_a_launch_that_fails_is_an_error(on_kernels):
    loop = small_loop()
    given = [cuda.numbers(loop, None), *launch.trial(loop, ())[2]]
    outs = [np.zeros((1, *s)) for s in loop.out_shapes]
    assert on_kernels.launched(cuda.source(loop, ()), given, outs, function=8) == 13


def test_offsets_are_those_of_the_header(tmp_path):
    required(CC, "there is no compiler of C")
    wanted = {
        "XLA_FFI_Api, XLA_FFI_Error_Create": ffi._ERROR_CREATE,
        "XLA_FFI_Api, XLA_FFI_Stream_Get": launch._STREAM_GET,
        "XLA_FFI_Buffer, data": ffi.DATA,
        "XLA_FFI_Buffer, dims": launch._DIMS,
        "XLA_FFI_Stream_Get_Args, stream": 24,
        "XLA_FFI_Error_Create_Args, errc": 24,
    }
    lines = [f"_Static_assert(offsetof({x}) == {n}, {x!r});" for x, n in wanted.items()]
    lines = [line.replace("'", '"') for line in lines]
    code = '#include "xla/ffi/api/c_api.h"\n' + "\n".join(lines)
    command = [str(CC), "-fsyntax-only", "-x", "c", "-I", jax.ffi.include_dir(), "-"]
    subprocess.run(command, input=code.encode(), check=True)


def test_nvrtc_compiles():
    text = cuda.source(small_loop(), (False, True, True))
    f32 = loop_of(operations, [((5,), t) for t in ("float32", "int64", "uint32", "bool")], 0, 0)
    nvrtc_required()
    assert nvrtc.compiled(text, "sm_90").startswith(b"\x7fELF")
    assert b".visible .entry run_loop" in nvrtc.compiled(cuda.source(f32, ()), "compute_80")
    with pytest.raises(Unavailable, match="cannot compile for sm_90"):
        nvrtc.compiled("int f( {", "sm_90")


def test_no_nvrtc_is_a_clear_reason(monkeypatch):
    monkeypatch.setattr(nvrtc, "_places", lambda: iter(["libnvrtc_that_does_not_exist.so"]))
    with pytest.raises(Unavailable, match="pip install nvidia-cuda-nvrtc-cu12"):
        nvrtc.library.__wrapped__(12)


def test_what_takes_minutes_to_compile_is_refused(monkeypatch):
    monkeypatch.setattr(cuda, "LONGEST", 10)
    with pytest.raises(Unsupported, match="instructions"):
        cuda.source(small_loop(), ())


def lowered_for_gpus(f, *args):
    return jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


class Pretended:
    """A GPU that is this processor: XLA calls the handlers, and C runs the kernels."""

    def __init__(self, monkeypatch, kernels, changed=lambda text: text):
        self.kernels, self.changed, self.launches = kernels, changed, 0
        # On CPUs there are no streams, but functions that are called alike.
        monkeypatch.setattr(launch, "_STREAM_GET", 176)
        monkeypatch.setattr(launch, "_registered", set())
        monkeypatch.setattr(launch, "_problems", {})
        monkeypatch.setattr(launch, "_kernel", lambda driver, code: 7)
        gpu = launch._Gpu(jax.devices("cpu")[0], self, 12090, "sm_90")
        monkeypatch.setattr(launch, "_gpu", lambda: gpu)
        monkeypatch.setattr(nvrtc, "compiled", self.compiled)
        compiled = functools.partial(launch.compiled, bind=primitive._apply)
        monkeypatch.setattr(vectorized_loop, "compiled", compiled)
        register = jax.ffi.register_ffi_target
        monkeypatch.setattr(
            jax.ffi, "register_ffi_target", lambda name, f, platform: register(name, f)
        )

    def compiled(self, text, architecture, newest):
        assert (architecture, newest) == ("sm_90", 12)
        self.cuLaunchKernel = self.kernels.library(self.changed(text))[1].launch
        self.launches += 1
        return self.changed(text).encode()


def has_run_id():
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    return "XLA_FFI_RunId_Get);" in header.read_text()


pretending = pytest.mark.skipif(not has_run_id(), reason="this XLA has no run numbers")


@pretending
def test_all_of_it_on_a_gpu_that_is_no_gpu(on_kernels, monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path))
    pretended = Pretended(monkeypatch, on_kernels)
    f = swing(length=8)
    for g, args in ((f, given(float, length=8)), (jax.vmap(f, (None, 0, 0)), given(float, 65, 8))):
        lowered = jax.jit(lambda *xs, g=g: g(*xs)).lower(*args)
        assert "difflie_cuda" in lowered.as_text()
        alike(lowered.compile()(*args), ordinarily(monkeypatch, g, *args))
    assert pretended.launches == 2


@pretending
def test_a_wrong_kernel_is_not_used(on_kernels, monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path))
    attempts.warn_once.cache_clear()
    Pretended(monkeypatch, on_kernels, lambda text: text.replace("exp(", "1.0001 * exp("))
    f, args = swing(length=9), given(float, length=9)
    with pytest.warns(UserWarning, match="not used: results differ"):
        lowered = jax.jit(lambda *xs: f(*xs)).lower(*args)
    assert "difflie" not in lowered.as_text()
    alike(lowered.compile()(*args), ordinarily(monkeypatch, f, *args))


@pretending
def test_what_fails_once_is_not_tried_again(on_kernels, monkeypatch, tmp_path):
    """A GPU without memory for a kernel is asked once; the program runs the ordinary way."""
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path))
    attempts.warn_once.cache_clear()
    Pretended(monkeypatch, on_kernels)
    tried = []

    def without_memory(loop, batched_args):
        tried.append(loop)
        raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(launch, "trial", without_memory)
    args = given(float, length=11)
    with pytest.warns(UserWarning, match="OUT_OF_MEMORY") as told:
        texts = [jax.jit(swing(length=11)).lower(*args).as_text() for _ in range(2)]
    assert len(tried) == len(told) == 1
    assert all("difflie" not in text for text in texts)


def test_errors_of_xla_are_passed_on(on_kernels):
    """On CPUs there is no stream to be had."""
    address = launch.handler_of("test_no_stream", 1, 1)
    jax.ffi.register_ffi_target("test_no_stream", jax.ffi.pycapsule(address))
    run = jax.ffi.ffi_call("test_no_stream", [jax.ShapeDtypeStruct((2,), np.float32)])
    with pytest.raises(Exception, match=r"(?i)stream|gpu"):
        jax.block_until_ready(jax.jit(run)(np.zeros(2, np.int32)))


def no_gpu():
    raise Unavailable("there is no GPU")


@pytest.mark.parametrize("failure", [no_gpu, lambda: 1 / 0], ids=["no GPU", "anything"])
def test_without_a_gpu_there_is_one_warning(monkeypatch, failure):
    monkeypatch.setattr(launch, "_gpu", failure)
    attempts.warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for every in (1, 2):
            text = lowered_for_gpus(swing(every=every), *given(float))
            assert "while" in text and "difflie" not in text
    assert len(seen) == 1


def test_the_call_in_a_program_for_gpus(monkeypatch):
    monkeypatch.setattr(launch, "_target", lambda loop, *options: "difflie_cuda_test")
    assert attempts.available()
    f = jax.vmap(swing(), in_axes=(None, 0, 0))
    for g, args in ((swing(), given(float)), (f, given(np.float32, 65))):
        lines = lowered_for_gpus(g, *args).splitlines()
        (line,) = (x for x in lines if "custom_call" in x)
        assert "@difflie_cuda_test" in line
        assert "tensor<2xi32>" in line
