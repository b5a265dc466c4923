import pytest
import sacrebleu

from heed.evaluation.sentences import score_sentences, write, write_tsv
from heed.evaluation.translation import score

SOURCES = ["Eine Katze.", "Ein Hund läuft.", "Zwei Männer reden.", "Es schneit."]
REFERENCES = ["A cat.", "A dog runs fast.", "Two men are talking.", "It snows."]
FIRST = ["A cat.", "A dog is running.", "Two man talk.", "Rain"]
SECOND = ["A cat.", "A dog runs fast.", "Men.", "It snow."]
OTHERS = ["One cat.", "The dog is running.", "Two people talk.", "Snow falls."]


def test_rows_are_sorted_by_chrf_and_keep_their_line_numbers():
    table = score_sentences(FIRST, [REFERENCES], sources=SOURCES)
    assert [row.chrf for row in table] == sorted(row.chrf for row in table)
    assert sorted(row.line for row in table) == [1, 2, 3, 4]
    for row in table:
        at = row.line - 1
        assert (row.source, row.reference, row.hypothesis) == (SOURCES[at], REFERENCES[at], FIRST[at])
        assert row.second is row.second_chrf is row.difference is None


def test_sentence_scores_are_those_of_sacrebleu():
    for row in score_sentences(FIRST, [REFERENCES, OTHERS], second=SECOND):
        gold = [REFERENCES[row.line - 1], OTHERS[row.line - 1]]
        assert row.chrf == sacrebleu.sentence_chrf(row.hypothesis, gold).score
        assert row.bleu == sacrebleu.sentence_bleu(row.hypothesis, gold).score
        assert row.second == SECOND[row.line - 1]
        assert row.second_chrf == sacrebleu.sentence_chrf(row.second, gold).score
        assert row.difference == row.second_chrf - row.chrf


def test_of_several_references_the_closest_is_shown():
    shown = {row.line: row.reference for row in score_sentences(FIRST, [REFERENCES, OTHERS])}
    assert shown[1] == "A cat."
    assert shown[2] == "The dog is running."


def test_lowercase_forgives_capitals():
    assert score_sentences(["A CAT."], [["a cat."]])[0].chrf < 50
    assert score_sentences(["A CAT."], [["a cat."]], lowercase=True)[0].chrf == 100


def test_a_table_stays_one_row_a_line_and_can_be_read_back(tmp_path):
    odd = ["tab\there", "line\nend\rand\u2028more\x85", "back\\slash \\n", "plain <b>"]
    write_tsv(score_sentences(odd, [REFERENCES], sources=odd, second=SECOND), tmp_path / "deep" / "table.tsv")
    header, *lines = (tmp_path / "deep" / "table.tsv").read_text(encoding="utf-8").splitlines()
    names = ["line", "source", "reference", "hypothesis", "chrf", "bleu", "second", "second_chrf", "difference"]
    assert header.split("\t") == names
    cells = {int(line.split("\t")[0]): line.split("\t") for line in lines}
    assert {len(row) for row in cells.values()} == {9}
    assert [cells[at + 1][3].encode("ascii").decode("unicode_escape") for at in range(4)] == odd
    assert cells[3][1] == r"back\\slash \\n"


def test_a_table_of_one_system_has_no_columns_of_a_second(tmp_path):
    write_tsv(score_sentences(FIRST, [REFERENCES]), tmp_path / "table.tsv")
    lines = (tmp_path / "table.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["line", "source", "reference", "hypothesis", "chrf", "bleu"]
    assert len(lines) == 5


def test_the_suffix_chooses_the_format(tmp_path):
    table, scores = score_sentences(FIRST, [REFERENCES]), score(FIRST, [REFERENCES])
    write(table, scores, tmp_path / "a.tsv")
    write(table, scores, str(tmp_path / "a.html"))
    assert (tmp_path / "a.tsv").read_text().startswith("line\t")
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    with pytest.raises(ValueError, match=r"ends in '.csv'; it must end in .tsv or .html"):
        write(table, scores, tmp_path / "a.csv")


def test_texts_of_other_lengths_are_refused_with_both_counts():
    with pytest.raises(ValueError, match="sources has 3 sentences and hypotheses has 4"):
        score_sentences(FIRST, [REFERENCES], sources=SOURCES[:3])
    with pytest.raises(ValueError, match="second has 1 sentences and hypotheses has 4"):
        score_sentences(FIRST, [REFERENCES], second=["A cat."])
