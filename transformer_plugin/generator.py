"""fairseq's generator interface on our beam search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .model import VaswaniTransformer
from .search.beam_search import Hypothesis, beam_search
from .search.decoder_state import prepare_decoding
from .search.next_tokens import Rules
from .search.scorers import EnsembleScorer, ModelScorer
from .search.thread_pool import map_in_threads

# Source tokens times hypotheses decoded together: what makes a step's matrix products efficient.
_CPU_BATCH = 16384
_GPU_BATCH = 65536
# Source tokens, padded, to give it at once, of which it makes such batches: the last steps, with
# few hypotheses left, are the dearest, and each batch has them.
CALL_TOKENS = 50_000
_NONE = torch.empty(0)


class VaswaniGenerator(nn.Module):
    """Beam search with the paper's or fairseq's rules.

    Args:
        models: of the plugin; more than one form an ensemble.
        rules: how to search.
        max_len_a: negative: a hypothesis is at most as long as its own source plus 50 tokens
            (section 6.1); else fairseq's meaning, at most a * S + b for the batch's length S.
        max_len_b: see ``max_len_a``.
        temperature: divides the logits.
    """

    def __init__(
        self,
        models: Sequence[VaswaniTransformer],
        rules: Rules,
        max_len_a: float = -1.0,
        max_len_b: int = 200,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.rules = rules
        self.eos = rules.eos
        self.max_len_a = max_len_a
        self.max_len_b = max_len_b
        self.temperature = temperature
        self.models.eval()

    @torch.no_grad()
    def generate(
        self,
        models: Sequence[nn.Module],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """Translates a batch in fairseq's sample form.

        Args:
            models: ignored, as in fairseq: they were given at the start.
            prefix_tokens: what each hypothesis begins with, ``[B, P]``.
            constraints: not taken here; the task sends them to fairseq's own search.
            bos_token: what the decoder sees first.

        Returns:
            For each sentence its hypotheses, best first, in fairseq's form.
        """
        if constraints is not None:
            raise ValueError("constraints are left to fairseq's own search: use --constraints")
        src_tokens = sample["net_input"]["src_tokens"]
        lengths = src_tokens.ne(self.rules.pad).sum(dim=1)
        max_lengths = self._max_lengths(src_tokens, lengths)
        results: list[list[Hypothesis]] = [[] for _ in range(src_tokens.size(0))]

        rows = src_tokens.size(0) * self.rules.beam_size
        decoders = [model.decoder for model in self.models]
        prepared = [prepare_decoding(decoder, decoder.output_layer, rows) for decoder in decoders]

        def search(sentences: Tensor) -> list[list[Hypothesis]]:
            return self._search(
                src_tokens, sentences, max_lengths, prepared, prefix_tokens, bos_token
            )

        workers = 1 if src_tokens.is_cuda else torch.get_num_threads()
        batches = _batches(lengths, self._batch_tokens(src_tokens), workers)
        translated = list((map if workers == 1 else map_in_threads)(search, batches))
        for sentences, found in zip(batches, translated, strict=True):
            for i, hypotheses in zip(sentences.tolist(), found, strict=True):
                results[i] = hypotheses
        return [[_fairseq_form(h) for h in hypotheses] for hypotheses in results]

    @torch.inference_mode()  # which holds for the thread that it is in
    def _search(
        self,
        src_tokens: Tensor,
        sentences: Tensor,
        max_lengths: Tensor,
        prepared: Sequence[Any],
        prefix: Tensor | None,
        first_token: int | None,
    ) -> list[list[Hypothesis]]:
        """Translates some sentences; where memory runs out, first the one half, then the other."""
        try:
            source = src_tokens[sentences]
            source = source[:, source.ne(self.rules.pad).any(dim=0)]
            scorers = [
                ModelScorer(
                    *(model.decoder, model.decoder.output_layer),
                    *model.encoder.encode(source)[:2],
                    *(self.rules.beam_size, own, self.temperature),
                )
                for model, own in zip(self.models, prepared, strict=True)
            ]
            return beam_search(
                scorers[0] if len(scorers) == 1 else EnsembleScorer(scorers),
                max_lengths[sentences],
                self.rules,
                None if prefix is None else prefix[sentences],
                first_token,
            )
        except torch.OutOfMemoryError:
            if sentences.numel() == 1:
                raise
        torch.cuda.empty_cache()
        return [
            hypotheses
            for half in sentences.chunk(2)
            for hypotheses in self._search(
                src_tokens, half, max_lengths, prepared, prefix, first_token
            )
        ]

    def _batch_tokens(self, src_tokens: Tensor) -> int:
        return (_GPU_BATCH if src_tokens.is_cuda else _CPU_BATCH) // self.rules.beam_size

    def _max_lengths(self, src_tokens: Tensor, lengths: Tensor) -> Tensor:
        limit = min(model.max_decoder_positions() for model in self.models) - 1
        if self.max_len_a < 0:
            return (lengths - 1 + 50).clamp_max(limit)
        longest = int(self.max_len_a * src_tokens.size(1) + self.max_len_b)
        return torch.full_like(lengths, min(longest, limit))


def _batches(lengths: Tensor, budget: int, workers: int) -> list[Tensor]:
    """Sentence numbers, of like length together, about ``budget`` tokens in each batch.

    As many batches of the same work follow each other as there are workers, so that all workers
    end at about the same time: sentences next to each other by length go to different ones.
    """
    order = lengths.argsort(descending=True, stable=True)
    tokens = lengths[order].clamp_min(1).cumsum(0)
    rounds = max(1, round(int(tokens[-1]) / (budget * workers)))
    place = (tokens - 1) * rounds // tokens[-1]  # the round of each sentence
    return [
        batch
        for sentences in order.split(torch.bincount(place, minlength=rounds).tolist())
        for batch in (sentences[i::workers] for i in range(workers))
        if batch.numel()
    ]


def _fairseq_form(hypothesis: Hypothesis) -> dict[str, Tensor]:
    return {
        "tokens": hypothesis.tokens,
        "score": hypothesis.score,
        "positional_scores": hypothesis.log_probs,
        "attention": _NONE,
        "alignment": _NONE,
    }
