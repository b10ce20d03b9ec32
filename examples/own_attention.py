"""A new attention score in a few lines, trained through fairseq.

    python examples/own_attention.py runs/toy

The score is that of a Gaussian kernel: exp(-|q - k|^2 / (2 sqrt(d_k))) instead of equation (1)'s
exp(q k / sqrt(d_k)). The term |q|^2 is the same for all keys, so it cancels in the softmax.
"""

import argparse
import sys
from pathlib import Path

from fairseq.models import register_model
from fairseq_cli.train import cli_main
from torch import Tensor

import transformer_plugin
from transformer_plugin.architectures import register_preset
from transformer_plugin.config import VaswaniConfig
from transformer_plugin.model import VaswaniTransformer
from transformer_plugin.modules.attention import AttentionScore
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.presets import PRESETS

FLAGS = """--task vaswani_translation --arch gaussian_tiny
    --criterion vaswani_cross_entropy --optimizer vaswani_adam --lr-scheduler noam --lr 1.5
    --warmup-updates 400 --max-tokens 2048 --max-epoch 3 --no-epoch-checkpoints"""


class GaussianScore(AttentionScore):
    """(q k - |k|^2 / 2) / sqrt(d_k)."""

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """Scores ``[B, H, T, S]`` of queries ``[B, H, T, K]`` and keys ``[B, H, S, K]``."""
        norms = k.square().sum(dim=-1).unsqueeze(2)  # [B, H, 1, S]
        return (q @ k.transpose(2, 3) - norms / 2) * self.scale


@register_model("gaussian_transformer", dataclass=VaswaniConfig)
class GaussianTransformer(VaswaniTransformer):
    """The Transformer with this score in every attention layer."""

    @classmethod
    def build_model(cls, cfg, task):
        model = super().build_model(cfg, task)
        for block in list(model.modules()):
            if isinstance(block, MultiHeadAttention):
                block.score = GaussianScore("scaled_dot", block.num_heads, block.d_k)
        return model


register_preset("gaussian_tiny", PRESETS["vaswani_tiny"], model="gaussian_transformer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="has data-bin/ and subwords/, such as runs/toy")
    parser.add_argument("--save-dir", type=Path, default=Path("own_attention"))
    parser.add_argument("--sentence", default="Is a table black?", help="translated at the end")
    args, flags = parser.parse_known_args()  # the others are fairseq-train's
    sys.argv[1:] = [str(args.run / "data-bin"), "--save-dir", str(args.save_dir)]
    sys.argv += [*FLAGS.split(), *flags]
    cli_main()
    model = transformer_plugin.load(args.run, args.save_dir / "checkpoint_last.pt", cpu=True)
    print(f"{args.sentence} -> {model.translate([args.sentence])[0].text}")


if __name__ == "__main__":
    main()
