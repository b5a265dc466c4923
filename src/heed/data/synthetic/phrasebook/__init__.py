"""The phrasebook: a small grammar of everyday talk that gives Korean-English pairs with their word alignments.

A sentence is drawn as an abstract clause and said twice, by a Korean and an English realiser. Every word carries the
role that produced it, and words that share a role are linked. The same Korean always has the same English.

The split: a sentence belongs to train, valid or test by a hash of the words of its English, whatever their order and
without the person addressed. So speech levels, ways to negate, word order and vocatives never cross splits, and neither
the Korean nor the English of a test sentence is ever seen in training.

Each file imports only those before it: hangul, inflect, words, lexicon, clauses, korean, english, choices, drawing,
corpus.
"""

from heed.data.synthetic.phrasebook.corpus import EDITION, LECTURE, Pair, pairs, write

__all__ = ["EDITION", "LECTURE", "Pair", "pairs", "write"]
