"""Language models in 8-bit integers, for generating text on CPUs with instructions for them: `kernels/int8.py` with few
operators, since a step has few rows and reading the weights takes most of its time.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heed.kernels import int8
from heed.nn.attention import Attention, attend
from heed.nn.cache import Cache
from heed.nn.transformer import MLP

SMALLEST = 1e-30  # the scale of a row of zeros


class FewRows(int8.Int8Linear):
    """The same layers, for an input of few rows."""

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch out"]:
        rows = x.reshape(-1, x.shape[-1])
        scale = rows.abs().amax(dim=1, keepdim=True).clamp_(min=SMALLEST).mul_(1 / int8.LARGEST)
        values = rows.div(scale).add_(int8.ZERO + 0.5).byte()  # cut off, and so rounded
        y = int8.integer_product(values, self.weight, self.scale)
        return torch.addcmul(self.bias, y, scale, out=y).view(*x.shape[:-1], -1)


class Int8SelfAttention(nn.Module):
    """`Attention` without a memory; attention itself is in float32."""

    def __init__(self, part: Attention):
        super().__init__()
        self.width, self.qkv, self.out = part.width, FewRows(part.q, part.k, part.v), FewRows(part.out)

    def forward(
        self, x: Float[Tensor, "b t dim"], *, mask: Any = None, causal: bool = False, cache: Cache | None = None
    ) -> Float[Tensor, "b t dim"]:
        q, k, v = self.qkv(x).unflatten(-1, (3, -1, self.width)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(k, v)
        return self.out(attend(q, k, v, mask=mask, causal=causal).transpose(1, 2).flatten(2))


class Int8MLP(nn.Module):
    """`MLP` for inference."""

    def __init__(self, part: MLP):
        super().__init__()
        self.up, self.activation, self.down = FewRows(part.up), part.activation, FewRows(part.down)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.down(self.activation(self.up(x)))


INT8 = {Attention: Int8SelfAttention, MLP: Int8MLP}


class Int8Text(nn.Module):
    """A copy of a language model for a search: what a search asks of a model. Embeddings, positions and norms are those
    of the model.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.config, self.model = model.config, int8.int8_copy(model, INT8)
        self.output = FewRows(int8.Matrix(*model.output_weights()))

    def start(self, rows: int) -> Any:
        return self.model.start(rows)

    def hidden_states(self, tokens: Tensor, state: Any = None) -> Float[Tensor, "b t dim"]:
        return self.model.hidden_states(tokens, state)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return self.output(x)

    def step(self, tokens: Tensor, state: Any) -> Float[Tensor, "b vocab"]:
        return self.output(self.model.hidden_states(tokens[:, None], state)[:, 0])
