"""Text of LLVM becomes code that runs, once in a process and once on a disk, or a clear refusal."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from difflie.native import disk_cache
from difflie.native.attempts import Unavailable
from difflie.native.cpu import background, object_code, relay
from difflie.native.cpu.object_code import address

llvm = pytest.importorskip("llvmlite.binding")

TEXT = """
define i64 @twice(i64 %x) nounwind {{
  %y = mul i64 %x, {}
  ret i64 %y
}}
define i64 @next(i64 %x) nounwind {{
  %y = add i64 %x, 1
  ret i64 %y
}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache, and a process that has compiled nothing and does nothing besides."""
    with monkeypatch.context() as m:
        m.setattr(background, "_MOMENT", 0)
        if (thread := background._thread) is not None:
            thread.join()
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path / "cache"))
    for name, empty in (("_addresses", {}), ("_handlers", {}), ("_unused", [])):
        monkeypatch.setattr(object_code, name, empty)
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch):
    """The texts that were compiled rather than loaded."""
    texts, compile_ = [], object_code._compiled

    def counted(host, text):
        texts.append(text)
        return compile_(host, text)

    monkeypatch.setattr(object_code, "_compiled", counted)
    return texts


def run(where, x):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(where)(x)


@pytest.mark.slow
def test_code_runs_and_stays(compiled):
    """Each function of a text is found; once in a process, and still there after a collection."""
    twice, after = address(TEXT.format(2), "twice"), address(TEXT.format(2), "next")
    gc.collect()
    assert (run(twice, 21), run(after, 21)) == (42, 22)
    assert address(TEXT.format(2), "twice") == twice
    assert run(address(TEXT.format(3), "twice"), 21) == 63
    assert compiled == [TEXT.format(2), TEXT.format(3)]


def test_another_process_loads(folder, monkeypatch):
    """What one process compiled, another only loads."""
    code = (
        "import sys; from difflie.native.cpu.object_code import address;"
        "address(sys.argv[1], 'twice')"
    )
    subprocess.run([sys.executable, "-c", code, TEXT.format(5)], check=True, timeout=900)
    monkeypatch.setattr(object_code, "_compiled", None)
    assert run(address(TEXT.format(5), "twice"), 3) == 15


def test_a_damaged_object_is_compiled_again(folder, compiled):
    """A truncated or changed file is replaced by a whole one, and never loaded."""
    address(TEXT.format(2), "twice")
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:400] + bytes(64) + whole[464:]):
        path.write_bytes(damaged)
        object_code._addresses.clear()
        assert run(address(TEXT.format(2), "twice"), 21) == 42
        assert path.read_bytes() == whole
    assert len(compiled) == 3


def test_another_processor_has_its_own_files(folder, compiled, monkeypatch):
    """Caches are shared between machines: code for one is not loaded on another."""
    address(TEXT.format(2), "twice")
    host = object_code._host()
    for other in (host._replace(features=""), host._replace(cpu="")):
        monkeypatch.setattr(object_code, "_host", lambda other=other: other)
        object_code._addresses.clear()
        assert run(address(TEXT.format(2), "twice"), 21) == 42
    assert len(compiled) == len(list(folder.iterdir())) == 3


def test_without_a_cache(compiled, monkeypatch):
    """Code is compiled in each process."""
    monkeypatch.setattr(disk_cache, "folder", lambda: None)
    assert run(address(TEXT.format(2), "twice"), 21) == 42 and len(compiled) == 1


def test_threads(compiled):
    """Threads that ask for the same and for different code all get theirs."""
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda k: address(TEXT.format(k % 4), "twice"), range(32)))
    assert [run(where, 1) for where in found] == [k % 4 for k in range(32)]
    assert len(compiled) == 4


def test_the_scheduler_is_off_only_meanwhile(monkeypatch):
    """The option is one of the process, which others may compile in."""
    options = []
    monkeypatch.setattr(llvm, "set_option", lambda _, option: options.append(option))
    with pytest.raises(Unavailable):
        address("nonsense", "f")
    assert not options
    address(TEXT.format(2), "twice")
    assert options == ["-enable-misched=false", "-enable-misched=true"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("define", "LLVM cannot compile for this processor: .*expected type"),
        ("define double @f(double %x) { ret i64 1 }", "LLVM cannot compile"),
        (
            "define i64 @f() {\nbr label %b\na:\n%x = add i64 1, 1\nbr label %b\nb:\nret i64 %x\n}",
            "does not dominate",
        ),
        (TEXT.format(1), "the text defines no function f"),
        (
            "declare void @no_such_()\ndefine void @f() {\ncall void @no_such_()\nret void\n}",
            "this system has no function no_such_",
        ),
    ],
    ids=["no text", "wrong type", "wrong order", "no function", "unknown function"],
)
def test_bad_text(text, why):
    """Each is refused in one line; LLVM itself would compile some and crash."""
    with pytest.raises(Unavailable, match=why) as problem:
        address(text, "f")
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("module", ["llvmlite", "llvmlite.binding"])
def test_without_llvmlite(module, monkeypatch):
    """The refusal says what to install."""
    object_code._host.cache_clear()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, module, None)
        with pytest.raises(Unavailable, match=r"pip install 'llvmlite>=0\.45'"):
            address(TEXT.format(2), "twice")
    address(TEXT.format(2), "twice")


def test_an_old_llvmlite(monkeypatch):
    """The refusal says what to upgrade to; older LLVMs do not read the text."""
    import llvmlite

    monkeypatch.setattr(llvmlite, "__version__", "0.9.1")
    object_code._host.cache_clear()
    with pytest.raises(Unavailable, match=r"0\.9\.1 is too old: pip install --upgrade"):
        address(TEXT.format(2), "twice")
    object_code._host.cache_clear()


def test_an_unknown_processor(monkeypatch):
    """What LLVM says is handed on."""

    def unknown():
        raise RuntimeError("failed to get host cpu features.")

    monkeypatch.setattr(llvm, "get_host_cpu_features", unknown)
    object_code._host.cache_clear()
    with pytest.raises(Unavailable, match="for this processor: failed to get host cpu features"):
        address(TEXT.format(2), "twice")


def test_difflie_is_imported_without_llvmlite():
    """Who compiles nothing needs no llvmlite."""
    code = (
        "import sys; sys.modules['llvmlite'] = None;"
        "import difflie, difflie.native.cpu.object_code, difflie.native.cpu.ffi"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=900)


HANDLER = (
    """
define ptr @handler(ptr %frame) nounwind {
  %x = load i64, ptr %frame
  %y = mul i64 %x, 3
  %z = inttoptr i64 %y to ptr
  ret ptr %z
}
; """
    + "long " * 10_000
)


def triple(write=lambda: HANDLER, soon=True):
    return object_code.handler("digest", write, soon)


def answer(where, x):
    """Of a handler, to a frame whose first word is x."""
    frame = (ctypes.c_int64 * 18)(x)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(where)(ctypes.addressof(frame))


def finish():
    """Waits for the background's thread."""
    if (thread := background._thread) is not None:
        thread.join(600)
    assert background._thread is None


@pytest.mark.parametrize("soon", [False, True])
def test_calls_wait_for_code(soon, monkeypatch):
    """A handler is there before its code, and a call that comes too early waits."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    loaded, may_load = object_code._loaded, threading.Event()

    def late(host, code, *names):
        assert names != (object_code.HANDLER,) or may_load.wait(600)
        return loaded(host, code, *names)

    monkeypatch.setattr(object_code, "_loaded", late)
    where = triple(soon=soon)
    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(answer, where, x) for x in (5, 7)]
        assert not any(call.done() for call in calls)
        may_load.set()
        assert [call.result(600) for call in calls] == [15, 21]
    assert answer(where, 9) == 27


def test_calls_are_told_that_there_is_no_code(monkeypatch):
    """XLA gets the reason as an error of its own: another way cannot be taken any more."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    where = triple(write=lambda: "define nonsense")
    said = []

    def create(arguments):
        a = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_int64))
        assert (a[0], a[1], a[3]) == (32, 0, 13)
        said.append(ctypes.string_at(a[2]).decode())
        return 77

    create = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(create)
    api = (ctypes.c_int64 * 24)()
    api[6] = ctypes.cast(create, ctypes.c_void_p).value
    frame = (ctypes.c_int64 * 18)(144, 0, ctypes.addressof(api))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(where)
    assert [call(ctypes.addressof(frame)) for _ in range(2)] == [77, 77]
    assert said[0] == said[1] and "LLVM cannot compile" in said[0] and "DIFFLIE_NATIVE=0" in said[0]


