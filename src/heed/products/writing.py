"""Token-by-token generation, with alternatives at each position."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from heed.decoding.sample import Step
from heed.evaluation.perplexity import has_positions
from heed.products.prompts import Prompt
from heed.products.stops import StopStrings
from heed.vocabularies.vocabulary import Vocabulary

Decode = Callable[[Sequence[int]], str]
SEGMENT = 512  # tokens of a prompt that a model without positions or memory reads at one time
ROWS = 128  # of probabilities of the whole vocabulary, that are computed at one time
HALF = "\ufffd"  # what is decoded of a part of a character


class Candidate(NamedTuple):
    """A candidate token at a position, and its log probability."""

    id: int
    text: str
    logp: float


@dataclass(frozen=True)
class Token:
    """A token of a text: the text it adds (part of a character adds nothing), its log probability, and the most
    likely tokens there.
    """

    id: int
    text: str
    logp: float
    likely: list[Candidate]


@dataclass(frozen=True)
class Piece:
    """What one step adds to text number `row`, holding back what may become a stop string; `finish` says why it
    ends.
    """

    row: int
    text: str
    token: Token
    finish: Literal["stop", "length"] | None


class _Row:
    """One text as it is generated."""

    def __init__(self, prompt: Prompt, decode: Decode):
        self.ids, self.decode = list(prompt.text), decode
        self.start, self.previous = len(decode(self.ids)), prompt.ids[-1]
        self.told, self.settled = 0, 0  # characters that tokens have been given, and that have been handed out

    def add(self, token: int, ends: bool) -> str:
        """The text a token adds."""
        self.ids.append(token)
        self.text = self.decode(self.ids)[self.start :]
        whole = self.text if ends or not self.text.endswith(HALF) else self.text[: self.told]
        added, self.told = whole[self.told :], max(self.told, len(whole))
        self.previous = token
        return added

    def settle(self, stops: StopStrings, ends: bool) -> str:
        """The text that is final by now, without what was returned before."""
        text = stops.cut(self.text) if ends else stops.settled(self.text[: self.told])
        new, self.settled = text[self.settled :], max(self.settled, len(text))
        return new


def write(
    steps: Iterator[Step],
    prompts: Sequence[Prompt],
    draws: int,
    vocabulary: Vocabulary,
    decode: Decode,
    stops: StopStrings,
    last: int,
    likely: int = 0,
) -> Iterator[list[Piece]]:
    """For each step of a search, what it adds to each unfinished text. Each prompt has `draws` texts. `last` is the
    end token.
    """
    rows = [_Row(own, decode) for own in prompts for _ in range(draws)]
    for step in steps:
        pieces = []
        best = _likeliest(step.logp, likely)
        for i, (number, ids, scores, ends) in enumerate(zip(*step[:4], strict=True)):
            row, token, logp = rows[number], ids[-1], scores[-1]
            previous, text = row.previous, row.add(token, ends)
            others = _candidates(vocabulary, previous, best[i] if best else [], token, text)
            stopped = ends and (stops.found(row.text) or token == last)
            finish = "stop" if stopped else "length" if ends else None
            pieces.append(Piece(number, row.settle(stops, ends), Token(token, text, logp, others), finish))
        yield pieces


@torch.inference_mode()
def read_prompt(
    model: nn.Module, vocabulary: Vocabulary, decode: Decode, prompt: Prompt, likely: int = 0
) -> Iterator[Token]:
    """The tokens of a prompt, with their probabilities given what precedes them. A model without positions reads a
    long prompt in segments, and only some rows of probabilities are computed at one time.
    """
    row, state = _Row(Prompt([], prompt.start), decode), model.start(1)
    ids = torch.tensor([prompt.ids[:-1]], dtype=torch.long, device=next(model.parameters()).device)
    size = getattr(state, "segment", None) or (len(prompt.text) if has_positions(model) else SEGMENT)
    done = 0
    for part in ids.split(max(1, size), dim=1) if prompt.text else ():
        for states in model.hidden_states(part, state)[0].split(ROWS):
            logp, tokens = model.project(states).log_softmax(dim=-1), prompt.text[done : done + len(states)]
            chosen = logp[torch.arange(len(states)), torch.tensor(tokens)].tolist()
            best = _likeliest(logp, likely)
            for i, (token, own) in enumerate(zip(tokens, chosen, strict=True)):
                done += 1
                previous, text = row.previous, row.add(token, done == len(prompt.text))
                others = _candidates(vocabulary, previous, best[i] if best else [], token, text)
                yield Token(token, text, own, others)


def _likeliest(logp: Tensor, count: int) -> list[list[tuple[int, float]]]:
    """The most likely possible tokens of each row."""
    if not count:
        return []
    values, ids = logp.topk(min(count, logp.shape[-1]))
    rows = zip(ids.tolist(), values.tolist(), strict=True)
    return [[(i, p) for i, p in zip(*row, strict=True) if p > -torch.inf] for row in rows]


def _candidates(
    vocabulary: Vocabulary, previous: int, best: list[tuple[int, float]], chosen: int, text: str
) -> list[Candidate]:
    """In some vocabularies the text of a candidate depends on the token before it."""
    read = [text if i == chosen and text else shown(vocabulary, previous, i) for i, _ in best]
    return [Candidate(i, own, p) for (i, p), own in zip(best, read, strict=True)]


def shown(vocabulary: Vocabulary, previous: int, token: int) -> str:
    """A token after another as text; part of a character as its bytes."""
    if token == vocabulary.special.last:
        return "\n"
    return vocabulary.pieces([previous, token])[1].replace("▁", " ")
