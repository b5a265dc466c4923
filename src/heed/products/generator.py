"""Text from a language model: continuations of a prompt, and how likely a text is."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from heed import config as settings
from heed.data.streams import IGNORED
from heed.decoding import limits
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import Rule, apply_rules
from heed.decoding.steps import Hypothesis
from heed.evaluation.perplexity import (
    WINDOW,
    Context,
    Perplexity,
    has_memory,
    has_positions,
    measure_perplexity,
    token_nll,
)
from heed.lab.surprisal import Surprisal, TokenSurprisal
from heed.models.package import Package
from heed.products.attribution import Attribution, attribute
from heed.products.product import Product, in_batches, single
from heed.products.search import chooser, search, search_rules
from heed.products.translator.results import Score
from heed.vocabularies.folder import code_id, codes_of
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary
from heed.vocabularies.words import Words

NO_END = -1  # an end token that no model produces


@dataclass(frozen=True)
class Continuation:
    """What follows a prompt; `score` is its log-probability, `token_scores` those of its tokens."""

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]


class Generator(Product):
    """Generates and scores text with a language model. A line end is a token, and every text follows one."""

    noun, verbs = "a language model", ("generate", "evaluate", "score", "look")

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, facts: dict[str, Any] | None = None):
        self.model, self.vocabulary, self.facts = model.eval(), vocabulary, facts or {}
        self.special = vocabulary.special
        self.before = vocabulary.special.last  # what every text is read after: the end of a line, or a control code

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        own = single(packages, names, cls.noun)
        return cls(own.model, own.processors["text"], own.facts)

    def with_code(self, code: str) -> "Generator":
        """The same model, whose texts begin with a control code."""
        coded = copy.copy(self)
        coded.before = code_id(self.vocabulary, code)
        return coded

    @property
    def codes(self) -> list[str]:
        """The control codes that the model has."""
        return list(codes_of(self.vocabulary))

    @property
    def window(self) -> int:
        """How many tokens it was trained to read at once; of a folder that does not say, its positions."""
        return self.facts.get("window") or min(self.model.config.max_length, WINDOW)

    def attribute(self, texts: Sequence[str], codes: Sequence[str] = ()) -> list[Attribution]:
        """Which control code each text is likeliest under, of `codes` or all: source attribution as in CTRL."""
        return attribute(self.model, self.vocabulary, texts, self.window, codes)

    def perplexity(self, lines: Sequence[str], context: Context = Context()) -> Perplexity:  # noqa: B008 (frozen)
        """The perplexity of a text; windows are as long as in training, unless `context` says otherwise."""
        window = self.window if has_positions(self.model) or has_memory(self.model) else None
        return measure_perplexity(self.model, self.vocabulary, lines, replace(context, window=context.window or window))

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def generate(
        self, prompt: str = "", *, length: int = 100, count: int = 1, one_line: bool = False, **decoding: Any
    ) -> list[Continuation]:
        """`count` continuations of a text, of `length` tokens; with `one_line`, up to the end of the line at most.

        `decoding` are settings of DecodingConfig: sampled (temperature, top_k, top_p, seed) by default; with sample=False
        greedy (beam=1) or a beam search.
        """
        return self.generate_ids(self.encode(prompt), length=length, count=count, one_line=one_line, **decoding)

    def generate_ids(
        self, ids: list[int], *, length: int = 100, count: int = 1, one_line: bool = False, **decoding: Any
    ) -> list[Continuation]:
        """The same for a prompt of token ids."""
        found = self._search(ids, self._config(length, count, decoding), one_line)
        return [self._continuation(ids, hypothesis) for hypothesis in found]

    def stream(self, prompt: str = "", *, length: int = 100, one_line: bool = False, **decoding: Any) -> Iterator[str]:
        """The text of one continuation, piece by piece as it is found: the same that `generate` gives."""
        config, ids = self._config(length, 1, decoding), self.encode(prompt)
        if not config.sample and config.beam > 1:
            raise ValueError(f"beam is {config.beam}: a beam search knows its text only at the end; use generate")
        written, tokens = self._text(ids), list(ids)
        for token in self._stream_tokens(ids, config, one_line):
            tokens.append(token)
            text = self._text(tokens)
            if not text.endswith("\ufffd"):  # half a character: the rest may come
                yield text[len(written) :]
                written = text
        if rest := self._text(tokens)[len(written) :]:
            yield rest

    def score(self, texts: Sequence[str], batch_tokens: int = 4096) -> list[Score]:
        """How likely each text is as one line, its end included."""
        lines = [[*ids, self.special.last] for ids in self.vocabulary.encode(texts)]
        scores = in_batches(self._token_logprobs, lines, list(map(len, lines)), batch_tokens)
        rows = zip(texts, lines, scores, strict=True)
        return [Score("", text, sum(own), self.vocabulary.pieces(line), own) for text, line, own in rows]

    @torch.inference_mode()
    def look(self, text: str, likely: int = 8, name: str = "") -> Surprisal:
        """The surprisal of each token of a text, and the `likely` likeliest tokens there."""
        ids = self.encode(text)
        if not ids:
            raise ValueError("the text is empty: there is nothing to look at")
        self._check_length(len(ids) + 1, "the text and the end before it")
        tokens = torch.tensor([[self.before, *ids]], device=self.device)
        logits = self.model.project(self.model.hidden_states(tokens, self.model.start(1)))[0]
        logp = logits.double().log_softmax(dim=-1).cpu()
        best, which = logp.exp().topk(min(likely, logp.shape[-1]))
        positions = []
        for i, (candidates, odds) in enumerate(zip(which.tolist(), best.tolist(), strict=True)):
            candidates = [(self.vocabulary.pieces([k])[0], p) for k, p in zip(candidates, odds, strict=True)]
            if i == len(ids):  # after the last token
                positions.append(TokenSurprisal(None, None, None, candidates))
                continue
            bits, rank = -logp[i, ids[i]].item() / math.log(2), int((logp[i] > logp[i, ids[i]]).sum()) + 1
            positions.append(TokenSurprisal(self.vocabulary.pieces(ids)[i], bits, rank, candidates))
        return Surprisal(name, text, positions)

    def unknown(self, text: str) -> list[str]:
        """The words of a text that are not in a vocabulary of words."""
        if not isinstance(self.vocabulary, Words):
            return []
        return [word for word in self.vocabulary.split(text) if word not in self.vocabulary.ids]

    def encode(self, prompt: str) -> list[int]:
        """A text as ids; each of its lines but the last has an end."""
        lines = self.vocabulary.encode(prompt.split("\n"))
        ids = [i for line in lines[:-1] for i in (*line, self.special.last)] + lines[-1]
        words = [i for i in ids if i != self.special.last]
        if words and all(i == self.special.unknown for i in words):
            raise ValueError(f"the model knows no word of {prompt!r}: begin with words of the text it has learned from")
        return ids

    def _config(self, length: int, count: int, changes: dict[str, Any]) -> DecodingConfig:
        if length < 1 or count < 1:
            raise ValueError(f"length is {length} and count is {count}; both must be at least 1")
        values = {"beam": 1, "sample": changes.get("beam", 1) == 1, **changes, "max_length": length, "nbest": count}
        if not values["sample"] and values["beam"] == 1 and count > 1:
            raise ValueError(f"count is {count}, but the likeliest is one: sample, or set a beam of {count}")
        return settings.read(DecodingConfig, values)

    def _check_length(self, tokens: int, what: str) -> None:
        most = self.model.config.max_length
        if tokens > most:
            raise ValueError(f"{what} are {tokens:,} tokens, but the model has positions for {most:,}: take less")

    @torch.inference_mode()
    def _start(self, ids: list[int], length: int) -> tuple[Any, int]:
        """The state after all but the last token of a text, and that token."""
        *before, last = [self.before, *ids]
        self._check_length(len(ids) + 1 + length, f"the prompt and {length} more tokens")
        state = self.model.start(1)
        if before:
            self.model.hidden_states(torch.tensor([before], device=self.device), state)
        return state, last

    def _plan(self, config: DecodingConfig, one_line: bool) -> tuple[DecodingConfig, SpecialTokens, list[Rule]]:
        """Settings, special tokens and rules of a search. A line end is banned by min_length, but ends it only with `one_line`."""
        rules = [limits.min_length(config.min_length, self.special.last)] if config.min_length else []
        special = self.special._replace(last=self.special.last if one_line else NO_END, before=())
        return replace(config, min_length=0, force_end=False), special, rules

    def _search(self, ids: list[int], config: DecodingConfig, one_line: bool) -> list[Hypothesis]:
        state, first = self._start(ids, config.max_length)
        config, special, rules = self._plan(config, one_line)
        special, limit = special._replace(first=first), torch.tensor([config.max_length], device=self.device)
        return search(self.model, state, config, special, limit, rules=rules, keys=[(ids,)])[0]

    def _stream_tokens(self, ids: list[int], config: DecodingConfig, one_line: bool) -> Iterator[int]:
        """One token after another, as `search` chooses them."""
        state, token = self._start(ids, config.max_length)
        config, special, rules = self._plan(config, one_line)
        row = torch.zeros(1, dtype=torch.long, device=self.device)
        choose, rules = chooser(config, [(ids,)]), search_rules(config, special, row + config.max_length, [], rules)
        tokens = torch.zeros(1, 0, dtype=torch.long, device=self.device)
        while tokens.shape[1] < config.max_length and not (tokens.shape[1] and token == special.last):
            with torch.inference_mode():
                logits = self.model.step(torch.tensor([token], device=self.device), state)
                chosen = choose(apply_rules(logits, tokens, row, rules, config.renormalize), row)
                tokens, token = torch.cat([tokens, chosen[:, None]], dim=1), int(chosen)
            yield token

    def _text(self, ids: Sequence[int]) -> str:
        """Text with a line break for each end."""
        ends = [-1, *(i for i, token in enumerate(ids) if token == self.special.last), len(ids)]
        return "\n".join(self.vocabulary.decode(ids[start + 1 : end]) for start, end in pairwise(ends))

    def _continuation(self, ids: list[int], found: Hypothesis) -> Continuation:
        text = self._text([*ids, *found.tokens])[len(self._text(ids)) :]
        return Continuation(text, sum(found.scores), self.vocabulary.pieces(found.tokens), found.scores)

    @torch.inference_mode()
    def _token_logprobs(self, lines: list[list[int]]) -> list[list[float]]:
        """The log-probability of each token of a batch of lines."""
        width = max(map(len, lines))
        self._check_length(width, "a line and its end")
        expected = torch.tensor([line + [IGNORED] * (width - len(line)) for line in lines], device=self.device)
        tokens = torch.full_like(expected, self.before)
        tokens[:, 1:] = expected[:, :-1].masked_fill(expected[:, :-1] == IGNORED, self.special.pad)
        states = self.model.hidden_states(tokens, self.model.start(len(lines)))
        nll = token_nll(self.model, states, expected).tolist()
        return [[-value for value in row[: len(line)]] for row, line in zip(nll, lines, strict=True)]
