"""Lexical shortlists: learned, checked, written and read."""

import json
from collections import defaultdict
from dataclasses import asdict

import numpy as np
import pytest

from heed.data import corpus as corpora
from heed.data import shortlist
from heed.data.filters import FilterReport
from heed.data.shortlist import Shortlist, TranslationTable
from heed.vocabularies.vocabulary import SpecialTokens

WORDS = 60


class Words:
    """A minimal vocabulary."""

    special = SpecialTokens(0, 0, 0, 0)

    def __init__(self, name, size=WORDS):
        self.name, self.size = name, size

    def __len__(self):
        return self.size

    def key(self):
        return self.name

    clean = language_tag = fixed_special = encode = decode = pieces = len  # never called


TWO = Words("a"), Words("b")


def write_corpus(folder, **sides):
    """A prepared corpus of these ids."""
    folder.mkdir(parents=True)
    for name, sentences in sides.items():
        np.concatenate([np.array(own, dtype=np.uint16) for own in sentences]).tofile(folder / f"{name}.ids")
        np.cumsum([0, *map(len, sentences)], dtype=np.int64).tofile(folder / f"{name}.offsets")
    count = len(next(iter(sides.values())))
    facts = {"dtype": "uint16", "sides": list(sides), "report": asdict(FilterReport(count, count))}
    (folder / "corpus.json").write_text(json.dumps(facts))
    return corpora.Corpus(folder)


def translated(folder, pairs=600, seed=3):
    """Each word has one translation, in any order; words differ in how often they come."""
    chance = np.random.default_rng(seed)
    table, often = chance.permutation(WORDS), 1 / np.arange(1, WORDS + 1)
    sources = [chance.choice(WORDS, chance.integers(1, 9), p=often / often.sum()).tolist() for _ in range(pairs)] + [
        [i] * 2 for i in range(WORDS)
    ]
    targets = [chance.permutation(table[own]).tolist() for own in sources]
    return table, write_corpus(folder / "made", source=sources, target=targets)


def test_each_target_language_has_its_own_list_by_its_tag(tmp_path):
    """Two languages of different words: the first 60 words are those of the sources, the next 30 of each language."""
    chance, tags, size = np.random.default_rng(4), (WORDS, WORDS + 1), 62 + 2 * WORDS
    sources, targets, alone = [], [], {}
    for number, tag in enumerate(tags):
        _, own = translated(tmp_path / str(number), pairs=300, seed=number)
        rows = np.split(own.source.ids.astype(int), own.source.offsets[1:-1])
        said = [row + 62 + number * WORDS for row in np.split(own.target.ids.astype(int), own.target.offsets[1:-1])]
        sources, targets = sources + [[tag, *row] for row in rows], targets + [row.tolist() for row in said]
        vocabularies = (Words("a", size), Words("b", size))
        made = write_corpus(tmp_path / f"tagged-{number}", source=[[tag, *row] for row in rows], target=said)
        alone[tag] = shortlist.learn(made, vocabularies)
    both = write_corpus(tmp_path / "both", source=sources, target=targets)
    half = len(sources) // 2
    both.prefixes, both.counts = [[tag] for tag in tags], [half, half]
    found = shortlist.learn(both, vocabularies, set(tags)).shortlist(5, 2)
    lists = {tag: table.shortlist(5, 2) for tag, table in alone.items()}
    for tag, own in lists.items():
        assert found.by_source[tag].tolist() == sorted(
            {*own.always.tolist(), *own.by_source.get(tag, own.always).tolist()}
        )
        word = int(chance.integers(WORDS))
        assert own.candidates([tag, word]) <= found.candidates([tag, word])
        others = set().union(*(other.by_source[word].tolist() for other in lists.values()))
        assert found.candidates([tag, word]) <= own.candidates([tag, word]) | others | set(found.always.tolist())
    assert len(found.always) == 1  # the languages share no word, and CTranslate2 needs one


def test_every_word_has_its_translation(tmp_path):
    table, corpus = translated(tmp_path)
    found = shortlist.learn(corpus, TWO).shortlist(1, 1)
    own = {i: own.tolist() for i, own in found.by_source.items()}
    assert own == {i: [e] for i, e in enumerate(table.tolist())} | {0: own[0]}  # the translation of 0 is always there
    assert table[0] in found.candidates([0])
    said = np.bincount(corpus.target.ids)
    assert found.always.tolist() == [said.argmax()]
    more = shortlist.learn(corpus, TWO).shortlist(5, 4)
    assert more.always.tolist() == sorted(np.argsort(-said)[:5].tolist())
    assert all(table[i] in more.candidates([i]) and len(own) <= 4 for i, own in more.by_source.items())
    assert not set(more.always.tolist()) & {e for own in more.by_source.values() for e in own.tolist()}
    assert more.candidates([0, 1]) == {*more.always.tolist(), *more.by_source[0].tolist(), *more.by_source[1].tolist()}


