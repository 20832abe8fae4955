"""The command line: `difflie demo`, `run`, `control` and others, one file for each command.

The file of a command is imported when the command is called, so that the help takes no time.
"""

from __future__ import annotations

import ast
import contextvars
import importlib
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import tyro

import difflie

from ..solvers.few_cores import avoid_a_deadlock, avoid_waiting_threads
from .interrupts import STATUS, Interrupts

COMMANDS = "demo", "run", "view", "control", "identify", "sweep", "reproduce", "examples", "docs"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; an invalid input ends it with one sentence and exit status 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"difflie {difflie.__version__}")
        return
    avoid_waiting_threads()
    avoid_a_deadlock()
    warnings.showwarning = _show_warning
    try:
        with Interrupts():
            # What reports say of the command holds until it ends.
            contextvars.copy_context().run(_run, arguments)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _end("[bold red]error:[/] " + str(error).replace("[", r"\["), 2)
    except KeyboardInterrupt:
        _end("stopped", STATUS)


def _run(arguments: Sequence[str]) -> None:
    # tyro's completion options need all commands.
    called = COMMANDS if arguments and arguments[0].startswith("--tyro") else arguments[:1]
    tyro.extras.subcommand_cli_from_dict(
        {name: _command(name, arguments) if name in called else _listed(name) for name in COMMANDS},
        prog="difflie",
        description="Differentiable multibody dynamics. `difflie --version` says which version.",
        args=arguments,
    )


def _command(name: str, arguments: Sequence[str]) -> Callable[..., None]:
    """The function of a command, after setting up jax for it, and what reports say of it."""
    import jax

    from ..io.results import COMMAND

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_logging_level", "CRITICAL")  # no alarms of the compiler
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        # Where there is a folder for compiled programs: those of a command are short and many.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
    COMMAND.set(shlex.join(("difflie", *arguments)))
    return getattr(importlib.import_module(f".{name}", __name__), name)


def _listed(name: str) -> Callable[[], None]:
    """A stand-in for a command in the overall help: its docstring, without importing it."""

    def listed() -> None:
        pass

    functions = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")).body
    (function,) = (f for f in functions if isinstance(f, ast.FunctionDef) and f.name == name)
    listed.__doc__ = ast.get_docstring(function)
    return listed


def _end(message: str, status: int) -> None:
    from rich.console import Console

    Console(stderr=True).print(message, highlight=False, soft_wrap=True)
    raise SystemExit(status) from None


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"warning: {message}", file=sys.stderr)
