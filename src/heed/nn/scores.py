"""Score functions a(s, h) of attention in recurrent decoders: e_ij = a(s_{i-1}, h_j).

s is the query, a decoder state; h are the keys, the encoder states. The formulas are those of the table in the lecture
notes on seq2seq, and `General` of Luong et al. (2015). `mix` of nn/attention.py applies the softmax that gives α_ij.
`keys` is what depends on h alone: it is computed once per sentence.
"""

import math

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

Queries = Float[Tensor, "b q dim"]
Keys = Float[Tensor, "b k dim"]
Scores = Float[Tensor, "b q k"]


class Dot(nn.Module):
    """s·h: "dot-product attention" (Luong et al., 2015)."""

    def keys(self, h: Keys) -> Keys:
        return h

    def forward(self, s: Queries, keys: Keys) -> Scores:
        return s @ keys.mT


class ScaledDot(Dot):
    """s·h / √n, n the size of both: "scaled dot-product attention" (Vaswani et al., 2017)."""

    def forward(self, s: Queries, keys: Keys) -> Scores:
        return super().forward(s, keys) / math.sqrt(s.shape[-1])


class General(Dot):
    """s·W h (Luong et al., 2015)."""

    def __init__(self, dim: int):
        super().__init__()
        self.key = nn.Linear(dim, dim, bias=False)

    def keys(self, h: Keys) -> Keys:
        return self.key(h)


class Content(Dot):
    """β s·h / (|s| |h|): "content-based attention" (Graves et al., 2014).

    The notes give the cosine. The paper multiplies it by a strength β that the decoder computes at each step: without
    it no weight could be more than e² times another.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.strength = nn.Linear(dim, 1)

    def keys(self, h: Keys) -> Keys:
        return F.normalize(h, dim=-1)

    def forward(self, s: Queries, keys: Keys) -> Scores:
        return F.softplus(self.strength(s)) * super().forward(F.normalize(s, dim=-1), keys)


class Additive(nn.Module):
    """v·tanh(W_1 s + W_2 h): "additive attention" (Bahdanau et al., 2015)."""

    def __init__(self, dim: int):
        super().__init__()
        self.query, self.key = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, 1, bias=False)

    def keys(self, h: Keys) -> Keys:
        return self.key(h)

    def forward(self, s: Queries, keys: Keys) -> Scores:
        return self.v((self.query(s)[:, :, None] + keys[:, None]).tanh())[..., 0]


Score = Dot | Additive
