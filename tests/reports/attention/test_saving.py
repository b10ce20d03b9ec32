"""What the buttons save: made in the page, downloaded without a request, light on white."""

import csv
import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

SVG = "{http://www.w3.org/2000/svg}"


def saved(page, form, kind="encoder-decoder"):
    """The bytes of what the button downloads."""
    folder = page.browser.downloads
    for path in folder.iterdir():
        path.unlink()
    page.one(f"#save-{form}").click()
    page.wait(lambda: [path.suffix for path in folder.iterdir()] == [f".{form}"])
    (path,) = folder.iterdir()
    assert path.stem.startswith(f"test-0-{kind}-")
    return path.read_bytes()


def texts(svg):
    return [node.text for node in svg.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("choices", "maps"),
    [("head=3&layer=1", [(0, 2)]), ("view=overview", [(n, h) for n in range(2) for h in range(4)])],
)
def test_the_table_has_the_weights(page, report, choices, maps):
    page.open(choices)
    rows = list(csv.DictReader(io.StringIO(saved(page, "csv").decode())))
    arrays = np.load(report / "weights.npz")
    weights = arrays["0/encoder-decoder"]
    assert len(rows) == len(maps) * weights[0, 0].size
    for row in rows:
        layer, head, query, key = (int(row[name]) for name in ("layer", "head", "query", "key"))
        assert (layer - 1, head - 1) in maps
        assert float(row["weight"]) == pytest.approx(
            weights[layer - 1, head - 1, query, key], abs=6e-4
        )
        assert row["query_text"] == (arrays["0/target"][query].removeprefix("▁") or "␣")
        assert row["key_text"] == (arrays["0/source"][key].removeprefix("▁") or "␣")


def test_masked_weights_are_not_in_the_table(page, report):
    page.open("kind=decoder")
    rows = list(csv.DictReader(io.StringIO(saved(page, "csv", "decoder").decode())))
    length = len(np.load(report / "weights.npz")["0/target"])
    assert len(rows) == length * (length + 1) // 2
    assert all(int(row["key"]) <= int(row["query"]) for row in rows)


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("choices", "maps"), [("head=2", 1), ("head=all", 4), ("view=overview", 8)]
)
def test_maps_are_saved_as_drawings(page, report, theme, choices, maps):
    page.open(choices, theme=theme)
    title = page.text("caption").partition(". ")[0]
    svg = ElementTree.fromstring(saved(page, "svg"))
    weights = np.load(report / "weights.npz")["0/encoder-decoder"]
    shown = {1: weights[1:, 1:2], 4: weights[1:], 8: weights}[maps]
    # Each cell whose shade is at least half a step of 1/40 is drawn.
    visible = np.sqrt(np.round(shown, 3) / np.round(shown, 3).max()) * 40 >= 0.5
    cells = sum(path.get("d").count("h1v1h-1z") for path in svg.iter(f"{SVG}path"))
    assert cells == visible.sum()
    assert texts(svg)[0] == title
    labels = 0 if maps == 8 else maps * (sum(weights.shape[2:]) + 2)  # and names of the axes
    names = maps if maps > 1 else 0
    assert len(texts(svg)) == 1 + names + labels + 3
    assert "var(" not in ElementTree.tostring(svg, encoding="unicode")

    picture = Image.open(io.BytesIO(saved(page, "png"))).convert("RGB")
    pixels = np.asarray(picture).reshape(-1, 3).astype(int)
    assert picture.width == pytest.approx(3 * float(svg.get("width")), abs=3)
    assert (pixels.min(1) > 250).mean() > 0.3  # white paper
    assert (pixels[:, 2] - pixels[:, 0] > 60).mean() > 0.01  # blue cells


def test_kept_lines_are_saved(page):
    page.open("view=lines&head=all&kept=0,1&least=0")
    svg = ElementTree.fromstring(saved(page, "svg"))
    lines = list(svg.iter(f"{SVG}line"))
    assert len(lines) == len(page.all(".lines line"))
    assert len({line.get("y1") for line in lines}) == 1  # the lines start at one query
    assert len({line.get("stroke") for line in lines}) == 4  # heads
    heads = {f"head {h}" for h in (1, 2, 3, 4)}
    assert {"queries: translation", "keys: source"} | heads <= set(texts(svg))
    assert Image.open(io.BytesIO(saved(page, "png"))).convert("L").getextrema()[0] < 100
