"""The fairseq model: builds encoder and decoder, ties and initialises embeddings."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import fields
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.models.transformer import TransformerModel
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor, nn

from .combinations import NO_TRANSLATION, check_combination
from .command_line import fill_group
from .config import VaswaniConfig, completed, head_widths
from .decoder import VaswaniDecoder
from .encoder import VaswaniEncoder
from .modules.embedding import build_positional_encoding
from .modules.initialisation import initialise, initialise_embedding
from .modules.layers import LayerShape
from .modules.packing import pad_like
from .modules.positional_encoding import SinusoidalPositionalEncoding
from .refusal import Refusal
from .retained_dropout import retain_dropout
from .search.decoder_state import prepare_decoding
from .state_names import before_loading, check_kinds, keep_fairseq_names

ANY_LENGTH = 1_000_000  # tokens


@register_model("vaswani_transformer", dataclass=VaswaniConfig)
class VaswaniTransformer(FairseqEncoderDecoderModel):
    """The encoder-decoder of Figure 1."""

    encoder: VaswaniEncoder
    decoder: VaswaniDecoder

    def __init__(self, cfg: VaswaniConfig, encoder: VaswaniEncoder, decoder: VaswaniDecoder):
        super().__init__(encoder, decoder)
        self.cfg = cfg
        self.need_attn = False  # set by --print-alignment; makes ``forward`` slower
        for stack in (encoder, decoder):
            keep_fairseq_names(stack, *(cfg.num_heads * width for width in head_widths(cfg)))
        before_loading(self, _check_stored)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Adds the model's options."""
        cfg = getattr(cls, "__dataclass")()
        # fairseq makes no option of an interpolation: the loss adds this one.
        cfg.label_smoothing = II("criterion.label_smoothing")
        fill_group(parser, cfg, TransformerModel)

    @classmethod
    def build_model(cls, cfg: VaswaniConfig, task: FairseqTask) -> VaswaniTransformer:
        """The model of ``cfg`` for the dictionaries of ``task``.

        Raises:
            Refusal: settings contradict each other, or other parts of the configuration do not work
                with the model; the message says what to change.
        """
        check_combination(cfg, task)
        cfg = completed(cfg)
        if cfg.decoder_layers < 1:  # a search keeps its state in the caches of the layers
            raise Refusal(f"--decoder-layers {cfg.decoder_layers}: expected at least 1")
        shape = layer_shape(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        source_embedding, target_embedding, output = _build_embeddings(cfg, source, target)

        def positions(max_positions: int, dictionary: Dictionary) -> nn.Module:
            return build_positional_encoding(
                cfg.positional_encoding, cfg.d_model, max_positions, dictionary.pad()
            )

        encoder = VaswaniEncoder(
            source,
            source_embedding,
            positions(cfg.max_source_positions, source),
            shape,
            cfg.encoder_layers,
            cfg.max_source_positions,
        )
        decoder = VaswaniDecoder(
            target,
            target_embedding,
            positions(cfg.max_target_positions, target),
            output,
            shape,
            cfg.decoder_layers,
            cfg.max_target_positions,
        )
        initialise(encoder, cfg.initialisation)
        initialise(decoder, cfg.initialisation)
        return cls(cfg, encoder, decoder)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        prev_output_tokens: Tensor | None = None,
        features_only: bool = False,
        packed: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Teacher forcing.

        Args:
            src_tokens: ``[B, S]``.
            src_lengths: ``[B]``; ignored, padding determines the lengths.
            prev_output_tokens: target ids shifted right by one, ``[B, T]``.
            features_only: stop before the output projection.
            packed: omit padding from the result; idle rows may follow the real ones.
            alignment_layer, alignment_heads: see ``VaswaniDecoder.forward``; None: no attention
                weights, which is faster, unless ``need_attn`` is set.

        Returns:
            Logits ``[B, T, V]``, or features ``[B, T, D]``, padded on the side on which
            ``prev_output_tokens`` are; ``[N, ...]`` if packed; and ``attn``, see
            ``VaswaniDecoder.forward``.

        Raises:
            Refusal: the task gives no target sentences.
        """
        if prev_output_tokens is None:
            raise Refusal(NO_TRANSLATION)
        if self.need_attn or alignment_layer is not None or alignment_heads is not None:
            return self.decoder(
                prev_output_tokens,
                self.encoder(src_tokens),
                features_only=features_only,
                alignment_layer=alignment_layer,
                alignment_heads=alignment_heads,
            )
        memory, memory_packing = self.encoder.encode(src_tokens)[:2]
        x, packing = self.decoder.decode(prev_output_tokens, memory, memory_packing)[:2]
        if not features_only:
            x = self.decoder.output_layer(x)
        if not packed:
            x = pad_like(x, packing, prev_output_tokens.eq(self.decoder.padding_idx))
        return x, {"attn": [None]}

    def make_generation_fast_(self, **options: Any) -> None:
        """Prepares for translation as in fairseq, with dropout as set by ``retain_dropout`` and
        ``retain_dropout_modules``; the model can no longer be trained."""
        super().make_generation_fast_(**options)
        self.requires_grad_(False)
        self.need_attn = bool(options.get("need_attn"))
        if options.get("retain_dropout"):
            retain_dropout(self, options.get("retain_dropout_modules"))

    def prepare_scoring(self, rows: int) -> None:
        """Prepares as a search does, so that scores do not depend on an earlier one.

        Args:
            rows: see ``prepare_decoding``.
        """
        prepare_decoding(self, rows)

    def accept_any_length(self) -> None:
        """Lifts the limit on sentence lengths, unless positions are learned."""
        for side in (self.encoder, self.decoder):
            if isinstance(side.embed_positions, SinusoidalPositionalEncoding):
                side.longest = ANY_LENGTH


def layer_shape(cfg: VaswaniConfig) -> LayerShape:
    """The dimensions and options of one layer.

    Raises:
        Refusal: d_model is not divisible by num_heads, and d_k or d_v is not given.
    """
    if cfg.d_model % cfg.num_heads and not (cfg.d_k and cfg.d_v):
        raise Refusal(
            f"--d-model {cfg.d_model} is not divisible by --num-heads {cfg.num_heads}: change one"
            " of them, or set the width of a head with --d-k and --d-v"
        )
    d_k, d_v = head_widths(cfg)
    named_alike = {each.name: getattr(cfg, each.name) for each in fields(LayerShape)}
    return LayerShape(**named_alike | {"d_k": d_k, "d_v": d_v})


def _build_embeddings(
    cfg: VaswaniConfig, source: Dictionary, target: Dictionary
) -> tuple[nn.Embedding, nn.Embedding, nn.Linear]:
    """Source embedding, target embedding and output projection: one matrix for all three
    (section 3.4) unless ``cfg`` unties them."""

    def embedding(dictionary: Dictionary) -> nn.Embedding:
        table = nn.Embedding(len(dictionary), cfg.d_model, dictionary.pad())
        initialise_embedding(table)
        return table

    source_embedding = embedding(source)
    if cfg.untie_embeddings or cfg.untie_source_embedding:
        target_embedding = embedding(target)
    elif source == target:
        target_embedding = source_embedding
    else:
        raise Refusal(
            f"one shared embedding needs one dictionary, but source and target differ"
            f" ({len(source)} and {len(target)} symbols): run fairseq-preprocess with"
            " --joined-dictionary, or train with --untie-source-embedding"
        )
    output = nn.Linear(cfg.d_model, len(target), bias=False)
    if cfg.untie_embeddings:
        nn.init.normal_(output.weight, std=cfg.d_model**-0.5)
    else:
        output.weight = target_embedding.weight
    return source_embedding, target_embedding, output


def _check_stored(model: nn.Module, state: dict[str, Any], *_: Any) -> None:
    """Checks the kinds of numbers and the vocabulary sizes before loading.

    Raises:
        TypeError: the checkpoint has weights that are not floating-point numbers.
        Refusal: it has another vocabulary.
    """
    own = model.state_dict()
    check_kinds(state, own)
    for side in ("encoder", "decoder"):
        name = f"{side}.embed_tokens.weight"
        symbols = [len(tensors[name]) for tensors in (state, own) if name in tensors]
        if len(set(symbols)) == 2:
            raise Refusal(
                f"the checkpoint's {side} has {symbols[0]} symbols, the dictionary of the data"
                f" {symbols[1]}: use the checkpoint with the data it was trained on"
            )


def shape_in_words(model: VaswaniTransformer) -> str:
    """The shape of a model and the number of its parameters, in a line."""
    n, parameters = model.cfg, sum(p.numel() for p in model.parameters())
    return (
        f"{n.encoder_layers} + {n.decoder_layers} layers, d_model {n.d_model}, d_ff {n.d_ff},"
        f" {n.num_heads} heads, {parameters:,} parameters"
    )
