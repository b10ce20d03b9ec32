"""fairseq's language models for shallow fusion: ``--lm-path`` and ``--lm-weight``."""

from __future__ import annotations

import sys
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder, FairseqLanguageModel
from fairseq.modules import LearnedPositionalEmbedding
from fairseq.tasks.language_modeling import LanguageModelingTask
from torch import Tensor

from .refusal import Refusal


def load_language_model(path: str, dictionary: Dictionary) -> FairseqLanguageModel:
    """The language model in a checkpoint of fairseq's task ``language_modeling``.

    Args:
        dictionary: the target dictionary, which must be the one that the model was trained with.

    Raises:
        Refusal: the checkpoint holds another kind of model, or its vocabulary differs.
    """
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    task_cfg = state["cfg"]["task"]
    if task_cfg["_name"] != "language_modeling":
        raise Refusal(
            f"--lm-path {path}: trained for the task '{task_cfg['_name']}': expected a model of"
            " --task language_modeling"
        )
    words = state["model"].get("decoder.embed_tokens.weight")
    if words is not None:
        _check_size(len(words), dictionary, f"--lm-path {path}")
    task = LanguageModelingTask(task_cfg, dictionary, dictionary)
    (model,), _ = checkpoint_utils.load_model_ensemble([path], task=task, state=state)
    check_dictionary(model, dictionary)
    return model


def check_dictionary(model: FairseqLanguageModel, dictionary: Dictionary) -> None:
    """Checks that a language model has the translation model's target dictionary.

    Raises:
        Refusal: the dictionaries differ.
    """
    own: Dictionary = model.decoder.dictionary
    if own != dictionary:
        _check_size(len(own), dictionary, "--lm-path")
        raise Refusal(
            "--lm-path: the language model's words have other ids than the target"
            " language's: binarise its text with --srcdict DATA-BIN/dict.TARGET.txt and train it"
            " again"
        )


def max_positions(model: FairseqLanguageModel) -> int:
    """Tokens that a language model can read: learned positions end, sinusoids do not."""
    positions = getattr(model.decoder, "embed_positions", None)
    if isinstance(positions, LearnedPositionalEmbedding):
        return int(positions.max_positions)
    return sys.maxsize


def _check_size(size: int, dictionary: Dictionary, what: str) -> None:
    if size != len(dictionary):
        raise Refusal(
            f"{what}: the language model has {size:,} words, the target language"
            f" {len(dictionary):,}: binarise its text with --srcdict DATA-BIN/dict.TARGET.txt and"
            " train it again"
        )


class CachedLanguageModel:
    """A language model at the start of sentences (see ``search.scorers.LanguageModel``).

    Args:
        model: fairseq's model, in evaluation mode.
    """

    def __init__(self, model: FairseqLanguageModel) -> None:
        self._model = model
        self._history: Tensor | None = None  # [B, k, T]
        self._state: dict[str, Any] = {}

    def step(self, tokens: Tensor) -> Tensor:
        """Log-probabilities of the successors of ``tokens``, ``[B * k, V]``."""
        new = tokens.unsqueeze(2)
        self._history = new if self._history is None else torch.cat([self._history, new], dim=2)
        rows = self._history.flatten(0, 1)
        if isinstance(self._model.decoder, FairseqIncrementalDecoder):
            found = self._model.decoder(rows, incremental_state=self._state)
        else:
            found = self._model(rows)
        log_p: Tensor = self._model.get_normalized_probs(found, log_probs=True, sample=None)
        return log_p[:, -1].float()

    def reorder(self, parents: Tensor) -> None:
        """Replaces hypothesis j by hypothesis ``parents[:, j]``, ``[B, k]``."""
        assert self._history is not None
        batch_size, width, _ = self._history.shape
        first = torch.arange(batch_size, device=parents.device).unsqueeze(1) * width
        self._take((first + parents).flatten(), parents.shape)

    def select(self, sentences: Tensor) -> None:
        """Keeps only these sentences, ``[b]``."""
        assert self._history is not None
        batch_size, width, _ = self._history.shape
        rows = torch.arange(batch_size * width, device=sentences.device).view(batch_size, width)
        self._take(rows[sentences].flatten(), (sentences.numel(), width))

    def _take(self, rows: Tensor, shape: tuple[int, ...]) -> None:
        """Replaces row i of B * k by row ``rows[i]``."""
        assert self._history is not None
        self._history = self._history.flatten(0, 1)[rows].view(*shape, -1)
        if self._state:
            self._model.decoder.reorder_incremental_state_scripting(self._state, rows)
