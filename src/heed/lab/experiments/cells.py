"""The recurrent cells and layer norm written out gate by gate, to read alongside their formulas; the models use torch's.

Shapes: d the width of the input x, D the width of the state h. W_x has a block of D × d for each gate, W_h one of D × D,
and each bias one of D.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heed.nn.recurrent import GRU, LSTM, RNN, Recurrent, State

Input = Float[Tensor, "b d"]
Hidden = Float[Tensor, "b D"]
Weights = list[Tensor]


def rnn(x: Input, h: Hidden, weights: Weights) -> Hidden:
    """h(t) = tanh(W_x x + W_h h(t-1) + b)."""
    w_x, w_h, b_x, b_h = weights
    return torch.tanh(x @ w_x.T + b_x + h @ w_h.T + b_h)


def lstm(x: Input, h: Hidden, c: Hidden, weights: Weights) -> tuple[Hidden, Hidden]:
    """Gates for input, forgetting and output, a candidate g; c(t) = f c(t-1) + i g, h(t) = o tanh c(t)."""
    w_x, w_h, b_x, b_h = weights
    i, f, g, o = (x @ w_x.T + b_x + h @ w_h.T + b_h).chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru(x: Input, h: Hidden, weights: Weights) -> Hidden:
    """Gates for reset and update, a candidate n; h(t) = (1 - z) n + z h(t-1)."""
    w_x, w_h, b_x, b_h = weights
    r_x, z_x, n_x = (x @ w_x.T + b_x).chunk(3, dim=1)
    r_h, z_h, n_h = (h @ w_h.T + b_h).chunk(3, dim=1)
    r, z = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
    n = (n_x + r * n_h).tanh()
    return (1 - z) * n + z * h


def layer_norm(m: Float[Tensor, "*rows d"], alpha: Tensor, beta: Tensor, eps: float = 1e-5) -> Float[Tensor, "*rows d"]:
    """α (m - μ) / σ + β: μ and σ are of each row, α and β have one number for each column."""
    mu = m.mean(-1, keepdim=True)
    sigma = (m.var(-1, correction=0, keepdim=True) + eps).sqrt()
    return alpha * (m - mu) / sigma + beta


def of_recurrent(dim: int = 3, hidden: int = 4, rows: int = 5) -> dict[str, float]:
    """The maximum difference between each cell written out and that of the models."""
    x = torch.randn(rows, dim, dtype=torch.float64)
    h, c = (torch.randn(rows, hidden, dtype=torch.float64) for _ in range(2))
    written = {"rnn": lambda w: rnn(x, h, w), "lstm": lambda w: lstm(x, h, c, w)[0], "gru": lambda w: gru(x, h, w)}
    kinds: dict[str, type[Recurrent]] = {"rnn": RNN, "lstm": LSTM, "gru": GRU}
    found = {}
    for name, kind in kinds.items():
        net = kind(dim, hidden).double().requires_grad_(False)
        for weight in net.parameters():
            weight.normal_()  # biases too, which start as zeros
        ours, _ = net.step(x, State([(h, c)[: net.parts]]))
        found[name] = (written[name](net.layers[0]._flat_weights) - ours).abs().max().item()
    return found


def of_layer_norm(dim: int = 3, rows: int = 5) -> float:
    """The maximum difference between layer norm written out and torch's."""
    x, norm = torch.randn(rows, dim, dtype=torch.float64), nn.LayerNorm(dim, dtype=torch.float64).requires_grad_(False)
    for weight in norm.parameters():
        weight.normal_()
    return (layer_norm(x, norm.weight, norm.bias, norm.eps) - norm(x)).abs().max().item()
