"""Whoever edits an equation in its one file gets it in training and in search, kernels or not."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_commands import REPO, environment

PACKAGE = REPO / "transformer_plugin"
SCRIPT = Path(__file__).with_name("edited_copy.py")
# Name: the file, its text, the new text, what changes, and the kernels that go off.
EDITS = {
    "scale of attention": (
        *("modules/attention.py", "1 / math.sqrt(d_k) if", "1 / d_k if"),
        *("loss scores", ["attention", "decoder_cache", "fused_attention"]),
    ),
    "which positions are seen": (
        *(
            "modules/attention.py",
            "seen = distance >= 0 if",
            "seen = (distance >= 0) & (distance <= 3) if",
        ),
        *("loss scores", ["attention", "decoder_cache", "decoder_layers"]),
    ),
    "softmax temperature": (
        *("modules/attention.py", "scores = scores.to(", "scores = 0.5 * scores.to("),
        *("loss scores", ["attention", "decoder_cache", "fused_attention"]),
    ),
    "ReLU to GELU": (
        "modules/feed_forward.py",
        "linear(self.inner, x, relu=True)",
        "nn.functional.gelu(linear(self.inner, x))",
        *("loss scores", ["decoder_layers"]),
    ),
    "ReLU to ELU in the linear map": (
        *("modules/linear.py", "F.relu(y) if", "F.elu(y) if"),
        "loss scores",
        ["attention", "linear", "packed_linear", "decoder_cache", "decoder_layers"],
    ),
    "epsilon of the norm": (
        *("modules/residual.py", "LayerNorm(d_model, eps=eps)", "LayerNorm(d_model, eps=1.0)"),
        *("loss scores", ["decoder_layers"]),
    ),
    "order of residual and norm": (
        *(
            "modules/residual.py",
            "self.norm(x + dropout(sublayer(x), rate))",
            "x + self.norm(dropout(sublayer(x), rate))",
        ),
        *("loss scores", ["decoder_layers"]),
    ),
    "smoothing mass": (
        "modules/label_smoothing.py",
        "share = epsilon / (logits.size(1) - 1)",
        "share = 2 * epsilon / logits.size(1)",
        *("loss", ["chunked_loss"]),
    ),
    "what the layers end with": (
        "modules/stack.py",
        "return (x if self.norm is None else self.norm(x)), all_weights",
        "return (x.tanh() if self.norm is None else self.norm(x)), all_weights",
        *("loss scores", ["decoder_layers"]),
    ),
    "output layer": (
        *("modules/decoder.py", "self.output_projection(features)"),
        "self.output_projection(features) / 2",
        *("loss scores", ["chunked_loss", "logit_chunks"]),
    ),
    "base of the positional encoding": (
        *("modules/positional_encoding.py", "/ 10000**exponent", "/ 10**exponent"),
        *("loss scores", []),
    ),
    "length penalty": (
        *("modules/length_penalty.py", "((5 + length) / 6) ** alpha", "length ** (2 * alpha)"),
        *("scores", []),
    ),
    "stop rule": (
        "search/finished_hypotheses.py",
        "return (worst >= best_live / penalty) & worst.isfinite() | out_of_steps",
        "return self.scores[rows].amax(dim=1).isfinite() | out_of_steps",
        *("scores", []),
    ),
    "type of products": (
        *("modules/products.py", "return weight.dtype", "return torch.bfloat16"),
        *("", ["chunked_loss", "decoder_layers", "linear", "packed_linear", "products"]),
    ),
    "choice of the likeliest tokens": (
        *("search/candidates.py", "log_p.topk(k, dim=1)", "log_p.mul(0.5).topk(k, dim=1)"),
        *("scores", ["candidates"]),
    ),
    "a method assigned below its class": (
        "modules/attention.py",
        "",
        "AttentionScore.forward = lambda self, q, k: (q @ k.mT).tanh()\n",
        "loss scores",
        ["attention", "decoder_cache", "decoder_layers", "fused_attention"],
    ),
    "a variant under a condition": (
        "modules/label_smoothing.py",
        "",
        "if torch:\n    def smoothed_cross_entropy(logits, target, epsilon):\n"
        "        nll = torch.nn.functional.cross_entropy(logits, target, reduction='none')\n"
        "        return nll**2, nll\n",
        *("loss", ["chunked_loss"]),
    ),
    "a function that hides an imported one": (
        *("modules/attention.py", "", "\n\ndef dropout(x, rate):\n    return x / 2\n"),
        *("loss scores", ["attention", "decoder_cache", "fused_attention"]),
    ),
    "an equation from outside": (
        "search/candidates.py",
        "def log_probabilities(logits: Tensor)",
        "from torch.nn.functional import logsigmoid as log_probabilities\n\ndef _old(logits)",
        *("scores", ["candidates"]),
    ),
}


def edited(folder, file, old, new):
    """A copy of the package in which the text ``old`` of a file is ``new``, or ``new`` is added."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "transformer_plugin", ignore=ignored)
    path = folder / "transformer_plugin" / file
    source = path.read_text(encoding="utf-8")
    assert not old or source.count(old) == 1, f"{file} has no longer one '{old}': edit EDITS"
    path.write_text(source.replace(old, new) if old else source + new, encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """For each edit, and for none: the numbers with kernels, and those without."""
    root = tmp_path_factory.mktemp("edited")
    folders = {"none": str(REPO)}
    for i, (name, edit) in enumerate(EDITS.items()):
        folders[name] = edited(root / str(i), *edit[:3])
    runs = [(folder, on) for folder in folders.values() for on in (True, False)]
    done = subprocess.run(
        [sys.executable, SCRIPT],
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env=environment() | {"PYTHONPATH": ""},
        cwd=root,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(folders, zip(lines[::2], lines[1::2], strict=True), strict=True))


def close(one, other):
    return one == pytest.approx(other, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", ["none", *EDITS])
def test_kernels_give_what_the_plain_functions_give(results, name):
    on, off = results[name]
    assert close(on["loss"], off["loss"])
    assert close(on["gradient"], off["gradient"])
    assert on["tokens"] == off["tokens"]
    assert close(on["scores"], off["scores"])
    assert off["log"] == ""


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_changes_what_it_should(results, name):
    before, after = results["none"][0], results[name][0]
    changed = {key for key in ("loss", "scores") if not close(before[key], after[key])}
    assert changed == set(EDITS[name][3].split())


@pytest.mark.parametrize("name", ["none", *EDITS])
def test_the_log_names_what_changed_and_each_kernel_that_is_off(results, name):
    lines = results[name][0]["log"].splitlines()
    file, off = (EDITS[name][0], EDITS[name][4]) if name in EDITS else ("", [])
    assert all(line.startswith(file) and "has changed; its kernel" in line for line in lines)
    kernels = [path for line in lines for path in re.findall(r"kernels/\S+\.py", line)]
    cpu = [Path(path).stem for path in kernels if "/cuda/" not in path]
    assert sorted(cpu) == sorted(off), lines
    assert len(lines) == bool(off), lines


@pytest.mark.parametrize("name", ["none", *EDITS])
def test_a_model_of_edited_equations_is_not_converted(results, name):
    """Other software would apply its own to the weights; the search is not part of a model, and
    positional encodings are converted as a table."""
    converted = {
        *("none", "smoothing mass", "base of the positional encoding", "length penalty"),
        *("stop rule", "choice of the likeliest tokens", "a variant under a condition"),
        *("an equation from outside", "type of products"),
    }
    for numbers in results[name]:
        assert (numbers["refusal"] is None) == (name in converted)
