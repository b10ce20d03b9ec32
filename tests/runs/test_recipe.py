"""A recipe's verb as a program of several commands."""

import subprocess

from fairseq_commands import environment


def test_a_signal_between_two_commands_is_told(tmp_path):
    """The first one ends without an error, as if the signal had come after it."""
    scripts = ("trap 'kill %1; exit 0' TERM; sleep 9 & echo begins; wait", "echo two")
    stages = [["prepare", "--prepares", "--", "bash", "-c", script] for script in scripts]
    words = [word for stage in stages for word in (str(len(stage)), *stage)]
    names = ["--script", "x", "--experiment", "x", "--run", tmp_path, "--data", tmp_path]
    process = subprocess.Popen(
        ["transformer-plugin", "recipe", "run", *names, "--node-rank", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    while process.stdout.readline() != "begins\n":
        assert process.poll() is None
    process.terminate()
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 85
    assert output.endswith("prepare was stopped by SIGTERM\n") and "two" not in output
