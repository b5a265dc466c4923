import gzip
import lzma
import tracemalloc
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.data.vectors import VectorsConfig, blocks, read, reading, similarity, write
from heed.data.vectors.layout import detect_layout

WORDS = ["왕", "여왕", "New York", "café", "3.14", "1 000", "a\u00a0b", ". . .", "nan"]
ROWS = np.random.default_rng(5).normal(size=(len(WORDS), 5)).astype(np.float32)
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n\v\f")
NUMBERS = st.floats(-64, 64, width=32).filter(lambda x: x == 0 or abs(x) > 1e-3)


def text(words, rows, header=True, between=" ", last=""):
    head = f"{len(words)} {rows.shape[1]}\n" if header else ""
    lines = (
        between.join([word, *(f"{x:.9g}" for x in row)]) + f"{last}\n" for word, row in zip(words, rows, strict=True)
    )
    return (head + "".join(lines)).encode()


def binary(words, rows, after=b"\n"):
    names = [word if isinstance(word, bytes) else word.encode() for word in words]
    return b"%d %d\n" % rows.shape + b"".join(
        name + b" " + row.tobytes() + after for name, row in zip(names, rows, strict=True)
    )


def put(path, content):
    path.write_bytes(content)
    return path


def equal(found, words, rows):
    assert found.words == list(words)
    np.testing.assert_array_equal(found.matrix, rows)


