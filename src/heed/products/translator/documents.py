"""Whole documents with a translator: what `heed.text.documents` takes apart, translated in batches."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heed.products.translator.results import TermUse
from heed.products.translator.translator import Translator
from heed.products.translator.word_links import word_links
from heed.text import documents, protect
from heed.text.glossary import Glossary, as_glossary
from heed.text.inline import Translated

CHUNK = 256  # sentences between two progress reports
WITHOUT_MARKUP = ("text", "tsv")  # document kinds that need no alignment, because no markup is put back


@dataclass
class SentenceTranslator:
    """Translates the sentences of a document, each distinct one once."""

    translator: Translator
    glossary: Glossary
    options: Mapping[str, Any]
    needs_alignment: bool
    progress: Callable[[int, int], None] | None = None
    translations: dict[str, str] = field(default_factory=dict)
    # by sentence without backticks: a sentence with code in it is requested a second time with them
    missing_by_sentence: dict[str, list[TermUse]] = field(default_factory=dict)

    @property
    def missing(self) -> list[TermUse]:
        """The glossary terms that the translations lack."""
        return [term for terms in self.missing_by_sentence.values() for term in terms]

    def __call__(self, texts: list[str]) -> Sequence[str | Translated]:
        targets = protect.translate(texts, self._translate)
        pairs = list(zip(texts, targets, strict=True))
        self.missing_by_sentence |= {text.replace("`", ""): self._missing_terms(text, target) for text, target in pairs}
        if not self.needs_alignment:
            return targets
        links = word_links(self.translator, texts, targets)
        return [Translated(target, own) for target, own in zip(targets, links, strict=True)]

    def _translate(self, texts: list[str]) -> list[str]:
        new = [text for text in dict.fromkeys(texts) if text not in self.translations]
        for start in range(0, len(new), CHUNK):
            chunk = new[start : start + CHUNK]
            results = self.translator.translate(chunk, glossary=self.glossary, **self.options)
            self.translations |= {text: result.text for text, result in zip(chunk, results, strict=True)}
            if self.progress:
                self.progress(start + len(chunk), len(new))
        return [self.translations[text] for text in texts]

    def _missing_terms(self, source: str, target: str) -> list[TermUse]:
        """The terms that occur less often in the translation than they should."""
        matches = self.glossary.matches(source)
        left = Counter({match.target: target.casefold().count(match.target.casefold()) for match in matches})
        missing = []
        for match in matches:
            left[match.target] -= 1
            if left[match.target] < 0:
                missing.append(TermUse(match.source, match.target, met=False))
        return missing


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
    """A document in the same format, and the glossary terms that are missing in it.

    `kind` is one of `documents.KINDS`, by default that of the file extension; `language` is the document's, by default the
    model's. `options` are those of `Translator.translate`. `progress` is called with the sentences done and their total.
    """
    language = language or (translator.facts.get("languages") or {}).get("source")
    needs_alignment = (kind or documents.kind_of(name)) not in WITHOUT_MARKUP
    sentences = SentenceTranslator(translator, as_glossary(glossary), options, needs_alignment, progress)
    done = documents.translate(data, name, sentences, column=column, language=language, kind=kind)
    return done, sentences.missing
