"""How XLA calls machine code on the CPU: handlers of its typed foreign function interface (FFI).

A handler is a C function of one argument, the call frame, from which it reads where the operands
and results are. It is written as text of LLVM and compiled with the code it calls; the offsets are
those of XLA's header c_api.h. A handler may share the work with XLA's pool of threads. XLA's state
of a call is left alone, since its layout has changed between versions. XLA knows a handler by its
`relay`, which also answers questions about the version.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.ffi
import numpy as np

from ..private import Context, Value, constant, foreign_call

# The version that handlers declare; XLA takes it and its own.
_MAJOR, _MINOR = 0, 1
DATA = 24  # offset of the address of its entries in a buffer
_LINE = 64  # bytes of the cache that a thread takes from others by writing to one of them

_lock = threading.Lock()
_registered: dict[str, int] = {}


@functools.cache
def tested() -> str | None:
    """Why handlers written here may not fit this jaxlib, in one sentence; nothing if they do."""
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    try:
        text = header.read_text()
    except OSError:
        return f"jaxlib's header {header} cannot be read"
    numbers = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", text))
    if len(numbers) == 2 and int(numbers["MAJOR"]) == _MAJOR and int(numbers["MINOR"]) >= _MINOR:
        return None
    version = f"{numbers.get('MAJOR', '?')}.{numbers.get('MINOR', '?')}"
    return (
        f"jaxlib has version {version} of XLA's foreign function interface, not {_MAJOR}.{_MINOR}"
    )


def target(name: str, address: int) -> str:
    """Registers a handler for the CPU, once; for lowering rules only. The name.

    Before the CPU's backend is up, a refused handler would make jax unusable.
    """
    with _lock:
        if name not in _registered:
            handler = jax.ffi.pycapsule(address)
            jax.ffi.register_ffi_target(name, handler, platform="cpu")
            _registered[name] = address
        if _registered[name] != address:
            raise ValueError(f"another handler is registered as {name}")
    return name


def called(
    context: Context,
    name: str,
    numbers: Any,
    operands: Sequence[Value],
    avals_out: Sequence[Any],
) -> list[Any]:
    """The results of a call whose first operand are numbers; empty arrays are not handed over."""
    avals: list[Any] = list(context.avals_in)
    inputs: list[Any] = [constant(numbers)]
    inputs += [x for x, a in zip(operands, avals, strict=True) if a.size]
    full = [a for a in avals_out if a.size]
    results = iter(foreign_call(context, name, inputs, full) if full else [])
    return [next(results) if a.size else constant(np.zeros(a.shape, a.dtype)) for a in avals_out]


def handler(name: str, operands: int, results: int, shared: bool) -> str:
    """The text of a handler that runs `void @block(ptr %buffers, i64 %b)`.

    %buffers are the addresses of the operands, then of the results. It runs for b = 0, or if
    `shared` for as many b as the third number (int64) of the first operand says, in any order and
    several at a time.
    """
    lines = [f"define ptr @{name}(ptr %frame) nounwind {{", "run:"]
    lines.append(f"  %table = alloca [{operands + results} x ptr]")
    if shared:
        lines.append(_job(name, operands + results))
    buffers = "%buffers" if shared else "%table"
    lines += filled(buffers, operands, results, lambda data, buffer: field(data, buffer, DATA))
    if not shared:
        return "\n".join([*lines, "  call void @block(ptr %table, i64 0)", "  ret ptr null\n}\n"])
    return "\n".join([*lines, _share(name), _functions(name)])


def filled(table: str, operands: int, results: int, entry: Callable[[str, str], str]) -> list[str]:
    """Lines that fill a table with one entry for each buffer of a call: of operands, then results.

    entry: the line that makes the entry of this name from the buffer of that name.
    """
    lines, place = [], 0
    for kind, count, at in (("a", operands, 72), ("r", results, 112)):
        lines.append(field(f"%{kind}s", "%frame", at))
        for i in range(count):
            name = f"%{kind}{i}"
            lines += [
                field(name, f"%{kind}s", 8 * i),
                entry(f"{name}.data", name),
                f"  {name}.to = getelementptr ptr, ptr {table}, i64 {place}",
                f"  store ptr {name}.data, ptr {name}.to",
            ]
            place += 1
    return lines


def field(result: str, struct: str, offset: int, kind: str = "ptr") -> str:
    """Reads a field of a struct."""
    place = f"  {result}.at = getelementptr i8, ptr {struct}, i64 {offset}"
    return f"{place}\n  {result} = load {kind}, ptr {result}.at"


# XLA asks for the version by a call frame with an extension of type 1.
METADATA = f"""{field("%extension", "%frame", 8)}
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %run, label %asked
asked:
{field("%type", "%extension", 8, "i32")}
  %metadata = icmp eq i32 %type, 1
  br i1 %metadata, label %answer, label %run
