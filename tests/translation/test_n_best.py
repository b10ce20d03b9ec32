"""Several translations of a line, aligned words, prefixes and draws, from raw text."""

import dataclasses
import itertools

import pytest
from fairseq_commands import PLUGIN, run

from transformer_plugin import cli
from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.translation.alignment import mean_attention, word_links
from transformer_plugin.translation.loading import build_translator
from transformer_plugin.translation.unknown_words import read_replacements, replaced
from transformer_plugin.word_alignment import Link

TEXT = "the cat sees .\n\nthe quick dog's house (so) and the naïve cat slowly sees .\ncat\n"


@pytest.fixture(scope="module")
def experiment(prepared):
    return prepared("sentencepiece")


@pytest.fixture
def translated(tmp_path):
    """translated(run, *flags, text=...) is what the command writes, line by line."""

    def translate(run, *flags, text=TEXT):
        (tmp_path / "text").write_text(text, encoding="utf-8")
        words = [run / "data-bin", "--path", run / "checkpoints/averaged.pt", "--cpu"]
        words += ["--input", tmp_path / "text", "--output", tmp_path / "found", *flags]
        assert cli.main(["translate", *map(str, words)]) == 0
        return (tmp_path / "found").read_text(encoding="utf-8").split("\n")[:-1]

    return translate


def in_python(run, **options):
    return build_translator(run / "data-bin", run / "checkpoints/averaged.pt", cpu=True, **options)


def test_options_in_python_may_be_text(experiment):
    given = {"beam": "2", "subwords": str(experiment / "subwords"), "decode_precision": "bf16"}
    (translation,) = in_python(experiment, **given).translate(["the cat sees ."])
    assert translation.text


def test_n_best_lists_are_fairseq_generates(experiment, translated):
    text = (experiment / "raw/test.en").read_text(encoding="utf-8")
    found = [line.split(" ||| ") for line in translated(experiment, "--nbest", "3", text=text)]
    log = run(
        *("fairseq-generate", experiment / "data-bin", "--cpu", *PLUGIN, "--nbest", "3"),
        *("--path", experiment / "checkpoints/averaged.pt", "--remove-bpe", "sentencepiece"),
    ).stdout
    expected = [line[2:].split("\t") for line in log.splitlines() if line[:2] == "D-"]
    expected.sort(key=lambda fields: int(fields[0]))  # stable: best first
    assert len(found) == 3 * len(text.splitlines()) == len(expected)
    for (line, translation, score), (number, in_base_2, other) in zip(found, expected, strict=True):
        assert (line, translation) == (number, other)
        assert float(score) == pytest.approx(float(in_base_2) * 0.693147, abs=2e-4)
    best = [translation for _, translation, _ in found][::3]
    assert best == translated(experiment, text=text)


def test_words_are_aligned(run_folder, translated):
    """By the largest weights over a word-by-word count of the subwords."""
    moses = "moses" in run_folder.parent.name
    translator = in_python(run_folder, print_alignment=True)
    printed = translated(run_folder, "--print-alignment")
    for number, line in enumerate(TEXT.splitlines()):
        if not line:
            assert printed[number] == " ||| "
            continue
        (found,) = translator.translate([line])
        (part,) = found.parts
        weights = mean_attention(translator.models[0], part)[-1]  # [T, S]
        numbers = []
        for pieces in (part.source, part.target):
            starts = [
                i == 0 or not pieces[i - 1].endswith("@@") if moses else piece.startswith("▁")
                for i, piece in enumerate(pieces)
            ]
            numbers.append([sum(starts[: i + 1]) - 1 for i in range(len(pieces))])
        expected = {
            (numbers[0][int(row[:-1].argmax())], word)
            for row, word in zip(weights[:-1], numbers[1], strict=True)
        }
        links = word_links(found, translator.subwords, translator.target_subwords)
        assert set(links) == expected and expected
        pairs = " ".join(f"{s}-{t}" for s, t in sorted(expected, key=lambda pair: pair[::-1]))
        assert printed[number] == f"{found.text} ||| {pairs}"


def test_words_of_a_line_in_parts_are_counted_through(experiment):
    translator = in_python(experiment, print_alignment=True, part_length=6, beam=1)
    (found,) = translator.translate(["the cat sees the cat . the cat slowly ."])
    assert len(found.parts) > 2
    links = word_links(found, translator.subwords, translator.target_subwords)
    last = max(source for source, _ in links), max(target for _, target in links)
    assert last[0] > 6 and last[1] <= len(found.text.split()) - 1


def test_a_line_in_parts_has_the_best_sums(experiment):
    translator = in_python(experiment, part_length=5, beam=4, nbest=4)
    text = "the cat sees . the dog's house ."
    parts = translator.read(text)
    assert len(parts) > 1
    ranked = [
        [translator.part(*part, hypothesis).score for hypothesis in beam]
        for part, beam in zip(parts, translator.search([ids for _, ids in parts]), strict=True)
    ]
    expected = sorted(map(sum, itertools.product(*ranked)), reverse=True)[:4]
    (found,) = translator.n_best([text], 4)
    assert [each.score for each in found] == pytest.approx(expected, abs=1e-5)
    assert len({each.text for each in found}) == 4


def test_draws(experiment, translated):
    best = translated(experiment, "--beam", "1")
    assert translated(experiment, "--sampling", "--sampling-topk", "1") == best
    drawn = translated(experiment, "--sampling", "--nbest", "5", "--temperature", "2")
    assert len(drawn) == 5 * 3 + 1  # the empty line has one
    assert len({line.split(" ||| ")[1] for line in drawn}) > 8
    again = translated(experiment, "--sampling", "--nbest", "5", "--temperature", "2")
    assert again == drawn


