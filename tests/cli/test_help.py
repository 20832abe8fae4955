"""What help and messages tell users to type can be typed."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import difflie as dl
from difflie.cli import COMMANDS, main
from difflie.system import installation

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.slow
def test_help_leads_to_documentation_that_can_be_shown():
    """Each command in backquotes in the help of a command, with Python's own pager switched off."""
    text = "".join(
        " ".join((ROOT / "difflie" / "cli" / f"{name}.py").read_text().split()) for name in COMMANDS
    )
    found = set(re.findall(r"`(python -[^`]+)` shows", text.replace('\\"', '"')))
    assert len(found) == 4
    for command in found:
        ended = subprocess.run(
            [sys.executable, *shlex.split(command)[1:]], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0 and "in TOML files" in ended.stdout, command


def test_the_version_is_that_of_the_package(capsys):
    """In Python and on the command line."""
    main(["--version"])
    assert capsys.readouterr().out == f"difflie {dl.__version__}\n"
    assert dl.__version__ == PROJECT["version"]


def test_messages_name_extras_that_are_there():
    """All that messages call an extra, and the packages of each."""
    texts = [path.read_text() for path in (ROOT / "difflie").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"\bextra\(['\"](\w+)['\"]\)", text)}
    extras = PROJECT["optional-dependencies"]
    assert len(named) > 5 and named <= extras.keys()
    assert not any("pip install 'difflie[" in text for text in texts)
    said = installation.extra("mjcf")
    assert "extra 'mjcf'" in said and "'.[mjcf]'" in said and "'mujoco>=3'" in said


@pytest.mark.parametrize("required", [["zarr>=3; extra == 'a'", "difflie[a]; extra == 'b'"], None])
def test_extras_may_stand_for_others(required, monkeypatch):
    """And nothing fails where the package is not installed."""
    monkeypatch.setattr(installation.importlib.metadata, "requires", lambda name: required)
    assert ("'zarr>=3'" in installation.extra("b")) == (required is not None)