answer:
{field("%about", "%extension", 24)}
  %major = getelementptr i8, ptr %about, i64 24
  store i32 {_MAJOR}, ptr %major
  %minor = getelementptr i8, ptr %about, i64 28
  store i32 {_MINOR}, ptr %minor
  %traits = getelementptr i8, ptr %about, i64 32
  store i32 0, ptr %traits
  ret ptr null
run:"""

_ERROR_CREATE = 48
_INTERNAL = 13  # XLA's code of such errors


def failure(arguments: str, message: str) -> str:
    """Returns an error of XLA with this message, a C string; %api is known.

    arguments: room for four words.
    """
    return f"""{struct(arguments, f"ptr {message}", f"i64 {_INTERNAL}")}
{field("%fail", "%api", _ERROR_CREATE)}
  %error = call ptr %fail(ptr {arguments})
  ret ptr %error"""


# A job that threads share: the next block, the blocks done, who still refers to the job, each on a
# line of its own, then the buffers.
_DONE, _REFERENCES, _BUFFERS = _LINE, 2 * _LINE, 3 * _LINE


def struct(name: str, *values: str) -> str:
    """A struct for XLA's functions: its size, no extension, values of 8 bytes."""
    size = 8 * (2 + len(values))
    lines = [f"  store i64 {size}, ptr {name}"]
    for i, value in enumerate(("ptr null", *values), 1):
        lines.append(f"  {name}.{i} = getelementptr i64, ptr {name}, i64 {i}")
        lines.append(f"  store {value}, ptr {name}.{i}")
    return "\n".join(lines)


def _job(name: str, count: int) -> str:
    """Asks for the threads of the pool; makes a job if there are helpers, and finds %buffers."""
    return f"""{field("%first", "%frame", 72)}
{field("%first.operand", "%first", 0)}
{field("%numbers", "%first.operand", 24)}
{field("%blocks", "%numbers", 16, "i64")}
  %most = sub i64 %blocks, 1
  %threads = alloca i64
  %asking = alloca [4 x i64]
  %scheduling = alloca [5 x i64]
{field("%api", "%frame", 16)}
{field("%context", "%frame", 24)}
  store i64 1, ptr %threads
{struct("%asking", "ptr %context", "ptr %threads")}
{field("%ask", "%api", 144)}
  %refused = call ptr %ask(ptr %asking)
  call void @{name}_forget(ptr %api, ptr %refused)
  %given = load i64, ptr %threads
  %fine = icmp eq ptr %refused, null
  %all = select i1 %fine, i64 %given, i64 1
  %others = sub i64 %all, 1
  %enough = icmp slt i64 %others, %most
  %helpers = select i1 %enough, i64 %others, i64 %most
  %some = icmp sgt i64 %helpers, 0
  br i1 %some, label %make, label %made
make:
  %new = call ptr @malloc(i64 {_BUFFERS + 8 * count})
  br label %made
made:
  %job = phi ptr [null, %run], [%new, %make]
  %alone = icmp eq ptr %job, null
  %within = getelementptr i8, ptr %job, i64 {_BUFFERS}
  %buffers = select i1 %alone, ptr %table, ptr %within"""


