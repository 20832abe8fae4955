"""XLA calls machine code with the right buffers, and shares its blocks among threads."""

import ctypes
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

from difflie.native import private
from difflie.native.cpu import background, ffi, object_code

pytest.importorskip("llvmlite")
needs_cpu = pytest.mark.skipif(jax.default_backend() != "cpu", reason="handlers are for CPUs")

# result[n b + i] = (first + second)[n b + i] for i < n, the sum repeated to take its time
BLOCK = """
define internal void @block(ptr %buffers, i64 %b) nounwind {{
  %at0 = getelementptr ptr, ptr %buffers, i64 1
  %first = load ptr, ptr %at0
  %at1 = getelementptr ptr, ptr %buffers, i64 2
  %second = load ptr, ptr %at1
  %at2 = getelementptr ptr, ptr %buffers, i64 3
  %result = load ptr, ptr %at2
  %start = mul i64 %b, {n}
  br label %next
next:
  %i = phi i64 [0, %0], [%i1, %next]
  %j = urem i64 %i, {n}
  %k = add i64 %start, %j
  %xp = getelementptr double, ptr %first, i64 %k
  %x = load double, ptr %xp
  %yp = getelementptr double, ptr %second, i64 %k
  %y = load double, ptr %yp
  %z = fadd double %x, %y
  %zp = getelementptr double, ptr %result, i64 %k
  store volatile double %z, ptr %zp
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, {iterations}
  br i1 %more, label %next, label %end
end:
  ret void
}}
"""
N = 5


def text(name, shared, iterations=N):
    return BLOCK.format(n=N, iterations=iterations) + ffi.handler(name, 3, 1, shared)


def registered(name, shared, iterations=N):
    """The address that XLA is given."""
    return object_code.handler(
        name, lambda: text(object_code.HANDLER, shared, iterations), soon=False
    )


def added(name, blocks, iterations=N):
    """A function that adds arrays (N blocks,) by a handler."""
    numbers = np.array([0, 0, blocks], np.int64)
    add_p = Primitive(name)
    add_p.def_abstract_eval(lambda x, y: x)

    def lower(context, *operands):
        where = registered(name, blocks > 1, iterations)
        operands = [private.constant(numbers), *operands]
        return private.foreign_call(context, ffi.target(name, where), operands, context.avals_out)

    mlir.register_lowering(add_p, lower, platform="cpu")
    return jax.jit(add_p.bind)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("DIFFLIE_CACHE", "0")


def frame_of(api, blocks=20):
    """A call frame as XLA makes them, with arrays (20 N,), and all that must live as long."""
    numbers = np.array([0, 0, blocks], np.int64)
    arrays = [np.arange(20.0 * N), np.ones(20 * N), np.zeros(20 * N)]
    buffers = [(ctypes.c_int64 * 6)(48, 0, 12, a.ctypes.data, 1, 0) for a in (numbers, *arrays)]
    lists = [
        (ctypes.c_int64 * len(part))(*map(ctypes.addressof, part))
        for part in (buffers[:3], buffers[3:])
    ]
    operands, results = map(ctypes.addressof, lists)
    values = [144, 0, ctypes.addressof(api), 77, 3]
    values += [40, 0, 3, 0, operands, 40, 0, 1, 0, results, 48, 0, 0, 0, 0, 0]
    return (ctypes.c_int64 * len(values))(*values), arrays, (numbers, buffers, lists, api)


CALL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def loaded(name, shared=True):
    return CALL(object_code.address(text(name, shared), name))