@pytest.mark.parametrize("name", ["all.vec", "all.vec.gz", "all.txt", "all.bin", "all.bin.gz"])
def test_what_is_written_is_read_back_to_the_bit(tmp_path, name):
    words = [word for word in WORDS if ".bin" not in name or " " not in word]
    reading_back = tmp_path / "deep" / name

    write(reading_back, words, ROWS[: len(words)])
    equal(found := read(reading_back), words, ROWS[: len(words)])
    assert found.notes == ()
    assert detect_layout(reading_back).binary == (".bin" in name)
    assert (reading_back.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert list(reading_back.parent.iterdir()) == [reading_back]


@given(st.lists(st.tuples(st.text(LETTERS, min_size=1), st.lists(NUMBERS, min_size=3, max_size=3)), min_size=1))
def test_any_words_and_numbers_come_back(tmp_path_factory, entries):

    entries = list({unicodedata.normalize("NFC", word): row for word, row in entries}.items())
    words, rows = [word for word, _ in entries], np.array([row for _, row in entries], np.float32)
    folder = tmp_path_factory.mktemp("any")
    for name in ("a.vec", "a.bin"):
        write(folder / name, words, rows)
        equal(read(folder / name), words, rows)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (text(WORDS, ROWS), (False, 5, 9)),
        (text(WORDS, ROWS, last=" "), (False, 5, 9)),  # as fastText ends its lines
        (text(WORDS, ROWS, header=False), (False, 5, None)),
        (text(WORDS, ROWS, header=False, between="\t"), (False, 5, None)),
        (text(WORDS, ROWS).replace(b"\n", b"\r\n"), (False, 5, 9)),
        (b"\xef\xbb\xbf" + text(WORDS, ROWS), (False, 5, 9)),
        (b"\xef\xbb\xbf" + text(WORDS, ROWS, header=False), (False, 5, None)),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_every_format_is_detected_from_its_content(tmp_path, content, kind, pack):

    path = put(tmp_path / "vectors", pack(content))
    assert detect_layout(path) == kind
    equal(read(path), WORDS, ROWS)


@pytest.mark.parametrize("after", [b"\n", b""])
def test_binary_files_with_and_without_line_ends_are_one(tmp_path, after):

    words = [word.replace(" ", "_") for word in WORDS]
    path = put(tmp_path / "v", binary(words, ROWS, after))
    assert detect_layout(path) == (True, 5, 9)
    equal(read(path), words, ROWS)


def test_numbers_whose_bytes_look_like_text_are_numbers(tmp_path):
    rows = np.frombuffer(b"ZNY!ZNY!<+Z!ab cdefghi j", "<f4").reshape(2, 3)
    path = put(tmp_path / "v.bin", binary(["왕", "b"], rows))
    assert detect_layout(path).binary
    equal(read(path), ["왕", "b"], rows)


def test_a_first_word_with_spaces_does_not_hide_the_dimension(tmp_path):

    words = ["1 2 3", "b", "c", "d"]
    path = put(tmp_path / "v.txt", text(words, ROWS[:4], header=False))
    equal(read(path), words, ROWS[:4])


@pytest.mark.parametrize("kind", ["text", "binary"])
def test_some_words_are_what_all_words_would_give(tmp_path, monkeypatch, kind):

    monkeypatch.setattr(reading, "CHUNK", 7)  # so that every word lies across a border
    words = [word.replace(" ", "_") for word in WORDS]
    path = put(tmp_path / "v", (text if kind == "text" else binary)(words, ROWS))
    wanted = {words[7], words[1], "not there"}
    equal(read(path, wanted), [words[1], words[7]], ROWS[[1, 7]])
    some = list(blocks(path, rows=2))
    assert [len(block.words) for block in some] == [2, 2, 2, 2, 1]
    np.testing.assert_array_equal(np.concatenate([block.matrix for block in some]), ROWS)


@pytest.mark.parametrize("kind", ["text", "binary"])
def test_words_that_are_not_wanted_take_no_memory(tmp_path, kind):

    size, numbers = (1500, 1000), b" 0" * 1000 if kind == "text" else b" " + bytes(4000)
    path = put(tmp_path / "v", b"%d %d\n" % size + b"".join(b"w%d" % i + numbers + b"\n" for i in range(size[0])))
    tracemalloc.start()
    found = read(path, {"w7", "w1499"})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.words == ["w7", "w1499"]
    assert most < 5e6  # what all of them would take is 6 MB; what was asked for, 8 kB


def test_only_the_numbers_of_wanted_words_are_read(tmp_path):

    path = put(tmp_path / "v.txt", b"good 1.5 2.5\nbad x y\n")
    assert read(path, {"good"}).words == ["good"]
    with pytest.raises(ValueError, match=r"v\.txt, line 2 is broken"):
        read(path, {"bad"})


def test_oddities_are_counted_and_noted(tmp_path):

    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    path = put(tmp_path / "v.bin", binary(["a", b"\xff\xfe", "a", "", b"b\xe2"], rows) + b"more")
    found = read(path)
    equal(found, ["a", r"\xff\xfe", r"b\xe2"], rows[[0, 1, 4]])
    assert found.notes == (
        f"{path} continues after the 5 words declared in its header: the rest is ignored.",
        f"{path} has 1 duplicate words: the first vector of each is used.",
        f"{path} has 1 vectors without a word: they are skipped.",
        f"{path} has 2 words that are not UTF-8: their bytes are shown as \\xNN.",
    )
    path = put(tmp_path / "v.vec", b"7 2\na 1 2\n 3 4\na 5 6\n")
    found = read(path)
    equal(found, ["a"], [[1, 2]])
    assert found.notes[0] == f"{path} declares 7 words in its header and has 3."
    assert len(found.notes) == 3


def test_a_word_written_in_two_ways_is_one_word(tmp_path):

    apart = unicodedata.normalize("NFD", "왕")
    path = put(tmp_path / "v", text([apart], ROWS[:1]))
    equal(read(path, {"왕"}), ["왕"], ROWS[:1])


CUT = "is damaged or truncated: it declares 9 words of 5 numbers in its header, but number {} is incomplete"
JOINED = [word.replace(" ", "_") for word in WORDS]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"0 5\n", "contains no words: heed reads"),
        (b"3 0\na\n", "declares vectors of 0 numbers in its header"),
        (b"just some words\nof a text\n", "does not start with a word followed by numbers: heed reads word2vec"),
        (b"\x80\x04\x95\x00\x00", "does not start with a word followed by numbers"),
        (b"a 1 2 3\nb 1 2\n", ", line 2 is broken: 'b 1 2' is not a word followed by 3 numbers"),
        (b"2 3\na 1 2 3\nb 1 x 3\n", ", line 3 is broken: 'b 1 x 3' is not a word followed by 3 numbers"),
        (b"2 3\na 1 2 3\nb 1 nan 3\n", ", line 3 is broken"),
        (b"a 0.125 0.125\nb 0.125 0.125 0.125\nc 0.125 0.125\n", ", line 2 is broken"),
        (b"a 0.125 0.125\nb 0.125 0.125c 0.125 0.125\nd 0.125 0.125\n", ", line 2 is broken"),
        (b"a 0.125 0.125\n\nb 0.1", ", line 3 is broken: 'b 0.1' is not"),
        (b"9 4\n" + text(WORDS, ROWS, header=False), "declares 4 numbers per word in its header, but the next line has 5"),
        (b"9 6\n" + text(WORDS, ROWS, header=False), "declares 6 numbers per word in its header, but the next line has 5"),
        (binary(JOINED, ROWS)[:-9], CUT.format(9)),
        (binary(JOINED, ROWS)[:60], CUT.format(3)),
        (binary(["a"], np.array([[1, np.inf]], np.float32)), "is damaged: the vector of word 1, 'a', is not all finite numbers"),
        (gzip.compress(text(WORDS, ROWS), mtime=0)[:-20], "is damaged or truncated"),
        (b"PK\x03\x04....", "is a zip archive: unpack it first"),
        (b"\xba\x16\x4f\x2f....", "is a fastText model"),
    ],
)  # fmt: skip
def test_a_bad_file_is_said_in_a_sentence(tmp_path, content, sentence):

    path = put(tmp_path / "bad.vec", content)
    with pytest.raises(ValueError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}{'' if sentence[0] == ',' else ' '}{sentence}")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):

    with pytest.raises(ValueError, match=r"no\.vec: no such file"):
        read(tmp_path / "no.vec")


