"""From the settings of a search to its parts."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from heed.decoding import limits
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import Rule
from heed.decoding.ranking import PENALTIES
from heed.vocabularies.vocabulary import SpecialTokens


def searching(
    config: DecodingConfig, marks: SpecialTokens, forced: list[list[int]], most: Tensor, more: Sequence[Rule] = ()
) -> dict[str, Any]:
    """What a search is given; sentence i begins with `forced[i]` and has no more than `most[i]` tokens.

    `more` are rules that come before those of how a text begins and ends.
    """
    return {
        "first": marks.first,
        "last": marks.last,
        "alpha": config.length_penalty,
        "penalty": PENALTIES[config.penalty],
        "rules": _rules(config, marks, forced, most, more),
        "renormalize": config.renormalize,
    }


def begins_with(config: DecodingConfig, marks: SpecialTokens) -> tuple[int, ...]:
    """What every text is made to begin with."""
    return marks.before if config.force_begin else ()


def _rules(
    config: DecodingConfig, marks: SpecialTokens, forced: list[list[int]], most: Tensor, more: Sequence[Rule]
) -> list[Rule]:
    begin = begins_with(config, marks)
    rules = [limits.ban_tokens(marks.never)] if marks.never else []
    if config.min_length:
        rules.append(limits.min_length(len(marks.before) + config.min_length, marks.last))
    if config.no_repeat:
        rules.append(limits.no_repeat_ngram(config.no_repeat))
    rules += more
    if any(forced):
        rules.append(limits.force_prefix([[*begin, *ids] for ids in forced]))
    if begin:
        rules.append(limits.force_begin(begin))
    if config.force_end:
        rules.append(limits.force_end(most, marks.last))
    return rules
