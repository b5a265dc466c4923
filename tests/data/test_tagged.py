"""Labels of words: schemes there and back, CoNLL files with their errors, first pieces, and windows of long sentences."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest

from heed.data import conll
from heed.data.entities import Entity, entities, labels_of, scheme_of_model, violation
from heed.data.tagged import align_words, collate_tagged, find_words, join_words, tagged_rows
from heed.data.text_windows import best_windows, split_windows
from heed.vocabularies.labels import Labels
from tests.convert.encoders import vocabulary

KINDS = ("wordpiece", "roberta", "albert", "bigbird")
SENTENCES = [  # every way to put entities of two types into four words
    [Entity(kind, start, end) for kind, start, end in own]
    for own in (
        [],
        [("A", 0, 1)],
        [("A", 0, 4)],
        [("A", 0, 2), ("A", 2, 4)],
        [("A", 0, 2), ("B", 2, 4)],
        [("B", 1, 2), ("B", 2, 3), ("A", 3, 4)],
        [("A", 0, 1), ("A", 1, 2), ("A", 2, 3), ("A", 3, 4)],
    )
]


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
def test_entities_are_written_in_a_scheme_and_read_again(scheme):
    for own in SENTENCES:
        labels = labels_of(own, 4, scheme)
        assert entities(labels) == own and violation(labels, scheme) is None


def conlleval(labels):
    """The chunks by the rules of the script of CoNLL 2000, endOfChunk and startOfChunk, word by word."""
    found, start = [], None
    parts = [("O", "") if own == "O" else tuple(own.split("-")) for own in labels]
    for i, ((tag, kind), (last, before)) in enumerate(zip([*parts, ("O", "")], [("O", ""), *parts], strict=True)):
        ends = (last, tag) in {
            ("B", "B"),
            ("B", "O"),
            ("I", "B"),
            ("I", "O"),
            ("E", "E"),
            ("E", "I"),
            ("E", "O"),
            ("E", "B"),
        }
        if start is not None and (ends or (last != "O" and before != kind)):
            found.append(Entity(before, start, i))
            start = None
        begins = tag == "B" or (last, tag) in {("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
        if tag != "O" and (begins or before != kind):
            start = i
    return found


def test_any_labels_have_the_entities_that_conlleval_finds():
    names = ["O", *(f"{prefix}-{kind}" for prefix in "BIE" for kind in "XY")]
    for labels in product(names, repeat=4):
        assert entities(labels) == conlleval(labels), labels
    words = [Entity("X", place, place + 1) for place in range(3)]
    assert entities(["I-X", "S-X", "I-X"]) == words  # S- is not in the script; seqeval reads it as a word alone


@pytest.mark.parametrize(
    ("labels", "scheme", "why"),
    [
        ("O I-A", "bio", (1, "I-A follows O, and cannot begin an entity in BIO")),
        ("B-A I-B", "bio", (1, "I-B follows B-A, and cannot begin an entity in BIO")),
        ("I-A", "bio", (0, "I-A follows the beginning of the sentence, and cannot begin an entity in BIO")),
        ("B-A S-A", "bio", (1, "S-A belongs to BIOES")),
        ("O B-A", "iob1", (1, "B-A follows O, and in IOB1 it must follow an entity of its own type")),
        ("B-A O", "bioes", (1, "O follows B-A, but the entity before it has no E-")),
        ("S-A E-A", "bioes", (1, "E-A follows S-A, and cannot begin an entity in BIOES")),
        ("O B-A I-A", "bioes", (2, "I-A ends the sentence, but its entity has no E-")),
        ("B-A PER", "bio", (1, "PER has no prefix")),
        ("B-A I-A O", "bio", None),
        ("I-A I-B B-B", "iob1", None),
        ("NN VB", "plain", None),
    ],
)
def test_what_a_scheme_forbids_is_told_with_its_word(labels, scheme, why):
    assert violation(labels.split(), scheme) == why


def test_the_scheme_of_a_model_is_told_by_its_labels():
    assert scheme_of_model(["O", "B-A", "I-A"]) == "bio"
    assert scheme_of_model(["O", "I-A", "I-B", "B-B"]) == "iob1"
    assert scheme_of_model(["O", "B-A", "I-A", "E-A", "S-A"]) == "bioes"
    assert scheme_of_model(["NOUN", "VERB"]) == "plain"


def read(folder, text, **options):
    path = folder / "x.conll"
    path.write_text(text, "utf-8")
    return conll.read(path, **options)


def test_columns_are_read_by_their_numbers_and_documents_are_counted(tmp_path):
    text = "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nsays\tVBZ  O O\n\n\n-DOCSTART- -X- O O\n\na\u00a0b NN O O\n"
    found = read(tmp_path, text)
    assert found.skipped == {"documents": 2}
    assert [(one.words, one.labels, one.lines) for one in found.sentences] == [
        (("EU", "says"), ("B-ORG", "O"), (3, 4)),
        (("a\u00a0b",), ("O",), (9,)),
    ]
    assert read(tmp_path, text, word=2, label=3).sentences[0][:2] == (("NNP", "VBZ"), ("I-NP", "O"))
    assert read(tmp_path, "a\nb\n", label=None).sentences[0][:2] == (("a", "b"), ())


def test_a_file_is_read_sentence_by_sentence(tmp_path):
    path, skipped = tmp_path / "x.conll", Counter()
    path.write_text("-DOCSTART-\n\na O\nb O\n\nc O\nbroken\n", "utf-8")
    found = conll.stream(path, skipped=skipped)
    assert next(found).words == ("a", "b") and skipped.total() == 1
    with pytest.raises(ValueError, match="line 7 has 1 column"):
        next(found)


def test_a_word_may_contain_spaces_if_tabs_separate_the_columns(tmp_path):
    [found] = read(tmp_path, "New  York \tNNP\tB-LOC\nis\t\t O\n").sentences
    assert found[:2] == (("New  York", "is"), ("B-LOC", "O"))
    assert read(tmp_path, "New B-LOC\t\nYork\tI-LOC\n").sentences[0].words == ("New", "York")  # the tab ends the line


def test_comments_before_a_sentence_are_skipped_and_hashes_are_words(tmp_path):
    text = "# id 1 x\tlang=en\n# B-X\n# I-X\na O\n\n#begin document (x); part 000\n#tag O\n\n#end\n"
    found = read(tmp_path, text)
    assert [(one.words, one.labels, one.lines) for one in found.sentences] == [
        (("#", "#", "a"), ("B-X", "I-X", "O"), (2, 3, 4)),
        (("#tag",), ("O",), (7,)),
    ]
    assert found.skipped == {"comments": 3}
    assert read(tmp_path, "# text = a b\n# id = 1\na\tO\n").skipped["comments"] == 2
    assert read(tmp_path, "# B-X\n#c O\n").sentences[0].words == ("#", "#c")  # all lines are words
    with pytest.raises(ValueError, match=r"line 2 has 4 columns, but line 1 has 2 \(separated by spaces, so a word"):
        read(tmp_path, "a O\n# text = b\nb O\n")


def test_the_words_of_conll_u_are_those_with_whole_numbers(tmp_path):
    rows = [("1-2", "don't", "_"), ("1", "do", "AUX"), ("2", "not", "PART"), ("2.1", "see", "VERB")]
    rest = "\t_" * 6
    text = "# text = don't\n" + "".join(f"{number}\t{word}\t_\t{tag}{rest}\n" for number, word, tag in rows)
    found = read(tmp_path, text, word=2, label=4)
    [sentence] = found.sentences
    assert sentence[:2] == (("do", "not"), ("AUX", "PART")) and found.skipped == {"comments": 1, "ranges": 2}
    assert sentence.location(1).endswith("x.conll, line 4")
    assert read(tmp_path, "1-2\tdon't\tO\n1\tx\tO\n").sentences[0].words == ("1-2", "1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "EU\nsays O\n",
            r"x\.conll, line 1 has 1 column, and none for the label \(column -1\): fix the line",
        ),
        (
            "EU NNP B-ORG\n\nNew York NNP O\n",
            r"x\.conll, line 3 has 4 columns, but line 1 has 3 \(separated by spaces, so a word that contains one needs",
        ),
        (
            "EU\tB-ORG\nsays\n",
            r"x\.conll, line 2 has 1 column, but line 1 has 2 \(separated by tabs\): all lines need as many; fix the one",
        ),
        ("EU\tB-ORG\nsays\t\n", r"x\.conll, line 2 has no label, column 2 is empty: fix the line, or choose another"),
        ("EU\tB-ORG\n\tO\n", r"x\.conll, line 2 has no word, column 1 is empty"),
        ("EU\tB-ORG\nEU B-ORG\n", r"x\.conll, line 2 has 1 column, but line 1 has 2"),
        ("# B-ORG\nEU NNP B-ORG\nsays O\n", r"x\.conll, line 3 has 2 columns, but line 2 has 3"),
        (
            "EU B-ORG\n\nsays I-ORG\n",
            r"x\.conll, line 3: I-ORG follows the beginning of the sentence, and cannot begin an entity in",
        ),
        (
            "EU B-ORG\nsays I-PER\n",
            r"x\.conll, line 2: I-PER follows B-ORG, and cannot begin an entity in BIO; fix the label, or",
        ),
    ],
)
def test_a_broken_line_is_told_with_its_file_and_its_number(tmp_path, text, says):
    with pytest.raises(ValueError, match=says):
        conll.find_scheme(read(tmp_path, text).sentences)


def test_the_scheme_of_a_file_is_found_or_stated(tmp_path):
    assert conll.find_scheme(read(tmp_path, "a B-X\nb I-X\n").sentences) == "bio"
    assert conll.find_scheme(read(tmp_path, "a I-X\nb B-X\n").sentences) == "iob1"
    assert conll.find_scheme(read(tmp_path, "a B-X\nb E-X\n").sentences) == "bioes"
    assert conll.find_scheme(read(tmp_path, "a NN\nb VB\n").sentences) == "plain"
    broken = read(tmp_path, "a B-X\nb I-Y\n\nc O\n").sentences
    assert conll.find_scheme(broken, repair=True) == "bio" and conll.check_scheme(broken, "bio", repair=True) == 1
    with pytest.raises(ValueError, match=r"fix the label, or set task\.scheme to the file's scheme"):
        conll.check_scheme(broken, "bio")
    assert conll.relabelled(broken[0], "bio", ["O", "B-X", "I-X", "B-Y", "I-Y"]) == ["B-X", "B-Y"]
    with pytest.raises(ValueError, match=r"line 2: 'I-Y' is not a label of this model; its labels are O, B-X, I-X"):
        conll.relabelled(broken[0], "bio", ["O", "B-X", "I-X"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_piece_of_a_word_is_where_the_word_by_itself_begins(kind):
    words = ["the", "dog", "나는", "책을", "e\u0301", "\u200b", "(x)", "street."]
    text, spans = join_words(words)
    assert [text[start:end] for start, end in spans] == words
    [pieces] = vocabulary(kind).encode_aligned([text])
    first = align_words(pieces, spans).first
    assert pieces.ids == vocabulary(kind).encode([text])[0]
    sizes = [len(own) for own in vocabulary(kind).encode([words[0], *(f" {word}" for word in words[1:])])]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    assert first == [int(start) if size else None for start, size in zip(starts, sizes, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_plain_text_is_split_at_spaces_and_punctuation(kind):
    text = "the dog, (나는)  sees"
    [pieces] = vocabulary(kind).encode_aligned([text])
    spans = find_words(text, pieces).spans
    assert [text[start:end] for start, end in spans] == ["the", "dog", ",", "(", "나는", ")", "sees"]


def test_windows_cover_a_text_and_every_token_counts_once_where_most_is_around_it():
    for length, room, overlap in product(range(1, 24, 3), range(2, 12), range(0, 12, 2)):
        windows = split_windows(length, room, overlap)
        assert windows[0][0] == 0 and windows[-1][1] == length
        assert all(0 < end - start <= room for start, end in windows)
        shared = min(overlap, room // 2)
        assert all(one[1] - other[0] == shared for one, other in pairwise(windows))
        for place, number in enumerate(best_windows(windows, length).tolist()):
            around = [min(place - start, end - 1 - place) for start, end in windows]
            assert number == around.index(max(around)) and windows[number][0] <= place < windows[number][1]


def test_each_word_of_a_long_sentence_counts_in_one_window():
    ids, first, labels = list(range(20, 40)), [0, 3, None, 7, 12, 19], [0, 1, 2, 0, 1, 2]
    rows = list(tagged_rows(ids, first, labels, room=8, overlap=4))
    assert len(rows) == 4 and all(len(own) == len(marks) <= 8 for own, marks in rows)
    found = sorted((own[i], int(mark) - 1) for own, marks in rows for i, mark in enumerate(marks) if mark)
    assert found == [(20, 0), (23, 1), (27, 0), (32, 1), (39, 2)]
    batch = collate_tagged(*zip(*rows, strict=True), (vocabulary("wordpiece").special, Labels.special))
    assert batch.labels.shape == batch.source.shape and int((batch.labels >= 0).sum()) == 5
    assert all(batch.labels[batch.source == token].tolist().count(label) == 1 for token, label in found)
