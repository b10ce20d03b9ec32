"""Checkpoints of tasks without a dataclass, whose options fairseq stores as a Namespace."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.training.fine_tuning import check_words
from transformer_plugin.training.same_run import has_same_loss
from transformer_plugin.training.task_state import load_task_state


def test_a_run_of_such_a_task_compares_its_losses(tmp_path):
    """With other data the losses before and after differ."""
    path = tmp_path / "checkpoint_last.pt"
    task = Namespace(task="translation_multi_simple_epoch", data="data-bin")
    settings = {"model": {"dropout": 0.1}, "criterion": {"label_smoothing": 0.1}}
    torch.save({"cfg": settings | {"task": task}, "model": {}}, path)
    for data, same in (("data-bin", True), ("other", False)):
        now = settings | {"task": Namespace(**vars(task) | {"data": data})}
        cfg = OmegaConf.create(now, flags={"allow_objects": True})
        assert has_same_loss(str(path), cfg) == same


def test_a_base_model_of_such_a_task_has_the_words_of_its_data(tmp_path):
    """Each side its own."""
    own = {}
    for side, language in (("encoder", "en"), ("decoder", "de")):
        own[side] = Dictionary()
        for number in range(5):
            own[side].add_symbol(f"{language}{number}")
        own[side].save(str(tmp_path / f"dict.{language}.txt"))
    task = TranslationTask(TranslationConfig(), own["encoder"], own["decoder"])
    model = {f"{side}.embed_tokens.weight": torch.zeros(9, 2) for side in own}
    options = {"data": str(tmp_path), "source_lang": "en", "target_lang": "de"}
    for base in (options, Namespace(**options)):
        check_words("base.pt", {"model": model, "cfg": {"task": base}}, task)
    lines = (tmp_path / "dict.de.txt").read_text().splitlines()
    (tmp_path / "dict.de.txt").write_text("\n".join([lines[1], lines[0], *lines[2:]]) + "\n")
    for base in (options, Namespace(**options)):
        with pytest.raises(
            CheckpointError, match=r"word 4 of the base model is 'de1' .*dict.de.txt"
        ):
            check_words("base.pt", {"model": model, "cfg": {"task": base}}, task)


@pytest.mark.parametrize("state", [{}, {"task_state": None}], ids=str)
def test_a_checkpoint_may_have_no_state_of_its_task(tmp_path, state):
    """As those of old versions of fairseq, whose tasks have nothing to update from None."""
    given, path = [], tmp_path / "checkpoint_last.pt"
    torch.save({"model": {}} | state, path)
    load_task_state(str(path), SimpleNamespace(load_state_dict=given.append))
    assert given == [{}]
