"""Machine code for this processor: text of LLVM, compiled by llvmlite and loaded into the process.

Code stays on disk for later processes, see `disk_cache`, and in the process for ever: XLA holds
its address, and its threads may run it while Python ends.

Long code can be had sooner: compiled at LLVM's lowest level, in a quarter of the time. Results do
not depend on the level. In the `background` the same module is compiled well, and the address of
that code is written into a cell that the first code looks into in every call. On disk the first
code has its module beside it, so that another process goes on where this one ends too early.
DIFFLIE_TIERED=0 compiles everything well at once, DIFFLIE_TIERED=first leaves the first code.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import disk_cache
from ..attempts import Unavailable
from . import background
from .ffi import BETTER

# Goes up when the same text and options are to be compiled to something else.
_FORMAT = 2
# Long straight-line functions gain nothing from more optimisation. Small code may lie within 2 GB
# only, which in a large process the parts of one object do not.
_OPTIONS = {"opt": 1, "reloc": "static", "codemodel": "large", "jit": True}
# Of the number of bytes that quick code is long.
_SIZE = 8
# Shorter texts, in bytes, are compiled well at once.
_LONG = 50_000
_OLDEST = (0, 45)
# With longer functions, the time it takes to order instructions is not made up for. LLVM ends the
# process over an option that it does not know, so later ones than tried get no option.
_UNORDERED, _ORDERED = "-enable-misched=false", "-enable-misched=true"
_LAST_TRIED = 22

# Writing a program may trace functions whose constants are computed by other programs.
_lock = threading.RLock()
# The option is one of the process, and set while one thread emits code.
_scheduling = threading.Lock()
_addresses: dict[tuple[str, str], int] = {}


def address(text: str, name: str) -> int:
    """The address of a function that the text defines; raises Unavailable."""
    return address_of(hashlib.sha256(text.encode()).hexdigest(), name, lambda: text)


class Missing(Exception):
    """A program that is not to be written, and has no code."""


def known_address_of(digest: str, name: str) -> int:
    """The same for a program whose code is there; raises Missing if it is not."""

    def write() -> str:
        raise Missing

    return address_of(digest, name, write, soon=True)


def processor() -> tuple[str, ...]:
    """What code is compiled for: the system, the processor and what that can do."""
    return _host()[1:]


def address_of(digest: str, name: str, write: Callable[[], str], soon: bool = False) -> int:
    """The same for a program with this digest, written only if its code is not there yet.

    soon: long code may be replaced later. The function then has the cell `BETTER`.
    """
    with _lock:
        if (digest, name) not in _addresses:
            host, engine = _started()
            code, improve = _code(host, digest, write, soon)
            if improve is None:
                (place,) = _loaded(host, engine, code, name)
            else:
                place, cell = _loaded(host, engine, code, name, BETTER)
                background.later(functools.partial(_replace, host, improve, name, cell))
            _addresses[digest, name] = place
        return _addresses[digest, name]


def _code(
    host: _Host, digest: str, write: Callable[[], str], soon: bool
) -> tuple[bytes, Callable[[], bytes] | None]:
    """Object code, and what makes better code of the same function where it is no good one."""
    spec = (_FORMAT, digest, _OPTIONS, host.llvm.llvm_version_info, *host[1:])
    good, quick = (disk_cache.key_of(x) for x in (spec, (*spec, "quick")))
    code = disk_cache.read(good)
    if code is not None:
        return code, None
    first = disk_cache.read(quick)
    tiers = os.environ.get("DIFFLIE_TIERED", "1") if soon else "0"
    if first is None:
        text = write()
        if tiers == "0" or len(text) < _LONG:
            code = _compiled(host, text)
            disk_cache.write(good, code)
            return code, None
        first = _quickly(host, text)
        disk_cache.write(quick, first)
    size = int.from_bytes(first[:_SIZE], "little")
    code, module = first[_SIZE : _SIZE + size], first[_SIZE + size :]

    place = disk_cache.folder()

    def improve() -> bytes:
        code = _emitted(host, _parsed(host, module), _OPTIONS)
        disk_cache.write_to(place, good, code)
        return code

    if tiers == "0":
        return improve(), None
    return code, None if tiers == "first" else improve


def _replace(host: _Host, improve: Callable[[], bytes], name: str, cell: int) -> None:
    """Calls go to better code from now on."""
    # Without it the first code stays, which is as right.
    with contextlib.suppress(Unavailable):
        (place,) = _loaded(host, host.engine(), improve(), name)
        ctypes.c_void_p.from_address(cell).value = place


def fuses() -> bool:
    """Whether this processor multiplies and adds in one operation; raises Unavailable.

    x86 may not: then each would be a call of a function that takes many times as long.
    """
    host = _host()
    return not host.triple.startswith(("x86", "i")) or "+fma" in host.features.split(",")


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    """Says what LLVM says."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise Unavailable(f"LLVM cannot compile for this processor: {reason}") from problem


