"""What a release needs: one version, one address, a licence, a description with whole links."""

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]
ADDRESS = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"]


def test_the_version_is_the_same_everywhere():
    """The changelog explains the version that is built, and the citation names it with its day."""
    citation = (ROOT / "CITATION.cff").read_text()
    heading = re.search(r"^## \[(\d.*?)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert heading is not None and heading[1] == VERSION
    assert f"\nversion: {VERSION}\n" in citation and f"\ndate-released: {heading[2]}\n" in citation


def test_the_address_stands_in_one_place():
    """It can be changed in pyproject.toml; the citation, which nothing generates, has the same."""
    assert f"\nrepository-code: {ADDRESS}\n" in (ROOT / "CITATION.cff").read_text()
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout: the files of the project are not known")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = []
    for name in tracked.stdout.splitlines():
        data = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if ADDRESS.removeprefix("https://").encode() in data:
            found.append(name)
    assert found == ["CITATION.cff", "pyproject.toml"]


def test_the_description_has_no_links_into_the_checkout():
    """Of the package as it was built: pictures and links of the README work on a package index."""
    metadata = importlib.metadata.metadata("difflie")
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Version"] == VERSION
    assert f"Homepage, {ADDRESS}" in metadata.get_all("Project-URL", [])
    description = metadata["Description"]
    links = re.findall(r"\[[^\]]*\]\(([^)]+)\)", description)
    assert f"{ADDRESS}/blob/v{VERSION}/SECURITY.md" in links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_links_of_documents_lead_somewhere():
    """A file that was moved or renamed is found."""
    missing = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\[[^\]]*\]\((?![a-z]+:|#)([^)#]+)", page.read_text()):
            made = re.match(r"(\.\./)?(reference|papers)/", link)  # by the build of the book
            if not made and not (page.parent / link).exists():
                missing.append(f"{page.name}: {link}")
    assert missing == []
