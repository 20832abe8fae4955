"""Functions that a later process does not trace: their programs are stored on disk.

Within a program that is being traced, `stored(f, *args)` is one operation of jax. A key says all
that a trace of f would read: see `contents`. What is stored under it is how the result is put
together, and the module that f is lowered to, with the digests of the handlers that it calls. The
derivatives in reverse mode, and parts of a program whose other results no one asks for, are stored
in the same way, each when it is first asked for. All else (forward mode, batches, other platforms,
what is not on disk any more) is derived from the function as traced, which happens then.

A key holds the sources of this package as they are on disk. Who replaces parts of it in memory sets
DIFFLIE_STORED=0, and all functions are traced.

A function with effects, one that calls what belongs to others, or one of which something has no
name, is traced in every process.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from . import disk_cache
from .attempts import available
from .closures import Unknown
from .collector import collector_off
from .contents import described, packed, unpacked
from .cpu import vectorized_loop
from .cpu.object_code import Missing
from .fingerprint import package
from .jaxprs import has_keys
from .private import (
    ClosedJaxpr,
    Context,
    Primitive,
    ShapedArray,
    Value,
    Zero,
    call_of_module,
    define_stored,
    instantiate_zeros,
    is_undefined_primal,
    jaxpr_as_fun,
    linearized,
    lowered,
    storing,
    trace_flags,
    with_tangents,
    within,
    without_dead_code,
)

# Goes up when the same sources are to be stored as something else.
_FORMAT = 1
_stored_p = Primitive("stored")


class Program:
    """A function of arrays to arrays, with a key by which later processes know it.

    What is `known` of it, as JSON has it, is read from disk where it can be. Otherwise, and when
    something else is asked, it is traced.
    """

    def __init__(self, key: str, trace: Callable[[], tuple[ClosedJaxpr, dict[str, Any]]]) -> None:
        self.key, self._trace = key, trace
        self._closed: ClosedJaxpr | None = None
        self._known: dict[str, Any] | None = None
        self._related: dict[Any, Program] = {}

    def closed(self) -> ClosedJaxpr:
        """The function, traced."""
        if self._closed is None:
            with collector_off():
                self._closed, known = self._trace()
            known["results"] = [_kind(a) for a in self._closed.out_avals]
            # As it comes back from disk.
            known = json.loads(json.dumps(known))
            if self._known is None:
                disk_cache.write(_name(self.key, "known"), json.dumps(known).encode())
            elif self._known != known:
                raise RuntimeError(
                    "a program stored by another process differs from the one traced in this one; "
                    "empty the folder DIFFLIE_CACHE, or set it to 0"
                )
            self._known = known
        return self._closed

    @property
    def known(self) -> dict[str, Any]:
        if self._known is None:
            data = disk_cache.read(_name(self.key, "known"))
            if data is not None:
                self._known = json.loads(data)
            else:
                self.closed()
        assert self._known is not None
        return self._known

    def out_avals(self) -> list[ShapedArray]:
        return [
            ShapedArray(tuple(shape), np.dtype(dtype), weak_type=weak)
            for dtype, shape, weak in self.known["results"]
        ]

    def apply(self, *args: Any) -> list[Any]:
        """The results the ordinary way."""
        return jaxpr_as_fun(self.closed())(*args)

    def related(self, *what: Any, trace: Callable[[], Any]) -> Program:
        """A program that follows from this one."""
        if what not in self._related:
            self._related[what] = Program(_digest((self.key, what)), trace)
        return self._related[what]

    def module(self) -> bytes | None:
        """What it is lowered to, its handlers registered; None where this is to be done anew."""
        data = disk_cache.read(_name(self.key, "module"))
        if data is not None:
            head, _, module = data.partition(b"\n")
            try:
                for digest in json.loads(head):
                    vectorized_loop.registered(digest)
                return module
            except Missing:
                pass
        return self._lowered()

    def _lowered(self) -> bytes | None:
        with collector_off():
            module, names = lowered(self.closed())
        digests = [vectorized_loop.digest_of(name) for name in names]
        if None in digests:
            return None
        head = json.dumps(digests).encode()
        disk_cache.write(_name(self.key, "module"), head + b"\n" + module)
        return module

    # Programs that follow from it

    def of_results(self, used: tuple[bool, ...]) -> Program:
        """For some results, as a function of the arguments that are still read."""

        def trace() -> tuple[ClosedJaxpr, dict[str, Any]]:
            closed = self.closed()
            jaxpr, read = without_dead_code(closed.jaxpr, used)
            known: dict[str, Any] = {"read": list(read)}
            if (changes := self.known.get("changes")) is not None:
                known["changes"] = sum(read[len(read) - changes :])
            return ClosedJaxpr(jaxpr, closed.consts), known

        return self.related("results", used, trace=trace)

    def saving(self, moving: tuple[bool, ...]) -> Program:
        """With residuals behind the results."""

        def trace() -> tuple[ClosedJaxpr, dict[str, Any]]:
            saving, _, changing, given = linearized(self.closed(), moving)
            return saving, {"changing": changing, "given": given}

        return self.related("saving", moving, trace=trace)

    def linear(self, moving: tuple[bool, ...]) -> Program:
        """The changes of results, of residuals and the changes of arguments."""

        def trace() -> tuple[ClosedJaxpr, dict[str, Any]]:
            linear = linearized(self.closed(), moving)[1]
            return linear, {"changes": sum(moving)}

        return self.related("linear", moving, trace=trace)

    def backward(self, on: tuple[bool, ...]) -> Program:
        """Of a linear one: residuals and cotangents of some results to cotangents of changes."""

        def trace() -> tuple[ClosedJaxpr, dict[str, Any]]:
            part = self.of_results(on)
            f, read = jaxpr_as_fun(part.closed()), part.known["read"]
            avals = self.closed().in_avals
            n = len(avals) - self.known["changes"]

            def back(*args: Any) -> list[Any]:
                residuals, cotangents = args[:n], args[n:]

                def forward(*changes: Any) -> list[Any]:
                    every = zip((*residuals, *changes), read, strict=True)
                    return f(*(x for x, is_read in every if is_read))

                return list(jax.linear_transpose(forward, *avals[n:])(list(cotangents)))

            return jax.make_jaxpr(back)(*avals[:n], *part.out_avals()), {}

        return self.related("backward", on, trace=trace)


def stored(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), in a program that is being traced; where possible f itself is not traced.

    f is a function of this package, and closes over nothing.
    """
    leaves, structure = jax.tree.flatten(args)
    arrays = [x for x in leaves if isinstance(x, jax.Array)]
    key = _key(f, args)
    if key is None:
        return f(*args)
    program = _programs.get(key)
    if program is None:
        others = [None if isinstance(x, jax.Array) else x for x in leaves]
        avals = [_alone(x) for x in arrays]
        trace = functools.partial(_traced, f, structure, others, avals)
        program = _programs[key] = Program(key, trace)
    if (written := program.known["written"]) is None:
        # It has been traced in this process: nothing else is stored of it.
        return f(*args)
    results = _stored_p.bind(*arrays, program=program)
    return unpacked(written, args, results)


