"""What Python users do with a model of fairseq's works with the plugin's."""

import copy
import io
import pickle
import shutil
import sys

import pytest
import torch
from fairseq import checkpoint_utils
from torch import nn


@pytest.fixture
def inputs(batch):
    return batch([7, 4, 6], [3, 6, 5])["net_input"]


@pytest.fixture
def model(build):
    return build().eval()


def with_pickle(model):
    return pickle.loads(pickle.dumps(model))


def with_torch(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("make", [with_pickle, with_torch, copy.deepcopy])
def test_a_model_is_saved_whole(model, inputs, make):
    again = make(model)
    assert torch.equal(again(**inputs)[0], model(**inputs)[0])
    assert again.decoder.output_projection.weight is again.encoder.embed_tokens.weight
    assert list(again.state_dict()) == list(model.state_dict())


def test_features(model, inputs):
    features, _ = model.extract_features(**inputs)
    assert features.shape == (3, 6, 32)
    expected, _ = model(**inputs)
    torch.testing.assert_close(model.decoder.output_layer(features), expected)


def test_hidden_states_of_every_layer(model, inputs):
    tokens = inputs["src_tokens"]
    out = model.encoder(tokens, return_all_hiddens=True)
    states = out["encoder_states"]
    assert [s.shape for s in states] == [(7, 3, 32)] * 3
    assert torch.equal(states[2], out["encoder_out"][0])
    # Against the layers one after another, over one sentence without padding.
    x = model.encoder.embed_sentences(tokens[:1])[0][:7].unsqueeze(0)
    for state, layer in zip(states, [None, *model.encoder.layers], strict=True):
        x = x if layer is None else layer(x)[0]
        torch.testing.assert_close(state[:, 0], x[0], atol=1e-5, rtol=1e-5)
    assert not any(layer._forward_hooks for layer in model.encoder.layers)


def test_alignments_of_a_layer(model, inputs):
    for layer in (0, 1):
        (found,) = model(**inputs, alignment_layer=layer, alignment_heads=2)[1]["attn"]
        memory, packing, _ = model.encoder.encode(inputs["src_tokens"])
        previous = inputs["prev_output_tokens"]
        weights = model.decoder.decode(previous, memory, packing, need_weights=True)[2]
        real = previous.ne(1)
        torch.testing.assert_close(found[real], weights[layer][1][:, :2].mean(dim=1)[real])
        assert not found[~real].any()
    assert model(**inputs)[1]["attn"] == [None]  # nobody asked: the faster way
    memory = model.encoder(inputs["src_tokens"])
    with pytest.raises(ValueError, match="need all positions at once"):
        model.decoder(inputs["prev_output_tokens"], memory, {}, alignment_layer=0)


@pytest.mark.parametrize("name", ["token_embeddings", "full_context_alignment", "nonsense"])
def test_unknown_arguments_are_no_secret(model, inputs, name):
    for call in (model, model.encoder, model.decoder):
        known = inputs if call is model else {}
        with pytest.raises(TypeError, match=name):
            call(**known, **{name: 1})


def test_a_part_of_a_state_dict_is_loaded(build, inputs):
    model, other = build(seed=1), build(seed=2)
    mine = {n: t.clone() for n, t in model.state_dict().items() if n.startswith("encoder.")}
    kept = other.decoder.layers[0].feed_forward.inner.weight.clone()
    missing = other.load_state_dict(mine, strict=False)
    assert missing.missing_keys and not missing.unexpected_keys
    torch.testing.assert_close(other.encoder(**_source(inputs)), model.encoder(**_source(inputs)))
    assert torch.equal(other.decoder.layers[0].feed_forward.inner.weight, kept)
    del mine["encoder.layers.0.self_attn.k_proj.weight"]
    with pytest.raises(RuntimeError, match=r"encoder\.layers\.0\.self_attn\.q_proj\.weight"):
        other.load_state_dict(mine | dict(other.decoder.state_dict(prefix="decoder.")))


def _source(inputs):
    return {"src_tokens": inputs["src_tokens"]}


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_pretrained_component_is_loaded_by_fairseq(checkpoint, data, side):
    (model,), _cfg, _task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], {"data": str(data)}
    )
    part = getattr(model, side)
    expected = {name: t.clone() for name, t in part.state_dict().items()}
    for parameter in part.parameters():
        nn.init.zeros_(parameter)
    found = checkpoint_utils.load_pretrained_component_from_model(part, str(checkpoint))
    for name, tensor in found.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


def test_a_second_copy_of_the_plugin_is_refused(tmp_path, monkeypatch):
    import transformer_plugin

    shutil.copytree(transformer_plugin.__path__[0], tmp_path / "second_copy")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit, match=r"already imported from .*: remove .*copy$"):
        import second_copy  # noqa: F401
    for name in [name for name in sys.modules if name.split(".")[0] == "second_copy"]:
        del sys.modules[name]
