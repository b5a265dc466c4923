import random

import pytest

from heed.text.glossary import Glossary, as_glossary, parse, read


def found(text, terms=None, keep=()):
    return [(text[m.start : m.end], m.target) for m in Glossary(terms, keep).matches(text)]


@pytest.mark.parametrize(
    ("text", "term", "times"),
    [
        ("투빅스가 좋아요.", "투빅스", 1), ("투빅스는, 투빅스에서도 투빅스까지만", "투빅스", 3), ("(투빅스)", "투빅스", 1), ("투빅스들의 책", "투빅스", 1),
        ("투빅스러운 책", "투빅스", 0), ("대학투빅스가", "투빅스", 0), ("사과나무", "사과", 0), ("AI투빅스는", "투빅스", 1), ("학생이에요.", "학생", 1),
        ("Tobigs가 좋아요", "Tobigs", 1), ("Tobigs' book, Tobigs.", "Tobigs", 2), ("Tobigster", "Tobigs", 0), ("XTobigs", "Tobigs", 0),
        ("Tobigs2 2Tobigs _Tobigs", "Tobigs", 0), ("the-Tobigs/day", "Tobigs", 1), ("我喜欢北京的秋天", "北京", 1), ("C++ and C", "C++", 1),
        ("naïve nai\u0308ve", "naïve", 2), ("", "Tobigs", 0), ("투빅스였습니다. 투빅스인데요, 투빅스이지만", "투빅스", 3), ("투빅스네요!", "투빅스", 1),
        ("투빅스들에게서는", "투빅스", 1), ("Tobigs", "Tobigs", 1), ("(Tobigs", "Tobigs", 1), ("\u200fTobigs\u200e", "Tobigs", 1),
    ],
)  # fmt: skip
def test_terms_are_found_where_words_begin_and_end(text, term, times):
    assert len(Glossary({term: "x"}).matches(text)) == times


def test_small_letters_are_found_in_any_case_and_others_as_they_are():
    terms = {"apple": "Apfel", "US": "USA", "Apple": "Apple Inc."}
    assert found("An apple, an APPLE by Apple for us in the US.", terms) == [
        ("apple", "Apfel"), ("APPLE", "Apfel"), ("Apple", "Apple Inc."), ("US", "USA"),
    ]  # fmt: skip


def test_of_terms_that_overlap_the_longest_counts():
    terms = {"beam": "1", "beam search": "2", "search engine tests": "3"}
    assert found("beam search", terms) == [("beam search", "2")]
    assert found("beam search engine tests, a beam", terms) == [
        ("beam", "1"), ("search engine tests", "3"), ("beam", "1"),
    ]  # fmt: skip


def tried(glossary, text):
    """The matches by brute force: every position and every length, the longest first."""
    spans = [(start, start + size) for size in range(len(text), 0, -1) for start in range(len(text) - size + 1)]
    taken, found = set(), []
    for start, end in spans:
        term = next((own for own in (text[start:end], text[start:end].lower()) if own in glossary.terms), None)
        whole = not (text[:start][-1:] + text[start]).isalnum() or not start
        whole &= not (text[end - 1] + text[end:][:1]).isalnum() or end == len(text)
        known = term is not None and (term == text[start:end] or term == term.lower())
        if known and whole and not taken & set(range(start, end)):
            taken |= set(range(start, end))
            found.append((start, end, glossary.terms[term]))
    return sorted(found)


def test_matches_are_those_of_trying_all():
    chance, many = random.Random(3), 0
    for _ in range(300):
        words = [" ".join(chance.choices(["a", "B", "b", "a-b", "ab"], k=chance.randint(1, 3))) for _ in range(5)]
        glossary = Glossary({word: f"{i}" for i, word in enumerate(dict.fromkeys(words))})
        text = " ".join(chance.choices(["a", "b", "B", "A", "ab", "a-b", "."], k=8))
        right = tried(glossary, text)
        assert [(m.start, m.end, m.target) for m in glossary.matches(text)] == right
        many += len(right) > 2
    assert many > 100


def test_protected_spans_have_no_terms():
    terms = {"heed": "X", "x": "Y"}
    text = "heed, https://heed.example/heed `heed` {heed} <heed> me@heed.example heed"
    assert [m.start for m in Glossary(terms).matches(text)] == [0, len(text) - 4]
    assert found("see www.heed.example now", {}, ["www.heed.example"]) == [("www.heed.example", "www.heed.example")]
    assert found("see www.heed.example now", {"see www.heed.example": "x"}) == [("see www.heed.example", "x")]


def test_kept_terms_are_not_translated():
    assert found("The iPhone and Heed, not heed.", None, ["iphone", "Heed"]) == [("iPhone", "iPhone"), ("Heed", "Heed")]
    assert found("Heed는", {"heed": "x"}, ["Heed"]) == [("Heed", "Heed")]


