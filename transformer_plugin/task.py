"""Translation with the paper's conventions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II


@dataclass
class VaswaniTranslationConfig(TranslationConfig):
    """fairseq's translation task, with sources padded on the right as targets are."""

    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    fp16: bool = II("common.fp16")
    cpu: bool = II("common.cpu")


@register_task("vaswani_translation", dataclass=VaswaniTranslationConfig)
class VaswaniTranslationTask(TranslationTask):
    """Translation of one language into another."""

    @classmethod
    def setup_task(cls, cfg: VaswaniTranslationConfig, **kwargs: Any) -> "VaswaniTranslationTask":
        """Loads the dictionaries.

        Raises:
            FileNotFoundError: a data directory or dictionary is missing.
            ValueError: ``--fp16`` without a GPU.
        """
        if cfg.fp16 and (cfg.cpu or not torch.cuda.is_available()):
            raise ValueError(
                "--fp16 needs a GPU: fp16 matrix products are unusably slow on a CPU."
                " Use --bf16, or no precision flag for fp32"
            )
        _check_data(cfg)
        return super().setup_task(cfg, **kwargs)


def _check_data(cfg: VaswaniTranslationConfig) -> None:
    prepare = "prepare it with recipes/prepare.sh, or with fairseq-preprocess"
    for path in map(Path, utils.split_paths(cfg.data)):
        if not path.is_dir():
            raise FileNotFoundError(f"{path}: no such data directory; {prepare}")
        source, target = cfg.source_lang, cfg.target_lang
        if source is None or target is None:
            source, target = data_utils.infer_language_pair(str(path))
        if source is None or target is None:
            raise FileNotFoundError(
                f"{path}: no binarised data (train.SOURCE-TARGET.SOURCE.idx or the like);"
                f" {prepare}, or name the languages by -s and -t"
            )
        for language in (source, target):
            dictionary = path / f"dict.{language}.txt"
            if not dictionary.is_file():
                raise FileNotFoundError(f"{dictionary}: no such dictionary; {prepare}")
