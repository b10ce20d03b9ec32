"""examples/: each program runs, and does what its page and docstring say."""

import importlib.util
import json
import re
import sys

import pytest
import torch
from fairseq_commands import REPO, run

import transformer_plugin
from transformer_plugin.translation.loading import build_translator


def example(name, *arguments, **options):
    """Runs a program of the folder as a user does; what it prints."""
    return run("python3", REPO / f"examples/{name}.py", *arguments, **options).stdout


def imported(name):
    """The module of a program, imported once, since one registers names with fairseq."""
    path = REPO / f"examples/{name}.py"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.mark.parametrize("updates", [1, pytest.param(150, marks=pytest.mark.slow)])
def test_the_walk_through_the_paper(tmp_path, updates):
    printed = example("annotated_transformer", "--output", tmp_path, "--updates", updates)
    assert re.search(r"largest difference from the formula (0\.0e\+00|\d\.\de-0[6-9])", printed)
    assert "the base model's peak rate is 6.99e-04" in printed
    assert "label smoothing 0.1: the loss is least at probability 0.90" in printed
    source, copy = re.search(r"greedy decoding of (\[.*\]): (\[.*\])", printed).groups()
    assert source == copy or updates == 1
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        *("masks.png", "positional_encoding.png", "schedule.png", "label_smoothing.png"),
        "copy_attention.png",
    }


def test_the_notebook_is_the_program():
    """Its cells are those of the .py, in which calls for the notebook alone are comments."""
    notebook = json.loads((REPO / "examples/annotated_transformer.ipynb").read_text("utf-8"))
    lines = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" or "active-ipynb" in cell["metadata"].get("tags", []):
            source = re.sub("^(?=.)", "# ", source, flags=re.M)
        lines += [line for line in source.splitlines() if line.strip("# ")]
    program = (REPO / "examples/annotated_transformer.py").read_text("utf-8").splitlines()
    assert lines == [line for line in program if line.strip("# ") and not line.startswith("# %%")]


def test_the_notebook_has_its_outputs():
    path = REPO / "examples/annotated_transformer.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    shown = [output for cell in cells for output in cell.get("outputs", [])]
    assert {output["output_type"] for output in shown} == {"stream", "display_data"}
    assert sum("image/png" in output.get("data", {}) for output in shown) == 6
    assert path.stat().st_size < 1_000_000


def test_the_attention_of_a_trained_model_is_drawn(prepared):
    module, run_folder = imported("annotated_transformer"), prepared("sentencepiece")
    figure = module.trained_attention(run_folder, "the cat sees .")
    (axis,) = figure.axes
    words = [
        [label.get_text() for label in labels]
        for labels in (axis.get_xticklabels(), axis.get_yticklabels())
    ]
    found = transformer_plugin.load(run_folder).attention("the cat sees .")
    assert words == [found.source, found.target]
    shown = torch.as_tensor(axis.images[0].get_array().data)
    torch.testing.assert_close(shown, found.encoder_decoder[-1].mean(dim=0))


def test_a_file_is_translated_with_scores(prepared, tmp_path):
    run_folder = prepared("sentencepiece")
    (tmp_path / "in").write_bytes(b"the cat sees .\n\ncat\rcat\n")
    example("translate_file", run_folder, tmp_path / "in", tmp_path / "out")
    model = transformer_plugin.load(run_folder)
    found = model.translate(["the cat sees .", "", "cat\rcat"])
    expected = [f"{each.score:.3f}\t{each.text}" for each in found]
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == expected


def test_the_gaussian_score_is_the_kernels():
    """Up to a number for each query, which no softmax sees."""
    score = imported("own_attention").GaussianScore("scaled_dot", 2, 5)
    q, k = torch.randn(3, 2, 4, 5).double(), torch.randn(3, 2, 6, 5).double()
    found = score(q, k)
    distances = (q[:, :, :, None] - k[:, :, None]).square().sum(-1)
    rest = found + distances / (2 * 5**0.5)
    torch.testing.assert_close(rest, rest[..., :1].expand_as(rest))


@pytest.fixture(scope="module")
def trained(small_data, tmp_path_factory):
    """The folder of a short training by the example, and what it printed."""
    folder = tmp_path_factory.mktemp("own_attention")
    flags = ("--cpu", "--max-update", "8", "--disable-validation", "--num-workers", "0")
    return folder, example("own_attention", small_data, "--save-dir", folder, *flags)


def test_the_new_score_trains_through_fairseq_and_searches(trained, small_data):
    folder, printed = trained
    assert re.search(r"Is a table black\? -> .*\n$", printed)
    module = imported("own_attention")
    translator = build_translator(small_data / "data-bin", folder / "checkpoint_last.pt", cpu=True)
    (model,) = translator.models
    scores = [part for part in model.modules() if isinstance(part, module.GaussianScore)]
    assert len(scores) == 2 + 2 * 2
    # The search, step by step with caches, gives what one pass over the sentence does.
    ((_, source),) = translator.read("Is a table black?")
    best = translator.search([source])[0][0]
    tokens = best["tokens"]
    logits, _ = model(source[None], None, tokens.roll(1)[None])
    expected = logits[0].log_softmax(-1).gather(1, tokens[:, None]).squeeze(1)
    torch.testing.assert_close(best["positional_scores"], expected, atol=1e-4, rtol=1e-4)
