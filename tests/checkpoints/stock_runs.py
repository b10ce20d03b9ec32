"""One update of fairseq-train on random words for each of four models: FOLDER/NAME.pt and data."""

import random
import sys
from pathlib import Path

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import preprocess, train

import transformer_plugin  # noqa: F401

WIDTHS = ["--encoder-embed-dim", "16", "--decoder-embed-dim", "16"]
ADAM = ["--optimizer", "adam", "--lr", "0.001", "--task", "translation"]
MODELS = {
    "transformer": [
        *("--arch", "transformer_iwslt_de_en", *WIDTHS, *ADAM, "--share-all-embeddings"),
        *("--encoder-ffn-embed-dim", "32", "--decoder-ffn-embed-dim", "32"),
        *("--encoder-layers", "1", "--decoder-layers", "1"),
    ],
    "fconv": [
        *("--arch", "fconv_iwslt_de_en", *WIDTHS, "--decoder-out-embed-dim", "16"),
        *("--encoder-layers", "[(16, 3)] * 2 + [(8, 3)]", "--decoder-layers", "[(16, 3)] * 2"),
        *("--optimizer", "nag", "--lr", "0.25", "--task", "translation"),
    ],
    "lstm": [
        *("--arch", "lstm_luong_wmt_en_de", *WIDTHS, *ADAM, "--decoder-out-embed-dim", "16"),
        *("--encoder-hidden-size", "16", "--decoder-hidden-size", "16"),
        *("--encoder-layers", "1", "--decoder-layers", "1"),
    ],
    "plugin": [
        *("--arch", "vaswani_tiny", "--task", "vaswani_translation", "--d-model", "16"),
        *("--optimizer", "vaswani_adam", "--lr-scheduler", "noam", "--lr", "1"),
    ],
}


def main(folder: Path) -> None:
    """Writes everything below ``folder``."""
    words = random.Random(1)
    for split, lines in (("train", 100), ("valid", 10), ("test", 3)):
        for language in ("de", "en"):
            sentences = (
                " ".join(f"w{words.randrange(30)}" for _ in range(words.randrange(3, 8)))
                for _ in range(lines)
            )
            (folder / f"{split}.{language}").write_text("\n".join(sentences) + "\n")
    prefixes = [f"--{name}pref={folder}/{name}" for name in ("train", "valid", "test")]
    wanted = ["-s", "de", "-t", "en", "--joined-dictionary", f"--destdir={folder}/data", *prefixes]
    preprocess.main(options.get_preprocessing_parser().parse_args(wanted))
    for name, flags in MODELS.items():
        arguments = [
            *(f"{folder}/data", "--cpu", "--max-update", "1", "--max-tokens", "100"),
            *("--save-dir", f"{folder}/{name}", "--disable-validation", "--num-workers", "0"),
            *("--no-epoch-checkpoints", *flags),
        ]
        given = options.parse_args_and_arch(options.get_training_parser(), arguments)
        train.main(convert_namespace_to_omegaconf(given))
        (folder / name / "checkpoint_last.pt").rename(folder / f"{name}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
