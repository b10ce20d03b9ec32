"""Parameters and FLOPs by formula against models that are built and run, and the paper's tables."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from transformer_plugin.cli import main
from transformer_plugin.flops import Dimensions, transformer_flops
from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.modules.linear import linear
from transformer_plugin.modules.products import row_multiple
from transformer_plugin.presets import PRESETS
from transformer_plugin.reports.accounting import account, configuration
from transformer_plugin.reports.parameters import transformer_parameters

PRINTED = {  # Table 3, millions of parameters
    "vaswani_base": 65,
    "vaswani_table3_b1": 58,
    "vaswani_table3_b2": 60,
    "vaswani_table3_c1": 36,
    "vaswani_table3_c2": 50,
    "vaswani_table3_c3": 80,
    "vaswani_table3_c4": 28,
    "vaswani_table3_c5": 168,
    "vaswani_table3_c6": 53,
    "vaswani_table3_c7": 90,
    "vaswani_big": 218,  # printed: 213, see test_big_has_213_million_with_36000_words
}


def output_of(capsys, *arguments):
    assert main(["flops", *arguments]) == 0
    return capsys.readouterr().out


OWN = {  # as a user's line in PRESETS
    "deep_and_thin": {"encoder_layers": 12, "d_model": 256},
    "untied": {"untie_embeddings": True},
    "untied_source": {"untie_source_embedding": True},
    "additive": {"attention_score": "additive"},
    "general": {"attention_score": "general"},
}


@pytest.mark.parametrize("arch", [*PRESETS, *OWN])
def test_parameters_are_those_of_the_model_that_is_built(arch, monkeypatch):
    if arch in OWN:
        monkeypatch.setitem(PRESETS, arch, OWN[arch])
    words = Dictionary()
    for i in range(300 - len(words)):
        words.add_symbol(f"w{i}")
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    cfg = configuration(arch)
    cfg.max_source_positions = cfg.max_target_positions = 1024
    with torch.device("meta"):
        model = VaswaniTransformer.build_model(cfg, task)
    assert account(arch, vocab=300).parameters == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("arch", "millions"), PRINTED.items())
def test_parameters_are_those_of_table_3(arch, millions):
    assert round(account(arch, vocab=40_960).parameters / 1e6) == millions


def test_big_has_213_million_with_36000_words():
    assert round(account("vaswani_big", vocab=36_000).parameters / 1e6) == 213


def test_untied_and_prenorm_parameters(build, dictionary):
    model = build(untie_embeddings=True, pre_norm=True, d_k=5, d_v=7)
    formula = transformer_parameters(
        Dimensions(2, 32, 64, 4, 5, 7), len(dictionary), embeddings=3, pre_norm=True
    )
    assert formula == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("source", "target"), [(5, 9), (12, 4)])
@pytest.mark.parametrize(("d_k", "d_v"), [(8, 8), (5, 7)])
def test_flops_are_those_that_torch_counts(build, batch, dictionary, source, target, d_k, d_v):
    model = build(d_k=d_k, d_v=d_v)
    inputs = batch([source], [target])["net_input"]
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model(**inputs)
    dimensions = Dimensions(2, 32, 64, 4, d_k, d_v)
    formula = transformer_flops(dimensions, len(dictionary), source, target)
    assert counter.get_total_flops() == formula


def test_backward_pass_is_two_forward_passes(build, batch, dictionary, monkeypatch):
    for operation in (linear, row_multiple):  # torch does not count oneDNN's products
        monkeypatch.setattr(operation, "implementations", [])
    inputs = batch([6, 6], [6, 6])["net_input"]
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        build()(**inputs)[0].sum().backward()
    formula = 2 * transformer_flops(Dimensions(2, 32, 64, 4, 8, 8), len(dictionary), 6, 6)
    assert counter.get_total_flops() == 3 * formula


@pytest.mark.parametrize(
    ("arch", "pair", "run", "paper"),
    [("vaswani_base", 0.381e9, 9.5e17, 3.3e18), ("vaswani_big", 1.290e9, 9.7e18, 2.3e19)],
)
def test_command_prints_one_object(capsys, arch, pair, run, paper):
    found = json.loads(output_of(capsys, "--arch", arch, "--vocab", "37000", "--json"))
    assert found["flops_per_token_pair"] == pytest.approx(pair, rel=1e-3)
    assert found["training_flops"] == pytest.approx(run, rel=6e-3)
    assert found["paper_training_flops"] == pytest.approx(paper, rel=2e-2)
    text = output_of(capsys, "--arch", arch, "--vocab", "37000")
    assert f"{run:.1e}" in text and f"{paper:.1e}" in text and f"{found['parameters']:,}" in text


def test_the_paper_gives_no_time_for_table_3(capsys):
    found = json.loads(output_of(capsys, "--arch", "vaswani_table3_a1", "--json"))
    assert found["paper_training_flops"] is None
    assert "states no training time" in output_of(capsys, "--arch", "vaswani_table3_a1")


def test_table_2_in_the_papers_way_equals_the_paper(capsys):
    lines = output_of(capsys, "--table", "2").splitlines()
    (base,) = (line.split() for line in lines if line.startswith("Transformer (base)"))
    (big,) = (line.split() for line in lines if line.startswith("Transformer (big)"))
    # BLEU and printed FLOPs of both pairs, then for each pair the paper's estimate and counted
    assert base[2:6] == ["27.3", "3.3e18", "38.1", "3.3e18"] and base[6::2] == ["3.3e18"] * 2
    assert big[2:6] == ["28.4", "2.3e19", "41.8", "2.3e19"] and big[6::2] == ["2.3e19"] * 2
    rows = json.loads(output_of(capsys, "--table", "2", "--json"))["rows"]
    assert len(rows) == 10 and "EN-DE counted" not in rows[0]


def test_table_3_has_every_row_and_agrees_where_a_count_is_printed(capsys):
    rows = json.loads(output_of(capsys, "--table", "3", "--json"))["rows"]
    names = "base A1 A2 A3 A4 B1 B2 C1 C2 C3 C4 C5 C6 C7 D1 D2 D3 D4 E big"
    assert [row["row"] for row in rows] == names.split()
    printed = {row["row"]: row["millions, printed"] for row in rows if row["millions, printed"]}
    assert printed.pop("big") == 213
    ours = {row["row"]: round(row["parameters"] / 1e6) for row in rows}
    assert printed == {name: ours[name] for name in printed} and len(printed) == 10


def test_wrong_use(capsys):
    assert main(["flops", "--arch", "vaswani_huge"]) == 2
    message = capsys.readouterr().err
    assert "unknown architecture 'vaswani_huge'" in message and "vaswani_big" in message
    with pytest.raises(SystemExit) as stopped:
        main(["flops", "--arch", "vaswani_base", "--vocab", "0"])
    assert stopped.value.code == 2
