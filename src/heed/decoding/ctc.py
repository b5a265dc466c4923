"""CTC prefix scores, and the alignment of tokens with a recording. At each state of a recording CTC emits a token or
the blank; the text results from merging repeats and removing blanks.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


class PrefixScores:
    """The prefixes of a search, one row each, with their CTC probability (Watanabe et al., 2017).

    `ends_token` and `ends_blank` (rows, states + 1) are the log-probabilities of all paths that have emitted a prefix by a
    state and end in its last token, or in a blank; the first column is before the first state. A search takes the steps of
    `extensions`, `reorder` and `append` in turn.
    """

    def __init__(self, logp: Float[Tensor, "b s classes"], counts: Int[Tensor, " b"]):
        """`logp` are log probabilities, the blank last; `counts` the number of valid states of each recording."""
        self.logp = logp.double()
        self.p = self.logp.exp()
        self.counts, self.blanks = counts, _sums(self.logp[:, :, -1])
        self.sentence = torch.arange(len(logp), device=logp.device)
        self.ends_token, self.ends_blank = torch.full_like(self.blanks, -torch.inf), self.blanks
        self.last = torch.full_like(counts, -1)
        self.total = torch.zeros_like(self.blanks[:, 0])

    def extensions(self, end: int) -> Float[Tensor, "rows vocab"]:
        """What each next token adds to the log probability of a prefix; for the token `end`, that the text is
        complete.
        """
        before = self._before()
        highest = before.amax(dim=1, keepdim=True).clamp(min=-1e300)
        mass, found = (before - highest).exp(), before.new_empty(len(before), self.p.shape[2] - 1)
        for sentence in self.sentence.unique().tolist():
            rows = (self.sentence == sentence).nonzero()[:, 0]
            found[rows] = mass[rows] @ self.p[sentence, :, :-1]
        found = found.log() + highest
        again = (self._masked(self.ends_blank) + self._emitted(self.last.clamp(min=0))).logsumexp(dim=1)
        rows = (self.last >= 0).nonzero()[:, 0]
        found[rows, self.last[rows]] = again[rows]
        found[:, end] = torch.logaddexp(self._at_end(self.ends_token), self._at_end(self.ends_blank))
        possible = self.total > -torch.inf
        return torch.where(possible[:, None], found - self.total[:, None], -torch.inf)

    def append(self, tokens: Int[Tensor, " rows"]) -> None:
        """Extend each prefix by a token."""
        both = torch.logaddexp(self.ends_token, self.ends_blank)
        before = torch.where((tokens == self.last)[:, None], self.ends_blank, both)
        emitted, blanks = self._emitted(tokens), self.blanks[self.sentence]
        self.total = (self._masked(before) + emitted).logsumexp(dim=1)
        # r[t] = (r[t - 1] + before[t - 1]) p[t] in closed form: a sum over when the token was first emitted
        sums = _sums(emitted)
        token = sums[:, 1:] + (before - sums)[:, :-1].logcumsumexp(dim=1)
        none = torch.full_like(token[:, :1], -torch.inf)
        self.ends_token = torch.cat([none, token], dim=1)
        blank = blanks[:, 1:] + (self.ends_token - blanks)[:, :-1].logcumsumexp(dim=1)
        self.ends_blank = torch.cat([none, blank], dim=1)
        self.last = tokens

    def reorder(self, rows: Tensor) -> None:
        for name in ("sentence", "ends_token", "ends_blank", "last", "total"):
            setattr(self, name, getattr(self, name).index_select(0, rows))

    def _before(self) -> Float[Tensor, "rows s"]:
        """The log probability that a prefix is complete before each state."""
        return self._masked(torch.logaddexp(self.ends_token, self.ends_blank))

    def _masked(self, values: Float[Tensor, "rows s1"]) -> Float[Tensor, "rows s"]:
        """Without the states beyond the end of a recording."""
        places = torch.arange(values.shape[1] - 1, device=values.device)
        return values[:, :-1].masked_fill(places >= self.counts[self.sentence][:, None], -torch.inf)

    def _at_end(self, values: Float[Tensor, "rows s1"]) -> Float[Tensor, " rows"]:
        return values.gather(1, self.counts[self.sentence][:, None])[:, 0]

    def _emitted(self, tokens: Int[Tensor, " rows"]) -> Float[Tensor, "rows s"]:
        """The log probability of a token at each state."""
        return self.logp[self.sentence, :, tokens]


def _sums(logp: Float[Tensor, "b s"]) -> Float[Tensor, "b s1"]:
    """Cumulative sums up to each state, and 0 before the first."""
    return torch.cat([torch.zeros_like(logp[:, :1]), logp.cumsum(dim=1)], dim=1)


class TokenSpan(NamedTuple):
    """The states of a token, from `start` to before `end`, and their mean log probability."""

    start: int
    end: int
    score: float


def align(logp: Float[np.ndarray, "s classes"], tokens: list[int]) -> list[TokenSpan] | None:
    """The most likely states of each token of a text (Viterbi); None if the recording has too few states."""
    if not tokens:
        return []
    states, blank = len(logp), logp.shape[1] - 1
    path = np.full(2 * len(tokens) + 1, blank)
    path[1::2] = tokens
    skips = np.zeros(len(path), dtype=bool)  # from the token before, without a blank between
    skips[3::2] = path[3::2] != path[1:-2:2]
    best = np.full(len(path), -np.inf)
    best[:2] = logp[0, path[:2]]
    came = np.zeros((states, len(path)), dtype=np.int8)
    for state in range(1, states):
        one = np.concatenate([[-np.inf], best[:-1]])
        two = np.where(skips, np.concatenate([[-np.inf, -np.inf], best[:-2]]), -np.inf)
        choices = np.stack([best, one, two])
        came[state] = choices.argmax(axis=0)
        best = choices.max(axis=0) + logp[state, path]
    place = len(path) - 1 if best[-1] >= best[-2] else len(path) - 2
    if best[place] == -np.inf:
        return None
    places = np.empty(states, dtype=np.int64)
    for state in range(states - 1, -1, -1):
        places[state] = place
        place -= int(came[state, place])
    spans = []
    for number in range(len(tokens)):
        own = np.flatnonzero(places == 2 * number + 1)
        spans.append(TokenSpan(int(own[0]), int(own[-1]) + 1, float(logp[own, tokens[number]].mean())))
    return spans
