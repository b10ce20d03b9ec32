"""The Transformer of Figure 1, in torch alone."""

from __future__ import annotations

from torch import Tensor, nn

from .decoder import Decoder
from .encoder import Encoder
from .initialisation import initialise, initialise_embedding
from .layers import LayerShape
from .positional_encoding import SinusoidalPositionalEncoding


class Transformer(nn.Module):
    """Encoder and decoder with a shared vocabulary, initialised as in the authors' release.

    One matrix serves both embeddings and the pre-softmax linear map (section 3.4).

    Args:
        num_words: V.
        padding_idx: the id of padding.
        shape: hyperparameters of a layer; by default the base model's.
        num_layers: N, for the encoder and the decoder each.
    """

    def __init__(
        self,
        num_words: int,
        padding_idx: int,
        shape: LayerShape | None = None,
        num_layers: int = 6,
    ) -> None:
        super().__init__()
        shape = LayerShape() if shape is None else shape
        embedding = nn.Embedding(num_words, shape.d_model, padding_idx)
        initialise_embedding(embedding)
        positions = SinusoidalPositionalEncoding(shape.d_model)
        output = nn.Linear(shape.d_model, num_words, bias=False)
        output.weight = embedding.weight
        self.encoder = Encoder(embedding, positions, shape, num_layers)
        self.decoder = Decoder(embedding, positions, output, shape, num_layers)
        initialise(self, "paper")

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits ``[B, T, V]`` of the token after each target token (teacher forcing).

        Args:
            source: ids, ``[B, S]``, padded on either side.
            target: ids shifted right by one, ``[B, T]``, padded on the right.
        """
        memory, packing, _ = self.encoder.encode(source)
        x, target_packing, _ = self.decoder.decode(target, memory, packing)
        return target_packing.pad(self.decoder.output_layer(x))