def pool(threads, schedule, refusal=0):
    """The part of XLA's interface that handlers use; calls are written down."""
    seen = {"destroyed": [], "started": []}

    def number(arguments):
        a = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_int64))
        assert (a[0], a[1], a[2]) == (32, 0, 77)
        if not refusal:
            ctypes.cast(a[3], ctypes.POINTER(ctypes.c_int64))[0] = threads
        return refusal

    def start(arguments):
        a = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_int64))
        assert (a[0], a[1], a[2]) == (40, 0, 77)
        seen["started"].append(a[4])
        task, job = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(a[3]), a[4]
        return schedule(lambda: task(job))

    def destroy(arguments):
        a = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_int64))
        assert (a[0], a[1]) == (24, 0)
        seen["destroyed"].append(a[2])

    functions = [CALL(number), CALL(start), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destroy)]
    api = (ctypes.c_int64 * 24)()
    for place, f in zip((18, 17, 8), functions, strict=True):
        api[place] = ctypes.cast(f, ctypes.c_void_p).value
    seen["functions"] = functions
    return api, seen


def right(arrays):
    return np.array_equal(arrays[2], arrays[0] + 1)


@needs_cpu
def test_a_jitted_function_calls_a_handler():
    """Operands and results arrive in order, in programs that call twice and in loops."""
    add = added("difflie_test_add", 1)
    x, y = jnp.arange(1.0 * N), jnp.linspace(2.0, 3.0, N)
    np.testing.assert_array_equal(add(x, y), x + y)
    np.testing.assert_allclose(jax.jit(lambda x, y: add(add(x, y), x))(x, y), 2 * x + y)
    looped = jax.lax.scan(lambda c, _: (add(c, y), None), x, length=10)[0]
    np.testing.assert_allclose(looped, x + 10 * y)


@needs_cpu
def test_calls_from_several_threads_of_python():
    """Jobs of calls that run at the same time do not mix."""
    add = added("difflie_test_add_threads", 20)

    def call(seed):
        x = jnp.arange(20.0 * N) * seed
        return all(np.array_equal(add(x, x + k), 2 * x + k) for k in range(50))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(call, range(8)))


REAL_POOL = """
import os; os.environ["PJRT_NPROC"] = "4"
import jax, jax.numpy as jnp, numpy as np, sys, threading
jax.config.update("jax_enable_x64", True)
sys.path.insert(0, sys.argv[1])
from test_ffi import N, added
quick, slow = added("difflie_test_quick", 20), added("difflie_test_slow", 3, 200_000)
def call(seed):
    x = jnp.arange(20.0 * N) + seed
    for k in range(300):
        assert np.array_equal(quick(x, x + k), 2 * x + k)
    x = jnp.arange(3.0 * N) + seed
    for k in range(20):
        assert np.array_equal(slow(x, x + k), 2 * x + k)
    right.append(seed)
right = []
threads = [threading.Thread(target=call, args=(s,)) for s in range(3)]
for t in threads: t.start()
for t in threads: t.join()
assert len(right) == 3
"""


@needs_cpu
def test_blocks_shared_with_the_threads_of_xla(tmp_path):
    """Many calls, short and long, from several threads, all right with a pool of four threads."""
    here = __file__.rsplit("test_ffi", 1)[0]
    subprocess.run([sys.executable, "-c", REAL_POOL, here], check=True, timeout=900)


def test_metadata(monkeypatch):
    """XLA is told the version 0.1 and no traits, without code, and no buffer is touched."""
    with monkeypatch.context() as m:
        m.setenv("DIFFLIE_TIERED", "1")
        m.setattr(background, "soon", lambda job: None)
        call = CALL(registered("difflie_test_metadata", False))
        del object_code._handlers["difflie_test_metadata"]
        about = (ctypes.c_int32 * 12)(*[99] * 12)
        extension = (ctypes.c_int64 * 4)(32, 1, 0, ctypes.addressof(about))
        frame = (ctypes.c_int64 * 18)(144, ctypes.addressof(extension))
        assert call(ctypes.addressof(frame)) is None
        assert list(about[6:9]) == [0, 1, 0]
        assert {*about[:6], *about[9:]} == {99}


