"""The house: imports run one way, public names are explained, importing changes nothing."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import difflie as dl

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
SHAPE = re.compile(r"\((\d|n|m|rows|steps|nb|nq|nv)[^)]*\)|scalar")


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


def public() -> list[tuple[str, object]]:
    names = [(f"dl.{n}", getattr(dl, n)) for n in dir(dl) if not n.startswith("_")]
    for module in (dl.so3, dl.se3, dl.quaternion):
        names += [
            (f"{module.__name__}.{n}", f)
            for n, f in vars(module).items()
            if inspect.isfunction(f) and f.__module__ == module.__name__ and n[0] != "_"
        ]
    return [(n, f) for n, f in names if inspect.isfunction(f) or inspect.isclass(f)]


@pytest.mark.parametrize(("name", "thing"), public(), ids=lambda x: x if isinstance(x, str) else "")
def test_public_names_are_explained(name, thing):
    doc = inspect.getdoc(thing)
    assert doc, f"{name} has no docstring"
    component_form = name.endswith("_components") or name.endswith("quadratic")
    if inspect.isfunction(thing) and not component_form and inspect.signature(thing).parameters:
        assert SHAPE.search(doc), f"the docstring of {name} states no shape"


def test_importing_changes_no_global_setting():
    code = (
        "import jax, warnings; before = dict(jax.config.values); warnings.simplefilter('error');"
        "import difflie; assert dict(jax.config.values) == before;"
        "import jax.numpy as jnp; assert jnp.zeros(1).dtype == 'float32'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
