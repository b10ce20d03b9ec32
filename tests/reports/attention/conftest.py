"""The page of the toy model's attention, in headless Chromium: no error, and no request."""

import json

import pytest
from browser import CHROMIUM, DRIVER, chromium
from fairseq_commands import run
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


@pytest.fixture(scope="session")
def report(toy, made_once):
    """A folder with the page, the weights and figures."""

    def make(folder):
        run(
            *("transformer-plugin", "attention", "--data", toy / "data-bin", "--cpu"),
            *("--path", toy / "checkpoints/averaged.pt", "--sentences", 5),
            *("--output", folder / "report.html", "--weights", folder / "weights.npz"),
            *("--figure", "encoder-decoder:2:all", "--figure", "encoder:1:1,2"),
        )

    return made_once("attention", make)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """The browser. What it downloads goes to browser.downloads."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no chromium and chromedriver (Debian: chromium-driver)")
    with chromium() as driver:
        driver.downloads = tmp_path_factory.mktemp("downloads")
        driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior",
            {"behavior": "allow", "downloadPath": str(driver.downloads)},
        )
        yield driver


class Page:
    """The opened page."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address

    def open(self, choices="", width=1280, theme="light"):
        """Opens it with choices in its address, as on a screen of that width and theme."""
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 1400, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}#{choices}")
        WebDriverWait(self.browser, 20).until(
            lambda _: self.script("return document.documentElement.dataset.opened")
        )

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, place):
        return self.one(f"#{place}").text

    def choose(self, name, value):
        self.one(f"input[name='{name}'][value='{value}']").click()

    def texts(self, selector):
        """The texts of all these elements, also of those that are scrolled out of sight."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map(node => node.textContent)",
            selector,
        )

    def cells(self):
        """The weights that the heat map says, row by row; None where masked."""
        said = self.script(
            "return [...document.querySelectorAll('#picture tbody td')]"
            ".map(cell => cell.getAttribute('aria-label'))"
        )
        return [None if weight == "masked" else float(weight) for weight in said]

    def wait(self, condition):
        return WebDriverWait(self.browser, 10).until(lambda _: condition())


@pytest.fixture
def page(browser, report):
    """The page as it opens on a desk. At the end: no error, no request."""
    address = (report / "report.html").as_uri()
    browser.get("about:blank")
    browser.get_log("performance"), browser.get_log("browser")
    opened = Page(browser, address)
    opened.open()
    yield opened
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"].split("#")[0]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in asked if not url.startswith(("data:", "blob:", "about:"))} <= {address}
