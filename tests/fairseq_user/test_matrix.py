"""docs/fairseq.md: which of fairseq's parts work with the plugin's model, and which are refused."""

import re

import pytest
from fairseq_commands import PLUGIN, REPO, last_line, run

from transformer_plugin.combinations import _REGISTRIES as REGISTRIES
from transformer_plugin.combinations import WORKING, check_names
from transformer_plugin.refusal import Refusal

SHORT = [
    *("--user-dir", PLUGIN[1], "--arch", "vaswani_tiny", "--d-model", "32", "--d-ff", "32"),
    *("--cpu", "--lr", "0.1", "--max-tokens", "300", "--max-update", "2", "--num-workers", "0"),
    *("--disable-validation", "--no-epoch-checkpoints"),
]
PARTS = {
    "task": "vaswani_translation",
    "criterion": "vaswani_cross_entropy",
    "optimizer": "vaswani_adam",
    "lr_scheduler": "noam",
}
MONOLINGUAL = ["--mask", "0.3", "--tokens-per-sample", "16"]
MORE = {  # what a part wants beside its name
    "translation_multi_simple_epoch": ["--langs", "de,en", "--lang-pairs", "de-en"],
    "online_backtranslation": ["--mono-langs", "de,en", "--valid-lang-pairs", "de-en"],
    "denoising": MONOLINGUAL,
    "multilingual_denoising": [*MONOLINGUAL, "--langs", "de,en"],
    "polynomial_decay": ["--total-num-update", "100"],
    "tri_stage": ["--warmup-steps", "2", "--hold-steps", "2", "--decay-steps", "2"],
    "triangular": ["--max-lr", "0.2", "--lr-period-updates", "10"],
}
NEED_A_PACKAGE = ("cpu_adam", "lamb")
CHOICES = [
    (kind, name) for kind, names in WORKING.items() for name in names if name not in NEED_A_PACKAGE
]


def of_fairseq(kind):
    return {n for n, part in REGISTRIES[kind].items() if part.__module__.startswith("fairseq.")}


def named(line):
    """The names in a row of the page's table, by its first cell."""
    page = (REPO / "docs/fairseq.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {line} \| (.*) \| (.*) \|$", page, flags=re.MULTILINE)
    return [set(re.findall(r"`(\w+)`", cell)) for cell in row]


@pytest.mark.parametrize(
    "kind, row",
    [("task", "task"), ("criterion", "criterion"), ("optimizer", "optimizer"),
     ("lr_scheduler", "schedule")],
)  # fmt: skip
def test_the_page_names_all_of_fairseqs_parts(kind, row):
    works, refused = named(row)
    assert works == set(WORKING[kind])
    assert refused == of_fairseq(kind) - works


@pytest.mark.parametrize("kind", WORKING)
def test_what_does_not_work_is_refused_in_a_line(kind):
    for name in of_fairseq(kind) - set(WORKING[kind]):
        with pytest.raises(Refusal, match=f"{name} does not work with vaswani_tiny: ") as caught:
            check_names("vaswani_tiny", {kind: name})
        assert "\n" not in str(caught.value)
    for name in (*set(WORKING[kind]) - set(NEED_A_PACKAGE), PARTS[kind], "one_of_a_users_own"):
        check_names("vaswani_tiny", {kind: name})


@pytest.fixture(scope="session")
def texts(corpus, made_once):
    """Monolingual data of both languages, and the pairs, as the tasks want them."""

    def make(folder):
        words = corpus / "data/dict.en.txt"
        for path in (corpus / "data").iterdir():
            (folder / path.name).symlink_to(path)
        for language in ("de", "en"):
            run(
                *("fairseq-preprocess", "--only-source", "--srcdict", words),
                *("--trainpref", corpus / f"train.{language}", "--destdir", folder / language),
            )
            for ending in ("bin", "idx"):
                made = folder / language / f"train.{ending}"
                (folder / f"train.{language}-None.{language}.{ending}").symlink_to(made)
                (folder / f"train.{ending}").unlink(missing_ok=True)
                (folder / f"train.{ending}").symlink_to(made)
        (folder / "dict.txt").symlink_to(words)

    return made_once("fairseq_user_texts", make)


def command(data, save_dir, kind, name):
    chosen = {**PARTS, kind: name}
    options = [word for k, v in chosen.items() for word in (f"--{k.replace('_', '-')}", v)]
    return ("fairseq-train", data, *SHORT, *options, *MORE.get(name, []), "--save-dir", save_dir)


def trains(data, save_dir, kind, name):
    done = run(*command(data, save_dir, kind, name))
    assert "num_updates 2 " in done.stdout + done.stderr
    assert (save_dir / "checkpoint_last.pt").exists()


def test_one_that_works(data, tmp_path):
    trains(data, tmp_path, "optimizer", "nag")


@pytest.mark.slow
@pytest.mark.parametrize("kind, name", CHOICES)
def test_what_works(texts, data, tmp_path, kind, name):
    trains(
        data if kind != "task" or name.startswith("translation") else texts, tmp_path, kind, name
    )


def test_packages_that_are_not_installed_are_named():
    with pytest.raises(Refusal, match="lamb needs apex, which is not installed: use vaswani_adam"):
        check_names("vaswani_tiny", {"optimizer": "lamb"})


def test_the_command_refuses_in_its_last_line(data, tmp_path):
    done = run(*command(data, tmp_path, "criterion", "wav2vec"), status=1)
    assert "use vaswani_cross_entropy, or cross_entropy, " in last_line(done)
    assert "Traceback" not in done.stderr + done.stdout
