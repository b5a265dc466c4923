"""One row a sentence: what was to be translated, what came out, and how good it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.evaluation.translation import check, metrics


@dataclass(frozen=True)
class Row:
    """One sentence; `second` and what follows is there when two systems are compared."""

    line: int
    source: str
    reference: str
    hypothesis: str
    chrf: float
    bleu: float
    second: str | None = None
    second_chrf: float | None = None
    difference: float | None = None


def rows(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    sources: Sequence[str] | None = None,
    second: Sequence[str] | None = None,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> list[Row]:
    """Return a row for every sentence, lowest chrF first; of several references the closest is shown."""
    check(hypotheses, references)
    for name, others in (("sources", sources), ("second", second)):
        if others is not None and len(others) != len(hypotheses):
            raise ValueError(
                f"{name} has {len(others)} sentences and hypotheses has {len(hypotheses)}; they must be as many."
            )
    bleu, chrf, _ = metrics(lowercase, tokenize, sentences=True)
    table = []
    for at, (hypothesis, gold) in enumerate(zip(hypotheses, zip(*references, strict=True), strict=True)):
        value = chrf.sentence_score(hypothesis, gold).score
        row = Row(
            at + 1,
            sources[at] if sources is not None else "",
            _closest(hypothesis, gold, chrf),
            hypothesis,
            value,
            bleu.sentence_score(hypothesis, gold).score,
        )
        table.append(row if second is None else _with_second(row, second[at], chrf.sentence_score(second[at], gold)))
    return sorted(table, key=lambda row: (row.chrf, row.line))


def _with_second(row: Row, second: str, score) -> Row:
    """Add a second system's hypothesis to a row."""
    return replace(row, second=second, second_chrf=score.score, difference=score.score - row.chrf)


def _closest(hypothesis: str, references: Sequence[str], chrf) -> str:
    """Return the reference that a hypothesis comes closest to."""
    if len(references) == 1:
        return references[0]
    return max(references, key=lambda reference: chrf.sentence_score(hypothesis, [reference]).score)
