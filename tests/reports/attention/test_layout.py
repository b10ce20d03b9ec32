"""On a desk and on a phone, light and dark: nothing is clipped or wider than the screen."""

import pytest
from browser import LOOKS
from selenium.webdriver.common.keys import Keys

VIEWS = [
    *("", "head=all", "view=overview", "view=lines", "view=lines&head=all"),
    *("kind=decoder&merged=true", "kind=encoder&marks=true&fullScale=true"),
]
# Elements of which a part is hidden: more text than room, and no way to scroll.
CLIPPED = """
return [...document.querySelectorAll("body *")].filter(node => {
  const style = getComputedStyle(node);
  if (node.closest("select, svg, .choice input") || !node.clientWidth) return false;
  const hides = value => ["hidden", "clip"].includes(value);
  return (hides(style.overflowX) && node.scrollWidth > node.clientWidth + 1)
    || (hides(style.overflowY) && node.scrollHeight > node.clientHeight + 1);
}).map(node => node.outerHTML.slice(0, 200));
"""
# Texts of a drawing that reach beyond its edge.
OUTSIDE = """
return [...document.querySelectorAll("main svg text")].filter(node => {
  const text = node.getBoundingClientRect(), svg = node.ownerSVGElement.getBoundingClientRect();
  return text.left < svg.left - 1 || text.right > svg.right + 1 || text.top < svg.top - 1
    || text.bottom > svg.bottom + 1;
}).map(node => node.textContent);
"""
# Whether each box that scrolls sideways has its note, and no other has.
NOTES = """
return [...document.querySelectorAll(".scrolled")].map(box => [
  box.scrollWidth > box.clientWidth + 1, !box.previousElementSibling.hidden]);
"""


def test_text_runs_in_its_own_direction(page):
    page.script("""
        const [sentence] = SENTENCES, text = "שלום.";
        sentence.target.pieces = sentence.target.pieces.map(() => text);
        sentence.reference = text;
        for (const hypothesis of sentence.hypotheses) hypothesis.text = text;
        return show();
    """)
    assert page.script("""
        return [...document.querySelectorAll(".pieces, #reference bdi, #beam td:last-child")]
            .map(node => getComputedStyle(node).direction);
    """) == ["ltr", *["rtl"] * 6]  # the source; the translation, its reference and 4 hypotheses
    first, second, *_ = page.all("#alignment .pieces:last-child span")
    assert first.rect["x"] > second.rect["x"]
    first.send_keys(Keys.ARROW_LEFT)
    assert page.script("return document.activeElement") == second


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_every_view_fits(page, width, theme):
    wide = []
    for choices in VIEWS:
        page.open(choices, width, theme)
        assert page.script("return document.documentElement.scrollWidth") <= width, choices
        assert page.script(CLIPPED) == [], choices
        assert page.script(OUTSIDE) == [], choices
        notes = page.script(NOTES)
        assert all(scrolls == noted for scrolls, noted in notes), choices
        wide += [scrolls for scrolls, _ in notes]
        dark = page.script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, dark[4:-1].split(","))) < 150) == (theme == "dark")
    assert any(wide) == (width == 390)  # the overview is wider than a phone
