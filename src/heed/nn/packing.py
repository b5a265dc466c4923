"""Packed sequences: many sequences in one row without padding, and attention within each."""

import warnings
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

SHORT = 128  # tokens: a sequence of at most this length fits into one tile of an attention kernel


class SequenceOffsets(NamedTuple):
    """The start of each sequence in a row of t tokens, and the end of the last; an upper bound of their lengths; the
    position of each token within its sequence.
    """

    starts: Int[Tensor, " n"]
    longest: int
    positions: Int[Tensor, " t"]

    def twice(self) -> "SequenceOffsets":
        """The same sequences twice."""
        starts = torch.cat([self.starts, self.starts[1:] + self.starts[-1]])
        return SequenceOffsets(starts, self.longest, self.positions.repeat(2))


class PackedMask(NamedTuple):
    """A mask: the queries of sequence i attend to the keys of sequence i."""

    queries: SequenceOffsets
    keys: SequenceOffsets


class WindowMask(NamedTuple):
    """A mask for `rows` concatenated sequences of equal `length`: each attends to itself."""

    rows: int
    length: int

    def packed(self, device: torch.device) -> PackedMask:
        """The same, with offsets. Lengths are rounded up to those of kernels."""
        starts = torch.arange(self.rows + 1, dtype=torch.int32, device=device) * self.length
        longest = max(16, 1 << (self.length - 1).bit_length())
        offsets = SequenceOffsets(starts, longest, torch.arange(self.length, device=device).repeat(self.rows))
        return PackedMask(offsets, offsets)


# Of attention over windows, fastest first. All windows have one shape, so that cuDNN plans once.
BACKENDS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def attend_windows(
    query: Float[Tensor, "t dim"],
    key: Float[Tensor, "t dim"],
    value: Float[Tensor, "t dim"],
    mask: WindowMask,
    head_dim: int,
    causal: bool,
    dropout: float = 0.0,
) -> Float[Tensor, "t dim"]:
    """Self-attention within each window."""
    q, k, v = (part.view(mask.rows, mask.length, -1, head_dim).transpose(1, 2) for part in (query, key, value))
    backends = BACKENDS
    if q.is_cuda and SDPBackend.CUDNN_ATTENTION in BACKENDS and not _cudnn_agrees(q.device, head_dim, mask.length):
        backends = [own for own in BACKENDS if own is not SDPBackend.CUDNN_ATTENTION]
    with sdpa_kernel(backends, set_priority=True):
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
    return y.transpose(1, 2).flatten(0, 1).flatten(1)


@cache
def _cudnn_agrees(device: torch.device, head_dim: int, length: int) -> bool:
    """Whether cuDNN's attention works here and matches torch's; tried once, in bfloat16."""

    def computed(backend: SDPBackend) -> Tensor:
        size = 2 * length * 3 * 2 * head_dim
        given = torch.linspace(0, size, size, device=device).sin().view(2, length, 3, 2, head_dim).bfloat16()
        given.requires_grad_()
        with sdpa_kernel([backend]):
            y = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in given.unbind(2)), is_causal=True)
        (grad,) = torch.autograd.grad(y, given, y.detach())
        return torch.cat([y.detach().transpose(1, 2).flatten(), grad.flatten()]).float()

    try:
        with torch.inference_mode(False), torch.enable_grad():
            ours, theirs = computed(SDPBackend.CUDNN_ATTENTION), computed(SDPBackend.FLASH_ATTENTION)
        difference = float((ours - theirs).norm() / theirs.norm())
        reason = "" if difference < 0.02 else f"its result differs from torch's by {difference:.1%}"
    except RuntimeError as error:
        reason = _first_line(error)
    if reason:
        warnings.warn(f"cuDNN attention is unavailable; using torch's, which is slower: {reason}", stacklevel=2)
    return not reason


