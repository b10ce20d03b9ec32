"""Errors of data-prep: one clear message and status 2, no traceback."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from transformer_plugin.refusal import Refusal


class BadInput(Exception):
    """The input or an option is wrong; the message names the file and the remedy."""


def exit_cleanly(main: Callable[[], None]) -> None:
    """Run `main`; turn bad input, full disks and Ctrl-C into a message and an exit status."""
    step = sys.argv[0].rsplit("/", 1)[-1]
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # fairseq's imports cause some
    try:
        main()
    except (BadInput, Refusal) as error:
        print(f"{step}: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{step}: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{step}: interrupted; no output is half-written", file=sys.stderr)
        sys.exit(130)
