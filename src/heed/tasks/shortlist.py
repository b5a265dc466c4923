"""The shortlist of a model: the shortest with which it translates the validation set as well as with all subwords."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from heed.data.batching import by_length
from heed.data.shortlist import Shortlist, TaggedTables, TranslationTable, by_size
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import Rule, allow_only
from heed.evaluation.translation import metrics
from heed.products.translator.model_bundle import ModelBundle, Sentences
from heed.vocabularies.vocabulary import Pair

ValidationSet = tuple[Pair, Sequence[tuple[str, str]]]  # the vocabularies of a direction, texts and references

CHECKED = 1000  # translations, greedy
LOST = 0.1  # points of BLEU, and of chrF, at most


def choose(
    model: nn.Module, sets: Sequence[ValidationSet], table: TranslationTable | TaggedTables, batch_tokens: int
) -> Shortlist | None:
    """None if no shortlist is short enough to be useful, or each one loses quality on one of the sets, one for each
    direction.
    """
    checks = [found for vocabularies, pairs in sets if (found := _check(model, vocabularies, pairs, len(sets))).sources]
    if not checks:
        return None
    best = [_scores(own, None, batch_tokens) for own in checks]
    for shortlist in by_size(table, [source for own in checks for source in own.tagged], len(sets[0][0][1])):
        scores = (_scores(own, shortlist, batch_tokens) for own in checks)
        both = zip(scores, best, strict=True)
        if all(new >= old - LOST for own, others in both for new, old in zip(own, others, strict=True)):
            return shortlist
    return None


class _Check(NamedTuple):
    """What is translated in one direction."""

    bundle: ModelBundle
    sources: Sentences
    references: list[str]

    @property
    def tagged(self) -> Sentences:
        """The sources with what comes before them: the tag of the direction."""
        return [[*self.bundle.special[0].before, *source] for source in self.sources]


def _check(model: nn.Module, vocabularies: Pair, pairs: Sequence[tuple[str, str]], directions: int) -> _Check:
    bundle = ModelBundle([model.eval()], vocabularies)
    sources = vocabularies[0].encode([source for source, _ in pairs[: CHECKED // directions]])
    kept = [i for i, ids in enumerate(sources) if 0 < len(ids) < bundle.max_length]
    return _Check(bundle, [sources[i] for i in kept], [pairs[i][1] for i in kept])


def _scores(own: _Check, shortlist: Shortlist | None, batch_tokens: int) -> list[float]:
    """BLEU and chrF of greedy translations with a shortlist."""
    bundle, sources, references = own
    translations, config = [""] * len(sources), DecodingConfig(beam=1)
    for rows in by_length([len(ids) + 1 for ids in sources], batch_tokens):
        batch = [sources[row] for row in rows]
        rules = [] if shortlist is None else [_only_listed(shortlist, batch, bundle)]
        for row, found in zip(rows, bundle.search(batch, config, rules=rules), strict=True):
            translations[row] = bundle.target.decode(found[0].tokens)
    return [metric.corpus_score(translations, [references]).score for metric in metrics(False, "13a")[:2]]


def _only_listed(shortlist: Shortlist, sources: Sentences, bundle: ModelBundle) -> Rule:
    before, special = bundle.special[0].before, bundle.special[1]
    allowed = torch.zeros(len(sources), bundle.model.config.vocab_size, dtype=torch.bool)
    for row, source in enumerate(sources):
        allowed[row, [*shortlist.candidates([*before, *source]), special.last, *special.before]] = True
    return allow_only(allowed.to(bundle.device))
