"""Settings there and back: stock fairseq's architectures, and what the other side cannot hold."""

from __future__ import annotations

from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.transformer import TransformerModel
from omegaconf import OmegaConf
from stock_models import HALF, POSITIONS, UNTIED, stock_settings

from transformer_plugin.checkpoints.exchange.conversion import convert
from transformer_plugin.checkpoints.stock_settings import UnsupportedModel, to_plugin, to_stock
from transformer_plugin.config import completed
from transformer_plugin.model import VaswaniTransformer


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("layer_norm_eps", 0.1), ("d_k", 5), ("d_v", 9)],
        *[("attention_score", "dot"), ("attention_window", 2)],
    ],
)
def test_what_stock_cannot_hold_is_named(name, value, stock_switches):
    with pytest.raises(UnsupportedModel, match=f"--{name.replace('_', '-')} {value}"):
        to_stock(stock_switches | {name: value})


REFUSED = {
    "activation_fn": "gelu",
    "adaptive_softmax_cutoff": "5,9",
    "adaptive_input": True,
    "layernorm_embedding": True,
    "no_scale_embedding": True,
    "no_token_positional_embeddings": True,
    "no_cross_attention": True,
    "cross_self_attention": True,
    "no_decoder_final_norm": True,
    "merge_src_tgt_embed": True,
    "encoder_layerdrop": 0.1,
    "decoder_layerdrop": 0.1,
    "encoder_layers_to_keep": "0,2",
    "quant_noise_pq": 0.1,
    "quant_noise_scalar": 0.1,
    "base_layers": 1,
    "decoder_embed_dim": 8,
    "decoder_ffn_embed_dim": 8,
    "decoder_attention_heads": 2,
    "decoder_normalize_before": True,
    "decoder_learned_pos": True,
    "decoder_output_dim": 8,
}


@pytest.mark.parametrize(("name", "value"), REFUSED.items())
def test_what_the_plugin_cannot_hold_is_named(name, value):
    with pytest.raises(UnsupportedModel, match=f"--{name.replace('_', '-')} {value}"):
        to_plugin(stock_settings({name: value}))


STOCK_ARCHITECTURES = [
    *("transformer", "transformer_tiny", "transformer_iwslt_de_en", "transformer_wmt_en_de"),
    *("transformer_vaswani_wmt_en_de_big", "transformer_vaswani_wmt_en_fr_big"),
    *("transformer_wmt_en_de_big", "transformer_wmt_en_de_big_t2t"),
]


def test_every_stock_architecture_is_known():
    known = {name for name, model in ARCH_MODEL_REGISTRY.items() if model is TransformerModel}
    assert known == set(STOCK_ARCHITECTURES)


@pytest.mark.parametrize("architecture", STOCK_ARCHITECTURES)
def test_every_stock_architecture_converts(architecture, toy_task):
    for tying in ({"share_all_embeddings": True}, UNTIED, HALF):
        args = Namespace(arch=architecture, **tying, **POSITIONS)
        ARCH_CONFIG_REGISTRY[architecture](args)
        with torch.device("meta"):
            stock = TransformerModel.build_model(args, toy_task)
        state = {"cfg": {"model": args}, "model": stock.state_dict()}
        settings = convert(state, "plugin")["cfg"]["model"]
        with torch.device("meta"):
            ours = VaswaniTransformer.build_model(completed(OmegaConf.create(settings)), toy_task)
        sizes = [sum(p.numel() for p in model.parameters()) for model in (ours, stock)]
        assert sizes[0] == sizes[1]
        again = vars(to_stock(settings))
        usual = {"arch": "transformer"}
        assert {**vars(args), **usual} == {**vars(args), **again, **usual}


def test_another_stock_model_is_refused():
    with pytest.raises(UnsupportedModel, match="--arch lightconv"):
        convert({"cfg": {"model": Namespace(arch="lightconv")}, "model": {}}, "plugin")


def test_a_converted_run_searches_as_stock_and_knows_its_criterion(stock_checkpoint):
    found = convert(stock_checkpoint, "plugin")
    assert found["cfg"]["task"]["fidelity"] == "fairseq"
    assert found["optimizer_history"][0]["criterion_name"] == "VaswaniCrossEntropy"
