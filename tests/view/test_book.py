"""The book is built, with the code of all of its pages, and opens from files without a network."""

import html
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of the built book; a dead link or a block of code that fails ends the build."""
    folder = tmp_path_factory.mktemp("book")
    # Not quiet: mkdocs then counts no warnings, and a dead link would pass.
    run = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    run += ["--config-file", "docs/book/mkdocs.yml", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(run, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return folder


@pytest.mark.slow
def test_the_book_opens_without_a_network(book, browser):
    """Guards that nothing is asked of a server, that search finds names in code, and widths."""
    context = browser.new_context(offline=True, viewport={"width": 400, "height": 800})
    page = context.new_page()
    asked, faults = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    pages = sorted(book.rglob("*.html"))
    assert len(pages) > 40
    for file in pages:
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, file.name
    page.set_viewport_size({"width": 1300, "height": 900})
    page.goto((book / "index.html").as_uri())
    page.locator("input.md-search__input").fill("mass_matrix")
    page.locator(".md-search-result__item").nth(5).wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert faults == []
    context.close()


@pytest.mark.slow
def test_films_of_the_gallery_are_small_and_move(book):
    """Guards that a machine of the gallery is not left without a film, or with one that stands."""
    page = (book / "gallery.html").read_text(encoding="utf-8")
    films = re.findall(r'src="(drawn/[^"]+\.gif)"', page)
    assert len(films) >= 12
    for film in films:
        assert (book / film).stat().st_size < 300_000, film
        with Image.open(book / film) as gif:
            frames = []
            for k in (0, gif.n_frames // 2, gif.n_frames - 1):
                gif.seek(k)
                frames.append(np.asarray(gif.convert("RGB"), int))
        for one, other in itertools.pairwise(frames):
            assert (np.abs(one - other).max(axis=-1) > 60).sum() > 300, film


def printed(book, page):
    """What the blocks of a page printed, a text for each."""
    text = (book / page).read_text(encoding="utf-8")
    found = re.findall(r'<div class="[^"]*\bprinted\b[^"]*">(.*?)</div>', text, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", block)) for block in found]


@pytest.mark.slow
def test_every_block_of_the_readme_prints(book):
    """Guards what anybody runs first; a block that fails ends the build."""
    said = printed(book, "project/readme.html")
    assert [bool(text.strip()) for text in said] == [True] * 4


@pytest.mark.slow
def test_a_sensor_of_ones_own_is_found(book):
    """Guards the numbers on the page of sensors: the anchor and the bias, within their errors."""
    (said,) = printed(book, "sensors.html")
    rows = re.findall(r"wire/\w+ +([-\d.]+) \+- ([\d.]+) m", said)
    values, errors = np.array(rows, float).T
    assert (np.abs(values - [1.1, -0.2, 0.1, 0.1]) < 4 * errors + 1e-4).all()


@pytest.mark.slow
def test_pictures_are_drawn_and_cameras_found(book):
    """Guards the page on seeing: its animation, and the pose of its camera."""
    (film,) = re.findall(r'src="(drawn/[^"]+-arm\.gif)"', (book / "seeing.html").read_text())
    assert (book / film).stat().st_size > 10_000
    assert float(printed(book, "seeing.html")[-1].split()[-1]) < 1e-12


@pytest.mark.slow
def test_the_way_of_a_call_is_drawn(book):
    """Guards the page on the architecture: a call is followed through the package as installed."""
    text = (book / "architecture.html").read_text(encoding="utf-8")
    assert all(file in text for file in ("native/cpu/functions.py", "dynamics/aba.py"))
