"""Every command in README.md and docs/ is one that its tool understands."""

import re
import shutil
import subprocess

import pytest
from command_checks import WrongCommand, check
from pages import PAGES, REPO, commands, write_files
from unrun_commands import PLUGIN, Command, commands_of

from transformer_plugin import cli

LOGS = ("experiments.md", "results.md")  # of what was run, with many commands


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """The repository's recipes, with the files that the pages tell the reader to write."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(REPO / "recipes", folder / "recipes")
    for page in PAGES:
        write_files(page, folder)
    return folder


def in_lines(page):
    """Whole commands within `...` of the text: a program and what follows it."""
    text = re.sub(r"^(```.*?^```|    .*?$)", "", page.read_text(encoding="utf-8"),
                  flags=re.MULTILINE | re.DOTALL)  # fmt: skip
    for span in re.findall(r"`([^`\n]+)`", text):
        if re.match(r"([A-Z_]+=\S+ )*(recipes/\w+\.sh|make|sbatch|transformer-plugin) ", span):
            yield span


def said_of(page):
    return commands_of("\n".join([commands(page), *in_lines(page)]))


@pytest.mark.parametrize("page", [
    pytest.param(page, marks=[pytest.mark.slow] * (page.name in LOGS), id=page.name)
    for page in PAGES
])  # fmt: skip
def test_every_command_is_understood(page, house, monkeypatch):
    monkeypatch.chdir(house)
    wrong = {}
    for command in said_of(page):
        try:
            check(command, house)
        except WrongCommand as error:
            wrong[" ".join(command.words)] = str(error)
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_a_script(page):
    done = subprocess.run(["bash", "-n"], input=commands(page), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_commands_md_has_every_subcommand_verb_and_their_variables():
    page = (REPO / "docs/commands.md").read_text(encoding="utf-8")
    for name in cli.SUBCOMMANDS:
        assert f"transformer-plugin {name}" in page, name
    verbs = [
        path
        for path in (REPO / "recipes").glob("*.sh")
        if 'begin "$@"' in path.read_text(encoding="utf-8") and path.stem != "lib"
    ]
    rows = dict(re.findall(r"^\| (\w+) \| `.*` \| `([A-Z_ ]+)` \|$", page, flags=re.MULTILINE))
    assert set(rows) == {path.stem for path in verbs} and len(rows) > 5
    readers = [*(REPO / "recipes").rglob("*.sh"), *(REPO / "data-prep").rglob("*.py")]
    read = "".join(path.read_text(encoding="utf-8") for path in readers)
    for name in " ".join(rows.values()).split():
        assert re.search(rf"\$\{{{name}[:}}\[]|\${name}\b|\"{name}\"", read), name


def test_the_pages_have_commands_of_all_kinds():
    """Or their blocks were not found."""
    found = [command.words[0] for page in PAGES for command in said_of(page) if command.words]
    for tool in (
        "fairseq-train",
        "fairseq-generate",
        "transformer-plugin",
        "recipes/run.sh",
        "recipes/translate.sh",
        "python",
        "make",
        "torchrun",
        "sbatch",
    ):
        assert tool in found, tool


@pytest.mark.parametrize(
    "text",
    [
        "fairseq-train DATA-BIN --user-dir $(transformer-plugin path) --arch vaswani_big --wrmup 4",
        "fairseq-train DATA-BIN ... --wramup 4",
        "fairseq-train DATA-BIN --user-dir $(transformer-plugin path) --arch vaswani_huge",
        "fairseq-generate DATA-BIN --path a.pt --user-dir $(transformer-plugin path) --alpha 1",
        "transformer-plugin average --newest 5 --output a.pt",
        "transformer-plugin mean --last 5",
        "recipes/run.sh no_such_experiment",
        "recipes/run.sh toy --until train",
        "recipes/train.sh toy --clip-nrom 1.0 | tee log",
        "MAX_EPOCH=many recipes/train.sh toy",
        "recipes/trane.sh toy",
        "recipes/prepare.sh toy --moose",
        "recipes/score.sh toy --every",
        "make demonstration",
        "python bench/train.py --round 3 --precision fp64",
        "python data-prep/spilt.py x --source en --target de --output y",
        "python data-prep/split.py x --source en --target de --into y",
        "python -m pytest tests/test_nothing.py",
        "torchrun --nproc-per-gpu 8 --no-python recipes/worker.sh fairseq-train DATA-BIN ...",
        "torchrun --nproc-per-node 8 --no-python recipes/worker.sh fairseq-train DATA-BIN ... --x",
        "sbatch --nodes=2 recipes/slurm.sbatch no_such_experiment",
        "transformer-plugn doctor",
    ],
)
def test_a_wrong_command_is_refused(text, house, monkeypatch):
    monkeypatch.chdir(house)
    with pytest.raises((WrongCommand, SystemExit)):
        for command in commands_of(text):
            check(command, house)


def test_commands_are_those_that_bash_would_run():
    text = """A=1 B='$c' recipes/x.sh toy --user-dir "$(transformer-plugin path)" \\
    --flag 'two words' > out/put.txt 2>&1 | tee log && make demo  # why
    cat > f/g <<'END'
    recipes/not/a/command
    END
    export C=2; for i in 1 2; do python x/y.py $i < in/put; done
    """.replace("\n    ", "\n")
    words = ["recipes/x.sh", "toy", "--user-dir", PLUGIN, "--flag", "two words"]
    found = commands_of(text)
    assert sorted(found[:3], key=str) == [
        Command(words, {"A": "1", "B": "$c"}), Command(["tee", "log"]),
        Command(["transformer-plugin", "path"]),
    ]  # fmt: skip
    assert found[3:] == [
        Command(["make", "demo"]), Command(["cat"]),
        Command(["python", "x/y.py", "1"], {"C": "2"}),
        Command(["python", "x/y.py", "2"], {"C": "2"}),
    ]  # fmt: skip
