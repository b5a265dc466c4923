"""Output distributions of pixels: 256 probabilities per channel, or a mixture of logistics for all channels."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

LEVELS = 256


class Categorical(nn.Module):
    """A categorical distribution over 256 values; each channel of a pixel is a separate position."""

    def __init__(self, dim: int):
        super().__init__()
        self.values, self.draws, self.out = 1, 1, nn.Linear(dim, LEVELS)

    def spread(self) -> None:
        """All values start equally probable."""

    def nll(
        self, states: Float[Tensor, "b t dim"], values: Int[Tensor, "b t 1"], expected: None = None
    ) -> Float[Tensor, " b"]:
        logits = exact_linear(states, self.out)
        return (
            F.cross_entropy(logits.flatten(0, 1), values.flatten(), reduction="none").view(len(states), -1).sum(dim=1)
        )

    def sample(
        self, states: Float[Tensor, "b dim"], temperature: float, uniform: Float[Tensor, "b 1"], expected: None = None
    ) -> Int[Tensor, "b 1"]:
        """The values at `uniform` numbers from 0 to 1."""
        return pick((exact_linear(states, self.out) / temperature).softmax(dim=1), uniform)


class LogisticMixture(nn.Module):
    """A discretized mixture of logistics (Salimans et al., 2017): each component has a mean and a scale per channel;
    the means of green and blue also depend on the previous channels. A pixel is one position. Values are relative to
    those that are `expected`, from -1 to 1, if given.
    """

    def __init__(self, dim: int, channels: int, components: int):
        super().__init__()
        self.values, self.components = channels, components
        self.pairs = channels * (channels - 1) // 2
        self.draws = 1 + channels  # random numbers of a pixel: for its component and its values
        self.out = nn.Linear(dim, components * (1 + 2 * channels + self.pairs))

    @torch.no_grad()
    def spread(self) -> None:
        """Components start narrow and with different means: else all of them learn the same."""
        _, means, scales, _ = self.out.bias.view(-1, self.components).split([1, self.values, self.values, self.pairs])
        means.copy_(torch.linspace(-0.2, 0.2, self.components))
        scales.fill_(-2.5)

    def nll(
        self,
        states: Float[Tensor, "b t dim"],
        values: Int[Tensor, "b t c"],
        expected: Float[Tensor, "b t c"] | None = None,
    ) -> Float[Tensor, " b"]:
        return -self.logp(exact_linear(states, self.out), values, expected).sum(dim=1)

    def _parts(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Logits (..., m), means (..., c, m), log scales (..., c, m) and coefficients (..., pairs, m)."""
        own = parameters.unflatten(-1, (-1, self.components))
        logits, means, scales, pairs = own.split([1, self.values, self.values, self.pairs], dim=-2)
        return logits.squeeze(-2), means, scales.clamp(-7, 5), pairs.tanh()

    def logp(
        self,
        parameters: Float[Tensor, "b t p"],
        values: Int[Tensor, "b t c"],
        expected: Float[Tensor, "b t c"] | None = None,
    ) -> Float[Tensor, "b t"]:
        """The log probability of a pixel: that of the interval around each value, of which the first and the last are
        unbounded.
        """
        logits, means, scales, pairs = self._parts(parameters)
        x = values.to(parameters.dtype) / 127.5 - 1
        x = (x if expected is None else x - expected)[..., None]
        means = torch.stack([self._mean(i, x, means, pairs) for i in range(self.values)], dim=-2)
        inverse, centred = torch.exp(-scales), x - means
        above, below = inverse * (centred + 1 / 255), inverse * (centred - 1 / 255)
        # sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)), of which each factor is exact
        inside = F.logsigmoid(above) + F.logsigmoid(-below) + torch.log(-torch.expm1(below - above))
        own = values[..., None]
        each = torch.where(own == 0, F.logsigmoid(above), torch.where(own == LEVELS - 1, F.logsigmoid(-below), inside))
        return torch.logsumexp(logits.log_softmax(dim=-1) + each.sum(dim=-2), dim=-1)

    def _mean(self, channel: int, x: Tensor, means: Tensor, pairs: Tensor) -> Tensor:
        """The mean of a channel, shifted by the previous channels."""
        first = channel * (channel - 1) // 2
        moved = sum(pairs[..., first + i, :] * x[..., i, :] for i in range(channel))
        return means[..., channel, :] + moved

    def sample(
        self,
        states: Float[Tensor, "b dim"],
        temperature: float,
        uniform: Float[Tensor, "b d"],
        expected: Float[Tensor, "b c"] | None = None,
    ) -> Int[Tensor, "b c"]:
        """The values at `uniform` numbers from 0 to 1: one for the component, one for each channel."""
        logits, means, scales, pairs = self._parts(exact_linear(states, self.out))
        chosen = pick((logits / temperature).softmax(dim=1), uniform[:, :1])[:, None]
        means, scales = (part.gather(2, chosen.expand(-1, part.shape[1], -1)) for part in (means, scales))
        pairs = pairs.gather(2, chosen.expand(-1, pairs.shape[1], -1))
        noise = uniform[:, 1:, None].to(means.dtype).clamp(1e-5, 1 - 1e-5)
        noise = temperature * scales.exp() * (noise.log() - (-noise).log1p())
        base = torch.zeros_like(means[..., 0]) if expected is None else expected
        found: list[Tensor] = []  # relative to the base
        for channel in range(self.values):
            x, own = torch.stack(found, dim=1) if found else means[:, :0], base[:, channel, None]
            drawn = self._mean(channel, x, means, pairs) + noise[:, channel] + own
            found.append(((drawn + 1) * 127.5).round().clamp(0, LEVELS - 1) / 127.5 - 1 - own)
        return ((torch.cat(found, dim=1) + base + 1) * 127.5).round().long()


def pick(probabilities: Float[Tensor, "b n"], uniform: Float[Tensor, "b 1"]) -> Int[Tensor, "b 1"]:
    """The index at which the cumulative probability passes a number from 0 to 1."""
    passed = probabilities.double().cumsum(dim=1)
    found = torch.searchsorted(passed, uniform.double() * passed[:, -1:], right=True)
    return found.clamp(max=probabilities.shape[1] - 1)


def exact_linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """In single precision at least: in bfloat16 a mean is rounded to as much as half the distance of two values."""
    with torch.autocast(x.device.type, enabled=False):
        parts = (
            None if part is None else part.to(torch.promote_types(part.dtype, torch.float32))
            for part in (x, layer.weight, layer.bias)
        )
        return F.linear(*parts)


def bits_per_dimension(nats: float, dimensions: int) -> float:
    return nats / (dimensions * math.log(2))
