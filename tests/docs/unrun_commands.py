"""The commands of a script as bash makes them of it, none of which is run."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pages import REPO

PLUGIN = str(REPO / "transformer_plugin")
# bash finds no program, since no name has a slash: it gives each command's words
# to this function. Each command has a file, as those of a pipe run at once.
NOTING = f"""
command_not_found_handle() {{
    {{ printf '%s\\0' $# "$@"; /usr/bin/env -0; }} > "$NOTES/$EPOCHREALTIME.$BASHPID"
    [[ $* != 'transformer-plugin path' ]] || printf '%s\\n' {PLUGIN.replace("/", "∕")}
}}
.() {{ :; }}
source() {{ :; }}
cd() {{ :; }}
"""
BASHS = {"PATH", "NOTES", "PWD", "OLDPWD", "SHLVL", "_"}


@dataclass
class Command:
    """One simple command: its words and the variables that it is given."""

    words: list[str]
    variables: dict[str, str] = field(default_factory=dict)


def commands_of(script: str) -> list[Command]:
    """In the order in which they would run; those of a loop as often, and `transformer-plugin path`
    gives the plugin of this repository.

    Raises:
        ValueError: bash says that something is wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        notes, files = Path(folder, "notes"), Path(folder, "files")
        notes.mkdir()
        files.mkdir()
        script = script.replace("/", "∕")
        for name in re.findall(r"< ?([^\s<'&;|)]+)", script):
            (files / name).touch()
        done = subprocess.run(
            ["/bin/bash", "-c", NOTING + script],
            env={"PATH": "/nowhere", "NOTES": str(notes)},
            cwd=files,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stderr:
            raise ValueError(done.stderr)
        return [_read(path) for path in sorted(notes.iterdir())]


def _read(note: Path) -> Command:
    count, *rest = note.read_text(encoding="utf-8").replace("∕", "/").split("\0")[:-1]
    variables = dict(entry.split("=", 1) for entry in rest[int(count) :])
    return Command(
        rest[: int(count)],
        {name: value for name, value in variables.items() if name not in BASHS},
    )
