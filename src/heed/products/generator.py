"""A language model at work: text that goes on, and how likely a text is."""

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from heed import config as settings
from heed.data.batching import by_length
from heed.data.streams import NOTHING
from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import Rule, ruled
from heed.decoding.sample import Choose, drawn, likeliest, one_by_one
from heed.decoding.steps import Hypothesis
from heed.evaluation.perplexity import token_nll
from heed.lab.surprisal import Surprisal, TokenSurprisal
from heed.models.package import Package
from heed.products.product import Product, single
from heed.products.translator.results import Score
from heed.vocabularies.vocabulary import Vocabulary
from heed.vocabularies.words import Words

NEVER = -1  # an end mark that no one says


@dataclass(frozen=True)
class Continuation:
    """What follows a prompt; `score` is its log probability, `token_scores` those of its tokens."""

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]


class Generator(Product):
    """A language model, ready to be given text. A line end is a token, and what stands before a text is one."""

    noun, verbs = "a language model", ("generate", "evaluate", "score", "look")

    def __init__(self, model: nn.Module, subwords: Vocabulary, facts: dict[str, Any] | None = None):
        self.model, self.subwords, self.facts = model.eval(), subwords, facts or {}
        self.marks = subwords.marks

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        own = single(packages, names, cls.noun)
        return cls(own.model, own.processors["text"], own.facts)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def generate(
        self, prompt: str = "", *, length: int = 100, count: int = 1, one_line: bool = False, **decoding: Any
    ) -> list[Continuation]:
        """`count` ways in which a text may go on, of `length` tokens; with `one_line`, no further than the line's end.

        `decoding` are settings of DecodingConfig: drawn by chance (temperature, top_k, top_p, seed) unless sample=False,
        which takes the likeliest (beam=1), or what a beam finds.
        """
        return self.continued(self.encode(prompt), length=length, count=count, one_line=one_line, **decoding)

    def continued(
        self, ids: list[int], *, length: int = 100, count: int = 1, one_line: bool = False, **decoding: Any
    ) -> list[Continuation]:
        """The same of ids."""
        found = self._search(ids, self._chosen(length, count, decoding), one_line)
        return [self._continuation(ids, h) for h in found]

    def stream(self, prompt: str = "", *, length: int = 100, one_line: bool = False, **decoding: Any) -> Iterator[str]:
        """The text of one continuation, word by word as it is found: the same that `generate` gives."""
        chosen, ids = self._chosen(length, 1, decoding), self.encode(prompt)
        if not chosen.sample and chosen.beam > 1:
            raise ValueError(f"beam is {chosen.beam}: a beam knows its text at the end; generate gives it whole")
        written, said = self._text(ids), list(ids)
        for token in self._tokens(ids, chosen, one_line):
            said.append(token)
            text = self._text(said)
            if not text.endswith("\ufffd"):  # half a character: the rest may come
                yield text[len(written) :]
                written = text
        if rest := self._text(said)[len(written) :]:
            yield rest

    def score(self, texts: Sequence[str], batch_tokens: int = 4096) -> list[Score]:
        """How likely each text is as a line of its own, its end included."""
        ids = self.subwords.encode(texts)
        results: list[Any] = [None] * len(ids)
        for rows in by_length([len(own) + 1 for own in ids], batch_tokens):
            own = [[*ids[row], self.marks.last] for row in rows]
            for row, line, parts in zip(rows, own, self._told(own), strict=True):
                results[row] = Score("", texts[row], sum(parts), self.subwords.pieces(line), parts)
        return results

    @torch.inference_mode()
    def look(self, text: str, most: int = 8, name: str = "") -> Surprisal:
        """How surprising each token of a text is, and what was likelier there."""
        ids = self.encode(text)
        if not ids:
            raise ValueError("the text is empty: there is nothing to look at")
        tokens = torch.tensor([[self.marks.last, *ids]], device=self.device)
        logp = self.model(tokens)[0].double().log_softmax(dim=-1).cpu()
        best, which = logp.exp().topk(min(most, logp.shape[-1]))
        places = []
        for i, (own, odds) in enumerate(zip(which.tolist(), best.tolist(), strict=True)):
            likely = [(self.subwords.pieces([k])[0], p) for k, p in zip(own, odds, strict=True)]
            due = ids[i] if i < len(ids) else None
            piece = None if due is None else self.subwords.pieces(ids)[i]
            bits = None if due is None else -logp[i, due].item() / math.log(2)
            rank = None if due is None else int((logp[i] > logp[i, due]).sum()) + 1
            places.append(TokenSurprisal(piece, bits, rank, likely))
        return Surprisal(name, text, places)

    def unknown(self, text: str) -> list[str]:
        """The words of a text that a vocabulary of words does not know."""
        if not isinstance(self.subwords, Words):
            return []
        return [word for word in self.subwords.split(text) if word not in self.subwords.numbers]

    def encode(self, prompt: str) -> list[int]:
        """A text as ids; each of its lines but the last has an end."""
        lines = self.subwords.encode(prompt.split("\n"))
        ids = [i for own in lines[:-1] for i in (*own, self.marks.last)] + lines[-1]
        said = [i for i in ids if i != self.marks.last]
        if said and all(i == self.marks.unknown for i in said):
            raise ValueError(f"the model knows no word of {prompt!r}: begin with words of the text it has learned from")
        return ids

    def _chosen(self, length: int, count: int, changes: dict[str, Any]) -> DecodingConfig:
        if length < 1 or count < 1:
            raise ValueError(f"length is {length} and count is {count}; both must be at least 1")
        values = {"beam": 1, "sample": changes.get("beam", 1) == 1, **changes, "max_length": length, "nbest": count}
        if not values["sample"] and values["beam"] == 1 and count > 1:
            raise ValueError(f"count is {count}, but the likeliest is one: draw by chance, or set a beam of {count}")
        return settings.read(DecodingConfig, values)

    @torch.inference_mode()
    def _begun(self, ids: list[int]) -> tuple[Any, int]:
        """A state that has read all but the last token of a text, and that token."""
        *before, last = [self.marks.last, *ids]
        state = self.model.start(1)
        if before:
            self.model.hidden_states(torch.tensor([before], device=self.device), state)
        return state, last

    def _search(self, ids: list[int], c: DecodingConfig, one_line: bool) -> list[Hypothesis]:
        state, first = self._begun(ids)
        parts = {"first": first, "last": self.marks.last if one_line else NEVER, "rules": self._rules(c)}
        parts |= {"renormalize": c.renormalize, "alpha": c.length_penalty}
        if not c.sample and c.beam > 1:
            longest = torch.tensor([c.max_length], device=self.device)
            return beam_search(self.model, state, longest, beams=c.beam, nbest=c.nbest, **parts)[0]
        state.reorder(torch.zeros(c.nbest, dtype=torch.long, device=self.device))
        longest = torch.full((c.nbest,), c.max_length, device=self.device)
        found = one_by_one(self.model, state, longest, self._choose(ids, c), **{**parts, "alpha": 0.0})
        return [one for own in found for one in own]

    def _tokens(self, ids: list[int], c: DecodingConfig, one_line: bool) -> Iterator[int]:
        """One token after another, as `one_by_one` chooses them."""
        state, said = self._begun(ids)
        choose, rules, row = self._choose(ids, c), self._rules(c), torch.zeros(1, dtype=torch.long, device=self.device)
        tokens = torch.zeros(1, 0, dtype=torch.long, device=self.device)
        while tokens.shape[1] < c.max_length and not (one_line and tokens.shape[1] and said == self.marks.last):
            with torch.inference_mode():
                logits = self.model.step(torch.tensor([said], device=self.device), state)
                chosen = choose(ruled(logits, tokens, row, rules, c.renormalize), row)
                tokens, said = torch.cat([tokens, chosen[:, None]], dim=1), int(chosen)
            yield said

    def _choose(self, ids: list[int], c: DecodingConfig) -> Choose:
        if not c.sample:
            return likeliest
        seeds = [zlib.crc32(repr((c.seed, ids, k)).encode()) for k in range(c.nbest)]
        return drawn(seeds, temperature=c.temperature, top_k=c.top_k, top_p=c.top_p)

    def _rules(self, c: DecodingConfig) -> list[Rule]:
        rules = [limits.never(self.marks.never)] if self.marks.never else []
        if c.min_length:
            rules.append(limits.at_least(c.min_length, self.marks.last))
        return [*rules, limits.no_repeat(c.no_repeat)] if c.no_repeat else rules

    def _text(self, ids: Sequence[int]) -> str:
        """Text with a line break for each end."""
        ends = [-1, *(place for place, i in enumerate(ids) if i == self.marks.last), len(ids)]
        return "\n".join(self.subwords.decode(ids[start + 1 : end]) for start, end in pairwise(ends))

    def _continuation(self, ids: list[int], found: Hypothesis) -> Continuation:
        text = self._text([*ids, *found.tokens])[len(self._text(ids)) :]
        return Continuation(text, sum(found.scores), self.subwords.pieces(found.tokens), found.scores)

    @torch.inference_mode()
    def _told(self, lines: list[list[int]]) -> list[list[float]]:
        """The log probability of each token of lines that are read side by side."""
        width = max(map(len, lines))
        expected = torch.tensor([own + [NOTHING] * (width - len(own)) for own in lines], device=self.device)
        tokens = torch.full_like(expected, self.marks.last)
        tokens[:, 1:] = expected[:, :-1].masked_fill(expected[:, :-1] == NOTHING, self.marks.pad)
        parts = token_nll(self.model, self.model.hidden_states(tokens, self.model.start(len(lines))), expected).tolist()
        return [[-part for part in own[: len(line)]] for own, line in zip(parts, lines, strict=True)]