def test_what_cannot_be_compiled_is_refused_early(monkeypatch):
    """An unknown function and a text that cannot be written leave the ordinary way."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    with pytest.raises(Unavailable, match="no function no_such_"):
        triple(write=lambda: "declare void @no_such_()\n" + HANDLER)
    with pytest.raises(object_code.Missing):
        object_code.known_handler("digest")
    assert not object_code._handlers and len(object_code._unused) == relay._COUNT


def test_every_relay_has_its_own_code():
    """Also where one text of them has not enough."""
    found = [
        object_code.handler(f"times {k}", lambda k=k: HANDLER.replace("x, 3", f"x, {k}"), soon=True)
        for k in range(2, 2 + relay._COUNT + 3)
    ]
    assert [answer(where, 5) for where in found] == [5 * (k + 2) for k in range(len(found))]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_goes_on(monkeypatch):
    """A process that is forked before its code is there compiles it itself."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    code = """
import os, sys, threading, ctypes
from difflie.native.cpu import background, object_code
waiting = threading.Event()
background.soon(waiting.wait)
where = object_code.handler("digest", lambda: sys.argv[1], soon=True)
frame = (ctypes.c_int64 * 18)(7)
def call():
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(where)(ctypes.addressof(frame))
threading.Timer(0.5, waiting.set).start()
child = os.fork()
assert call() == 21
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    # Which has ended by itself where the parent's had compiled it before.
    if (thread := background._thread) is not None:
        thread.join()
    os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code, HANDLER], check=True, timeout=60)