class _Host(NamedTuple):
    """llvmlite, and the processor it compiles for."""

    llvm: Any
    triple: str
    cpu: str
    features: str

    def machine(self, options: dict[str, Any]) -> Any:
        target = self.llvm.Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.cpu, features=self.features, **options)

    def engine(self) -> Any:
        """What loads code; with the first one, LLVM finds the functions of this process."""
        empty = self.llvm.parse_assembly("")
        return self.llvm.create_mcjit_compiler(empty, self.machine(_OPTIONS))


@_failing()
def _started() -> tuple[_Host, Any]:
    """The processor, and what loads code for it."""
    host = _host()
    return host, host.engine()


@functools.cache
def _host() -> _Host:
    try:
        import llvmlite
        import llvmlite.binding as llvm
    except (ImportError, OSError) as problem:
        needed = "pip install 'llvmlite>={}.{}'".format(*_OLDEST)
        raise Unavailable(f"compiled programs need llvmlite: {needed}") from problem
    version = llvmlite.__version__
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        needed = "pip install --upgrade 'llvmlite>={}.{}'".format(*_OLDEST)
        raise Unavailable(f"llvmlite {version} is too old: {needed}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.check_jit_execution()
    features = llvm.get_host_cpu_features().flatten()
    return _Host(llvm, llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


@_failing()
def _loaded(host: _Host, engine: Any, code: bytes, *names: str) -> list[int]:
    """The addresses of what object code defines."""
    engine.add_object_file(host.llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    places = [engine.get_global_value_address(name) for name in names]
    for name, place in zip(names, places, strict=True):
        if not place:
            raise Unavailable(f"the text defines no function {name}")
    # Neither Python's collector nor its end shall unload the code.
    engine.detach()
    return places


def _compiled(host: _Host, text: str) -> bytes:
    """Good object code."""
    return _emitted(host, _parsed(host, text), _OPTIONS)


def _quickly(host: _Host, text: str) -> bytes:
    """The size of quick object code, the code, and the module that better code is made of."""
    module = _parsed(host, text)
    kept = module.as_bitcode()
    code = _emitted(host, module, _OPTIONS | {"opt": 0})
    return len(code).to_bytes(_SIZE, "little") + code + kept


@_failing()
def _parsed(host: _Host, module: str | bytes) -> Any:
    """A module of LLVM that can be compiled, from its text or from what is kept of one."""
    llvm = host.llvm
    read = llvm.parse_assembly if isinstance(module, str) else llvm.parse_bitcode
    parsed = read(module)
    parsed.verify()
    for f in parsed.functions:
        # A call of what does not exist is compiled all the same, and crashes.
        known = not f.is_declaration or f.name.startswith("llvm.")
        if not known and not llvm.address_of_symbol(f.name):
            raise Unavailable(f"this system has no function {f.name}")
    return parsed


@_failing()
def _emitted(host: _Host, module: Any, options: dict[str, Any]) -> bytes:
    llvm, machine = host.llvm, host.machine(options)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    tried = llvm.llvm_version_info[0] <= _LAST_TRIED
    with _scheduling:
        try:
            if tried:
                llvm.set_option("", _UNORDERED)
            return machine.emit_object(module)
        finally:
            if tried:
                llvm.set_option("", _ORDERED)
