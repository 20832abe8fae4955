"""Columns as expressions: arithmetic of columns and numbers, such as "th2 - th1".

Names of columns, numbers, `pi`, + - * /, signs and parentheses; a name that is no word stands in
backquotes. Nothing else is evaluated, whatever a file of settings says.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

_BINARY: Mapping[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_UNARY: Mapping[type, Callable] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_LONGEST = 1000
_QUOTED = re.compile(r"`([^`]+)`")
_Value = TypeVar("_Value")


class Expression:
    """An expression, parsed; `names` are those of the columns in it, in order.

    Raises ValueError, whose message says what is wrong, for text that is no such expression.
    """

    def __init__(self, text: str):
        if len(text) > _LONGEST:
            raise ValueError("it is too long")
        quoted: list[str] = []

        def placeholder(match: re.Match) -> str:
            quoted.append(match[1])
            return f" column{len(quoted)}_ "

        plain = _QUOTED.sub(placeholder, text).strip()
        self._columns = {f"column{k}_": name for k, name in enumerate(quoted, 1)}
        try:
            self._root = ast.parse(plain, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise ValueError("it is no arithmetic expression") from None
        self.names: list[str] = []
        self._check(self._root)

    def __call__(self, column: Callable[[str], _Value]) -> _Value | float:
        """The value, given that of each column by name."""
        return self._value(self._root, column)

    def _check(self, node: ast.AST) -> None:
        match node:
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                self._check(left)
                self._check(right)
            case ast.UnaryOp(op, operand) if type(op) in _UNARY:
                self._check(operand)
            case ast.Name(name):
                if name != "pi" and (column := self._columns.get(name, name)) not in self.names:
                    self.names.append(column)
            case ast.Constant(int() | float() as number) if not isinstance(number, bool):
                pass
            case _:
                part = ast.unparse(node)
                raise ValueError(f"{part!r} is not allowed; write columns, numbers, pi, + - * /")

    def _value(self, node: ast.AST, column: Callable[[str], _Value]) -> _Value | float:
        match node:
            case ast.BinOp(left, op, right):
                return _BINARY[type(op)](self._value(left, column), self._value(right, column))
            case ast.UnaryOp(op, operand):
                return _UNARY[type(op)](self._value(operand, column))
            case ast.Constant(int() | float() as number):
                return float(number)
        assert isinstance(node, ast.Name)
        return math.pi if node.id == "pi" else column(self._columns.get(node.id, node.id))
