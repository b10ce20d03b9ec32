"""bench/kernels.py measures the device that is asked for, or nothing."""

import sys

import pytest
import torch
from fairseq_commands import REPO

pytest.importorskip("transformer_plugin.kernels")


def test_a_cpu_is_not_measured_as_a_gpu(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(REPO / "bench"))
    import kernels

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["kernels.py", "--device", "cuda"])
    kernels.main()
    assert capsys.readouterr().out == "skipped: --device cuda, but there is no GPU\n"