_programs: weakref.WeakValueDictionary[str, Program] = weakref.WeakValueDictionary()


def _alone(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=jax.typeof(x).weak_type)


def _traced(
    f: Callable[..., Any], structure: Any, others: list[Any], avals: list[Any]
) -> tuple[ClosedJaxpr, dict[str, Any]]:
    """The function of arrays, and how its result is `written`: None if it is not to be stored."""
    written = None

    def on_arrays(*arrays: Any) -> list[Any]:
        nonlocal written
        filled = iter(arrays)
        leaves = [next(filled) if x is None else x for x in others]
        args = jax.tree.unflatten(structure, leaves)
        result, parts = f(*args), []
        try:
            written = packed(result, args, parts)
        except Unknown:
            written, parts = None, []
        return parts

    closed = jax.make_jaxpr(on_arrays)(*avals)
    if closed.effects or has_keys(closed.jaxpr):
        written = None
    return closed, {"written": written}


def _key(f: Callable[..., Any], args: Any) -> str | None:
    """What all that a trace reads is known by; None where something has no name."""
    wanted = [os.environ.get(f"DIFFLIE_{name}", "1") == "1" for name in ("STORED", "NATIVE")]
    if not (all(wanted) and storing() and available()) or within.value:
        return None
    if disk_cache.folder() is None:
        return None
    if jax.default_backend() != "cpu" or (flags := trace_flags()) is None:
        return None
    try:
        said = f.__module__, f.__qualname__, described(args)
    except Unknown:
        return None
    return _digest((_FORMAT, said, flags, _surroundings()))


