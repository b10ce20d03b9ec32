"""torch's DDP, which fairseq wraps models in on GPUs, takes the plugin's model and criterion.

The loss reads the output projection outside of the model's own forward pass, which DDP must not
take for a parameter without a gradient.
"""

import pytest
import torch
from fairseq.distributed import ModuleProxyWrapper
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
