"""How loops run on NVIDIA GPUs: kernels loaded by the CUDA driver, launched from calls of XLA.

A kernel is launched by a handler of XLA's foreign function interface (see `ffi`) on the stream of
the call. The first time that a program is to run on this kind of GPU it runs for a few iterations
there and on the CPU, and is used only if the results agree. Whatever is missing or fails, there is
one warning, and the program runs the ordinary way.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.ffi
import numpy as np

from .. import disk_cache
from ..attempts import Unavailable, reason, warn_slower, with_fallback
from ..cpu import ffi, object_code
from ..cpu.ffi import METADATA, failure, field, struct
from ..loop import Loop
from ..private import Context, ShapedArray, Value, reshaped
from . import cuda, nvrtc
from .cuda import THREADS

# Offsets in XLA's header c_api.h: of functions of its interface, and of fields of a buffer.
_STREAM_GET, _DIMS = 80, 40

_lock = threading.Lock()
_registered: set[str] = set()
# By name, why a handler cannot be trusted; none if it can.
_problems: dict[str, str | None] = {}


def compiled(
    context: Context,
    args: Sequence[Value],
    loop: Loop,
    batch: int | None,
    batched_args: tuple[bool, ...],
    bind: Callable[..., list[Any]],
) -> list[Any] | None:
    """The results of a native call in a program lowered for GPUs; None if there can be none.

    bind: makes such a call, which is compared with what it computes on the CPU.
    """
    outs: list[Any] = list(context.avals_out)
    if loop.length == 0 or not any(a.size for a in outs):
        return None
    name = _target(loop, batched_args if batch is not None else (), bind)
    if name is None:
        return None
    shapes = [a.shape if batch is not None else (1, *a.shape) for a in outs]
    results = [ShapedArray(shape, a.dtype) for shape, a in zip(shapes, outs, strict=True)]
    computed = ffi.called(context, name, cuda.numbers(loop, batch), args, results)
    return [reshaped(x, a) for x, a in zip(computed, outs, strict=True)]


def _trusted(loop: Loop, batched_args: tuple[bool, ...], bind: Callable[..., list[Any]]) -> str:
    """A handler that has been compared with the CPU; raises Unavailable."""
    gpu = _gpu()
    text = cuda.source(loop, batched_args)
    name = "difflie_cuda_" + hashlib.sha256(text.encode()).hexdigest()[:24]
    if name not in _problems:
        try:
            _problems[name] = _problem(gpu, name, text, loop, batched_args, bind)
        except Exception as problem:
            # What fails once, for want of memory say, is not tried with every program.
            _problems[name] = reason(problem)
    if _problems[name]:
        raise Unavailable(_problems[name])
    return name


_target = with_fallback(
    _trusted, functools.partial(warn_slower, cost="on the GPU may take many times as long")
)


def _problem(
    gpu: _Gpu,
    name: str,
    text: str,
    loop: Loop,
    batched_args: tuple[bool, ...],
    bind: Callable[..., list[Any]],
) -> str | None:
    """Registers a handler; why it cannot be trusted, if so."""
    code = nvrtc.compiled(text, gpu.architecture, gpu.version // 1000)
    ins, outs = (sum(a.size > 0 for a in x) for x in (loop.body.in_avals, loop.body.out_avals))
    with _lock:
        if name not in _registered:
            address = handler_of(name, 1 + ins, outs)
            give(address, _address(gpu.driver.cuLaunchKernel), _kernel(gpu.driver, code))
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="CUDA")
            _registered.add(name)
    about = ("agrees", code, gpu.device.device_kind, gpu.version, jax.__version__)
    key = hashlib.sha256(repr(about).encode()).hexdigest()
    if disk_cache.read(key) is not None:
        return None
    small, batch, args = trial(loop, batched_args)
    avals = zip(small.out_shapes, loop.body.out_avals, strict=True)
    like = [jax.ShapeDtypeStruct((batch or 1, *s), a.dtype) for s, a in avals]

    def native(*args: Any) -> Any:
        call = jax.ffi.ffi_call(name, [x for x in like if x.size])
        computed = iter(call(cuda.numbers(small, batch), *(x for x in args if x.size)))
        return [next(computed) if x.size else np.zeros(x.shape, x.dtype) for x in like]

    # The same program on the CPU: XLA takes minutes to compile long ones for a GPU.
    known = functools.partial(bind, loop=small, batch=batch, batched_args=batched_args)
    with jax.debug_nans(False), jax.debug_infs(False):
        problem = disagreement(_on(gpu.device, native), _on(_cpu(), known), args)
    if problem is None:
        disk_cache.write(key, b"yes")
    return problem and f"a program for the GPU is not used: {problem}"


def _on(device: Any, f: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A function as compiled for a device, which arrays of numpy go to."""
    compiled = jax.jit(f)

    def run(*args: np.ndarray) -> list[Any]:
        with jax.default_device(device):
            return compiled(*args)

    return run


