"""fairseq's own options of a Transformer: taken as other names of ours, or refused in a line."""

from argparse import ArgumentParser

import pytest
from fairseq import options, registry
from fairseq.criterions import FairseqCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models.transformer import TransformerModel
from fairseq.optim.adam import FairseqAdam
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootSchedule

from transformer_plugin.refusal import Refusal

PARTS = [
    *("--task", "vaswani_translation", "--arch", "vaswani_tiny", "--optimizer", "vaswani_adam"),
    *("--criterion", "vaswani_cross_entropy", "--lr-scheduler", "noam"),
]

SHARING = ["--share-all-embeddings", "--share-decoder-input-output-embed"]


def parsed(*words):
    """fairseq-train's command line, with the plugin's parts."""
    return options.parse_args_and_arch(options.get_training_parser(), ["data", *PARTS, *words])


@pytest.mark.parametrize(
    "words, field, value",
    [
        ("--encoder-embed-dim 64 --decoder-embed-dim 64", "d_model", 64),
        ("--encoder-ffn-embed-dim 96", "d_ff", 96),
        ("--decoder-attention-heads 2 --encoder-attention-heads 2", "num_heads", 2),
        ("--encoder-normalize-before --decoder-normalize-before", "pre_norm", True),
        ("--decoder-learned-pos", "positional_encoding", "learned"),
        ("--relu-dropout 0.3", "activation_dropout", 0.3),
        ("--share-all-embeddings", "untie_source_embedding", False),
        ("--share-decoder-input-output-embed", "untie_source_embedding", True),
        (" ".join(SHARING), "untie_source_embedding", False),
        (" ".join(SHARING[::-1]), "untie_source_embedding", False),
        ("--encoder-layers 3", "encoder_layers", 3),
        ("--label-smoothing 0.2 --report-accuracy", "label_smoothing", 0.2),
        ("--encoder-embed-dim 32 --d-model 64", "d_model", 64),
        ("--activation-fn relu --use-old-adam --adam-eps 1e-8", "adam_eps", 1e-8),
    ],
)
def test_another_name_of_ours(words, field, value):
    assert getattr(parsed(*words.split()), field) == value


@pytest.mark.parametrize(
    "words, message",
    [
        ("--encoder-embed-dim 64 --decoder-embed-dim 32", "32, but another option sets it to 64"),
        ("--d-model 64 --encoder-embed-dim 32", "32, but another option sets it to 64"),
        ("--activation-fn gelu", "ReLU"),
        ("--encoder-layerdrop 0.1", "has no layer dropout"),
        ("--layernorm-embedding", "no equivalent"),
        ("--warmup-init-lr 1e-7", "--lr-scheduler inverse_sqrt"),
        ("--fp16-adam-stats", "--optimizer adam"),
        ("--ignore-prefix-size 1", "--criterion label_smoothed_cross_entropy"),
    ],
)
def test_what_to_use_instead(words, message):
    with pytest.raises(Refusal, match=message) as caught:
        parsed(*words.split())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "stock",
    [
        TransformerModel,
        LabelSmoothedCrossEntropyCriterion,
        FairseqAdam,
        InverseSquareRootSchedule,
    ],
)
def test_every_option_of_the_stock_parts_is_known(stock):
    parser = ArgumentParser(add_help=False, conflict_handler="resolve")
    stock.add_args(parser)
    for action in parser._actions:
        for name in action.option_strings:
            value = [] if action.nargs == 0 else ["1"]
            if action.choices:
                value = [next(iter(action.choices))]
            try:
                parsed(name, *value)
            except Refusal as refusal:
                assert str(refusal).startswith(name)


def test_values_that_are_not_given_are_the_papers():
    args = parsed()
    assert not hasattr(args, "d_model") and not hasattr(args, "label_smoothing")


def test_a_loss_of_the_old_style_adds_its_label_smoothing(monkeypatch):
    class Own(FairseqCriterion):
        @staticmethod
        def add_args(parser):
            parser.add_argument("--label-smoothing", type=float, default=0.3)

    monkeypatch.setitem(registry.REGISTRIES["criterion"]["registry"], "own", Own)
    for words, value in (([], 0.3), (["--label-smoothing", "0.2"], 0.2)):
        assert parsed("--criterion", "own", *words).label_smoothing == value


def test_types_and_choices_are_checked_where_the_default_is_another_options(capsys):
    for words in ("--layer-norm-eps x", "--positional-encoding x", "--adam-eps x"):
        with pytest.raises(SystemExit):
            parsed(*words.split())
        assert f"argument {words[:-2]}: invalid" in capsys.readouterr().err
