"""What the functions of a module share: the memory that they work on, and declarations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .elementary import definitions
from .types import bytes_of


class Place(NamedTuple):
    """Where a scalar lies in the frame: at this byte, for each lane or once for all of them."""

    offset: int
    lanes: int


class Frame:
    """The memory that all functions of a module work on."""

    def __init__(self) -> None:
        self.size = 0
        self._free: dict[int, list[int]] = {}

    def _block(self, size: int) -> int:
        """The offset of new bytes."""
        offset = self.size
        self.size += -(-size // 64) * 64
        return offset

    def scalar(self, kind: str, lanes: int) -> Place:
        """A place for one scalar, one that has been given back if there is one."""
        size = bytes_of(kind) * lanes
        free = self._free.setdefault(size, [])
        if not free:
            count = max(1, 64 // size)
            first = self._block(size * count)
            free.extend(first + size * i for i in reversed(range(count)))
        return Place(free.pop(), lanes)

    def give_back(self, place: Place, kind: str) -> None:
        """Lets another scalar have a place."""
        self._free[bytes_of(kind) * place.lanes].append(place.offset)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Places given back within are not taken again."""
        free, self._free = self._free, {}
        yield
        self._free = free

    def array(self, kind: str, size: int, lanes: int) -> list[Place]:
        """Places side by side."""
        each = bytes_of(kind) * lanes
        first = self._block(max(1, each * size))
        return [Place(first + each * i, lanes) for i in range(size)]


class Module:
    """The functions of a module, and what they need.

    fuses: whether the processor has fused multiply-add.
    """

    def __init__(self, lanes: int, fuses: bool) -> None:
        self.lanes, self.fuses = lanes, fuses
        self.frame = Frame()
        self.functions: list[str] = []
        # Of products of matrices, by name.
        self.products: dict[str, str] = {}
        self.elementary: set[tuple[str, str, int]] = set()
        self.declared: set[str] = set()
        self._count = 0

    def function(self, lines: Sequence[str]) -> str:
        """A function of the frame; its call."""
        if not lines:
            return ""
        name = f"@f{self._count}"
        self._count += 1
        body = "\n".join(lines)
        self.functions.append(
            f"define internal void {name}(ptr noalias %m) #0 {{\n{body}\n  ret void\n}}\n"
        )
        return f"  call void {name}(ptr %m)"

    def label(self) -> str:
        """A new name."""
        self._count += 1
        return f"l{self._count}"

    def text(self) -> str:
        """All functions and declarations."""
        parts = [*sorted(self.declared), definitions(sorted(self.elementary))]
        parts += [*self.products.values(), *self.functions]
        return "\n".join(parts)


def joined(*texts: str) -> str:
    """Texts as one, with every declaration once: LLVM takes no second one."""
    lines = [line for text in texts for line in text.split("\n")]
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    return "\n".join([*declared, *(line for line in lines if not line.startswith("declare "))])
