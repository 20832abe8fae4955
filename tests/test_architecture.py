"""The house: imports run one way, public names are explained, importing changes nothing."""

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import difflie as dl
from difflie.groups import directors

PACKAGE = Path(dl.__file__).parent
ORDER = (
    *(
        "groups",
        "native",
        "solvers",
        "spatial",
        "system",
        "dynamics",
        "forces",
        "constraints",
        "io",
    ),
    *("integrators", "result", "adjoint", "formulations", "simulate", "identify", "view"),
    *("run", "study", "demo", "reproduce", "cli"),
)
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")
ROOMS = (
    *("groups", "system", "dynamics", "forces", "constraints", "io"),
    *("integrators", "adjoint", "formulations", "identify"),
)
# A shape as Python writes it, such as (3,), (m + 1, nv) and (), or a word for the last.
_SIZE = r"(?:\d+|[a-z]|n[bqv]|n_\w+|rows|rank|steps|size|point_size|tangent_size)(?:[ +*-]+\w+)?"
SHAPE = re.compile(rf"\((?:{_SIZE}|\.\.\.),(?: (?:{_SIZE}|\.\.\.),?)*\)|(?<=\s)\(\)|\bscalars?\b")
_UNIT = r"(?:m|s|kg|rad|N|J|V|A)\b"
UNIT = re.compile(rf"\b(?:in|and|or) {_UNIT}|\b{_UNIT}[ /]{_UNIT}|\bSI\b|\bunits?\b")
# What takes and gives no arrays, or whole systems only.
WITHOUT_ARRAYS = {
    "difflie.constraints.bilateral",
    "difflie.formulations.formulated",
    "difflie.formulations.formulation_of",
    "difflie.integrators.by_name",
    "difflie.io.write_urdf",
}
# On components, any numbers of any one shape; the array front of each says what they are.
COMPONENT_FORMS = ("_components", ".quadratic")


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    """The rooms of difflie a file imports, `from . import x` included."""
    here = ("difflie", *path.relative_to(PACKAGE).parts[:-1])
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            targets = [module] if len(module) > 1 else [(*module, a.name) for a in node.names]
        elif isinstance(node, ast.Import):
            targets = [tuple(a.name.split(".")) for a in node.names]
        else:
            continue
        rooms |= {t[1] for t in targets if len(t) > 1 and t[0] == "difflie"}
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_to_its_left(path):
    mine = room(path)
    allowed = set(ORDER[: ORDER.index(mine) + 1])
    if mine == "integrators":
        allowed = {"groups", "solvers", "integrators"}
    assert imported_rooms(path) <= allowed


def exported(module: ModuleType) -> list[str]:
    """The names that a module defines, or imports as themselves to hand them on."""
    path = inspect.getsourcefile(module)
    names = []
    for node in ast.parse(Path(path or "").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names += [a.name for a in node.names if a.asname == a.name]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
            names.append(node.name)
    return names


def public() -> dict[str, Any]:
    """The functions and classes that users and other rooms import, each under its first name."""
    rooms = [importlib.import_module(f"difflie.{room}") for room in ROOMS]
    names: dict[Any, str] = {}
    for module in (dl, *rooms, dl.so3, dl.se3, dl.quaternion, directors):
        for name in exported(module):
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                names.setdefault(thing, f"{module.__name__}.{name}")
    return {name: thing for thing, name in names.items()}


PUBLIC = public()


def documentation(thing: type) -> str:
    """The docstrings of a class, of its bases, and of the classes that these name in backticks."""
    docs = [vars(c).get("__doc__") or "" for c in thing.__mro__ if c.__module__[:7] == "difflie"]
    named = {name for doc in docs for name in re.findall(r"`(\w+)`", doc)}
    others = [t for t in PUBLIC.values() if inspect.isclass(t) and t.__name__ in named]
    return "\n".join([*docs, *(inspect.getdoc(t) or "" for t in others)])


def numbers(thing: type) -> list[str]:
    """The fields of a class that hold numbers; those of a named tuple are its annotations."""
    if dataclasses.is_dataclass(thing):
        fields = {f.name: f.type for f in dataclasses.fields(thing)}
    else:
        fields = getattr(thing, "_fields", ()) and thing.__annotations__
    kinds = {name: str(kind) for name, kind in dict(fields).items()}
    held = re.compile(r"^Any$|\bAxis\b|\bfloat\b|\bArray\b|\bndarray\b")
    return [n for n, kind in kinds.items() if held.search(kind) and "Callable" not in kind]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_explained(name):
    thing = PUBLIC[name]
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    # A dataclass without a docstring gets its signature for one.
    assert doc and not doc.startswith(f"{thing.__name__}("), f"{name} has no docstring"
    if inspect.isclass(thing):
        held, doc = numbers(thing), documentation(thing)
        unsaid = [n for n in held if not re.search(rf"\b{n}\b", doc)]
        assert not unsaid, f"the docstring of {name} says nothing of {', '.join(unsaid)}"
        about_arrays = bool(held)
    else:
        about_arrays = name not in WITHOUT_ARRAYS and not name.endswith(COMPONENT_FORMS)
    if about_arrays:
        assert SHAPE.search(doc), f"the docstring of {name} states no shape"
        around = inspect.getdoc(sys.modules[thing.__module__]) or ""
        assert UNIT.search(doc + around), f"the docstring of {name} and its file state no unit"


def test_importing_changes_no_global_setting():
    code = (
        "import jax, warnings; before = dict(jax.config.values); warnings.simplefilter('error');"
        "import difflie; assert dict(jax.config.values) == before;"
        "import jax.numpy as jnp; assert jnp.zeros(1).dtype == 'float32'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
