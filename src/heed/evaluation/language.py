"""How well a language model foresees a text: perplexity, a word or a byte at a time."""

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

ROWS = 2048  # of the output that are there at one time
LENGTH = 512  # of the windows in which a text is read; what was read before is remembered, so it does not matter


@dataclass(frozen=True)
class Perplexity:
    """`nll` is -log p of the whole text, in nats; `tokens` and `words` count the end of each line as one."""

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
        """Can be compared between vocabularies: what it took to say all words, shared among them."""
        return _exp(self.nll / self.words)

    @property
    def bits_per_byte(self) -> float:
        return self.nll / math.log(2) / self.bytes

    @property
    def signature(self) -> str:
        """What was counted, and how."""
        ends, state = "line-ends:counted", f"state:carried|rows:{self.rows}"
        return f"unit:{self.unit}|tokens:{self.tokens}|unknown:{self.unknown}|{ends}|{state}|heed:{__version__}"


def _exp(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


def measure(model: nn.Module, subwords: Vocabulary, lines: Sequence[str], rows: int = 1) -> Perplexity:
    """The perplexity of a text that is read from its beginning to its end; with more `rows`, in so many parts at once.

    Each part but the first begins with nothing remembered but the token before it, so it is a little higher then.
    """
    ids = join_lines(subwords.encode(lines), subwords.marks.last)
    if not len(ids):
        raise ValueError("the text has no lines: there is nothing to measure")
    if rows < 1:
        raise ValueError(f"rows is {rows}; it must be at least 1")
    rows = min(rows, len(ids))
    windows = Windows(ids, subwords.marks.last, rows=rows, length=max(1, LENGTH * 4 // rows) if rows > 4 else LENGTH)
    return Perplexity(
        nll=total(model, windows),
        tokens=len(ids),
        words=sum(len(line.split()) + 1 for line in lines),
        bytes=sum(len(line.encode()) + 1 for line in lines),
        lines=len(lines),
        unknown=int((ids == subwords.marks.unknown).sum()),
        unit="words" if isinstance(subwords, Words) else "subwords",
        rows=rows,
    )


def total(model: nn.Module, windows: Windows) -> float:
    """-log p of all of a text."""
    return sum(float(parts.double().sum()) for parts in token_nll(model, windows))


def token_nll(model: nn.Module, windows: Windows) -> Iterator[Float[Tensor, "b t"]]:
    """-log p of each token, window after window; nothing is learned, and nothing left out. Where none is due, 0."""
    device = next(model.parameters()).device
    model.eval()
    state = model.start(windows.rows)
    for index in range(len(windows)):
        window = windows.make(DataPosition(0, index)).to(device)
        with torch.inference_mode():  # not around what is given out: whoever takes it goes on as he was
            found = told(model, model.hidden_states(window.tokens, state), window.expected)
        yield found


def told(model: nn.Module, states: Float[Tensor, "b t width"], expected: Int[Tensor, "b t"]) -> Float[Tensor, "b t"]:
    """-log p of what is expected after each place, a part of the places at a time."""
    found = []
    for rows, due in zip(states.flatten(0, 1).split(ROWS), expected.flatten().split(ROWS), strict=True):
        logits = model.project(rows)
        logp = (logits.float() if logits.dtype.itemsize < 4 else logits).log_softmax(dim=-1)
        hit = -logp.gather(1, due.clamp(min=0)[:, None])[:, 0]
        found.append(hit.masked_fill(due == IGNORED, 0.0))
    return torch.cat(found).view(expected.shape)
