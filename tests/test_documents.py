"""The code in the README and in docs/ runs as printed, outside of a checkout."""

import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

import difflie

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
# Their tests look at what they come to as well.
ELSEWHERE = "sensors.md", "seeing.md"
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE]

# Each block by itself, in one process: importing jax ten times takes as long as all the rest.
RUN = """
import sys
import warnings
import jax
warnings.filterwarnings("error", message=".*without native code")
for number, block in enumerate(sys.argv[1:], 1):
    jax.config.update("jax_enable_x64", False)
    print("block", number, flush=True)
    exec(compile(block, f"block {number}", "exec"), {"__name__": "__main__"})
"""


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def check(pages: list[Path], folder: Path) -> int:
    """Runs all blocks of pages in a folder; returns how many there are."""
    found = [block for page in pages for block in blocks(page)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *found], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    printed = re.split(r"^block \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(printed) == len(found) and all(printed)
    return len(found)


@pytest.mark.slow
def test_code_of_the_readme_runs_as_printed(tmp_path):
    assert check([README], tmp_path) == 4
    assert (tmp_path / "difflie-out/fall/report.html").exists()


@pytest.mark.slow
def test_code_of_the_pages_runs_as_printed(tmp_path):
    assert check(PAGES, tmp_path) == 20


def test_the_readme_is_short():
    """It is a road; what is beside it has pages of its own."""
    assert len(README.read_text().splitlines()) <= 250
    (film,) = re.findall(r"!\[.*?\]\((.*?)\)", README.read_text())
    assert (ROOT / film).stat().st_size <= 2e6
    workflows = re.findall(
        r"^## (?:Identify|Sweep|Optimal).*?(?=^## )", README.read_text(), re.S | re.M
    )
    assert [len(w.strip().splitlines()) <= 25 for w in workflows] == [True] * 3


def test_every_page_is_listed():
    """What is not listed is not found."""
    listed = re.findall(r"\]\((\w+\.md)\)", (ROOT / "docs/README.md").read_text())
    assert sorted(listed) == sorted(
        p.name for p in (ROOT / "docs").glob("*.md") if p.name != "README.md"
    )


def test_dotted_names_of_the_pages_can_be_typed():
    """Guards against names such as those of a package which a function of its name hides."""
    wrong = []
    for page in (README, *sorted((ROOT / "docs").glob("*.md"))):
        for name in set(re.findall(r"`((?:difflie|dl)(?:\.[A-Za-z_]\w*)+)", page.read_text())):
            try:
                operator.attrgetter(name.partition(".")[2])(difflie)
            except AttributeError:
                wrong.append((page.name, name))
    assert wrong == []
