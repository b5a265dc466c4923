"""The phrasebook: everyday talk, generated as Korean-English pairs with their word alignments.

A line is of one of four kinds. A sentence of the grammar is drawn as an abstract clause and realized twice, in Korean
and in English. A pattern of a topic (topics*.py) is a sentence in both languages whose slots are filled from word lists
or with numbers. A set expression (expressions*.py) has several ways to say it in Korean and one English. A single word
(words.py) is as one looks it up. Every word has the roles that produced it, and words that share a role are linked. The
same Korean always has the same English.

The split: a sentence belongs to train, valid or test by a hash of its English words, in any order and without the
vocative or the expression before it. So speech levels, ways to negate, word order and vocatives never cross splits, and
neither the Korean nor the English of a test sentence is ever seen in training. Set expressions and
single words are in train alone.

Each file imports only those before it: korean_inflection, english_inflection, parts_of_speech, lexicon, clauses,
korean, english, choices, sampling, numbers, patterns, topic_words, topics*, words, expressions*, talk, corpus.
"""

from heed.data.synthetic.phrasebook.corpus import EDITION, EXAMPLES, LECTURE, SOURCES, Pair, pairs, write

__all__ = ["EDITION", "EXAMPLES", "LECTURE", "SOURCES", "Pair", "pairs", "write"]
