"""Text from a decoder-only model on the GPU: a cache of fixed size, and one token of every row per step.

A step chooses its tokens itself, so that the host launches steps without waiting for their results.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.cuda.buffers import Size
from heed.decoding.cuda.plain import Residual, TorchOps
from heed.decoding.cuda.search import rounded
from heed.decoding.cuda.weights import DecoderWeights
from heed.decoding.sample import filter_min_p, filter_top_k_top_p, filter_typical

CHECK_EVERY = 16  # steps: how often the host asks whether all texts have ended
MAX_BUFFERS = 8


class Sampling(NamedTuple):
    """How tokens are sampled."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0

    def choose(self, logp: Float[Tensor, "r vocab"], uniform: Float[Tensor, " r"]) -> Int[Tensor, " r"]:
        """Sample one token per row with a uniform number: the first at which the cumulative probability exceeds it."""
        logp = filter_top_k_top_p((logp.double() / self.temperature).log_softmax(dim=-1), self.top_k, self.top_p)
        summed = filter_typical(filter_min_p(logp, self.min_p), self.typical_p).softmax(dim=-1).cumsum(dim=-1)
        return (summed <= uniform[:, None] * summed[:, -1:]).sum(dim=-1).clamp(max=logp.shape[-1] - 1)


class TextRules(NamedTuple):
    """At most `length` tokens, up to the token `last` (negative: no end token), and none of `never`. Without
    `sampling` the most likely token is chosen.
    """

    length: int
    last: int
    never: tuple[int, ...] = ()
    sampling: Sampling | None = None


class TextBuffers:
    """The state of texts being generated, updated in place. `generated` is the position of `token`, which is read
    next.
    """

    def __init__(self, weights: DecoderWeights, size: Size):
        self.size, rows, most = size, size.sentences, size.max_length
        device, exact = weights.output.device, weights.accumulate_dtype

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.keys = zeros(len(weights.target.layers), rows, most, 2 * weights.dim, dtype=weights.dtype)
        self.token, self.generated, self.done = zeros(rows), zeros(rows), zeros(rows) + 1
        self.ancestors = zeros(rows, 1, 1)  # of a single beam: its own row
        self.step, self.limit, self.last = (zeros(1, dtype=torch.long) for _ in range(3))
        self.tokens, self.logps = zeros(rows, most, dtype=torch.long), zeros(rows, most, dtype=exact)
        self.uniform = zeros(rows, most, dtype=torch.float64)
        self.banned = zeros(weights.vocab, dtype=torch.bool)
        self.graph: torch.cuda.CUDAGraph | None = None

    def assign(self, prompts: Sequence[Sequence[int]], rules: TextRules, uniform: Tensor | None) -> None:
        """Start texts whose prompts have been read except for the last token; unused rows are done."""
        rest = [0] * (self.size.sentences - len(prompts))
        plan = [[own[-1] for own in prompts] + rest, [len(own) - 1 for own in prompts] + rest]
        plan.append([0] * len(prompts) + [1] * len(rest))
        uploaded = torch.tensor(plan, dtype=torch.int32).to(self.token.device)
        for own, new in zip((self.token, self.generated, self.done), uploaded, strict=True):
            own.copy_(new)
        self.step.zero_()
        self.limit.fill_(rules.length)
        self.last.fill_(rules.last)
        self.banned.zero_()
        if rules.never:
            self.banned[list(rules.never)] = True
        if uniform is not None:
            self.uniform[: len(uniform), : uniform.shape[1]] = uniform.to(self.uniform.device)


def _layers(
    weights: DecoderWeights, ops: TorchOps, residual: Residual, attend: Callable[[int, Tensor], Tensor]
) -> Residual:
    """All layers; `attend` is the attention of one, from its queries, keys and values."""
    for i, (attention, mlp) in enumerate(weights.target.layers):
        y, residual = ops.project_in(residual, attention)
        residual = ops.project_out(attend(i, y), attention.project_out, residual)
        y, residual = ops.project_in(residual, mlp)
        residual = ops.project_out(y, mlp.project_out, residual)
    return residual