@functools.cache
def _surroundings() -> tuple[Any, ...]:
    """The sources of this package, and the versions of what it is built on."""
    names = "jax", "jaxlib", "numpy", "equinox", "llvmlite"
    versions = tuple(importlib.metadata.version(name) for name in names)
    return package(), versions, platform.python_version(), vectorized_loop.processor()


def _digest(parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _name(key: str, part: str) -> str:
    """The name under which a part of a program is on disk."""
    return _digest((key, part))


def _kind(aval: Any) -> Any:
    return aval.dtype.name, aval.shape, bool(aval.weak_type)


# The rules of the operation


def _apply(*args: Any, program: Program) -> list[Any]:
    return program.apply(*args)


def _run(*args: Any, program: Program) -> list[Any]:
    return jax.jit(functools.partial(_stored_p.bind, program=program))(*args)


def _shapes(*args: Any, program: Program) -> list[Any]:
    return program.out_avals()


def _differentiate(
    args: Sequence[Any], changes: Sequence[Any], *, program: Program
) -> tuple[list[Any], list[Any]]:
    moving = [not isinstance(t, Zero) for t in changes]
    both, changing = with_tangents(program.closed(), moving)
    given = [instantiate_zeros(t) for t, m in zip(changes, moving, strict=True) if m]
    made = jaxpr_as_fun(both)(*args, *given)
    results, rest = made[: len(changing)], iter(made[len(changing) :])
    return results, _filled(results, changing, rest)


def _filled(results: Sequence[Any], changing: Sequence[bool], changes: Any) -> list[Any]:
    return [
        next(changes) if c else Zero(jax.typeof(r).to_tangent_aval())
        for r, c in zip(results, changing, strict=True)
    ]


def _linearize(moving: Sequence[bool], *args: Any, program: Program) -> Any:
    if "written" not in program.known:
        return None
    moving = tuple(moving)
    saving, linear = program.saving(moving), program.linear(moving)
    made = _stored_p.bind(*args, program=saving)
    changing, given = saving.known["changing"], saving.known["given"]
    results, own = made[: len(changing)], iter(made[len(changing) :])
    residuals = [next(own) if i is None else args[i] for i in given]

    def changed(residuals: Sequence[Any], *changes: Any) -> list[Any]:
        some = [instantiate_zeros(t) for t, m in zip(changes, moving, strict=True) if m]
        return _filled(results, changing, iter(_stored_p.bind(*residuals, *some, program=linear)))

    return results, changing, residuals, changed


def _transpose(cotangents: Sequence[Any], *args: Any, program: Program) -> list[Any]:
    """Of a linear program. Others have no linear arguments."""
    on = tuple(not isinstance(c, Zero) for c in cotangents)
    n = len(args) - program.known["changes"]
    assert all(is_undefined_primal(x) == (i >= n) for i, x in enumerate(args))
    given = [c for c, o in zip(cotangents, on, strict=True) if o]
    back = _stored_p.bind(*args[:n], *given, program=program.backward(on))
    return [*[None] * n, *back]


def _batch(
    args: Sequence[Any], dims: Sequence[Any], *, program: Program
) -> tuple[list[Any], list[int]]:
    results = jax.vmap(program.apply, in_axes=tuple(dims))(*args)
    return results, [0] * len(results)


def _without_unused(used: list[bool], equation: Any) -> tuple[list[bool], Any]:
    if not any(used):
        return [False] * len(equation.invars), None
    program = equation.params["program"].of_results(tuple(used))
    read = program.known["read"]
    smaller = equation.replace(
        invars=[v for v, r in zip(equation.invars, read, strict=True) if r],
        outvars=[v for v, u in zip(equation.outvars, used, strict=True) if u],
        params=equation.params | {"program": program},
    )
    return read, smaller


def _lowering(ordinary: Callable[..., Any]) -> Callable[..., Any]:
    def lower(context: Context, *args: Value, program: Program) -> Any:
        module = program.module() if available() else None
        if module is None:
            return ordinary(context, *args, program=program)
        return call_of_module(context, module, args)

    return lower


define_stored(
    _stored_p,
    apply=_apply,
    run=_run,
    shapes=_shapes,
    differentiate=_differentiate,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    without_unused=_without_unused,
    lowering=_lowering,
)
