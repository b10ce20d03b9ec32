"""docs/extending.md: its examples train, and what they train is what the page says."""

import importlib.util
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq_commands import environment
from pages import REPO, blocks, write_files

PAGE = REPO / "docs/extending.md"
SHORT = "--cpu --max-update 6 --num-workers 0 --no-progress-bar --log-format simple"

EXAMPLES = ("cosine_attention", "rotary_attention")


@pytest.fixture(scope="module")
def trained(toy, tmp_path_factory):
    """trained[FOLDER] is where the page's training with that --user-dir has run, for 6 updates."""
    folders = {}
    for name in ("deep_and_thin", *EXAMPLES):
        folder = folders[name] = tmp_path_factory.mktemp(name)
        write_files(PAGE, folder)
        (command,) = (
            text
            for language, text in blocks(PAGE)
            if not language and f"--user-dir {name} " in text
        )
        command = command.split("transformer-plugin average")[0].replace("DATA-BIN", "$DATA", 1)
        done = subprocess.run(
            ["bash", "-ec", f"{command.strip()} {SHORT}"], cwd=folder, capture_output=True,
            text=True, env=environment() | {"DATA": str(toy / "data-bin")},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "log").write_text(done.stdout + done.stderr)
    return folders


@pytest.fixture(scope="module")
def example(trained):
    """example(NAME) is the page's Python, imported as fairseq imports it: once, since it registers
    names."""

    def module(name):
        if name not in sys.modules:  # else by a test that has parsed the page's commands
            path = trained[name] / name / "__init__.py"
            spec = importlib.util.spec_from_file_location(name, path)
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
        return sys.modules[name]

    return module


def test_the_preset_of_the_page_trains(trained):
    log = (trained["deep_and_thin"] / "log").read_text()
    assert "'pre_norm': True" in log and "'encoder_layers': 2" in log
    assert "num_updates: 6" in log or "num_updates 6" in log


def test_the_score_is_the_cosine_by_numpy(example):
    torch.manual_seed(0)
    score = example("cosine_attention").CosineScore(num_heads=2, d_k=5, sharpness=3.0)
    score.beta.data = torch.tensor([2.0, 7.0]).view(2, 1, 1)
    q, k = torch.randn(3, 2, 4, 5), torch.randn(3, 2, 6, 5)
    found = score(q, k).detach().numpy()
    assert found.shape == (3, 2, 4, 6)
    for (b, h, t, s), value in np.ndenumerate(found):
        x, y = q[b, h, t].double().numpy(), k[b, h, s].double().numpy()
        cosine = x @ y / np.sqrt((x @ x) * (y @ y))
        assert value == pytest.approx([2.0, 7.0][h] * cosine, abs=1e-5)


def test_the_rotation_is_that_of_complex_numbers(example):
    x = torch.randn(2, 3, 4, 6)
    found = example("rotary_attention").rotated(x, torch.tensor([5, 0, 7, 5])).numpy()
    for b, h, place, i in np.ndindex(2, 3, 4, 3):
        angle = [5, 0, 7, 5][place] * 10000 ** (-2 * i / 6)
        real, imaginary = x[b, h, place, 2 * i : 2 * i + 2].tolist()
        turned = complex(real, imaginary) * np.exp(1j * angle)
        pair = found[b, h, place, 2 * i : 2 * i + 2]
        assert pair == pytest.approx([turned.real, turned.imag], abs=1e-4)


def loaded(folder, data):
    return checkpoint_utils.load_model_ensemble_and_task(
        [str(next(folder.glob("checkpoints/*/checkpoint_last.pt")))], {"data": str(data)}
    )


def test_the_model_learns_its_sharpness(trained, example, toy):
    kind = example("cosine_attention").CosineTransformer
    (model,), *_ = loaded(trained["cosine_attention"], toy / "data-bin")
    betas = [p for name, p in model.named_parameters() if name.endswith("score.beta")]
    assert isinstance(model, kind) and len(betas) == 2 + 2 * 2
    assert all((beta != 8).any() for beta in betas)


@pytest.mark.parametrize("name", EXAMPLES)
def test_search_scores_as_training_does(trained, example, toy, name):
    """Step by step with caches, beam search gives each word the probability that the model gives
    it in one pass over the sentence."""
    example(name)
    models, _cfg, task = loaded(trained[name], toy / "data-bin")
    (model,) = models
    model.eval()
    task.load_dataset("test")
    sample = task.dataset("test").collater([task.dataset("test")[i] for i in range(3)])
    found = task.inference_step(task.build_generator(models, {"beam": 4}), models, sample)
    for row, (best, *_) in enumerate(found):
        tokens = best["tokens"]
        source = sample["net_input"]["src_tokens"][row : row + 1]
        before = tokens.roll(1).unsqueeze(0)  # begins with the end of sentence
        logits, _ = model(source, None, before)
        expected = logits[0].log_softmax(-1).gather(1, tokens.unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(best["positional_scores"], expected, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """A copy of the package with the page's edit."""
    (diff,) = (text for language, text in blocks(PAGE) if language == "diff")
    old, new = (line[1:].strip() for line in diff.strip().splitlines())
    package = tmp_path_factory.mktemp("edited") / "transformer_plugin"
    shutil.copytree(REPO / "transformer_plugin", package)
    path = package / "modules/attention.py"
    source = path.read_text(encoding="utf-8")
    assert source.count(old) == 1
    path.write_text(source.replace(old, new), encoding="utf-8")
    return package


def test_the_log_says_what_the_page_says_of_its_edit(edited, toy, tmp_path):
    (line,) = (text for language, text in blocks(PAGE) if language == "text")
    words = ["--arch", "vaswani_tiny", "--max-tokens", "500", "--lr", "1", "--save-dir", tmp_path]
    done = subprocess.run(
        ["fairseq-train", toy / "data-bin", "--user-dir", edited, "--task", "vaswani_translation",
         "--criterion", "vaswani_cross_entropy", "--optimizer", "vaswani_adam",
         "--lr-scheduler", "noam", *words, *SHORT.split(), "--disable-validation"],
        capture_output=True, text=True, check=False,
        env=environment() | {"PYTHONPATH": str(edited.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert line.strip() in done.stdout + done.stderr


@pytest.mark.slow
def test_a_model_with_the_edit_of_the_page_is_not_converted(edited, toy, tmp_path):
    checkpoint = toy / "checkpoints/checkpoint_last.pt"
    words = ["convert", checkpoint, tmp_path / "stock.pt", "--to", "stock"]
    for folder, status in ((edited.parent, 2), (REPO, 0)):
        done = subprocess.run(
            ["transformer-plugin", *words], capture_output=True, text=True, check=False,
            env=environment() | {"PYTHONPATH": str(folder)},
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        assert ("have been edited" in done.stderr) == bool(status)
        assert (tmp_path / "stock.pt").exists() == (not status)
