"""The command: one subcommand is imported, and wrong use is one line and status 2."""

import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from fairseq_commands import BIN

from transformer_plugin import cli


@pytest.mark.parametrize("name", cli.SUBCOMMANDS)
def test_every_subcommand_has_help(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([name, "--help"])
    assert stopped.value.code == 0
    assert f"transformer-plugin {name}" in capsys.readouterr().out


def test_only_the_chosen_tool_is_imported():
    code = (
        "import sys; from transformer_plugin import cli; before = set(sys.modules);"
        " cli.main(['path']); print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "transformer_plugin.location" in done.stdout.splitlines()[-1]
    tools = {module for module, _help in cli.SUBCOMMANDS.values()} - {"transformer_plugin.location"}
    assert not tools & set(done.stdout.split())


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["average"]])
def test_wrong_command_lines_show_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert "usage: transformer-plugin" in capsys.readouterr().err


def test_a_misspelt_command_is_recognised(capsys):
    with pytest.raises(SystemExit):
        cli.main(["reprot", "runs/toy"])
    assert "there is no command 'reprot'; did you mean report?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, line",
    [
        (ValueError("bad number"), "bad number"),
        (FileNotFoundError("no such file"), "no such file"),
        (
            FileNotFoundError(2, "No such file or directory", "in.en"),
            "in.en: No such file or directory",
        ),
    ],
)
def test_what_the_user_got_wrong_is_one_line(monkeypatch, capsys, error, line):
    def fail(_args):
        raise error

    tool = types.SimpleNamespace(add_arguments=lambda _parser: None, main=fail)
    monkeypatch.setattr(cli.importlib, "import_module", lambda _name: tool)
    assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().err == f"transformer-plugin doctor: {line}\n"


def test_a_defect_of_ours_keeps_its_traceback(monkeypatch):
    def fail(_args):
        raise AttributeError("a defect")

    tool = types.SimpleNamespace(add_arguments=lambda _parser: None, main=fail)
    monkeypatch.setattr(cli.importlib, "import_module", lambda _name: tool)
    with pytest.raises(AttributeError):
        cli.main(["doctor"])


def test_a_reader_that_stops_ends_a_command_quietly(tmp_path):
    (tmp_path / "log").write_text("a line\n" * 100_000)
    pipe = f"{BIN}/transformer-plugin progress < {tmp_path}/log | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", pipe], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a line\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_progress_names_a_closed_stream(closed):
    command = f"{BIN}/transformer-plugin progress {closed}"
    done = subprocess.run(["bash", "-c", command], input="", capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("transformer-plugin progress: ")
    assert len(done.stderr.splitlines()) == 1


def test_sigterm_leaves_no_partial_file(toy, tmp_path):
    words = ["translate", toy, "--cpu", "--output", tmp_path / "out.txt"]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("transformer-plugin"), *words], stdin=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:  # it waits for sentences
        time.sleep(0.1)
    assert [path.suffix for path in tmp_path.iterdir()] == [".partial"]
    process.terminate()
    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())
