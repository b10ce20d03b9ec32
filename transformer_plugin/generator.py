"""The plugin's beam search with the interface of fairseq's generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from .encoder_input import EncoderInput
from .language_model import CachedLanguageModel, max_positions
from .model import VaswaniTransformer
from .modules.operation import is_unmodified
from .refusal import Refusal
from .retained_dropout import is_random
from .search.beam_search import Hypothesis, beam_search
from .search.decoder_state import prepare_decoding
from .search.next_tokens import Rules
from .search.scorers import EnsembleScorer, FusedScorer, ModelScorer, Scorer
from .search.thread_pool import (
    available_threads,
    batches_by_length,
    map_in_threads,
    one_thread,
)
from .search.tree_scorer import TreeScorer
from .search_extras import Extras
from .search_options import MAX_LEN_B, MAX_LEN_OWN
from .word_alignment import add_alignments, check_unknown_words

# Source tokens times hypotheses in a batch: enough for efficient matrix products in each step.
_CPU_BATCH = 32768
_GPU_BATCH = 65536
# Padded source tokens in one call, which is split into such batches. Larger calls are faster: the
# last steps of a batch, with few hypotheses left, are the least efficient.
CALL_TOKENS = 50_000
_NONE = torch.empty(0)


class VaswaniGenerator(nn.Module):
    """Beam search with the paper's or fairseq's rules.

    Args:
        models: models of the plugin; several form an ensemble.
        rules: rules of the search.
        max_len_a: if negative, a hypothesis is at most as long as its own source or prefix plus
            ``max_len_own`` tokens, or as ``rules.min_length``. Otherwise as in fairseq: at most
            a * S + b, where S is the length of the batch.
        max_len_b: see ``max_len_a``.
        temperature: divides the logits.
        max_len_own: 50 in section 6.1, 300 in 6.3 (parsing).
        extras: alignments, a language model, and trees as the only results.
    """

    models: Sequence[VaswaniTransformer]

    def __init__(
        self,
        models: Sequence[VaswaniTransformer],
        rules: Rules,
        max_len_a: float = -1.0,
        max_len_b: int = MAX_LEN_B,
        temperature: float = 1.0,
        max_len_own: int = MAX_LEN_OWN,
        extras: Extras | None = None,
    ) -> None:
        super().__init__()
        self.models = cast("Sequence[VaswaniTransformer]", nn.ModuleList(models))
        self.rules = rules
        self.eos = rules.eos
        self.max_len_a = max_len_a
        self.max_len_b = max_len_b
        self.max_len_own = max_len_own
        self.temperature = temperature
        self.extras = extras or Extras()
        self.language_model = self.extras.language_model  # a submodule, which eval() and to() reach
        self.eval()

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
            models: ignored, as in fairseq; the constructor's are used.
            prefix_tokens: the beginning of each hypothesis, ``[B, P]``.
            constraints: must be None; the task uses fairseq's own search for constraints.
            bos_token: the decoder's first input.

        Returns:
            For each sentence its hypotheses, best first, in fairseq's form.

        Raises:
            Refusal: ``--min-len`` is above the longest length, or the scores are NaN.
            ValueError: there are constraints.
        """
        if constraints is not None:
            raise ValueError("constraints need fairseq's own search: use --constraints")
        net_input = sample["net_input"]
        tokens = net_input["src_tokens"]
        workers = min(self._workers(tokens), len(tokens)) if len(tokens) > 1 else 1
        with one_thread() if workers > 1 else nullcontext():
            return self._generate(net_input, prefix_tokens, bos_token, workers)

    def _generate(
        self,
        net_input: Mapping[str, Any],
        prefix_tokens: Tensor | None,
        bos_token: int | None,
        workers: int,
    ) -> list[list[dict[str, Tensor]]]:
        src_tokens = net_input["src_tokens"]
        lengths = src_tokens.ne(self.rules.pad).sum(dim=1)
        max_lengths = self._max_lengths(src_tokens, lengths, prefix_tokens)
        results: list[list[Hypothesis]] = [[] for _ in range(src_tokens.size(0))]

        rows = src_tokens.size(0) * self.rules.beam_size
        for model in self.models:
            prepare_decoding(model, rows)

        # Training cannot go on with tensors of inference, which a user's module may have kept.
        trained = any(each.requires_grad for model in self.models for each in model.parameters())

        def search(sentences: Tensor) -> list[list[Hypothesis]]:
            # Of this thread alone; the second, because inference_mode(False) enables gradients.
            with torch.inference_mode(not trained), torch.no_grad():
                return self._search(net_input, sentences, max_lengths, prefix_tokens, bos_token)

        map_batches = map if workers == 1 else partial(map_in_threads, workers=workers)
        batches = batches_by_length(lengths, self._batch_tokens(src_tokens), workers)
        for sentences, found in zip(batches, map_batches(search, batches), strict=True):
            for i, hypotheses in zip(sentences.tolist(), found, strict=True):
                results[i] = hypotheses
        if not all(results) and self.extras.tree_tokens is None:  # a prefix may allow no tree
            raise Refusal(
                "no translation: the model's scores are NaN, because its weights are NaN or half"
                " precision overflows: decode in fp32"
            )
        forms = [[_fairseq_form(h) for h in hypotheses] for hypotheses in results]
        if self.extras.alignment:
            list(map_batches(lambda rows: self._align(net_input, rows, forms), batches))
        return forms

    def _workers(self, tokens: Tensor) -> int:
        # Threads would draw random numbers in an arbitrary order.
        random = self.rules.sampling is not None or any(map(is_random, self.models))
        parts = (part for model in self.models for part in model.children())
        shared = not (tokens.is_cuda or random) and all(map(is_unmodified, parts))
        return available_threads() if shared else 1

    def _search(
        self,
        net_input: Mapping[str, Any],
        sentences: Tensor,
        max_lengths: Tensor,
        prefix: Tensor | None,
        first_token: int | None,
    ) -> list[list[Hypothesis]]:
        """Translates some sentences; if memory runs out, one half after the other."""
        try:
            start = None if prefix is None else prefix[sentences]
            source = EncoderInput.of(net_input, sentences, self.rules.pad)
            return self._search_at_once(source, max_lengths[sentences], start, first_token)
        except torch.cuda.OutOfMemoryError:
            if sentences.numel() == 1:
                raise
        torch.cuda.empty_cache()  # the caches of the failed search have gone with its frame
        return [
            hypotheses
            for half in sentences.chunk(2)
            for hypotheses in self._search(net_input, half, max_lengths, prefix, first_token)
        ]

    def _search_at_once(
        self,
        source: EncoderInput,
        max_lengths: Tensor,
        prefix: Tensor | None,
        first_token: int | None,
    ) -> list[list[Hypothesis]]:
        scorers = [self._scorer(model, source) for model in self.models]
        scorer: Scorer = scorers[0] if len(scorers) == 1 else EnsembleScorer(scorers)
        if self.language_model is not None:
            fused = CachedLanguageModel(self.language_model)
            scorer = FusedScorer(scorer, fused, self.extras.lm_weight)
        if self.extras.tree_tokens is not None:
            scorer = TreeScorer(scorer, self.extras.tree_tokens, source.tokens, max_lengths)
        return beam_search(scorer, max_lengths, self.rules, prefix, first_token)

    def _align(
        self, net_input: Mapping[str, Any], sentences: Tensor, found: list[list[dict[str, Any]]]
    ) -> None:
        """Adds attention and alignments to the best hypotheses of some sentences."""
        for rank in range(self.extras.num_aligned):
            rows = sentences[[rank < len(found[i]) for i in sentences.tolist()]]
            if rows.numel():
                best = [found[i][rank] for i in rows.tolist()]
                kind = str(self.extras.alignment)
                source = EncoderInput.of(net_input, rows, self.rules.pad)
                add_alignments(self.models, kind, source, best, self.rules.pad, self.eos)
                if self.extras.replace_unk:
                    check_unknown_words(best, self.rules.unk)

    def _scorer(self, model: VaswaniTransformer, source: EncoderInput) -> ModelScorer:
        encoded = source.encode(model)
        return ModelScorer(model.decoder, *encoded, self.rules.beam_size, self.temperature)

    def _batch_tokens(self, src_tokens: Tensor) -> int:
        return (_GPU_BATCH if src_tokens.is_cuda else _CPU_BATCH) // self.rules.beam_size

    def _max_lengths(
        self, src_tokens: Tensor, lengths: Tensor, prefix: Tensor | None = None
    ) -> Tensor:
        least = self.rules.min_length
        limits = [model.max_decoder_positions() for model in self.models]
        if self.language_model is not None:
            limits.append(max_positions(self.language_model))
        limit = min(limits) - 1
        if self.max_len_a >= 0:
            limit = min(int(self.max_len_a * src_tokens.size(1) + self.max_len_b), limit)
        if least > limit:
            raise Refusal(
                f"--min-len {least} is above the longest length, {limit}, which --max-len-a,"
                " --max-len-b and the model allow: lower it or raise them"
            )
        if self.max_len_a >= 0:
            return torch.full_like(lengths, limit)
        longest = lengths - 1 + self.max_len_own
        if prefix is not None:  # a prefix always leaves room
            longest = longest.maximum(prefix.ne(self.rules.pad).sum(dim=1) + self.max_len_own)
        return longest.clamp(max(1, least), limit)


def _fairseq_form(hypothesis: Hypothesis) -> dict[str, Tensor]:
    return {
        "tokens": hypothesis.tokens,
        "score": hypothesis.score,
        "positional_scores": hypothesis.log_probs,
        "attention": _NONE,
        "alignment": _NONE,
    }
