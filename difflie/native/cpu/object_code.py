"""Machine code for this processor: text of LLVM, compiled by llvmlite and loaded into the process.

Code stays on disk for later processes, see `disk_cache`, and in the process for ever: XLA holds
its address, and its threads may run it while Python ends.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import disk_cache
from ..attempts import Unavailable

# Goes up when the same text and options are to be compiled to something else.
_FORMAT = 2
# Long straight-line functions gain nothing from more optimisation. Small code may lie within 2 GB
# only, which in a large process the parts of one object do not.
_OPTIONS = {"opt": 1, "reloc": "static", "codemodel": "large", "jit": True}
_OLDEST = (0, 45)
# With longer functions, the time it takes to order instructions is not made up for. LLVM ends the
# process over an option that it does not know, so later ones than tried get no option.
_UNORDERED, _ORDERED = "-enable-misched=false", "-enable-misched=true"
_LAST_TRIED = 22

# Writing a program may trace functions whose constants are computed by other programs.
_lock = threading.RLock()
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

    return address_of(digest, name, write)


def processor() -> tuple[str, ...]:
    """What code is compiled for: the system, the processor and what that can do."""
    return _host()[1:]


def address_of(digest: str, name: str, write: Callable[[], str]) -> int:
    """The same for a program with this digest, written only if its code is not there yet."""
    with _lock:
        if (digest, name) not in _addresses:
            host, engine = _started()
            spec = (_FORMAT, digest, _OPTIONS, host.llvm.llvm_version_info, *host[1:])
            code = disk_cache.cached(spec, lambda: _compiled(host, write()))
            _addresses[digest, name] = _loaded(host, engine, code, name)
        return _addresses[digest, name]


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

    def machine(self) -> Any:
        target = self.llvm.Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.cpu, features=self.features, **_OPTIONS)

    def engine(self) -> Any:
        """What loads code; with the first one, LLVM finds the functions of this process."""
        return self.llvm.create_mcjit_compiler(self.llvm.parse_assembly(""), self.machine())


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
def _loaded(host: _Host, engine: Any, code: bytes, name: str) -> int:
    engine.add_object_file(host.llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    place = engine.get_function_address(name)
    if not place:
        raise Unavailable(f"the text defines no function {name}")
    # Neither Python's collector nor its end shall unload the code.
    engine.detach()
    return place


@_failing()
def _compiled(host: _Host, text: str) -> bytes:
    llvm, machine = host.llvm, host.machine()
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    for f in module.functions:
        # A call of what does not exist is compiled all the same, and crashes.
        known = not f.is_declaration or f.name.startswith("llvm.")
        if not known and not llvm.address_of_symbol(f.name):
            raise Unavailable(f"this system has no function {f.name}")
    tried = llvm.llvm_version_info[0] <= _LAST_TRIED
    try:
        if tried:
            llvm.set_option("", _UNORDERED)
        return machine.emit_object(module)
    finally:
        if tried:
            llvm.set_option("", _ORDERED)
