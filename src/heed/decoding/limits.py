"""Rules that ban tokens in a search by marking them in a mask, (rows, vocab).

A rule gets the tokens of each row so far, and the sentence of the batch that each row belongs to. It may return the
rows in which it allows a single token, which is then certain: its log probability is 0.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Rule = Callable[[Tensor, Tensor, Tensor], Tensor | None]


def apply_rules(
    logits: Float[Tensor, "r vocab"],
    tokens: Int[Tensor, "r t"],
    sentence: Int[Tensor, " r"],
    rules: Sequence[Rule],
    renormalize: bool = False,
    scored: bool = False,
) -> Float[Tensor, "r vocab"]:
    """The log probability of each next token under the rules; with `renormalize`, the allowed ones sum to one.
    `scored`: the values are not logits but scores, combined from several models.
    """
    logp = logits if scored else logits.log_softmax(dim=-1)
    if not rules:
        return logp
    if not scored and not renormalize and all(isinstance(rule, BanTokens) for rule in rules):
        for rule in rules:
            logp.index_fill_(1, rule.on(logp.device), -torch.inf)
        return logp
    banned = torch.zeros_like(logp, dtype=torch.bool)
    certain = [forced for rule in rules if (forced := rule(banned, tokens, sentence)) is not None]
    if renormalize:
        logp = logp.masked_fill(banned, -torch.inf).log_softmax(dim=-1)
    if certain:
        logp = logp.masked_fill(torch.stack(certain).any(dim=0)[:, None], 0.0)
    return logp.masked_fill(banned, -torch.inf)


class BanTokens:
    """Ban these tokens everywhere."""

    def __init__(self, ids: Iterable[int]):
        self.ids = torch.tensor(list(ids), dtype=torch.long)

    def on(self, device: torch.device) -> Int[Tensor, " ids"]:
        if self.ids.device != device:
            self.ids = self.ids.to(device)
        return self.ids

    def __call__(
        self, banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]
    ) -> None:
        banned.index_fill_(1, self.on(banned.device), True)


def allow_only(allowed: Bool[Tensor, "b vocab"]) -> Rule:
    """Sentence i may use only the tokens allowed for it."""

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        banned |= ~allowed[sentence]

    return rule


def min_length(length: int, last: int) -> Rule:
    """Ban the end token before `length` tokens."""

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        if tokens.shape[1] < length:
            banned[:, last] = True

    return rule


def no_repeat_ngram(n: int, before: Sequence[Sequence[int]] = ()) -> Rule:
    """Ban the repetition of any n tokens; `before[i]` is what sentence i continues."""
    width = max(map(len, before), default=0)
    padded = torch.tensor([[-1] * (width - len(own)) + [*own] for own in before], dtype=torch.long)

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        if width:
            tokens = torch.cat([padded.to(tokens.device)[sentence], tokens], dim=1)
        if tokens.shape[1] < n:
            return
        ngrams = tokens.unfold(1, n, 1)
        tail = tokens[:, tokens.shape[1] - n + 1 :]
        matches = (ngrams[:, :, :-1] == tail[:, None]).all(dim=-1)
        row, ngram = matches.nonzero(as_tuple=True)
        token = ngrams[row, ngram, -1]
        banned[row[token >= 0], token[token >= 0]] = True

    return rule


def force_prefix(prefixes: Sequence[Sequence[int]]) -> Rule:
    """Sentence i must begin with `prefixes[i]`, whatever the rules before this one ban."""

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        position = tokens.shape[1]
        for row, i in enumerate(sentence.tolist()):
            if position < len(prefixes[i]):
                banned[row] = True
                banned[row, prefixes[i][position]] = False

    return rule


def force_begin(ids: Sequence[int]) -> Rule:
    """Every sequence begins with these tokens at no cost. Apply this rule after all but `force_end`."""

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> Tensor | None:
        if (position := tokens.shape[1]) < len(ids):
            return _only(ids[position], torch.ones_like(banned[:, 0]), banned)
        return None

    return rule


def force_end(longest: Int[Tensor, " b"], last: int) -> Rule:
    """At the maximum length of its sentence a sequence ends, at no cost. Apply this rule last."""

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> Tensor:
        return _only(last, tokens.shape[1] + 1 >= longest[sentence], banned)

    return rule


def end_at_limit(longest: Int[Tensor, " b"], last: int) -> Rule:
    """At the maximum length of its sentence a sequence must end, with the model's probability: one that ended before
    may be better.
    """

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        _only(last, tokens.shape[1] + 1 >= longest[sentence], banned)

    return rule


def _only(token: int, rows: Bool[Tensor, " r"], banned: Bool[Tensor, "r vocab"]) -> Bool[Tensor, " r"]:
    """Ban all other tokens in these rows."""
    banned |= rows[:, None]
    banned[:, token] &= ~rows
    return rows
