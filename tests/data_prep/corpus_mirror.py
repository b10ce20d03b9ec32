"""A mirror of the public corpora in small: archives of the true names and layout."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

Lines = list[str]
EUROPARL = "wmt13/training-parallel-europarl-v7.tgz"
COMMON_CRAWL = "wmt13/training-parallel-commoncrawl.tgz"
UN = "wmt13/training-parallel-un.tgz"
NEWS_9 = "wmt14/training-parallel-nc-v9.tgz"
NEWS_11 = "wmt16/translation-task/training-parallel-nc-v11.tgz"
GIGA = "wmt10/training-giga-fren.tar"
DEV, TEST = "wmt14/dev.tgz", "wmt14/test-full.tgz"
TALKS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")


def made_up(key: str, count: int) -> tuple[Lines, Lines]:
    """Sentences that say where they come from; with what SGML escapes."""
    return (
        [f"{key} sentence {n} of A & B < C ä" for n in range(count)],
        [f"{key} Satz {n} von A & B < C ö" for n in range(count)],
    )


TEXTS = {  # for write_wmt
    key: made_up(key, count)
    for key, count in (
        ("europarl", 7),
        ("commoncrawl", 6),
        ("news", 5),
        ("un", 4),
        ("giga", 3),
        ("valid", 4),
        ("test", 5),
    )
}


def text(lines: Lines) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def escaped(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;")


def sgml(lines: Lines, kind: str) -> bytes:
    """NIST's format, two documents; a segment's text may begin on the next line."""
    half = len(lines) // 2
    documents = []
    for name, part in (("a", lines[:half]), ("b", lines[half:])):
        segments = "".join(
            f'<seg id="{n}">{" " if n % 2 else chr(10)}{escaped(line)}</seg>\n'
            for n, line in enumerate(part, start=1)
        )
        documents.append(f'<doc docid="{name}" genre="news">\n<p>\n{segments}</p>\n</doc>\n')
    return f'<{kind}set setid="small" srclang="any">\n{"".join(documents)}</{kind}set>\n'.encode()


def talks(lines: Lines) -> bytes:
    """IWSLT's training text: lines in tags about a talk, then its sentences."""
    title, description, *rest = lines
    return text(
        [
            "<url>http://www.ted.com/talks/lang/any</url>",
            "<keywords>talks, any</keywords>",
            "<talkid>1</talkid>",
            f"<title>{title}</title>",
            f"<description>{description}</description>",
            *(f" {line} " for line in rest),
        ]
    )


def write_archive(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def write_checksums(mirror: Path) -> None:
    """The mirror's SHA256SUMS, by which it says that its files are not the public ones."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  ./{path.relative_to(mirror)}\n"
        for path in sorted(mirror.rglob("*.t*"))
        if path.is_file()
    ]
    (mirror / "SHA256SUMS").write_text("".join(lines))


def write_wmt(mirror: Path, other: str, texts: dict[str, tuple[Lines, Lines]]) -> None:
    """The archives of WMT14 English-`other` (de, fr) from {archive or split: (English, other)}.

    `texts` has europarl, commoncrawl, news, valid, test; for fr also un and giga.
    """
    pair, compact = f"{other}-en", f"{other}en"

    def sides(key: str, prefix: str) -> dict[str, bytes]:
        return {
            f"{prefix}.{language}": text(lines)
            for language, lines in zip(("en", other), texts[key], strict=True)
        }

    write_archive(
        mirror / EUROPARL,
        sides("europarl", f"training/europarl-v7.{pair}")
        | {"training/europarl-v7.cs-en.cs": b"ano\n"},
    )
    write_archive(
        mirror / COMMON_CRAWL,
        sides("commoncrawl", f"commoncrawl.{pair}") | {f"commoncrawl.{pair}.annotation": b"none\n"},
    )
    write_archive(mirror / NEWS_9, sides("news", f"training/news-commentary-v9.{pair}"))
    write_archive(mirror / DEV, sides("valid", "dev/newstest2013"))
    english, others = texts["test"]
    write_archive(
        mirror / TEST,
        {
            f"test-full/newstest2014-{compact}-{role}.{language}.sgm": sgml(lines, role)
            for role in ("src", "ref")
            for language, lines in (("en", english), (other, others))
        },
    )
    if other == "de":
        prefix = "training-parallel-nc-v11/news-commentary-v11.de-en"
        write_archive(mirror / NEWS_11, sides("news", prefix))
    else:
        write_archive(mirror / UN, sides("un", "un/undoc.2000.fr-en"))
        giga = sides("giga", "giga-fren.release2.fixed")
        write_archive(
            mirror / GIGA, {f"{name}.gz": gzip.compress(data) for name, data in giga.items()}
        )
    write_checksums(mirror)


def write_iwslt(mirror: Path, train: tuple[Lines, Lines], test: tuple[Lines, Lines]) -> None:
    """IWSLT14 German-English; the five test sets share `test` (German, English) out."""
    members = {}
    for language, lines, test_lines in zip(("de", "en"), train, test, strict=True):
        members[f"de-en/train.tags.de-en.{language}"] = talks(lines)
        for number, name in enumerate(TALKS):
            part = test_lines[number * len(test_lines) // 5 : (number + 1) * len(test_lines) // 5]
            members[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = sgml(part, "ref")
    write_archive(mirror / "iwslt14_de_en/de-en.tgz", members)
    write_checksums(mirror)
