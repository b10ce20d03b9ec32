"""Positional encodings: the paper's, tensor2tensor's, fairseq's and learned ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def positional_encoding(num_positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(same), section 3.5.

    Returns:
        ``[num_positions, D]``, sines and cosines interleaved, float32.
    """
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = torch.arange(num_positions, dtype=torch.float64)[:, None] / 10000**exponent
    table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    return table[:, :d_model].float()


def positional_encoding_halves(num_positions: int, d_model: int) -> Tensor:
    """All sines, then all cosines, of pos / 10000^(i / (d/2 - 1)): tensor2tensor and fairseq.

    Computed in float32, as in fairseq, so that the values agree to the last bit.

    Returns:
        ``[num_positions, D]``, float32; the last column is zero if D is odd.
    """
    half = d_model // 2
    rate = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / max(half - 1, 1)))
    angle = torch.arange(num_positions, dtype=torch.float)[:, None] * rate
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    return nn.functional.pad(table, (0, d_model % 2))


class SinusoidalPositionalEncoding(nn.Module):
    """A table of sinusoids that grows with the longest sentence seen. It is float32 whatever the
    model is converted to, and neither parameter nor buffer. A program may change the table, which
    then does not grow.

    Args:
        d_model: width of the model, D.
        halves: tensor2tensor's layout instead of the paper's.
        first_position: position of a sentence's first token (0 in the paper, 2 in fairseq).
        num_positions: initial size of the table.
    """

    def __init__(
        self,
        d_model: int,
        halves: bool = False,
        first_position: int = 0,
        num_positions: int = 1024,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.first_position = first_position
        self._encoding = positional_encoding_halves if halves else positional_encoding
        self.table = self._exact(first_position + num_positions)

    def _exact(self, num_rows: int) -> Tensor:
        with torch.inference_mode(False), torch.device("cpu"):  # a training may follow the search
            return self._encoding(num_rows, self.d_model)

    def forward(self, positions: Tensor, max_length: int) -> Tensor:
        """Encodings ``[N, D]`` of positions ``[N]``, all below ``max_length``, float32.

        Raises:
            ValueError: a sentence is longer than a table that a program has changed.
        """
        table, needed = self.table, self.first_position + max_length
        if needed > table.size(0):
            if not table.equal(self._exact(table.size(0)).to(table)):
                raise ValueError(
                    f"a sentence of {max_length} tokens exceeds the {table.size(0)} rows of"
                    " embed_positions.table, which was changed: assign a longer one, or drop the"
                    " sentence"
                )
            self.table = table = self._exact(2 * needed)
        if table.device != positions.device:
            with torch.inference_mode(False):
                table = table.to(positions.device)
            if not table.is_meta:  # whose values would be lost
                self.table = table
        return table[self.first_position :].index_select(0, positions)


class LearnedPositionalEncoding(nn.Module):
    """A learned vector for each position (Table 3, row E).

    Args:
        d_model: width of the model, D.
        max_positions: length of the longest sentence that can be encoded.
        first_position: rows kept before the first position, as fairseq's table has them.
    """

    def __init__(self, d_model: int, max_positions: int, first_position: int = 0) -> None:
        super().__init__()
        self.first_position = first_position
        self.max_positions = max_positions
        self.weight = nn.Parameter(torch.empty(first_position + max_positions, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, positions: Tensor, max_length: int) -> Tensor:
        """Encodings ``[N, D]`` of positions ``[N]``, all below ``max_length``.

        Raises:
            ValueError: a sentence is longer than ``max_positions``.
        """
        if max_length > self.max_positions:
            raise ValueError(
                f"a sentence of {max_length} tokens exceeds the {self.max_positions} learned"
                " positions; drop it, or train with larger --max-source-positions and"
                " --max-target-positions"
            )
        return nn.functional.embedding(positions + self.first_position, self.weight)
