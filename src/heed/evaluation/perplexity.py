"""Perplexity of a language model on a text: per token, per word and in bits per byte."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.data.batching import DataPosition
from heed.data.streams import IGNORED, Windows, join_lines
from heed.version import __version__
from heed.vocabularies.vocabulary import Vocabulary
from heed.vocabularies.words import Words

CHUNK = 2048  # positions whose logits are in memory at one time
WINDOW = 512  # tokens; the state is carried from window to window, so the length does not change the result


@dataclass(frozen=True)
class Perplexity:
    """`nll` is -log p of the whole text in nats; `tokens` and `words` count each end of a line as one."""

    nll: float
    tokens: int
    words: int
    bytes: int
    lines: int
    unknown: int
    unit: str
    rows: int = 1

    @property
    def loss(self) -> float:
        return self.nll / self.tokens

    @property
    def per_token(self) -> float:
        return _exp(self.loss)

    @property
    def per_word(self) -> float:
        """The nll of the whole text over its words: comparable between vocabularies."""
        return _exp(self.nll / self.words)

    @property
    def bits_per_byte(self) -> float:
        return self.nll / math.log(2) / self.bytes

    @property
    def signature(self) -> str:
        ends, state = "line-ends:counted", f"state:carried|rows:{self.rows}"
        return f"unit:{self.unit}|tokens:{self.tokens}|unknown:{self.unknown}|{ends}|{state}|heed:{__version__}"


def _exp(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


def measure_perplexity(model: nn.Module, vocabulary: Vocabulary, lines: Sequence[str], rows: int = 1) -> Perplexity:
    """The perplexity of a text read from start to end; with more `rows`, it is cut into that many parts, read in parallel.

    Each part but the first starts from the token before it and an empty state, so the result is then a little higher.
    """
    ids = join_lines(vocabulary.encode(lines), vocabulary.special.last)
    if not len(ids):
        raise ValueError("the text has no lines: there is nothing to measure")
    if rows < 1:
        raise ValueError(f"rows is {rows}; it must be at least 1")
    rows = min(rows, len(ids))
    length = min(max(1, WINDOW * 4 // rows) if rows > 4 else WINDOW, model.config.max_length)
    windows = Windows(ids, vocabulary.special.last, rows=rows, length=length)
    return Perplexity(
        nll=total_nll(model, windows),
        tokens=len(ids),
        words=sum(len(line.split()) + 1 for line in lines),
        bytes=sum(len(line.encode()) + 1 for line in lines),
        lines=len(lines),
        unknown=int((ids == vocabulary.special.unknown).sum()),
        unit="words" if isinstance(vocabulary, Words) else "subwords",
        rows=rows,
    )


def total_nll(model: nn.Module, windows: Windows) -> float:
    """-log p of a whole text."""
    return sum(float(nll.double().sum()) for nll in window_nll(model, windows))


def window_nll(model: nn.Module, windows: Windows) -> Iterator[Float[Tensor, "b t"]]:
    """-log p of each token, window after window; 0 at padding."""
    device = next(model.parameters()).device
    model.eval()
    state = model.start(windows.rows)
    for index in range(len(windows)):
        window = windows.make(DataPosition(0, index)).to(device)
        with torch.inference_mode():  # not around the yield, which would put the caller into inference mode too
            nll = token_nll(model, model.hidden_states(window.tokens, state), window.expected)
            state = state.detach()
        yield nll


def token_nll(model: nn.Module, states: Float[Tensor, "b t dim"], expected: Int[Tensor, "b t"]) -> Float[Tensor, "b t"]:
    """-log p of the expected token at each position, computed in chunks; 0 where none is expected."""
    chunks = []
    for hidden, targets in zip(states.flatten(0, 1).split(CHUNK), expected.flatten().split(CHUNK), strict=True):
        logits = model.project(hidden)
        logp = (logits.float() if logits.dtype.itemsize < 4 else logits).log_softmax(dim=-1)
        nll = -logp.gather(1, targets.clamp(min=0)[:, None])[:, 0]
        chunks.append(nll.masked_fill(targets == IGNORED, 0.0))
    return torch.cat(chunks).view(expected.shape)
