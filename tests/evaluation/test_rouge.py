import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.evaluation.rouge import SIGNATURE, lcs_length, score, score_document, words

# rouge_score 0.1.2 (Google), RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False).score(reference, hypothesis):
# precision, recall, F1 of each
FROZEN = [
    (
        "The cat sat on the mat.",
        "A cat was sitting on the mat, and the dog sat too.",
        [(1.0, 0.5, 0.666666666667), (0.4, 0.181818181818, 0.25), (0.666666666667, 0.333333333333, 0.444444444444)],
    ),
    (
        "Mara Ellwood opened a bakery in Port Hale on Tuesday.",
        "On Tuesday, a bakery was opened in Port Hale by Mara Ellwood; it has 1,200 loaves a day!",
        [
            (1.0, 0.526315789474, 0.689655172414),
            (0.555555555556, 0.277777777778, 0.37037037037),
            (0.5, 0.263157894737, 0.344827586207),
        ],
    ),
    (
        "It's a well-known_fact, isn't it?",
        "It is a well known fact.",
        [
            (0.555555555556, 0.833333333333, 0.666666666667),
            (0.375, 0.6, 0.461538461538),
            (0.555555555556, 0.833333333333, 0.666666666667),
        ],
    ),
    ("police killed the gunman", "the gunman police killed", [(1.0,) * 3, (2 / 3,) * 3, (0.5,) * 3]),
]
texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)
MANY = settings(deadline=None, max_examples=100)


@pytest.mark.parametrize(("hypothesis", "reference", "expected"), FROZEN)
def test_english_is_scored_as_google_scores_it(hypothesis, reference, expected):
    for ours, theirs in zip(score_document(hypothesis, reference), expected, strict=True):
        assert tuple(ours) == pytest.approx(theirs, abs=1e-11)


def test_a_corpus_has_the_mean_of_its_documents():
    found = score([one for one, _, _ in FROZEN], [other for _, other, _ in FROZEN])
    for i, overlap in enumerate((found.one, found.two, found.longest)):
        for j in range(3):
            assert overlap[j] == pytest.approx(sum(row[2][i][j] for row in FROZEN) / len(FROZEN), abs=1e-11)
    assert found.documents == 4 and found.signature == SIGNATURE
    assert all(type(value) is float for overlap in (found.one, found.two, found.longest) for value in overlap)


def by_table(one: list[str], other: list[str]) -> int:
    """The longest common subsequence by the textbook's table."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if a == b else max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


@MANY
@given(one=texts, other=texts)
def test_the_longest_common_subsequence_by_bits_is_that_by_a_table(one, other):
    assert lcs_length(one, other) == by_table(one, other) == lcs_length(other, one)


@MANY
@given(one=texts, other=texts)
def test_precision_of_one_is_recall_of_the_other(one, other):
    there, back = score_document(" ".join(one), " ".join(other)), score_document(" ".join(other), " ".join(one))
    for a, b in zip(there, back, strict=True):
        assert (a.precision, a.recall, a.f1) == (b.recall, b.precision, b.f1)
        assert 0 <= a.f1 <= 1


@pytest.mark.parametrize("text", ["The cat sat.", "고양이가 매트 위에 앉았다.", "Ça va? Ja, größer!", "नमस्ते दुनिया आज"])
def test_a_text_is_its_own_best_summary_in_any_script(text):
    for overlap in score_document(text, text):
        assert tuple(overlap) == (1.0, 1.0, 1.0)


def test_korean_words_count():
    one, two, longest = score_document("민수는 학교에 갔다.", "민수는, 어제 학교에 갔다")
    assert (one.precision, one.recall) == (1.0, 0.75)
    assert two.precision == 0.5
    assert longest.recall == 0.75


def test_words_are_letters_and_digits_in_small():
    assert words("  Well-KNOWN_fact: 1,200 «Été»  ") == ["well", "known", "fact", "1", "200", "été"]
    assert words("cafe\u0301") == words("café") == ["café"]
    assert words("नमस्ते") == ["नमस्ते"]
    assert words("—…!") == []


def test_an_empty_summary_scores_nothing():
    for pair in (("", "a b"), ("a b", ""), ("", ""), ("?!", "a")):
        assert all(tuple(overlap) == (0.0, 0.0, 0.0) for overlap in score_document(*pair))


def test_one_word_has_no_pairs():
    one, two, longest = score_document("a", "a")
    assert one.f1 == longest.f1 == 1.0 and two.f1 == 0.0


@pytest.mark.parametrize(
    ("hypotheses", "references", "said"),
    [
        ([], [], "hypotheses is empty"),
        (["a"], ["a", "b"], "hypotheses has 1 sentences and references 1 has 2; the numbers must match"),
        ("a text", ["a text"], "hypotheses is one string, 'a text'; it must be a list"),
    ],
)
def test_what_cannot_be_scored_is_refused(hypotheses, references, said):
    with pytest.raises(ValueError, match=said):
        score(hypotheses, references)
