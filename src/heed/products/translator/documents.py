"""Whole documents with a translator: what `heed.text.documents` takes apart, translated in batches."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heed.products.translator.results import TermUse
from heed.products.translator.translator import Translator
from heed.text import documents, protect
from heed.text.glossary import Glossary, merged
from heed.text.inline import Translated

CHUNK = 256  # sentences between two reports of progress
UNMARKED = ("text", "tsv")  # kinds of documents in which nothing is put back by alignment


@dataclass
class Asker:
    """Translates the sentences of a document, each once."""

    translator: Translator
    glossary: Glossary
    options: Mapping[str, Any]
    aligns: bool
    progress: Callable[[int, int], None] | None = None
    known: dict[str, str] = field(default_factory=dict)
    lost: dict[str, list[TermUse]] = field(
        default_factory=dict
    )  # by their sentence, of which code is asked for once more

    @property
    def missing(self) -> list[TermUse]:
        """The terms that there was no way to say."""
        return [term for own in self.lost.values() for term in own]

    def __call__(self, texts: list[str]) -> Sequence[str | Translated]:
        said = protect.translate(texts, self._plainly)
        self.lost |= {text.replace("`", ""): self._lost(text, own) for text, own in zip(texts, said, strict=True)}
        if not self.aligns:
            return said
        return [Translated(*both) for both in zip(said, self._links(texts, said), strict=True)]

    def _plainly(self, texts: list[str]) -> list[str]:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        for start in range(0, len(new), CHUNK):
            own = new[start : start + CHUNK]
            found = self.translator.translate(own, glossary=self.glossary, **self.options)
            self.known |= {text: one.text for text, one in zip(own, found, strict=True)}
            if self.progress:
                self.progress(start + len(own), len(new))
        return [self.known[text] for text in texts]

    def _lost(self, source: str, target: str) -> list[TermUse]:
        """The terms of a sentence that are not in its translation as often as they should be."""
        matches = self.glossary.matches(source)
        there = Counter({match.target: target.casefold().count(match.target.casefold()) for match in matches})
        lost = []
        for match in matches:
            there[match.target] -= 1
            if there[match.target] < 0:
                lost.append(TermUse(match.source, match.target, met=False))
        return lost

    def _links(self, sources: list[str], targets: list[str]) -> list[list[tuple[int, int]]]:
        """Which words go with which; none where the model has no place for the pair, or no attention."""
        found: list[list[tuple[int, int]]] = [[] for _ in sources]
        if getattr(self.translator.model.config, "attention", None) == "off":
            return found
        sides = self.translator.source.encode(sources), self.translator.target.encode(targets)
        room = [self.translator.max_length - len(marks.before) - 1 for marks in self.translator.marks]
        both = enumerate(zip(*sides, strict=True))
        fits = [i for i, pair in both if all(0 < len(own) <= most for own, most in zip(pair, room, strict=True))]
        links = self.translator.align_pairs([sources[i] for i in fits], [targets[i] for i in fits])
        for i, own in zip(fits, links, strict=True):
            found[i] = own
        return found


def translate_document(
    translator: Translator,
    data: bytes,
    name: str,
    *,
    kind: str | None = None,
    column: int | None = None,
    language: str | None = None,
    glossary: Glossary | Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> tuple[bytes, list[TermUse]]:
    """A document in the same format, and the terms of the glossary that are missing in it.

    `kind` is that of `documents.KINDS`; the name's ending unless said. `language` is the document's, the model's unless said.
    `options` are those of `Translator.translate`. `progress` is told how many sentences are done, and of how many.
    """
    language = language or (translator.facts.get("languages") or {}).get("source")
    aligns = (kind or documents.kind_of(name)) not in UNMARKED
    asker = Asker(translator, merged(glossary), options, aligns, progress)
    done = documents.translate(data, name, asker, column=column, language=language, kind=kind)
    return done, asker.missing