def reference_model_1(sources, targets, rounds):
    """IBM model 1 by its definition, word by word."""
    likely = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts, total = defaultdict(float), defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            for e in target:
                norm = sum(likely[f, e] for f in [*source, None])
                for f in [*source, None]:
                    counts[f, e] += likely[f, e] / norm
                    total[f] += likely[f, e] / norm
        likely = defaultdict(float, {pair: count / total[pair[0]] for pair, count in counts.items()})
    return counts


def test_counts_are_those_of_the_definition(tmp_path, monkeypatch):
    monkeypatch.setattr(shortlist, "MIN_COUNT", -1.0)
    _, corpus = translated(tmp_path, pairs=40)
    found = shortlist.learn(corpus, TWO)
    own = {
        (f, e): c
        for (f, e), c in reference_model_1(
            *([side[i].tolist() for i in range(len(corpus))] for side in (corpus.source, corpus.target)),
            shortlist.EM_ROUNDS,
        ).items()
        if f is not None
    }
    ours = dict(zip(zip(found.source.tolist(), found.target.tolist(), strict=True), found.counts.tolist(), strict=True))
    assert ours.keys() == own.keys()
    for pair, count in own.items():
        assert ours[pair] == pytest.approx(count, abs=1e-4)


def test_a_subword_of_both_sides_may_stay_what_it_is(tmp_path):
    _, corpus = translated(tmp_path)
    same = shortlist.learn(corpus, (Words("a"),) * 2)
    few = same.shortlist(1, 1)
    assert all(i in few.by_source[i] and len(own) <= 2 for i, own in few.by_source.items())
    seldom = shortlist.learn(corpus, (Words("a", WORDS + 3),) * 2).shortlist(1, 1)
    assert seldom.by_source[WORDS + 1].tolist() == [WORDS + 1]  # which no sentence has


def test_of_a_large_corpus_only_as_much_is_read_as_is_needed(tmp_path, monkeypatch):
    _, corpus = translated(tmp_path, pairs=4000)
    read = []
    blocks = shortlist._blocks
    monkeypatch.setattr(shortlist, "_blocks", lambda *own: (read.append(rows) or rows for rows in blocks(*own)))
    monkeypatch.setattr(shortlist, "RARE", 3)
    monkeypatch.setattr(shortlist, "BLOCK_CELLS", 4000)
    whole = shortlist.learn(corpus, TWO)
    rows = np.concatenate(read)
    assert len(set(rows.tolist())) == len(rows) < len(corpus) / 2
    assert set(whole.source.tolist()) == set(range(WORDS))
    read.clear()
    monkeypatch.setattr(shortlist, "BLOCK_CELLS", 10**9)
    shortlist.learn(corpus, TWO)
    assert sorted(np.concatenate(read).tolist()) == list(range(len(corpus)))


def test_lists_come_from_the_shortest_on_while_they_are_worth_having(monkeypatch):
    """Word i became word i often, and word i + 1 now and then."""
    words = np.arange(10)
    table = TranslationTable(
        np.repeat(words, 2), np.stack([words, (words + 1) % 10], 1).flatten(), np.tile([9.0, 1.0], 10), 0
    )
    monkeypatch.setattr(shortlist, "SIZES", ((1, 1), (1, 2), (10, 2)))
    sizes = [len(own.candidates([1, 2])) for own in shortlist.by_size(table, [[1, 2]] * 9, 90)]
    assert sizes == sorted(sizes) and len(sizes) == 3 and sizes[-1] == 10
    assert len(list(shortlist.by_size(table, [[1, 2]] * 9, 3 * sizes[1]))) == 2  # the last has more than a third of all
    assert not list(shortlist.by_size(table, [[1, 2]] * 9, 3))


NAMES = ["<pad>", "▁a", "b", "▁c"]


def test_it_is_written_and_read(tmp_path):
    few = Shortlist(np.array([1, 3]), {2: np.array([1]), 1: np.array([2, 3])})
    text = shortlist.to_text(few, (NAMES, NAMES))
    assert text == "\t▁a ▁c\n▁a\tb ▁c\nb\t▁a\n"
    assert shortlist.read(tmp_path, NAMES) is None
    (tmp_path / shortlist.FILE).write_text(text, "utf-8")
    assert shortlist.read(tmp_path, NAMES) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\t▁a\nb ▁c\n", r"shortlist.txt is damaged: each line must be a subword, a tab and subwords; restore it, or remove it"),
        ("", r"is damaged"),
        ("▁a\tb\n", r"is damaged"),
        ("\t▁a ▁other\nb\t▁c\n", r"shortlist.txt has '▁other', which is not a subword of this model: it belongs to another model; remove it"),
    ],
)  # fmt: skip
def test_one_that_is_damaged_or_of_another_model_is_refused(tmp_path, text, words):
    (tmp_path / shortlist.FILE).write_text(text, "utf-8")
    with pytest.raises(ValueError, match=words):
        shortlist.read(tmp_path, NAMES)
