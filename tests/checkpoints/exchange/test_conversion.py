"""Exchange with stock fairseq: the same logits, and every bit there and back."""

from __future__ import annotations

import itertools
from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.transformer import TransformerModel
from fairseq.optim.adam import Adam as StockAdam
from fairseq.tasks.translation import TranslationConfig
from omegaconf import OmegaConf
from stock_models import POSITIONS, UNTIED, header, stock_settings, trained

from transformer_plugin import cli
from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.exchange import equations_check
from transformer_plugin.checkpoints.exchange.conversion import convert
from transformer_plugin.checkpoints.meta_models import plugin_model
from transformer_plugin.checkpoints.stock_settings import UnsupportedModel
from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.modules.adam import Adam
from transformer_plugin.task_config import VaswaniTranslationConfig


def test_stock_computes_the_same_as_ours_and_training_goes_on(stock, build, batch):
    model, optimizer, state = stock
    converted = convert(state, "plugin")
    ours = build(**{k: v for k, v in converted["cfg"]["model"].items() if k != "_name"})
    ours.load_state_dict(converted["model"])
    again = Adam(ours.parameters(), lr=1e-3)
    again.load_state_dict(converted["last_optimizer_state"])
    sample = batch([7, 4, 6], [3, 6, 5])
    real = sample["target"].ne(1)
    for _ in range(3):
        expected, logits = (m(**sample["net_input"])[0][real] for m in (model, ours))
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
        for side, output in ((optimizer, expected), (again, logits)):
            side.zero_grad()
            output.square().mean().backward()
            side.step()


def test_there_and_back_is_bit_identical(stock):
    _, _, state = stock
    back = convert(convert(state, "plugin"), "stock")
    assert back["model"].keys() == state["model"].keys()
    for name, tensor in state["model"].items():
        assert torch.equal(back["model"][name], tensor), name
    before, after = (s["last_optimizer_state"]["state"] for s in (state, back))
    assert before.keys() == after.keys()
    for key, entry in before.items():
        assert entry["step"] == after[key]["step"]
        for moment in ("exp_avg", "exp_avg_sq"):
            assert torch.equal(entry[moment], after[key][moment])
    assert back["optimizer_history"] == state["optimizer_history"]


def test_one_flat_vector_is_reordered_as_its_parts_are(stock):
    _, _, state = stock
    parts = state["last_optimizer_state"]
    flat = {
        m: torch.cat([parts["state"][k][m].flatten() for k in sorted(parts["state"])])
        for m in ("exp_avg", "exp_avg_sq")
    }
    joined = parts | {"state": {0: {"step": 1, **flat}}}
    result = convert(state | {"last_optimizer_state": joined}, "plugin")["last_optimizer_state"]
    assert result["param_groups"][0]["params"] == list(result["state"]) == [0]
    apart = convert(state, "plugin")["last_optimizer_state"]["state"]
    for moment, vector in flat.items():
        expected = torch.cat([entry[moment].flatten() for entry in apart.values()])
        assert torch.equal(result["state"][0][moment], expected)
        assert not torch.equal(expected, vector)


def test_moments_are_of_their_parameter_in_whatever_order_they_were_made(stock):
    """Parameters that were frozen at first have the last ones."""
    _, _, state = stock
    adam = state["last_optimizer_state"]
    late = adam | {"state": dict(reversed(adam["state"].items()))}
    expected, found = (
        convert(state | {"last_optimizer_state": each}, "plugin")["last_optimizer_state"]["state"]
        for each in (adam, late)
    )
    for number, entry in expected.items():
        assert torch.equal(found[number]["exp_avg"], entry["exp_avg"]), number


@pytest.mark.parametrize("encoding", ["paper", "t2t"])
def test_the_papers_model_becomes_a_stock_one_with_learned_positions(
    build, batch, toy_task, encoding
):
    """Its logits are ours up to the epsilon of the norms, for sentences as long as its tables."""
    longest = POSITIONS["max_source_positions"]
    ours = build(positional_encoding=encoding, **POSITIONS).eval()
    optimizer = trained(ours, Adam, batch([7, 4], [3, 6]))
    state = header(ours, dict(ours.cfg) | {"_name": "vaswani_tiny"}, optimizer)
    converted = convert(state, "stock")
    assert not converted["last_optimizer_state"]
    stock = TransformerModel.build_model(converted["cfg"]["model"], toy_task).eval()
    stock.load_state_dict(converted["model"])
    sample = batch([longest, 4, 9], [6, longest, 5])
    real = sample["target"].ne(1)
    expected, found = (m(**sample["net_input"])[0][real] for m in (ours, stock))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    again = convert(converted, "plugin")
    assert again["cfg"]["model"]["positional_encoding"] == "learned"
    for name, tensor in state["model"].items():
        assert torch.equal(again["model"][name], tensor), name


def test_the_optimizers_state_is_left_out_where_its_order_is_not_known(build_stock, batch):
    model = build_stock(**POSITIONS, **UNTIED)
    optimizer = trained(model, StockAdam, batch([4], [3]))
    state = header(model, stock_settings(UNTIED), optimizer)
    tensors = dict(state["model"])
    tensors["decoder.embed_out"] = tensors.pop("decoder.output_projection.weight")  # fairseq 0.9
    old = convert(state | {"model": tensors}, "plugin")
    today = convert(state, "plugin")
    assert "last_optimizer_state" in today and "last_optimizer_state" not in old
    for name, tensor in today["model"].items():
        assert torch.equal(tensor, old["model"][name])
    sgd = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    sgd.step()
    other = convert(state | {"last_optimizer_state": sgd.state_dict()}, "plugin")
    assert "last_optimizer_state" not in other
    plain = torch.optim.SGD(model.parameters(), lr=1.0)  # its state is empty
    other = convert(state | {"last_optimizer_state": plain.state_dict()}, "plugin")
    assert "last_optimizer_state" not in other


