"""torch's own nn.Transformer in training, with embeddings and an output layer around it."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench import plain
from bench.rows import Shape, TrainRow


class Translation(nn.Module):
    """One matrix for source, target and output; dropout where heed's and Marian's have it, and nowhere else."""

    def __init__(self, s: Shape, longest: int):
        super().__init__()
        self.tokens = nn.Embedding(s.vocab, s.dim)
        nn.init.normal_(self.tokens.weight, std=s.dim**-0.5)
        self.body = nn.Transformer(s.dim, s.heads, s.layers, s.layers, s.hidden, s.dropout, batch_first=True)
        self.body.encoder.norm = self.body.decoder.norm = None  # the others norm in their layers alone
        for layer in (*self.body.encoder.layers, *self.body.decoder.layers):
            layer.dropout.p = 0.0
            for part in layer.children():
                if isinstance(part, nn.MultiheadAttention):
                    part.dropout = 0.0
        self.dropout, self.scale = nn.Dropout(s.dropout), math.sqrt(s.dim)
        angle = torch.arange(longest)[:, None] * 10000.0 ** (-torch.arange(0, s.dim, 2) / s.dim)
        self.register_buffer("waves", torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1))
        self.register_buffer("future", torch.ones(longest, longest, dtype=torch.bool).triu(1))

    def forward(self, sources: Tensor, inputs: Tensor) -> Tensor:
        padding = ~plain.valid(sources)
        x = self.body(
            self._embed(sources), self._embed(inputs), tgt_mask=self.future, tgt_is_causal=True,
            src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )  # fmt: skip
        return F.linear(x, self.tokens.weight)

    def _embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.tokens(tokens) * self.scale + self.waves)


def build(row: TrainRow, device: str, how: str) -> Callable[[int], int]:
    return plain.trainer(Translation(row.shape, row.length), _objective, row, device, how)


def _objective(model: nn.Module, sources: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    return plain.loss(model(sources, inputs), labels)
