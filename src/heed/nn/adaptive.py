"""Adaptive input and softmax: tokens in clusters by frequency, rare ones with narrower embeddings (Grave et al.,
2017; Baevski and Auli, 2019).
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


class AdaptiveVocabulary(nn.Module):
    """Token embeddings and next-token log probabilities from the same matrices; ids must be ordered by frequency.
    `cutoffs` are the first ids of the clusters after the first. Cluster i has embeddings of width dim / divisor^i,
    which a matrix projects to `dim`; with a divisor of 1 there are no such matrices. The first cluster is predicted
    together with the clusters themselves. Without cutoffs and with a divisor of 1, it is an embedding and a softmax
    with tied weights.
    """

    def __init__(self, vocab_size: int, dim: int, cutoffs: Sequence[int] = (), divisor: int = 1):
        super().__init__()
        self.bounds = [*pairwise([0, *cutoffs, vocab_size])]
        sizes = [(end - start, dim // divisor**i) for i, (start, end) in enumerate(self.bounds)]
        self.tables = nn.ModuleList(nn.Embedding(count, width) for count, width in sizes)
        self.biases = nn.ParameterList(torch.zeros(count) for count, _ in sizes)
        self.wider = nn.ModuleList(nn.Linear(w, dim, bias=False) for _, w in sizes) if divisor > 1 else None
        self.head = nn.Linear(dim, dim, bias=False) if divisor > 1 else None  # the first cluster's at the output
        self.clusters = nn.Linear(dim, len(cutoffs)) if cutoffs else None

    @property
    def fixed_shapes(self) -> bool:
        """Whether all tensor shapes follow from that of the input, as a CUDA graph needs."""
        return len(self.bounds) == 1

    def forward(self, tokens: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows dim"]:
        if len(self.bounds) == 1:
            return self._vectors(0, tokens)
        flat = tokens.flatten()
        places = self._members(flat)
        parts = [self._vectors(i, flat[where] - self.bounds[i][0]) for i, where in enumerate(places)]
        return torch.cat(parts)[torch.cat(places).argsort()].unflatten(0, tokens.shape)

    def _vectors(self, i: int, places: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows dim"]:
        x = self.tables[i](places)
        return x if self.wider is None else self.wider[i](x)

    def log_probs(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        """The log probability of every token."""
        first, *tails = self.bounds
        head = self._head(x)
        parts = [head[..., : first[1]]]
        parts += [head[..., first[1] + i, None] + self._tail(i + 1, x) for i in range(len(tails))]
        return torch.cat(parts, dim=-1)

    def nll(self, x: Float[Tensor, "n dim"], expected: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """-log p of the expected tokens, 0 where they are negative. Only tail clusters that occur are computed."""
        head, size = self._head(x), self.bounds[0][1]
        total = -head.gather(1, expected.clamp(0, size - 1)[:, None])[:, 0] * ((expected >= 0) & (expected < size))
        for i, where in enumerate(self._members(expected, first=1), 1):
            tail = self._tail(i, x[where]).gather(1, expected[where, None] - self.bounds[i][0])[:, 0]
            total = total.index_add(0, where, -(head[where, size + i - 1] + tail))
        return total

    def _members(self, tokens: Int[Tensor, " n"], first: int = 0) -> list[Int[Tensor, " m"]]:
        """The positions of the tokens of each cluster, from the `first` on. Waits for the device."""
        return [((tokens >= start) & (tokens < end)).nonzero()[:, 0] for start, end in self.bounds[first:]]

    def _head(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows first"]:
        """The log probabilities of the tokens of the first cluster, and of the other clusters."""
        x = x if self.head is None else self.head(x)
        logits = F.linear(x, self.tables[0].weight, self.biases[0])
        return (logits if self.clusters is None else torch.cat([logits, self.clusters(x)], dim=-1)).log_softmax(dim=-1)

    def _tail(self, i: int, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows count"]:
        """The log-probabilities of the tokens of a cluster within it."""
        x = x if self.wider is None else x @ self.wider[i].weight
        return F.linear(x, self.tables[i].weight, self.biases[i]).log_softmax(dim=-1)
