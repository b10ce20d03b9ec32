"""The page in headless Chromium: every control, by pointer and keys; no error, no network."""

import io
import json
import logging
import re
import shutil
import time

import numpy as np
import pytest
from fairseq_commands import run
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

for chatty in ("selenium", "urllib3", "PIL"):
    logging.getLogger(chatty).setLevel(logging.WARNING)

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver (Debian: chromium-driver)"
)


@pytest.fixture(scope="module")
def report(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run(
        *("transformer-plugin", "attention", "--data", toy / "data-bin", "--cpu"),
        *("--path", toy / "checkpoints/averaged.pt", "--sentences", 5),
        *("--output", folder / "report.html", "--weights", folder / "weights.npz"),
        *("--figure", "encoder-decoder:2:all", "--figure", "encoder:1:1,2"),
    )
    return folder


@pytest.fixture(scope="module")
def browser():
    options = Options()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, report):
    address = (report / "report.html").as_uri()
    browser.get("about:blank")
    browser.get_log("performance"), browser.get_log("browser")
    browser.set_window_size(1200, 1400)
    browser.get(address)
    wait_until_open(browser)
    yield browser
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"].split("#")[0]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} <= {address}


def wait_until_open(browser):
    WebDriverWait(browser, 20).until(
        lambda b: b.execute_script("return document.documentElement.dataset.opened")
    )


def choose(page, name, value):
    page.find_element(By.CSS_SELECTOR, f"input[name='{name}'][value='{value}']").click()


def text(page, place):
    return page.find_element(By.ID, place).text


def colours(page):
    picture = Image.open(io.BytesIO(page.find_element(By.ID, "picture").screenshot_as_png))
    return np.asarray(picture.convert("RGB")).reshape(-1, 3)


def bluish(pixels):
    """How many are of the heat map's colour rather than grey."""
    pixels = pixels.astype(int)
    return int((pixels[:, 2] - pixels[:, 0] > 60).sum())


def test_heat_map_shows_the_models_weights(page, report):
    weights = np.load(report / "weights.npz")
    for kind, head in (("encoder", 1), ("decoder", 2), ("encoder-decoder", 3)):
        choose(page, "kind", kind)
        choose(page, "layer", 2)
        choose(page, "head", head)
        cells = page.execute_script(
            "return [...document.querySelectorAll('#picture tbody td')]"
            ".map(cell => cell.getAttribute('aria-label'))"
        )
        expected = weights[f"0/{kind}"][1, head - 1].ravel()
        assert len(cells) == expected.size
        for cell, weight in zip(cells, expected, strict=True):
            assert weight == 0 if cell == "masked" else abs(float(cell) - weight) <= 6e-4
        assert bluish(colours(page)) > 100
    assert "Encoder-decoder attention, layer 2 of 2, head 3" in text(page, "caption")


def test_it_opens_on_the_translation_with_named_axes_and_bare_words(page):
    assert text(page, "caption").startswith("Encoder-decoder attention, layer 2 of 2, mean")
    corner = page.find_element(By.CSS_SELECTOR, "#picture .axes").text
    assert corner.split("\n") == ["source →", "translation ↓"]
    pieces = "return [...document.querySelectorAll('#picture th, #alignment span')]"
    pieces += ".map(cell => cell.textContent)"
    bare = page.execute_script(pieces)
    assert not any("▁" in piece for piece in bare)
    page.find_element(By.ID, "marks").click()
    marked = page.execute_script(pieces)
    assert [piece.removeprefix("▁") or "␣" for piece in marked] == bare != marked


def test_shades_are_square_roots_of_the_weights(page):
    cells = page.execute_script(
        "return [...document.querySelectorAll('#picture tbody td')]"
        ".map(cell => [cell.getAttribute('aria-label'), cell.style.background])"
    )
    weights = [float(weight) for weight, _ in cells]
    largest = max(weights)
    for weight, (_, shade) in zip(weights, cells, strict=True):
        percent = re.search(r"([\d.]+)%", shade)
        part = float(percent[1]) / 100 if percent else 1.0  # 100 % is left out
        assert part == pytest.approx((weight / largest) ** 0.5, abs=0.03)


def test_pointing_shows_the_weight(page):
    choose(page, "kind", "encoder-decoder")
    cell = page.find_element(By.CSS_SELECTOR, "#picture tbody tr:nth-child(2) td:nth-of-type(2)")
    webdriver.ActionChains(page).move_to_element(cell).perform()
    assert cell.get_attribute("aria-label") in text(page, "readout")


