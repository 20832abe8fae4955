"""The page that lists the keys of JSON results, beside the dataclasses that hold them."""

import re
import types
import typing
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from numpy.typing import NDArray

from difflie.cli.demo import DemoResults
from difflie.cli.sweep import SweepResults
from difflie.control.report import ControlResults
from difflie.identify.report import ArmResults, FitResults
from difflie.reproduce import REPRODUCTIONS
from difflie.reproduce.goetz.tables import GoetzResults
from difflie.reproduce.long_run import LongRunResults
from difflie.reproduce.mechanisms.comparison import MechanismsResults
from difflie.reproduce.mueller.comparison import MuellerResults
from difflie.reproduce.park_chung.comparison import ParkChungResults
from difflie.reproduce.pleiades import PleiadesResults
from difflie.reproduce.reuss import ReussResults
from difflie.simulate.report import SimulationResults
from difflie.sweep.chunks import Estimate

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
RESULTS = {
    "difflie run": SimulationResults,
    "difflie control": ControlResults,
    "difflie identify": FitResults,
    "difflie identify, of an arm": ArmResults,
    "difflie sweep": SweepResults,
    "difflie sweep --dry-run": Estimate,
    "difflie demo": DemoResults,
    "difflie reproduce goetz": GoetzResults,
    "difflie reproduce long-run": LongRunResults,
    "difflie reproduce mechanisms": MechanismsResults,
    "difflie reproduce mueller": MuellerResults,
    "difflie reproduce park-chung": ParkChungResults,
    "difflie reproduce pleiades": PleiadesResults,
    "difflie reproduce reuss": ReussResults,
}
WORDS = {
    float: "number",
    int: "integer",
    bool: "true or false",
    str: "text",
    NDArray: "numbers",
    list[float]: "numbers",
    Sequence[float]: "numbers",
    list[NDArray]: "lists of numbers",
    list[dict[str, float]]: "list of numbers by name",
    list[str]: "texts",
    dict[str, str]: "texts by name",
    dict[str, int]: "integers by name",
    dict[str, float]: "numbers by name",
}


def keys(kind, before=""):
    """Each key of a dataclass as the page writes it, with the word for its type."""
    hints = typing.get_type_hints(kind)
    for field in fields(kind):
        key, hint, null = before + field.name.rstrip("_"), hints[field.name], ""
        if isinstance(hint, types.UnionType):
            (hint,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
            null = " or null"
        parts = typing.get_args(hint)
        if parts and is_dataclass(parts[-1]):
            yield from ([(key, f"list{null}")] if null else [])
            yield from keys(parts[-1], f"{key}{'[]' if len(parts) == 1 else '.NAME'}.")
        elif is_dataclass(hint):
            # What is below a table that is null is not there.
            yield from ([(key, f"table{null}")] if null else [])
            yield from keys(hint, f"{key}.")
        else:
            yield key, WORDS[hint] + null


def listed():
    """By command, the keys of the page with their types."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if heading := re.match(r"## `(.*)`$", line):
            found[heading[1]] = rows = []
        elif row := re.match(r"\| `(.*?)` \| (.*?) \| .+ \|$", line):
            rows.append((row[1], row[2]))
    return found


@pytest.mark.parametrize("command", RESULTS)
def test_the_page_lists_the_keys(command):
    """Guards the schema: a key that is renamed, added or removed is so on the page, too."""
    assert listed()[command] == list(keys(RESULTS[command]))


def test_every_command_is_on_the_page():
    assert set(listed()) == set(RESULTS)
    assert {f"difflie reproduce {name}" for name in REPRODUCTIONS} <= set(RESULTS)
