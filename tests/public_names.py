"""The functions and classes that users and other rooms import."""

import ast
import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import difflie as dl
from difflie.groups import directors

ROOMS = (
    *("groups", "system", "dynamics", "forces", "constraints", "parameters", "io"),
    *("integrators", "quantities", "formulations", "simulate", "simulate.adjoint", "identify"),
    *("control", "sweep"),
)


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


def public(rooms: tuple[str, ...] = ROOMS) -> dict[str, Any]:
    """The functions and classes of the package and of these rooms, each under its first name."""
    modules = [importlib.import_module(f"difflie.{room}") for room in rooms]
    names: dict[Any, str] = {}
    for module in (dl, *modules, dl.so3, dl.se3, dl.quaternion, directors, dl.examples):
        for name in exported(module):
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                names.setdefault(thing, f"{module.__name__}.{name}")
    return {name: thing for thing, name in names.items()}