def test_another_seed_draws_other_translations(experiment, translated):
    flags = ("--sampling", "--nbest", "5", "--temperature", "2")
    one, other = (translated(experiment, *flags, "--seed", seed) for seed in "12")
    assert one != other


def test_draws_have_no_begin_of_sentence(run_folder, translated):
    """It is one of 80 tokens, and nearly as likely as each other."""
    drawn = translated(run_folder, "--sampling", "--nbest", "20", "--temperature", "50")
    assert len(set(drawn)) > 30 and not any("<s>" in line for line in drawn)


def test_a_translation_begins_as_it_must(experiment, translated):
    text = "the cat sees .\tschnelle Hündin\nthe cat sees .\t\nthe cat sees .\ncat\t☃\n"
    found = translated(experiment, "--prefix", text=text)
    assert found[0].startswith("schnelle Hündin")
    assert found[1] == found[2] == translated(experiment, text="the cat sees .\n")[0]
    assert found[3].startswith("☃") and len(found[0]) > len("schnelle Hündin")
    long = " ".join(["schnelle"] * 70)
    (line,) = translated(experiment, "--prefix", text=f"cat\t{long}\n")
    assert line.startswith(long)


def test_a_beginning_that_is_too_long_is_refused(experiment, tmp_path, monkeypatch, capsys):
    """It was cut."""
    monkeypatch.setattr(VaswaniTransformer, "max_decoder_positions", lambda self: 21)
    translator = in_python(experiment)
    (given,) = translator.translate(["cat"], prefixes=["und und und"])
    assert given.text.startswith("und und und")
    long = " ".join(["und"] * 30)
    with pytest.raises(ValueError, match=r"sentence 1: the prefix has .* at most 20: short"):
        translator.n_best(["cat", "cat"], 2, ["", long])
    text = tmp_path / "text"
    text.write_text(f"cat\ncat\tund\ncat\t{long}\n", encoding="utf-8")
    words = ["translate", experiment, "--input", text, "--prefix", "--buffer", "2", "--cpu"]
    assert cli.main([*map(str, words)]) == 2
    assert f"{text}:3: the prefix has" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prefixes", "error", "message"),
    [
        ("ab", TypeError, "expected a list of sentences"),
        (["Ist", None], TypeError, "sentence 1: expected text, not None"),
        (["\ud800", ""], ValueError, "sentence 0 holds half of a surrogate pair"),
    ],
)
def test_beginnings_are_checked_as_sentences_are(experiment, prefixes, error, message):
    with pytest.raises(error, match=message):
        in_python(experiment).translate(["cat", "cat"], prefixes=prefixes)


def test_unknown_words_are_replaced(experiment, tmp_path):
    """By a search that prefers unknown words to all others."""
    (tmp_path / "words").write_text("▁cat Katze\n", encoding="utf-8")
    for file in ("", str(tmp_path / "words")):
        translator = in_python(experiment, replace_unk=file)
        rules = dataclasses.replace(translator.generator.rules, unknown_penalty=-50)
        translator.generator.rules = rules
        (found,) = translator.translate(["cat ☃ cat"])
        (part,) = found.parts
        expected = [part.source[link.source] for link in part.links]
        assert part.target == ["Katze" if file and x == "▁cat" else x for x in expected]
        assert len(part.target) > 3 and "<unk>" not in found.text


def test_a_file_of_replacements_is_optional_in_python_too(experiment):
    assert in_python(experiment, replace_unk=True).replacements == {}
    assert in_python(experiment, replace_unk=False).replacements is None


def test_words_that_are_known_stay():
    links = [Link(0, 0), Link(1, 1), Link(0, 2)]
    target = replaced(["Hund", "?", "?"], ["▁cat", "▁dog"], links, "?", {"▁cat": "Katze"})
    assert target == ["Hund", "▁dog", "Katze"]


def test_replacements_are_read_as_every_text_is(tmp_path):
    words = tmp_path / "words"
    words.write_bytes("a\u2028b\tc\u0085d\r\n▁cat  Katze\n".encode())
    assert read_replacements(str(words)) == {"a\u2028b": "c\u0085d", "▁cat": "Katze"}
    words.write_text("cat Katze\nhouse\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"words, line 2: expected a source word and its transl"):
        read_replacements(str(words))
    words.write_bytes(b"cat Katze\nhouse H\xe4user\n")
    with pytest.raises(ValueError, match=r"words:2: not UTF-8 at byte 8"):
        read_replacements(str(words))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"nbest": 5}, "--nbest must be at most --beam, 4"),
        ({"nbest": 0}, "--nbest 0: expected at least 1"),
        ({"temperature": 0}, "--temperature 0: expected a number greater than 0"),
        ({"sampling_topk": 5}, "--sampling-topp need --sampling"),
        ({"sampling": True, "sampling_topp": 1.5}, r"and --sampling-topp in \(0, 1\]"),
        ({"sampling": True, "sampling_topk": 0}, "--sampling-topk must be at least 1"),
        ({"seed": 2}, "call torch.manual_seed"),
        ({"prefix": True}, "give prefixes to translate or n_best"),
        ({"beams": 5}, "there is no option 'beams': expected one of data, path"),
        ({"lm_path": "/nowhere"}, "/nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(experiment, options, message):
    with pytest.raises((ValueError, OSError), match=message):
        in_python(experiment, **options)


def test_no_translation_at_all_is_refused(experiment):
    with pytest.raises(ValueError, match="0 translations of each sentence: expected at least 1"):
        in_python(experiment).n_best(["cat"], 0)
