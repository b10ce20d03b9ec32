"""The page: every control, by pointer and keys."""

import io
import itertools
import re

import numpy as np
import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select


def colours(page):
    picture = Image.open(io.BytesIO(page.one("#picture").screenshot_as_png))
    return np.asarray(picture.convert("RGB")).reshape(-1, 3)


def bluish(pixels):
    """How many are of the heat map's colour rather than grey."""
    pixels = pixels.astype(int)
    return int((pixels[:, 2] - pixels[:, 0] > 60).sum())


def test_heat_map_shows_the_models_weights(page, report):
    weights = np.load(report / "weights.npz")
    for kind, head in (("encoder", 1), ("decoder", 2), ("encoder-decoder", 3)):
        page.choose("kind", kind)
        page.choose("layer", 2)
        page.choose("head", head)
        expected = weights[f"0/{kind}"][1, head - 1].ravel()
        cells = page.cells()
        assert len(cells) == expected.size
        for cell, weight in zip(cells, expected, strict=True):
            assert weight == 0 if cell is None else abs(cell - weight) <= 6e-4
        assert bluish(colours(page)) > 100
    assert "Encoder-decoder attention, layer 2 of 2, head 3" in page.text("caption")


def test_it_opens_on_the_translation_with_named_axes_and_bare_words(page):
    assert page.text("caption").startswith("Encoder-decoder attention, layer 2 of 2, mean")
    corner = page.one("#picture .axes").text
    assert corner.split("\n") == ["keys: source →", "queries: translation ↓"]
    selector = "#picture th, #alignment span"
    bare = page.texts(selector)
    assert not any("▁" in piece for piece in bare)
    page.one("#marks").click()
    marked = page.texts(selector)
    assert [piece.removeprefix("▁") or "␣" for piece in marked] == bare != marked


@pytest.mark.parametrize("kind", ["encoder", "decoder", "encoder-decoder"])
def test_subwords_are_merged_to_words(page, report, kind):
    weights = np.load(report / "weights.npz")
    number = next(
        i for i in range(5) if split(weights[f"{i}/source"]) and split(weights[f"{i}/target"])
    )
    page.open(f"sentence={number}&kind={kind}&layer=1&head=2")
    page.one("#merged").click()
    sides = {"encoder": ("source", "source"), "decoder": ("target", "read")}
    rows, columns = (
        groups(weights[f"{number}/{side}"]) for side in sides.get(kind, ("target", "source"))
    )
    found = weights[f"{number}/{kind}"][0, 1]
    expected = [[found[np.ix_(row, column)].sum(1).mean() for column in columns] for row in rows]
    cells = np.array([cell or 0.0 for cell in page.cells()]).reshape(len(rows), len(columns))
    np.testing.assert_allclose(cells, expected, atol=4e-3)  # the page has rounded each weight
    np.testing.assert_allclose(cells.sum(1), 1, atol=1e-2)
    assert not page.one("#marks").is_enabled()


def split(pieces):
    return len(groups(pieces)) < len(pieces)


def groups(pieces):
    """The places of each word's subwords: a word begins with ▁ or is the end of the sentence."""
    found = []
    for i, piece in enumerate(pieces):
        after_end = i and pieces[i - 1] == "</s>"
        if i == 0 or after_end or piece.startswith("▁") or piece == "</s>":
            found.append([])
        found[-1].append(i)
    return found


