"""A decoder as a careful user of torch writes it: scaled_dot_product_attention, one matrix for queries, keys and values."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench import text
from bench.rows import Shape, TextRow


class Block(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.heads, self.rate = s.heads, s.dropout
        self.norm, self.mlp_norm = nn.LayerNorm(s.dim), nn.LayerNorm(s.dim)
        self.qkv, self.out = nn.Linear(s.dim, 3 * s.dim), nn.Linear(s.dim, s.dim)
        self.up, self.down, self.dropout = nn.Linear(s.dim, s.hidden), nn.Linear(s.hidden, s.dim), nn.Dropout(s.dropout)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=rate)
        x = x + self.dropout(self.out(y.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.down(F.gelu(self.up(self.mlp_norm(x)), approximate="tanh")))


class Decoder(nn.Module):
    """One matrix for input and output."""

    def __init__(self, s: Shape, length: int):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(s.vocab, s.dim), nn.Embedding(length, s.dim)
        self.dropout, self.norm = nn.Dropout(s.dropout), nn.LayerNorm(s.dim)
        self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.normal_(part.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.dropout(self.tokens(tokens) + self.positions.weight[: tokens.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def build(row: TextRow, device: str, how: str) -> Callable[[int], int]:
    torch.manual_seed(1)
    return text.trainer(Decoder(row.shape, max(1024, row.length)), _objective, row, device, how)


def _objective(model: nn.Module, tokens: Tensor, expected: Tensor) -> Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1), expected.flatten())
