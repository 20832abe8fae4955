"""The program of a jaxpr: arrays are arrays of the numbers of their entries.

What only moves entries about (slices, transpositions, gathers at known places) costs nothing at run
time; loops over known numbers of iterations are written out, `while` becomes a loop of the program.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..jaxprs import nested
from ..private import ClosedJaxpr, Literal, eval_jaxpr, within, without_dead_code
from ..program import TYPES, Program, Unsupported
from ..strict_user_code import has_strict, is_strict
from .parameters import check

# Arrays with more entries are no part of a program.
LARGEST = 20_000

Array = np.ndarray

# By the name of an operation of jax: its results, from the program that is being written, the
# equation, and its operands.
RULES: dict[str, Callable[..., Sequence[Array]]] = {}
# Those that go entry by entry: the number of an entry of the result, from the program, the type of
# the result, the parameters of the equation, and the numbers of entries.
SCALAR_RULES: dict[str, Callable[..., int]] = {}

# Those that have in each of their instructions, or in the function within them, the derivative that
# jax gives them: in a program that is there to be differentiated, others are regions.
PLAIN: set[str] = set()
# Of these, those that are regions all the same where a test of the program and the equation holds.
REGIONS: dict[str, Callable[[Program, Any], bool]] = {}

_KINDS = {np.dtype(name): kind for name, kind in TYPES.items()}


def kind_of(dtype: Any) -> str:
    """The type of the scalars of an array."""
    kind = _KINDS.get(dtype)
    if kind is None:
        raise Unsupported(f"the type {dtype}")
    return kind


def kind_of_result(equation: Any) -> str:
    """The type of the scalars of the first result."""
    return kind_of(equation.outvars[0].aval.dtype)


def array_of(entries: Any, shape: Sequence[int]) -> Array:
    """An array of the numbers of scalars."""
    return np.array(entries, np.int64).reshape(shape)


def like(entries: Sequence[int], arrays: Sequence[Any]) -> list[Array]:
    """The entries of several arrays one after another, in shapes like theirs."""
    ends = np.cumsum([x.size for x in arrays], dtype=np.int64)[:-1]
    parts = np.split(array_of(entries, (-1,)), ends) if len(arrays) else []
    return [part.reshape(x.shape) for part, x in zip(parts, arrays, strict=True)]


def flat(arrays: Sequence[Array]) -> list[int]:
    """The entries of several arrays one after another."""
    return [k for x in arrays for k in x.ravel().tolist()]


def _checked(size: int) -> None:
    if size > LARGEST:
        raise Unsupported(f"an array of more than {LARGEST} entries")


def arguments(program: Program, avals: Sequence[Any]) -> list[Array]:
    """New arguments of these shapes and types."""
    arrays = []
    for aval in avals:
        kind = kind_of(aval.dtype)
        _checked(aval.size)
        arrays.append(array_of([program.argument(kind) for _ in range(aval.size)], aval.shape))
    return arrays


def constants(program: Program, a: Any) -> Array:
    """A known array."""
    a = np.asarray(a)
    kind = kind_of(a.dtype)
    _checked(a.size)
    return array_of([program.constant(x, kind) for x in a.ravel().tolist()], a.shape)


def elementwise(f: Callable[..., int], *operands: Array) -> Array:
    """f, entry by entry."""
    shape = operands[0].shape
    if any(x.shape != shape for x in operands):
        operands = np.broadcast_arrays(*operands)  # pyright: ignore
        shape = operands[0].shape
    return array_of(list(map(f, *(x.ravel().tolist() for x in operands))), shape)


class _Step(NamedTuple):
    """An equation of a jaxpr, as it is written whatever the program.

    rule: of one that goes entry by entry and has no axes, with the type of its result; None for
    others. plain: whether that is so in a program that is there to be differentiated, too. strict:
    whether it is computed strictly; None where that is as outside. inputs, outputs: where operands
    and results are. problem: why it has no instructions.
    """

    rule: Callable[..., int] | None
    kind: str
    plain: bool
    strict: bool | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    equation: Any
    problem: str | None = None


class _Steps(NamedTuple):
    """The equations of a jaxpr. Values have places: constants, arguments, results, numbers."""

    steps: list[_Step]
    results: list[int]
    size: int
    # The place, the value and the type of each number that stands in an equation.
    literals: list[tuple[int, Any, str | None]]


# Functions are written many times: for each of their calls, and for every derivative.
_known_steps: weakref.WeakKeyDictionary[Any, _Steps] = weakref.WeakKeyDictionary()


def _steps_of(jaxpr: Any) -> _Steps:
    if (known := _known_steps.get(jaxpr)) is not None:
        return known
    places: dict[Any, int] = {}
    literals: list[tuple[int, Any, str | None]] = []
    size = 0

    def place(v: Any) -> int:
        nonlocal size
        if v.__class__ is not Literal and v in places:
            return places[v]
        if v.__class__ is Literal:
            # Without 64 bits a number of Python is shorter than numpy makes it.
            x = np.asarray(v.val, v.aval.dtype)
            scalar = not x.shape and x.dtype in _KINDS
            literals.append((size, x.item() if scalar else x, _KINDS[x.dtype] if scalar else None))
        else:
            places[v] = size
        size += 1
        return size - 1

    for v in (*jaxpr.constvars, *jaxpr.invars):
        place(v)
    steps = []
    for equation in jaxpr.eqns:
        inputs = tuple(map(place, equation.invars))
        steps.append(_step(equation, inputs, tuple(map(place, equation.outvars))))
    results = list(map(place, jaxpr.outvars))
    known = _known_steps[jaxpr] = _Steps(steps, results, size, literals)
    return known


def _step(equation: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> _Step:
    name = equation.primitive.name
    plain = name in PLAIN and name not in REGIONS
    # Where it is so whatever is around it, that is its own.
    without, within_it = (is_strict(equation, around) for around in (False, True))
    strict = without if without == within_it else None
    step = _Step(None, "", plain, strict, inputs, outputs, equation)
    try:
        if equation.params:
            check(name, equation.params)
        if name in SCALAR_RULES and not equation.outvars[0].aval.shape:
            # Nine out of ten operations, which need no arrays.
            kind = kind_of_result(equation)
            return step._replace(rule=SCALAR_RULES[name], kind=kind)
    except Unsupported as problem:
        return step._replace(problem=str(problem))
    return step


def write_closed(program: Program, closed: Any, operands: Sequence[Array]) -> list[Array]:
    """Appends what a closed jaxpr computes; operands and results are scalars' numbers."""
    jaxpr = closed.jaxpr
    steps, places, size, literals = _steps_of(jaxpr)
    # Of what has no axes, the number itself.
    values: list[Any] = [None] * size
    given = [*(constants(program, c) for c in closed.consts), *operands]
    values[: len(given)] = [x if x.shape else x.item() for x in given]
    for at, x, kind in literals:
        values[at] = constants(program, x) if kind is None else program.constant(x, kind)

    def read(at: int) -> Array:
        x = values[at]
        return np.array(x, np.int64) if x.__class__ is int else x

    outside, differentiable = program.strict, program.differentiable
    for rule, kind, plain, strict, inputs, outputs, equation, problem in steps:
        if problem is not None:
            raise Unsupported(problem)
        program.strict = outside if strict is None else strict
        if rule is not None and (plain or not differentiable):
            xs = [values[at] for at in inputs]
            values[outputs[0]] = rule(program, kind, equation.params, *xs)
            continue
        arrays = list(map(read, inputs))
        if differentiable and _is_region(program, equation):
            results = written_or_region(program, _operation(program, jaxpr, equation), arrays)
        else:
            results = written(program, equation, arrays)
        for at, v, result in zip(outputs, equation.outvars, results, strict=True):
            _checked(result.size)
            shape = v.aval.shape
            if not shape:
                values[at] = result.item()
            else:
                values[at] = result if result.shape == shape else np.broadcast_to(result, shape)
    program.strict = outside
    return list(map(read, places))


