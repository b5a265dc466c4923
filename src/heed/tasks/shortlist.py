"""Which shortlist a model may have: the shortest with which it translates the validation set as well as with all its subwords."""

from collections.abc import Sequence

import torch
from torch import nn

from heed.data.batching import by_length
from heed.data.shortlist import Shortlist, TranslationTable, by_size
from heed.decoding.config import DecodingConfig, max_output_length
from heed.decoding.limits import Rule, allow_only
from heed.decoding.sample import greedy, stepwise_search
from heed.evaluation.translation import metrics
from heed.products.translator.search_options import searching
from heed.products.translator.translator import Translator
from heed.vocabularies.vocabulary import Pair

CHECKED = 1000  # translations, greedy
LOST = 0.1  # points of BLEU, and of chrF, at most


def choose(
    model: nn.Module, subwords: Pair, table: TranslationTable, pairs: Sequence[tuple[str, str]], batch_tokens: int
) -> Shortlist | None:
    """None where no list is short enough to be worth having, or each costs something. `pairs` are texts and references."""
    translator = Translator([model.eval()], subwords)
    ids = subwords[0].encode([source for source, _ in pairs[:CHECKED]])
    kept = [i for i, own in enumerate(ids) if 0 < len(own) < translator.most]
    ids, references = [ids[i] for i in kept], [pairs[i][1] for i in kept]
    if not ids:
        return None
    best = _scores(translator, ids, references, None, batch_tokens)
    for few in by_size(table, ids, len(subwords[1])):
        found = _scores(translator, ids, references, few, batch_tokens)
        if all(new >= old - LOST for new, old in zip(found, best, strict=True)):
            return few
    return None


@torch.inference_mode()
def _scores(
    translator: Translator, ids: list[list[int]], references: list[str], few: Shortlist | None, batch_tokens: int
) -> list[float]:
    """BLEU and chrF of what is said, by a search that keeps to a list."""
    said, config, marks = [""] * len(ids), DecodingConfig(beam=1), translator.marks[1]
    for rows in by_length([len(own) + 1 for own in ids], batch_tokens):
        own = [ids[row] for row in rows]
        most = [max_output_length(config, len(source) + 1, translator.longest) for source in own]
        room = torch.tensor(most, device=translator.device)
        rules = [] if few is None else [_within(few, own, translator)]
        parts = searching(config, marks, [[] for _ in own], room, rules)
        for row, found in zip(
            rows, stepwise_search(translator.search, translator.start(own), room, greedy, **parts), strict=True
        ):
            said[row] = translator.target.decode(found[0].tokens)
    return [metric.corpus_score(said, [references]).score for metric in metrics(False, "13a")[:2]]


def _within(few: Shortlist, sources: list[list[int]], translator: Translator) -> Rule:
    marks = translator.marks[1]
    lists = torch.zeros(len(sources), translator.model.config.vocab_size, dtype=torch.bool)
    for row, source in enumerate(sources):
        lists[row, [*few.candidates(source), marks.last, *marks.before]] = True
    return allow_only(lists.to(translator.device))
