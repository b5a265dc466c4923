"""Jacobians of a network's output at one position with respect to another position, by autograd and by formula."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.lab.experiments import stacks
from heed.nn.positions import Sinusoidal
from heed.nn.recurrent import GRU, LSTM, RNN, Recurrent, State

RECURRENT: dict[str, type[Recurrent]] = {"RNN": RNN, "GRU": GRU, "LSTM": LSTM}
ATTENTION = {"self-attention": "post-norm", "no residuals": "neither"}
NAMES = (*RECURRENT, *ATTENTION)
DEPTH, HEADS = 6, 4


class SelfAttention(nn.Module):
    """The encoder of a Transformer over sinusoidal positions, or one without residuals and norms."""

    def __init__(self, kind: str, dim: int, length: int):
        super().__init__()
        self.positions = Sinusoidal(length, dim)
        self.stack = stacks.build_stack(kind, dim, HEADS, DEPTH)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.stack(x + self.positions(0, x.shape[1]))


def build_network(name: str, dim: int, length: int) -> nn.Module:
    """A network by its name, initialized as our models are."""
    net = RECURRENT[name](dim, dim) if name in RECURRENT else SelfAttention(ATTENTION[name], dim, length)
    return net.double().requires_grad_(False)


def of_recurrent(net: Recurrent, inputs: Float[Tensor, "t dim"]) -> list[Float[Tensor, "dim state"]]:
    """∂h_t/∂h_k for k = t - 1, t - 2, ..., 1, where h_k is the whole state at k: of an LSTM, h and c."""
    state, states = net.step(inputs[:1], net.zero_state(1))[1], []
    for position in range(1, len(inputs)):
        # clones: an LSTM's h is a function of its c, and the gradient of c by way of that h must not be counted twice
        parts = tuple(part.clone() if part.requires_grad else part.requires_grad_() for part in state.layers[0])
        states.append(parts)
        state = net.step(inputs[position : position + 1], State([parts]))[1]
    h = state.top[0]
    eye = torch.eye(len(h), dtype=h.dtype)
    flat = [part for parts in states for part in parts]
    grads = torch.autograd.grad(h, flat, eye, is_grads_batched=True)
    return [torch.cat([g[:, 0] for g in grads[i : i + net.parts]], 1) for i in range(0, len(flat), net.parts)][::-1]


def of_attention(net: SelfAttention, inputs: Float[Tensor, "t dim"]) -> list[Float[Tensor, "dim dim"]]:
    """∂h_t/∂h_k for k = t - 1, ..., 1: h_k is the input of the first layer at k, h_t the output of the last one at t."""
    x = inputs[None].requires_grad_()
    h = net(x)[0, -1]
    grads = torch.stack([torch.autograd.grad(one, x, retain_graph=True)[0][0] for one in h])
    return [grads[:, position] for position in range(len(inputs) - 2, -1, -1)]


def by_product(net: RNN, inputs: Float[Tensor, "t dim"]) -> list[Float[Tensor, "dim dim"]]:
    """The same by the formula of the lecture notes, ∂h_t/∂h_k = ∏ Wᵀ diag f′ over j = k + 1, ..., t.

    Their ∂h_t/∂h_k has a row for each element of h_k, autograd's a row for each of h_t: this returns the transpose.
    """
    weight_in, weight, bias_in, bias = net.layers[0]._flat_weights
    h, derivatives = torch.zeros_like(bias), []
    for x in inputs:
        h = torch.tanh(weight @ h + bias + weight_in @ x + bias_in)
        derivatives.append(1 - h.square())
    jacobians, product = [], torch.eye(len(h), dtype=h.dtype)
    for derivative in derivatives[:0:-1]:
        product = weight.mT @ torch.diag(derivative) @ product
        jacobians.append(product.mT)
    return jacobians


def scaled_rnn(largest: float, dim: int) -> RNN:
    """An RNN whose W is `largest` times an orthogonal matrix, so that all its singular values are `largest`."""
    net = RNN(dim, dim)
    net.layers[0].weight_hh_l0.data.mul_(largest)
    return net.double().requires_grad_(False)


def loss_gradients(net: nn.Module, words: Float[Tensor, "t dim"], output: Float[Tensor, "vocab dim"], answer: int):
    """The norm of the gradient of the loss at each word's vector, where `answer` is the next word."""
    x = words[None].requires_grad_()
    y = net(x)
    h = (y[0] if isinstance(net, Recurrent) else y)[0, -1]
    loss = F.cross_entropy((output @ h)[None], torch.tensor([answer]))
    return torch.autograd.grad(loss, x)[0][0].norm(dim=1).tolist()
