"""What a model says of the next pixel: 256 probabilities for each channel, or a mixture of logistics for all channels at once."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

LEVELS = 256


class Categorical(nn.Module):
    """A probability for each of 256 values; each channel of a pixel has a position of its own."""

    def __init__(self, dim: int):
        super().__init__()
        self.values, self.out = 1, nn.Linear(dim, LEVELS)

    def nll(self, states: Float[Tensor, "b t dim"], values: Int[Tensor, "b t 1"]) -> Float[Tensor, " b"]:
        logits = _exact_linear(states, self.out)
        return (
            F.cross_entropy(logits.flatten(0, 1), values.flatten(), reduction="none").view(len(states), -1).sum(dim=1)
        )

    def sample(
        self, states: Float[Tensor, "b dim"], temperature: float, generator: torch.Generator
    ) -> Int[Tensor, "b 1"]:
        probabilities = (_exact_linear(states, self.out) / temperature).softmax(dim=1)
        return torch.multinomial(probabilities, 1, generator=generator)


class LogisticMixture(nn.Module):
    """A discretised mixture of logistics (Salimans et al., 2017): of each component a mean and a scale for each channel; the means
    of green and blue also depend on the channels before them. A pixel has one position.
    """

    def __init__(self, dim: int, channels: int, components: int):
        super().__init__()
        self.values, self.components = channels, components
        self.pairs = channels * (channels - 1) // 2
        self.out = nn.Linear(dim, components * (1 + 2 * channels + self.pairs))

    def nll(self, states: Float[Tensor, "b t dim"], values: Int[Tensor, "b t c"]) -> Float[Tensor, " b"]:
        return -self.logp(_exact_linear(states, self.out), values).sum(dim=1)

    def _parts(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Logits (..., m), means (..., c, m), log scales (..., c, m) and coefficients (..., pairs, m)."""
        own = parameters.unflatten(-1, (-1, self.components))
        logits, means, scales, pairs = own.split([1, self.values, self.values, self.pairs], dim=-2)
        return logits.squeeze(-2), means, scales.clamp(-7, 5), pairs.tanh()

    def logp(self, parameters: Float[Tensor, "b t p"], values: Int[Tensor, "b t c"]) -> Float[Tensor, "b t"]:
        """The log probability of a pixel: that of the interval around each value, of which the first and the last go on without end."""
        logits, means, scales, pairs = self._parts(parameters)
        x = (values.to(parameters.dtype) / 127.5 - 1)[..., None]
        means = torch.stack([self._mean(i, x, means, pairs) for i in range(self.values)], dim=-2)
        inverse, centred = torch.exp(-scales), x - means
        above, below = inverse * (centred + 1 / 255), inverse * (centred - 1 / 255)
        # sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)), of which each factor is exact
        inside = F.logsigmoid(above) + F.logsigmoid(-below) + torch.log(-torch.expm1(below - above))
        own = values[..., None]
        each = torch.where(own == 0, F.logsigmoid(above), torch.where(own == LEVELS - 1, F.logsigmoid(-below), inside))
        return torch.logsumexp(logits.log_softmax(dim=-1) + each.sum(dim=-2), dim=-1)

    def _mean(self, channel: int, x: Tensor, means: Tensor, pairs: Tensor) -> Tensor:
        """The mean of a channel, which the channels before it move."""
        first = channel * (channel - 1) // 2
        moved = sum(pairs[..., first + i, :] * x[..., i, :] for i in range(channel))
        return means[..., channel, :] + moved

    def sample(
        self, states: Float[Tensor, "b dim"], temperature: float, generator: torch.Generator
    ) -> Int[Tensor, "b c"]:
        logits, means, scales, pairs = self._parts(_exact_linear(states, self.out))
        chosen = torch.multinomial((logits / temperature).softmax(dim=1), 1, generator=generator)[:, None]
        means, scales = (part.gather(2, chosen.expand(-1, part.shape[1], -1)) for part in (means, scales))
        pairs = pairs.gather(2, chosen.expand(-1, pairs.shape[1], -1))
        noise = torch.rand(means.shape, generator=generator, device=means.device, dtype=means.dtype).clamp(
            1e-5, 1 - 1e-5
        )
        noise = temperature * scales.exp() * (noise.log() - (-noise).log1p())
        found: list[Tensor] = []
        for channel in range(self.values):
            x = torch.stack(found, dim=1) if found else means[:, :0]
            drawn = self._mean(channel, x, means, pairs) + noise[:, channel]
            found.append(((drawn + 1) * 127.5).round().clamp(0, LEVELS - 1) / 127.5 - 1)
        return ((torch.cat(found, dim=1) + 1) * 127.5).round().long()


def _exact_linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """In single precision at least: in bfloat16 a mean is rounded to as much as half the distance of two values."""
    with torch.autocast(x.device.type, enabled=False):
        return F.linear(*(part.float() if part.dtype.itemsize < 4 else part for part in (x, layer.weight, layer.bias)))


def bits_per_dimension(nats: float, dimensions: int) -> float:
    return nats / (dimensions * math.log(2))
