"""How many tokens a command that translates hands over at once, as it asks the task for batches."""

import pytest
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from fairseq_commands import PLUGIN
from trainers import build_trainer

from transformer_plugin.generator import CALL_TOKENS


@pytest.fixture
def asked(monkeypatch):
    """The options with which fairseq is asked for batches."""
    calls = []
    monkeypatch.setattr(
        TranslationTask, "get_batch_iterator", lambda self, data_set, **o: calls.append(o)
    )
    return calls


@pytest.mark.parametrize(
    "flags, tokens",
    [
        ([], CALL_TOKENS),
        (["--batch-size", "8"], CALL_TOKENS),
        (["--max-tokens", "700"], 700),
        (["--max-tokens", "12001"], 12_001),
        (["--sampling"], CALL_TOKENS),
        (["--print-alignment"], CALL_TOKENS),
        (["--diverse-beam-groups", "2"], 12_000),
        (["--no-repeat-ngram-size", "3"], 12_000),
    ],
)
def test_our_search_takes_more_than_fairseqs(toy, asked, flags, tokens):
    words = [str(toy / "data-bin"), *PLUGIN, "--path", str(toy / "checkpoints/averaged.pt"), *flags]
    parser = options.get_generation_parser()
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
    task = tasks.setup_task(cfg.task)
    checkpoint_utils.load_model_ensemble([cfg.common_eval.path], task=task)
    task.load_dataset("test")
    task.get_batch_iterator(task.dataset("test"), max_tokens=cfg.dataset.max_tokens)
    assert asked[0]["max_tokens"] == tokens


@pytest.mark.parametrize("tokens", [CALL_TOKENS, 700])
def test_training_takes_what_it_is_given(toy, asked, tokens):
    words = [str(toy / "data-bin"), *PLUGIN, "--arch", "vaswani_tiny", "--max-tokens", str(tokens)]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    task.load_dataset("train")
    task.get_batch_iterator(task.dataset("train"), max_tokens=cfg.dataset.max_tokens)
    assert asked[0]["max_tokens"] == tokens


@pytest.mark.parametrize(
    "kind, arch", [("training", ["--arch", "vaswani_tiny"]), ("validation", [])]
)
def test_training_and_validation_have_no_default(kind, arch):
    parser = getattr(options, f"get_{kind}_parser")()
    args = options.parse_args_and_arch(parser, ["data", *PLUGIN, *arch])
    assert args.max_tokens is None


@pytest.mark.parametrize("subset", ["train", "test"])
def test_every_sentence_is_translated(toy, subset):
    """Also those of the training data, of which training leaves out the last few."""
    words = [str(toy / "data-bin"), *PLUGIN, "--path", str(toy / "checkpoints/averaged.pt")]
    args = options.parse_args_and_arch(options.get_generation_parser(), words)
    task = tasks.setup_task(convert_namespace_to_omegaconf(args).task)
    task.load_dataset(subset)
    sentences = task.dataset(subset)
    batches = task.get_batch_iterator(
        sentences, max_tokens=3000, required_batch_size_multiple=7
    ).next_epoch_itr(shuffle=False)
    found = sorted(i for batch in batches for i in batch["id"].tolist())
    assert found == list(range(len(sentences)))


def test_arguments_by_position_are_fairseqs(tmp_path):
    task = build_trainer(tmp_path)[0].task
    data = task.dataset("train")
    batches = task.get_batch_iterator(data, 500, 4, disable_iterator_cache=True)
    assert batches.epoch == 1 and max(map(len, batches.frozen_batches)) == 4
    numbers = (500, 3, None, False, 1, 1, 1, 0, 0, 5, 0, True)  # epoch 5
    batches = task.get_batch_iterator(data, *numbers)
    assert batches.epoch == 5 and max(map(len, batches.frozen_batches)) == 3


def test_batches_to_reuse_begin_with_the_epoch_that_is_asked_for(tmp_path):
    """As those of the next folder of data, with which training would begin anew."""
    task = build_trainer(tmp_path)[0].task
    task.load_dataset("train", epoch=3)
    batches = task.get_batch_iterator(task.dataset("train"), 500, 4, epoch=3)
    assert batches.epoch == batches.next_epoch_idx == 3
    assert task.get_batch_iterator(task.dataset("train"), 500, 4, epoch=4) is batches
