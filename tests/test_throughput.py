"""The peak speed of a device, by its name."""

import pytest
import torch

from transformer_plugin.throughput import peak_flops


@pytest.mark.parametrize(
    "name, half, single",
    [
        ("NVIDIA H100 80GB HBM3", 989.4, 66.9),
        ("NVIDIA H100 PCIe", 756.0, 51.2),
        ("NVIDIA H100 NVL", 835.5, 60.0),
        ("NVIDIA H200", 989.4, 66.9),
        ("NVIDIA H200 NVL", 835.5, 60.0),
        ("NVIDIA H20", 148.0, 44.0),
        ("NVIDIA B200", 2250.0, 75.0),
        ("NVIDIA A100-SXM4-80GB", 311.9, 19.5),
        ("NVIDIA A100-PCIE-40GB", 311.9, 19.5),
        ("NVIDIA A40", 149.7, 37.4),
        ("NVIDIA A30", 165.0, 10.3),
        ("NVIDIA A10", 125.0, 31.2),
        ("NVIDIA L40", 181.0, 90.5),
        ("NVIDIA L40S", 362.1, 91.6),
        ("NVIDIA L4", 121.0, 30.3),
        ("Tesla V100-SXM2-16GB", 125.0, 15.7),
        ("Tesla V100-PCIE-32GB", 112.0, 14.0),
        ("Tesla T4", 65.1, 8.1),
        ("NVIDIA RTX 6000 Ada Generation", 364.2, 91.1),
        ("NVIDIA GeForce RTX 5090", 209.5, 104.8),
        ("NVIDIA GeForce RTX 4090", 165.2, 82.6),
    ],
)
def test_a_card_has_the_peak_of_its_data_sheet(monkeypatch, name, half, single):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    gpu = torch.device("cuda")
    assert peak_flops(gpu, half=True) == pytest.approx(half * 1e12)
    assert peak_flops(gpu, half=False) == pytest.approx(single * 1e12)


@pytest.mark.parametrize(
    "name",
    [
        *("NVIDIA RTX A4000", "NVIDIA T400 4GB", "NVIDIA A10G", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
        *("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA A40-8Q"),
    ],
)
def test_a_card_with_a_similar_name_has_none(monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert peak_flops(torch.device("cuda"), half=True) is None