@cache
def _flash_runs(device: torch.device, dtype: torch.dtype, head_dim: int, drops: bool) -> bool:
    """Whether torch has a flash kernel for packed sequences here, with dropout if it `drops`, and its backward pass;
    tried once.
    """
    try:
        with torch.inference_mode(False), torch.random.fork_rng([device] if drops else []), torch.enable_grad():
            starts = torch.tensor([0, 3, 8], dtype=torch.int32, device=device)
            q = torch.ones(8, 1, head_dim, dtype=dtype, device=device).requires_grad_()
            y = _flash_attention(q, q, q, (starts, starts, 5, 5), True, 0.5 if drops else 0.0)
            torch.autograd.grad(y, q, torch.ones_like(y))
    except (RuntimeError, TypeError, ImportError, AttributeError) as error:
        how = "packed attention with dropout" if drops else "packed attention"
        warnings.warn(f"{how} uses padding here, which is slower: {_first_line(error)}", stacklevel=2)
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def _flash_attention(
    q: Tensor, k: Tensor, v: Tensor, bounds: tuple[Tensor, Tensor, int, int], causal: bool, dropout: float
) -> Tensor:
    """The flash kernel for packed sequences, (t, h, d); `bounds` are the starts of queries and keys, and the longest."""
    if dropout:  # for which `varlen_attn` has no argument, but the kernel that it calls has
        return torch.ops.aten._flash_attention_forward(q, k, v, *bounds, dropout, causal, False)[0]
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(q, k, v, *bounds, window_size=(-1, 0) if causal else (-1, -1))


def attend_packed(
    query: Float[Tensor, "1 h q d"],
    key: Float[Tensor, "1 h k d"],
    value: Float[Tensor, "1 h k d"],
    mask: PackedMask,
    causal: bool,
    dropout: float = 0.0,
) -> Float[Tensor, "1 h q d"]:
    """softmax(query . key / sqrt(d)) . value within each sequence: with torch's varlen kernel, or padded."""
    half = query.is_cuda and query.dtype in (torch.bfloat16, torch.float16)
    if half and _flash_runs(query.device, query.dtype, query.shape[-1], dropout > 0):
        parts = [part[0].transpose(0, 1) for part in (query, key, value)]
        bounds = (mask.queries.starts, mask.keys.starts, mask.queries.longest, mask.keys.longest)
        return _flash_attention(*parts, bounds, causal, dropout).transpose(0, 1)[None]
    slots, lengths = [padded_slots(offsets) for offsets in mask], mask.keys.starts.diff()
    shapes = [(len(lengths), offsets.longest) for offsets in mask]
    q, k, v = (
        part[0].new_zeros(part.shape[1], shape[0] * shape[1], part.shape[3]).index_copy(1, slot, part[0])
        .unflatten(1, shape).transpose(0, 1)
        for part, shape, slot in zip((query, key, value), (shapes[0], shapes[1], shapes[1]),
                                     (slots[0], slots[1], slots[1]), strict=True)
    )  # fmt: skip
    if causal and mask.queries is mask.keys:  # padding comes last, where no token before it looks
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return y.transpose(0, 1).flatten(1, 2).index_select(1, slots[0])[None]
    position = torch.arange(mask.keys.longest, device=query.device)
    allowed = (position < lengths.clamp(min=1)[:, None])[:, None, None]  # an empty sequence sees one zero, not nothing
    if causal:
        allowed = allowed & (position <= torch.arange(mask.queries.longest, device=query.device)[:, None])
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout)
    return y.transpose(0, 1).flatten(1, 2).index_select(1, slots[0])[None]


def padded_rows(x: Float[Tensor, "1 t k"], offsets: SequenceOffsets, fill: float) -> Float[Tensor, "n longest k"]:
    """Packed sequences, each in its own row, and `fill` after it."""
    shape = len(offsets.starts) - 1, offsets.longest
    rows = x.new_full((shape[0] * shape[1], x.shape[2]), fill)
    return rows.index_copy(0, padded_slots(offsets), x[0]).unflatten(0, shape)


def padded_slots(offsets: SequenceOffsets) -> Int[Tensor, " t"]:
    """The index of each token in the flattened, padded batch."""
    token = torch.arange(offsets.positions.numel(), device=offsets.positions.device)
    sequence = torch.bucketize(token, offsets.starts[1:], right=True)
    return sequence * offsets.longest + offsets.positions
