"""The generator of HiFi-GAN (Kong et al., 2020): a vocoder, which turns log-mel frames into audio samples. Transposed
convolutions upsample a frame to `hop` samples; each is followed by residual blocks with several receptive fields.
"""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

ENDS = 7  # samples, or frames, that the first and the last convolution see
LAST_SLOPE = 0.01  # of the last leaky ReLU, whatever the others have


@dataclass(frozen=True)
class HiFiGANConfig:
    inputs: int = 80  # numbers of a frame
    rate: int = 16_000  # sample rate in Hz
    channels: int = 512  # of the first convolution; each upsampling halves them
    upsampling: list[int] = field(default_factory=lambda: [4, 4, 4, 4])  # samples made of one, step by step
    upsampling_kernels: list[int] = field(default_factory=lambda: [8, 8, 8, 8])
    kernels: list[int] = field(default_factory=lambda: [3, 7, 11])  # of the residual blocks after each upsampling
    dilations: list[list[int]] = field(default_factory=lambda: [[1, 3, 5]] * 3)  # of their convolutions
    slope: float = 0.1  # of leaky ReLU
    normalize: bool = False  # whether frames are normalized by a mean and a scale among the weights

    def __post_init__(self):
        if len(self.upsampling) != len(self.upsampling_kernels) or not self.upsampling:
            raise ValueError(
                f"upsampling has {len(self.upsampling)} steps and {len(self.upsampling_kernels)} kernels; they must match"
            )
        if len(self.kernels) != len(self.dilations) or not self.kernels:
            raise ValueError(f"there are {len(self.kernels)} kernels and {len(self.dilations)} lists of dilations")
        dilations = [own for each in self.dilations for own in each]
        if min(self.inputs, self.rate, self.channels, *self.upsampling, *self.kernels, *dilations) < 1:
            raise ValueError("sizes, kernels and dilations must be at least 1")
        if any(size % 2 == 0 for size in self.kernels):
            raise ValueError(f"kernels are {self.kernels}; each must be odd")
        for stride, size in zip(self.upsampling, self.upsampling_kernels, strict=True):
            if size < stride or (size - stride) % 2:
                raise ValueError(f"a kernel of upsampling is {size}; it must be {stride} plus an even number")
        if self.channels >> len(self.upsampling) < 1:
            raise ValueError(f"channels is {self.channels}; {len(self.upsampling)} steps of upsampling need more")

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return math.prod(self.upsampling)


class ResidualBlock(nn.Module):
    """Pairs of a dilated and a plain convolution, each pair added to its input."""

    def __init__(self, channels: int, kernel: int, dilations: list[int], slope: float):
        super().__init__()
        self.slope = slope

        def conv(dilation: int) -> nn.Conv1d:
            return nn.Conv1d(channels, channels, kernel, dilation=dilation, padding=dilation * (kernel - 1) // 2)

        self.dilated = nn.ModuleList(map(conv, dilations))
        self.plain = nn.ModuleList(conv(1) for _ in dilations)

    def forward(self, x: Float[Tensor, "b c n"]) -> Float[Tensor, "b c n"]:
        for dilated, plain in zip(self.dilated, self.plain, strict=True):
            x = x + plain(F.leaky_relu(dilated(F.leaky_relu(x, self.slope)), self.slope))
        return x


class HiFiGAN(nn.Module):
    """Log-mel frames in, samples from -1 to 1 out."""

    def __init__(self, config: HiFiGANConfig):
        super().__init__()
        self.config = c = config
        sizes = [c.channels >> i for i in range(len(c.upsampling) + 1)]
        self.first = nn.Conv1d(c.inputs, c.channels, ENDS, padding=ENDS // 2)
        self.upsamplers = nn.ModuleList(
            nn.ConvTranspose1d(sizes[i], sizes[i + 1], kernel, stride=stride, padding=(kernel - stride) // 2)
            for i, (stride, kernel) in enumerate(zip(c.upsampling, c.upsampling_kernels, strict=True))
        )
        self.blocks = nn.ModuleList(
            nn.ModuleList(ResidualBlock(size, *own, c.slope) for own in zip(c.kernels, c.dilations, strict=True))
            for size in sizes[1:]
        )
        self.last = nn.Conv1d(sizes[-1], 1, ENDS, padding=ENDS // 2)
        if c.normalize:
            self.register_buffer("mean", torch.zeros(c.inputs))
            self.register_buffer("scale", torch.ones(c.inputs))

    def forward(self, frames: Float[Tensor, "b t inputs"]) -> Float[Tensor, "b n"]:
        x = (frames - self.mean) / self.scale if self.config.normalize else frames
        x = self.first(x.mT)
        for upsampler, blocks in zip(self.upsamplers, self.blocks, strict=True):
            x = upsampler(F.leaky_relu(x, self.config.slope))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.last(F.leaky_relu(x, LAST_SLOPE)))[:, 0]