def test_tasks_that_start_late_find_nothing_to_do():
    """The caller does all blocks of tasks that never start; late ones only leave the job."""
    tasks = []
    api, seen = pool(4, lambda task: tasks.append(task))
    frame, arrays, _kept = frame_of(api)
    assert loaded("difflie_test_late")(ctypes.addressof(frame)) is None
    assert right(arrays) and len(tasks) == 3
    arrays[2][:] = 0
    references = ctypes.c_int64.from_address(seen["started"][0] + ffi._REFERENCES)
    for left, task in zip((3, 2, 1), tasks, strict=True):
        assert references.value == left
        task()
    assert not arrays[2].any() and not seen["destroyed"]


def test_tasks_in_threads_or_at_once():
    """Blocks are done once each, in other threads as well as in the caller's own."""
    threads = []

    def thread(task):
        threads.append(threading.Thread(target=task))
        threads[-1].start()

    def at_once(task):
        task()

    for schedule in (thread, at_once):
        api, seen = pool(8, schedule)
        for blocks, helpers in ((20, 7), (4, 3), (1, 0)):
            frame, arrays, _kept = frame_of(api, blocks)
            arrays[2][:] = arrays[0] + 1
            arrays[2][: blocks * N] = 0
            seen["started"].clear()
            assert loaded("difflie_test_shared")(ctypes.addressof(frame)) is None
            assert right(arrays) and len(seen["started"]) == helpers
    for t in threads:
        t.join()


def test_no_pool_and_a_pool_that_refuses():
    """The caller does all alone, and gives XLA's errors back."""
    api, seen = pool(4, lambda task: 5555, refusal=1234)
    frame, arrays, _kept = frame_of(api)
    call = loaded("difflie_test_refused")
    assert call(ctypes.addressof(frame)) is None
    assert right(arrays) and seen["destroyed"] == [1234] and not seen["started"]
    api, seen = pool(4, lambda task: 5555)
    frame, arrays, _kept = frame_of(api)
    assert call(ctypes.addressof(frame)) is None
    assert right(arrays) and seen["destroyed"] == [5555] and len(seen["started"]) == 1
    for threads in (0, 1, -1):
        api, seen = pool(threads, lambda task: 5555)
        frame, arrays, _kept = frame_of(api)
        assert call(ctypes.addressof(frame)) is None
        assert right(arrays) and not seen["started"] and not seen["destroyed"]


@needs_cpu
def test_a_name_stays_with_its_handler():
    """Registering again is nothing, registering something else an error of ours, not of XLA."""
    jax.devices("cpu")
    where = registered("difflie_test_once", False)
    with ThreadPoolExecutor(4) as threads:
        names = list(threads.map(lambda _: ffi.target("difflie_test_once", where), range(8)))
    assert set(names) == {"difflie_test_once"}
    with pytest.raises(ValueError, match="another handler"):
        ffi.target("difflie_test_once", where + 64)


@needs_cpu
def test_empty_arrays_are_left_out_by_the_caller():
    """Beside an empty array, XLA may forget how the call is meant."""
    with pytest.raises(AssertionError):
        added("difflie_test_empty", 1)(jnp.zeros(0), jnp.zeros(0))


def test_versions_of_the_interface(tmp_path, monkeypatch):
    """This jaxlib is one that was tested; other versions, and no header, are named."""
    assert ffi.tested() is None
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    assert "cannot be read" in ffi.tested.__wrapped__()
    header = tmp_path / "xla/ffi/api/c_api.h"
    header.parent.mkdir(parents=True)
    for major, minor, good in ((0, 1, True), (0, 9, True), (0, 0, False), (1, 3, False)):
        header.write_text(
            f"#define XLA_FFI_API_MAJOR {major}\n\n#define XLA_FFI_API_MINOR {minor}\n"
        )
        assert (ffi.tested.__wrapped__() is None) == good
    header.write_text("nothing")
    assert "version ?.?" in ffi.tested.__wrapped__()
