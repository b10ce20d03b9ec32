"""The whole model of Figure 1 against sections 3.1 to 3.5 written out in NumPy, in float64."""

import math

import numpy as np
import pytest
import torch

HEADS, D_MODEL, EPS = 4, 32, 1e-6


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Paper:
    """One sentence pair through the paper's equations.

    Args:
        weights: a model's, by fairseq's names.
    """

    def __init__(self, weights, layers, learned_positions=False):
        self.w = {name: value.double().numpy() for name, value in weights.items()}
        self.layers = layers
        self.learned = learned_positions

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def layer_norm(self, name, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPS)
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def embed(self, side, tokens):
        """Section 3.4's embedding times sqrt(d_model), plus section 3.5's encoding."""
        x = self.w[f"{side}.embed_tokens.weight"][tokens] * math.sqrt(D_MODEL)
        if self.learned:  # Table 3, row E; two rows come before the first position
            return x + self.w[f"{side}.embed_positions.weight"][2 : 2 + len(tokens)]
        for pos in range(len(tokens)):
            for i in range(D_MODEL // 2):
                angle = pos / 10000 ** (2 * i / D_MODEL)
                x[pos, 2 * i] += math.sin(angle)
                x[pos, 2 * i + 1] += math.cos(angle)
        return x

    def attention(self, name, queries, keys, causal=False):
        """MultiHead(Q, K, V) of section 3.2.2, head by head, by equation (1)."""
        q, k, v = (
            self.linear(f"{name}.{part}_proj", x)
            for part, x in (("q", queries), ("k", keys), ("v", keys))
        )
        width, heads = D_MODEL // HEADS, []
        for h in range(HEADS):
            columns = slice(h * width, (h + 1) * width)
            scores = q[:, columns] @ k[:, columns].T / math.sqrt(width)
            if causal:
                scores[np.triu_indices(len(queries), 1)] = -np.inf
            heads.append(softmax(scores) @ v[:, columns])
        return self.linear(f"{name}.out_proj", np.concatenate(heads, axis=1))

    def feed_forward(self, name, x):
        """Equation (2)."""
        return self.linear(f"{name}.fc2", np.maximum(0, self.linear(f"{name}.fc1", x)))

    def encode(self, source):
        x = self.embed("encoder", source)
        for n in range(self.layers):
            layer = f"encoder.layers.{n}"
            y = self.attention(f"{layer}.self_attn", x, x)
            x = self.layer_norm(f"{layer}.self_attn_layer_norm", x + y)
            y = self.feed_forward(layer, x)
            x = self.layer_norm(f"{layer}.final_layer_norm", x + y)
        return x

    def logits(self, source, shifted_target):
        memory = self.encode(source)
        x = self.embed("decoder", shifted_target)
        for n in range(self.layers):
            layer = f"decoder.layers.{n}"
            y = self.attention(f"{layer}.self_attn", x, x, causal=True)
            x = self.layer_norm(f"{layer}.self_attn_layer_norm", x + y)
            y = self.attention(f"{layer}.encoder_attn", x, memory)
            x = self.layer_norm(f"{layer}.encoder_attn_layer_norm", x + y)
            y = self.feed_forward(layer, x)
            x = self.layer_norm(f"{layer}.final_layer_norm", x + y)
        return x @ self.w["encoder.embed_tokens.weight"].T  # the one matrix of section 3.4


@pytest.mark.parametrize("positions", ["paper", "learned"])
def test_defaults_compute_the_papers_equations(build, batch, positions):
    model = build(positional_encoding=positions)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:  # else they start at 0 and 1
                parameter.add_(torch.randn_like(parameter) / 10)
    sample = batch([7, 4, 6], [3, 6, 5])["net_input"]
    logits, _ = model(**sample)
    paper = Paper(model.state_dict(), layers=2, learned_positions=positions == "learned")
    for i, (source, target) in enumerate(((7, 3), (4, 6), (6, 5))):
        expected = paper.logits(
            sample["src_tokens"][i, :source].numpy(),
            sample["prev_output_tokens"][i, :target].numpy(),
        )
        np.testing.assert_allclose(logits[i, :target].detach(), expected, atol=1e-5, rtol=1e-5)
