"""What a request has done with its texts, in a thread of its own; the models run elsewhere, and it waits for them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from heed.service.http.models import Said, Served, Wish
from heed.service.http.queue import Ticket, gathered
from heed.service.http.segmenter import BEGUN, LINKS, TEXT, Key, Passage, Task
from heed.service.http.segmenter_pool import Readers

Links = list[tuple[int, int]]
_WORDS = re.compile(r"\S+")


@dataclass
class Asker:
    """Sentences of one request on their way through the models of a route. A sentence is asked for once."""

    ticket: Ticket
    readers: Readers
    route: Sequence[Served]
    wish: Wish
    prefix: str = ""
    known: dict[tuple[str, str], list[Said]] = field(default_factory=dict)  # what each model of the route said

    def ask(self, texts: Sequence[str], prefix: str = "") -> list[Said]:
        """What the last model says to each text, and each begins with the prefix."""
        new = [text for text in dict.fromkeys(texts) if (text, prefix) not in self.known]
        steps: list[list[Said]] = [[] for _ in new]
        now = new
        for number, model in enumerate(self.route):
            last = number == len(self.route) - 1
            said = self._through(model, self.wish if last else Wish(), now, prefix if last else "")
            for own, one in zip(steps, said, strict=True):
                own.append(one)
            now = [one.text for one in said]
        self.known |= {(text, prefix): own for text, own in zip(new, steps, strict=True)}
        own = [self.known[text, prefix] for text in texts]
        return [one[-1] if one else Said(text, 0.0, [], [(text, 0.0)]) for text, one in zip(texts, own, strict=True)]

    def _through(self, model: Served, wish: Wish, texts: Sequence[str], prefix: str) -> list[Said]:
        """One model. A text that is longer than it allows goes in parts, of which the first has the prefix."""
        parts = [model.translator.parts(text) for text in texts]
        flat = [(part, "" if i else prefix) for own in parts for i, part in enumerate(own)]
        sizes = [len(ids) + 1 for ids in model.translator.source.encode([part for part, _ in flat])]
        futures: list[Any] = []
        for forced, group in groupby(zip(flat, sizes, strict=True), lambda both: bool(both[0][1])):
            own = list(group)
            items = [(part, begins, wish) for (part, begins), _ in own]
            futures += model.worker.submit(self.ticket, wish.key(forced), items, [size for _, size in own])
        said = iter(gathered(futures, self.ticket))
        return [_joined([next(said) for _ in own]) for own in parts]

    def aligned(self, sources: Sequence[str], targets: Sequence[str]) -> list[Links]:
        """Which words go with which; none where that cannot be told."""
        if not self.route:
            return [[(i, i) for i in range(len(text.split()))] for text in sources]
        if len(self.route) == 1:
            return self._links(self.route[0], sources, targets)
        middles = [self._middle(source, target) for source, target in zip(sources, targets, strict=True)]
        told = [i for i, middle in enumerate(middles) if middle is not None]
        one = self._links(self.route[0], [sources[i] for i in told], [middles[i] for i in told])
        two = self._links(self.route[1], [middles[i] for i in told], [targets[i] for i in told])
        found: list[Links] = [[] for _ in sources]
        for i, first, second in zip(told, one, two, strict=True):
            found[i] = sorted({(s, t) for s, m in first for n, t in second if m == n})
        return found

    def _middle(self, source: str, target: str) -> str | None:
        """What the first of two models said; None where the translation is not the second's own."""
        said = self.known.get((source, "")) or self.known.get((source, self.prefix))
        return said[0].text if said and said[-1].text == target else None

    def _links(self, model: Served, sources: Sequence[str], targets: Sequence[str]) -> list[Links]:
        if getattr(model.translator.model.config, "attention", None) == "off":
            return [[] for _ in sources]
        pieces = model.translator.source.encode(list(sources)), model.translator.target.encode(list(targets))
        most = model.translator.max_length - 2
        fits = [i for i, (s, t) in enumerate(zip(*pieces, strict=True)) if 0 < len(s) < most and 0 < len(t) < most]
        pairs = [(sources[i], targets[i]) for i in fits]
        sizes = [len(pieces[0][i]) + len(pieces[1][i]) for i in fits]
        found: list[Links] = [[] for _ in sources]
        said = gathered(model.worker.submit(self.ticket, ("align",), pairs, sizes), self.ticket)
        for i, own in zip(fits, said, strict=True):
            found[i] = own
        return found

    def done(self, task: Task, rank: int = 0, check: Callable[[int], Any] | None = None) -> Any:
        """A task with all its sentences; of each, the best translation (`rank` 0) or one of the next.

        `check` is told how many characters were asked for.
        """
        known: dict[Key, Any] = {}
        while (step := self.readers.step(task, known, self.ticket)).wanted:
            if check:
                check(step.characters)
            known |= self._found(step.wanted, rank)
        return step.made

    def _found(self, wanted: Sequence[Key], rank: int) -> dict[Key, Any]:
        """What is wanted, each kind of it in one go."""
        found: dict[Key, Any] = {}
        for kind in (TEXT, BEGUN, LINKS):
            keys = [key for key in wanted if key[0] == kind]
            sources, targets = [key[1] for key in keys], [key[2] for key in keys]
            if not keys:
                continue
            if kind == LINKS:
                said = self.aligned(sources, targets)
            else:
                each = self.ask(sources, self.prefix if kind == BEGUN else "")
                said = [one.nbest[min(rank, len(one.nbest) - 1)][0] for one in each]
            found |= dict(zip(keys, said, strict=True))
        return found

    def said(self, passage: Passage, first: bool) -> Said | None:
        """A passage as a model said it; None where parts of it were put back afterwards."""
        own = self.known.get((passage.source, self.prefix if first else ""))
        return own[-1] if own and own[-1].text == passage.target else None


def _joined(parts: list[Said]) -> Said:
    if len(parts) == 1:
        return parts[0]
    ranks = range(max((len(part.nbest) for part in parts), default=0))
    each = [[part.nbest[min(rank, len(part.nbest) - 1)] for part in parts] for rank in ranks]
    nbest = [(" ".join(text for text, _ in own), sum(score for _, score in own)) for own in each] or [("", 0.0)]
    return Said(*nbest[0], [token for part in parts for token in part.tokens], nbest)


def word_spans(text: str, start: int, end: int, words: int) -> list[tuple[int, int]]:
    """Where the words of a part of a text stand; none where there are not as many as there should be."""
    found = [(start + match.start(), start + match.end()) for match in _WORDS.finditer(text[start:end])]
    return found if len(found) == words else []
