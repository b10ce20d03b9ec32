"""The Transformer: builds encoder and decoder, ties their embeddings, initialises them."""

from __future__ import annotations

from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from .config import VaswaniConfig
from .decoder import VaswaniDecoder
from .encoder import VaswaniEncoder
from .modules.embedding import build_positional_encoding
from .modules.initialisation import initialise, initialise_embedding
from .modules.layers import LayerShape
from .modules.positional_encoding import SinusoidalPositionalEncoding
from .state_names import to_fairseq_names, to_our_names

ANY_LENGTH = 1_000_000  # tokens


@register_model("vaswani_transformer", dataclass=VaswaniConfig)
class VaswaniTransformer(FairseqEncoderDecoderModel):
    """The encoder-decoder of Figure 1."""

    encoder: VaswaniEncoder
    decoder: VaswaniDecoder

    def __init__(self, cfg: VaswaniConfig, encoder: VaswaniEncoder, decoder: VaswaniDecoder):
        super().__init__(encoder, decoder)
        self.cfg = cfg
        shape = layer_shape(cfg)
        widths = (shape.num_heads * shape.d_k, shape.num_heads * shape.d_v)
        self.register_state_dict_post_hook(
            lambda _module, state, _prefix, _metadata: _replace(
                state, to_fairseq_names(state, *widths)
            )
        )
        self.register_load_state_dict_pre_hook(_take_up)

    @classmethod
    def build_model(cls, cfg: VaswaniConfig, task: FairseqTask) -> VaswaniTransformer:
        """The model of ``cfg`` for the dictionaries of ``task``.

        Raises:
            ValueError: numbers that do not fit together; the message says what to change.
        """
        shape = layer_shape(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        source_embedding, target_embedding, output = _build_embeddings(cfg, source, target)

        def positions(max_positions: int, dictionary: Dictionary) -> nn.Module:
            return build_positional_encoding(
                str(cfg.positional_encoding), cfg.d_model, max_positions, dictionary.pad()
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
        initialise(encoder, str(cfg.initialisation))
        initialise(decoder, str(cfg.initialisation))
        return cls(cfg, encoder, decoder)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        features_only: bool = False,
        packed: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Teacher forcing.

        Args:
            src_tokens: ``[B, S]``.
            src_lengths: ``[B]``; unused, since padding says the same.
            prev_output_tokens: target ids shifted right by one, ``[B, T]``.
            features_only: stop before the output projection.
            packed: leave padding out of the result; idle rows may follow the real ones.

        Returns:
            Logits ``[B, T, V]``, or features ``[B, T, D]``; ``[N, ...]`` when packed.
        """
        memory, memory_packing, _weights = self.encoder.encode(src_tokens)
        x, packing, _weights = self.decoder.decode(prev_output_tokens, memory, memory_packing)
        if not features_only:
            x = self.decoder.output_layer(x)
        return (x if packed else packing.pad(x)), {"attn": [None]}

    def take_any_length(self) -> None:
        """Lifts the limit on sentence lengths, unless positions are learned."""
        for side in (self.encoder, self.decoder):
            if isinstance(side.embed_positions, SinusoidalPositionalEncoding):
                side.longest = ANY_LENGTH


def layer_shape(cfg: VaswaniConfig) -> LayerShape:
    """The numbers of one layer.

    Raises:
        ValueError: d_model is no multiple of num_heads and d_k or d_v is not given.
    """
    if cfg.d_model % cfg.num_heads and not (cfg.d_k and cfg.d_v):
        raise ValueError(
            f"--d-model {cfg.d_model} is not divisible by --num-heads {cfg.num_heads}: change one"
            " of them, or give the width of a head by --d-k and --d-v"
        )
    return LayerShape(
        d_model=cfg.d_model,
        d_ff=cfg.d_ff,
        num_heads=cfg.num_heads,
        d_k=cfg.d_k or cfg.d_model // cfg.num_heads,
        d_v=cfg.d_v or cfg.d_model // cfg.num_heads,
        dropout=cfg.dropout,
        attention_dropout=cfg.attention_dropout,
        activation_dropout=cfg.activation_dropout,
        pre_norm=cfg.pre_norm,
        layer_norm_eps=cfg.layer_norm_eps,
        attention_score=str(cfg.attention_score),
        attention_window=cfg.attention_window,
        checkpoint_activations=cfg.checkpoint_activations,
    )


def _build_embeddings(
    cfg: VaswaniConfig, source: Dictionary, target: Dictionary
) -> tuple[nn.Embedding, nn.Embedding, nn.Linear]:
    """Source and target embedding and the output projection, one matrix for all three
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
        raise ValueError(
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


def _take_up(model: nn.Module, state: dict[str, Any], *_: Any) -> None:
    """Before loading: fairseq's names to ours, and the vocabulary to be the dictionary's.

    Raises:
        SystemExit: the checkpoint is of another vocabulary.
    """
    _replace(state, to_our_names(state))
    for side in ("encoder", "decoder"):
        found = state[f"{side}.embed_tokens.weight"].size(0)
        expected = getattr(model, side).embed_tokens.num_embeddings
        if found != expected:
            raise SystemExit(
                f"the checkpoint's {side} knows {found} symbols, the dictionary of the data"
                f" {expected}: use the checkpoint with the data it was trained on"
            )


def _replace(state: dict[str, Any], renamed: dict[str, Any]) -> None:
    state.clear()
    state.update(renamed)
