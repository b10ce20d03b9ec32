"""What a GPU computes is what a CPU computes. Run by `make test-gpu`, where there is a GPU."""

import functools
import json
import re

import pytest
import torch
from fairseq_commands import generate, run, train, training
from trainers import build_trainer

from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.kernels.cuda.cuda_graph import _Recordings
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
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


def train_on_gpu(*arguments):
    """A short run of fairseq-train on one GPU, however many there are."""
    command = [word for word in training(*arguments) if word != "--cpu"]
    return run(*command, "--distributed-world-size", "1")


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
    found = losses(train_on_gpu(toy / "data-bin", tmp_path, *LOG, *flags))
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


def test_a_run_in_fp16_goes_on_as_if_it_had_not_stopped(toy, tmp_path):
    flags = (*LOG, "--fp16", "--fp16-init-scale", "4", "--update-freq", "2")
    whole = losses(train_on_gpu(toy / "data-bin", tmp_path / "whole", *flags))
    train_on_gpu(toy / "data-bin", tmp_path / "parts", *flags, "--max-update", "6")
    rest = losses(train_on_gpu(toy / "data-bin", tmp_path / "parts", *flags))
    assert rest.keys() == set(range(7, 13))
    assert rest == pytest.approx({update: whole[update] for update in rest}, rel=2e-3)


def test_adam_sees_the_gradient_of_fp32_under_amp(tmp_path):
    seen = {}
    for amp in (False, True):
        trainer, (batch, *_) = build_trainer(tmp_path / str(amp), amp=amp, on_gpu=True)
        adam = trainer.optimizer.optimizer
        step = adam.step
        monitored = [p for group in adam.param_groups for p in group["params"]]

        def recorded(*args, amp=amp, step=step, monitored=monitored, **kwargs):
            seen[amp] = torch.cat([p.grad.flatten() for p in monitored])
            return step(*args, **kwargs)

        adam.step = recorded
        trainer.train_step([batch])
    error = (seen[True] - seen[False]).norm() / seen[False].norm()
    assert error < 0.02  # the rounding of fp16


def test_the_host_does_not_wait_for_the_gpu_in_a_forward_pass(tmp_path):
    trainer, (batch, *_) = build_trainer(tmp_path, on_gpu=True)
    trainer.train_step([batch])
    sample, _ = trainer._prepare_sample(batch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        trainer.criterion(trainer.get_model(), sample)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_compiled_model_has_the_losses_and_gradients_of_the_model(build, batch, toy_task):
    sample = on_gpu(batch([7, 4, 9], [3, 6, 5]))
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    gradients = []
    for wrap in (lambda model: model, torch.compile):
        model = build().cuda()
        criterion(wrap(model), sample)[0].backward()
        gradients.append([p.grad for p in model.parameters()])
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("d_k", [16, 32, 128])
def test_heads_of_other_widths(build, batch, d_k, dtype):
    """In half precision over packed rows, where the GPU can."""
    sample = batch([7, 4, 9], [3, 6, 5])["net_input"]
    fields = {"d_model": 2 * d_k, "num_heads": 2}
    expected = build(**fields).eval()(**sample)[0]
    model = build(**fields).cuda().to(dtype).eval()
    found = model(**{name: value.cuda() for name, value in sample.items()})[0]
    assert (found.float().cpu() - expected).norm() < 0.03 * expected.norm()


@torch.no_grad()
def test_attention_dropout_keeps_the_mean(build, batch):
    """The mean of many passes is that without dropout, in one layer before any non-linearity."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(32, 4, dropout=0.3).cuda()
    x = torch.randn(2, 9, 32, device="cuda")
    expected = attention.eval()(x)[0]
    passes = torch.stack([attention.train()(x)[0] for _ in range(2000)])
    spread = passes.std(dim=0) / 2000**0.5
    assert (passes.std(dim=0) > 0).all()
    assert ((passes.mean(dim=0) - expected).abs() < 6 * spread).all()


@pytest.fixture
def searched(build, batch):
    """searched(dtype, models, beam) finds the translations of some sentences on the GPU."""
    lp = functools.partial(gnmt_length_penalty, alpha=0.6)

    def search(dtype=torch.float32, models=1, beam_size=4, sentences=8):
        built = [build(seed=3 + i).cuda().to(dtype).eval() for i in range(models)]
        with torch.no_grad():
            for model in built:
                model.decoder.output_projection.weight.mul_(4)
        lengths = [9, 3, 30, 7, 4, 5, 8, 2] * (sentences // 8)
        sample = on_gpu(batch(lengths, [3] * len(lengths)))
        generator = VaswaniGenerator(built, Rules(beam_size, lp, "bound", eos=2, pad=1, unk=3))
        found = generator.generate(built, sample)
        return [[(h["tokens"].tolist(), float(h["score"])) for h in hyps] for hyps in found]

    return search


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_steps_by_cuda_graphs_find_the_same(
    searched, monkeypatch, caplog, dtype, beam_size, models
):
    recorded, record = [], _Recordings.record
    monkeypatch.setattr(_Recordings, "record", lambda *args: recorded.append(1) or record(*args))
    by_graphs = searched(dtype, models, beam_size)
    assert len(recorded) >= models and "without CUDA graphs" not in caplog.text
    monkeypatch.setenv("TRANSFORMER_PLUGIN_CUDA_GRAPHS", "0")
    plain = searched(dtype, models, beam_size)
    best = [(mine[0], theirs[0]) for mine, theirs in zip(by_graphs, plain, strict=True)]
    same = sum(mine[0] == theirs[0] for mine, theirs in best)
    assert same == 8 if dtype == torch.float32 else same >= 6  # ties that rounding breaks
    for (_, mine), (_, theirs) in best:
        assert mine == pytest.approx(theirs, abs=1e-4 if dtype == torch.float32 else 0.05)


def test_a_search_out_of_memory_is_made_in_halves(searched, monkeypatch):
    batches = []
    search = VaswaniGenerator._search

    def counted(self, tokens, sentences, *rest):
        batches.append(sentences.numel())
        return search(self, tokens, sentences, *rest)

    monkeypatch.setattr(VaswaniGenerator, "_search", counted)
    monkeypatch.setenv("TRANSFORMER_PLUGIN_CUDA_GRAPHS", "0")
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    expected = searched(sentences=1024)
    needed = torch.cuda.max_memory_reserved() - before
    whole, batches[:] = len(batches), []
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved() + 0.6 * needed
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(limit / total)
    try:
        found = searched(sentences=1024)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert len(batches) > whole
    same = sum(a[0][0] == b[0][0] for a, b in zip(found, expected, strict=True))
    assert same >= 1000  # ties that rounding breaks


def test_bench_measures_a_gpu(tmp_path):
    run(
        *("python3", "bench/train.py", "--device", "cuda", "--arch", "vaswani_tiny"),
        *("--precision", "fp16", "bf16", "--data", "synthetic", "--words", 200),
        *("--sentences", 300, "--max-tokens", 512, "--rounds", 1, "--updates", 1),
        *("--peers", "torch", "--json", tmp_path / "rows.json", "--profile", tmp_path / "p.json"),
    )
    rows = json.loads((tmp_path / "rows.json").read_text())
    systems = ["stock", "stock", "plugin", "plugin", "torch", "torch"]
    assert [row["system"] for row in rows] == systems
    profile = json.loads((tmp_path / "p.json").read_text())["plugin bf16"]
    assert any(row["gpu_ms"] > 0 for row in profile)
    assert any(row["name"].startswith("cudaLaunchKernel") for row in profile)
