"""Options of the task: rules and precision of decoding, and the handling of faults in training."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from .config import Fidelity
from .decode_precision import PRECISIONS
from .modules.length_penalty import LENGTH_PENALTIES
from .search_options import MAX_LEN_OWN

if TYPE_CHECKING:  # fairseq reads the choices of an option from its type
    LengthPenalty = str
    StopRule = str
    DecodePrecision = str
    OnDivergence = str
else:
    LengthPenalty = ChoiceEnum(list(LENGTH_PENALTIES))
    StopRule = ChoiceEnum(["bound", "first-finished"])
    DecodePrecision = ChoiceEnum(list(PRECISIONS))
    OnDivergence = ChoiceEnum(["stop", "rollback"])


@dataclass
class VaswaniTranslationConfig(TranslationConfig):
    """fairseq's translation task, with sources padded on the right like targets."""

    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    upsample_primary: int = field(
        default=1, metadata={"help": "how often the first of several training sets is used"}
    )
    fidelity: Fidelity = field(
        default="paper",
        metadata={
            "help": "whose defaults to use: the paper's, those of its authors' first release"
            " (t2t), or fairseq's; explicit options override them"
        },
    )
    length_penalty: Optional[LengthPenalty] = field(
        default=None,
        metadata={"help": "gnmt: ((5 + len) / 6)^lenpen (6.1); fairseq: len^lenpen"},
    )
    stop_rule: Optional[StopRule] = field(
        default=None,
        metadata={
            "help": "bound: stop when no live hypothesis can beat the worst finished one, as in the"
            " authors' release; first-finished: stop with --beam finished ones, as in fairseq"
        },
    )
    max_len_own: int = field(
        default=MAX_LEN_OWN,
        metadata={
            "help": "maximum length of a hypothesis beyond that of its own source (50 in 6.1, 300"
            " for parsing in 6.3), unless --max-len-a is set"
        },
    )
    only_trees: bool = field(
        default=False,
        metadata={"help": "for a parser (6.3): search only for trees of the sentence"},
    )
    decode_precision: Optional[DecodePrecision] = field(
        default=None,
        metadata={
            "help": "precision of decoding from a checkpoint; default: that of --fp16 or --bf16,"
            " else fp32. bf16 is fastest on CPUs with AMX, int8 on others; int8 is for CPUs"
            " only, fp16 for GPUs only"
        },
    )
    nonfinite_limit: int = field(
        default=10,
        metadata={
            "help": "updates with NaN or infinite gradients that are skipped before training stops;"
            " numeric_faults.jsonl in --save-dir lists their sentences"
        },
    )
    divergence_updates: int = field(
        default=500,
        metadata={
            "help": "training has diverged if its mean loss stays a quarter, and 0.1 bits, above"
            " the lowest for this many updates; 0: never"
        },
    )
    on_divergence: OnDivergence = field(
        default="stop",
        metadata={
            "help": "rollback: rename later checkpoints, and resume from the last good one in a"
            " wider precision (fp16, bf16, fp32)"
        },
    )
    fp16: bool = II("common.fp16")
    amp: bool = II("oc.select:common.amp,False")
    cpu: bool = II("common.cpu")