def _share(name: str) -> str:
    """The rest of the handler: all blocks alone, or a job with helpers, as many as can be had."""
    return f"""  br i1 %alone, label %each, label %start
each:
  %b = phi i64 [0, %made], [%b.next, %each]
  call void @block(ptr %table, i64 %b)
  %b.next = add i64 %b, 1
  %more = icmp ult i64 %b.next, %blocks
  br i1 %more, label %each, label %end
start:
  store i64 0, ptr %job
  %done = getelementptr i8, ptr %job, i64 {_DONE}
  store i64 0, ptr %done
  %references = getelementptr i8, ptr %job, i64 {_REFERENCES}
  store i64 1, ptr %references
{struct("%scheduling", "ptr %context", f"ptr @{name}_task", "ptr %job")}
{field("%schedule", "%api", 136)}
  br label %launch
launch:
  %h = phi i64 [0, %start], [%h.next, %launched]
  %before = atomicrmw add ptr %references, i64 1 monotonic
  %failed = call ptr %schedule(ptr %scheduling)
  %good = icmp eq ptr %failed, null
  br i1 %good, label %launched, label %unlaunched
launched:
  %h.next = add i64 %h, 1
  %again = icmp ult i64 %h.next, %helpers
  br i1 %again, label %launch, label %take
unlaunched:
  call void @{name}_forget(ptr %api, ptr %failed)
  call void @{name}_drop(ptr %job)
  br label %take
take:
  call void @{name}_work(ptr %job)
  br label %look
look:
  %finished = load atomic i64, ptr %done acquire, align 8
  %ready = icmp eq i64 %finished, %blocks
  br i1 %ready, label %leave, label %wait
wait:
{_PAUSE[1]}
  br label %look
leave:
  call void @{name}_drop(ptr %job)
  br label %end
end:
  ret ptr null
}}
"""


# A thread that waits for the last blocks of others lets them have its core.
_PAUSE = (
    ("declare i32 @sched_yield()", "  %yielded = call i32 @sched_yield()")
    if os.name == "posix"
    else ("", "")
)


def _functions(name: str) -> str:
    """What the handler and its helpers call.

    A thread takes blocks as long as there are any, so none waits for one that does not run. A
    helper may start when all is done, and so the last to leave frees the job.
    """
    return f"""declare ptr @malloc(i64)
declare void @free(ptr)
{_PAUSE[0]}
define internal void @{name}_task(ptr %job) nounwind {{
  call void @{name}_work(ptr %job)
  call void @{name}_drop(ptr %job)
  ret void
}}
define internal void @{name}_work(ptr %job) noinline nounwind {{
  %done = getelementptr i8, ptr %job, i64 {_DONE}
  %buffers = getelementptr i8, ptr %job, i64 {_BUFFERS}
  %numbers = load ptr, ptr %buffers
{field("%blocks", "%numbers", 16, "i64")}
  br label %take
take:
  %b = atomicrmw add ptr %job, i64 1 monotonic
  %some = icmp ult i64 %b, %blocks
  br i1 %some, label %do, label %end
do:
  call void @block(ptr %buffers, i64 %b)
  %before = atomicrmw add ptr %done, i64 1 release
  br label %take
end:
  ret void
}}
define internal void @{name}_drop(ptr %job) noinline nounwind {{
  %references = getelementptr i8, ptr %job, i64 {_REFERENCES}
  %before = atomicrmw sub ptr %references, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %gone, label %end
gone:
  call void @free(ptr %job)
  br label %end
end:
  ret void
}}
define internal void @{name}_forget(ptr %api, ptr %error) noinline nounwind {{
  %arguments = alloca [3 x i64]
  %none = icmp eq ptr %error, null
  br i1 %none, label %end, label %destroy
destroy:
{struct("%arguments", "ptr %error")}
{field("%destructor", "%api", 64)}
  call void %destructor(ptr %arguments)
  br label %end
end:
  ret void
}}
"""
