"""What the recipes choose on a GPU, and that they choose nothing on a CPU."""

import os
import shlex
import subprocess
import sys

import pytest
import torch
from fake_programs import recipes

from transformer_plugin.runs.plan import parse_plan

CPU, T4, H100, EIGHT = "0 fp32 0", "1 fp16 14", "1 bf16 79", "8 bf16 79"
TF32 = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"
MALLOC = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"


@pytest.fixture
def command(tmp_path):
    """command(verb, gpus, NAME=VALUE) is the first command that the dry run prints."""
    env = recipes(tmp_path)

    def printed(verb, gpus, experiment="wmt14_en_de_base", **knobs):
        done = subprocess.run(
            [tmp_path / f"recipes/{verb}.sh", experiment, "--dry-run"],
            env=env | {"FAKE_GPUS": gpus} | knobs,
            capture_output=True,
            text=True,
            check=True,
        )
        return shlex.split(done.stdout.splitlines()[0])

    return printed


def value(words, flag):
    return words[words.index(flag) + 1] if flag in words else None


@pytest.mark.parametrize(
    "gpus, knobs, precision, tokens, batches",
    [
        (CPU, {}, set(), 4096, 8),
        (T4, {}, {"--fp16"}, 8192, 4),
        (H100, {}, {"--bf16"}, 16_384, 2),
        ("1 bf16 15", {"PRECISION": "fp32"}, {TF32}, 4096, 8),
        (H100, {"PRECISION": "fp32-exact"}, set(), 16_384, 2),
        (H100, {"MAX_TOKENS": "5000"}, {"--bf16"}, 5000, 7),
        (H100, {"SYSTEM": "lstm"}, {"--fp16"}, 16_384, 2),
        (EIGHT, {}, {"--bf16"}, 4096, 1),
        (EIGHT, {"GPUS": "1"}, {"--bf16"}, 16_384, 2),
        ("2 bf16 79", {}, {"--bf16"}, 8192, 2),
        (EIGHT, {"NODES": "2", "MASTER_ADDR": "one"}, {"--bf16"}, 2048, 1),
        (EIGHT, {"NODES": "8", "MASTER_ADDR": "one"}, {"--bf16"}, 1024, 1),
    ],
)
def test_training_takes_the_precision_and_the_batch_of_the_gpu(
    command, gpus, knobs, precision, tokens, batches
):
    words = command("train", gpus, **knobs)
    assert {"--fp16", "--bf16", TF32} & set(words) == precision
    assert value(words, "--max-tokens") == str(tokens)
    assert value(words, "--update-freq") == str(batches)
    number = int(knobs.get("GPUS", gpus.split()[0]))
    assert ("torchrun" in words) == (number > 1) and ("--cpu" in words) == (number == 0)
    assert (MALLOC in words) == (number == 0)
    # fairseq takes all GPUs unless it is told how many.
    assert value(words, "--distributed-world-size") == ("1" if "GPUS" in knobs else None)
    loaders = min(4, len(os.sched_getaffinity(0)) // number) if number else 0
    assert value(words, "--num-workers") == str(loaders)


def test_a_users_own_settings_of_the_allocator_are_kept(command):
    words = command("train", CPU, GLIBC_TUNABLES="glibc.malloc.arena_max=2")
    assert "GLIBC_TUNABLES=glibc.malloc.arena_max=2" in words and MALLOC not in words


@pytest.mark.parametrize(
    "gpus, knobs, precision, tf32",
    [
        (CPU, {"PRECISION": "bf16"}, None, False),
        (H100, {}, "bf16", False),
        (H100, {"PRECISION": "fp32"}, None, True),
        (H100, {"SYSTEM": "convs2s"}, None, False),
    ],
)
def test_generating_takes_the_precision_of_the_gpu(command, gpus, knobs, precision, tf32):
    words = command("generate", gpus, **knobs)
    assert value(words, "--decode-precision") == precision and (TF32 in words) == tf32


def test_torch_reads_the_variable_for_tf32():
    code = "import torch; print(torch.backends.cuda.matmul.allow_tf32)"
    env = os.environ | dict([TF32.split("=")])
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
    assert not torch.backends.cuda.matmul.allow_tf32


def test_the_precision_of_products_is_a_setting_of_a_stage():
    """With another PRECISION a finished stage is done again; with another port it is not."""
    tf32, port = ("--env", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"), ("--env", "MASTER_PORT=1")
    stages = [
        parse_plan([str(len(words)), *words])[0].settings
        for env in ((), tf32, port)
        for words in [["generate", *env, "--", "fairseq-generate", "data"]]
    ]
    assert stages[0] == stages[2] != stages[1]
