"""The shortlist of a model: the shortest with which it translates the validation set as well as with all subwords."""

from collections.abc import Sequence

import torch
from torch import nn

from heed.data.batching import by_length
from heed.data.shortlist import Shortlist, TranslationTable, by_size
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import Rule, allow_only
from heed.evaluation.translation import metrics
from heed.products.translator.model_bundle import ModelBundle, Sentences
from heed.vocabularies.vocabulary import Pair

CHECKED = 1000  # translations, greedy
LOST = 0.1  # points of BLEU, and of chrF, at most


def choose(
    model: nn.Module, vocabularies: Pair, table: TranslationTable, pairs: Sequence[tuple[str, str]], batch_tokens: int
) -> Shortlist | None:
    """None if no shortlist is short enough to be useful, or each one loses quality. `pairs` are texts and
    references.
    """
    bundle = ModelBundle([model.eval()], vocabularies)
    sources = vocabularies[0].encode([source for source, _ in pairs[:CHECKED]])
    kept = [i for i, ids in enumerate(sources) if 0 < len(ids) < bundle.max_length]
    sources, references = [sources[i] for i in kept], [pairs[i][1] for i in kept]
    if not sources:
        return None
    best = _scores(bundle, sources, references, None, batch_tokens)
    for shortlist in by_size(table, sources, len(vocabularies[1])):
        scores = _scores(bundle, sources, references, shortlist, batch_tokens)
        if all(new >= old - LOST for new, old in zip(scores, best, strict=True)):
            return shortlist
    return None


def _scores(
    bundle: ModelBundle, sources: Sentences, references: list[str], shortlist: Shortlist | None, batch_tokens: int
) -> list[float]:
    """BLEU and chrF of greedy translations with a shortlist."""
    translations, config = [""] * len(sources), DecodingConfig(beam=1)
    for rows in by_length([len(ids) + 1 for ids in sources], batch_tokens):
        batch = [sources[row] for row in rows]
        rules = [] if shortlist is None else [_only_listed(shortlist, batch, bundle)]
        for row, found in zip(rows, bundle.search(batch, config, rules=rules), strict=True):
            translations[row] = bundle.target.decode(found[0].tokens)
    return [metric.corpus_score(translations, [references]).score for metric in metrics(False, "13a")[:2]]


def _only_listed(shortlist: Shortlist, sources: Sentences, bundle: ModelBundle) -> Rule:
    special = bundle.special[1]
    allowed = torch.zeros(len(sources), bundle.model.config.vocab_size, dtype=torch.bool)
    for row, source in enumerate(sources):
        allowed[row, [*shortlist.candidates(source), special.last, *special.before]] = True
    return allow_only(allowed.to(bundle.device))
