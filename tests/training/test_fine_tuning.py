"""The dictionaries of a base model and of the data that it is trained on further."""

from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.training.fine_tuning import check_base, check_words


@pytest.mark.parametrize("side, number", [("encoder", 6), ("decoder", 9)])
def test_a_base_with_more_words_than_the_data_is_refused(tmp_path, side, number):
    """Each side by its own dictionary; where the base's data is gone, by the size alone."""
    own = {}
    for name, words in (("encoder", 2), ("decoder", 5)):
        own[name] = Dictionary()
        for i in range(words):
            own[name].add_symbol(f"{name}{i}")
    task = TranslationTask(TranslationConfig(), own["encoder"], own["decoder"])
    rows = {name: len(dictionary) for name, dictionary in own.items()}

    def state():
        model = {f"{name}.embed_tokens.weight": torch.zeros(n, 2) for name, n in rows.items()}
        return {"model": model, "cfg": {"task": {"data": str(tmp_path / "gone")}}}

    check_words("base.pt", state(), task)
    rows[side] += 1
    message = rf"base.pt: its {side} has {number + 1} words, the data has {number}: prepare the"
    with pytest.raises(CheckpointError, match=message):
        check_words("base.pt", state(), task)


def test_weights_alone_are_no_base(tmp_path):
    path = str(tmp_path / "weights.pt")
    torch.save({"encoder.embed_tokens.weight": torch.zeros(6, 2)}, path)
    cfg = Namespace(checkpoint=Namespace(finetune_from_model=path))
    with pytest.raises(CheckpointError, match=r"weights\.pt: no model in it: give a checkpoint"):
        check_base(path, cfg, None)
