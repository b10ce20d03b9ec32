"""recipes/slurm.sbatch, with programs in place of Slurm's own and of fairseq's."""

import itertools
import os
import shutil
import signal
import subprocess
import time

import pytest
from fake_programs import PLUGIN
from recipe_environment import REPO, environment

FAKES = {
    # srun: as many tasks as asked for on each node, one after another in number. With
    # --kill-on-bad-exit=1, its default, a task that fails is the end of those of lower numbers.
    # (Bash's "wait -n" would kill all, but misses a task now and then when several end at once.)
    "srun": """
nodes=1 tasks=1 kill=1
echo "$*" >> "$FAKE/srun"
while [[ $1 == --* ]]; do
    case $1 in
        --nodes) nodes=$2; shift ;;
        --ntasks-per-node) tasks=$2; shift ;;
        --ntasks) shift ;;
        --kill-on-bad-exit=0) kill=0 ;;
    esac
    shift
done
export SLURM_NTASKS=$((nodes * tasks))
for ((i = 0; i < SLURM_NTASKS; i++)); do
    SLURM_PROCID=$i SLURM_LOCALID=$((i % tasks)) "$@" &
    started[i]=$!
done
worst=0
for ((i = SLURM_NTASKS - 1; i >= 0; i--)); do
    status=0
    wait "${started[i]}" || status=$?
    ((status <= worst)) || worst=$status
    ((status == 0 || kill == 0 || i == 0)) || kill -KILL "${started[@]:0:i}"
done
exit "$worst"
""",
    "scontrol": """
echo "$*" >> "$FAKE/scontrol"
[[ $1 != show ]] || printf 'node7\\nnode8\\n'
""",
    # fairseq-train: saves and ends with 85 on SIGUSR1, or ends with FAKE_STATUS. With FAKE_IMPORTS
    # it does not handle signals yet.
    "fairseq-train": """
RANK=${RANK:-0}  # a single process is not told its rank
[[ -n ${FAKE_IMPORTS:-} ]] || trap '((RANK)) || { sleep 1; touch "$FAKE/saved"; }; exit 85' USR1
echo "${MASTER_ADDR:-} ${MASTER_PORT:-} $*" > "$FAKE/task${RANK}"
echo $$ > "$FAKE/pid${RANK}"
while [[ -z ${FAKE_STATUS:-} ]]; do sleep 0.05; done
mkdir -p "$RUNS/toy/checkpoints"
echo done > "$RUNS/toy/checkpoints/checkpoint_last.pt"
exit "$FAKE_STATUS"
""",
    # FAKE_WAITS: averaging waits for a signal to the tasks.
    "transformer-plugin": PLUGIN
    + """
echo "$*" >> "$FAKE/after"
[[ -z ${FAKE_WAITS:-} ]] || { echo $PPID > "$FAKE/recipe"; exec sleep 60; }
exit 3
""",
}


