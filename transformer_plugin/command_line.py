"""Adds the options of the plugin's components to fairseq's command line."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentError, ArgumentParser
from contextlib import suppress
from dataclasses import fields
from enum import Enum
from typing import Any

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass

from .stock_options import accept_stock_options


def add_options(parser: ArgumentParser, config: FairseqDataclass, stock: Any) -> None:
    """Adds an option for each field of ``config`` that the parser does not have yet, and those of
    ``stock``, fairseq's component of the same kind.

    Options that are not given stay unset, so that the field's default applies, even if it is an
    interpolation. fairseq would set them to None.
    """
    fill_group(parser.add_argument_group(argument_default=SUPPRESS), config, stock)


def fill_group(group: Any, config: FairseqDataclass, stock: Any) -> None:
    """Like ``add_options``, for a group of options that stay unset by default."""
    for each in fields(config):
        text = each.metadata.get("help")
        if text and str(each.default).startswith("${"):  # fairseq would ignore the type
            is_choice = isinstance(each.type, type) and issubclass(each.type, Enum)
            kind = {"choices": [str(c) for c in each.type]} if is_choice else {"type": each.type}
            with suppress(ArgumentError):
                group.add_argument(f"--{each.name.replace('_', '-')}", help=text, **kind)
    gen_parser_from_dataclass(group, config, delete_default=True)
    accept_stock_options(group, stock)
