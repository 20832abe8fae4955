"""CUDA C, compiled for one kind of GPU by NVRTC, the compiler that jax's CUDA packages bring along.

What is compiled stays on disk for later processes, see `disk_cache`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
from collections.abc import Iterator, Sequence
from ctypes.util import find_library
from pathlib import Path
from typing import Any

from .. import disk_cache
from ..attempts import Unavailable

# Goes up when the same source and options are to be compiled to something else.
_FORMAT = 1
# What is to be fused, and what not, is written so.
_OPTIONS = ("--fmad=true",)


def compiled(source: str, architecture: str, newest: int | None = None) -> bytes:
    """Machine code for an architecture such as sm_90, or PTX for one such as compute_90.

    By a compiler of CUDA up to the version `newest`, if given; raises Unavailable.
    """
    nvrtc, version = library(newest)
    spec = (_FORMAT, source, _OPTIONS, architecture, version)
    return disk_cache.cached(spec, lambda: translated(nvrtc, source, architecture)[0])


@functools.cache
def library(newest: int | None) -> tuple[Any, tuple[int, int]]:
    """The newest NVRTC there is, and its version."""
    libraries: dict[tuple[int, int], Any] = {}
    problem = ""
    for place in _places():
        try:
            # A part that NVRTC 13 does not find beside itself.
            if Path(place).is_absolute():
                for part in sorted(Path(place).parent.glob("libnvrtc-builtins.so*")):
                    ctypes.CDLL(str(part))
            library = ctypes.CDLL(place)
            major, minor = ctypes.c_int(), ctypes.c_int()
            library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
            libraries.setdefault((major.value, minor.value), library)
        except (OSError, AttributeError) as failure:
            problem = f"; {failure}"
    fitting = [version for version in libraries if newest is None or version[0] <= newest]
    if not fitting:
        package = f"nvidia-cuda-nvrtc{'-cu12' if newest in (None, 12) else ''}"
        raise Unavailable(f"there is no NVRTC for the driver: pip install {package}{problem}")
    return libraries[max(fitting)], max(fitting)


def _places() -> Iterator[str]:
    """Where NVRTC may lie: in packages of Python, or in the system."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so*")):
            if re.fullmatch(r"libnvrtc\.so(\.\d+)*", path.name):
                yield str(path)
    known = find_library("nvrtc")
    yield from [known] if known else []
    yield from map(str, sorted(Path("/usr/local").glob("cuda*/lib64/libnvrtc.so")))


def translated(
    library: Any, source: str, architecture: str, options: Sequence[str] = ()
) -> tuple[bytes, str]:
    """The code for an architecture, and what the compiler says of it; raises Unavailable."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    by = ctypes.byref
    if library.nvrtcCreateProgram(by(program), source.encode(), b"loop.cu", 0, None, None):
        raise Unavailable("NVRTC takes no program")
    try:
        options = [f"--gpu-architecture={architecture}", *_OPTIONS, *options]
        arguments = (ctypes.c_char_p * len(options))(*(x.encode() for x in options))
        failed = library.nvrtcCompileProgram(program, len(options), arguments)
        library.nvrtcGetProgramLogSize(program, by(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        said = log.value.decode(errors="replace")
        if failed:
            reason = " ".join(said.split())[:200]
            raise Unavailable(f"NVRTC cannot compile for {architecture}: {reason}")
        kind = "PTX" if architecture.startswith("compute") else "CUBIN"
        failed = getattr(library, f"nvrtcGet{kind}Size")(program, by(size))
        code = ctypes.create_string_buffer(size.value)
        if failed or getattr(library, f"nvrtcGet{kind}")(program, code):
            raise Unavailable(f"NVRTC gives no {kind} for {architecture}")
        return code.raw, said
    finally:
        library.nvrtcDestroyProgram(by(program))
