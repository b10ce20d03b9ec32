"""Accepts fairseq's options for a Transformer and its training, or names the alternative.

``docs/fairseq.md`` has a table of them.
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from typing import Any

from .refusal import Refusal

# fairseq's option: the field of the model that it sets, and the value that a switch sets.
SAME: dict[str, tuple[str, Any]] = {
    "encoder_embed_dim": ("d_model", None),
    "decoder_embed_dim": ("d_model", None),
    "encoder_ffn_embed_dim": ("d_ff", None),
    "decoder_ffn_embed_dim": ("d_ff", None),
    "encoder_attention_heads": ("num_heads", None),
    "decoder_attention_heads": ("num_heads", None),
    "encoder_normalize_before": ("pre_norm", True),
    "decoder_normalize_before": ("pre_norm", True),
    "encoder_learned_pos": ("positional_encoding", "learned"),
    "decoder_learned_pos": ("positional_encoding", "learned"),
    "share_all_embeddings": ("untie_source_embedding", False),
    "share_decoder_input_output_embed": ("untie_source_embedding", True),
    "relu_dropout": ("activation_dropout", None),
}
# Options for behaviour that the plugin always has.
NOT_NEEDED = {
    "report_accuracy": "accuracy is always reported",
    "use_old_adam": "vaswani_adam chooses its own implementation",
}
INSTEAD = {
    "activation_fn": "the feed-forward network has ReLU (section 3.3); for another function edit"
    " modules/feed_forward.py",
    "offload_activations": "use --checkpoint-activations",
    "encoder_layerdrop": "the plugin has no layer dropout",
    "decoder_layerdrop": "the plugin has no layer dropout",
    "ignore_prefix_size": "use --criterion label_smoothed_cross_entropy",
    "fp16_adam_stats": "use --optimizer adam",
    "warmup_init_lr": "noam rises from lr / warmup-updates; for another start use --lr-scheduler"
    " inverse_sqrt",
}
_OF_THE_TASK = {"max_source_positions", "max_target_positions"}


def accept_stock_options(parser: Any, stock: Any) -> None:
    """Adds the options of ``stock``, a component of fairseq, that ``parser`` lacks.

    An option with the same meaning as a field of the model sets this field. The others raise an
    error that names the alternative.
    """
    theirs = ArgumentParser(add_help=False, conflict_handler="resolve")
    stock.add_args(theirs)
    taken = parser._option_string_actions
    for option in theirs._actions:
        strings = [s for s in option.option_strings if s not in taken]
        if not strings or option.dest in _OF_THE_TASK:
            continue
        if option.dest in SAME:
            field, const = SAME[option.dest]
            kind = {"nargs": 0, "const": const} if option.nargs == 0 else {"type": option.type}
            parser.add_argument(
                *strings, dest=field, action=_Same, default=SUPPRESS, help=SUPPRESS, **kind
            )
        elif option.dest in NOT_NEEDED:
            parser.add_argument(*strings, nargs=0, action=_Ignored, default=SUPPRESS, help=SUPPRESS)
        else:
            parser.add_argument(
                *strings,
                dest=option.dest,
                nargs="?",
                action=_Refused,
                default=SUPPRESS,
                help=SUPPRESS,
            )


class _Same(Action):
    """Sets a field of the model. It is refused if an option before it has set another value; the
    plugin's own option after it replaces the value, as the last of two options does."""

    def __call__(
        self, _parser: Any, namespace: Namespace, value: Any, option_string: str | None = None
    ) -> None:
        if self.nargs == 0:
            value = self.const
        known = getattr(namespace, self.dest, value)
        if self.dest == "untie_source_embedding":  # sharing all includes sharing the decoder's
            known = value = known and value
        if known != value:
            raise Refusal(
                f"{option_string} sets --{self.dest.replace('_', '-')} to {value}, but another"
                f" option sets it to {known}: the plugin's model has one value for both"
            )
        setattr(namespace, self.dest, value)


class _Ignored(Action):
    """Accepts an option without an effect."""

    def __call__(self, *_: Any) -> None:
        pass


class _Refused(Action):
    """Raises a Refusal that names the alternative."""

    def __call__(
        self, _parser: Any, _namespace: Namespace, value: Any, option_string: str | None = None
    ) -> None:
        if self.dest == "activation_fn" and value == "relu":
            return
        instead = INSTEAD.get(self.dest, "the plugin has no equivalent (docs/fairseq.md)")
        raise Refusal(f"{option_string} is fairseq's option, not the plugin's: {instead}")
