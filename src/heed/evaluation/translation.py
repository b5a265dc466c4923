"""Corpus scores of translations: sacreBLEU's BLEU, chrF and TER, each with its signature (Post, 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One number, with the signature that says how it was computed."""

    name: str
    value: float
    signature: str


@dataclass(frozen=True)
class Scores:
    """The scores of one system on one test set."""

    bleu: Metric
    chrf: Metric
    ter: Metric
    lines: int


def score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, lowercase: bool = False, tokenize: str = "13a"
) -> Scores:
    """Score hypotheses against one or more lists of references, as the sacrebleu command does."""
    check(hypotheses, references)
    scores = []
    for metric in metrics(lowercase, tokenize):
        result = metric.corpus_score(hypotheses, references)
        scores.append(Metric(result.name, float(result.score), str(metric.get_signature())))
    return Scores(*scores, len(hypotheses))


def metrics(lowercase: bool, tokenize: str, *, sentences: bool = False) -> tuple:
    """Return sacreBLEU's BLEU, chrF2 and TER; for `sentences` BLEU skips n-gram orders without a match."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    if tokenize not in BLEU.TOKENIZERS:
        known = ", ".join(sorted(BLEU.TOKENIZERS))
        raise ValueError(f"tokenize is {tokenize!r}; sacreBLEU supports {known}.")
    # Tercom ignores case, so TER is the same with and without `lowercase`: its signature says case:lc.
    try:
        bleu = BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=sentences, force=sentences)
    except (RuntimeError, ImportError, OSError) as error:  # some tokenizers need a package or a download
        why = " ".join(str(error).split())
        raise ValueError(f"tokenize is {tokenize!r}, which sacreBLEU cannot use here: {why}") from error
    return bleu, CHRF(lowercase=lowercase), TER()


def signature(name: str) -> str:
    """The signature of "bleu" or "chrf" with one reference, as Markdown."""
    metric = dict(zip(("bleu", "chrf"), metrics(False, "13a"), strict=False))[name]
    metric.corpus_score(["a"], [["a"]])  # it then knows the number of references
    return "`" + str(metric.get_signature()).replace("|", "\\|") + "`"  # a bar would end the cell


def check(hypotheses: Sequence[str], references: Sequence[Sequence[str]], name: str = "hypotheses") -> None:
    """Refuse texts that cannot be scored: none at all, or references of another length."""
    if isinstance(hypotheses, str):
        raise ValueError(f"{name} is one string, {hypotheses[:40]!r}; it must be a list of sentences.")
    if not hypotheses:
        raise ValueError(f"{name} is empty; at least one sentence is needed.")
    if not references:
        raise ValueError("references is empty; at least one list of reference sentences is needed.")
    for number, reference in enumerate(references, 1):
        if isinstance(reference, str):
            raise ValueError("references is a list of sentences; it must be a list of such lists: [references].")
        if len(reference) != len(hypotheses):
            counts = f"{len(hypotheses)} sentences and references {number} has {len(reference)}"
            raise ValueError(f"{name} has {counts}; the numbers must match.")
