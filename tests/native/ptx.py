"""Runs PTX, the assembly that NVRTC writes for GPUs, on the CPU: all threads at once, in NumPy.

Threads that part at a branch wait for each other: those that are first in the text run first, and
so meet again. Known is what the kernels of difflie contain on the paths that they take; whatever
else is reached raises NotImplementedError, and what lies outside of its array an IndexError.
`rcp.approx` and the like are exact here, and a fused f64 multiply-add rounds twice, to 64 bits
first where the machine has such numbers.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "pred": np.bool_,
    **{f"{k}{n}": np.dtype(f"uint{n}").type for k in "ub" for n in (8, 16, 32, 64)},
    **{f"s{n}": np.dtype(f"int{n}").type for n in (8, 16, 32, 64)},
}
# What registers hold, by their names.
REGISTERS = {"fd": "f64", "f": "f32", "rd": "b64", "rs": "b16", "r": "b32", "p": "pred"}
REGISTERS |= {"SP": "b64", "SPL": "b64"}
# The arrays lie so many bytes apart.
APART = 2**40

STATEMENT = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


def fused(x: Any, y: Any, z: Any) -> Any:
    wide = np.float64 if x.dtype == np.float32 else np.longdouble
    return (x.astype(wide) * y.astype(wide) + z.astype(wide)).astype(x.dtype)


def quotient(x: Any, y: Any) -> Any:
    """Rounded towards zero."""
    return np.where((x < 0) == (y < 0), abs(x) // abs(y), -(abs(x) // abs(y))).astype(x.dtype)


def converted(x: Any, modes: Sequence[str], kind: str) -> Any:
    for mode, rounded in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
        if mode in modes:
            x = rounded(x)
    if kind[0] in "su" and x.dtype.kind == "f":
        # The nearest number that there is, 0 for none.
        limits = np.iinfo(TYPES[kind])
        high = np.nextafter(x.dtype.type(limits.max), x.dtype.type(0))
        large = x > high
        x = np.where(np.isnan(x), 0, np.clip(x, x.dtype.type(limits.min), high))
        return np.where(large, limits.max, x.astype(TYPES[kind])).astype(TYPES[kind])
    return x.astype(TYPES[kind])


COMPARED = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def comparison(name: str, is_float: bool) -> Callable[[Any, Any], Any]:
    """Of numbers, false where one is none; with a u at the end true."""
    if name in ("nan", "num"):
        return lambda x, y: (np.isnan(x) | np.isnan(y)) == (name == "nan")
    compared = COMPARED[name[:2]]
    if not is_float:
        return compared
    if name[2:] == "u":
        return lambda x, y: compared(x, y) | np.isnan(x) | np.isnan(y)
    return lambda x, y: compared(x, y) & ~np.isnan(x) & ~np.isnan(y)


PLAIN: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "sqrt": np.sqrt,
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": lambda x: x.dtype.type(1) / x,
    "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "fma": fused,
    "mad": lambda x, y, z: x * y + z,
    "mov": lambda x: x,
    "cvta": lambda x: x,
}
# What may follow the name of such an operation and says nothing that matters here.
ROUNDINGS = {"rn", "ftz", "approx", "lo", "to", "global"}


class Instruction(NamedTuple):
    """results = f(*operands), each as (register, type to look at its bits as, if another one)."""

    results: list[str]
    f: Callable[..., Any]
    operands: list[tuple[str, Any]]


class Ptx:
    """The kernel of a text. Its registers are arrays, one entry for each thread."""

    def __init__(self, text: str, name: str):
        head, body = text.split(f".visible .entry {name}(", 1)
        self.parameters = re.findall(rf"{name}_param_\d+", body[: body.index(")")])
        data = re.findall(r"\.global \.align \d+ \.b8 (\w+)\[\d+\] = \{([^}]*)\}", head)
        self.data = {x: np.array(numbers.split(","), np.uint8) for x, numbers in data}
        body = re.sub(r"//[^\n]*", "", body[body.index("{") + 1 : body.index("\n}\n")])
        # A block of statements begins at a label, or after a branch.
        self.blocks: list[list[str]] = [[]]
        self.labels: dict[str, int] = {}
        for statement in re.split(r";|(?<=:)\s", body):
            statement = re.sub(r"^[\s{}]+", "", statement).strip()
            if statement.endswith(":"):
                self.blocks.append([])
                self.labels[statement[:-1]] = len(self.blocks) - 1
            elif statement and statement[0] != ".":
                self.blocks[-1].append(statement)
                if re.search(r"\b(bra|ret)\b", statement):
                    self.blocks.append([])

    def run(self, arrays: Sequence[np.ndarray], blocks: int, threads: int) -> None:
        """Runs so many blocks of threads; the arrays are the arguments, some are written to."""
        n = blocks * threads
        everything = [*arrays, *self.data.values()]
        self.memory = [x.reshape(-1) for x in everything]
        names = [*self.parameters, *self.data]
        assert len(arrays) == len(self.parameters)
        self.places = {x: np.uint64(APART * (i + 1)) for i, x in enumerate(names)}
        # Memory of a thread's own, of which there is none: only rare paths use it.
        self.places["__local_depot0"] = np.uint64(APART * (len(names) + 1))
        number = np.arange(n, dtype=np.uint32)
        self.registers: dict[str, Any] = {
            "%ctaid.x": number // np.uint32(threads),
            "%tid.x": number % np.uint32(threads),
        }
        self.known: dict[int, list[Instruction]] = {}
        at = np.zeros(n, int)
        with np.errstate(all="ignore"):
            while (here := int(at.min())) < len(self.blocks):
                self.active = at == here
                at = np.where(self.active, self._block(here), at)

    def _block(self, here: int) -> Any:
        """Runs a block for the active threads; the numbers of the blocks where they go on."""
        *_, last = self.blocks[here] or [""]
        if here not in self.known:
            ends = re.search(r"\b(bra|ret)\b", last)
            statements = self.blocks[here][:-1] if ends else self.blocks[here]
            self.known[here] = [x for s in statements for x in self._instructions(s)]
        registers, whole = self.registers, self.active.all()
        for results, f, operands in self.known[here]:
            found = f(*[registers[x] if t is None else registers[x].view(t) for x, t in operands])
            for name, value in zip(results, found if len(results) != 1 else (found,), strict=True):
                if not whole and name in registers:
                    value = np.where(self.active, value, registers[name])
                registers[name] = value
        sign, predicate, operation, rest = self._parts(last) if last else ("", "", "", "")
        if operation == "ret" and not predicate:
            return len(self.blocks)
        if not operation.startswith("bra"):
            return here + 1
        target = self.labels[rest.strip()]
        if not predicate:
            return target
        return np.where(registers[predicate] ^ bool(sign), target, here + 1)

    def _parts(self, statement: str) -> tuple[str, str, str, str]:
        match = STATEMENT.fullmatch(statement)
        if match is None:
            raise NotImplementedError(statement)
        return match.groups(default="")  # type: ignore[return-value]

    def _instructions(self, statement: str) -> list[Instruction]:
        _, predicate, operation, rest = self._parts(statement)
        first, *parts = operation.split(".")
        target, *operands = OPERAND.findall(rest)
        if predicate or not parts:
            raise NotImplementedError(statement)
        names = re.findall(r"[^{},\s]+", target)
        kind = parts[-1]
        if operation == "ld.param.u64":
            place = self.places[operands[0].strip("[]")]
            return [Instruction(names, lambda: place, [])]
        if first in ("ld", "st") and parts[0] == "global":
            address = operands[0] if first == "ld" else target
            base, offset = re.fullmatch(r"\[(%\w+)(?:\+(-?\d+))?\]", address).groups(default="0")
            where = self._operand(base, "u64"), np.uint64(int(offset) % 2**64)
            if first == "ld":
                load = self._load(kind, where[1], len(names), REGISTERS[_kind(names[0])])
                return [Instruction(names, load, [where[0]])]
            value = re.findall(r"[^{},\s]+", operands[0])
            given = [where[0], *(self._operand(x, kind) for x in value)]
            return [Instruction([], self._store(kind, where[1]), given)]
        if operation == "mov.b64" and (len(names) > 1 or operands[0][0] == "{"):
            if len(names) > 1:
                halves = lambda x: (x.astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32))  # noqa: E731
                return [Instruction(names, halves, [self._operand(operands[0], kind)])]
            low, high = (self._operand(x, "b32") for x in re.findall(r"[^{},\s]+", operands[0]))
            return [Instruction(names, self._as(names[0], "b64", _joined), [low, high])]
        f, kinds, result = self._operation(first, parts, len(operands), statement)
        given = [self._operand(x, k) for x, k in zip(operands, kinds, strict=True)]
        return [Instruction(names, self._as(names[0], result, f), given)]

    def _operation(
        self, first: str, parts: list[str], count: int, statement: str
    ) -> tuple[Callable[..., Any], list[str], str]:
        """What an instruction does, with the types of its operands and its result."""
        kind = parts[-1]
        if first == "setp" and len(parts) == 2:
            return comparison(parts[0], kind[0] == "f"), [kind, kind], "pred"
        if first == "selp":
            return (lambda x, y, which: np.where(which, x, y)), [kind, kind, "pred"], kind
        if first == "cvt":
            wanted = parts[-2]
            return (lambda x: converted(x, parts[:-2], wanted)), [kind], wanted
        if first in ("shl", "shr"):
            shift = np.left_shift if first == "shl" else np.right_shift
            return (lambda x, y: shift(x, y.astype(x.dtype))), [kind, "u32"], kind
        if first in ("mul", "mad") and parts[0] == "wide":
            wide = f"{kind[0]}{2 * int(kind[1:])}"
            t = TYPES[wide]
            f = lambda x, y, *z: sum(z, x.astype(t) * y.astype(t))  # noqa: E731
            return f, [kind, kind, wide][:count], wide
        if first in ("div", "rem") and kind[0] != "f":
            f = quotient if first == "div" else lambda x, y: x - y * quotient(x, y)
            return f, [kind, kind], kind
        if first == "div":
            return np.divide, [kind, kind], kind
        if first not in PLAIN or not ROUNDINGS.issuperset(parts[:-1]):
            raise NotImplementedError(statement)
        return PLAIN[first], [kind] * count, kind

    def _as(self, name: str, kind: str, f: Callable[..., Any]) -> Callable[..., Any]:
        """f with its result, of a type, as the bits that a register holds."""
        held = TYPES[REGISTERS[_kind(name)]]
        if held is TYPES[kind]:
            return f
        return lambda *xs: f(*xs).view(held)

    def _operand(self, text: str, kind: str) -> tuple[str, Any]:
        """A register and as what to look at it; numbers are put into registers of their own."""
        if text in self.registers and text[0] == "%" and "." in text:
            return text, None
        if text[0] == "%":
            t, held = TYPES[kind], TYPES[REGISTERS[_kind(text)]]
            return text, None if t is held or t().itemsize != held().itemsize else t
        if text in self.places:
            number: Any = self.places[text]
        elif text[:2] in ("0f", "0d"):
            number = TYPES["u32" if text[1] == "f" else "u64"](int(text[2:], 16)).view(TYPES[kind])
        elif kind == "pred":
            number = np.bool_(int(text))
        else:
            size = 8 * TYPES[kind]().itemsize
            number = TYPES[f"u{size}"](int(text, 0) % 2**size).view(TYPES[kind])
        self.registers[f"{text}.{kind}"] = number
        return f"{text}.{kind}", None

    def _entries(self, address: Any, offset: Any, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """The array in which the addresses of the active threads lie, and their places there."""
        places = np.broadcast_to(address + offset, self.active.shape)[self.active]
        which = places // np.uint64(APART)
        assert (which == which[0]).all()
        array = self.memory[int(which[0]) - 1].view(t)
        return array, (places % np.uint64(APART)) // np.uint64(array.itemsize)

    def _load(self, kind: str, offset: Any, count: int, held: str) -> Callable[..., Any]:
        t, into = TYPES[kind], TYPES[held]

        def load(address: Any) -> Any:
            found = []
            for i in range(count):
                array, places = self._entries(address, offset + np.uint64(i * t().itemsize), t)
                values = np.zeros(self.active.shape, t)
                values[self.active] = array[places]
                same = values.itemsize == into().itemsize
                found.append(values.view(into) if same else values.astype(into))
            return found if count > 1 else found[0]

        return load

    def _store(self, kind: str, offset: Any) -> Callable[..., Any]:
        t = TYPES[kind]

        def store(address: Any, value: Any) -> tuple[()]:
            array, places = self._entries(address, offset, t)
            array[places] = np.broadcast_to(value, self.active.shape)[self.active]
            return ()

        return store


def _joined(low: Any, high: Any) -> Any:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


def _kind(register: str) -> str:
    return re.fullmatch(r"%([a-zA-Z]+)\d*", register).group(1)
