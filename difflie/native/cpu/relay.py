"""What XLA is given as a handler: a relay, which hands calls on to the code of a program.

It is there before the code is. LLVM compiles while Python goes on with the next program, a call
that comes too early waits, and better code may take the place of the first. Relays are compiled
once, many in a text, and loaded as often as more are needed.
"""

from __future__ import annotations

import ctypes
import os
from typing import NamedTuple

from .ffi import METADATA, failure, field

_COUNT = 64
_WORD = 8
# A thread that waits sleeps for so many microseconds.
_NAP = 100


class Relay(NamedTuple):
    """The address that XLA calls, and that of two cells, for the code and for why there is none."""

    address: int
    cells: int

    def hand_on(self, code: int) -> None:
        """From now on calls go to this code."""
        ctypes.c_void_p.from_address(self.cells).value = code

    def fail(self, problem: str) -> None:
        """There will be no code: calls fail with this message."""
        message = ctypes.create_string_buffer(problem.encode())
        _messages.append(message)
        ctypes.c_void_p.from_address(self.cells + _WORD).value = ctypes.addressof(message)


# XLA reads them at any time.
_messages: list[ctypes.Array[ctypes.c_char]] = []


def relays(cells: int, addresses: int) -> list[Relay]:
    """Those of a loaded text, of which these are the addresses of @cells and @addresses."""
    table = (ctypes.c_void_p * _COUNT).from_address(addresses)
    return [Relay(a or 0, cells + 2 * _WORD * i) for i, a in enumerate(table)]


def text() -> str:
    """The text of relays."""
    numbers = range(_COUNT)
    addresses = ", ".join(f"ptr @relay{i}" for i in numbers)
    return "\n".join(
        [
            f"@cells = global [{2 * _COUNT} x ptr] zeroinitializer, align 16",
            f"@addresses = global [{_COUNT} x ptr] [{addresses}]",
            *(_RELAY.format(number=i, count=2 * _COUNT, place=2 * i) for i in numbers),
            _HANDED_ON,
        ]
    )


_RELAY = """define internal ptr @relay{number}(ptr %frame) nounwind {{
  %cell = getelementptr [{count} x ptr], ptr @cells, i64 0, i64 {place}
  %answer = tail call ptr @handed_on(ptr %frame, ptr %cell)
  ret ptr %answer
}}"""

_SLEEP = (
    ("declare i32 @usleep(i32)", f"  %slept = call i32 @usleep(i32 {_NAP})")
    if os.name == "posix"
    else ("", "")
)

# XLA asks for the version before the code need be there.
_HANDED_ON = f"""{_SLEEP[0]}
define internal ptr @handed_on(ptr %frame, ptr %cell) noinline nounwind {{
  %failing = alloca [4 x i64]
  %problem.at = getelementptr ptr, ptr %cell, i64 1
{METADATA}
  br label %look
look:
  %code = load atomic ptr, ptr %cell acquire, align 8
  %late = icmp eq ptr %code, null
  br i1 %late, label %ask, label %go
go:
  %answer.of.code = call ptr %code(ptr %frame)
  ret ptr %answer.of.code
ask:
  %problem = load atomic ptr, ptr %problem.at acquire, align 8
  %none = icmp eq ptr %problem, null
  br i1 %none, label %wait, label %failed
wait:
{_SLEEP[1]}
  br label %look
failed:
{field("%api", "%frame", 16)}
{failure("%failing", "%problem")}
}}
"""
