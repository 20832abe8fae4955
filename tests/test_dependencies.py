"""What the package imports is declared in pyproject.toml, and what is declared is imported."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Where the distribution has another name than the module.
DISTRIBUTION = {
    "distributed": "dask",
    "foxglove": "foxglove-sdk",
    "PIL": "pillow",
}
# Functions that import what their first argument names.
IMPORTING = "importlib.import_module", "_needed"
# What no line of Python imports: a compiled part, and readers that others load.
LOADED_BY_OTHERS = {"jaxlib", "pycollada", "pyarrow"}


def names(requirements):
    found = (re.match(r"[\w.-]+", r).group().lower().replace("_", "-") for r in requirements)
    return {name for name in found if name != "difflie"}


CORE = names(PROJECT["dependencies"])
EXTRAS = names(
    r
    for extra, rs in PROJECT["optional-dependencies"].items()
    if extra not in ("docs", "test", "collections")
    for r in rs
)


def imports(tree):
    """The modules of a file, and whether each is imported with it."""
    hidden = set()
    for node in ast.walk(tree):
        is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if is_typing or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            hidden |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in IMPORTING:
            first = node.args[0]
            if isinstance(first, ast.JoinedStr):
                first = first.values[0]
            modules = [first.value] if isinstance(first, ast.Constant) else []
        for module in modules:
            yield module.split(".")[0], id(node) not in hidden


def third_party():
    """(file, distribution, whether it is imported with the file) for each import of the package."""
    for file in sorted((ROOT / "difflie").rglob("*.py")):
        for module, at_once in imports(ast.parse(file.read_text())):
            if module and module not in sys.stdlib_module_names and module != "difflie":
                name = DISTRIBUTION.get(module, module).lower().replace("_", "-")
                yield str(file.relative_to(ROOT)), name, at_once


@pytest.mark.slow
def test_what_is_imported_is_declared():
    """No module works only because another package happens to bring it."""
    found = list(third_party())
    assert {(f, d) for f, d, at_once in found if at_once and d not in CORE} == set()
    assert {(f, d) for f, d, _ in found if d not in CORE | EXTRAS} == set()


@pytest.mark.slow
def test_what_is_declared_is_imported():
    """Nobody installs what is not used."""
    assert (CORE | EXTRAS) - {d for _, d, _ in third_party()} <= LOADED_BY_OTHERS


def test_the_sources_that_are_shipped_are_named():
    """A stray file in the root is no part of a release."""
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for path in included["targets"]["sdist"]["include"]:
        assert (ROOT / path[1:]).exists(), path