def _is_region(program: Program, equation: Any) -> bool:
    name = equation.primitive.name
    return name not in PLAIN or (name in REGIONS and REGIONS[name](program, equation))


def written(program: Program, equation: Any, operands: Sequence[Array]) -> Sequence[Array]:
    """Appends what an operation of jax computes; operands and results are scalars' numbers."""
    name = equation.primitive.name
    entry = SCALAR_RULES.get(name)
    if entry is not None:
        kind = kind_of(equation.outvars[0].aval.dtype)
        return [elementwise(functools.partial(entry, program, kind, equation.params), *operands)]
    if name in RULES:
        return RULES[name](program, equation, *operands)
    raise Unsupported(f"the operation {name}")


class Operation:
    """An operation of jax, of which it is asked for the tangents."""

    def __init__(self, jaxpr: Any, equation: Any):
        self.equation, self._jaxpr = equation, jaxpr
        self.has_tangent = [kind_of(v.aval.dtype)[0] == "f" for v in equation.outvars]
        self._rules: dict[tuple[bool, ...], ClosedJaxpr] = {}

    @functools.cached_property
    def has_strict(self) -> bool:
        """Whether it is computed strictly in part."""
        return any(has_strict(x.jaxpr, False) for x in nested(self.equation.params))

    def derivative(self, varied: tuple[bool, ...]) -> ClosedJaxpr:
        """The results, and the tangents of those that have one.

        A function of all operands, and of the tangents of those that vary.
        """
        if varied not in self._rules:
            self._rules[varied] = self._traced(varied)
        return self._rules[varied]

    def _traced(self, varied: tuple[bool, ...]) -> ClosedJaxpr:
        equation = self.equation
        # An operand may stand in several places, each with its own tangent.
        places = [i for i, v in enumerate(equation.invars) if v.__class__ is not Literal]
        invars = [equation.invars[i] for i in places]
        one = self._jaxpr.replace(
            constvars=[],
            invars=list(dict.fromkeys(invars)),
            outvars=equation.outvars,
            eqns=[equation],
        )

        def both(*args: Any) -> list[Any]:
            points, moves = args[: len(varied)], iter(args[len(varied) :])
            given = {v: points[i] for i, v in zip(places, invars, strict=True)}
            moving = {equation.invars[i]: next(moves) for i, x in enumerate(varied) if x}

            def moved(*values: Any) -> list[Any]:
                now = given | dict(zip(moving, values, strict=True))
                return eval_jaxpr(one, [], *(now[v] for v in one.invars))

            points_now = [given[v] for v in moving]
            results, moves = jax.jvp(moved, points_now, list(moving.values()))
            return [*results, *(d for d, has in zip(moves, self.has_tangent, strict=True) if has)]

        avals = [v.aval for v in equation.invars]
        with within(True):
            closed = jax.make_jaxpr(both)(
                *avals, *(a for a, x in zip(avals, varied, strict=True) if x)
            )
        # There are tangents of whole numbers, of no type, that nothing reads.
        everything = [True] * len(closed.jaxpr.outvars)
        jaxpr, _ = without_dead_code(closed.jaxpr, everything, keep_inputs=True)
        return ClosedJaxpr(jaxpr, closed.consts)