def test_a_task_without_a_dataclass_stays_what_it_is(stock):
    state = stock[2]
    task = Namespace(task="translation_multi_simple_epoch", langs="de,en")
    cfg = {**state["cfg"], "task": task}
    assert convert(state | {"cfg": cfg}, "plugin")["cfg"]["task"] == task


def test_fused_projections_of_old_releases_come_apart(build_stock, batch):
    model = build_stock(**POSITIONS)
    state = header(model, stock_settings({}), trained(model, StockAdam, batch([4], [3])))
    tensors = dict(state["model"])
    for side, layer, kind in itertools.product(("encoder", "decoder"), "01", ("weight", "bias")):
        place = f"{side}.layers.{layer}.self_attn"
        parts = [tensors.pop(f"{place}.{name}_proj.{kind}") for name in "qkv"]
        tensors[f"{place}.in_proj_{kind}"] = torch.cat(parts)
    old = convert(state | {"model": tensors}, "plugin")
    for name, tensor in convert(state, "plugin")["model"].items():
        assert torch.equal(tensor, old["model"][name])
    assert "last_optimizer_state" not in old


def test_a_tensor_too_few_or_of_another_size_is_named(stock):
    state = stock[2]
    tensors = dict(state["model"])
    bias = tensors.pop("encoder.layers.0.fc1.bias")
    for found, words in ((None, "no such tensor"), (bias[1:], r"\[63\]")):
        rest = tensors if found is None else tensors | {"encoder.layers.0.fc1.bias": found}
        with pytest.raises(CheckpointError, match=rf"fc1\.bias: expected \[64\].* found {words}"):
            convert(state | {"model": rest}, "plugin")


def test_a_checkpoint_of_the_same_side_is_refused(stock):
    with pytest.raises(CheckpointError, match="already stock fairseq's"):
        convert(stock[2], "stock")


@pytest.fixture
def own_arch(build, batch):
    """A checkpoint of an architecture that a user's own --user-dir registers, and no other test."""
    ours = build(**POSITIONS, positional_encoding="fairseq", layer_norm_eps=1e-5)
    optimizer = trained(ours, Adam, batch([7, 4], [3, 6]))
    return header(ours, dict(ours.cfg) | {"_name": "users_preset"}, optimizer)


def test_an_architecture_of_the_users_own_is_converted_as_the_plugins(own_arch, tmp_path, capsys):
    plugins = own_arch | {"cfg": {"model": own_arch["cfg"]["model"] | {"_name": "vaswani_base"}}}
    expected = convert(plugins, "stock")["model"]
    for name, tensor in convert(own_arch, "stock")["model"].items():
        assert torch.equal(tensor, expected[name]), name
    with pytest.raises(CheckpointError, match="already the plugin's"):
        convert(own_arch, "plugin")
    for state, noted in ((own_arch, True), (plugins, False)):
        torch.save(state, tmp_path / "in.pt")
        paths = [str(tmp_path / name) for name in ("in.pt", "out.pt")]
        assert cli.main(["convert", *paths, "--to", "stock"]) == 0
        said = capsys.readouterr().out
        assert ("users_preset is an architecture of your own" in said) == noted
        assert "to resume training: fairseq-train DATA-BIN --restore-file" in said
        assert cli.main(["doctor", "--path", paths[0]]) == 0
        told = capsys.readouterr().out
        assert "not as in the paper" in told or "not compared with the paper" in told
        assert "of fairseq" not in told


def test_without_an_optimizer_the_weights_start_a_new_run(own_arch, tmp_path, capsys):
    del own_arch["last_optimizer_state"]  # as an averaged checkpoint
    torch.save(own_arch, tmp_path / "in.pt")
    assert cli.main(["convert", f"{tmp_path}/in.pt", f"{tmp_path}/out.pt", "--to", "stock"]) == 0
    how = f"its weights: fairseq-train DATA-BIN --finetune-from-model {tmp_path}/out.pt"
    assert how in capsys.readouterr().out


def test_the_options_of_the_plugins_task_are_not_stocks(own_arch):
    ours = OmegaConf.to_container(OmegaConf.structured(VaswaniTranslationConfig(data="d")))
    own_arch["cfg"]["task"] = ours | {"_name": "vaswani_translation"}
    task = convert(own_arch, "stock")["cfg"]["task"]
    assert task.pop("_name") == "translation"
    OmegaConf.merge(OmegaConf.structured(TranslationConfig), task)  # which has each of them
    assert task["data"] == "d" and "on_divergence" in ours


def test_a_subclass_of_the_plugins_model_is_refused(own_arch, monkeypatch):
    class Other(VaswaniTransformer):
        """Whose equations are others."""

    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "users_preset", Other)
    with pytest.raises(UnsupportedModel, match="users_preset builds class Other"):
        convert(own_arch, "stock")


def test_an_edit_that_shows_in_longer_sentences_alone_is_found(monkeypatch):
    """As of a mask: test sentences of five tokens did not show it."""

    def narrow(*arguments, **options):
        model = plugin_model(*arguments, **options)
        for layer in model.encoder.layers:
            layer.self_attention.window = 12
        return model

    equations_check.check_equations({"_name": "vaswani_base"})
    monkeypatch.setattr(equations_check, "plugin_model", narrow)
    with pytest.raises(UnsupportedModel, match="have been edited"):
        equations_check.check_equations({"_name": "vaswani_base"})
