"""Corpus manifests: the files of a corpus, their addresses and their checksums.

A manifest is corpora/NAME.json, with

    addresses      folders on the web that hold the files, in the order to try
    mirror_folder  the folder of this corpus below DATA_MIRROR
    languages      the languages of the corpus
    splits         train, valid, test: the parts of which it consists, FILE or
                   ARCHIVE!MEMBER, where {language} is that of a side and {role} is "src" or "ref";
                   or {"every": N}: every Nth training pair is held out after cleaning
    variants       name: further parts of train; the first is the default (optional)
    pairs          split: number of pairs in the public corpus, if known (optional)
    files          name: {size, sha256 or md5}, if known
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps.errors import BadInput
from text.parallel import SPLITS

CORPORA = Path(__file__).resolve().parents[1] / "corpora"


@dataclass(frozen=True)
class Part:
    """One side of one part of a split: a file, or a member of an archive."""

    file: str
    member: str | None

    @property
    def name(self) -> str:
        """FILE or ARCHIVE!MEMBER."""
        return f"{self.file}!{self.member}" if self.member else self.file


def read_manifest(corpus: str) -> dict[str, Any]:
    """The manifest of a corpus in corpora/, or at a path that ends in .json."""
    path = Path(corpus) if corpus.endswith(".json") else CORPORA / f"{corpus}.json"
    if not path.is_file():
        known = ", ".join(["toy", *sorted(found.stem for found in CORPORA.glob("*.json"))])
        raise BadInput(
            f"there is no corpus '{corpus}' ({path} is missing); known: {known}; files "
            "of your own are given by --train, --valid and --test (TRAIN, VALID and "
            "TEST of an experiment)"
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in ("addresses", "mirror_folder", "languages", "files"):
            manifest[key]
        given = [manifest["splits"][split] for split in SPLITS]
        given += manifest.get("variants", {}).values()
        for pattern in (each for patterns in given for each in patterns_of(patterns)):
            pattern.format(language="", role="")
        manifest["files"].items()
        held_out(manifest)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path} is not a manifest: {error!r}; see corpora/multi30k.json") from None
    return manifest


def patterns_of(given: Any) -> list[str]:
    """The patterns of a split, which may be one or several; none if it is held out of train."""
    if isinstance(given, dict):
        return []
    return [given] if isinstance(given, str) else list(given)


def held_out(manifest: dict[str, Any]) -> int | None:
    """N if every Nth training pair is the validation set, else None."""
    valid = manifest["splits"]["valid"]
    if not isinstance(valid, dict):
        return None
    if not isinstance(every := valid["every"], int) or every < 2:
        raise ValueError(f"every is {every!r}: expected 2 or more")
    return every


def parts(
    manifest: dict[str, Any], source: str, target: str, variant: str
) -> dict[str, list[tuple[Part, Part]]]:
    """{split: its parts in order, each as (source side, target side)}; no valid if held out.

    Args:
        variant: variant of the corpus; "" is its first.

    BadInput if the corpus does not have the language or variant, or the manifest does not list a
    file.
    """
    for language in (source, target):
        if language not in manifest["languages"]:
            known = ", ".join(manifest["languages"])
            raise BadInput(f"the corpus has no '{language}', only {known}")
    variants = manifest.get("variants", {})
    if variant and variant not in variants:
        known = ", ".join(variants) or "none"
        raise BadInput(f"the corpus has no variant '{variant}'; it has: {known}")
    more = patterns_of(variants.get(variant or next(iter(variants), ""), []))

    found: dict[str, list[tuple[Part, Part]]] = {}
    for split in SPLITS:
        if split == "valid" and held_out(manifest):
            continue
        patterns = patterns_of(manifest["splits"][split])
        if split == "train":
            patterns += more
        found[split] = []
        for pattern in patterns:
            sides = []
            for language, role in ((source, "src"), (target, "ref")):
                file, _, member = pattern.format(language=language, role=role).partition("!")
                if file not in manifest["files"]:
                    raise BadInput(f"the manifest does not list {file} under files")
                sides.append(Part(file, member or None))
            found[split].append((sides[0], sides[1]))
    return found
