"""Derivatives of what a network says at one place by what it was at another, by autograd and by formula."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.lab import stacks
from heed.nn.positions import Sinusoidal
from heed.nn.recurrent import GRU, LSTM, RNN, Recurrent, State

RECURRENT: dict[str, type[Recurrent]] = {"RNN": RNN, "GRU": GRU, "LSTM": LSTM}
ATTENTION = {"self-attention": "post-norm", "no residuals": "neither"}
NAMES = (*RECURRENT, *ATTENTION)
LAYERS, HEADS = 6, 4


class Reader(nn.Module):
    """Self-attention over a text: the encoder of a Transformer, or one with a part left out."""

    def __init__(self, kind: str, dim: int, length: int):
        super().__init__()
        self.positions = Sinusoidal(length, dim)
        self.stack = stacks.build(kind, dim, HEADS, LAYERS)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.stack(x + self.positions(0, x.shape[1]))


def build(name: str, dim: int, length: int) -> nn.Module:
    """A network by its name, its weights drawn as the models of the house draw theirs."""
    net = RECURRENT[name](dim, dim) if name in RECURRENT else Reader(ATTENTION[name], dim, length)
    return net.double().requires_grad_(False)


def through_states(net: Recurrent, inputs: Float[Tensor, "t dim"]) -> list[Float[Tensor, "dim remembered"]]:
    """∂h_t/∂h_k for k = t - 1, t - 2, ..., 1, where h_k is all that is remembered at k: of an LSTM, h and c."""
    state, kept = net.step(inputs[:1], net.zero_state(1))[1], []
    for place in range(1, len(inputs)):
        # copies: an LSTM's h is made of its c, and what c does by way of that h is not to be counted twice
        own = tuple(part.clone() if part.requires_grad else part.requires_grad_() for part in state.layers[0])
        kept.append(own)
        state = net.step(inputs[place : place + 1], State([own]))[1]
    h = state.top[0]
    eye = torch.eye(len(h), dtype=h.dtype)
    flat = [part for own in kept for part in own]
    grads = torch.autograd.grad(h, flat, eye, is_grads_batched=True)
    return [torch.cat([g[:, 0] for g in grads[at : at + net.parts]], 1) for at in range(0, len(flat), net.parts)][::-1]


def through_layers(net: Reader, inputs: Float[Tensor, "t dim"]) -> list[Float[Tensor, "dim dim"]]:
    """∂h_t/∂h_k for k = t - 1, ..., 1: h_k is what the first layer is given at place k, h_t what the last one says at t."""
    x = inputs[None].requires_grad_()
    h = net(x)[0, -1]
    grads = torch.stack([torch.autograd.grad(one, x, retain_graph=True)[0][0] for one in h])
    return [grads[:, place] for place in range(len(inputs) - 2, -1, -1)]


def product(net: RNN, inputs: Float[Tensor, "t dim"]) -> list[Float[Tensor, "dim dim"]]:
    """The same by the formula of the lecture notes, ∂h_t/∂h_k = ∏ Wᵀ diag f′ over j = k + 1, ..., t.

    Their ∂h_t/∂h_k has a row for each number of h_k, autograd's a row for each of h_t: it is returned turned.
    """
    weight_in, weight, bias_in, bias = net.layers[0]._flat_weights
    h, slopes = torch.zeros_like(bias), []
    for x in inputs:
        h = torch.tanh(weight @ h + bias + weight_in @ x + bias_in)
        slopes.append(1 - h.square())
    found, so_far = [], torch.eye(len(h), dtype=h.dtype)
    for slope in slopes[:0:-1]:
        so_far = weight.mT @ torch.diag(slope) @ so_far
        found.append(so_far.mT)
    return found


def scaled_rnn(largest: float, dim: int) -> RNN:
    """An RNN whose W is `largest` times an orthogonal matrix: all its singular values are that."""
    net = RNN(dim, dim)
    net.layers[0].weight_hh_l0.data.mul_(largest)
    return net.double().requires_grad_(False)


def loss_by_word(net: nn.Module, words: Float[Tensor, "t dim"], output: Float[Tensor, "vocab dim"], answer: int):
    """How much each word's vector moves the loss of the answer, which comes after the last."""
    x = words[None].requires_grad_()
    y = net(x)
    h = (y[0] if isinstance(net, Recurrent) else y)[0, -1]
    loss = F.cross_entropy((output @ h)[None], torch.tensor([answer]))
    return torch.autograd.grad(loss, x)[0][0].norm(dim=1).tolist()