def test_white_space_and_unicode_are_written_one_way():
    assert found("a beam search", {" beam \t search ": "Strahl\u00a0suche"}) == [("beam search", "Strahl suche")]
    assert Glossary({"cafe\u0301": "é"}).terms == {"café": "é"}


def test_many_terms_are_looked_up_not_tried():
    terms = {f"term{i}": f"Wort{i}" for i in range(3_000)}
    assert found("term7 and term2999 and term3000", terms) == [("term7", "Wort7"), ("term2999", "Wort2999")]


def test_json_and_lines_are_the_same_glossary(tmp_path):
    one, other = tmp_path / "a.json", tmp_path / "b.tsv"
    one.write_text('{"Tobigs": "투빅스", "beam search": "빔 서치"}', "utf-8")
    other.write_text("\ufeffTobigs\t투빅스\r\n\r\nbeam search\t빔 서치\r\n", "utf-8")
    assert read(one).terms == read(other).terms == {"Tobigs": "투빅스", "beam search": "빔 서치"}
    assert read(one, ["Heed"]).keep == ("Heed",)
    assert not Glossary()
    assert as_glossary(read(one), ["x"]).keep == ("x",)
    assert as_glossary({"a": "b"}).terms == {"a": "b"}
    assert parse("").terms == {}
    (tmp_path / "c.tsv").write_bytes("Tobigs\t투빅스\r\nbeam search\t빔 서치".encode("utf-16"))  # as Excel has it
    assert read(tmp_path / "c.tsv").terms == read(one).terms
    assert parse("[UNK]\t[모름]\n{n}\t{n}개").terms == {"[UNK]": "[모름]", "{n}": "{n}개"}
    assert parse('\ufeff{"a":\t"b"}').terms == {"a": "b"}
    assert parse('{"a b": "x", "a  b": "x"}').terms == {"a b": "x"}
    assert Glossary({"apple": "a", "APPLE": "b", "Apple": "c"}).terms == {"apple": "a", "APPLE": "b", "Apple": "c"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tb\nc d\n", "terms, line 2 has 1 columns; it must be a term, a tab and its translation"),
        ("a\tb\tc", "terms, line 1 has 3 columns"),
        ("a\tb\n\na\tc", "terms, line 3 has 'a' again; line 1 gives it another translation"),
        ("a\t ", "terms, line 1: a term is empty"),
        (f"{'x' * 201}\tb", "has 201 characters; a term has at most 200"),
        ('{"a": "b",\n "c" "d"}', "terms, line 2: not JSON"),
        ('{"a": "b", "a": "c"}', "terms has 'a' twice"),
        ('{"a": 3}', "terms, 'a': a term must be a string, not 3"),
        ('{"a": {"b": "c"}}', "a term must be a string"),
        ('{"a b": "x", "a  b": "y"}', "terms has 'a  b' twice"),
        ('["a", "b"]', 'terms is JSON, but not an object: it must be {"term": "its translation", ...}'),
        ('"a"', "terms is JSON, but not an object"),
        ('{"a":' * 100_000, "terms: a glossary is a flat object of terms, and this one is deeply nested"),
        ('{"a": "\\ud800"}', "terms, 'a': '\\ud800' contains a lone"),
        ('{"": "b"}', "terms: a term is empty"),
        ("\tb", "terms, line 1: a term is empty"),
        ("a\tb\n \tc", "terms, line 2: a term is empty"),
    ],
)
def test_errors_of_a_glossary_say_what_is_wrong(text, words):
    with pytest.raises(ValueError) as error:
        parse(text, "terms")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_errors_of_files_and_terms_say_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match=r"none.tsv: the glossary cannot be read: No such file"):
        read(tmp_path / "none.tsv")
    (tmp_path / "latin.tsv").write_bytes("a\tb\nfür\tpour".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin.tsv, line 2 is not UTF-8: convert it"):
        read(tmp_path / "latin.tsv")
    (tmp_path / "list.json").write_text("null")
    with pytest.raises(ValueError, match=r"list\.json is JSON, but not an object"):
        read(tmp_path / "list.json")
    with pytest.raises(ValueError, match="'a' is to be kept and also translated as 'b'"):
        Glossary({"a": "b"}, ["a"])
    with pytest.raises(ValueError, match="keep is the text 'a'; it must be a list of terms"):
        Glossary({}, "a")


def test_a_glossary_that_keeps_more_is_that_with_the_names_in_keep():
    terms, names = {"책": "book", "milk": "우유"}, ["3,000", "{n}", "Heed"]
    whole, more = Glossary(terms, ["Tobigs", *names]), Glossary(terms, ["Tobigs"]).keeping(names)
    text = "Tobigs 책 3,000원 {n}개 Milk Heed는"
    assert more.matches(text) == whole.matches(text) and len(whole.matches(text)) == 6
    assert (more.terms, more.keep) == (whole.terms, whole.keep)
    assert len(Glossary(terms).matches(text)) == 2
