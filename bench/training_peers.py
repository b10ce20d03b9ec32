"""Transformers of other libraries, with a typical training loop."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_plugin.config import VaswaniConfig

MAX_POSITIONS = 1024
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PACKAGES = {"torch": "torch", "marian": "transformers"}  # what a peer needs


def installed(peer: str) -> bool:
    """Whether the peer's package is installed."""
    return importlib.util.find_spec(PACKAGES[peer]) is not None


class TorchTransformer(nn.Module):
    """``torch.nn.Transformer`` between one shared embedding matrix and its transpose."""

    def __init__(self, cfg: VaswaniConfig, words: int, pad: int) -> None:
        super().__init__()
        self.pad, self.scale = pad, math.sqrt(cfg.d_model)
        self.embedding = nn.Embedding(words, cfg.d_model, padding_idx=pad)
        nn.init.normal_(self.embedding.weight, std=cfg.d_model**-0.5)
        self.register_buffer("positions", sinusoids(MAX_POSITIONS, cfg.d_model))
        self.dropout = nn.Dropout(cfg.dropout)
        self.transformer = nn.Transformer(
            cfg.d_model,
            cfg.num_heads,
            cfg.encoder_layers,
            cfg.decoder_layers,
            cfg.d_ff,
            cfg.dropout,
            norm_first=cfg.pre_norm,
            batch_first=True,
        )

    def embed(self, tokens: Tensor) -> Tensor:
        """``[B, L]`` to ``[B, L, D]``."""
        return self.dropout(self.embedding(tokens) * self.scale + self.positions[: tokens.size(1)])

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        """Logits ``[B, T, V]`` of sources ``[B, S]`` and targets shifted right ``[B, T]``."""
        source_padding = source.eq(self.pad)
        future = torch.ones(
            previous.size(1), previous.size(1), dtype=torch.bool, device=source.device
        ).triu(1)
        x = self.transformer(
            self.embed(source),
            self.embed(previous),
            tgt_mask=future,
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=previous.eq(self.pad),
            memory_key_padding_mask=source_padding,
            tgt_is_causal=True,
        )
        return F.linear(x, self.embedding.weight)


def sinusoids(positions: int, d_model: int) -> Tensor:
    """Section 3.5, ``[positions, D]``."""
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
    angles = torch.arange(positions)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)


class MarianTransformer(nn.Module):
    """Hugging Face's Marian."""

    def __init__(self, cfg: VaswaniConfig, words: int, pad: int, eos: int) -> None:
        super().__init__()
        # transformers imports torchaudio if installed; fairseq's does not load with torch 2.13.
        sys.modules.setdefault("torchaudio", None)  # type: ignore[arg-type]
        from transformers import MarianConfig, MarianMTModel

        sides = {}
        for side in ("encoder", "decoder"):
            sides[f"{side}_layers"] = getattr(cfg, f"{side}_layers")
            sides[f"{side}_ffn_dim"] = cfg.d_ff
            sides[f"{side}_attention_heads"] = cfg.num_heads
        self.pad = pad
        self.marian = MarianMTModel(
            MarianConfig(
                vocab_size=words,
                d_model=cfg.d_model,
                **sides,
                dropout=cfg.dropout,
                attention_dropout=0.0,
                activation_dropout=0.0,
                activation_function="relu",
                max_position_embeddings=MAX_POSITIONS,
                scale_embedding=True,
                pad_token_id=pad,
                eos_token_id=eos,
                forced_eos_token_id=eos,
                decoder_start_token_id=eos,
                use_cache=False,
            )
        )

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        """Logits ``[B, T, V]`` of sources ``[B, S]`` and targets shifted right ``[B, T]``."""
        return self.marian(
            input_ids=source,
            attention_mask=source.ne(self.pad),
            decoder_input_ids=previous,
        ).logits


def build_peer(
    name: str, cfg: VaswaniConfig, dictionary: Dictionary, precision: str, device: str
) -> Callable[[dict[str, Any]], bool]:
    """One update: forward, under autocast for lower precisions, backward, Adam."""
    words, pad = len(dictionary), dictionary.pad()
    if name == "torch":
        model: nn.Module = TorchTransformer(cfg, words, pad)
    else:
        model = MarianTransformer(cfg, words, pad, dictionary.eos())
    model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-9)
    dtype = PRECISIONS[precision]
    scaler = torch.amp.GradScaler(device, init_scale=128, enabled=precision == "fp16")  # fairseq's

    def update(batch: dict[str, Any]) -> bool:
        source, previous, target = (
            tokens.to(device)
            for tokens in (
                batch["net_input"]["src_tokens"],
                batch["net_input"]["prev_output_tokens"],
                batch["target"],
            )
        )
        optimizer.zero_grad()
        with torch.autocast(device, dtype, enabled=precision != "fp32"):
            logits = model(source, previous)
            loss = F.cross_entropy(
                logits.flatten(0, 1), target.flatten(), ignore_index=pad, label_smoothing=0.1
            )
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        before = scaler.get_scale()
        scaler.update()
        loss.item()  # to log it
        return scaler.get_scale() >= before

    return update
