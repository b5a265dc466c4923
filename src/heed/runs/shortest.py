"""The shortest time budget in which a new model learns to translate, from the speed and the start measured here."""

import math

from heed.runs.defaults import Facts, pace
from heed.runs.ending import SHORT
from heed.runs.finishing import OPTIONAL, REPORT, WRITING
from heed.training.duration import as_setting, in_words

STEPS = 500  # in which a small model learns to translate at all (docs/guides/defaults.md#stopping)
PREPARING = 2e-6  # seconds per character, for the vocabulary and the corpus
VALIDATED = 1000  # texts, if no others are given
EACH = 25  # tokens of training that take as long as a validated text, greedily


def sentence(facts: Facts, started: float) -> str:
    """What is wrong with a budget that is too short, and what would do; "" if it is long enough. `started` is how long
    the command took until now.
    """
    if facts.seconds is None or facts.seconds >= SHORT or facts.tuning:
        return ""
    step, speed = pace(facts)
    steps, validation = STEPS * step, 0.0 if facts.gpu else VALIDATED * EACH / speed
    around = (
        started + PREPARING * facts.text.characters + 1.5 * validation + WRITING + REPORT[0] + VALIDATED * REPORT[1]
    )
    needed = (around + steps) / (1 - OPTIONAL)
    if facts.seconds >= needed:
        return ""
    return (
        f"{in_words(facts.seconds)} are too short for a useful model: here, {STEPS:,} steps, after which a model begins "
        f"to translate, take about {in_words(steps)}, and everything around them {in_words(around)}. Give at least "
        f"--time {as_setting(60 * math.ceil(needed / 60))}."
    )
