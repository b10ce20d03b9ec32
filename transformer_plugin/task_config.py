"""Options of the task: decoding's rules and precision, and what training does about faults."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from .decode_precision import PRECISIONS
from .fidelity import FIDELITIES
from .modules.length_penalty import LENGTH_PENALTIES


@dataclass
class VaswaniTranslationConfig(TranslationConfig):
    """fairseq's translation task, with sources padded on the right as targets are."""

    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    fidelity: ChoiceEnum(list(FIDELITIES)) = field(
        default="paper",
        metadata={
            "help": "whose choices to follow where an option of its own does not say: the paper's,"
            " those of its authors' first release (t2t), or fairseq's"
        },
    )
    length_penalty: Optional[ChoiceEnum(list(LENGTH_PENALTIES))] = field(
        default=None,
        metadata={"help": "gnmt: ((5 + len) / 6)^lenpen (6.1); fairseq: len^lenpen"},
    )
    stop_rule: Optional[ChoiceEnum(["bound", "first-finished"])] = field(
        default=None,
        metadata={
            "help": "bound: until no live hypothesis can beat the worst finished one, as the"
            " authors' release; first-finished: until as many as --beam have ended, as fairseq"
        },
    )
    decode_precision: Optional[ChoiceEnum(list(PRECISIONS))] = field(
        default=None,
        metadata={
            "help": "arithmetic of decoding from a checkpoint; default: that of the checkpoint, or"
            " what --fp16 or --bf16 says. bf16 is the fastest on CPUs with AMX, int8 is"
            " for CPUs alone, fp16 for GPUs alone"
        },
    )
    nonfinite_limit: int = field(
        default=10,
        metadata={
            "help": "updates with a gradient that is not finite that training leaves out before it"
            " stops; their sentences are listed in numeric_faults.jsonl of --save-dir"
        },
    )
    divergence_updates: int = field(
        default=500,
        metadata={
            "help": "updates in a row, with a mean loss a quarter above the lowest, that count as"
            " diverged; 0: never"
        },
    )
    on_divergence: ChoiceEnum(["stop", "rollback"]) = field(
        default="stop",
        metadata={
            "help": "rollback: set aside the checkpoints since, and go on from the last good one"
            " in a wider precision, fp16 to bf16 to fp32"
        },
    )
    fp16: bool = II("common.fp16")
    cpu: bool = II("common.cpu")
