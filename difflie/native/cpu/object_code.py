"""Machine code for this processor: text of LLVM, compiled by llvmlite and loaded into the process.

Code stays on disk for later processes, see `disk_cache`, and in the process for ever: XLA holds
its address, and its threads may run it while Python ends.

Handlers are compiled in the `background`, while Python goes on: XLA has the address of a `relay`,
at which a call waits for the code. Long code can be had sooner: compiled at LLVM's lowest level, in
a quarter of the time. Results do not depend on the level. When no program has been made for a
moment, the same module is compiled well, and the relay hands calls on to that code. On disk the
first code has its module beside it, so that another process goes on where this one ends too early.
Neither has a thread with DIFFLIE_TIERED=0, which compiles everything well at once, nor with
DIFFLIE_TIERED=first, which leaves the first code.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import disk_cache
from ..attempts import Unavailable, reason
from . import background, relay
from .relay import Relay

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
_handlers: dict[str, Relay] = {}
_unused: list[Relay] = []
# What a handler's text names its function.
HANDLER = "handler"


def address(text: str, name: str) -> int:
    """The address of a function that the text defines; raises Unavailable."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    with _lock:
        if (digest, name) not in _addresses:
            host = _host()
            (place,) = _loaded(host, _known_or_compiled(host, digest, text), name)
            _addresses[digest, name] = place
        return _addresses[digest, name]


class Missing(Exception):
    """A program that is not to be written, and has no code."""


def known_handler(digest: str) -> int:
    """The address of a handler whose code is there; raises Missing if it is not."""

    def write() -> str:
        raise Missing

    return handler(digest, write, soon=True)


def handler(digest: str, write: Callable[[], str], soon: bool) -> int:
    """The address of a handler with this digest, written only if its code is not there yet.

    The text defines the function `HANDLER`. Raises Unavailable.
    soon: long code may be compiled quickly, and replaced later.
    """
    with _lock:
        if digest not in _handlers:
            host = _host()
            code = _Code(host, _relay(host), digest, disk_cache.folder())
            try:
                _provide(code, write, soon)
            except BaseException:
                _unused.append(code.relay)
                raise
            _handlers[digest] = code.relay
        return _handlers[digest].address


def processor() -> tuple[str, ...]:
    """What code is compiled for: the system, the processor and what that can do."""
    return _host()[1:]


class _Code(NamedTuple):
    """The code of a handler, to which its relay hands calls on, and where it is on disk."""

    host: _Host
    relay: Relay
    digest: str
    folder: Path | None

    def take(self, code: bytes) -> None:
        (place,) = _loaded(self.host, code, HANDLER)
        self.relay.hand_on(place)

    def compile_well(self, module: str | bytes) -> None:
        code = _compiled(self.host, module)
        disk_cache.write_to(self.folder, _key(self.host, self.digest), code)
        self.take(code)

    def compile_quickly(self, text: str) -> None:
        first = _quickly(self.host, text)
        disk_cache.write_to(self.folder, _quick_key(self.host, self.digest), first)
        self.take_first(first)

    def take_first(self, first: bytes) -> None:
        """Code that is to be replaced."""
        code, module = _parts(first)
        self.take(code)
        if _tiers() == "1":
            background.later(functools.partial(self._improve, module))

    def _improve(self, module: bytes) -> None:
        # Without it the first code stays, which is as right.
        with contextlib.suppress(Unavailable):
            self.compile_well(module)


def _provide(code: _Code, write: Callable[[], str], soon: bool) -> None:
    """Gives a handler its code: from disk, compiled now, or by a job."""
    well = disk_cache.read(_key(code.host, code.digest))
    if well is not None:
        code.take(well)
        return
    soon = soon and _tiers() != "0"
    first = disk_cache.read(_quick_key(code.host, code.digest))
    if first is not None and soon:
        code.take_first(first)
        return
    if first is not None:
        job = functools.partial(code.compile_well, _parts(first)[1])
    else:
        text = write()
        _check_functions(code.host, text)
        quick = soon and len(text) >= _LONG
        job = functools.partial(code.compile_quickly if quick else code.compile_well, text)
    if _tiers() == "1":
        background.soon(functools.partial(_tried, code.relay, job))
    else:
        job()


