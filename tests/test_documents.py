"""The README and the pages of docs/: what they list, and that their code runs as printed."""

import ast
import operator
import re
import sys
import tomllib
from pathlib import Path

import pytest

import difflie

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BOOK = ROOT / "docs/book"
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md"))

sys.path.insert(0, str(BOOK))
import blocks  # noqa: E402


@pytest.mark.slow
def test_code_of_the_readme_runs_as_printed(tmp_path):
    """Guards what anybody runs first; the code of other pages is run by the build of the book."""
    found = blocks.blocks(README.read_text())
    done = blocks.run(found, tmp_path)
    assert [outcome.error for outcome in done] == [""] * 4
    assert all(outcome.printed for outcome in done)
    assert (tmp_path / "0/difflie-out/fall/report.html").exists()


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
    listed = re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs/README.md").read_text())
    there = {p.relative_to(ROOT / "docs").as_posix() for p in PAGES} - {"README.md"}
    assert there <= set(listed)


def test_every_name_has_an_entry():
    """Guards the reference: each name of the stub has a heading on the page that is made for it."""
    import reference

    pages = {package: reference.api(package) for package in reference.PUBLIC}
    pages["internal"] = reference.internal()
    text = "\n".join(pages.values())
    assert [n for n in difflie.__all__ if n not in pages and f"{{ #{n} }}" not in text] == []
    assert "\nforward_dynamics(system, q, v, tau, wrench=None)\n" in text
    assert set(re.findall(r"\[`dl\.(\w+)`\]", reference.index())) == set(difflie.__all__)


def test_tags_in_docstrings_are_code():
    """Guards that those of robot files do not vanish from the reference as HTML."""
    from examples_in_docstrings import with_tags

    assert with_tags("of <mimic> and `<a>`, <drake:joint type='x'>; 0 < x") == (
        "of `<mimic>` and `<a>`, `<drake:joint type='x'>`; 0 < x"
    )
    assert with_tags("    <code>\n>>> print('<b>')") == "    <code>\n>>> print('<b>')"


@pytest.mark.slow
def test_the_map_of_packages_is_that_of_the_source():
    """Guards the page on the architecture: all packages, each with imports from above it only."""
    import packages
    import way_of_a_call

    page = (ROOT / "docs/architecture.md").read_text()
    assert packages.MARK in page
    assert way_of_a_call.MARK in page
    seen = set()
    for row in packages.table().splitlines()[2:]:
        name, said, imports = (cell.strip() for cell in row.strip("|").split("|"))
        assert said.endswith(".")
        assert set(re.findall(r"`(\w+)`", imports)) <= seen
        seen.add(name)
    assert seen == {
        path.parent.name for path in Path(difflie.__file__).parent.glob("*/__init__.py")
    }


def test_every_key_of_every_table_is_told():
    """Guards the page of configuration files: what the shipped ones use is on it."""
    import toml_tables

    page = toml_tables.page()
    missing = set()
    for file in (ROOT / "configs").rglob("*.toml"):
        for name, table in tomllib.loads(file.read_text()).items():
            for row in table if isinstance(table, list) else [table]:
                if f"[{name}]" not in page:
                    missing.add(name)
                missing |= {f"{name}.{key}" for key in row if f"| `{key}` |" not in page}
    assert missing == set()
    # What a table is stands before its keys; those inside of others have a place of their own.
    assert re.findall(r"### .*\n\n+(?=\||It has no keys)", page) == []
    assert set(re.findall(r"\(#(table-\w+)\)", page)) == set(re.findall(r"{ #(.+) }", page))
    assert "| `half_sizes` |" in page


def test_what_the_page_of_errors_quotes_is_said():
    """Guards its table of sentences, each a text of the result of a motion, and its classes."""
    page = (ROOT / "docs/errors.md").read_text()
    said = []
    for file in (Path(difflie.__file__).parent / "simulate").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                said.append(
                    "".join(v.value if isinstance(v, ast.Constant) else "\0" for v in node.values)
                )
            elif isinstance(node, ast.Constant):
                said.append(str(node.value))
    rows = re.findall(
        r"^\| `(\w+|[^`|]*\s[^`|]*)` \|", page.split("## How a motion ended")[1], re.M
    )
    assert len(rows) > 10
    for row in rows:
        parts = [re.escape(part.strip()) for part in row.split("...")]
        assert any(re.search(".*".join(parts), text) for text in said), row
    for name, package in re.findall(r"^\| `(\w+)` \(`difflie\.(\w+)`\)", page, re.M):
        assert issubclass(getattr(getattr(difflie, package), name), ValueError)


def test_dotted_names_of_the_pages_can_be_typed():
    """Guards against names such as those of a package which a function of its name hides."""
    wrong = []
    for page in (README, *PAGES):
        for name in set(re.findall(r"`((?:difflie|dl)(?:\.[A-Za-z_]\w*)+)", page.read_text())):
            try:
                operator.attrgetter(name.partition(".")[2])(difflie)
            except AttributeError:
                wrong.append((page.name, name))
    assert wrong == []


def test_pages_of_papers_have_numbers():
    """Guards that each stored result is on its page, with its command, date and version."""
    import papers
    import published

    pages = papers.pages()
    assert published.names() == ["goetz", "mueller", "park-chung", "pleiades", "reuss"]
    for name in published.names():
        about = published.read(name)
        for said in (about["command"], about["date"], about["machine"]["difflie"]):
            assert said in pages[name]
        assert pages[name].count("\n| ") > 3
    assert "| star 1, x | 0.370613914 | 0.370613914 | 4.3e-11 |" in pages["pleiades"]
    assert (
        "| Table X: svmultadd(6), CF4: the zeros of the tableau are counted | 17 | 14 | -3.0e+00 |"
        in pages["park-chung"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pleiades", "park-chung"])
def test_stored_numbers_of_papers_are_those_of_today(name):
    """Guards that pages of papers do not show what the code no longer computes."""
    import published

    def same(stored, today):
        if isinstance(stored, dict):
            assert stored.keys() == today.keys()
            for key in stored:
                same(stored[key], today[key])
        elif isinstance(stored, list):
            for one, other in zip(stored, today, strict=True):
                same(one, other)
        elif isinstance(stored, float):
            # Smaller drifts are rounding.
            assert stored == pytest.approx(today, rel=1e-6, abs=1e-9)
        else:
            assert stored == today

    same(published.read(name)["results"], published.compute(name))


def test_a_sensor_of_ones_own_takes_ten_lines():
    """Guards what the page on sensors promises; the book runs it."""
    page = (ROOT / "docs/sensors.md").read_text()
    own = page[page.index("class WireLength") : page.index("\n\n\narm =")]
    assert len([line for line in own.splitlines() if line]) <= 10