@pytest.mark.parametrize(
    ("name", "word"), [("a.bin", "New York"), ("a.vec", ""), ("a.vec", "a\nb"), ("a.vec", "a "), ("a.vec", "a 0.125")]
)
def test_a_word_that_would_not_come_back_is_not_written(tmp_path, name, word):

    with pytest.raises(ValueError, match="the word"):
        write(tmp_path / name, ["fine", word], ROWS[:2])
    assert not list(tmp_path.iterdir())


# similarity


def cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True)) / (
        sum(a * a for a in one) ** 0.5 * sum(b * b for b in other) ** 0.5
    )


def by_hand(words, rows, asked, count, without):
    scored = [(word, cosine(asked, row)) for word, row in zip(words, rows.tolist(), strict=True) if word not in without]
    return sorted(scored, key=lambda pair: -pair[1])[:count]


@pytest.mark.parametrize("rows", [3, 100])
def test_neighbours_and_analogies_are_what_plain_loops_find(rows):
    drawn = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
    words = [f"w{i}" for i in range(40)]
    some = [reading.Vectors(words[i : i + rows], drawn[i : i + rows]) for i in range(0, 40, rows)]
    a, b, c = drawn[:3].astype(float)
    fourth = [
        y / np.linalg.norm(b) - x / np.linalg.norm(a) + z / np.linalg.norm(c) for x, y, z in zip(a, b, c, strict=True)
    ]
    asked, without = [drawn[4].tolist(), fourth], [{"w4"}, {"w0", "w1", "w2"}]
    np.testing.assert_allclose(similarity.analogy(*drawn[:3]), fourth, atol=1e-12)
    found = similarity.nearest(some, np.array(asked), 7, without)
    for own, query, skip in zip(found, asked, without, strict=True):
        right = by_hand(words, drawn, query, 7, skip)
        assert [word for word, _ in own] == [word for word, _ in right]
        np.testing.assert_allclose([x for _, x in own], [x for _, x in right], atol=1e-12)


def test_a_queen_is_found_where_she_was_put():
    man, woman, royal = np.eye(3, 8, dtype=np.float32)
    rows = np.stack([man, woman, man + royal, woman + royal, royal, np.zeros(8, np.float32)])
    vectors = reading.Vectors(["남자", "여자", "왕", "여왕", "왕관", "빔"], rows)
    asked = similarity.analogy(rows[0], rows[2], rows[1])
    assert similarity.nearest([vectors], asked[None], 1, [{"남자", "왕", "여자"}])[0][0][0] == "여왕"
    assert dict(similarity.nearest([vectors], rows[2:3], 9, [()])[0])["빔"] == 0.0


def test_of_equals_the_first_in_the_file_comes_first():
    rows = np.ones((6, 2), np.float32)
    some = [reading.Vectors(["a", "b", "c"], rows[:3]), reading.Vectors(["d", "e", "f"], rows[3:])]
    assert [word for word, _ in similarity.nearest(some, rows[:1], 4, [{"b"}])[0]] == ["a", "c", "d", "e"]
    many = reading.Vectors([str(i) for i in range(99)], np.ones((99, 2), np.float32))
    assert [word for word, _ in similarity.nearest([many], rows[:1], 50, [()])[0]] == many.words[:50]


@pytest.mark.parametrize(
    ("word", "meant"), [("Kng", "king"), ("여앙", "여왕"), ("cafe", "café"), ("KING", "king"), ("zzzz", None)]
)
def test_a_misspelled_word_brings_the_one_that_was_meant(word, meant):
    words = ["the", "king", "여왕", "café", "queen", "서울특별시"]
    assert similarity.spelled_like(word, words)[:1] == ([meant] if meant else [])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"text": "a", "source": "b"}, "set one or the other"),
        ({"source": "a", "scale": 0.0}, r"vectors.scale is 0.0; it must be above 0"),
        ({"frozen": True}, r"vectors\.frozen is True, but \[vectors\] has no file"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        VectorsConfig(**settings)


@pytest.mark.parametrize("first", ["", "b", "왕"])
def test_numbers_that_look_like_text_are_numbers_after_any_first_word(tmp_path, first):
    rows = np.frombuffer(b"ZNY!ZNY!<+Z!abkcdefghilj", "<f4").reshape(2, 3)
    assert detect_layout(put(tmp_path / "v.bin", binary([first, "c"], rows))).binary