def read_prompts(weights: DecoderWeights, ops: TorchOps, tokens: Int[Tensor, "n t"], buffers: TextBuffers) -> None:
    """Fill the cache with prompts of at most t tokens. The slots after a shorter one are overwritten before they are
    read.
    """
    n, length = tokens.shape
    positions = torch.arange(length, dtype=torch.int32, device=tokens.device).repeat(n)

    def attend(layer: int, qkv: Tensor) -> Tensor:
        buffers.keys[layer, :n, :length] = qkv.view(n, length, -1)[:, :, weights.dim :]
        q, k, v = (part.transpose(1, 2) for part in qkv.view(n, length, 3, weights.heads, -1).unbind(2))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(0, 1).flatten(1)

    _layers(weights, ops, ops.embed(weights.target, tokens.flatten().int(), positions), attend)


def text_step(weights: DecoderWeights, ops: TorchOps, b: TextBuffers, sampling: Sampling | None) -> None:
    """Read a token of every row, and choose the next."""
    residual = ops.embed(weights.target, b.token, b.generated)
    residual = _layers(weights, ops, residual, lambda layer, qkv: ops.self_attention(qkv, b, layer, weights.heads))
    logits = ops.logits(residual, weights)[:, : weights.vocab]
    logp = (logits if weights.bias is None else logits + weights.bias).log_softmax(dim=-1)
    logp = logp.masked_fill(b.banned, -torch.inf)
    uniform = b.uniform.index_select(1, b.step)[:, 0]
    chosen = logp.argmax(dim=-1) if sampling is None else sampling.choose(logp, uniform)
    b.tokens.index_copy_(1, b.step, chosen[:, None])
    b.logps.index_copy_(1, b.step, logp.gather(1, chosen[:, None]))
    b.step += 1
    b.done.logical_or_((chosen == b.last) | (b.step >= b.limit))
    running = b.done == 0
    b.token.copy_(torch.where(running, chosen.int(), b.token))
    b.generated += running.int()


class TextRunner:
    """Caches buffers by size and runs steps in them, one operation at a time; GraphTextRunner uses CUDA graphs."""

    def __init__(self, weights: DecoderWeights):
        self.weights = weights
        self.buffers: dict[tuple[Size, Sampling | None], TextBuffers] = {}
        self.reading = TorchOps()  # for prompts

    def get_buffers(self, rows: int, longest: int, sampling: Sampling | None) -> TextBuffers:
        """Buffers that are large enough, cached or new; the most recently used are last."""
        size = Size(rounded(rows), 1, max(32, 1 << (longest - 1).bit_length()))
        found = self.buffers.pop((size, sampling), None)
        while found is None and len(self.buffers) >= MAX_BUFFERS:
            self.buffers.pop(next(iter(self.buffers)))
        self.buffers[size, sampling] = found or self.make_buffers(size, sampling)
        return self.buffers[size, sampling]

    def make_buffers(self, size: Size, sampling: Sampling | None) -> TextBuffers:
        return TextBuffers(self.weights, size)

    def step(self, buffers: TextBuffers, sampling: Sampling | None) -> None:
        text_step(self.weights, TorchOps(), buffers, sampling)


@torch.inference_mode()
def generate(
    runner: TextRunner, prompts: Sequence[Sequence[int]], rules: TextRules, uniform: Float[Tensor, "n t"] | None = None
) -> list[tuple[list[int], list[float]]]:
    """The continuation of each prompt, and the log probability of each token; `uniform` are random numbers for
    sampling. A prompt has at least one token, and with `rules.length` more must not exceed the positions of the
    model.
    """
    longest = max(map(len, prompts))
    buffers = runner.get_buffers(len(prompts), longest - 1 + rules.length, rules.sampling)
    if longest > 1:
        read = torch.tensor([[*own[:-1], *[0] * (longest - len(own))] for own in prompts])
        read_prompts(runner.weights, runner.reading, read.to(buffers.token.device), buffers)
    buffers.assign(prompts, rules, uniform)
    steps = 0
    while steps < rules.length:
        runner.step(buffers, rules.sampling)
        steps += 1
        if rules.last >= 0 and steps % CHECK_EVERY == 0 and bool(buffers.done.all()):
            break
    tokens, logps = (part[: len(prompts), :steps].tolist() for part in (buffers.tokens, buffers.logps))
    sizes = [own.index(rules.last) + 1 if rules.last in own else steps for own in tokens]
    return [(ids[:size], own[:size]) for ids, own, size in zip(tokens, logps, sizes, strict=True)]
