"""Scores of single sentences: source, reference, hypothesis, chrF and BLEU."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.evaluation.translation import check, metrics


@dataclass(frozen=True)
class SentenceScore:
    """One sentence; `second` and the fields after it are set if two systems are compared."""

    line: int
    source: str
    reference: str
    hypothesis: str
    chrf: float
    bleu: float
    second: str | None = None
    second_chrf: float | None = None
    difference: float | None = None


def score_sentences(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    sources: Sequence[str] | None = None,
    second: Sequence[str] | None = None,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> list[SentenceScore]:
    """Return the scores of every sentence, lowest chrF first, each with the closest of several references."""
    check(hypotheses, references)
    for name, others in (("sources", sources), ("second", second)):
        if others is not None and len(others) != len(hypotheses):
            counts = f"{len(others)} sentences and hypotheses has {len(hypotheses)}"
            raise ValueError(f"{name} has {counts}; the numbers must match.")
    bleu, chrf, _ = metrics(lowercase, tokenize, sentences=True)
    scores = []
    for i, (hypothesis, gold) in enumerate(zip(hypotheses, zip(*references, strict=True), strict=True)):
        values = [metric.sentence_score(hypothesis, gold).score for metric in (chrf, bleu)]
        source = sources[i] if sources is not None else ""
        scores.append(SentenceScore(i + 1, source, _closest(hypothesis, gold, chrf), hypothesis, *values))
        if second is not None:
            other = chrf.sentence_score(second[i], gold).score
            scores[i] = replace(scores[i], second=second[i], second_chrf=other, difference=other - values[0])
    return sorted(scores, key=lambda score: (score.chrf, score.line))


def _closest(hypothesis: str, references: Sequence[str], chrf) -> str:
    """Return the reference with the highest chrF."""
    if len(references) == 1:
        return references[0]
    return max(references, key=lambda reference: chrf.sentence_score(hypothesis, [reference]).score)