def test_keys_alone_reach_everything(page):
    choose(page, "kind", "encoder-decoder")
    cells = page.find_elements(By.CSS_SELECTOR, "#picture tbody tr:first-child td")
    cells[0].send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element == cells[1]
    assert cells[1].get_attribute("aria-label") in text(page, "readout")
    kind = page.find_element(By.CSS_SELECTOR, "input[name='kind']:checked")
    kind.send_keys(Keys.ARROW_LEFT)
    assert text(page, "caption").startswith("Decoder attention")


def test_lines_and_their_threshold(page):
    choose(page, "view", "lines")
    choose(page, "head", "all")
    count = "return document.querySelectorAll('.lines line').length"
    drawn = page.execute_script(count)
    assert drawn > 0
    slider = page.find_element(By.ID, "threshold")
    page.execute_script(
        "arguments[0].value = 0.9; arguments[0].dispatchEvent(new Event('input'))", slider
    )
    assert page.execute_script(count) < drawn
    shades = {tuple(colour) for colour in colours(page)}
    assert len(shades) > 20  # pieces and shades were painted
    page.find_element(By.CSS_SELECTOR, ".lines g[role=button]").send_keys(Keys.ENTER)
    assert "→" in text(page, "readout")


def test_all_heads_side_by_side(page):
    choose(page, "head", "all")
    buttons = page.find_elements(By.CSS_SELECTOR, ".gallery button")
    assert [button.text for button in buttons] == [f"head {h}" for h in (1, 2, 3, 4)]
    time.sleep(0.2)  # the canvases are painted in the next frame
    assert bluish(colours(page)) > 100
    buttons[2].click()
    assert "head 3" in text(page, "caption")


def test_sentences_beam_and_alignment(page):
    sentence = Select(page.find_element(By.ID, "sentence"))
    assert len(sentence.options) == 5
    page.find_element(By.ID, "next").click()
    WebDriverWait(page, 5).until(lambda p: "sentence=1" in p.current_url)
    page.find_element(By.ID, "previous").click()
    WebDriverWait(page, 5).until(lambda p: "sentence=0" in p.current_url)
    sentence.select_by_index(4)
    WebDriverWait(page, 5).until(lambda p: "sentence=4" in p.current_url)
    rows = page.find_elements(By.CSS_SELECTOR, "#beam tbody tr")
    scores = [float(row.find_elements(By.TAG_NAME, "td")[1].text) for row in rows]
    assert len(rows) == 4 and scores == sorted(scores, reverse=True)
    Select(page.find_element(By.ID, "alignment-layer")).select_by_value("mean")
    page.find_elements(By.CSS_SELECTOR, "#alignment .pieces")[1].find_element(
        By.TAG_NAME, "span"
    ).click()
    assert "←" in text(page, "alignment-readout")
    assert text(page, "reference").startswith("reference")


def test_scale_colours_and_phone(page):
    page.find_element(By.ID, "whole-scale").click()
    assert text(page, "largest") == "1.000"
    background = "return getComputedStyle(document.body).backgroundColor"
    shades = []
    for theme in ("light", "dark"):
        Select(page.find_element(By.ID, "theme")).select_by_visible_text(theme)
        shades.append(page.execute_script(background))
    light, dark = (sum(map(int, shade[4:-1].split(","))) for shade in shades)
    assert dark < 150 < 600 < light
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        page.refresh()
        wait_until_open(page)
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_figures_and_size(report):
    for name in ("encoder-decoder-2-all-map", "encoder-1-1,2-lines"):
        path = report / f"report-{name}.png"
        assert np.asarray(Image.open(path).convert("RGB")).std() > 5  # not blank
        assert "<svg" in path.with_suffix(".svg").read_text()
    assert (report / "report.html").stat().st_size < 1_000_000
    assert not list(report.glob("*.partial"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--figure", "encoder:9:all"], "no layer 9"),
        (["--figure", "sideways:1:all"], "expected KIND:LAYER:HEADS"),
        (["--text", ""], "every line is empty"),
    ],
)
def test_wrong_use_says_what_to_give(toy, tmp_path, options, message):
    done = run(
        *("transformer-plugin", "attention", "--data", toy / "data-bin", "--cpu"),
        *("--path", toy / "checkpoints/averaged.pt", "--output", tmp_path / "x.html", *options),
        status=1,
    )
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "x.html").exists()
