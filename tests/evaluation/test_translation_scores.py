import json
import subprocess
import sys

import pytest
import sacrebleu

from heed.evaluation.translation import score

HYPOTHESES = ["The cat sat on the mat .", "A dog is running over the green grass.", "Two Men talk.", "Snow!"]
FIRST = ["The cat sat on a mat.", "A dog runs over the grass.", "Two men are talking.", "It snows."]
SECOND = ["A cat was sitting on the mat.", "The dog is running over green grass.", "Two men talk.", "Snow is falling."]


def command(tmp_path, references, *options):
    paths = []
    for name, lines in zip(["hypotheses", "first", "second"], [HYPOTHESES, *references], strict=False):
        paths.append(tmp_path / name)
        paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = [sys.executable, "-m", "sacrebleu", *map(str, paths[1:]), "-i", str(paths[0]), "-m", "bleu", "chrf", "ter"]
    done = subprocess.run([*asked, "-w", "8", *options], capture_output=True, text=True, check=True)
    return {item["name"]: (item["score"], item["signature"]) for item in json.loads(done.stdout)}


def as_dictionary(scores):
    return {one.name: (round(one.value, 8), one.signature) for one in (scores.bleu, scores.chrf, scores.ter)}


@pytest.mark.parametrize(
    ("references", "options", "lowercase", "tokenize"),
    [
        ([FIRST], [], False, "13a"),
        ([FIRST, SECOND], ["-lc", "--chrf-lowercase", "-tok", "intl"], True, "intl"),
    ],
)
def test_scores_and_signatures_are_those_of_the_sacrebleu_command(tmp_path, references, options, lowercase, tokenize):
    ours = as_dictionary(score(HYPOTHESES, references, lowercase=lowercase, tokenize=tokenize))
    theirs = command(tmp_path, references, *options)
    assert set(ours) == set(theirs) == {"BLEU", "chrF2", "TER"}
    for name, (value, signature) in theirs.items():
        assert ours[name] == (pytest.approx(value, abs=1e-6), signature)


def test_scores_are_those_of_sacrebleu_in_python():
    ours = score(HYPOTHESES, [FIRST, SECOND])
    assert ours.bleu.value == sacrebleu.corpus_bleu(HYPOTHESES, [FIRST, SECOND]).score
    assert ours.chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, [FIRST, SECOND]).score
    assert ours.ter.value == sacrebleu.corpus_ter(HYPOTHESES, [FIRST, SECOND]).score
    assert ours.lines == 4


def test_a_perfect_translation_has_full_marks():
    scores = score(FIRST, [FIRST])
    assert [scores.bleu.value, scores.chrf.value, scores.ter.value] == pytest.approx([100, 100, 0])


def test_lowercase_is_in_the_signatures_and_forgives_capitals():
    loud = [line.upper() for line in FIRST]
    assert score(loud, [FIRST]).bleu.value < 50
    scores = score(loud, [FIRST], lowercase=True)
    assert [scores.bleu.value, scores.chrf.value] == pytest.approx([100, 100])
    assert "case:lc" in scores.bleu.signature and "case:lc" in scores.chrf.signature


@pytest.mark.parametrize(
    ("hypotheses", "references", "words"),
    [
        (HYPOTHESES, [FIRST, FIRST[:3]], "hypotheses has 4 sentences and references 2 has 3"),
        ([], [[]], "hypotheses is empty"),
        (HYPOTHESES, [], "references is empty"),
        (HYPOTHESES, FIRST, "must be a list of such lists"),
        ("A cat", [FIRST], "must be a list of sentences"),
    ],
)
def test_texts_that_do_not_fit_are_refused_with_a_sentence(hypotheses, references, words):
    with pytest.raises(ValueError, match=words):
        score(hypotheses, references)


def test_an_unknown_tokenizer_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"tokenize is 'mosas'; sacreBLEU supports 13a, char, .*zh"):
        score(HYPOTHESES, [FIRST], tokenize="mosas")


def test_a_tokenizer_that_lacks_something_says_what(monkeypatch):
    def lacking(*args, **more):
        raise RuntimeError("Please install\nmecab first.")

    monkeypatch.setattr("sacrebleu.metrics.BLEU.__init__", lacking)
    with pytest.raises(
        ValueError, match=r"tokenize is 'ko-mecab', which sacreBLEU cannot use here: Please install mecab first\."
    ):
        score(HYPOTHESES, [FIRST], tokenize="ko-mecab")


def test_importing_the_scores_does_not_import_sacrebleu_or_matplotlib():
    code = (
        "import sys, heed.evaluation.sentences, heed.evaluation.alignment, heed.training.curves;"
        "print({'sacrebleu', 'matplotlib', 'numpy', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
