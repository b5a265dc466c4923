"""ROUGE: ours beside Google's rouge-score, on random texts to the last digit, and on Korean."""

import random
import time
from math import isclose

from bench.parsers.libraries import version
from heed.evaluation import rouge

PAIRS, SEED = 2000, 0
ROUNDING = 5e-16  # two units in the last place
KOREAN = ("나는 학교에 간다", "나는 오늘 학교에 간다")
_KINDS = ("rouge1", "rouge2", "rougeL")


def random_text(draw: random.Random) -> str:
    """Words of a small vocabulary, so that texts overlap, with capitals, digits and punctuation."""
    words = ["the", "Cat", "sat", "on", "a", "mat", "42", "it's", "well-known", "U.S.", "x_y", "...", "", "end."]
    return draw.choice((" ", "  ", ", ")).join(draw.choices(words, k=draw.randrange(0, 60)))


def compare() -> int:
    """Print the comparison; 1 if a digit differs."""
    print("\n## ROUGE\n")
    draw = random.Random(SEED)
    pairs = [(random_text(draw), random_text(draw)) for _ in range(PAIRS)]
    start = time.process_time()
    own = [rouge.score_document(*pair) for pair in pairs]
    seconds = time.process_time() - start
    if version("rouge-score") is None:
        print("rouge-score: not installed: pip install rouge-score")
        return 0
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(_KINDS))
    start = time.process_time()
    other = [scorer.score(target=reference, prediction=hypothesis) for hypothesis, reference in pairs]
    theirs = time.process_time() - start
    both = [
        (mine, found[kind])
        for row, found in zip(own, other, strict=True)
        for mine, kind in zip(row, _KINDS, strict=True)
    ]
    differ = sum(
        mine[:2] != found[:2] or not isclose(mine.f1, found.fmeasure, rel_tol=ROUNDING) for mine, found in both
    )
    last = sum(mine.f1 != found.fmeasure for mine, found in both)
    print(
        f"{len(both):,} scores of {PAIRS:,} random pairs: precision and recall are the same to the last bit and F1 to 15 digits"
    )
    print(
        f"in all but {differ}. The last bit of F1 differs in {last:,}: ours is one division, theirs is made of three roundings."
    )
    print(f"Speed: ours {PAIRS / seconds:,.0f} pairs a second, rouge-score {PAIRS / theirs:,.0f}.")
    korean = scorer.score(target=KOREAN[1], prediction=KOREAN[0])["rouge1"].fmeasure
    print(
        f"ROUGE-1 of two Korean sentences that share three words: ours {rouge.score_document(*KOREAN)[0].f1:.3f}, rouge-score {korean:.3f}."
    )
    return int(differ > 0)
