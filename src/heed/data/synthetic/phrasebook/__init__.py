"""The phrasebook: a small grammar of everyday talk that generates Korean-English pairs with their word alignments.

A sentence is drawn as an abstract clause and realized twice, in Korean and in English. Every word has the roles that
produced it, and words that share a role are linked. The same Korean always has the same English.

The split: a sentence belongs to train, valid or test by a hash of its English words, in any order and without the
vocative. So speech levels, ways to negate, word order and vocatives never cross splits, and neither
the Korean nor the English of a test sentence is ever seen in training.

Each file imports only those before it: korean_inflection, english_inflection, parts_of_speech, lexicon, clauses,
korean, english, choices, sampling, corpus.
"""

from heed.data.synthetic.phrasebook.corpus import EDITION, EXAMPLES, LECTURE, Pair, pairs, write

__all__ = ["EDITION", "EXAMPLES", "LECTURE", "Pair", "pairs", "write"]
