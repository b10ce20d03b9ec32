"""How often each word of a large text occurs: all that byte-pair encoding learns from.

Both kinds of subwords are learnt from these counts instead of from the sentences, which gives the
same merges: no merge crosses a space. So the whole corpus counts, not a sample of it, and memory is
bounded by the number of different words.

The names of special symbols are counted in two parts, "<" and "/s>": so no piece can be taken for
such a symbol by fairseq, nor does sentencepiece leave their letters out, as it does otherwise.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from parallel_blocks import in_order, line_blocks
from progress import Progress

MOST_WORDS = 4_000_000  # in memory, about 0.5 GB
# Of fairseq and sentencepiece; with U+2585, for which sentencepiece leaves out the whole word.
SPECIAL = re.compile("<(?=/?s>|unk>|pad>)|\u2585")


def count_block(block: bytes) -> tuple[Counter[str], int]:
    """The words of a block of lines, and its bytes."""
    return Counter(SPECIAL.sub(r" \g<0> ", block.decode("utf-8")).split()), len(block)


def count_words(texts: list[Path], workers: int, most: int = MOST_WORDS) -> Counter[str]:
    """The words of all texts, most frequent first, ties in the order of their code points.

    Whenever there are more than `most`, those that came once so far are forgotten.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        progress = Progress(f"[subwords] words of {text.name}", text.stat().st_size, "bytes")
        for block, size in in_order(count_block, line_blocks(text), workers):
            counts.update(block)
            progress.add(size)
            if len(counts) > most:
                before = len(counts)
                counts = Counter({word: count for word, count in counts.items() if count > 1})
                print(f"[subwords] {before:,} words: {before - len(counts):,} that came once are "
                      "forgotten", file=sys.stderr)
    return Counter(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))
