"""Puts an HTML page, its style sheets and its scripts into a single file."""

from __future__ import annotations

import re
from pathlib import Path

_STYLE = re.compile(r'<link rel="stylesheet" href="([\w./]+)">')
_SCRIPT = re.compile(r'<script src="([\w./]+)"></script>')


def inlined(html: str, folder: Path) -> str:
    """The page with the contents of style sheets and scripts in place of the links to them.

    Args:
        folder: the folder that the links are relative to.

    Raises:
        FileNotFoundError: a link names a file that does not exist.
    """

    def contents(link: re.Match[str]) -> str:
        return (folder / link[1]).read_text(encoding="utf-8")

    html = _STYLE.sub(lambda link: f"<style>{contents(link)}</style>", html)
    # A script is its file and nothing else: a Content-Security-Policy may have its hash.
    return _SCRIPT.sub(lambda link: f"<script>{contents(link)}</script>", html)
