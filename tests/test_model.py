"""The model: equality with stock fairseq, masks, batches, step-by-step decoding, wrong numbers."""

import math
import re
from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary

from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.model import VaswaniTransformer, layer_shape
from transformer_plugin.state_names import to_fairseq_names, to_our_names

PAD = 1
LAYERS = 2  # layers of the models of conftest.py
PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def pair(request, build, build_stock, stock_switches):
    """Stock fairseq and the plugin with fairseq's choices and the same weights."""
    stock = build_stock(**(PRE_NORM if request.param else {}))
    ours = build(pre_norm=request.param, **stock_switches)
    ours.load_state_dict(stock.state_dict())
    return stock, ours


def test_logits_equal_stock(pair, batch):
    stock, ours = pair
    sample = batch([7, 4, 6], [3, 6, 5])
    stock.encoder.padding_idx = PAD
    expected, _ = stock(**sample["net_input"])
    logits, _ = ours(**sample["net_input"])
    real = sample["target"].ne(PAD)
    torch.testing.assert_close(logits[real], expected[real], atol=1e-5, rtol=1e-5)
    encoded = ours.encoder(**{k: sample["net_input"][k] for k in ("src_tokens", "src_lengths")})
    expected = stock.encoder(sample["net_input"]["src_tokens"])
    real = sample["net_input"]["src_tokens"].ne(PAD).t()
    torch.testing.assert_close(
        encoded["encoder_out"][0][real], expected["encoder_out"][0][real], atol=1e-5, rtol=1e-5
    )


def test_loss_and_every_gradient_equal_stock(pair, batch, toy_task):
    stock, ours = pair
    sample = batch([7, 4, 6], [3, 6, 5])
    expected, _, expected_log = LabelSmoothedCrossEntropyCriterion(toy_task, False, 0.1)(
        stock, sample
    )
    loss, sample_size, log = VaswaniCrossEntropy(toy_task, 0.1, False)(ours, sample)
    expected.backward()
    loss.backward()
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(log["nll_loss"], expected_log["nll_loss"], atol=1e-5, rtol=1e-5)
    assert sample_size == 14
    shape = layer_shape(ours.cfg)
    width = shape.num_heads * shape.d_k
    ours_grads = to_fairseq_names({n: p.grad for n, p in ours.named_parameters()}, width, width)
    stock_grads = {n: p.grad for n, p in stock.named_parameters()}
    assert ours_grads.keys() == stock_grads.keys()
    for name, grad in stock_grads.items():
        torch.testing.assert_close(ours_grads[name], grad, atol=1e-5, rtol=1e-4, msg=name)


def test_state_goes_to_fairseqs_names_and_back(pair):
    stock, ours = pair
    state = ours.state_dict()
    assert set(stock.state_dict()) - set(state) == {"encoder.version", "decoder.version"}
    for name, tensor in state.items():
        assert torch.equal(tensor, stock.state_dict()[name]), name
    inner = to_our_names(state)
    for name, parameter in ours.named_parameters():
        assert torch.equal(inner[name], parameter), name


def test_side_of_the_padding_does_not_matter(build, batch):
    model = build().eval()
    right = batch([7, 4, 6], [3, 6, 5])
    left = batch([7, 4, 6], [3, 6, 5], left_pad_source=True)
    torch.testing.assert_close(model(**left["net_input"])[0], model(**right["net_input"])[0])


def test_sentences_padded_on_the_left_equal_stock(pair, batch, toy_task):
    stock, ours = pair
    sample = batch([7, 4, 6], [3, 6, 5], left_pad_source=True, left_pad_target=True)
    real = sample["target"].ne(PAD)
    assert not real[0, 0]
    expected, expected_extra = stock(**sample["net_input"])
    logits, _ = ours(**sample["net_input"])
    again, extra = ours(**sample["net_input"], alignment_layer=LAYERS - 1)
    for found in (logits, again):
        torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)
    weights, stock_weights = extra["attn"][0], expected_extra["attn"][0]
    torch.testing.assert_close(weights[real], stock_weights[real], atol=1e-5, rtol=1e-5)
    weights.view(-1)  # as fairseq's loss of alignments does
    losses = [
        LabelSmoothedCrossEntropyCriterion(toy_task, False, 0.1)(model, sample)[0]
        for model in (ours, stock)
    ]
    torch.testing.assert_close(*losses, atol=1e-5, rtol=1e-5)


def test_a_batch_gives_what_its_sentences_give_one_by_one(build, batch):
    model = build().eval()
    sample = batch([7, 3, 5], [2, 6, 4])
    together, _ = model(**sample["net_input"])
    for i, (source, target) in enumerate(zip([7, 3, 5], [2, 6, 4], strict=True)):
        alone, _ = model(
            sample["net_input"]["src_tokens"][i : i + 1, :source],
            torch.tensor([source]),
            sample["net_input"]["prev_output_tokens"][i : i + 1, :target],
        )
        torch.testing.assert_close(together[i, :target], alone[0], atol=1e-5, rtol=1e-5)


def test_a_position_sees_no_later_one(build, batch):
    model = build().eval()
    sample = batch([5, 5], [6, 6])["net_input"]
    before, _ = model(**sample)
    changed = sample["prev_output_tokens"].clone()
    changed[:, 3:] = 10
    after, _ = model(**(sample | {"prev_output_tokens": changed}))
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])


