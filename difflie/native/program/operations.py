"""The types of scalars, and the operations on them as NumPy computes them at trace time."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

import numpy as np

TYPES = {
    "float64": "f64",
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "uint64": "u64",
    "uint32": "u32",
    "bool": "b1",
}
NUMPY = {t: np.dtype(name) for name, t in TYPES.items()}

UNARY: Mapping[str, Callable] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "neg": np.negative,
    "not": np.invert,
    "round": np.rint,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
}
BINARY: Mapping[str, Callable] = {
    "add": np.add,
    "and": np.bitwise_and,
    "atan2": np.arctan2,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "or": np.bitwise_or,
    "pow": np.power,
    "rem": np.fmod,
    "sub": np.subtract,
    "xor": np.bitwise_xor,
}
COMPARE: Mapping[str, Callable] = {
    "eq": operator.eq,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "ne": operator.ne,
}