def _cpu() -> Any:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError as problem:
        found = "jax has no CPU to compare a GPU's results with; let JAX_PLATFORMS be cuda,cpu"
        raise Unavailable(found) from problem


# The driver


class _Gpu(NamedTuple):
    """A GPU of this process, the driver and its version, and for what to compile."""

    device: Any
    driver: Any
    version: int
    architecture: str


@functools.cache
def _gpu() -> _Gpu:
    try:
        devices = jax.local_devices(backend="cuda")
    except RuntimeError as problem:
        raise Unavailable("there is no GPU to compile native code for") from problem
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        version = ctypes.c_int()
        _good(driver.cuInit(0), "starts")
        _good(driver.cuDriverGetVersion(ctypes.byref(version)), "tells its version")
        _address(driver.cuLibraryLoadData)
    except (OSError, AttributeError) as problem:
        reason = "there is no driver of CUDA 12 or newer to launch native code"
        raise Unavailable(f"{reason}: {problem}") from problem
    able = sorted(tuple(map(int, d.compute_capability.split("."))) for d in devices)
    # Machine code runs on later GPUs of the same generation; other ones take PTX.
    kind = "sm" if able[0][0] == able[-1][0] else "compute"
    return _Gpu(devices[0], driver, version.value, f"{kind}_{able[0][0]}{able[0][1]}")


def _good(result: int, what: str) -> None:
    if result:
        raise Unavailable(f"the CUDA driver fails with error {result} before it {what}")


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _kernel(driver: Any, code: bytes) -> int:
    """The kernel of compiled code, for the GPUs of all contexts; it stays for ever."""
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    none = None, None, 0
    _good(driver.cuLibraryLoadData(ctypes.byref(library), code, *none, *none), "loads a program")
    result = driver.cuLibraryGetKernel(ctypes.byref(kernel), library, cuda.NAME.encode())
    _good(result, "finds the kernel")
    return kernel.value or 0


# The handler


def handler_of(name: str, operands: int, results: int) -> int:
    """The address of a new handler, which has to be given the function that launches and a kernel.

    These are other ones in every process, and so they are no part of the text, which is cached.
    """
    return object_code.address(_handler(name, operands, results), name)


def give(handler: int, launch: int, kernel: int) -> None:
    """Tells a handler what to launch, and by which function."""
    frame = (ctypes.c_uint64 * 3)(0, launch, kernel)
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler)(ctypes.addressof(frame))


def _address_of_data(data: str, buffer: str) -> str:
    """Arguments of kernels are told by where they lie."""
    return f"  {data} = getelementptr i8, ptr {buffer}, i64 {ffi.DATA}"


def _handler(name: str, operands: int, results: int) -> str:
    """The text of a handler; frames of size 0, which XLA has none of, are those of `give`."""
    lines = ffi.filled("%table", operands, results, _address_of_data)
    message = "The CUDA driver cannot launch a native program."
    return f"""@launch = internal global ptr null
@kernel = internal global ptr null
@message = internal constant [{len(message) + 1} x i8] c"{message}\\00"
define ptr @{name}(ptr %frame) nounwind {{
  %table = alloca [{operands + results} x ptr]
  %asking = alloca [4 x i64]
  %failing = alloca [4 x i64]
  %size = load i64, ptr %frame
  %own = icmp eq i64 %size, 0
  br i1 %own, label %keep, label %call
keep:
{field("%new.launch", "%frame", 8)}
  store ptr %new.launch, ptr @launch
{field("%new.kernel", "%frame", 16)}
  store ptr %new.kernel, ptr @kernel
  ret ptr null
call:
{METADATA}
{chr(10).join(lines)}
{field("%api", "%frame", 16)}
{field("%context", "%frame", 24)}
{struct("%asking", "ptr %context", "ptr null")}
{field("%ask", "%api", _STREAM_GET)}
  %refused = call ptr %ask(ptr %asking)
  %fine = icmp eq ptr %refused, null
  br i1 %fine, label %start, label %refusal
refusal:
  ret ptr %refused
start:
{field("%stream", "%asking", 24)}
{field("%dims", "%r0", _DIMS)}
  %batch = load i64, ptr %dims
  %more = add i64 %batch, {cuda.THREADS - 1}
  %blocks = udiv i64 %more, {cuda.THREADS}
  %grid = trunc i64 %blocks to i32
  %launch = load ptr, ptr @launch
  %kernel = load ptr, ptr @kernel
  %result = call i32 %launch(ptr %kernel, i32 %grid, i32 1, i32 1,
    i32 {cuda.THREADS}, i32 1, i32 1, i32 0, ptr %stream, ptr %table, ptr null)
  %good = icmp eq i32 %result, 0
  br i1 %good, label %done, label %failure
done:
  ret ptr null
failure:
{failure("%failing", "@message")}
}}
"""


