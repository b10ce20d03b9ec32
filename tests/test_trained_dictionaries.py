"""A model is used only with the dictionaries that it was trained with, whatever uses it."""

import shutil

import pytest
from fairseq_commands import generate, last_line, run, train

MESSAGE = "the model was trained with another dictionary than {}/dict.en.txt"


@pytest.fixture(scope="module")
def other_data(toy, tmp_path_factory):
    """Data with dictionaries of the same size, two of whose words changed places."""
    folder = tmp_path_factory.mktemp("other") / "data-bin"
    shutil.copytree(toy / "data-bin", folder)
    (folder / "SHA256SUMS").unlink()
    for file in folder.glob("dict.*.txt"):
        first, second, *rest = file.read_text().splitlines(keepends=True)
        file.write_text("".join([second, first, *rest]))
    return folder


def test_training_is_not_continued(toy, other_data, tmp_path):
    train(toy / "data-bin", tmp_path, "--max-update", 1)
    done = train(other_data, tmp_path, status=1)
    expected = f"{tmp_path}/checkpoint_last.pt: {MESSAGE.format(other_data)}"
    assert last_line(done).startswith(expected)


@pytest.mark.parametrize("converted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_is_translated(toy, other_data, tmp_path, converted):
    model = toy / "checkpoints/averaged.pt"
    if converted:
        command = ("transformer-plugin", "convert")
        run(*command, model, tmp_path / "stock.pt", "--to", "stock")
        run(*command, tmp_path / "stock.pt", tmp_path / "own.pt", "--to", "plugin")
        model = tmp_path / "own.pt"
    generate(toy / "data-bin", model, "--gen-subset", "valid")
    done = generate(other_data, model, status=1)
    assert MESSAGE.format(other_data) in last_line(done)


@pytest.mark.parametrize(
    "command",
    [
        ("translate", "{data}", "--path", "{model}", "--subwords", "{subwords}"),
        ("doctor", "--data", "{data}", "--path", "{model}"),
        ("export", "{model}", "{out}", "--data", "{data}", "--to", "ctranslate2"),
    ],
)
def test_the_commands_refuse_it(toy, other_data, tmp_path, command):
    named = {"data": other_data, "model": toy / "checkpoints/averaged.pt"}
    named |= {"subwords": toy / "subwords", "out": tmp_path / "out"}
    words = [word.format_map(named) for word in command]
    done = run("transformer-plugin", *words, status=1, input="a\n")
    assert MESSAGE.format(other_data) in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "damage", [b"the 5\nthe cat\n", b"the 5\nthe 4\n", b"\xff\xfe\x00 5\n"],
    ids=["no count", "twice", "no text"],
)  # fmt: skip
def test_damaged_ones_are_named(toy, tmp_path, damage):
    data = tmp_path / "data-bin"
    shutil.copytree(toy / "data-bin", data)
    (data / "SHA256SUMS").unlink()
    (data / "dict.de.txt").write_bytes(damage)
    model = toy / "checkpoints/averaged.pt"
    message = f"{data}/dict.de.txt: not a dictionary of fairseq ("
    assert last_line(generate(data, model, status=1)).startswith(message)
    export = ("export", model, tmp_path / "out", "--data", data, "--to", "ctranslate2")
    translate = ("translate", data, "--path", model, "--subwords", toy / "subwords", "--cpu")
    for words in (export, translate):
        done = run("transformer-plugin", *words, status=2, input="a\n")
        (line,) = done.stderr.splitlines()
        assert message in line
