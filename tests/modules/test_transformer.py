"""The model in torch alone, with padded sentences and a mask."""

import pytest
import torch
from torch import nn

from transformer_plugin.modules.encoder import Encoder
from transformer_plugin.modules.initialisation import initialise
from transformer_plugin.modules.key_values import WholeSentences
from transformer_plugin.modules.layers import DecoderLayer, EncoderLayer, LayerShape
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.modules.packing import Packing
from transformer_plugin.modules.positional_encoding import SinusoidalPositionalEncoding
from transformer_plugin.modules.transformer import Transformer

B, S, T, D, H, WORDS, PAD = 3, 7, 5, 32, 4, 20, 0
SHAPE = LayerShape(d_model=D, d_ff=48, num_heads=H, dropout=0.0)


@pytest.fixture
def mask():
    """Padding on the right of one sentence and on the left of another."""
    found = torch.zeros(B, S, dtype=torch.bool)
    found[1, 4:], found[2, :2] = True, True
    return found


def test_the_base_model_is_the_default():
    attention = MultiHeadAttention(512, 8)
    assert (attention.d_k, attention.d_v) == (64, 64)
    assert LayerShape() == LayerShape(512, 2048, 8, None, None, 0.1)
    with pytest.raises(ValueError, match="512 is not divisible by num_heads 3: give d_k"):
        MultiHeadAttention(512, 3)


def test_padded_sentences_give_what_each_gives_alone(mask):
    torch.manual_seed(1)
    attention, layer = MultiHeadAttention(D, H), EncoderLayer(SHAPE)
    x = torch.randn(B, S, D)
    for module in (attention, layer):
        y, weights = module(x, padding_mask=mask, need_weights=True)
        assert y.shape == (B, S, D) and weights.shape == (B, H, S, S)
        assert torch.equal(y[mask], torch.zeros(5, D))
        for i in range(B):
            alone, _ = module(x[i : i + 1, ~mask[i]])
            torch.testing.assert_close(y[i, ~mask[i]], alone[0], rtol=1e-4, atol=1e-5)


def test_a_decoder_layer_sees_no_later_position_and_no_padded_memory(mask):
    torch.manual_seed(2)
    layer = DecoderLayer(SHAPE)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    y, *_ = layer(x, memory=memory, memory_padding_mask=mask)
    x[:, 3:], memory[mask] = 9.0, 9.0
    changed, *_ = layer(x, memory=memory, memory_padding_mask=mask)
    torch.testing.assert_close(changed[:, :3], y[:, :3])
    assert not torch.allclose(changed[:, 3:], y[:, 3:])
    with pytest.raises(ValueError, match="needs key_values or memory"):
        layer(x)


def test_rows_without_padding_give_the_same(mask):
    torch.manual_seed(3)
    layer, x = EncoderLayer(SHAPE), torch.randn(B, S, D)
    padded, _ = layer(x, padding_mask=mask)
    packing = Packing.of_lengths((~mask).sum(dim=1), S)
    rows, _ = layer(x[~mask], WholeSentences(packing))
    torch.testing.assert_close(rows, padded[~mask])


def test_the_whole_model():
    torch.manual_seed(4)
    model = Transformer(WORDS, PAD, SHAPE, num_layers=2)
    source, target = torch.randint(1, WORDS, (B, S)), torch.randint(1, WORDS, (B, T))
    logits = model(source, target)
    assert logits.shape == (B, T, WORDS)
    longer = torch.nn.functional.pad(source, (0, 3), value=PAD)
    torch.testing.assert_close(model(longer, target), logits, rtol=1e-4, atol=1e-5)
    shared = sum(p.numel() for p in model.parameters())
    # Embedding; a layer's attentions, networks and norms: weights and biases.
    attention, network, norm = 4 * (D * D + D), 2 * D * 48 + 48 + D, 2 * D
    assert shared == WORDS * D + 2 * (3 * attention + 2 * network + 5 * norm)


def test_every_norm_has_the_epsilon_of_the_shape():
    shape = LayerShape(D, 48, H, pre_norm=True, layer_norm_eps=0.01)
    model = Transformer(WORDS, PAD, shape, num_layers=1)
    epsilons = [each.eps for each in model.modules() if isinstance(each, nn.LayerNorm)]
    assert epsilons == [0.01] * (2 + 3 + 2)  # norms of both layers and of the stacks


@pytest.mark.parametrize("scheme", ["paper", "fairseq"])
def test_projections_without_biases_are_initialised(scheme):
    """As the paper writes them."""
    model = Transformer(WORDS, PAD, SHAPE, num_layers=1)
    for each in model.modules():
        if isinstance(each, nn.Linear):
            each.bias = None
            nn.init.zeros_(each.weight)
    initialise(model.encoder, scheme)
    projections = (p for p in model.encoder.layers.parameters() if p.dim() == 2)
    assert all(p.any() for p in projections) == (scheme == "paper")  # fairseq's leaves torch's
    assert model(torch.tensor([[3, 4]]), torch.tensor([[1]])).isfinite().all()


def test_an_embedding_without_padding_is_refused():
    """At the first batch, its error was of a comparison with None."""
    with pytest.raises(ValueError, match="the embedding has no padding_idx"):
        Encoder(nn.Embedding(WORDS, D), SinusoidalPositionalEncoding(D), SHAPE, 1)
