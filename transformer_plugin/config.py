"""Every number and choice of the model; the defaults are the paper's base model."""

from dataclasses import dataclass, field, fields

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II, DictConfig, OmegaConf

from .modules.attention_score import ATTENTION_SCORES

POSITIONAL_ENCODINGS = ChoiceEnum(["paper", "t2t", "fairseq", "learned"])
INITIALISATIONS = ChoiceEnum(["paper", "fairseq"])


@dataclass
class VaswaniConfig(FairseqDataclass):
    """Fields are named as in the paper; section numbers are the paper's."""

    encoder_layers: int = field(default=6, metadata={"help": "encoder layers, N (3.1)"})
    decoder_layers: int = field(default=6, metadata={"help": "decoder layers, N (3.1)"})
    d_model: int = field(default=512, metadata={"help": "width of the model (3.1)"})
    d_ff: int = field(default=2048, metadata={"help": "inner width of the feed-forward (3.3)"})
    num_heads: int = field(default=8, metadata={"help": "attention heads, h (3.2.2)"})
    d_k: int = field(
        default=0, metadata={"help": "width of queries and keys a head; 0 = d_model / h (3.2.2)"}
    )
    d_v: int = field(
        default=0, metadata={"help": "width of values a head; 0 = d_model / h (3.2.2)"}
    )
    dropout: float = field(
        default=0.1, metadata={"help": "residual and embedding dropout, P_drop (5.4)"}
    )
    label_smoothing: float = field(
        default=0.1, metadata={"help": "epsilon_ls, mass taken from the gold class (5.4)"}
    )
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout of attention weights (none in the paper)"}
    )
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout behind the ReLU (none in the paper)"}
    )
    attention_score: ChoiceEnum(list(ATTENTION_SCORES)) = field(
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
        default=1e-6, metadata={"help": "added to the variance (1e-6 in T2T, 1e-5 in fairseq)"}
    )
    positional_encoding: POSITIONAL_ENCODINGS = field(
        default="paper",
        metadata={
            "help": "paper: interleaved sinusoids from position 0 (3.5); t2t: sines, then cosines;"
            " fairseq: the same from position 2; learned: Table 3, row E"
        },
    )
    initialisation: INITIALISATIONS = field(
        default="paper",
        metadata={"help": "paper: Xavier everywhere, as the authors' release; fairseq: its own"},
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
            "help": "compute each layer's activations again in backward instead of keeping them:"
            " less memory, and a third more work"
        },
    )
    fidelity: str = II("task.fidelity")
    # Deviation: longer training sentences are left out; the paper names no limit.
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")


def completed(cfg: DictConfig) -> DictConfig:
    """The settings of a checkpoint, and the defaults of fields that are newer than it."""
    newer = {
        f.name: f.default
        for f in fields(VaswaniConfig)
        if f.name not in cfg and not str(f.default).startswith("${")
    }
    return OmegaConf.merge(newer, cfg)
