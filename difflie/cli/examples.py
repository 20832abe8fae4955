"""`difflie examples`: the machines and configurations that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from ..identify import example_logs
from ..io import examples as shipped
from .output import say


def examples(
    action: Annotated[Literal["list", "copy", "log"], tyro.conf.Positional] = "list",
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = None,
    out: Path = Path("."),
) -> None:
    """List the machines and configurations that come with difflie, or copy one to change it.

    Args:
        action: `list`, `copy NAME` for a configuration with the files that it names, or `log NAME`
            for a log of a machine, simulated with numbers that differ from those of its file.
        name: of the configuration to be copied, or of the machine.
        out: the folder for the copies, or for the log.
    """
    if action == "list":
        if name is not None:
            raise ValueError(f"`difflie examples list` takes no name; `copy {name}` copies it")
        _list()
    elif name is None:
        raise ValueError(f"`difflie examples {action}` needs a name; `difflie examples` lists them")
    elif action == "log":
        say(f"wrote {example_logs.write(name, out)}")
    else:
        copies = shipped.copy(name, out)
        for copy in copies:
            say(f"wrote {copy}")
        say(f"Next: {shipped.command(copies[0])}")


def _list() -> None:
    say('Machines, in Python dl.examples.path("NAME"), in files "package:NAME":')
    for name in shipped.machines():
        say(f"  {name}")
    say("\nConfigurations, `difflie examples copy NAME` copies one:")
    given = shipped.configurations()
    width = max(map(len, given), default=0)
    for name, sentence in given.items():
        say(f"  {name:{width}}  {sentence}")
    say("\nMachines with a simulated log, `difflie examples log NAME` writes it:")
    for name in example_logs.names():
        say(f"  {name}")
