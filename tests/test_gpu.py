"""What a GPU computes is what a CPU computes. Run by `make test-gpu`, where there is a GPU."""

import functools
import re

import pytest
import torch
from fairseq_commands import generate, run, train, training

from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.search.next_tokens import Rules

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
LOG = ("--dropout", "0", "--no-progress-bar", "--log-format", "simple", "--log-interval", "1")


def on_gpu(sample):
    moved = {k: v.cuda() if torch.is_tensor(v) else v for k, v in sample.items()}
    return moved | {"net_input": {k: v.cuda() for k, v in sample["net_input"].items()}}


def test_logits_loss_and_gradients(build, batch, toy_task):
    sample = batch([7, 4, 9], [3, 6, 5])
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    one, two = build().double(), build().double().cuda()
    logits = two(**on_gpu(sample)["net_input"])[0]
    assert torch.allclose(logits.cpu(), one(**sample["net_input"])[0], atol=1e-10)
    for model, inputs in ((one, sample), (two, on_gpu(sample))):
        criterion(model, inputs)[0].backward()
    for (name, p), q in zip(one.named_parameters(), two.parameters(), strict=True):
        assert torch.allclose(p.grad, q.grad.cpu(), atol=1e-9), name


def losses(done):
    found = re.findall(r"train_inner \| .* loss=([\d.]+), .*num_updates=(\d+)", done.stdout)
    return {int(update): float(loss) for loss, update in found}


@pytest.fixture(scope="module")
def on_cpu(toy, tmp_path_factory):
    return losses(train(toy / "data-bin", tmp_path_factory.mktemp("cpu"), *LOG))


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--fp16", "--fp16-init-scale", "4"],
        ["--bf16"],
        ["--amp"],
        ["--fp16", "--memory-efficient-fp16", "--fp16-init-scale", "4"],
        ["--fp16", "--fp16-init-scale", "4", "--update-freq", "1", "--clip-norm", "1000"],
    ],
    ids=" ".join,
)
def test_training_has_the_cpus_losses(toy, tmp_path, on_cpu, flags):
    command = [w for w in training(toy / "data-bin", tmp_path, *LOG, *flags) if w != "--cpu"]
    found = losses(run(*command))
    for update in (1, 10, 11, 12):
        assert found[update] == pytest.approx(on_cpu[update], rel=0.01), update


def test_generation_has_the_cpus_translations(toy):
    checkpoint = toy / "checkpoints/averaged.pt"

    def translations(done):
        return dict(re.findall(r"^(H-\d+)\t\S+\t(.*)$", done.stdout, re.MULTILINE))

    cpu = translations(generate(toy / "data-bin", checkpoint))
    words = [
        *("fairseq-generate", toy / "data-bin", "--path", checkpoint),
        *("--task", "vaswani_translation", "--remove-bpe", "sentencepiece"),
        *("--user-dir", "transformer_plugin"),
    ]
    gpu = translations(run(*words))
    assert len(cpu) == len(gpu) == 500
    assert sum(cpu[i] == gpu[i] for i in cpu) >= 495  # ties that rounding breaks
    half = translations(run(*words, "--fp16"))
    assert len(half) == 500


@pytest.mark.parametrize("beam_size", [1, 4])
def test_steps_by_cuda_graphs_find_the_same(build, batch, monkeypatch, caplog, beam_size):
    model = build(seed=3).cuda().eval()
    with torch.no_grad():
        model.decoder.output_projection.weight.mul_(4)
    sample = on_gpu(batch([9, 3, 30, 7, 4, 5, 8, 2], [3] * 8))
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)
    generator = VaswaniGenerator([model], Rules(beam_size, lp, "bound", eos=2, pad=1, unk=3))

    def translations():
        found = generator.generate([model], sample)
        return [[h["tokens"].tolist() for h in hypotheses] for hypotheses in found]

    by_graphs = translations()
    assert "without a CUDA graph" not in caplog.text
    monkeypatch.setenv("TRANSFORMER_PLUGIN_CUDA_GRAPHS", "0")
    assert by_graphs == translations()
