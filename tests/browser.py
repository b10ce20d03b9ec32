"""Headless Chromium, and what every page must hold in it."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

for chatty in ("selenium", "urllib3"):
    logging.getLogger(chatty).setLevel(logging.WARNING)

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver (Debian: chromium-driver)"
)
# Width and colours of a page. Two of them show all four; the others are slow tests.
LOOKS = [
    (1280, "light"),
    (390, "dark"),
    pytest.param(1280, "dark", marks=pytest.mark.slow),
    pytest.param(390, "light", marks=pytest.mark.slow),
]
# What is wider than its place and neither scrolls nor says so.
_CLIPPED = """
const wide = node => node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0;
return [...document.querySelectorAll("body, body *:not(svg, svg *, select, textarea)")]
  .filter(node => wide(node) && getComputedStyle(node).display !== "inline"
    && !node.closest(".scrolls"))
  .map(node => `${node.tagName}.${node.className}: ${node.scrollWidth} of ${node.clientWidth}`);
"""


@contextlib.contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def open_page(browser: webdriver.Chrome, address: str, width: int = 1280, scheme: str = "light"):
    """Opens a page, anew, on a screen of that width, with the system's colours light or dark."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    colours = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": colours})
    browser.get("about:blank")
    browser.get_log("performance"), browser.get_log("browser")
    browser.get(address)


def check_quiet(browser: webdriver.Chrome, origin: str) -> None:
    """No error, and no request to elsewhere since the page was opened."""
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert asked
    assert not [url for url in asked if not url.startswith((origin, "data:"))]


def check_layout(browser: webdriver.Chrome) -> None:
    """Nothing is wider than its place, headings are in order, and text can be read."""
    # ResizeObserver, which marks what scrolls, is called at the end of a frame.
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert browser.execute_script(_CLIPPED) == []
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].map(node => +node.tagName[1])"
    )
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ink, paper = (
        sum(map(int, colour[4:-1].split(",")))
        for colour in browser.execute_script(
            "const style = getComputedStyle(document.body);"
            "return [style.color, style.backgroundColor]"
        )
    )
    dark = browser.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
    assert (ink - paper if dark else paper - ink) > 500
