"""The report in headless Chromium: pointer, keys, phone, dark colours; no error, no network."""

import shutil
from decimal import ROUND_HALF_UP, Context

import pytest
from browser import LOOKS, check_layout, check_quiet, chromium, needs_chromium, open_page
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from transformer_plugin.cli import main
from transformer_plugin.reports.training_report.run import read_run

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def pages(watched, tmp_path_factory):
    """The report of one run, and of two, whose translations differ."""
    folder = tmp_path_factory.mktemp("pages")
    for name in ("one", "other"):
        (folder / name).mkdir()
        for part in ("train.log", "score.json", "hypotheses.txt", "raw", "clean", "data-bin"):
            (folder / name / part).symlink_to(watched.folder / part)
        shutil.copytree(watched.folder / "checkpoints", folder / name / "checkpoints")
    lines = (watched.folder / "raw/test.de").read_text().splitlines()
    (folder / "other/hypotheses.txt").unlink()
    (folder / "other/hypotheses.txt").write_text("".join(f"{line} so\n" for line in lines))
    for runs in (["one"], ["one", "other"]):
        found = [str(folder / run) for run in runs]
        assert main(["report", *found, "--output", str(folder / f"{len(runs)}.html")]) == 0
    return {count: (folder / f"{count}.html").as_uri() for count in (1, 2)}


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("count", [1, 2])
def test_it_is_readable(browser, pages, count, width, scheme):
    open_page(browser, pages[count], width, scheme)
    for summary in browser.find_elements(By.TAG_NAME, "summary"):
        summary.click()
    check_layout(browser)
    check_quiet(browser, pages[count])


def test_paper_shows_whole_tables(browser, pages):
    open_page(browser, pages[2], 390)
    wide = "return [...document.querySelectorAll('.wide')].some(x => x.scrollWidth > x.clientWidth)"
    assert browser.execute_script(wide)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.execute_script(wide)


def test_the_pointer_and_the_keys_show_the_logs_values(browser, pages, watched):
    open_page(browser, pages[1])
    log = read_run(watched.folder, "toy").log
    for name, key in (("perplexity", "ppl"), ("speed", "wps")):
        plot = browser.find_element(By.CSS_SELECTOR, f"#{name} .plot")
        output = browser.find_element(By.CSS_SELECTOR, f"#{name} output")
        series, resting = log.train[key], output.text
        ActionChains(browser).move_to_element_with_offset(plot, 0, 0).perform()
        assert "train: " in output.text and output.text != resting
        plot.send_keys(Keys.END)
        last = Context(prec=4, rounding=ROUND_HALF_UP).create_decimal_from_float(series.values[-1])
        assert output.text.startswith(f"train: {float(last):,g} ("), output.text
        assert f"at update {series.updates[-1]:,}, epoch 15" in output.text
        plot.send_keys(Keys.HOME)
        assert f"at update {series.updates[0]:,}, epoch 1" in output.text
        plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
        assert f"at update {series.updates[1]:,}, epoch 1" in output.text
        plot.send_keys(Keys.ESCAPE)
        assert output.text == resting
    check_quiet(browser, pages[1])


def test_dots_lie_on_the_lines(browser, pages):
    """The last dot is drawn where the SVG's marker of the last validation is."""
    open_page(browser, pages[1])
    plot = browser.find_element(By.CSS_SELECTOR, "#bleu .plot")
    plot.send_keys(Keys.END)
    places = browser.execute_script(
        "const middle = node => { const box = node.getBoundingClientRect();"
        "  return [box.x + box.width / 2, box.y + box.height / 2]; };"
        "const markers = [...arguments[0].querySelectorAll('g[id^=line2d] use[style]')];"
        "return [middle(arguments[0].querySelector('.dot')), markers.map(middle)];",
        plot,
    )  # fmt: skip
    (x, y), markers = places
    assert min(abs(x - a) + abs(y - b) for a, b in markers) < 2


def test_text_runs_in_its_own_direction(browser, pages):
    open_page(browser, pages[2])
    directions = browser.execute_script(
        "const texts = [...document.querySelectorAll('article dd')];"
        "const direction = text => getComputedStyle(text).direction;"
        "const before = texts.map(direction);"
        "for (const text of texts) text.textContent = 'שלום.';"
        "return [before, texts.map(direction)];"
    )
    assert [set(each) for each in directions] == [{"ltr"}, {"rtl"}]


def test_two_runs_are_side_by_side(browser, pages):
    open_page(browser, pages[2])
    text = browser.find_element(By.TAG_NAME, "body").text
    assert "other is " in text and "BLEU above one" in text and "(p = " in text
    assert text.count("Sentences in which the runs differ most") == 1
    marked = browser.find_elements(By.CSS_SELECTOR, "article mark")
    assert any(mark.text == "so" for mark in marked)
    figures = browser.find_elements(By.CSS_SELECTOR, "#perplexity output")
    assert "best of one, valid: " in figures[0].text and "best of other" in figures[0].text
