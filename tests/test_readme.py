"""The code in the README runs as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)

# Each block by itself, in one process: importing jax ten times takes as long as all the rest.
RUN = """
import sys
import warnings
import jax
warnings.filterwarnings("error", message=".*without native code")
for number, block in enumerate(sys.argv[1:], 1):
    jax.config.update("jax_enable_x64", False)
    print("block", number, flush=True)
    exec(compile(block, f"README, block {number}", "exec"), {"__name__": "__main__"})
"""


@pytest.mark.slow
def test_code_runs_as_printed():
    done = subprocess.run(
        [sys.executable, "-c", RUN, *BLOCKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = re.split(r"^block \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(printed) == len(BLOCKS) == 20 and all(printed)


def test_pictures_exist():
    for name in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / name).is_file()
