"""Perplexity of a language model on a text: per token and per word, and in bits per character and per byte."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.data.batching import DataPosition, plan
from heed.data.documents import Boundaries, DocumentBatches, DocumentKind, Pieces, cut_documents
from heed.data.readers import Line
from heed.data.streams import IGNORED, Window, Windows, join_lines
from heed.evaluation.line_counts import COUNTS, count_lines, exp_loss
from heed.models.outputs import check_outputs
from heed.version import __version__
from heed.vocabularies.codes import code_id
from heed.vocabularies.vocabulary import Vocabulary

CHUNK = 2048  # positions whose logits are in memory at one time
BATCH = 8192  # tokens of windows that are read at once
WINDOW = 512  # tokens; a recurrent state is carried from window to window, so the length does not change the result


@dataclass(frozen=True)
class Context:
    """The context of each token. `window` is the number of tokens read at once. A model with limited positions reads
    windows independently, each `stride` tokens after the previous one (default: no overlap); every token is scored
    once. Other models carry their state, in `rows` parts of the text read in parallel; `memory` is how many tokens of
    it are kept. With `document` each document is read separately. Every window, or the text if its state is carried,
    begins with the control code `code`.
    """

    window: int | None = None
    stride: int | None = None
    memory: int | None = None
    rows: int = 1
    code: str | None = None
    document: DocumentKind | None = None

    def check(self, model: nn.Module) -> None:
        """Refuse settings that are meaningless for the model or in combination."""
        for name in ("window", "rows"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.memory is not None and not has_memory(model):
            raise ValueError("memory is for models that have one (Transformer-XL): leave it out")
        if self.stride is not None and (self.document or not has_positions(model)):
            why = "each document is read separately" if self.document else "this one carries its state"
            raise ValueError(f"stride is for models with limited positions, but {why}: leave it out")
        if self.rows > 1 and (self.document or has_positions(model)):
            raise ValueError(f"rows is {self.rows}, but rows are only for models that carry their state: leave it out")
        if has_positions(model) and self.window is not None and self.window > model.config.max_length:
            raise ValueError(
                f"window is {self.window}, but the model has only {model.config.max_length} positions: lower it"
            )
        if self.stride is not None and not 1 <= self.stride <= (self.window or model.config.max_length):
            most = self.window or model.config.max_length
            raise ValueError(f"stride is {self.stride}; it must be at least 1 and at most the window, {most}")

    def described(self, model: nn.Module) -> str:
        """For a signature: the context of each token."""
        code = f"|code:{self.code}" if self.code else ""
        if self.document:
            return f"context:document|document:{self.document}|window:{self.window}{code}"
        if has_positions(model):
            return f"context:window|window:{self.window}|stride:{self.stride}{code}"
        kept = f"|memory:{self.memory}|window:{self.window}" if has_memory(model) else ""
        return f"state:carried|rows:{self.rows}{kept}{code}"


@dataclass(frozen=True)
class Perplexity:
    """`nll` is -log p of the whole text in nats; `tokens`, `words` and `characters` count each line end as one.
    `context` describes the context of each token. `by_line` has the numbers of `COUNTS` for each line.
    """

    nll: float
    tokens: int
    words: int
    characters: int
    bytes: int
    lines: int
    unknown: int
    unit: str
    rows: int = 1
    context: str = "state:carried|rows:1"
    by_line: np.ndarray = field(default_factory=lambda: np.zeros((0, len(COUNTS))), repr=False, compare=False)

    @property
    def loss(self) -> float:
        return self.nll / self.tokens

    @property
    def per_token(self) -> float:
        return exp_loss(self.loss)

    @property
    def per_word(self) -> float:
        """The nll of the whole text per word: comparable between vocabularies."""
        return exp_loss(self.nll / self.words)

    @property
    def bits_per_character(self) -> float:
        return self.nll / math.log(2) / self.characters

    @property
    def bits_per_byte(self) -> float:
        return self.nll / math.log(2) / self.bytes

    @property
    def signature(self) -> str:
        counted = f"tokens:{self.tokens}|unknown:{self.unknown}|line-ends:counted"
        return f"unit:{self.unit}|{counted}|{self.context}|heed:{__version__}"


def has_positions(model: nn.Module) -> bool:
    """Whether a model has limited positions and reads each window of a text independently."""
    return model.config.max_length < sys.maxsize


def has_memory(model: nn.Module) -> bool:
    """Whether a model has a memory of variable length."""
    return hasattr(model.config, "evaluation_memory")


def measure_perplexity(
    model: nn.Module,
    vocabulary: Vocabulary,
    lines: Sequence[str],
    context: Context = Context(),  # noqa: B008 (frozen)
) -> Perplexity:
    """The perplexity of a text, with this context for each token."""
    ids = join_lines(encoded := vocabulary.encode(lines), vocabulary.special.last)
    if not len(ids):
        raise ValueError("the text has no lines: there is nothing to measure")
    context.check(model)
    context = _complete(context, model, len(ids))
    with evaluation_memory(model, context.memory):
        nll = _text_nll(model, vocabulary, lines, encoded, ids, context)
    check_outputs(nll, infinite=True)
    kind, by_line = getattr(vocabulary, "kind", "subwords"), count_lines(lines, encoded, nll)
    return Perplexity(
        nll=float(nll.sum()),
        **dict(zip(COUNTS[1:], map(int, by_line[:, 1:].sum(axis=0)), strict=True)),
        lines=len(lines),
        unknown=int((ids == vocabulary.special.unknown).sum()),
        unit=kind if kind in ("words", "characters", "bytes") else "subwords",
        rows=context.rows,
        context=context.described(model),
        by_line=by_line,
    )


def _complete(context: Context, model: nn.Module, tokens: int) -> Context:
    """The context with this model's defaults."""
    if has_positions(model):
        window = context.window or model.config.max_length
        return replace(context, window=window, stride=context.stride or window)
    rows = min(context.rows, tokens)
    window = context.window or (max(1, WINDOW * 4 // rows) if rows > 4 else WINDOW)
    memory = context.memory
    if has_memory(model) and memory is None:
        memory = model.start(1).length
    return replace(context, window=window, rows=rows, memory=memory)


def _text_nll(
    model: nn.Module,
    vocabulary: Vocabulary,
    lines: Sequence[str],
    encoded: Sequence[Sequence[int]],
    ids: np.ndarray,
    context: Context,
) -> Float[np.ndarray, " tokens"]:
    """-log p of each token, in the order of the text."""
    special = vocabulary.special
    code = None if context.code is None else code_id(vocabulary, context.code)
    if context.document:
        boundaries = Boundaries(context.document)
        for _ in boundaries.watch(Line(line, line, f"text:{number}") for number, line in enumerate(lines, 1)):
            pass
        starts = boundaries.starts([len(line) + 1 for line in encoded])
        pieces = cut_documents(ids, starts, np.zeros(len(starts), dtype=int), context.window, special.last, [code])
        return _documents_nll(model, ids, pieces, special.pad)
    if has_positions(model):
        windows = sliding_windows(ids, special.last, context.window, context.stride, code)
        return np.concatenate([own.double().cpu().numpy() for own in independent_nll(model, windows)])
    before = special.last if code is None else code
    windows = Windows(ids, before, rows=context.rows, length=context.window)
    rows = [own.double().cpu().numpy() for own in window_nll(model, windows)]
    return np.concatenate(rows, axis=1).flatten()[: len(ids)]


def _documents_nll(model: nn.Module, ids: np.ndarray, pieces: Pieces, pad: int) -> Float[np.ndarray, " tokens"]:
    """The same for documents, which are read in batches of similar lengths."""
    batches, found = DocumentBatches(ids, pieces, budget=BATCH, pad=pad, grouping=plan), np.zeros(len(ids))
    planned = batches.plan(0)
    for rows, nll in zip(planned, independent_nll(model, map(batches.make, planned)), strict=True):
        where = [np.arange(pieces.lengths[row]) + pieces.starts[row] for row in rows]
        found[np.concatenate(where)] = nll.double().cpu().numpy()
    return found


@contextmanager
def evaluation_memory(model: nn.Module, tokens: int | None) -> Iterator[None]:
    """Set a model's memory to this many tokens within the block; None changes nothing."""
    config = model.config
    if tokens is not None:
        model.config = replace(config, evaluation_memory=tokens)
    try:
        yield
    finally:
        model.config = config


def sliding_windows(ids: np.ndarray, last: int, window: int, stride: int, code: int | None = None) -> Iterator[Window]:
    """Batches of windows that begin `stride` tokens apart; a token is scored only in the first window that contains
    it. The text follows `last`; a `code` is the first token of each window.
    """
    inputs = np.concatenate([[last], ids[:-1]])
    starts = np.arange(1 + max(0, -(-(len(ids) - window) // stride))) * stride
    for some in np.array_split(starts, -(-len(starts) * window // BATCH)):
        indices = some[:, None] + np.arange(min(window, len(ids)))
        present = indices < len(ids)
        new = present & ((indices >= some[:, None] + window - stride) | (some[:, None] == 0))
        indices = np.minimum(indices, len(ids) - 1)
        tokens = inputs[indices].astype(np.int64)
        if code is not None:
            tokens[:, 0] = code
        expected = np.where(new, ids[indices].astype(np.int64), IGNORED)
        yield Window(torch.from_numpy(tokens), torch.from_numpy(expected), True, int(new.sum()))


def independent_nll(model: nn.Module, batches: Iterable[Window]) -> Iterator[Float[Tensor, " n"]]:
    """-log p of each scored token, in independent windows."""
    device = next(model.parameters()).device
    model.eval()
    for batch in batches:
        batch = batch.to(device)
        with torch.inference_mode():  # not around the yield, which would put the caller into inference mode too
            expected = batch.expected != IGNORED
            states = model.hidden_states(batch.tokens)[expected]  # logits are computed for these alone
            nll = token_nll(model, states[None], batch.expected[expected][None])[0]
        yield nll


def _sum(parts: Iterable[Tensor]) -> float:
    return sum(float(nll.double().sum()) for nll in parts)


def total_nll(model: nn.Module, windows: Windows) -> float:
    """-log p of a whole text."""
    return _sum(window_nll(model, windows))


def window_nll(model: nn.Module, windows: Windows) -> Iterator[Float[Tensor, "b t"]]:
    """-log p of each token, window by window; 0 at padding."""
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
