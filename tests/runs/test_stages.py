"""The stages of a recipe: what is done already, what is recorded, and what is said of failures."""

import pytest

from transformer_plugin.runs import recipe
from transformer_plugin.runs.plan import parse_plan
from transformer_plugin.runs.recipe import Recipe


def perform(folder, *stages, node_rank=0):
    """Runs stages of one command each; returns the status."""
    plan = [word for stage in stages for word in (str(len(stage)), *map(str, stage))]
    folder.mkdir(exist_ok=True)
    run = Recipe("x.sh", "x", folder, folder / "data", node_rank)
    return run.perform(parse_plan(plan, node_rank))


def test_each_command_of_a_stage_counts(tmp_path, capfd):
    half, out = tmp_path / "half", tmp_path / "out"
    for word, done in (("one", False), ("one", True), ("two", False)):
        first = ["s", "--", "bash", "-c", f"echo {word} > {half}"]
        assert perform(tmp_path, first, ["s", "--output", out, "--", "cp", half, out]) == 0
        assert ("already done" in capfd.readouterr().err) == done
    assert out.read_text() == "two\n"


def test_a_stage_of_a_run_that_has_moved_is_done(tmp_path, capfd):
    for folder, done in ((tmp_path / "a", False), (tmp_path / "b", True)):
        if done:
            (tmp_path / "a").rename(folder)
        out = folder / "out"
        assert perform(folder, ["s", "--output", out, "--stdout", out, "--", "echo", "hi"]) == 0
        assert ("already done" in capfd.readouterr().err) == done


def test_a_stage_is_done_after_the_repository_has_moved(tmp_path, capfd, monkeypatch):
    out = tmp_path / "run/out"
    for repo, done in ((tmp_path / "r", False), (tmp_path / "q", True)):
        monkeypatch.setattr(recipe, "REPO", repo)
        command = ["bash", "-c", f"touch {out}", repo / "x.py"]
        assert perform(tmp_path / "run", ["s", "--output", out, "--", *command]) == 0
        assert ("already done" in capfd.readouterr().err) == done


def test_variables_reach_a_command_whose_output_is_a_file(tmp_path):
    out = tmp_path / "out"
    command = ["--env", "N=5", "--output", out, "--stdout", out, "--", "bash", "-c", "echo $N"]
    assert perform(tmp_path, ["s", *command]) == 0
    assert out.read_text() == "5\n"


def test_machine_0_alone_writes_the_manifest(tmp_path):
    for rank in (1, 0):
        assert perform(tmp_path, ["s", "--", "true"], node_rank=rank) == 0
        assert (tmp_path / "manifest.json").exists() == (rank == 0)


@pytest.fixture
def resuming(tmp_path):
    """A stage that continues from a checkpoint and runs a script of bash."""
    last = tmp_path / "checkpoint_last.pt"
    last.touch()
    files = ["--output", last, "--log", tmp_path / "x.log"]
    return lambda script: ["s", *files, "--resumes", "--", "bash", "-c", script]


def test_the_failure_of_an_earlier_run_is_not_this_ones(tmp_path, capfd, resuming):
    (tmp_path / "x.log").write_text("ValueError: of the run before\n")
    assert perform(tmp_path, resuming("exit 3")) == 3
    said = capfd.readouterr().err
    assert "s failed with status 3; log" in said and "of the run before" not in said


@pytest.mark.parametrize(
    "reason, again", [("RuntimeError: x", True), ("fairseq-train: no such flag", False)]
)
def test_the_same_command_continues_after_a_crash_only(tmp_path, capfd, resuming, reason, again):
    assert perform(tmp_path, resuming(f"echo '{reason}'; exit 3")) == 3
    assert ("the same command continues" in capfd.readouterr().err) == again


def test_what_a_killed_command_has_left_is_removed(tmp_path):
    (tmp_path / ".out.x.partial").touch()
    assert (
        perform(tmp_path, ["s", "--output", tmp_path / "out", "--", "touch", tmp_path / "out"]) == 0
    )
    assert not list(tmp_path.glob(".out.*"))


def planned(*words):
    return parse_plan([str(len(words)), *words])[0]


def test_a_command_continues_from_checkpoints_of_training(tmp_path):
    last = str(tmp_path / "checkpoint_last.pt")
    command = planned("s", "--resumes", "--output", last, "--", "echo")
    for name in ("checkpoint_best.pt", "checkpoint_averaged.pt"):
        (tmp_path / name).touch()
    assert not command.continues
    (tmp_path / "checkpoint_1_50.pt").touch()
    assert [path.name for path in command.saved] == ["checkpoint_1_50.pt"]


def test_the_printed_line_can_be_pasted():
    command = planned("s", "--log", "a b.log", "--", "echo", "c d")
    assert command.line == "echo 'c d' 2>&1 | tee 'a b.log'"


def test_a_launchers_variables_change_no_result():
    one, other = (planned("s", "--env", f"MASTER_ADDR={x}", "--", "echo").settings for x in "ab")
    assert one == other
