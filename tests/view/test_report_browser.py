"""Pages of results in a browser: pictures that are enlarged, and widths of phones."""

import pytest

from difflie.view.figures import figure
from difflie.view.report import Figure, Report, Section, Table, Worked
from difflie.view.report_page import write_html


@pytest.mark.slow
def test_pictures_are_enlarged(browser, tmp_path):
    """Guards keys, click and drag on an enlarged picture, and that a wide table moves alone."""
    names = [f"a column {k}" for k in range(30)]
    sections = [
        Section("Tall", [Figure(lambda: figure(size=(4.0, 9.0))[0], "tall.png")], look="it"),
        Section("Wide", [Table(names, [[1.0] * len(names)])]),
    ]
    origin = {"command": "x" * 200}
    path = write_html(Report("Title", "Done.", Worked.YES, ["Fine."], sections, origin), tmp_path)
    page = browser.new_page(viewport={"width": 400, "height": 700})
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.locator("a.picture").focus()
    page.keyboard.press("Enter")
    image = page.locator("dialog img")
    page.wait_for_function("document.querySelector('dialog img').offsetWidth > 0")

    def width():
        return image.evaluate("image => image.offsetWidth")

    assert image.get_attribute("alt") == "Tall" and width() == 400
    page.keyboard.press("0")
    assert width() < 300  # all of it
    page.mouse.click(200, 300)
    large = width()
    assert large == pytest.approx(1200, abs=20)
    stage = page.locator(".stage")
    before = stage.evaluate("stage => stage.scrollTop")
    page.mouse.move(200, 300)
    page.mouse.down()
    page.mouse.move(200, 250)
    page.mouse.up()
    assert stage.evaluate("stage => stage.scrollTop") == before + 50 and width() == large
    page.keyboard.press("-")
    assert width() < large
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible() and not faults


def test_a_page_is_read_on_a_phone_at_night(browser, tmp_path):
    """Words in pictures are not shrunk, names of rows stay, and white pictures are dimmed."""
    names = [f"a column {k}" for k in range(30)]
    sections = [
        Section("Wide", [Table(names, [[1.0] * len(names)])], look="it"),
        Section("Words", [Figure(lambda: figure()[0], "words.png")]),
        Section("None", [Figure(lambda: figure()[0], "none.png", words=False)]),
    ]
    path = write_html(Report("Title", "Done.", Worked.YES, ["Fine."], sections), tmp_path)
    page = browser.new_page(viewport={"width": 400, "height": 700}, color_scheme="dark")
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    words, none = (page.locator("a.picture img").nth(k) for k in range(2))
    assert words.evaluate("i => i.offsetWidth") > 600 > 400 > none.evaluate("i => i.offsetWidth")
    assert "brightness(0.85)" in words.evaluate("i => getComputedStyle(i).filter")
    first = page.locator(".table td").first
    before = first.bounding_box()
    page.locator(".table").evaluate("table => table.scrollLeft = 200")
    assert first.bounding_box() == before
