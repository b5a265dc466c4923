"""Translate texts sentence by sentence, which `heed.text.passages` splits, protects and joins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from heed.decoding.config import DecodingConfig
from heed.decoding.ranking import PENALTIES
from heed.products.translator.model_bundle import ModelBundle
from heed.products.translator.results import Candidate, Translation, join_parts
from heed.products.translator.term_tokens import TermEncoder
from heed.products.translator.word_links import WordLinks, word_links
from heed.text import passages, protected
from heed.text.glossary import Glossary
from heed.text.passages import Passage
from heed.text.protected import ModelRequest

MAX_TERMS_AT_ONCE = 32  # of a glossary in one sentence, or in one part of a long one, and parts that it must keep
MAX_REQUIRED = 60  # characters of a part that a search must produce: a longer one takes the room of the sentence
CHUNK = 256  # sentences between two progress reports


@dataclass
class TranslatorModel(protected.Model):
    """A translator that answers the requests of a text, each distinct one once. `rank` chooses among the n best."""

    translator: Any  # heed.products.translator.translator.Translator, which imports this
    glossary: Glossary  # what it keeps is protected, not searched for at once
    options: Mapping[str, Any]  # of Translator.translate
    can_require: bool = True
    progress: Callable[[int, int], None] | None = None
    rank: int = 0
    answers: dict[ModelRequest, Translation] = field(default_factory=dict)

    def translate(self, requests: Sequence[ModelRequest]) -> list[str]:
        new = [request for request in dict.fromkeys(requests) if request not in self.answers]
        terms = Glossary(self.glossary.terms) if self.glossary.keep else self.glossary
        groups: dict[tuple[str, ...], list[ModelRequest]] = {}
        for request in new:
            groups.setdefault(request.required, []).append(request)
        done = 0
        for required, own in groups.items():
            glossary = with_required(terms, required, self.translator.term_encoder)
            for start in range(0, len(own), CHUNK):
                chunk = own[start : start + CHUNK]
                self.answers |= zip(chunk, self._ask(chunk, glossary), strict=True)
                done += len(chunk)
                if self.progress:
                    self.progress(done, len(new))
        return [self.candidate(request).text for request in requests]

    def _ask(self, requests: Sequence[ModelRequest], glossary: Glossary) -> list[Translation]:
        prefix = [request.prefix for request in requests]
        options = {**({"prefix": prefix} if any(prefix) else {}), "glossary": glossary, **self.options}
        found = self.translator.translate([request.text for request in requests], **options)
        # where there is no room for both, the terms of a glossary come first: the rest can still be put in
        return [
            self.answers[own._replace(required=())] if own.required and lacks(one, self.glossary) else one
            for own, one in zip(requests, found, strict=True)
        ]

    def candidate(self, request: ModelRequest) -> Candidate:
        """The answer to a request, with the requested rank."""
        nbest = self.answers[request].nbest
        return nbest[min(self.rank, len(nbest) - 1)]

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[WordLinks]:
        return word_links(self.translator, sources, targets)


def lacks(translation: Translation, glossary: Glossary | None) -> bool:
    """Whether a glossary term is missing from a translation."""
    return any(
        use.source in glossary.terms or use.source.lower() in glossary.terms for use in translation.missing if glossary
    )


def with_required(glossary: Glossary, required: Sequence[str], encoder: TermEncoder) -> Glossary:
    """A glossary that also keeps the required parts of a text that a model can spell, if they are not too many."""
    possible = [
        own for own in required if len(own) <= MAX_REQUIRED and own not in glossary.terms and encoder.can_spell(own)
    ]
    if not possible or len(possible) > MAX_TERMS_AT_ONCE:
        return glossary
    return glossary.keeping(possible)


def can_require(config: DecodingConfig) -> bool:
    """Whether a search can be constrained; sampling cannot."""
    return not config.sample and (config.rerank == "none" or config.candidates_from == "beam")


def rate(bundle: ModelBundle, source: str, target: str, config: DecodingConfig) -> Candidate | None:
    """A given translation with the scores a search would give it; None if it is too long for the model."""
    try:
        (pair,) = bundle.encode_pairs([source], [target])
    except ValueError:
        return None
    special = bundle.special[1]
    scores, tokens = bundle.token_logprobs([pair])[0], [*special.before, *pair[1], special.last]
    forced = len(special.before)  # costs nothing
    scores = [0.0] * forced + scores[forced:]
    score = sum(scores) / PENALTIES[config.penalty](len(tokens) - forced, config.length_penalty)
    return Candidate(target, score, bundle.target.pieces(tokens), scores)


def translate(
    model: TranslatorModel, texts: Sequence[str], config: DecodingConfig, language: str | None, prefix: Any
) -> list[Translation]:
    """Texts in their layout, sentence by sentence; `parts` of a translation are its sentences."""
    if not isinstance(prefix, str | None):
        raise ValueError(
            "prefix is a list, but texts are split into sentences: give one text at a time, or one prefix for all"
        )
    ranked = []
    for model.rank in range(config.nbest):
        found = passages.translate(texts, model, language=language, keep=model.glossary.keep, prefix=prefix or "")
        ranked.append(found)
    return [_whole(model, config, text, [own[i] for own in ranked]) for i, text in enumerate(texts)]


def _whole(
    model: TranslatorModel, config: DecodingConfig, text: str, ranked: Sequence[tuple[str, list[Passage]]]
) -> Translation:
    sides = text, *(output for output, _ in ranked)
    parts = [
        _sentence(model, config, sides, [found[i] for _, found in ranked]) for i in range(len(ranked[0][1]))
    ]  # fmt: skip
    whole = join_parts(text, parts, config.nbest, model.translator)
    outputs = sides[1:]
    nbest = [replace(own, text=output) for own, output in zip(whole.nbest, outputs, strict=False)]
    return replace(whole, source=text, text=outputs[0], nbest=nbest, parts=parts)


def _sentence(
    model: TranslatorModel, config: DecodingConfig, sides: Sequence[str], ranked: Sequence[Passage]
) -> Translation:
    """A sentence within its text, with its next best translations."""
    first, found = ranked[0], []
    source = sides[0][first.source_start : first.source_end]
    for model.rank, (own, output) in enumerate(zip(ranked, sides[1:], strict=True)):
        said = (
            model.candidate(own.shown)
            if own.shown.text
            else rate(model.translator.bundle, own.source, own.target, config)
        )
        said = said or Candidate(own.target, 0.0, [], [])
        found.append(replace(said, text=output[own.target_start : own.target_end]))
    best, bundle = found[0], model.translator.bundle
    asked, ids = model.answers.get(first.shown), bundle.target.encode([best.text])[0]
    terms = [use for use in asked.terms if use.source not in first.shown.required] if asked else []
    pieces = bundle.source_pieces(bundle.source.encode([source])[0])
    return Translation(source, best.text, best.score, best.tokens, ids, pieces, found, [], model.translator, terms)