def test_every_real_source_token_is_seen_and_no_padding(build, batch):
    model = build().eval()
    sample = batch([5, 3], [4, 4])["net_input"]
    before, _ = model(**sample)
    for column in range(3):
        changed = sample["src_tokens"].clone()
        changed[1, column] = 50 + column
        after, _ = model(**(sample | {"src_tokens": changed}))
        assert not torch.allclose(before[1], after[1]), column
        torch.testing.assert_close(before[0], after[0])
    wider = torch.nn.functional.pad(sample["src_tokens"], (0, 4), value=PAD)
    after, _ = model(**(sample | {"src_tokens": wider}))
    torch.testing.assert_close(before, after, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pre_norm": True},
        {"positional_encoding": "learned"},
        {"attention_score": "general"},
        {"attention_score": "additive"},
        {"attention_window": 2},
        {"d_k": 5, "d_v": 9},
    ],
    ids=str,
)
def test_step_by_step_equals_all_at_once(build, batch, fields):
    model = build(**fields).eval()
    sample = batch([7, 3, 5], [6, 6, 6], left_pad_source=True)["net_input"]
    encoder_out = model.encoder(sample["src_tokens"], sample["src_lengths"])
    full, extra = model.decoder(sample["prev_output_tokens"], encoder_out)
    torch.testing.assert_close(full, model(**sample)[0])
    state: dict = {}
    for length in range(1, 7):
        logits, step_extra = model.decoder(
            sample["prev_output_tokens"][:, :length], encoder_out, incremental_state=state
        )
        torch.testing.assert_close(logits[:, 0], full[:, length - 1], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(
            step_extra["attn"][0][:, 0], extra["attn"][0][:, length - 1], atol=1e-5, rtol=1e-4
        )


def test_reordered_caches_continue_the_other_sentence(build, batch):
    model = build().eval()
    sample = batch([5, 4], [4, 4])["net_input"]
    encoder_out = model.encoder(sample["src_tokens"])
    prev = sample["prev_output_tokens"]
    state: dict = {}
    for length in (1, 2, 3):
        model.decoder(prev[:, :length], encoder_out, incremental_state=state)
    order = torch.tensor([1, 0, 1])
    model.decoder.reorder_incremental_state_scripting(state, order)
    logits, _ = model.decoder(
        prev[order], model.encoder.reorder_encoder_out(encoder_out, order), incremental_state=state
    )
    expected, _ = model.decoder(prev, encoder_out)
    torch.testing.assert_close(logits[:, 0], expected[order, 3], atol=1e-5, rtol=1e-5)


def test_one_matrix_for_all_embeddings_unless_untied(build):
    tied = build()
    assert tied.encoder.embed_tokens.weight is tied.decoder.embed_tokens.weight
    assert tied.decoder.output_projection.weight is tied.decoder.embed_tokens.weight
    half = build(untie_source_embedding=True)
    assert half.encoder.embed_tokens.weight is not half.decoder.embed_tokens.weight
    assert half.decoder.output_projection.weight is half.decoder.embed_tokens.weight
    untied = build(untie_embeddings=True)
    assert untied.decoder.output_projection.weight is not untied.decoder.embed_tokens.weight


def test_initial_values(build):
    model = build(d_model=64, d_ff=256)
    layer = model.encoder.layers[0]
    for matrix in (layer.self_attention.query_key_value.weight, layer.feed_forward.inner.weight):
        bound = (6 / sum(matrix.shape)) ** 0.5  # Glorot and Bengio, equation (16)
        assert bound * 0.98 < matrix.abs().max() <= bound
    assert layer.feed_forward.inner.bias.eq(0).all()
    words = model.encoder.embed_tokens.weight[2:]
    assert words.std().item() == pytest.approx(64**-0.5, rel=0.05)
    assert model.encoder.embed_tokens.weight[PAD].eq(0).all()


def test_width_not_divisible_by_heads_says_what_to_change(build):
    with pytest.raises(ValueError, match="--d-model 30 is not divisible by --num-heads 4"):
        build(d_model=30)


def test_different_dictionaries_cannot_share_an_embedding(build, dictionary):
    other = Dictionary()
    other.add_symbol("only")
    cfg = build().cfg
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=other)
    with pytest.raises(ValueError, match="--joined-dictionary"):
        VaswaniTransformer.build_model(cfg, task)


def test_bf16_is_near_fp32_with_its_idle_rows(build, batch, toy_task):
    sample = batch([7, 4, 6], [3, 6, 5])
    exact, half = build(), build().bfloat16()
    losses = []
    for model in (exact, half):
        loss, _, _ = VaswaniCrossEntropy(toy_task, 0.1, False)(model, sample)
        loss.backward()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=5e-3)
    for (name, one), other in zip(exact.named_parameters(), half.parameters(), strict=True):
        if one.grad.norm() > 1e-2:
            error = (other.grad.float() - one.grad).norm() / one.grad.norm()
            assert error < 0.2, name


def test_fairseqs_initialisation_with_values_of_another_width(build):
    """Each projection has Xavier's bound for its own shape."""
    model = build(initialisation="fairseq", d_model=64, num_heads=4, d_k=8, d_v=40)
    rows = {"q": 32, "k": 32, "v": 160}
    for name, weight in model.state_dict().items():
        if match := re.search(r"attn\.([qkv])_proj\.weight", name):
            bound = math.sqrt(6 / (rows[match[1]] + 64)) / math.sqrt(2)
            assert 0.97 * bound < weight.abs().max() <= bound, name
