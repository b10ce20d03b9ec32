"""Word counts of a large text, from which byte-pair encoding is learnt.

Subwords are learnt from these counts instead of sentences. The merges are the same,
because no merge crosses a space; the whole corpus is used, not a sample, and memory is limited by
the number of different words.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from steps.progress import progress
from steps.workers import line_blocks, ordered_map
from transformer_plugin.text_lines import words_of

MAX_WORDS = 4_000_000  # about 0.5 GB


def count_block(block: bytes) -> tuple[Counter[str], int]:
    """The words of a block of lines, and its bytes."""
    return Counter(words_of(block.decode("utf-8"))), len(block)


def count_words(texts: list[Path], workers: int, most: int = MAX_WORDS) -> Counter[str]:
    """The words of all texts, most frequent first, ties in the order of their code points.

    If there are more than `most`, words with a count of 1 are dropped; if more than nine tenths of
    `most` are left, those with a count of 2 too, and so on.
    """
    counts: Counter[str] = Counter()
    dropped = 0
    for text in texts:
        with progress(f"[subwords] words of {text.name}", text.stat().st_size, "bytes") as bar:
            for block, size in ordered_map(count_block, line_blocks(text), workers):
                counts.update(block)
                bar.update(size)
                if len(counts) > most:
                    before, rare = len(counts), 0
                    while len(counts) > 0.9 * most:
                        rare += 1
                        counts = Counter({word: n for word, n in counts.items() if n > rare})
                    dropped += before - len(counts)
    if dropped:
        print(f"[subwords] {dropped:,} rare words were dropped", file=sys.stderr)
    return Counter(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))
