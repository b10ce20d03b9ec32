"""docs/troubleshooting.md: each message that it explains is one that the code prints."""

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path

import fairseq
import pytest
import torch
from pages import REPO

PAGE = (REPO / "docs/troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^### `(.+)`$", PAGE, flags=re.MULTILINE)
OTHERS = [  # where messages that are not ours come from
    Path(dataclasses.__file__),
    Path(torch.serialization.__file__),
    Path(torch.nn.modules.module.__file__),
    *(
        Path(fairseq.__file__).parent / name
        for name in ("trainer.py", "checkpoint_utils.py", "tasks/fairseq_task.py")
    ),
]


@cache
def printed():
    """Every text of the code, with "..." for what is put in."""
    texts = [path.read_text(encoding="utf-8")
             for path in (*(REPO / "recipes").glob("*.sh"), REPO / "Makefile")]  # fmt: skip
    texts = [re.sub(r"\$\(\w+\)|\$\{?\w+\}?", "...", text) for text in texts]
    ours = [*(REPO / "transformer_plugin").rglob("*.py"), *(REPO / "data-prep").rglob("*.py")]
    for path in ours + OTHERS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(
                part.value if isinstance(part, ast.Constant) else "..."
                for part in parts
                if not isinstance(part, ast.Constant) or isinstance(part.value, str)
            )
            if isinstance(node, (ast.JoinedStr, ast.Constant)) and len(text) > 8:
                texts.append(re.sub(r"%\w|\{[^}]*\}", "...", text))
    return texts


def is_printed(message):
    pattern = ".*".join(map(re.escape, message.split("...")))
    return any(re.search(pattern, text) for text in printed())


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_is_in_the_code(message):
    assert is_printed(message)


def test_messages_were_found_and_others_are_not():
    assert len(MESSAGES) > 20
    assert not is_printed("...: not a whole checkpiont (...)")
    assert not is_printed("no pair of ... is right after cleaning")


def test_every_remedy_by_an_option_exists():
    """Options that the text names are ones that our code or fairseq knows."""
    code = "".join(path.read_text(encoding="utf-8") for path in
                   [*(REPO / "transformer_plugin").rglob("*.py"), *(REPO / "recipes").glob("*.sh"),
                    *(REPO / "data-prep").rglob("*.py")])  # fmt: skip
    configs = (Path(fairseq.__file__).parent / "dataclass/configs.py").read_text()
    configs += (Path(fairseq.__file__).parent / "options.py").read_text()
    for name in set(re.findall(r"(?<![\w-])--([a-z][\w-]+)", PAGE)) - {"no-build-isolation"}:
        field = name.replace("-", "_")
        known = f"--{name}" in code or re.search(rf"\b{field}: ", code + configs)
        assert known or f"--{name}" in configs, name
