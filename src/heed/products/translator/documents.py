"""Translate whole documents, which `heed.text.documents` takes apart, in batches."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from heed.decoding.config import DecodingConfig
from heed.products.translator.passages import TranslatorModel, can_require
from heed.products.translator.results import TermUse
from heed.products.translator.translator import Translator
from heed.text import documents, protected
from heed.text.glossary import Glossary, as_glossary
from heed.text.inline import Translated
from heed.text.protected import ModelRequest

SEARCH = {own.name for own in fields(DecodingConfig)}
WITHOUT_MARKUP = ("text", "tsv")  # document kinds that need no alignment, because no markup is put back


@dataclass
class SentenceTranslator:
    """Translates the sentences of a document, each distinct one once."""

    model: TranslatorModel
    needs_alignment: bool
    # by sentence without backticks: a sentence with code in it is requested a second time with them
    missing_by_sentence: dict[str, list[TermUse]] = field(default_factory=dict)

    @property
    def missing(self) -> list[TermUse]:
        """The glossary terms missing from the translations."""
        return [term for terms in self.missing_by_sentence.values() for term in terms]

    def __call__(self, texts: list[str]) -> Sequence[str | Translated]:
        keep = self.model.glossary.keep
        found = protected.translate_with(self.model, [ModelRequest(text) for text in texts], keep)
        targets = [own.text for own in found]
        pairs = list(zip(texts, targets, strict=True))
        self.missing_by_sentence |= {text.replace("`", ""): self._missing_terms(text, target) for text, target in pairs}
        if not self.needs_alignment:
            return targets
        links = self.model.align(texts, targets)
        return [Translated(target, own) for target, own in zip(targets, links, strict=True)]

    def _missing_terms(self, source: str, target: str) -> list[TermUse]:
        """The terms that occur less often in the translation than they should."""
        matches = self.model.glossary.matches(source)
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
    """A document in the same format, and the glossary terms missing from it. `kind` is one of `documents.KINDS`
    (default: by file extension); `language` is the document's (default: the model's). `options` are those of
    `Translator.translate`. `progress` is called with the sentences done and their total.
    """
    language = language or (translator.facts.get("languages") or {}).get("source")
    needs_alignment = (kind or documents.kind_of(name)) not in WITHOUT_MARKUP
    config = translator.search_config({name: own for name, own in options.items() if name in SEARCH})
    model = TranslatorModel(translator, as_glossary(glossary), options, can_require(config), progress)
    sentences = SentenceTranslator(model, needs_alignment)
    done = documents.translate(data, name, sentences, column=column, language=language, kind=kind)
    return done, sentences.missing
