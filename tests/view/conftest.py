"""What tests of pages share: a browser, Chromium without a display."""

import os
import shutil

import pytest

BROWSER = shutil.which("chromium")
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    # Three dimensions without a graphics card.
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
)


@pytest.fixture(scope="session")
def browser():
    """A browser; without one a test fails where it must run, in CI, and is skipped elsewhere."""
    if BROWSER is None and "CI" not in os.environ:
        pytest.skip("there is no chromium on the PATH")
    assert BROWSER is not None, "there is no chromium on the PATH; install it"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=list(ARGUMENTS))
        yield browser
        browser.close()
