"""The settings of the model; the defaults are the paper's base model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, cast

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II, DictConfig, OmegaConf

from .fidelity import FIDELITIES, by_fidelity
from .flops import Dimensions
from .modules.attention import ATTENTION_SCORES

if TYPE_CHECKING:  # fairseq reads the choices of an option from its type
    AttentionScore = str
    PositionalEncoding = str
    Initialisation = str
    Fidelity = str
else:
    AttentionScore = ChoiceEnum(list(ATTENTION_SCORES))
    PositionalEncoding = ChoiceEnum(["paper", "t2t", "fairseq", "learned"])
    Initialisation = ChoiceEnum(["paper", "fairseq"])
    Fidelity = ChoiceEnum(list(FIDELITIES))

MAX_POSITIONS = 1024  # tokens of a source or a target by default, as in fairseq

# Fields that may change while a model is trained: its parameters keep their meaning.
CHANGEABLE_FIELDS = frozenset({
    *("dropout", "attention_dropout", "activation_dropout", "label_smoothing"),
    *("initialisation", "fidelity", "checkpoint_activations"),
    *("max_source_positions", "max_target_positions"),
})  # fmt: skip


@dataclass
class VaswaniConfig(FairseqDataclass):
    """Fields are named as in the paper; section numbers are the paper's."""

    encoder_layers: int = field(default=6, metadata={"help": "encoder layers, N (3.1)"})
    decoder_layers: int = field(default=6, metadata={"help": "decoder layers, N (3.1)"})
    d_model: int = field(default=512, metadata={"help": "width of the model (3.1)"})
    d_ff: int = field(default=2048, metadata={"help": "inner width of the feed-forward (3.3)"})
    num_heads: int = field(default=8, metadata={"help": "attention heads, h (3.2.2)"})
    d_k: int = field(
        default=0, metadata={"help": "width of queries and keys per head; 0 = d_model / h (3.2.2)"}
    )
    d_v: int = field(
        default=0, metadata={"help": "width of values per head; 0 = d_model / h (3.2.2)"}
    )
    dropout: float = field(
        default=0.1, metadata={"help": "residual and embedding dropout, P_drop (5.4)"}
    )
    label_smoothing: float = 0.1  # epsilon_ls (5.4), for a preset; the loss has the option
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout of attention weights (none in the paper)"}
    )
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout after the ReLU (none in the paper)"}
    )
    attention_score: AttentionScore = field(
        default="scaled_dot",
        metadata={
            "help": "scaled_dot: equation (1); dot: unscaled; general: bilinear (Luong et al."
            " 2015); additive: a hidden layer (Bahdanau et al. 2015)"
        },
    )
    attention_window: int = field(
        default=0,
        metadata={"help": "self-attention sees positions at most r away (Table 1); 0: all"},
    )
    pre_norm: bool = field(
        default=False,
        metadata={"help": "normalise before each sub-layer; the paper does so after it (3.1)"},
    )
    layer_norm_eps: float = field(
        default=by_fidelity("layer_norm_eps", 1e-6),
        metadata={"help": "added to the variance (1e-6 in T2T, 1e-5 in fairseq)"},
    )
    positional_encoding: PositionalEncoding = field(
        default=by_fidelity("positional_encoding", "paper"),
        metadata={
            "help": "paper: interleaved sinusoids from position 0 (3.5); t2t: sines, then cosines;"
            " fairseq: the same from position 2; learned: Table 3, row E"
        },
    )
    initialisation: Initialisation = field(
        default=by_fidelity("initialisation", "paper"),
        metadata={"help": "paper: Xavier everywhere, as in the authors' release; fairseq: its own"},
    )
    untie_embeddings: bool = field(
        default=False,
        metadata={"help": "three separate embedding matrices; the paper shares one (3.4)"},
    )
    untie_source_embedding: bool = field(
        default=False,
        metadata={"help": "separate source embedding; for dictionaries that differ (3.4)"},
    )
    checkpoint_activations: bool = field(
        default=False,
        metadata={
            "help": "recompute each layer's activations in the backward pass instead of storing"
            " them: less memory, a third more work"
        },
    )
    fidelity: Fidelity = field(
        default=II("oc.select:task.fidelity,paper"),
        metadata={"help": "whose defaults to use: the paper's, t2t's or fairseq's"},
    )
    # Deviation: longer training sentences are skipped; the paper states no limit.
    max_source_positions: int = II(f"oc.select:task.max_source_positions,{MAX_POSITIONS}")
    max_target_positions: int = II(f"oc.select:task.max_target_positions,{MAX_POSITIONS}")


def is_plugin_model(settings: object) -> bool:
    """Whether these settings, of a configuration or checkpoint, are those of the plugin's model:
    also under the name of an architecture that a user has added."""
    return isinstance(settings, Mapping) and {"d_model", "num_heads"} <= settings.keys()


def head_widths(cfg: VaswaniConfig) -> tuple[int, int]:
    """d_k and d_v; d_model / h unless they are set (3.2.2)."""
    share = cfg.d_model // cfg.num_heads
    return cfg.d_k or share, cfg.d_v or share


def dimensions(cfg: VaswaniConfig) -> tuple[Dimensions, Dimensions]:
    """Those of the encoder and of the decoder."""
    width = (cfg.d_model, cfg.d_ff, cfg.num_heads, *head_widths(cfg))
    return Dimensions(cfg.encoder_layers, *width), Dimensions(cfg.decoder_layers, *width)


def completed(cfg: VaswaniConfig | DictConfig | Mapping[str, Any]) -> VaswaniConfig:
    """All settings of a model as plain values: interpolations are resolved, and fields that an
    older checkpoint lacks have their defaults.

    Args:
        cfg: a configuration of fairseq, the settings in a checkpoint, or a ``VaswaniConfig``.

    Returns:
        A ``DictConfig`` with the fields of ``VaswaniConfig`` and any others that ``cfg`` has.
    """
    if is_dataclass(cfg):
        cfg = OmegaConf.structured(cfg)
    elif not OmegaConf.is_config(cfg):
        cfg = OmegaConf.create(dict(cfg))
    default, given = (
        cast("dict[str, Any]", OmegaConf.to_container(settings, resolve=True, enum_to_str=True))
        for settings in (OmegaConf.structured(VaswaniConfig), cfg)
    )
    return cast("VaswaniConfig", OmegaConf.create({**default, **given}))