# Environments and iterations that are compared, and the pace of rows that are rare. The
# environments are two blocks of threads, the second one not full.
_BATCH, _ITERATIONS, _PACE = THREADS + 2, 4, 2


def trial(loop: Loop, batched_args: Sequence[bool]) -> tuple[Loop, int | None, list[np.ndarray]]:
    """A loop of a few iterations of the same kernel, a batch if there is one, and arguments to try.

    The arguments of every other environment, and of all, are positive, so that most functions have
    a value there; those of the rest have both signs.
    """
    rows, saved = (tuple(min(e, _PACE) for e in x) for x in (loop.rows, loop.saved))
    length = min(loop.length, _ITERATIONS) if max((*rows, *saved), default=1) == 1 else _ITERATIONS
    small = dataclasses.replace(loop, rows=rows, saved=saved, length=length)
    batch = _BATCH if batched_args else None
    random = np.random.default_rng(0)
    given = []
    pairs = zip(small.in_shapes, loop.body.in_avals, strict=True)
    for (shape, aval), wide in zip(
        pairs, batched_args or [False] * len(loop.body.in_avals), strict=True
    ):
        shape = (_BATCH, *shape) if wide else shape
        if np.issubdtype(aval.dtype, np.floating):
            x = random.uniform(0.2, 0.9, shape)
            if wide:
                x[1::2] *= random.choice((-1, 1), x[1::2].shape)
        else:
            x = random.integers(0, 2, shape)
        given.append(np.asarray(x).astype(aval.dtype))
    return small, batch, given


def disagreement(
    found: Callable[..., Any], wanted: Callable[..., Any], given: Sequence[np.ndarray]
) -> str | None:
    """How the results of a program differ from those wanted by more than rounding; None if not.

    How much rounding matters is seen from arguments that differ by it. Where these have no result,
    nothing is asked of the other.
    """
    floats = [x.dtype for x in given if np.issubdtype(x.dtype, np.floating)]
    step = max((float(np.finfo(t).eps) for t in floats), default=0.0)
    signs = np.random.default_rng(1)
    near = [
        (x * (1 + 4 * step * signs.choice((-1, 1), x.shape))).astype(x.dtype)
        if np.issubdtype(x.dtype, np.floating)
        else x
        for x in given
    ]
    calls = (wanted, given), (wanted, near), (found, given)
    right, other, computed = (list(map(np.asarray, f(*xs))) for f, xs in calls)
    compared = total = 0
    with np.errstate(all="ignore"):
        for y, x, z in zip(computed, right, other, strict=True):
            y, is_float = y.reshape(x.shape), np.issubdtype(x.dtype, np.floating)
            finite = np.isfinite(x) & np.isfinite(z)
            compared, total = compared + int(finite.sum()), total + x.size
            if not finite.any():
                continue
            y, x, z = (a[finite].astype(np.float64) for a in (y, x, z))
            allowed = 1e4 * step * float(np.max(np.abs(x))) if is_float else 0.0
            allowed += 1e3 * float(np.max(np.abs(x - z)))
            worst = float(np.max(np.abs(y - x)))
            if not worst <= allowed:
                return f"results differ by {worst:.1e}, by rounding no more than {allowed:.1e}"
    return None if 3 * compared >= total else "there is too little to compare"
