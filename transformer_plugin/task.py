"""The translation task with the paper's conventions."""

import logging
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, cast

import torch
from fairseq.data import FairseqDataset
from fairseq.tasks import FairseqTask, register_task
from omegaconf import DictConfig
from torch import nn

from .binarised_data import check_data, check_symbols, shard
from .decode_precision import in_precision
from .deviations import decoding_deviations, model_deviations, training_deviations
from .fidelity import FIDELITIES
from .generator import CALL_TOKENS, VaswaniGenerator
from .languages import check_languages
from .length_limits import LengthLimits
from .model import ANY_LENGTH, VaswaniTransformer, shape_in_words
from .pair_dataset import PairBatches
from .refusal import Refusal
from .search_extras import (
    by_rows,
    check_before_loading,
    check_stock,
    extras_of,
    with_language_model,
)
from .search_options import (
    PAPER_DECODING,
    PAPER_RULES,
    PAPER_SEARCH,
    STOCK_CALL_TOKENS,
    check_options,
    for_stock,
    max_len_a,
    rules_of,
    store_paper_decoding,
)
from .task_config import VaswaniTranslationConfig
from .trained_dictionaries import TrainedDictionaries
from .validation_scores import ValidationScores

logger = logging.getLogger(__name__)


@register_task("vaswani_translation", dataclass=VaswaniTranslationConfig)
class VaswaniTranslationTask(ValidationScores, TrainedDictionaries, LengthLimits, PairBatches):
    """Translation of one language into another."""

    before_setup: ClassVar[Callable[[], None]] = staticmethod(lambda: None)  # set by training/
    _from_checkpoint = False

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Adds the task's options, and makes section 6.1's decoding the default."""
        super().add_args(parser)
        if parser.get_default("beam") is not None:  # a command that translates
            parser.set_defaults(max_tokens=CALL_TOKENS)
            parser.set_defaults(max_source_positions=ANY_LENGTH, max_target_positions=ANY_LENGTH)
        parser.set_defaults(**PAPER_DECODING)

    @classmethod
    def setup_task(cls, cfg: VaswaniTranslationConfig, **kwargs: Any) -> "VaswaniTranslationTask":
        """Loads the dictionaries.

        Raises:
            FileNotFoundError: a data directory or dictionary is missing.
            Refusal: ``--fp16`` or ``--amp`` without a GPU, or ``--num-batch-buckets``.
        """
        if (cfg.fp16 or cfg.amp) and (cfg.cpu or not torch.cuda.is_available()):
            raise Refusal(
                f"--{'fp16' if cfg.fp16 else 'amp'} needs a GPU: fp16 matrix products are unusably"
                " slow on a CPU. Use --bf16, or no precision flag for fp32"
            )
        if cfg.num_batch_buckets:
            raise Refusal(
                "--num-batch-buckets: fairseq's code for it does not run with numpy 2: omit it;"
                " it is for devices that need batches of few shapes"
            )
        if kwargs.get("from_checkpoint"):  # not from the options of a command
            cfg.max_source_positions = cfg.max_target_positions = ANY_LENGTH
        cfg.source_lang, cfg.target_lang = check_data(cfg.data, cfg.source_lang, cfg.target_lang)
        cls.before_setup()
        return super().setup_task(cfg, **kwargs)

    def load_dataset(self, split: str, epoch: int = 1, *rest: Any, **options: Any) -> None:
        """As in fairseq, after a check that the data fits the dictionaries."""
        if self._from_checkpoint:
            generation = self._whole_cfg().get("generation", {})
            check_before_loading(generation, self.cfg.data, self.cfg.target_lang)
        folder = shard(self.cfg.data, epoch if split == self.cfg.train_subset else 1)
        check_symbols(folder, split, self.dictionaries())
        super().load_dataset(split, epoch, *rest, **options)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> nn.Module:
        """Builds a model to train, or to translate with if ``from_checkpoint``. The latter accepts
        sentences of any length, unless its positional encoding is a table.

        Raises:
            CheckpointError: the checkpoint is for other languages or the other direction.
        """
        # fairseq's sections keep a reference to the whole, for interpolations.
        whole = cast("DictConfig", cfg._get_root()) if isinstance(cfg, DictConfig) else None
        if from_checkpoint and whole is not None:
            path = self._whole_cfg().get("common_eval", {}).get("path") or "the checkpoint"
            check_languages(path, whole.get("task"), self.cfg.source_lang, self.cfg.target_lang)
        model = super().build_model(cfg, from_checkpoint)
        if isinstance(model, VaswaniTransformer):
            found = model_deviations(model.cfg)
            if from_checkpoint:
                model.accept_any_length()
                self._from_checkpoint = True
            else:
                logger.info("model: %s", shape_in_words(model))
                if whole is not None:
                    store_paper_decoding(whole)
                    found += training_deviations(whole)
            _log_deviations("", found)
        return model

    def get_batch_iterator(self, dataset: FairseqDataset, *rest: Any, **options: Any) -> Any:
        """As in fairseq, except for two deviations.

        Deviation: fairseq skips the last sentences if their number is not a multiple of
        ``--required-batch-size-multiple``: with 8, three of newstest2014's 3,003.

        Deviation: fairseq makes batches with the seed of the epoch in which the process starts, and
        reuses them in another order in later epochs, so a resumed run has other batches. Here the
        reused batches are always those of epoch 1.
        """
        given = signature(FairseqTask.get_batch_iterator).bind(self, dataset, *rest, **options)
        options = {n: v for n, v in given.arguments.items() if n not in ("self", "dataset")}
        epoch = options.pop("epoch", 1)
        if self._command() or dataset is not self.datasets.get(self.cfg.train_subset):
            options["required_batch_size_multiple"] = 1
        if options.get("max_tokens") == CALL_TOKENS and self._is_stock_search():  # the default
            options["max_tokens"] = STOCK_CALL_TOKENS
        anew = options.get("disable_iterator_cache") or options.get("update_epoch_batch_itr")
        is_reused = self.can_reuse_epoch_itr(dataset) and not anew
        known = self.dataset_to_epoch_iter.get(dataset)
        batches = super().get_batch_iterator(dataset, epoch=1 if is_reused else epoch, **options)
        if batches is not known:
            dataset.set_epoch(epoch)
            batches.epoch = epoch
        return batches

    def build_generator(
        self,
        models: Sequence[nn.Module],
        args: Any,
        seq_gen_cls: type | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Any = None,
    ) -> nn.Module:
        """The plugin's beam search, or fairseq's if an option needs it.

        Args:
            args: fairseq's generation options.

        Raises:
            Refusal: see ``check_options`` and ``search_extras``.
        """
        given = dict(args) if isinstance(args, Mapping) else vars(args)  # DictConfig or Namespace
        options = PAPER_DECODING | {k: v for k, v in given.items() if v is not None}
        check_options(options, self._command())
        options.setdefault("prefix_allowed_tokens_fn", prefix_allowed_tokens_fn)
        options["max_len_a"] = max_len_a(options, self._fidelity())
        options, extra = with_language_model(options, extra_gen_cls_kwargs or {}, self, models[0])
        reasons = for_stock(options, extra) + ["generator class"] * bool(seq_gen_cls)
        own = [model for model in models if isinstance(model, VaswaniTransformer)]
        precision = self.cfg.decode_precision
        if self._command() and self._whole_cfg()["common"]["bf16"]:
            precision = precision or "bf16"
        options["decode_precision"] = str(precision or "fp32")
        if precision and self._from_checkpoint:  # not the model that is being trained
            own = [in_precision(model, str(precision)) for model in own]
        if len(own) < len(models):
            reasons.append("a model that is not the plugin's")
        if reasons:
            self._prepare_stock_search(args, options, reasons)
            rest = seq_gen_cls, extra, prefix_allowed_tokens_fn
            generator = super().build_generator(models, args, *rest)
            return by_rows(generator) if "diverse_beam_groups" in reasons else generator
        chosen = {name: self._rule(name) for name in PAPER_RULES}
        rules = rules_of(options, chosen, self.target_dictionary)
        self._log_search(options, chosen | {"stop_rule": rules.stop_rule})
        return VaswaniGenerator(
            own,
            rules,
            options["max_len_a"],
            options["max_len_b"],
            options.get("temperature", 1.0),
            self.cfg.max_len_own,
            extras_of(options, extra, self),
        )

    def _command(self) -> str | None:
        """The command of fairseq that translates or validates; None: the command trains."""
        if self._whole_cfg().get("common_eval", {}).get("path") is None:
            return None
        return "fairseq-generate" if self.datasets else "fairseq-interactive"

    def _is_stock_search(self) -> bool:
        """Whether the command translates, and with fairseq's search."""
        if self._command() is None:
            return False
        options = self._whole_cfg().get("generation", {})
        return not self._from_checkpoint or bool(for_stock(options))

    def _whole_cfg(self) -> Mapping[str, Any]:
        """The configuration of the command; ``self.cfg`` is the task's section of it."""
        if not isinstance(self.cfg, DictConfig):
            return {}
        return cast("Mapping[str, Any]", self.cfg._get_root())

    def _fidelity(self) -> dict[str, Any]:
        return FIDELITIES[str(self.cfg.fidelity)]

    def _rule(self, name: str) -> str:
        """A rule of search: from its own option, else from ``--fidelity``, else the paper's."""
        chosen = getattr(self.cfg, name)
        return str(chosen or self._fidelity().get(name) or PAPER_RULES[name])

    def _log_search(self, options: Mapping[str, Any], rules: dict[str, str]) -> None:
        limit = f"source + {self.cfg.max_len_own}"
        if options["max_len_a"] >= 0:
            limit = f"{options['max_len_a']:g} x longest source + {options['max_len_b']}"
        rest = {"longest": limit, "only_trees": self.cfg.only_trees}
        found = {**PAPER_SEARCH, **options, **rules, **rest}
        _log_deviations("search ", decoding_deviations(found, PAPER_SEARCH))

    def _prepare_stock_search(self, args: Any, options: dict[str, Any], reasons: list[str]) -> None:
        check_stock(options, self.cfg.only_trees, reasons[0])
        # Deviation: options that the plugin's search lacks use fairseq's search and its rules.
        logger.info(
            "fairseq's own search is used, with its length penalty and stop rule, because of: %s",
            ", ".join(reasons),
        )
        if options["max_len_a"] < 0:  # the paper's limit, for the padded batch
            options |= {"max_len_a": 1, "max_len_b": self.cfg.max_len_own}
        args.max_len_a, args.max_len_b = options["max_len_a"], options["max_len_b"]
        self._log_search(options, {"length_penalty": "fairseq", "stop_rule": "first-finished"})


def _log_deviations(what: str, found: list[str]) -> None:
    logger.info("%snot as in the paper: %s", what, "; ".join(found) or "nothing")
