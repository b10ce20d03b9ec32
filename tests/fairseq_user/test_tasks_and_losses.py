"""The plugin's parts with fairseq's: tasks, losses, schedules and architectures in any mixture."""

import pytest
import torch
from fairseq import models, options
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import build_optimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.masked_lm import MaskedLMTask
from fairseq_commands import REPO, last_line, run

from transformer_plugin.combinations import check_combination
from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.refusal import Refusal

SHORT = [
    *("--cpu", "--max-tokens", "300", "--max-update", "3", "--num-workers", "0", "--seed", "3"),
    *("--disable-validation", "--no-epoch-checkpoints"),
]
PLUGIN = ["--user-dir", REPO / "transformer_plugin"]
OURS = [
    *("--criterion", "vaswani_cross_entropy", "--optimizer", "vaswani_adam"),
    *("--lr-scheduler", "noam", "--lr", "1", "--warmup-updates", "100"),
]
WIDTH = 32  # width of small stock models
STOCK = {
    "transformer": ["--encoder-layers", "1", "--decoder-layers", "1"],
    "transformer_align": ["--encoder-layers", "1", "--decoder-layers", "6"],
    "lstm": ["--encoder-hidden-size", "16", "--decoder-hidden-size", "16"],
    "fconv": ["--encoder-layers", "[(16, 3)]", "--decoder-layers", "[(16, 3)]"],
}


def configuration(*words):
    args = options.parse_args_and_arch(
        options.get_training_parser(), ["data", "--optimizer", "vaswani_adam", *words]
    )
    return convert_namespace_to_omegaconf(args)


def stock_configuration(arch, *words):
    width = ["--encoder-embed-dim", str(WIDTH), "--decoder-embed-dim", str(WIDTH)]
    return configuration("--arch", arch, *width, *STOCK[arch], *words)


def schedule(cfg):
    optimizer = build_optimizer(cfg.optimizer, [torch.nn.Parameter(torch.zeros(1))])
    return build_lr_scheduler(cfg.lr_scheduler, optimizer)


@pytest.mark.parametrize("arch", [*STOCK, "vaswani_tiny"])
def test_bf16_expects_no_tpu(arch):
    assert not configuration("--arch", arch, "--bf16").common.tpu


@pytest.mark.parametrize("arch", STOCK)
def test_our_loss_of_a_stock_model_is_fairseqs(arch, toy_task, batch):
    cfg = stock_configuration(arch, "--criterion", "vaswani_cross_entropy")
    torch.manual_seed(1)
    model = models.build_model(cfg.model, toy_task).eval()
    sample = batch([7, 6, 4], [3, 6, 5])  # the LSTM wants the longest first
    ours = VaswaniCrossEntropy.build_criterion(cfg.criterion, toy_task)
    stock = LabelSmoothedCrossEntropyCriterion(toy_task, False, 0.1)
    (loss, size, log), (expected, its_size, its_log) = (c(model, sample) for c in (ours, stock))
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(log["nll_loss"], its_log["nll_loss"])
    assert size == its_size and log["ntokens"] == its_log["ntokens"]


def test_noam_takes_the_width_of_any_model():
    words = ["--lr-scheduler", "noam", "--lr", "2", "--warmup-updates", "10"]
    expected = 2 * WIDTH**-0.5 * 10**-1.5
    for arch in ("transformer", "lstm"):
        assert schedule(stock_configuration(arch, *words)).lr == pytest.approx(expected)
    ours = schedule(configuration("--arch", "vaswani_tiny", "--d-model", str(WIDTH), *words))
    assert ours.lr == pytest.approx(expected)
    given = schedule(stock_configuration("lstm", *words, "--noam-d-model", "2"))
    assert given.lr == pytest.approx(2 * 2**-0.5 * 10**-1.5)
    with pytest.raises(ValueError, match="give --noam-d-model"):
        schedule(configuration("--arch", "wav2vec", "--task", "audio_pretraining", *words))


def test_the_plugins_options_are_there_for_a_stock_model():
    cfg = stock_configuration(
        *("transformer", "--criterion", "vaswani_cross_entropy", "--label-smoothing", "0.3"),
        *("--report-accuracy", "--adam-eps", "1e-7"),
    )
    assert (cfg.criterion.label_smoothing, cfg.optimizer.adam_eps) == (0.3, 1e-7)


def test_a_stock_model_trains_with_our_parts_and_the_safe_trainer(data, tmp_path):
    """As after a run of the plugin's own task in the same process."""
    done = run(
        *("fairseq-train", data, "--user-dir", REPO / "tests/fairseq_user/protected", *SHORT),
        *("--task", "translation", "--arch", "transformer_tiny", *OURS, "--save-dir", tmp_path),
    )
    assert "num_updates: 3" in done.stderr + done.stdout or "num_updates 3" in done.stdout
    assert (tmp_path / "checkpoint_last.pt").exists() and (tmp_path / ".lock").exists()


def test_our_model_trains_and_translates_by_fairseqs_task(data, tmp_path):
    run(
        *("fairseq-train", data, *PLUGIN, "--task", "translation", "--arch", "vaswani_tiny"),
        *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", *SHORT),
        *("--optimizer", "adam", "--lr", "0.001", "--save-dir", tmp_path),
    )
    done = run(
        *("fairseq-generate", data, *PLUGIN, "--path", tmp_path / "checkpoint_last.pt", "--cpu"),
        *("--beam", "2", "--max-len-b", "5"),
    )
    assert done.stdout.count("\nH-") == 24  # fairseq's task leaves out the last six of thirty


def test_our_model_trains_on_several_pairs(data, tmp_path):
    run(
        *("fairseq-train", data, *PLUGIN, "--task", "translation_multi_simple_epoch"),
        *("--langs", "de,en", "--lang-pairs", "de-en", "--encoder-langtok", "src"),
        *("--arch", "vaswani_tiny", *OURS, *SHORT, "--save-dir", tmp_path),
    )
    assert (tmp_path / "checkpoint_last.pt").exists()


@pytest.mark.parametrize(
    "task, pairs",
    [("multilingual_translation", "--lang-pairs"), ("semisupervised_translation", "--lang-pairs")],
)
def test_tasks_of_several_models_are_refused(task, pairs):
    with pytest.raises(Refusal, match="use translation_multi_simple_epoch"):
        configuration("--arch", "vaswani_tiny", "--task", task, pairs, "de-en")


@pytest.mark.parametrize("task", [LanguageModelingTask, MaskedLMTask])
def test_tasks_without_targets_are_refused(task, build):
    with pytest.raises(Refusal, match="--arch transformer_lm"):
        check_combination(None, task.__new__(task))
    with pytest.raises(Refusal, match="--arch transformer_lm"):
        build()(torch.tensor([[5, 2]]), None)


def test_a_loss_of_one_architecture_is_refused(data, tmp_path):
    done = run(
        *("fairseq-train", data, *PLUGIN, "--task", "vaswani_translation"),
        *("--arch", "vaswani_tiny", "--criterion", "label_smoothed_cross_entropy_with_alignment"),
        *("--load-alignments", *SHORT, "--save-dir", tmp_path),
        status=1,
    )
    assert "--arch transformer_align" in last_line(done)