@pytest.fixture
def job(small_data, tmp_path):
    """job(NAME=VALUE) runs the script as Slurm would, for 2 nodes of 2 tasks."""
    (tmp_path / "bin").mkdir()
    for name, text in FAKES.items():
        (tmp_path / "bin" / name).write_text("#!/usr/bin/env bash\nset -u\n" + text)
        (tmp_path / "bin" / name).chmod(0o755)

    shutil.copytree(small_data, tmp_path / "runs/toy")
    files = {name.upper(): str(small_data.parents[1] / name) for name in ("train", "valid", "test")}

    def start(*flags, **knobs):
        slurm = {
            "SLURM_SUBMIT_DIR": str(REPO),
            "SLURM_JOB_ID": "1234567",
            "SLURM_NNODES": "2",
            "SLURM_NTASKS_PER_NODE": "2",
            "SLURM_JOB_NODELIST": "node[7-8]",
        }
        runs = {"FAKE": str(tmp_path), "RUNS": str(tmp_path / "runs"), "VOCAB_SIZE": "500"}
        fakes = environment(**(runs | files | slurm | knobs))
        fakes["PATH"] = f"{tmp_path / 'bin'}:{fakes['PATH']}"
        copy = tmp_path / "slurm_script"
        copy.write_bytes((REPO / "recipes/slurm.sbatch").read_bytes())
        return subprocess.Popen(
            ["bash", copy, "toy", *flags],
            env=fakes,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


def calls(folder, program):
    return (folder / program).read_text().splitlines()


def test_tasks_know_their_place_and_the_rest_follows(job, tmp_path):
    of_the_submitter = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    process = job("--clip-norm", "1.0", FAKE_STATUS="0", **of_the_submitter)
    output = process.communicate(timeout=60)[0]
    assert "[data-bin] already done" in output
    assert process.returncode == 3, output  # that of what stands for transformer-plugin
    for rank in range(4):
        address, port, *words = (tmp_path / f"task{rank}").read_text().split()
        assert (address, port) == ("node7", str(10_000 + 1_234_567 % 50_000))
        flags = dict(itertools.pairwise(words))
        assert flags["--distributed-world-size"] == "4" and flags["--clip-norm"] == "1.0"
        assert flags["--distributed-rank"] == str(rank) and flags["--device-id"] == str(rank % 2)
    assert (tmp_path / "after").read_text().startswith("average --last 5")


def pid_in(path, process):
    """The number that a process of the job writes to a file when it starts."""
    while not (path.exists() and path.read_text()):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    return int(path.read_text())


def signal_tasks(process, folder):
    """As --signal=USR1@180 does, once all four have started."""
    for pid in [pid_in(folder / f"pid{rank}", process) for rank in range(4)]:
        os.kill(pid, signal.SIGUSR1)


def test_a_job_that_is_told_to_end_saves_and_is_queued_again(job, tmp_path):
    process = job()
    signal_tasks(process, tmp_path)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 85 and "job 1234567 is queued again" in output
    assert "requeue 1234567" in (tmp_path / "scontrol").read_text().splitlines()
    assert (tmp_path / "saved").exists() and not (tmp_path / "after").exists()


def test_a_job_that_is_cancelled_saves_and_is_not_queued_again(job, tmp_path):
    process = job(SLURM_NNODES="1", SLURM_NTASKS_PER_NODE="1")
    pid = pid_in(tmp_path / "pid0", process)
    process.send_signal(signal.SIGTERM)  # as scancel does, to all processes of the job
    os.kill(pid, signal.SIGUSR1)
    assert process.wait(timeout=60) == 85
    assert (tmp_path / "saved").exists()
    assert "requeue 1234567" not in calls(tmp_path, "scontrol")


def test_a_job_that_is_told_to_end_while_its_tasks_import_is_queued_again(job, tmp_path):
    process = job(FAKE_IMPORTS="1")
    signal_tasks(process, tmp_path)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 85 and "job 1234567 is queued again" in output, output
    assert not (tmp_path / "after").exists()


def test_a_job_of_one_gpu_gets_the_signal_too(job, tmp_path):
    """Slurm's --signal goes to what srun has started, not to the script."""
    process = job(SLURM_NNODES="1", SLURM_NTASKS_PER_NODE="1")
    pid = pid_in(tmp_path / "pid0", process)
    os.kill(pid, signal.SIGUSR1)
    assert process.wait(timeout=60) == 85
    assert "--distributed-init-method" not in (tmp_path / "task0").read_text()
    assert "requeue 1234567" in (tmp_path / "scontrol").read_text().splitlines()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_every_stage_is_told_of_the_time_limit_and_queued_again(job, tmp_path, number):
    """Slurm signals all processes of what srun has started; scancel also the script, and then the
    job is not queued again."""
    process = job(FAKE_STATUS="0", FAKE_WAITS="1")
    recipe = pid_in(tmp_path / "recipe", process)
    assert any("run.sh toy --from average" in line for line in calls(tmp_path, "srun"))
    if number == signal.SIGTERM:
        process.send_signal(number)
    os.kill(recipe, number)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 85, output
    assert (number == signal.SIGUSR1) == ("requeue 1234567" in calls(tmp_path, "scontrol"))


def test_slurm_is_asked_for_what_the_script_relies_on():
    lines = (REPO / "recipes/slurm.sbatch").read_text().splitlines()
    asked = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
    assert {"--signal=USR1@180", "--requeue", "--open-mode=append"} <= set(asked)
    given = dict(word.removeprefix("--").split("=") for word in asked if "=" in word)
    assert given["ntasks-per-node"] == given["gpus-per-node"]


def test_a_job_that_fails_is_not_queued_again(job, tmp_path):
    process = job(FAKE_STATUS="7")
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 7 and "train failed with status 7" in output
    assert "requeue" not in (tmp_path / "scontrol").read_text()
    assert not (tmp_path / "after").exists()
