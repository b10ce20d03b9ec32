"""What the pages of docs/ hold: blocks, and the files that they tell the reader to write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PAGES = [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "docs").glob("*.md"))]
HEREDOC = re.compile(r"cat > (\S+) <<'(\w+)'\n(.*?\n)\2$", flags=re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The language ("" where none is said) and text of each fenced or indented block."""
    lines = page.read_text(encoding="utf-8").split("\n")
    i = 0
    while i < len(lines):
        start = i
        fence = re.match(r"```(\w*)", lines[i])
        i += 1
        if fence:
            while not lines[i].startswith("```"):
                i += 1
            yield fence[1], "\n".join(lines[start + 1 : i]) + "\n"
            i += 1
        elif lines[start].startswith("    ") and not lines[start - 1].strip():
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            yield "", "\n".join(line[4:] for line in lines[start:i]).rstrip("\n") + "\n"


def commands(page: Path) -> str:
    """The text of all blocks for a shell: those of another language are marked as such."""
    return "".join(text for language, text in blocks(page) if language in ("", "sh", "bash"))


def files_to_write(page: Path) -> dict[str, str]:
    """{path: contents}: Python that begins with its path, and what ``cat > PATH <<'END'`` gets."""
    found = {
        match[1]: text
        for language, text in blocks(page)
        if language == "python" and (match := re.match(r"# (\S+\.py)\n", text))
    }
    return found | {path: text for path, _end, text in HEREDOC.findall(commands(page))}


def write_files(page: Path, folder: Path) -> None:
    """Writes them below ``folder``."""
    for name, text in files_to_write(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
