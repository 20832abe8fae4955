"""The code in the README runs as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_readme_has_code():
    assert len(BLOCKS) == 10


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_code_runs_as_printed(number):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_pictures_exist():
    for name in re.findall(r"!\[.*?\]\((.*?)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / name).is_file()
