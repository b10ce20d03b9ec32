"""One checkout in its own process, for versions.py: reads commands, answers with numbers."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any


def training(job: dict[str, Any]) -> Callable[[], None]:
    """Some updates of the plugin's training."""
    from training_data import training_batches
    from training_systems import Setting, build

    device = job.get("device", "cpu")
    numbers = (job["arch"], job["precision"], device, job["data_bin"], job["max_tokens"])
    task, update = build(Setting("plugin", *numbers))
    batches = training_batches(task, job["max_tokens"], job["updates"])

    def run() -> None:
        for batch in batches:
            update(batch)

    return run


def search(job: dict[str, Any]) -> Callable[[], None]:
    """A search over the test set."""
    import torch
    from fairseq import checkpoint_utils, tasks, utils
    from omegaconf import OmegaConf

    utils.import_user_module(argparse_namespace(job))
    overrides = {"data": job["data_bin"], "decode_precision": job["precision"]}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([job["path"]], overrides)
    assert isinstance(task, tasks.FairseqTask)
    task.load_dataset("test")
    device = torch.device(job.get("device", "cpu"))
    for model in models:
        model.to(device)
    options = OmegaConf.create({"beam": job["beam"], "lenpen": 0.6, "max_len_b": 200})
    generator = task.build_generator(models, options)
    batches = task.get_batch_iterator(
        task.dataset("test"), max_tokens=50_000, max_positions=(1000, 1000)
    ).next_epoch_itr(shuffle=False)
    moved = [utils.apply_to_sample(lambda tensor: tensor.to(device), batch) for batch in batches]

    def run() -> None:
        for batch in moved:
            task.inference_step(generator, models, batch)

    return run


def argparse_namespace(job: dict[str, Any]) -> Any:
    """The options from which fairseq reads --user-dir."""
    from argparse import Namespace

    return Namespace(user_dir=f"{job['folder']}/transformer_plugin")


def main() -> None:
    """Prepares, then runs the commands on standard input: warm, round, stop."""
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    job = json.loads(sys.argv[1])
    run = search(job) if job["path"] else training(job)
    for word in sys.stdin:
        started = time.perf_counter()
        if word.strip() != "stop":
            run()
            print(time.perf_counter() - started, flush=True)
        else:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, flush=True)
            return


if __name__ == "__main__":
    main()
