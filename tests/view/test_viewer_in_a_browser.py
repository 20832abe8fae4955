"""The viewer in a real browser."""

import io
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import difflie as dl
from difflie.cli.view import Stepper
from difflie.view.scenes import scene
from difflie.view.viewer import Machine, Settings, record, show

# The machine; beside it are the panel and a remark on drawing without a graphics card.
PLACE = (0, 150, 380, 450)
CONFIGS = Path(__file__).parent.parent.parent / "configs"


@pytest.fixture(scope="module")
def scenes():
    system = dl.load(CONFIGS / "double_pendulum.urdf")
    run = dl.simulate(system, [0.9, 0.4], [0.0, 0.0], dt=2e-3, steps=1000, save_every=10)
    return system, scene(system, run)


@pytest.fixture(scope="module")
def viewer(scenes):
    system, motion = scenes
    stepper = Stepper(system, Settings("RKMK4", 1e-3, (0.0, 0.0, -9.81)))
    machine = Machine(system, np.array([0.3, 0.2]), np.zeros(2), None, stepper)
    with show(motion, machine, browser=False) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def page(browser, viewer):
    page = browser.new_page(viewport={"width": 700, "height": 460})
    # Without, pictures become coarser for good where a computer is slow.
    page.goto(f"{viewer.address}?fixedDpr=1")
    until(lambda: coloured(picture(page)) > 0.01, page)
    yield page
    page.close()


def until(condition: Callable[[], bool], page, seconds: float = 240.0) -> None:
    """Waits until a condition holds; the seconds only end a test that has failed."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the page did not become as expected"
        rendered(page, 2)


def rendered(page, frames: int) -> None:
    """Waits until the page has drawn some more frames, however long a busy computer takes."""
    page.evaluate(
        """frames => new Promise(done => {
            const next = () => frames-- > 0 ? requestAnimationFrame(next) : done();
            next();
        })""",
        frames,
    )


def picture(page) -> np.ndarray:
    """The part of the page (h, w, 3) in which the machine is, from 0 to 255."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB").crop(PLACE)
    return np.asarray(image, int)


def coloured(pixels: np.ndarray) -> float:
    """The share of pixels that have a colour, as bodies have and the floor has not."""
    return float((np.ptp(pixels, axis=-1) > 20).mean())


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """The share of pixels in which two pictures differ."""
    return float((np.abs(a - b).max(axis=-1) > 25).mean())


def still(page) -> np.ndarray:
    """The picture once it stays as it is over many frames: a page fades in."""
    seen = [picture(page)]

    def settled() -> bool:
        rendered(page, 15)
        seen.append(picture(page))
        return len(seen) > 3 and all(apart(seen[-1], seen[-k]) == 0.0 for k in (2, 3, 4))

    until(settled, page)
    return seen[-1]


@pytest.mark.slow
def test_a_slider_moves_a_link_and_back(page, viewer):
    """The link is elsewhere in the picture at another coordinate, and back at the old one."""
    page.get_by_role("tab", name="Joints").click()
    before = still(page)

    # By keys, again and again: what the page shows may be made anew until it is complete, and
    # then has another place, and no focus.
    def raised() -> bool:
        page.get_by_role("slider").first.focus()
        page.keyboard.press("End")
        rendered(page, 5)
        return viewer.live.q[0] > 0.5

    until(raised, page)
    until(lambda: apart(before, picture(page)) > 0.02, page)
    page.get_by_role("button", name="Reset").click()
    until(lambda: np.array_equal(viewer.live.q, [0.3, 0.2]), page)
    until(lambda: apart(before, picture(page)) < 0.002, page)


@pytest.mark.slow
def test_playback_advances_and_pauses(page, viewer):
    """The motion and its time go on until it is paused."""
    page.get_by_role("tab", name="Motion").click()
    before = picture(page)
    page.get_by_role("button", name="Play").click()
    until(lambda: viewer.playback.clock.time > 0.4, page)
    until(lambda: apart(before, picture(page)) > 0.02, page)
    page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer.playback.clock.playing, page)
    shown = float(page.get_by_role("slider").first.get_attribute("aria-valuenow") or 0)
    assert shown > 0
    first = still(page)
    rendered(page, 20)
    assert apart(first, picture(page)) < 0.002


@pytest.mark.slow
def test_a_body_is_dragged_while_it_is_simulated(page, viewer):
    """Shift and the mouse pull at a body; it comes towards the mouse, and is let go."""
    page.get_by_role("tab", name="Live").click()
    page.get_by_role("button", name="Reset").click()
    shown = still(page)
    rows, columns = np.nonzero(np.ptp(shown, axis=-1) > 20)
    lowest = rows > np.quantile(rows, 0.8)
    x, y = PLACE[0] + np.median(columns[lowest]), PLACE[1] + np.median(rows[lowest])
    page.get_by_role("button", name="Start").click()
    until(lambda: viewer.live.t > 0.05, page)
    page.get_by_role("button", name="Reset").click()
    until(lambda: viewer.live.t == 0, page)
    page.keyboard.down("Shift")
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(1, 6):
        page.mouse.move(x + 24 * k, y - 4 * k)
    until(lambda: viewer.live.settings.pull is not None, page)
    page.get_by_role("button", name="Start").focus()
    page.keyboard.press("Enter")
    until(lambda: viewer.live.t > 0.5, page)
    pulled = viewer.live.settings.pull
    page.mouse.up()
    page.keyboard.up("Shift")
    until(lambda: viewer.live.settings.pull is None, page)
    assert pulled.body in ("upper", "lower")
    page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer.live.running, page)


@pytest.mark.slow
def test_a_recording_plays_from_a_file_without_a_network(browser, scenes, tmp_path):
    """The file asks for nothing else, shows the machine, and moves it."""
    path = record(scenes[1], tmp_path / "motion.html")
    context = browser.new_context(viewport={"width": 480, "height": 420}, offline=True)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    until(lambda: coloured(picture(page)) > 0.01, page)
    before = picture(page)
    until(lambda: apart(before, picture(page)) > 0.01, page)
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
