"""The house: imports run one way, names are explained, shapes checked, settings left alone."""

import ast
import graphlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError
from public_names import public

import difflie as dl
from difflie.groups import directors

PACKAGE = Path(dl.__file__).parent
ORDER = (
    *("deprecated", "hints"),
    *("groups", "native", "solvers", "spatial", "system"),
    *("dynamics", "collision"),
    *("forces", "constraints", "parameters", "integrators", "quantities", "sensors"),
    *("io", "view", "formulations", "simulate", "identify"),
    *("control", "sweep", "reproduce", "cli"),
)
# Configurations, and what they name, lie in an installed package, too.
MODULES = sorted(
    p
    for p in PACKAGE.rglob("*.py")
    if p != PACKAGE / "__init__.py" and PACKAGE / "configs" not in p.parents
)


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path: Path) -> set[tuple[str, ...]]:
    """The modules of difflie that a file imports, `from . import x` included, without "difflie"."""
    here = ("difflie", *path.relative_to(PACKAGE).parts[:-1])
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            inner = {name for a in node.names if file_of((*module, (name := a.name))[1:])}
            modules |= {(*module, name) for name in inner}
            modules |= {module} if len(inner) < len(node.names) else set()
        elif isinstance(node, ast.Import):
            modules |= {tuple(a.name.split(".")) for a in node.names}
    return {module[1:] for module in modules if module[0] == "difflie"}


def file_of(module: tuple[str, ...]) -> Path | None:
    """The file of a module of difflie; None where it is none."""
    folder = PACKAGE.joinpath(*module)
    files = (folder.with_suffix(".py"), folder / "__init__.py")
    return next((file for file in files if file.exists()), None)


def imported_rooms(path: Path) -> set[str]:
    return {module[0] for module in imported(path) if module}


def allowed_rooms(path: Path) -> set[str]:
    if room(path) == "integrators":
        return {"deprecated", "groups", "solvers", "integrators"}
    return set(ORDER[: ORDER.index(room(path)) + 1])


@pytest.mark.slow
def test_rooms_import_only_rooms_to_their_left():
    wrong = {str(p.relative_to(PACKAGE)): imported_rooms(p) - allowed_rooms(p) for p in MODULES}
    assert {path: rooms for path, rooms in wrong.items() if rooms} == {}


@pytest.mark.slow
def test_files_import_each_other_in_one_direction():
    """Also inside functions and for annotations: a file is understood from those it imports."""
    graph = {path: {file_of(module) for module in imported(path)} - {path} for path in MODULES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the files


def test_no_file_is_long():
    """A file is read in one go."""
    lines = {str(p.relative_to(PACKAGE)): len(p.read_text().splitlines()) for p in MODULES}
    assert {path: n for path, n in lines.items() if n > 600} == {}


# Who compiles: passes along trees, loops over time, and problems with loops of their own. `solvers`
# and `simulate/adjoint` besides make what a function closes over explicit.
COMPILING = (
    *("system/traverse.py", "simulate/", "control/", "solvers/root.py"),
    *("identify/internal_states.py", "identify/shooting.py"),
    # Which says what users wrote, as it is compiled in another way.
    "system/user_functions.py",
    "sweep/variants.py",
    *("reproduce/goetz/study.py", "reproduce/mechanisms/comparison.py"),
    # Which talks to the other processes of a program.
    "sweep/multi_process.py",
)


@pytest.mark.slow
def test_algorithms_do_not_know_that_they_are_compiled():
    """Native code is used by few, and through its front alone."""
    users = {}
    for path in MODULES:
        name = path.relative_to(PACKAGE).as_posix()
        if room(path) != "native" and "native" in imported_rooms(path):
            users[name] = re.findall(r"\bnative\.\w+ import|import \w*\.native\.", path.read_text())
    assert [name for name in users if not name.startswith(COMPILING)] == []
    assert {name: inside for name, inside in users.items() if inside} == {}


# Modules of jax that promise nothing; of jax.core only Tracer is documented.
UNSTABLE = ("jax._src", "jax.core", "jax.extend", "jax.interpreters", "jaxlib")


def unstable_names(path: Path) -> set[str]:
    """The names of `UNSTABLE` modules that a file imports or reads."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names |= {f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    within = {name for name in names if f"{name}.".startswith(tuple(f"{m}." for m in UNSTABLE))}
    return within - {"jax.core.Tracer"}


@pytest.mark.slow
def test_one_file_takes_what_jax_may_change():
    """Another version of jax is looked at, and mended, in one place."""
    private = PACKAGE / "native/private.py"
    assert unstable_names(private)
    found = {str(p.relative_to(PACKAGE)): unstable_names(p) for p in MODULES if p != private}
    assert {path: names for path, names in found.items() if names} == {}


def test_shapes_are_checked():
    with pytest.raises(TypeCheckError, match="rates"):
        directors.motion(jnp.zeros((4, 3)), jnp.zeros(5))


def test_importing_changes_no_global_setting():
    code = (
        "import jax, sys, warnings; before = dict(jax.config.values), [*sys.meta_path];"
        "warnings.simplefilter('error');"
        "import difflie; assert (dict(jax.config.values), [*sys.meta_path]) == before;"
        "import jax.numpy as jnp; assert jnp.zeros(1).dtype == 'float32'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# The share today; it only falls.
UNTYPED = 0.05


def test_public_signatures_are_typed():
    """Guards the share of parameters and results of public names that are Any, bare or missing."""

    def of(thing: Any) -> list[str]:
        given = inspect.signature(inspect.unwrap(thing))
        kinds = [p.annotation for p in given.parameters.values() if p.name not in ("self", "cls")]
        return [str(kind) for kind in (*kinds, given.return_annotation)]

    kinds = []
    for thing in public().values():
        methods = vars(thing).values() if inspect.isclass(thing) else (thing,)
        for method in methods:
            inner = method.fget if isinstance(method, property) else method
            inner = getattr(inner, "__func__", inner)
            own = inspect.isfunction(inner) and inner.__module__ != "difflie.deprecated"
            if own and (inner.__name__[0] != "_" or inner is thing):
                kinds += of(inner)
    bare = "Any", "tuple", "list", "dict", "Callable", "type", str(inspect.Parameter.empty)
    assert sum(kind in bare for kind in kinds) / len(kinds) < UNTYPED


def test_files_of_tests_have_different_names():
    """pytest imports them by their names alone: of two with one name it runs neither."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_files_that_a_package_names_are_there():
    """Its docstring is its map, also after a file was renamed."""
    missing = []
    for path in PACKAGE.rglob("__init__.py"):
        named = re.findall(r"`(\w+\.py)`", ast.get_docstring(ast.parse(path.read_text())) or "")
        missing += [f"{path.parent.name}: {n}" for n in named if not (path.parent / n).exists()]
    assert missing == []