def _tiers() -> str:
    return os.environ.get("DIFFLIE_TIERED", "1")


def _tried(relay: Relay, job: Callable[[], None]) -> None:
    """Does a job for which calls wait; they are told if it fails."""
    try:
        job()
    except Exception as problem:
        relay.fail(f"difflie: {reason(problem)}; DIFFLIE_NATIVE=0 runs without native code")


def _relay(host: _Host) -> Relay:
    """A new one."""
    if not _unused:
        text = relay.text()
        digest = hashlib.sha256(text.encode()).hexdigest()
        code = _known_or_compiled(host, digest, text)
        _unused.extend(relay.relays(*_loaded(host, code, "cells", "addresses")))
    return _unused.pop()


def _known_or_compiled(host: _Host, digest: str, text: str) -> bytes:
    """Good object code of a text, from disk or written there."""
    code = disk_cache.read(_key(host, digest))
    if code is None:
        _check_functions(host, text)
        code = _compiled(host, text)
        disk_cache.write(_key(host, digest), code)
    return code


def _key(host: _Host, digest: str, *more: str) -> str:
    """The name on disk of good code."""
    return disk_cache.key_of(
        (_FORMAT, digest, _OPTIONS, host.llvm.llvm_version_info, *host[1:], *more)
    )


def _quick_key(host: _Host, digest: str) -> str:
    """The name on disk of quick code, with its module."""
    return _key(host, digest, "quick")


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
        """What loads code."""
        empty = self.llvm.parse_assembly("")
        return self.llvm.create_mcjit_compiler(empty, self.machine(_OPTIONS))


@functools.cache
@_failing()
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
def _loaded(host: _Host, code: bytes, *names: str) -> list[int]:
    """The addresses of what object code defines; each time another copy is loaded."""
    engine = host.engine()
    engine.add_object_file(host.llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    places = [engine.get_global_value_address(name) for name in names]
    for name, place in zip(names, places, strict=True):
        if not place:
            raise Unavailable(f"the text defines no function {name}")
    # Neither Python's collector nor its end shall unload the code.
    engine.detach()
    return places


def _compiled(host: _Host, module: str | bytes) -> bytes:
    """Good object code."""
    return _emitted(host, _parsed(host, module), _OPTIONS)


def _quickly(host: _Host, text: str) -> bytes:
    """The size of quick object code, the code, and the module that better code is made of."""
    module = _parsed(host, text)
    kept = module.as_bitcode()
    code = _emitted(host, module, _OPTIONS | {"opt": 0})
    return len(code).to_bytes(_SIZE, "little") + code + kept


def _parts(first: bytes) -> tuple[bytes, bytes]:
    """Quick code and its module."""
    size = int.from_bytes(first[:_SIZE], "little")
    return first[_SIZE : _SIZE + size], first[_SIZE + size :]


@_failing()
def _parsed(host: _Host, module: str | bytes) -> Any:
    """A module of LLVM that can be compiled, from its text or from what is kept of one."""
    read = host.llvm.parse_assembly if isinstance(module, str) else host.llvm.parse_bitcode
    parsed = read(module)
    parsed.verify()
    return parsed


def _check_functions(host: _Host, text: str) -> None:
    """A call of what does not exist is compiled all the same, and crashes."""
    for name in re.findall(r"^declare [^@\n]*@([\w.$]+)\(", text, re.MULTILINE):
        if not name.startswith("llvm.") and not _exists(host, name):
            raise Unavailable(f"this system has no function {name}")


@functools.cache
@_failing()
def _exists(host: _Host, name: str) -> bool:
    """Asked once, since LLVM answers nobody while it compiles."""
    # With the first of these, LLVM finds the functions of this process.
    host.engine()
    return bool(host.llvm.address_of_symbol(name))


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
