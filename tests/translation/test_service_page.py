"""The page of serve in headless Chromium: every control, phone, dark; no error, no network."""

import re

import pytest
from browser import LOOKS, check_layout, check_quiet, chromium, needs_chromium, open_page
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

pytest.importorskip("uvicorn")
pytestmark = needs_chromium
SENTENCE = "the quick cat sees the house slowly and the cat sees the house"
CELLS = """return [...document.querySelectorAll("tbody td")].map(cell =>
  [cell.getAttribute("aria-label"), cell.style.background])"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


@pytest.fixture
def page(browser, service):
    """translate(width, scheme) opens the page on a sentence."""

    def opened(width=1280, scheme="light"):
        open_page(browser, f"http://127.0.0.1:{service.port}/#text={SENTENCE}", width, scheme)
        WebDriverWait(browser, 30).until(lambda b: b.find_elements(By.TAG_NAME, "article"))
        return browser

    yield opened
    check_quiet(browser, f"http://127.0.0.1:{service.port}/")


def weights(page):
    """Each cell's weight, and the share of its colour."""
    cells = page.execute_script(CELLS)
    shares = [re.search(r"([\d.]+)%", shade) for _, shade in cells]  # 100 % is left out
    return [(float(label.rpartition(" ")[2]), float(share[1]) / 100 if share else 1.0)
            for (label, _), share in zip(cells, shares, strict=True)]  # fmt: skip


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_is_readable(page, width, scheme):
    found = page(width, scheme)
    assert found.title == "English to German: transformer-plugin"
    assert found.find_element(By.TAG_NAME, "h1").text == "English to German"
    check_layout(found)
    scrolls = found.find_elements(By.CSS_SELECTOR, ".map.scrolls")
    assert scrolls or width > 390


def test_hypotheses_with_their_scores(page, service):
    found = page()
    answer = service.translate({"text": SENTENCE, "nbest": 4})[1]["translations"][0]
    entries = found.find_elements(By.CSS_SELECTOR, "li")
    assert found.find_element(By.TAG_NAME, "h2").text == answer["translation"]
    assert len(entries) == 4
    for entry, expected in zip(entries, answer["hypotheses"], strict=True):
        text, numbers = entry.text.split("\n")
        assert text == expected["translation"]
        assert numbers.startswith(f"score {expected['score']:.3f}; log P")
    assert not entries[0].find_elements(By.TAG_NAME, "mark")
    for entry, expected in zip(entries[1:], answer["hypotheses"][1:], strict=True):
        is_other = expected["translation"] != answer["translation"]
        marked = entry.find_elements(By.TAG_NAME, "mark")
        words = expected["translation"].split()
        assert len(words) < len(answer["translation"].split()) or bool(marked) == is_other
    assert "length penalty (alpha 0.6)" in found.find_element(By.TAG_NAME, "article").text


def test_the_map_its_scale_and_its_contrast(page, service):
    found = page()
    answer = service.translate({"text": SENTENCE, "attention": True})[1]["translations"][0]
    layers = answer["parts"][0]["attention"]
    Select(found.find_element(By.ID, "layer")).select_by_visible_text("layer 2")
    flat = [weight for row in layers[1] for weight in row]
    cells = weights(found)
    assert [weight for weight, _ in cells] == pytest.approx(flat, abs=6e-4)
    for weight, share in zip(flat, (share for _, share in cells), strict=True):
        assert share == pytest.approx((weight / max(flat)) ** 0.5, abs=2e-3)
    legend = found.find_element(By.CSS_SELECTOR, ".legend")
    assert f"{max(flat):.3f} (shades are square roots" in legend.text
    Select(found.find_element(By.ID, "shades")).select_by_visible_text("linear")
    found.find_element(By.ID, "full-scale").click()
    assert [share for _, share in weights(found)] == pytest.approx(flat, abs=2e-3)
    assert "1.000 (shades are the weights)" in found.find_element(By.CSS_SELECTOR, ".legend").text
    assert not any("▁" in label for label, _ in found.execute_script(CELLS))


def test_pointer_and_keys_show_the_weight(page):
    found = page(390)
    cells = found.find_elements(By.CSS_SELECTOR, "tbody td")
    output = found.find_element(By.TAG_NAME, "output")
    ActionChains(found).move_to_element(cells[0]).perform()
    assert output.text == cells[0].get_attribute("aria-label")
    cells[0].send_keys(Keys.ARROW_RIGHT)
    assert output.text == cells[1].get_attribute("aria-label") != ""


def test_text_runs_in_its_own_direction(page):
    directions = page().execute_script("""
        const texts = () => [...document.querySelectorAll("#text, .source, h2, li bdi")]
            .map(text => getComputedStyle(text).direction);
        const [found] = shown, before = texts(), translation = "שלום.";
        const hypotheses = found.hypotheses.map(hypothesis => ({...hypothesis, translation}));
        shown = [{...found, source: translation, translation, hypotheses}];
        document.getElementById("text").value = translation;
        draw();
        return [before, texts()];
    """)
    assert directions == [["ltr"] * 7, ["rtl"] * 7]  # 4 hypotheses


def test_typing_translates(page):
    found = page()
    text = found.find_element(By.ID, "text")
    text.clear()
    text.send_keys("the cat", Keys.CONTROL, Keys.ENTER)
    WebDriverWait(found, 30).until(
        lambda b: b.find_element(By.CSS_SELECTOR, ".source").text == "the cat"
    )
    assert len(found.find_elements(By.TAG_NAME, "article")) == 1