def test_shades_are_square_roots_of_the_weights(page):
    shades = page.script(
        "return [...document.querySelectorAll('#picture tbody td')]"
        ".map(cell => cell.style.background)"
    )
    weights = page.cells()
    largest = max(weights)
    for weight, shade in zip(weights, shades, strict=True):
        percent = re.search(r"([\d.]+)%", shade)
        part = float(percent[1]) / 100 if percent else 1.0  # 100 % is left out
        assert part == pytest.approx((weight / largest) ** 0.5, abs=0.03)
    assert page.texts("#legend text")[-1] == f"{largest:.3f}"
    page.one("#full-scale").click()
    assert page.texts("#legend text") == ["0", "0.250", "1.000"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_larger_weights_stand_out_more(page, theme):
    """From the colour of the page: darker where it is light, and lighter where it is dark."""
    Select(page.one("#theme")).select_by_visible_text(theme)
    cells = page.all("#picture tbody td")
    weights = page.cells()
    order = sorted(range(len(cells)), key=lambda i: weights[i])
    chosen = [cells[order[0]], cells[order[len(order) // 2]], cells[order[-1]]]
    luminance = []
    for cell in chosen:
        shot = Image.open(io.BytesIO(cell.screenshot_as_png)).convert("L")
        luminance.append(shot.getpixel((shot.width // 2, shot.height // 2)))
    assert luminance == sorted(luminance, reverse=theme == "light")
    assert abs(luminance[-1] - luminance[0]) > 100


def test_pointing_shows_the_weight(page):
    cell = page.one("#picture tbody tr:nth-child(2) td:nth-of-type(2)")
    webdriver.ActionChains(page.browser).move_to_element(cell).perform()
    assert cell.get_attribute("aria-label") in page.text("readout")


def test_keys_alone_reach_everything(page):
    cells = page.all("#picture tbody tr:first-child td")
    cells[0].send_keys(Keys.ARROW_RIGHT)
    assert page.browser.switch_to.active_element == cells[1]
    assert cells[1].get_attribute("aria-label") in page.text("readout")
    page.one("input[name='kind']:checked").send_keys(Keys.ARROW_LEFT)
    assert page.text("caption").startswith("Decoder attention")
    page.choose("view", "overview")
    page.one("#picture button").send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert page.text("caption").startswith("Decoder attention, layer 2 of 2, head 1")


def test_lines_and_their_threshold(page):
    page.choose("view", "lines")
    page.choose("head", "all")
    count = "return document.querySelectorAll('.lines line').length"
    drawn = page.script(count)
    assert drawn > 0
    assert page.texts(".lines > text") == ["queries: translation", "keys: source"]
    page.script(
        "arguments[0].value = 0.5; arguments[0].dispatchEvent(new Event('input'))",
        page.one("#least"),
    )
    assert page.script(count) < drawn
    shades = {tuple(colour) for colour in colours(page)}
    assert len(shades) > 20  # words and shades were painted


def test_a_kept_words_lines_stay_in_the_address(page):
    page.choose("view", "lines")
    page.one(".lines g[role=button]").send_keys(Keys.ENTER)
    told, address = page.text("readout"), page.browser.current_url
    assert "→" in told and "kept=0,0" in address
    page.open(address.partition("#")[2])
    assert page.text("readout") == told
    ends = page.script(
        "return [...document.querySelectorAll('.lines line')].map(l => +l.attributes.y1.value)"
    )
    assert len(ends) > 1 and len(set(ends)) == 1


def test_lines_that_are_all_hidden_say_why(page, report):
    weights = np.load(report / "weights.npz")
    places = itertools.product(("encoder", "encoder-decoder"), (1, 2), (1, 2, 3, 4))
    small = (at for at in places if weights[f"0/{at[0]}"][at[1] - 1, at[2] - 1].max() < 0.49)
    kind, layer, head = next(small)
    page.open(f"view=lines&least=0.5&kind={kind}&layer={layer}&head={head}")
    assert not page.all(".lines line")
    assert page.text("readout").startswith("No weight reaches 0.50: the largest is 0.")
    page.open("view=lines&least=0")
    assert page.text("readout").startswith("Point at a word")


def test_all_heads_side_by_side_with_their_words(page):
    words = page.texts("#picture th")
    page.choose("head", "all")
    buttons = page.all(".gallery button")
    assert [button.get_attribute("aria-label") for button in buttons] == [
        f"head {h}" for h in (1, 2, 3, 4)
    ]
    for i in range(4):
        shown = page.texts(f".gallery button:nth-child({i + 1}) text")
        assert sorted(shown) == sorted([*words, "source", "translation"])
    assert bluish(colours(page)) > 100
    buttons[2].click()
    assert "head 3" in page.text("caption")


def test_an_overview_opens_a_head(page):
    page.open("kind=decoder&layer=2&head=3")
    expected = page.cells()
    page.choose("view", "overview")
    assert not page.one("#layer").is_displayed() and not page.one("#head").is_displayed()
    maps = page.all(".overview tbody tr")
    assert [len(row.find_elements(By.TAG_NAME, "button")) for row in maps] == [4, 4]
    assert page.texts(".overview th") == [
        *("head 1", "head 2", "head 3", "head 4", "layer 1", "layer 2")
    ]
    assert page.one("[aria-current]").get_attribute("aria-label") == "layer 2, head 3"
    button = maps[1].find_elements(By.TAG_NAME, "button")[2]
    webdriver.ActionChains(page.browser).move_to_element(button).perform()
    assert page.text("readout").startswith("layer 2, head 3")
    page.all(".overview button")[0].click()
    assert "layer 1 of 2, head 1" in page.text("caption")
    page.browser.back()
    page.wait(lambda: page.all(".overview"))
    page.one("[aria-label='layer 2, head 3']").click()
    assert page.cells() == expected


def test_sentences_and_beam(page):
    sentence = Select(page.one("#sentence"))
    assert len(sentence.options) == 5
    page.one("#next").click()
    page.wait(lambda: "sentence=1" in page.browser.current_url)
    page.one("#previous").click()
    page.wait(lambda: "sentence=0" in page.browser.current_url)
    sentence.select_by_index(4)
    page.wait(lambda: "sentence=4" in page.browser.current_url)
    rows = page.all("#beam tbody tr")
    scores = [float(row.find_elements(By.TAG_NAME, "td")[1].text) for row in rows]
    assert len(rows) == 4 and scores == sorted(scores, reverse=True)
    assert page.text("reference").startswith("reference")


def test_the_alignment_begins_with_a_word_and_names_its_layer(page, report):
    weights = np.load(report / "weights.npz")
    layer = Select(page.one("#alignment-layer"))
    for choice, expected in (
        ("1", weights["0/encoder-decoder"][0].mean(0)),
        ("all", weights["0/encoder-decoder"].mean((0, 1))),
    ):
        layer.select_by_value(choice)
        named = "all layers" if choice == "all" else "layer 1 of 2"
        assert named in page.text("alignment-caption")
        assert len(page.all("#alignment .chosen")) == 1
        told = page.text("alignment-readout")
        found = [float(weight) for weight in re.findall(r"” (\d\.\d{3})", told)]
        assert found == pytest.approx(np.sort(expected[0])[::-1][: len(found)], abs=2e-3)
        assert len(found) > 1 and "probability" in told
    page.all("#alignment .pieces")[0].find_element(By.TAG_NAME, "span").click()
    assert "←" in page.text("alignment-readout")
