"""`help(dl.X)` of every public name: a sentence, its arguments, their shapes, and units.

An argument or field is told where the docstring names it, or that of a name to which it refers, as
in "path as of `Spring`"; where its annotation has a shape, or is a class of this package; or where
its field declares a unit or a shape by `number`. The shape of an array follows its name, "q (nq,)",
if it is not in its annotation or declaration; () and "scalar" are shapes, too. A text with numbers
names a unit, or says "unit": that there is none, or whose it is.
"""

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any

from public_names import public

import difflie as dl
from difflie.system.fields import declared

ROOMS = (
    *("groups", "system", "dynamics", "forces", "constraints", "parameters", "io", "integrators"),
    *("quantities", "simulate", "identify", "control", "sweep", "view"),
)
SHAPE = r"\((?:\.\.\.|(?:\.\.\.|\*?\w[\w +*/-]*),[^()]*)?\)"
SHAPED = rf"(?:(?!\. |; ).){{0,250}}?(?:{SHAPE}|\bscalars?\b|\bnumbers?\b|\(s\))"
REFERENCE = r"(?:\bas|\bas (?:of|in|by)|\bsee|\bthose of|\bthat of|\bof)\s+`(?:[a-z]+\.)*(\w+)`"
ARRAY = r"\bArrayLike\b|(?<!\w)Array\b|\bNDArray\b|\bndarray\b"
UNIT = r"(?<![\w`])(?:rad|m|s|kg|N|J|W|Hz|A|V|SI|units?)(?![\w`])|1/s"


def doc_of(thing: Any) -> str:
    """The docstring; that which a class inherits, or gets from dataclasses, is none."""
    doc = (vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__) or ""
    return "" if doc.startswith(f"{thing.__name__}(") else inspect.cleandoc(doc)


def with_references(doc: str, docs: dict[str, str]) -> str:
    """A docstring, and those that it refers to."""
    found, new = {}, [doc]
    while new:
        words = re.findall(REFERENCE, new.pop())
        fresh = {word: docs[word] for word in words if word in docs and word not in found}
        found |= fresh
        new += fresh.values()
    return "\n".join((doc, *found.values()))


def arguments(thing: Any) -> dict[str, str]:
    """The arguments of a call, and the fields that a class itself has, with their annotations."""
    if inspect.isclass(thing) and (
        issubclass(thing, BaseException | enum.Enum) or getattr(thing, "_is_protocol", False)
    ):
        return {}
    given = inspect.signature(thing).parameters.values()
    kinds = {p.name: p.annotation for p in given if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    if dataclasses.is_dataclass(thing):
        kinds |= {f.name: f.type for f in dataclasses.fields(thing) if f.name in kinds}
        kinds |= inspect.get_annotations(thing)
    texts = {name: getattr(kind, "__forward_arg__", str(kind)) for name, kind in kinds.items()}
    return {name: kind for name, kind in texts.items() if name[0] != "_" and "ClassVar" not in kind}


def untold(thing: Any, docs: dict[str, str], classes: set[str]) -> Iterator[str]:
    """What the help of a name does not tell."""
    doc = doc_of(thing)
    if not doc.split("\n\n")[0].endswith("."):
        yield "a sentence"
    text = with_references(doc, docs).replace("\n", " ")
    numbers = declared(thing) if dataclasses.is_dataclass(thing) else {}
    of_all = "Shapes: " in doc or "each a scalar" in text
    arguments_ = arguments(thing)
    for name, kind in arguments_.items():
        about = numbers.get(name)
        shaped = "[Array" in kind or (about is not None and about.shape is not None)
        known = shaped or (about and about.unit) or classes & set(re.findall(r"\w+", kind))
        if not known and not re.search(rf"(?<![\w.]){name}\b", text):
            yield name
        is_array = about is not None or re.search(ARRAY, kind) is not None
        told = shaped or of_all or re.search(rf"(?<![\w.]){name}\b{SHAPED}", text)
        if is_array and not told:
            yield f"the shape of {name}"
    kinds = list(arguments_.values())
    if inspect.isfunction(thing):
        kinds.append(str(inspect.signature(thing).return_annotation))
        if re.search(ARRAY, kinds[-1]) and "[Array" not in kinds[-1] and not re.search(SHAPE, doc):
            yield "the shape of the result"
    has_unit = re.search(UNIT, re.sub(SHAPE, "", text)) or any(n.unit for n in numbers.values())
    if any(re.search(rf"{ARRAY}|\bfloat\b", kind) for kind in kinds) and not has_unit:
        yield "a unit"


def test_help_tells_all():
    """Guards `help` of every public function and class."""
    # Component forms are for the package's own loops.
    names = {k: v for k, v in public(ROOMS).items() if not k.endswith("_components")}
    docs = {name.rpartition(".")[2]: doc_of(thing) for name, thing in reversed(names.items())}
    classes = {name.rpartition(".")[2] for name, thing in names.items() if inspect.isclass(thing)}
    missing = {name: ", ".join(untold(thing, docs, classes)) for name, thing in names.items()}
    assert [f"{name}: {what}" for name, what in missing.items() if what] == []


def test_modules_have_docstrings():
    """Guards `help` of the modules among the names of the package."""
    modules = [thing for name in dl.__all__ if inspect.ismodule(thing := getattr(dl, name))]
    assert [
        m.__name__ for m in modules if not (m.__doc__ or "").split("\n\n")[0].endswith(".")
    ] == []


def test_methods_have_docstrings():
    """Guards the part of `help` of a class that lists its methods and properties."""
    bare = [
        f"{name}.{key}"
        for name, thing in public(ROOMS).items()
        if inspect.isclass(thing)
        for key, value in vars(thing).items()
        if key[0] != "_" and isinstance(value, property | staticmethod | classmethod | type(doc_of))
        if getattr(getattr(value, "fget", value), "__module__", "") != "difflie.deprecated"
        if not inspect.getdoc(getattr(thing, key)) or "attrgetter" in inspect.getdoc(value)
    ]
    assert bare == []
