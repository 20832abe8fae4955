"""Printed tables keep names and numbers whole, in pipes and in narrow terminals."""

from io import StringIO

import pytest
from rich.console import Console

from difflie.view.report_terminal import print_table

NAMES = ["a_rather_long_name_of_a_joint_of_the_left_hand", "x[0]", "elbow/damping"]
HEADS = ("joint", "start", "value", "standard error", "95 % interval")
ROWS = [[name.replace("[", r"\["), *(f"{k}.23456789e-0{k}" for k in range(1, 5))] for name in NAMES]


def printed(width, terminal, words=1):
    file = StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, color_system=None)
    print_table(console, HEADS, ROWS, words)
    return file.getvalue().splitlines()


def test_in_a_pipe_each_row_is_a_line():
    """However wide it is: what reads it finds a row in a line."""
    lines = printed(80, False)
    for name in NAMES:
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.split()[1:] == [f"{k}.23456789e-0{k}" for k in range(1, 5)]
    assert any(" ".join(line.split()) == " ".join(HEADS) for line in lines)


@pytest.mark.parametrize("width", [80, 40])
def test_in_a_narrow_terminal_it_has_parts(width):
    """Each with the names, no line longer than the terminal if a name leaves room for a column."""
    lines = printed(width, True)
    for name in NAMES:
        whole = [word for line in lines if line.split()[:1] == [name] for word in line.split()[1:]]
        assert whole == [f"{k}.23456789e-0{k}" for k in range(1, 5)]
    assert "…" not in "".join(lines)
    if width == 80:
        assert max(map(len, map(str.rstrip, lines))) <= width


def test_in_a_wide_terminal_it_is_whole():
    """One table, with its head once."""
    assert sum("joint" in line.split() for line in printed(200, True)) == 1
