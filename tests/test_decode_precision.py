"""Arithmetic of decoding, and batches that are translated side by side."""

from argparse import Namespace

import pytest
import torch
from fairseq_commands import generate, last_line
from torch import nn
from trainers import build_trainer

import transformer_plugin
from transformer_plugin import generator as generator_module
from transformer_plugin import task as task_module
from transformer_plugin.decode_precision import in_precision
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.int8_linear import Int8Linear
from transformer_plugin.modules.operation import Implementation
from transformer_plugin.modules.products import product_type
from transformer_plugin.retained_dropout import is_random
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.translation.loading import _configuration, arguments_of

PAD, EOS = 1, 2
RULES = Rules(3, lambda length: length, "first-finished", eos=EOS, pad=PAD, unk=3)


def test_int8_is_a_rounding_of_fp32(build, batch):
    model = build(seed=2).eval()
    sample = batch([4, 3], [3, 2])["net_input"]
    with torch.no_grad():
        exact = model(**sample)[0]
        rounded = in_precision(model, "int8")(**sample)[0]
    assert not rounded.equal(exact)
    assert (rounded - exact).abs().max() < 0.1 * exact.abs().max()


def test_a_linear_layer_with_a_hook_is_not_rounded(build, batch):
    found = []
    for hooked in (False, True):
        model = build(seed=2).eval()
        if hooked:
            outer = model.decoder.layers[0].feed_forward.outer
            outer.register_forward_hook(lambda module, inputs, output: 2 * output)
        with torch.no_grad():
            found.append(in_precision(model, "int8")(**batch([4, 3], [3, 2])["net_input"])[0])
    assert (found[0] - found[1]).abs().max() > 0.1 * found[0].abs().max()


class LowRank(nn.Module):
    """An adapter (LoRA) that reads the weights of its children instead of calling them."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.factors = nn.ModuleList(
            [nn.Linear(base.in_features, 2), nn.Linear(2, base.out_features)]
        )

    def forward(self, x):
        down, up = (factor.weight for factor in self.factors)
        return nn.functional.linear(x, self.base.weight + up @ down, self.base.bias)


def test_linear_layers_of_a_users_module_are_not_rounded(build, batch):
    """The module read 8-bit weights without their scale."""
    model, sample = build(seed=2).eval(), batch([4, 3], [3, 2])["net_input"]
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.feed_forward.inner = LowRank(layer.feed_forward.inner)
    with torch.no_grad():
        exact = model(**sample)[0]
        rounded = in_precision(model, "int8")(**sample)[0]
    assert (rounded - exact).abs().max() < 0.1 * exact.abs().max()
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        assert isinstance(layer.self_attention.output, Int8Linear)
        assert isinstance(layer.feed_forward.outer, Int8Linear)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_loaded_model_is_converted_once_and_searched_in_all_threads(toy, monkeypatch, precision):
    """A second conversion would disturb a thread that searches."""
    model = transformer_plugin.load(toy, precision=precision, cpu=True)
    monkeypatch.setattr(task_module, "in_precision", lambda *_: pytest.fail("converted again"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    for alpha in (0.6, 1.0):
        (translation,) = model.translate(["Is a table black?"], alpha=alpha)
        assert translation.text
    assert not is_random(model.models[0])


def test_a_model_that_is_being_trained_is_not_converted(tmp_path):
    """Where validation translates, as --eval-bleu does."""
    trainer, _ = build_trainer(tmp_path, "--decode-precision", "bf16")
    model = trainer.get_model()
    generator = trainer.task.build_generator([model], Namespace(beam=2))
    assert generator.models[0] is model
    assert all(p.requires_grad and p.dtype == torch.float32 for p in model.parameters())


@pytest.mark.parametrize("faster", [torch.bfloat16, torch.float32])
def test_bf16_rounds_the_weights_and_takes_the_faster_products(build, monkeypatch, faster):
    slow = Implementation(lambda weight: weight.dtype != faster, lambda weight: faster)
    monkeypatch.setattr(product_type, "implementations", [slow])
    exact = build(seed=2)
    model = in_precision(build(seed=2), "bf16")
    for rounded, whole in zip(model.parameters(), exact.parameters(), strict=True):
        assert rounded.dtype == faster
        assert torch.equal(rounded.bfloat16(), whole.bfloat16())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_fp16_on_a_cpu_is_refused(build, toy):
    with pytest.raises(ValueError, match="needs a GPU: use bf16 or int8"):
        in_precision(build(), "fp16")
    checkpoint = toy / "checkpoints/averaged.pt"
    done = generate(toy / "data-bin", checkpoint, "--decode-precision", "fp16", status=1)
    assert last_line(done).startswith("--decode-precision fp16 needs a GPU")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "capabilities, options, expected",
    [
        ([], {}, None),
        ([(9, 0)], {}, "bf16"),
        ([(8, 0)], {}, "bf16"),
        ([(7, 5)], {}, "fp16"),
        ([(8, 0), (7, 0)], {}, "fp16"),
        ([(9, 0)], {"decode_precision": "fp32"}, "fp32"),
        ([(9, 0)], {"cpu": True}, None),
    ],
)
def test_a_gpu_translates_in_half_precision(monkeypatch, capabilities, options, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(capabilities))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(capabilities))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda i=0: capabilities[i])
    cfg = _configuration(arguments_of("data-bin", "model.pt", **options))
    assert cfg.task.decode_precision == expected


def test_batches_side_by_side_give_what_one_gives(build, monkeypatch):
    """Sentences in any order, in batches of any size, in one thread or two."""
    torch.manual_seed(0)
    sources = torch.full((10, 10), PAD)
    for row, length in zip(sources, (3, 9, 1, 7, 5, 5, 2, 8, 4, 6), strict=True):
        row[: length + 1] = torch.cat([torch.randint(4, 60, (length,)), torch.tensor([EOS])])
    model = build(seed=4).eval()
    model.decoder.output_projection.weight.data.mul_(4)
    found = {}
    threads = torch.get_num_threads()
    for workers in (1, 2):
        torch.set_num_threads(workers)
        for budget in (20, 200):
            monkeypatch.setattr(generator_module, "_CPU_BATCH", budget)
            for order in (list(range(10)), [7, 2, 9, 0, 4, 1, 8, 6, 3, 5]):
                sample = {"net_input": {"src_tokens": sources[order]}}
                generator = VaswaniGenerator([model], RULES, 0, 12)
                hypotheses = generator.generate([model], sample)
                found[workers, budget, order[0]] = [
                    [(h["tokens"].tolist(), h["score"].item()) for h in hypotheses[order.index(i)]]
                    for i in range(10)
                ]
    torch.set_num_threads(threads)
    first = found[1, 20, 0]
    for other in found.values():
        for mine, theirs in zip(first, other, strict=True):
            assert [tokens for tokens, _ in mine] == [tokens for tokens, _ in theirs]
            assert [s for _, s in mine] == pytest.approx([s for _, s in theirs], abs=1e-5)
