"""The front end of a speech model: subsampling convolutions, and attention along time and frequency."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn import masks
from heed.nn.attention import attend

KERNEL = 3  # frames, and frequencies, that a convolution sees
GATED_KERNEL = 5  # frames that a gated one sees


def convolved(size: int | Int[Tensor, " b"], stride: int) -> int | Int[Tensor, " b"]:
    """The output length of a convolution without padding."""
    return (size - KERNEL) // stride + 1


class Attention2D(nn.Module):
    """2D attention along time and frequency, per channel (Dong et al., 2018), added to its input. Each channel of the
    convolved queries, keys and values is a head: frames attend to frames, and frequencies to frequencies.
    """

    def __init__(self, channels: int, heads: int):
        super().__init__()
        self.q, self.k, self.v = (nn.Conv2d(channels, heads, KERNEL, padding=1) for _ in range(3))
        self.out = nn.Conv2d(2 * heads, channels, KERNEL, padding=1)

    def forward(self, x: Float[Tensor, "b c t f"], valid: Bool[Tensor, "b t"]) -> Float[Tensor, "b c t f"]:
        """`x` is 0 after each recording, and so is the result."""
        keep = valid[:, None, :, None]
        q, k, v = (part(x) * keep for part in (self.q, self.k, self.v))
        over_time = attend(q, k, v, mask=masks.key_padding(valid)) * keep
        over_frequency = attend(*(part.mT for part in (q, k, v))).mT
        return (x + F.relu(self.out(torch.cat([over_time, over_frequency], dim=1)))) * keep


class GatedSubsampling(nn.Module):
    """Two convolutions along time with `strides` and gated linear units, as in fairseq's S2T (Wang et al., 2020).

    Padding is zeroed before each convolution, so that the batch does not matter.
    """

    least = 1  # frames that make a state

    def __init__(self, size: int, dim: int, channels: int, strides: tuple[int, int]):
        super().__init__()
        self.strides = strides
        sizes = ((size, channels), (channels // 2, 2 * dim))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(*own, GATED_KERNEL, stride=stride, padding=GATED_KERNEL // 2)
            for own, stride in zip(sizes, strides, strict=True)
        )

    def count(self, frames: int | Int[Tensor, " b"]) -> int | Int[Tensor, " b"]:
        for stride in self.strides:
            frames = (frames - 1) // stride + 1
        return frames

    def forward(
        self, features: Float[Tensor, "b t size"], lengths: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b s dim"], Int[Tensor, " b"]]:
        x, counts = features.mT, lengths
        for conv, stride in zip(self.convolutions, self.strides, strict=True):
            x = x * masks.from_lengths(counts, x.shape[2])[:, None]
            x, counts = F.glu(conv(x), dim=1), (counts - 1) // stride + 1
        return x.mT, counts


class Subsampling(nn.Module):
    """Two convolutions with `strides` in time, which each halve the frequencies, 2D attention, and a projection to
    `dim`. Convolutions have no padding in time, so each state depends only on frames of its own recording.
    """

    def __init__(self, size: int, dim: int, channels: int, strides: tuple[int, int], attentions: int, heads: int):
        super().__init__()
        self.strides = strides
        self.first = nn.Conv2d(1, channels, KERNEL, stride=(strides[0], 2))
        self.second = nn.Conv2d(channels, channels, KERNEL, stride=(strides[1], 2))
        self.attention = nn.ModuleList(Attention2D(channels, heads) for _ in range(attentions))
        self.out = nn.Linear(channels * convolved(convolved(size, 2), 2), dim)

    @property
    def least(self) -> int:
        """The minimum number of frames for one state."""
        return (KERNEL - 1) * self.strides[0] + KERNEL

    def count(self, frames: int | Int[Tensor, " b"]) -> int | Int[Tensor, " b"]:
        return convolved(convolved(frames, self.strides[0]), self.strides[1])

    def forward(
        self, features: Float[Tensor, "b t size"], lengths: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b s dim"], Int[Tensor, " b"]]:
        x = F.relu(self.second(F.relu(self.first(features[:, None]))))
        counts = self.count(lengths)
        valid = masks.from_lengths(counts, x.shape[2])
        if len(self.attention):
            x = x * valid[:, None, :, None]
        for attention in self.attention:
            x = attention(x, valid)
        return self.out(x.transpose(1, 2).flatten(2)), counts
