"""Translations that must contain glossary terms, at the positions of the words the model would have used."""

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial

import numpy as np

from heed.data.batching import by_length
from heed.decoding.config import DecodingConfig, forced_start
from heed.decoding.constraints import Constraints, Replaced
from heed.decoding.terms import Term
from heed.products.product import in_batches
from heed.products.translator.alignment import words_of
from heed.products.translator.attention_trace import AlignmentRows, trace_batch
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences
from heed.products.translator.term_tokens import NO_TERMS, RequiredTerms, TermEncoder
from heed.vocabularies.vocabulary import Vocabulary

MIN_BEAMS = 10  # terms share the beams among them (Post and Vilar, 2018)
SHARED_PREFIX = 0.6  # the share of a word's letters with which two words count as forms of one
Job = tuple[list[int], list[int], list[Term], Replaced]  # a source, its prefix, its terms, and what they replace


@dataclasses.dataclass(frozen=True)
class TermSearch:
    """A beam search that must produce glossary terms; `rows` say which words of a translation they replace."""

    bundle: ModelBundle
    encoder: TermEncoder
    rows: AlignmentRows

    def complete(
        self,
        found: Hypotheses,
        sources: Sentences,
        config: DecodingConfig,
        prefixes: Sentences,
        required: Sequence[RequiredTerms],
        batch_tokens: int,
    ) -> Hypotheses:
        """The result of an unconstrained search; sources with missing terms are searched again."""
        missing = self.encoder.missing
        if required.count(NO_TERMS) == len(required):
            return list(found)
        again = [row for row, own in enumerate(required) if any(missing(own.terms, h.tokens) for h in found[row])]
        sources, required = [sources[row] for row in again], [required[row] for row in again]
        replaced = self.replaced_tokens(sources, [found[row][0].tokens for row in again], required, batch_tokens)
        terms = [own.terms for own in required]
        jobs = list(zip(sources, [prefixes[row] for row in again], terms, replaced, strict=True))
        results = in_batches(partial(self._search, config), jobs, [len(source) + 1 for source in sources], batch_tokens)
        completed = dict(zip(again, results, strict=True))
        return [completed.get(row, hypotheses) for row, hypotheses in enumerate(found)]

    def _search(self, config: DecodingConfig, jobs: list[Job]) -> Hypotheses:
        sources, prefixes, terms, replaced = map(list, zip(*jobs, strict=True))
        special, max_lengths = self.bundle.special[1], self.bundle.max_lengths(sources, config, prefixes)
        start = forced_start(config, special)
        constraints = Constraints(
            terms, self.encoder.letters, max_lengths, special.last, silent=special.before,
            forced=[[*start, *prefix] for prefix in prefixes], force_end=config.force_end, replaced=replaced,
        )  # fmt: skip
        config = dataclasses.replace(config, beam=max(config.beam, MIN_BEAMS))
        return self.bundle.search(sources, config, prefixes=prefixes, rules=[constraints.rule], pick=constraints.pick)

    def replaced_tokens(
        self, sources: Sentences, translations: Sentences, required: Sequence[RequiredTerms], batch_tokens: int
    ) -> list[Replaced]:
        """For each translation with missing terms: by the first token of a term, the tokens it replaces. They begin
        the word that attends most to the term, among those that attend to nothing else more. If there is none, or no
        attention, a term keeps the model's probability.
        """
        replaced: list[Replaced] = [{} for _ in sources]
        pairs = [(source, self.bundle.strip(ids)[0]) for source, ids in zip(sources, translations, strict=True)]
        nonempty = [row for row, (_, target) in enumerate(pairs) if target]
        sizes = [len(pairs[row][0]) + len(pairs[row][1]) + 1 for row in nonempty]
        for rows in by_length(sizes, max(1, batch_tokens)):
            batch = [nonempty[row] for row in rows]
            trace = trace_batch(self.bundle.model, [pairs[row] for row in batch], self.bundle.special)
            if not trace.maps["cross"]:
                return replaced
            for row, weights in zip(batch, self.rows.of(trace.maps["cross"]), strict=True):
                replaced[row] = self._replaced(pairs[row][1], weights, required[row])
        return replaced

    def _replaced(self, ids: list[int], weights: np.ndarray, required: RequiredTerms) -> Replaced:
        vocabulary, (left, top) = self.bundle.target, (len(special.before) for special in self.bundle.special)
        words = np.array(words_of(vocabulary.pieces(ids)))
        texts = [_letters(vocabulary, ids, words, word) for word in range(words[-1] + 1)]
        rows = weights[top : top + len(ids), left:]
        replaced: dict[int, frozenset[int]] = {}
        for term, (start, end) in zip(required.terms, required.spans, strict=True):
            attention = rows[:, start:end].sum(axis=1)
            peaks = [i for i, row in enumerate(rows) if start <= row.argmax() < end and texts[words[i]]]
            if peaks:
                word = words[max(peaks, key=lambda i: attention[i])]
                first = ids[int((words == word).argmax())]
                _add(replaced, term, word_forms(self.encoder, first, texts[word]), vocabulary)
        return replaced


def _letters(vocabulary: Vocabulary, ids: list[int], words: np.ndarray, word: int) -> str:
    text = vocabulary.decode([token for token, number in zip(ids, words.tolist(), strict=True) if number == word])
    return "".join(char for char in text if char.isalnum())


def _add(replaced: dict[int, frozenset[int]], term: Term, tokens: frozenset[int], vocabulary: Vocabulary) -> None:
    """Tokens that begin a word replace only such tokens, and others only others."""
    for way in term:
        opens = vocabulary.pieces(way.tokens[:1])[0].startswith("▁")
        same = frozenset(token for token in tokens if vocabulary.pieces([token])[0].startswith("▁") == opens)
        if same:
            replaced[way.tokens[0]] = replaced.get(way.tokens[0], frozenset()) | same


def word_forms(encoder: TermEncoder, first: int, word: str) -> frozenset[int]:
    """The tokens that begin a word or another form of it (cat, cats), including `first`."""
    shortest = max(2, math.ceil(SHARED_PREFIX * len(word)))
    opens = encoder.vocabulary.pieces([first])[0].startswith("▁")
    pieces = encoder.sorted_pieces[opens]
    forms, at = [first], bisect_left(pieces, (word[:shortest], -1))
    while at < len(pieces) and pieces[at][0].startswith(word[:shortest]):
        piece, token = pieces[at]
        if len(piece) >= shortest and (word.startswith(piece) or piece.startswith(word)):
            forms.append(token)
        at += 1
    return frozenset(forms)
