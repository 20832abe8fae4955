"""Text of LLVM becomes code that runs, once in a process and once on a disk, or a clear refusal."""

import ctypes
import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from difflie.native import disk_cache
from difflie.native.attempts import Unavailable
from difflie.native.cpu import background, object_code
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
    monkeypatch.setattr(object_code, "_addresses", {})
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
@better = global ptr null
define i64 @triple(i64 %x) nounwind {
  %there = load ptr, ptr @better
  %first = icmp eq ptr %there, null
  br i1 %first, label %here, label %elsewhere
here:
  %y = mul i64 %x, 3
  ret i64 %y
elsewhere:
  %z = call i64 %there(i64 %x)
  ret i64 %z
}
; """
    + "long " * 10_000
)


def triple(write=lambda: HANDLER):
    return object_code.address_of("digest", "triple", write, soon=True)


def test_long_code_is_replaced(folder, compiled, monkeypatch):
    """Quick code first; the background puts better code behind it and on disk, and ends."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    monkeypatch.setattr(background, "_MOMENT", 0)
    where = triple()
    background._thread.join(600)
    assert background._thread is None and run(where, 7) == 21
    assert not compiled and len(list(folder.iterdir())) == 2
    object_code._addresses.clear()
    assert triple(write=None) != where and background._thread is None


def test_another_process_goes_on(folder, monkeypatch):
    """A process that ends before its code is replaced does not wait; the next one replaces it."""
    monkeypatch.delenv("DIFFLIE_TIERED")
    code = (
        "import sys; from difflie.native.cpu import background, object_code;"
        "background._MOMENT = 1e6;"
        "object_code.address_of('digest', 'triple', lambda: sys.argv[1], soon=True)"
    )
    subprocess.run([sys.executable, "-c", code, HANDLER], check=True, timeout=60)
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr(background, "_MOMENT", 0)
    where = triple(write=None)
    background._thread.join(600)
    assert run(where, 7) == 21 and len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("quick_on_disk", [False, True])
def test_all_code_well_at_once(quick_on_disk, folder, monkeypatch):
    """DIFFLIE_TIERED=0: no thread, and good code also where another process left quick code."""
    if quick_on_disk:
        monkeypatch.setattr(background, "later", lambda job: None)
        triple()
        object_code._addresses.clear()
    monkeypatch.setenv("DIFFLIE_TIERED", "0")
    monkeypatch.setattr(background, "later", None)
    assert run(triple(), 7) == 21
    object_code._addresses.clear()
    assert run(triple(write=None), 7) == 21
    assert len(list(folder.iterdir())) == 1 + quick_on_disk


def test_the_first_code_stays(folder, monkeypatch):
    """DIFFLIE_TIERED=first: no thread, and quick code that later processes find."""
    monkeypatch.setenv("DIFFLIE_TIERED", "first")
    monkeypatch.setattr(background, "later", None)
    assert run(triple(), 7) == 21
    object_code._addresses.clear()
    assert run(triple(write=None), 7) == 21
    assert len(list(folder.iterdir())) == 1
