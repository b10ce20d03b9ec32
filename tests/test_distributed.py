"""torch's DDP, which fairseq wraps models in on GPUs, takes the plugin's model and criterion.

The loss reads the output projection outside of the model's own forward pass, which DDP must not
take for a parameter without a gradient.
"""

import subprocess
import sys

import pytest
import torch
from fairseq.distributed import ModuleProxyWrapper
from fairseq_commands import REPO
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from transformer_plugin.criterion import VaswaniCrossEntropy


@pytest.fixture
def group(tmp_path):
    """This process alone, as a group."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize("untie", [False, True])
def test_gradients_are_those_of_the_bare_model(group, build, batch, toy_task, untie):
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    sample = batch([7, 5, 9], [4, 8, 6])
    gradients = []
    for wrap in (lambda model: model, lambda m: ModuleProxyWrapper(DistributedDataParallel(m))):
        model = build(untie_embeddings=untie)
        wrapped = wrap(model)
        for _ in range(2):  # at the second DDP notices what the first left undone
            model.zero_grad()
            criterion(wrapped, sample)[0].backward()
        gradients.append({name: weight.grad for name, weight in model.named_parameters()})
    bare, with_ddp = gradients
    for name, gradient in bare.items():
        torch.testing.assert_close(with_ddp[name], gradient, rtol=0, atol=0)


SHARDED = """
import sys
import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
import transformer_plugin.kernels
from transformer_plugin.modules.adam import Adam
rank, file = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
torch.manual_seed(1)
layer = nn.Linear(1000, 2000, bias=False)  # more numbers than are updated at once
before = layer.weight.detach().clone()
mesh = distributed.device_mesh.init_device_mesh("cpu", (2,))
optimizer = Adam(fully_shard(layer, mesh=mesh).parameters(), lr=0.01)
layer(torch.randn(4, 1000)).square().sum().backward()
optimizer.step()
assert layer.weight.full_tensor().ne(before).float().mean() > 0.99
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_sharded_weights_are_updated(tmp_path):
    """As by fully_shard: parts of a DTensor are copies of the whole, whose updates were lost."""
    command = [sys.executable, "-c", SHARDED]
    both = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "group")], cwd=REPO)
        for rank in range(2)
    ]
    assert [process.wait(100) for process in both] == [0, 0]
