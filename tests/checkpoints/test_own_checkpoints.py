"""What checkpoints of a user's own model may hold, and those of other models may not."""

from dataclasses import dataclass, field

import pytest
import torch
from fairseq.models import register_model

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.config import VaswaniConfig
from transformer_plugin.model import VaswaniTransformer

NOT_GIVEN = "of_a_user_dir_that_is_not_given"


@dataclass
class HashedConfig(VaswaniConfig):
    virtual_layers: int = field(default=64, metadata={"help": "applications of a shared layer"})
    hash_dim: int = field(default=100_003, metadata={"help": "buckets"})


@register_model("hashed_transformer", dataclass=HashedConfig)
class HashedTransformer(VaswaniTransformer):
    pass


@pytest.fixture
def loaded(tmp_path):
    """loaded(arch, tensor, **options) writes a checkpoint and loads it."""

    def save_and_load(arch, tensor=None, **options):
        weight = torch.ones(2) if tensor is None else tensor
        cfg = {"model": {"_name": arch, **options}}
        torch.save({"cfg": cfg, "model": {"table": weight}}, tmp_path / "a.pt")
        return load(tmp_path / "a.pt")

    return save_and_load


@pytest.mark.parametrize("arch", ["hashed_transformer", NOT_GIVEN])
def test_layers_and_widths_need_no_tensors(loaded, arch):
    """Training with these options wrote checkpoints that nothing could load."""
    own = {"virtual_layers": 64, "hash_dim": 100_003}
    assert loaded(arch, **own)["cfg"]["model"] == {"_name": arch, **own}


@pytest.mark.parametrize("arch", ["hashed_transformer", "vaswani_base"])
def test_layers_of_the_plugin_need_tensors(loaded, arch):
    with pytest.raises(CheckpointError, match="encoder_layers = 64: the model has no more than 1"):
        loaded(arch, encoder_layers=64)


@pytest.mark.parametrize("arch", ["hashed_transformer", NOT_GIVEN])
def test_a_table_of_rotations_may_be_complex(loaded, arch):
    table = torch.polar(torch.ones(3), torch.arange(3.0))
    assert loaded(arch, table)["model"]["table"].equal(table)


@pytest.mark.parametrize("arch", ["vaswani_base", "vaswani_transformer", "transformer"])
def test_no_other_model_is_complex(loaded, arch):
    with pytest.raises(CheckpointError, match="'table' holds complex numbers"):
        loaded(arch, torch.ones(3, dtype=torch.complex64))
