"""fairseq-generate and fairseq-interactive with what the plugin's own search can do."""

import re

import pytest
from fairseq_commands import PLUGIN, generate, last_line, run, train

from transformer_plugin.refusal import Refusal
from transformer_plugin.search_extras import check_before_loading

RAW = ("--dataset-impl", "raw")
FUSED = ("--lm-weight", "0.5", "--nbest", "2", "--print-alignment")


@pytest.fixture(scope="module")
def language_model(corpus, made_once):
    """Of the target language, with the data's dictionary."""

    def make(folder):
        run(
            *("fairseq-preprocess", "--only-source", "--srcdict", corpus / "data/dict.en.txt"),
            *("--trainpref", corpus / "train.en", "--destdir", folder / "data"),
        )
        run(
            *("fairseq-train", folder / "data", "--user-dir", PLUGIN[1], "--cpu"),
            *("--task", "language_modeling", "--sample-break-mode", "eos"),
            *("--tokens-per-sample", "16", "--arch", "transformer_lm", "--decoder-layers", "1"),
            *("--decoder-embed-dim", "32", "--decoder-ffn-embed-dim", "32"),
            *("--decoder-attention-heads", "2", "--optimizer", "adam", "--lr", "0.01"),
            *("--max-tokens", "300", "--max-update", "20", "--num-workers", "0"),
            *("--save-dir", folder, "--disable-validation", "--no-epoch-checkpoints"),
        )

    return made_once("fairseq_user_lm", make) / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def data_with_words(corpus, tmp_path_factory):
    """The data with the dictionary where fairseq-generate looks for a language model's."""
    folder = tmp_path_factory.mktemp("data_with_words")
    for path in (corpus / "data").iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "dict.txt").symlink_to(corpus / "data/dict.en.txt")
    return folder


def interactive(data, checkpoint, corpus, *extra, status=0):
    return run(
        *("fairseq-interactive", data, *PLUGIN, "--path", checkpoint, "--cpu"),
        *("--input", corpus / "test.de", *extra),
        status=status,
    )


def translations(done):
    """Hypotheses and alignments of each sentence, in their order, scores to 4 digits."""
    assert "own search is used" not in done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line[:2] in ("H-", "A-")]
    lines = [re.sub(r"\t(-\d+\.\d{3})\d+\t", r"\t\1\t", line) for line in lines]
    return sorted(lines, key=lambda line: int(line[2:].partition("\t")[0]))


@pytest.mark.slow
def test_fusion_in_both_commands(language_model, data_with_words, checkpoint, corpus):
    lm = ("--lm-path", language_model, *FUSED)
    fused = translations(generate(data_with_words, checkpoint, *lm))
    assert len(fused) == 30 * 4 and all(line[0] == "HA"[i % 2] for i, line in enumerate(fused))
    assert fused == translations(interactive(corpus / "data", checkpoint, corpus, *lm))
    plain = translations(generate(corpus / "data", checkpoint, *FUSED))
    assert len(plain) == 30 * 4 and plain != fused


@pytest.mark.slow
def test_fusion_in_fairseqs_search(language_model, data_with_words, checkpoint, corpus):
    found = []
    for words in ([], ["--lm-path", language_model, "--lm-weight", "0.5"]):
        words = ("--no-repeat-ngram-size", "2", *words)
        done = generate(data_with_words, checkpoint, *words)
        found.append(sorted(line for line in done.stdout.splitlines() if line[:2] == "H-"))
        again = interactive(corpus / "data", checkpoint, corpus, *words).stdout.splitlines()
        texts = sorted(line.split("\t")[::2] for line in again if line[:2] == "H-")
        assert texts == [line.split("\t")[::2] for line in found[-1]]
    assert found[0] != found[1]


def test_alignments_in_both_commands(checkpoint, corpus):
    words = ("--nbest", "2", "--print-alignment")
    found = translations(generate(corpus / "data", checkpoint, *words))
    assert len(found) == 30 * 4 and found[1].startswith("A-0\t")
    assert found == translations(interactive(corpus / "data", checkpoint, corpus, *words))


def test_what_a_command_would_not_find(tmp_path):
    folder = str(tmp_path)
    with pytest.raises(Refusal, match=f"cp {folder}/dict.en.txt {folder}/dict.txt"):
        check_before_loading({"lm_path": "lm.pt"}, folder, "en")
    with pytest.raises(Refusal, match="--replace-unk needs a file of words"):
        check_before_loading({"replace_unk": "@@ "}, folder, "en")


@pytest.mark.parametrize(
    "words, message",
    [
        (["--print-alignment", "soft"], "fairseq-interactive prints only hard alignments"),
        (["--only-trees"], "--only-trees: the target language has no tokens X and /X"),
        pytest.param(
            ["--only-trees", "--match-source-len"],
            "--only-trees: fairseq's search, needed for match_source_len, has no trees",
            marks=pytest.mark.slow,
        ),
        (
            ["--replace-unk", "", "--no-repeat-ngram-size", "2"],
            "--replace-unk: fairseq's search, needed for no_repeat_ngram_size, does not align",
        ),
        pytest.param(
            ["--constraints", "--print-alignment"],
            "--print-alignment: fairseq's search, needed for constraints, cannot align",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--prefix-size", "2"],
            "use transformer-plugin translate --prefix",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--lm-path", "CHECKPOINT"],
            "expected a model of --task language_modeling",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--lm-path", "CHECKPOINT", "--no-repeat-ngram-size", "2"],  # by fairseq's search
            "expected a model of --task language_modeling",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_a_command_cannot_do(checkpoint, corpus, data, words, message):
    given = [str(checkpoint) if word == "CHECKPOINT" else word for word in words]
    done = interactive(data, checkpoint, corpus, *given, status=1)
    assert message in last_line(done)


@pytest.mark.slow
def test_draws_are_the_plugins(checkpoint, data):
    words = ("--sampling", "--beam", "3", "--nbest", "3")
    drawn = translations(generate(data, checkpoint, *words, "--seed", "3"))
    assert len(drawn) == 90
    assert drawn == translations(generate(data, checkpoint, *words, "--seed", "3"))


@pytest.mark.slow
def test_unknown_words_are_replaced(corpus, checkpoint, tmp_path):
    run(
        *("fairseq-preprocess", "-s", "de", "-t", "en", "--testpref", corpus / "test", *RAW),
        *("--srcdict", corpus / "data/dict.de.txt", "--tgtdict", corpus / "data/dict.en.txt"),
        *("--destdir", tmp_path),
    )
    words = (*RAW, "--unkpen", "-50", "--print-alignment", "--replace-unk", "")
    done = run(*("fairseq-generate", tmp_path, *PLUGIN, "--path", checkpoint, "--cpu", *words))
    kinds = {kind: {} for kind in "SHA"}
    for line in done.stdout.splitlines():
        if line[:1] in kinds and line[1:2] == "-":
            number, text = line[2:].split("\t")[0], line.split("\t")[-1]
            kinds[line[0]][number] = text.split()
    assert len(kinds["H"]) == 30
    for number, target in kinds["H"].items():
        source = kinds["S"][number]
        pairs = [pair.split("-") for pair in kinds["A"][number]]
        assert target == [source[int(place)] for place, _ in pairs]
    joined = generate(tmp_path, checkpoint, *words, status=1)
    assert "use transformer-plugin translate --replace-unk" in last_line(joined)


def test_batches_in_buckets_are_refused(data, tmp_path):
    assert "--num-batch-buckets" in last_line(
        train(data, tmp_path, "--num-batch-buckets", "3", status=1)
    )
