# %% [markdown]
# # A walk through "Attention Is All You Need"

# %%
"""Prints what the equations of the paper do, with the plugin's own modules, and draws pictures.

python examples/annotated_transformer.py                 # less than a minute on one core
python examples/annotated_transformer.py --run runs/toy  # also the attention of a trained model
"""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from transformer_plugin.modules.adam import Adam
from transformer_plugin.modules.attention import AttentionScore, attention
from transformer_plugin.modules.label_smoothing import smoothed_cross_entropy
from transformer_plugin.modules.layers import LayerShape
from transformer_plugin.modules.positional_encoding import positional_encoding
from transformer_plugin.modules.schedule import learning_rate
from transformer_plugin.modules.transformer import Transformer

PAD, EOS, FIRST, WORDS, LENGTH = 0, 1, 2, 12, 8  # the copy task: ten symbols, eight in a sentence


def heat_map(axis: plt.Axes, weights: Tensor, title: str, x: str, y: str) -> None:
    axis.imshow(weights.detach(), aspect="auto")
    axis.set(title=title, xlabel=x, ylabel=y)


# %% [markdown]
# ## Section 3.2.1: scaled dot-product attention
# A query is compared with every key. The values are averaged with the softmax of the scores:
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^T}{\sqrt{d_k}}\right)V \tag{1}$$
# A mask hides padding, and in the decoder also the positions not yet written (section 3.2.3).


# %%
def equation_1() -> plt.Figure:
    """Compares attention() with the formula, and draws what the masks of section 3.2.3 do."""
    length, d_k = 6, 16
    q, k, v = torch.randn(3, 1, 1, length, d_k)  # one sentence, one head
    score = AttentionScore("scaled_dot", num_heads=1, d_k=d_k)
    by_hand = (q @ k.transpose(2, 3) / math.sqrt(d_k)).softmax(dim=-1) @ v
    found, _ = attention(q, k, v, score)
    print(f"equation (1): largest difference from the formula {(found - by_hand).abs().max():.1e}")
    padding = torch.tensor([False] * 4 + [True] * 2)  # True = padding
    masks = {
        "encoder: all positions": None,
        "two positions are padding": ~padding.expand(length, length),
        "decoder: no later position": torch.ones(length, length, dtype=torch.bool).tril(),
    }
    figure, axes = plt.subplots(1, len(masks), figsize=(9, 3.2), layout="tight")
    for axis, (title, allowed) in zip(axes, masks.items(), strict=True):
        _, weights = attention(q, k, v, score, allowed, need_weights=True)
        heat_map(axis, weights[0, 0], title, "keys", "queries")
    return figure


# %% tags=["active-ipynb"]
# torch.manual_seed(1)
# equation_1();

# %% [markdown]
# ## Section 3.5: positional encoding
# Attention does not know the order of its keys. The encoding gives each position a pattern of
# sines and cosines, with wavelengths from $2\pi$ to $20000\pi$. Nearby positions look similar.


# %%
def section_3_5() -> plt.Figure:
    """The encoding as a picture, and some of its dimensions as curves."""
    table = positional_encoding(100, 128)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="tight")
    heat_map(left, table, "PE(pos, i)", "dimension i", "position")
    for i in (4, 5, 20, 40):
        right.plot(table[:, i], label=f"dimension {i}")
    right.set(title="some dimensions", xlabel="position")
    right.legend()
    near, far = table[50] @ table[51], table[50] @ table[80]
    print(f"positional encoding: position 50 times 51 is {near:.1f}, times 80 is {far:.1f}")
    return figure


# %% tags=["active-ipynb"]
# section_3_5();

# %% [markdown]
# ## Section 5.3: the schedule
# The learning rate grows for `warmup_updates` and then falls with the square root of the step:
# $$lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5}, step \cdot warmup^{-1.5}) \tag{3}$$


# %%
def equation_3() -> plt.Figure:
    """The rate of the base and big models, and with a longer warm-up."""
    figure, axis = plt.subplots(figsize=(5, 3.2), layout="tight")
    for d_model, warmup in ((512, 4000), (512, 8000), (1024, 4000)):
        steps = range(1, 12_000, 50)
        rates = [learning_rate(step, d_model, warmup) for step in steps]
        axis.plot(steps, rates, label=f"d_model {d_model}, warm-up {warmup}")
    axis.set(xlabel="update", ylabel="learning rate")
    axis.legend()
    print(f"equation (3): the base model's peak rate is {learning_rate(4000, 512, 4000):.2e}")
    return figure


# %% tags=["active-ipynb"]
# equation_3();

# %% [markdown]
# ## Section 5.4: label smoothing
# With smoothing, the loss is lowest if the right word has a probability of $1 - \epsilon$, not 1.