def _operation(program: Program, jaxpr: Any, equation: Any) -> Operation:
    """The operation of an equation; one for all calls of a function, which are traced once."""
    known = program.operations_of.get(id(equation))
    if known is None:
        known = program.operations_of[id(equation)] = Operation(jaxpr, equation)
    return known


def written_or_region(
    program: Program, operation: Operation, operands: Sequence[Array]
) -> Sequence[Array]:
    """Appends an operation, as a region where its derivative is asked of jax."""
    equation = operation.equation
    if not program.differentiable:
        return written(program, equation, operands)
    if equation.primitive.name.startswith("custom_vjp"):
        raise Unsupported("tangents of a function that has cotangents only")
    if program.strict or operation.has_strict:
        raise Unsupported("the derivative of what is computed strictly")
    numbers = flat(operands)
    varies = any(program.types[k][0] == "f" and program.known[k] is None for k in numbers)
    makes = any(kind_of(v.aval.dtype)[0] == "f" for v in equation.outvars)
    if not (varies and makes) or any(map(program.is_linear, numbers)):
        return written(program, equation, operands)
    kinds = [kind_of(v.aval.dtype) for v in equation.outvars for _ in range(v.aval.size)]
    return like(program.region(operation, numbers, kinds), [v.aval for v in equation.outvars])
