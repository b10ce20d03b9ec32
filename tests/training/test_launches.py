"""What a GPU is not asked to do in training: nothing is launched to count FLOPs, and nothing waits.

The meta device stands for the GPU: it has no numbers, so whoever asks for one fails.
"""

import contextlib

import pytest
import torch
from fairseq import utils
from torch.utils._python_dispatch import TorchDispatchMode
from trainers import build_trainer

from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.kernels import fused_adam
from transformer_plugin.kernels.cuda import varlen_attention
from transformer_plugin.modules.adam import AdamOptions, AdamTensors, adam_update, gradient_norm
from transformer_plugin.modules.packing import pack_tokens


@pytest.fixture
def on_meta(tmp_path, monkeypatch):
    """on_meta(*flags) gives a trainer that takes meta for its GPU, and a batch on the host."""

    def build(*flags):
        trainer, (batch, *_) = build_trainer(tmp_path, *flags)
        monkeypatch.setattr(trainer, "cuda", True)
        to_meta = lambda sample: utils.apply_to_sample(lambda t: t.to("meta"), sample)  # noqa: E731
        monkeypatch.setattr(utils, "move_to_cuda", to_meta)
        monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: False)  # unknown to meta
        monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
        return trainer, batch

    return build


def step(trainer, batch):
    """The forward and the backward pass of the trainer, with its model on meta."""
    sample, _ = trainer._prepare_sample(batch)
    model = trainer.get_model().to("meta").train()
    loss, sample_size, log = trainer.criterion(model, sample)
    loss.backward()
    assert all(p.grad.is_meta for p in model.parameters())
    assert sample_size == batch["ntokens"] and log["flops"].item() > 0
    return log


def asked():
    """Something in it asks for what only the GPU knows."""
    return pytest.raises(NotImplementedError, match="meta")


@pytest.mark.parametrize("switch, padded_side", [((), -1), (("--left-pad-source",), 0)])
def test_nothing_waits_for_the_gpu(on_meta, switch, padded_side):
    trainer, batch = on_meta(*switch)
    assert batch["net_input"]["src_tokens"][:, padded_side].eq(trainer.criterion.padding_idx).any()
    log = step(trainer, batch)
    assert all(log[name].is_meta for name in ("loss", "nll_loss", "correct"))


@pytest.mark.parametrize("switch", ["--left-pad-source", "--left-pad-target"])
def test_nothing_waits_for_the_gpu_in_the_calls_of_fairseqs_losses(on_meta, switch):
    trainer, batch = on_meta(switch, "--criterion", "label_smoothed_cross_entropy")
    batch["target"] = batch["target"][:, 1:]  # what a target is, is the loss's affair
    sample, _ = trainer._prepare_sample(batch)
    model = trainer.get_model().to("meta").train()
    logits, _ = model(**sample["net_input"])
    logits.sum().backward()
    encoded = model.encoder(sample["net_input"]["src_tokens"])
    assert logits.shape[:2] == batch["net_input"]["prev_output_tokens"].shape
    assert encoded["encoder_out"][0].is_meta


def test_nothing_waits_for_the_gpu_in_flash_attention(on_meta, monkeypatch):
    calls = []

    def flash_attention(q, k, v, starts, key_starts, max_q, max_k, **options):
        assert isinstance(max_q, int) and isinstance(max_k, int)
        calls.append((starts, key_starts))
        return q * k.sum() * v.sum()

    monkeypatch.setattr(varlen_attention, "_can_read", lambda rows: True)
    monkeypatch.setattr(varlen_attention, "flash_attention", lambda: flash_attention)
    trainer, batch = on_meta()
    step(trainer, batch)
    assert len(calls) == 3 * len(trainer.get_model().encoder.layers)
    assert len({id(starts) for pair in calls for starts in pair}) == 2  # made once, on the host


def test_the_meta_device_would_notice(on_meta, monkeypatch):
    monkeypatch.setattr(pack_tokens, "implementations", [])
    trainer, batch = on_meta()
    with asked():
        step(trainer, batch)


def test_ids_that_have_changed_are_packed_anew(on_meta):
    trainer, batch = on_meta()
    sample, _ = trainer._prepare_sample(batch)
    target, pad = sample["target"], trainer.criterion.padding_idx
    assert pack_tokens(target, pad)[0].numel() == batch["ntokens"]
    for arguments in ((target.clone(), pad), (target, pad + 1), (target, pad, 8)):
        with asked():
            pack_tokens(*arguments)
    target[0, 0] = 5
    with asked():
        pack_tokens(target, pad)


class Launches(TorchDispatchMode):
    """Counts operations."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_the_norm_of_many_gradients_is_one_operation():
    gradients = [torch.randn(n, 9).bfloat16() for n in range(1, 200)]
    with Launches() as launches:
        norm = gradient_norm(gradients)
    assert len(launches.names) == 3  # the norm of each, a vector of these, its norm
    each = [torch.linalg.vector_norm(g, dtype=torch.float32) for g in gradients]
    assert norm.equal(torch.linalg.vector_norm(torch.stack(each)))


def test_gradients_are_multiplied_by_a_factor_of_their_type(monkeypatch):
    """Several processes sum the sizes of their batches in float64; foreach kernels do not mix."""
    of_gpus = [i for i in adam_update.implementations if i.run is fused_adam.fused_adam_update]
    monkeypatch.setattr(adam_update, "implementations", of_gpus)
    tensors = [AdamTensors(*torch.rand(4, 50)) for _ in range(3)]
    expected = [AdamTensors(*(each.clone() for each in one[:4])) for one in tensors]
    factor, numbers = torch.rand((), dtype=torch.float64), (1, 0.1, 0.9, 0.98, 1e-9, 0.0)

    seen = []

    class Factors(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.overloadpacket is torch.ops.aten._foreach_mul_:
                seen.append(args[1].dtype)
            return func(*args, **(kwargs or {}))

    with Factors():
        adam_update(tensors, AdamOptions(*numbers, factor))
    assert seen == [torch.float32]
    scaled = [one._replace(gradient=one.gradient * factor) for one in expected]
    adam_update(scaled, AdamOptions(*numbers))
    for mine, theirs in zip(tensors, expected, strict=True):
        assert mine.weight.equal(theirs.weight)


def test_flops_are_counted_on_the_host(on_meta, monkeypatch):
    trainer, batch = on_meta()
    trainer.criterion.peak_tflops = 1.0
    model, rows = trainer.get_model().train(), torch.zeros(1)
    expected = trainer.criterion._work(model, batch, rows)
    with monkeypatch.context() as cpu:
        cpu.setattr(trainer, "cuda", False)
        assert "vaswani_lengths" not in trainer._prepare_sample(batch)[0]
    moved, is_dummy = trainer._prepare_sample(batch)
    assert moved["target"].is_meta and moved["net_input"]["src_lengths"].is_meta and not is_dummy
    found = trainer.criterion._work(model, moved, rows)
    assert found["flops"].item() == expected["flops"].item() > 0
    assert found["peak_seconds"].item() == expected["peak_seconds"].item()
    with torch.no_grad():
        values = VaswaniCrossEntropy.forward(trainer.criterion, model, batch)[2]
    assert values["flops"].item() == pytest.approx(expected["flops"].item())
    trainer.reset_dummy_batch(batch)
    assert trainer._prepare_sample({})[1]  # where this process has no batch
