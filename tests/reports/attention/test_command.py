"""What the command writes beside the page, and what it refuses."""

import matplotlib
import numpy as np
import pytest
import torch
from fairseq_commands import run
from PIL import Image

from transformer_plugin import cli
from transformer_plugin.reports.attention.figure_choice import Choice, Panel
from transformer_plugin.reports.attention.figures import heat_maps, save


def test_the_shades_of_a_figure_are_square_roots():
    weights = torch.tensor([[[0.8, 0.2], [0.05, 0.0]]])
    axes = heat_maps(Panel("", weights, ["head 1"], ["a", "b"], ["c", "d"])).axes[0]
    shades = axes.images[0].norm(weights[0].numpy())
    np.testing.assert_allclose(shades, [[1, 0.5], [0.25, 0]], atol=1e-6)


def test_the_same_figure_makes_the_same_files_and_leaves_matplotlib_as_it_is(tmp_path):
    panel = Panel("", torch.tensor([[[0.25, 1.0]]]), ["head 1"], ["a"], ["b", "c"])
    before = dict(matplotlib.rcParams)
    for name in ("one", "two"):
        save(heat_maps(panel), tmp_path / name)
    assert dict(matplotlib.rcParams) == before and before["svg.hashsalt"] is None
    for form in ("svg", "png"):
        one, two = (tmp_path / f"{name}.{form}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_figures_of_different_words_have_different_names():
    names = [Choice.parse(f"encoder:1:1:{word}").name for word in (".", "?", "its", "it's")]
    assert names[2] == "encoder-1-1-its" and len(set(names)) == 4


def test_the_weights_are_not_written_over_the_page(tmp_path, capsys):
    words = ("--data", tmp_path, "--path", tmp_path / "model.pt", "--output")
    same = (tmp_path / "x", "--weights", tmp_path / "x")
    assert cli.main(["attention", *map(str, (*words, *same))]) == 2
    assert "would be read and overwritten, or written twice" in capsys.readouterr().err


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