# %%
def section_5_4() -> plt.Figure:
    """The loss by the probability that the model gives to the right word."""
    probability = torch.linspace(0.5, 0.999, 200)
    logits = ((1 - probability) / (WORDS - 1)).log()[:, None].repeat(1, WORDS)
    logits[:, 0] = probability.log()
    figure, axis = plt.subplots(figsize=(5, 3.2), layout="tight")
    for epsilon in (0.0, 0.1, 0.2):
        loss, _ = smoothed_cross_entropy(logits, torch.zeros(200, dtype=torch.long), epsilon)
        axis.plot(probability, loss, label=f"epsilon {epsilon:g}")
        best = probability[loss.argmin()]
        print(f"label smoothing {epsilon:g}: the loss is least at probability {best:.2f}")
    axis.set(xlabel="probability of the right word", ylabel="loss")
    axis.legend()
    return figure


# %% tags=["active-ipynb"]
# section_5_4();

# %% [markdown]
# ## Section 3.1: a whole Transformer learns to copy
# Two layers of encoder and decoder learn to repeat eight symbols. At each position the decoder has
# read the words so far and predicts the next. Greedy decoding takes the likeliest, again and again.
# In the last layer, each word of the copy attends to its own position in the source.


# %%
def batch(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, what the decoder reads, and what it should say, ``[B, L]`` each."""
    symbols = torch.randint(FIRST, WORDS, (size, LENGTH))
    target = torch.cat([symbols, torch.full((size, 1), EOS)], dim=1)
    return target, target.roll(1, dims=1), target  # the decoder begins with end of sentence


def copy_task(updates: int) -> Transformer:
    """Trains a small model in plain torch."""
    shape = LayerShape(d_model=64, d_ff=128, num_heads=4, dropout=0.0)
    model = Transformer(WORDS, PAD, shape, num_layers=2)
    optimizer = Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, updates + 1):
        optimizer.param_groups[0]["lr"] = 0.3 * learning_rate(step, shape.d_model, 100)
        source, read, target = batch(64)
        logits = model(source, read)
        loss, _ = smoothed_cross_entropy(logits.flatten(0, 1), target.flatten(), epsilon=0.1)
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
        if step % max(1, updates // 5) == 0:
            right = (logits.argmax(-1) == target).float().mean()
            print(f"copy task: update {step}, loss {loss.mean():.3f}, {right:.0%} of the words")
    return model.eval()


@torch.inference_mode()
def greedy(model: Transformer, source: Tensor) -> Tensor:
    """The likeliest next word, again and again; ``[B, LENGTH + 1]``."""
    read = torch.full((len(source), 1), EOS)
    for _ in range(LENGTH + 1):
        read = torch.cat([read, model(source, read)[:, -1:].argmax(-1)], dim=1)
    return read[:, 1:]


@torch.inference_mode()
def copied_attention(model: Transformer) -> plt.Figure:
    """The source words that each target word attends to."""
    source, read, _ = batch(1)
    print(f"greedy decoding of {source[0].tolist()}: {greedy(model, source)[0].tolist()}")
    memory, packing, _ = model.encoder.encode(source)
    _, _, layers = model.decoder.decode(read, memory, packing, need_weights=True)
    heads = layers[-1][1][0]  # encoder-decoder attention, [H, T, S]
    figure, axes = plt.subplots(1, len(heads), figsize=(12, 3.2), layout="tight")
    for number, (axis, weights) in enumerate(zip(axes, heads, strict=True)):
        heat_map(axis, weights, f"last layer, head {number}", "source", "target")
    return figure


# %% tags=["active-ipynb"]
# copied_attention(copy_task(updates=300));

# %% [markdown]
# ## The attention of a trained model
# `make demo` trains a model that translates English to German in minutes.


# %%
def trained_attention(run: Path, sentence: str = "Is a table black?") -> plt.Figure:
    """The last layer's encoder-decoder attention, averaged over its heads."""
    import transformer_plugin

    model = transformer_plugin.load(run, cpu=True)
    found = model.attention(sentence)
    figure, axis = plt.subplots(figsize=(5, 4.5), layout="tight")
    heat_map(axis, found.encoder_decoder[-1].mean(dim=0), "encoder-decoder attention", "", "")
    axis.set_xticks(range(len(found.source)), found.source, rotation=60)
    axis.set_yticks(range(len(found.target)), found.target)
    print(f"{sentence} -> {model.translate([sentence])[0].text}")
    return figure


# %% tags=["active-ipynb"]
# trained_attention(Path("../runs/toy"));


# %% tags=["active-py"]
def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("pictures"), help="folder for pictures")
    parser.add_argument("--updates", type=int, default=300, help="of the copy task")
    parser.add_argument("--run", type=Path, help="folder of a trained experiment, such as runs/toy")
    args = parser.parse_args()
    torch.manual_seed(1)
    figures = {
        "masks": equation_1(),
        "positional_encoding": section_3_5(),
        "schedule": equation_3(),
        "label_smoothing": section_5_4(),
        "copy_attention": copied_attention(copy_task(args.updates)),
    }
    if args.run:
        figures["trained_attention"] = trained_attention(args.run)
    args.output.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(args.output / f"{name}.png")
    print(f"pictures: {args.output}")


if __name__ == "__main__":
    main()
