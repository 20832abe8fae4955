"""What the build of the book adds to MkDocs: pages that are made, code that is run, formulas.

Pages are Markdown as they lie in docs/. Below each block of Python stands what it printed and drew
when the build ran it; a block that fails ends the build. Formulas, $x$ and $$x$$, become MathML.
"""

from __future__ import annotations

import html
import re
import sys
import tempfile
from pathlib import Path

import blocks
import packages
import papers
import published
import reference
import toml_tables
import way_of_a_call
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Files of the project that are pages of the book, too.
BESIDE = ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
CODE = re.compile(r"<pre\b.*?</pre>|<code>([^<]*)</code>", re.DOTALL)
# Where a name may break: after a dot, a stroke, a bracket, and before a capital.
PARTS = re.compile(r"(?<=[A-Za-z0-9)\]][._/(=])(?=[A-Za-z_])|(?<=[a-z])(?=[A-Z][a-z])")
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")
PICTURES = ".png", ".svg", ".gif"

# By page, what each of its blocks came to, with its number in the book.
outcomes: dict[str, list[tuple[int, blocks.Outcome]]] = {}
work = tempfile.TemporaryDirectory()


def on_config(config) -> None:
    """Processes that are started, and mkdocstrings, import what lies here."""
    sys.path.insert(0, str(HERE))


def on_files(files: Files, config) -> Files:
    """Adds the pages and files that are made, and runs the code of all pages."""

    def add(name: str, **content) -> None:
        files.append(File.generated(config, name, **content))

    for name in BESIDE:
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        add(f"project/{name}.md".lower(), content=_moved(text, ROOT, "project"))
        for target in {(ROOT / found[2]).resolve() for found in LINK.finditer(text)}:
            if target.is_file() and _place(target).startswith("files/"):
                add(f"files/{target.name}", abs_src_path=str(target))
    for package in reference.PUBLIC:
        add(f"reference/{package}.md", content=reference.api(package))
    add("reference/internal.md", content=reference.internal())
    add("reference/names.md", content=reference.index())
    add("reference/commands.md", content=reference.commands())
    add("reference/configuration.md", content=toml_tables.page())
    for name, text in papers.pages().items():
        add(f"papers/{name}.md", content=text)
    for name, picture in published.pictures():
        add(f"papers/{name}.png", content=picture)
    add("assets/book.css", abs_src_path=str(HERE / "book.css"))
    add("assets/iframe-worker.js", abs_src_path=str(HERE / "iframe-worker.js"))
    _run_blocks(files, add)
    return files


def _run_blocks(files: Files, add) -> None:
    pages = [(f.src_uri, b) for f in files.documentation_pages() for b in _blocks(f)]
    done = blocks.run([block for _, block in pages], Path(work.name))
    ended = zip(pages, done, strict=True)
    failed = [f"{page}:\n{block}\n{o.error}" for (page, block), o in ended if o.error]
    if failed:
        raise PluginError("\n\n".join(["code of pages failed", *failed]))
    for number, ((page, _), outcome) in enumerate(zip(pages, done, strict=True)):
        outcomes.setdefault(page, []).append((number, outcome))
        for file in _shown(outcome):
            add(f"drawn/{number}-{file.name}", abs_src_path=str(file))


def _shown(outcome: blocks.Outcome) -> list[Path]:
    """The pictures of a block, and its reports, each of which has its pictures inside."""
    reports = [file for file in outcome.files if file.name == "report.html"]
    inside = {file.parent for file in reports}
    drawn = [f for f in outcome.files if f.suffix in PICTURES and f.parent not in inside]
    return [*drawn, *reports]


def _blocks(file: File) -> list[str]:
    return blocks.blocks(file.content_string)


def _moved(text: str, home: Path, folder: str) -> str:
    """A page whose links, made from `home`, are to work from a folder of the book."""
    up = "../" * len(Path(folder).parts)

    def link(found: re.Match[str]) -> str:
        target = (home / found[2]).resolve()
        inside = _place(target)
        return f"{found[1]}{up}{inside}{found[3] or ''})"

    return LINK.sub(link, text)


def _place(target: Path) -> str:
    """Where a file of the project is in the book."""
    if target.is_relative_to(ROOT / "docs"):
        return target.relative_to(ROOT / "docs").as_posix()
    if target.parent == ROOT and target.stem in BESIDE:
        return f"project/{target.stem}.md".lower()
    return f"files/{target.name}"


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Puts below each block what it came to, and leads links that leave docs/ into the book."""
    home, here = Path(page.file.src_uri).parent, page.file.src_uri
    if here.startswith("reference/"):
        page.meta["search"] = {"boost": 0.3}  # what explains is found before what lists
    up = "../" * len(home.parts)

    def link(found: re.Match[str]) -> str:
        target = (ROOT / "docs" / home / found[2]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.is_file():
            return found[0]
        inside = _place(target)
        if inside.startswith("files/") and files.get_file_from_path(inside) is None:
            files.append(File.generated(config, inside, abs_src_path=str(target)))
        return f"{found[1]}{up}{inside}{found[3] or ''})"

    results = iter(outcomes.get(here, []))

    def block(found: re.Match[str]) -> str:
        number, outcome = next(results)
        shown = [found[0]]
        if outcome.printed.strip():
            shown.append(f"```{{.text .printed}}\n{outcome.printed.rstrip()}\n```\n")
        for file in _shown(outcome):
            mark = "!" if file.suffix in PICTURES else ""
            name = file.stem.replace("_", " ") if mark else "The report that this wrote"
            shown.append(f"{mark}[{name}]({up}drawn/{number}-{file.name})\n")
        return "\n".join(shown)

    if packages.MARK in markdown:
        markdown = markdown.replace(packages.MARK, packages.table())
    if way_of_a_call.MARK in markdown:
        markdown = markdown.replace(way_of_a_call.MARK, way_of_a_call.text())
    return blocks.BLOCK.sub(block, LINK.sub(link, markdown))


def on_page_content(content: str, page, config, files) -> str:
    """Formulas as MathML, and names in code that break after a part of them."""

    def formula(found: re.Match[str]) -> str:
        text = html.unescape(found[3])
        if found[2] == "(":
            return convert(text)
        return f'<div class="formula">{convert(text, display="block")}</div>'

    def code(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        options = re.sub(r"(?<!\S)--[a-z][\w-]*", r'<span class="option">\g<0></span>', found[1])
        return f"<code>{PARTS.sub('<wbr>', options)}</code>"

    return CODE.sub(code, FORMULA.sub(formula, content))


def on_post_build(config) -> None:
    """Gives up what the code wrote, and the page of a server for what is not found."""
    work.cleanup()
    (Path(config.site_dir) / "404.html").unlink()
