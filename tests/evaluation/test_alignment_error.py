import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.evaluation.alignment import error_rate, parse, parse_sure, precision, read, read_gold, recall, write

FEW = settings(deadline=None, max_examples=50)
LINKS = st.sets(st.tuples(st.integers(0, 40), st.integers(0, 40)))


@FEW
@given(LINKS)
def test_what_is_written_is_read_back(links):
    assert parse(write(links)) == links


def test_possible_links_are_read_and_told_from_sure_ones():
    line = "0-0 1?2  2p1 10-11\n"
    assert parse(line) == {(0, 0), (1, 2), (2, 1), (10, 11)}
    assert parse_sure(line) == {(0, 0), (10, 11)}
    assert parse("") == set()


def test_links_are_written_in_the_order_of_numbers():
    assert write({(10, 0), (2, 1), (2, 0)}) == "2-0 2-1 10-0"


@pytest.mark.parametrize("item", ["0", "0-", "a-1", "0-1-2", "-1-0", "0:1", "1-٢"])
def test_what_is_no_link_is_refused_with_its_line(item):
    with pytest.raises(ValueError, match=r"line 7: '.*' is not a link; it must look like 0-1"):
        parse(f"0-0 {item}", 7)


def test_a_file_with_a_bad_link_is_named_with_the_line(tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text("0-0 1?1\n\n0-0 x\n")
    with pytest.raises(ValueError, match=r"gold.txt, line 3: 'x'"):
        read(path)
    path.write_text("0-0 1?1\n\n2p0\n")
    assert read(path) == [{(0, 0), (1, 1)}, set(), {(2, 0)}]
    assert read_gold(path) == ([{(0, 0)}, set(), set()], [{(0, 0), (1, 1)}, set(), {(2, 0)}])


def test_the_error_rate_of_a_corpus_is_that_counted_by_hand():
    predicted = [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}]
    sure, possible = [{(0, 0), (3, 3)}, {(0, 1)}], [{(1, 1)}, set()]
    # |A| = 4, |S| = 3, A∩S = (0,0) and (0,1), A∩P = those and (1,1)
    assert error_rate(predicted, sure, possible) == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert precision(predicted, sure, possible) == pytest.approx(3 / 4)
    assert recall(predicted, sure) == pytest.approx(2 / 3)


@FEW
@given(st.lists(st.tuples(LINKS, LINKS), min_size=1, max_size=4))
def test_without_possible_links_the_error_rate_is_one_less_the_f_score(pairs):
    predicted, sure = [one for one, _ in pairs], [other for _, other in pairs]
    p, r = precision(predicted, sure), recall(predicted, sure)
    f = 2 * p * r / (p + r) if p + r and any(predicted) and any(sure) else float(not any(predicted) and not any(sure))
    assert error_rate(predicted, sure) == pytest.approx(1 - f)


@FEW
@given(st.lists(LINKS, min_size=1, max_size=4))
def test_the_gold_itself_has_no_error(gold):
    assert error_rate(gold, gold) == pytest.approx(0)
    assert precision(gold, gold) == recall(gold, gold) == 1


def test_corpora_of_different_lengths_are_refused_with_both_counts():
    with pytest.raises(ValueError, match="predicted has 1 sentences and sure has 2"):
        error_rate([set()], [set(), set()])
    with pytest.raises(ValueError, match="possible has 1 sentences and sure has 2"):
        error_rate([set(), set()], [set(), set()], [set()])
    with pytest.raises(ValueError, match="sure is empty"):
        recall([], [])