def test_long_code_is_replaced(folder, monkeypatch):
    """Quick code first; the background puts better code behind it and on disk, and ends."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    monkeypatch.setattr(background, "_MOMENT", 0)
    where = triple()
    finish()
    assert answer(where, 7) == 21
    # The relays, the quick code and the good code.
    assert len(list(folder.iterdir())) == 3
    object_code._handlers.clear()
    assert answer(triple(write=None), 7) == 21 and background._thread is None


def test_another_process_goes_on(folder, monkeypatch):
    """A process that ends before its code is replaced does not wait; the next one replaces it."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    code = (
        "import sys; from difflie.native.cpu import background, object_code;"
        "background._MOMENT = 1e6;"
        "object_code.handler('digest', lambda: sys.argv[1], soon=True)"
    )
    subprocess.run([sys.executable, "-c", code, HANDLER], check=True, timeout=60)
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(background, "_MOMENT", 0)
    where = triple(write=None)
    finish()
    assert answer(where, 7) == 21 and len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("quick_on_disk", [False, True])
def test_all_code_well_at_once(quick_on_disk, folder, monkeypatch):
    """DIFFLIE_TIERED=0: no thread, and good code also where another process left quick code."""
    monkeypatch.setattr(background, "later", None)
    monkeypatch.setattr(background, "soon", None)
    if quick_on_disk:
        triple()
        object_code._handlers.clear()
    monkeypatch.setenv("DIFFLIE_TIERED", "0")
    assert answer(triple(), 7) == 21
    object_code._handlers.clear()
    assert answer(triple(write=None), 7) == 21
    assert len(list(folder.iterdir())) == 2 + quick_on_disk


def test_the_first_code_stays(folder, monkeypatch):
    """DIFFLIE_TIERED=first: no thread, and quick code that later processes find."""
    monkeypatch.setenv("DIFFLIE_TIERED", "first")
    monkeypatch.setattr(background, "later", None)
    monkeypatch.setattr(background, "soon", None)
    assert answer(triple(), 7) == 21
    object_code._handlers.clear()
    assert answer(triple(write=None), 7) == 21
    assert len(list(folder.iterdir())) == 2
