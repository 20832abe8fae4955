"""How LLVM IR has the scalars of programs: their types, alone and in lanes, and known numbers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ..program import NUMPY

TYPE = {
    "f64": "double",
    "f32": "float",
    "i64": "i64",
    "i32": "i32",
    "u64": "i64",
    "u32": "i32",
    "b1": "i1",
}


def bytes_of(kind: str) -> int:
    """The size of a scalar in memory."""
    return NUMPY[kind].itemsize


def _vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def type_of(kind: str, lanes: int) -> str:
    """The type of a value in registers."""
    return _vector(TYPE[kind], lanes)


def in_memory(kind: str, lanes: int) -> str:
    """The type of a value in memory, where a truth takes a byte."""
    return _vector("i8" if kind == "b1" else TYPE[kind], lanes)


def literal(x: Any, kind: str, lanes: int) -> str:
    """A known number as an operand."""
    if kind[0] == "f":
        x = float(np.float32(x)) if kind == "f32" else x
        text = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    elif kind == "b1":
        text = "true" if x else "false"
    else:
        text = str(int(x))
    return text if lanes == 1 else "<" + ", ".join([f"{TYPE[kind]} {text}"] * lanes) + ">"
