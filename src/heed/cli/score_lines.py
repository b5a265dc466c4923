"""What heed score writes, of translations and of texts: a line for each, and the perplexity of all."""

from heed.bulk.command import Noted, as_bytes
from heed.evaluation.line_counts import exp_loss

CHUNK = 2000  # pairs or lines that are scored together


def scored(scores: list, token_scores: bool) -> Noted:
    """A line for each score; noted are the log probability of all, and the numbers of tokens and of scores."""
    note = [sum(own.logp for own in scores), sum(len(own.tokens) for own in scores), len(scores)]
    return Noted(as_bytes(_line(own, token_scores) for own in scores), note)


def report(notes: list, what: str) -> None:
    """The perplexity of all chunks, on standard error; `what` was scored."""
    from heed.cli.common import errors

    logp, tokens, count = map(sum, zip(*notes, strict=True)) if notes else (0.0, 0, 0)
    line = f"{count:,} {what}, {tokens:,} tokens, perplexity {exp_loss(-logp / max(tokens, 1)):.3f}"
    errors().print(f"[dim]{line}[/]", highlight=False)


def _line(score, token_scores: bool) -> str:
    """A log probability, and if asked for those of the tokens."""
    tokens = (f"{token}:{logp:.4f}" for token, logp in zip(score.tokens, score.token_scores, strict=True))
    return f"{score.logp:.4f}" + ("\t" + " ".join(tokens) if token_scores else "")
