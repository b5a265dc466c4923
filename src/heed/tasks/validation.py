"""Shared by the validations of several tasks."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from heed.data import contamination
from heed.data.batching import plan
from heed.data.filters import RULES, FiltersConfig, rule_for_length, rule_for_text
from heed.data.readers import Line
from heed.data.repeated import Rows, repeated
from heed.decoding.config import UNGUARDED, DecodingConfig
from heed.training.loss import Loss
from heed.vocabularies.vocabulary import Pair


@torch.inference_mode()
def mean_nll(
    model: nn.Module,
    objective: Callable[[nn.Module, Any], Loss],
    examples: Sequence[tuple],
    collate: Callable[[Sequence[tuple]], Any],
    budget: int,
) -> float:
    """The mean negative log-likelihood of an expected token or label."""
    device = next(model.parameters()).device
    lengths = [np.array([len(example[side]) + 1 for example in examples]) for side in (0, 1)]
    total, count = 0.0, 0
    for rows in plan(*lengths, budget=budget, seed=0, epoch=0):
        loss = objective(model, collate([examples[i] for i in rows]).to(device))
        total, count = total + loss.nll.item(), count + loss.count
    return total / max(count, 1)


def short_enough(examples: Sequence[tuple], max_length: int) -> list[tuple]:
    """The examples that fit the model's positions; raises an error if there are none."""
    short = [example for example in examples if max(len(example[0]), len(example[1])) < max_length]
    if examples and not short:
        raise ValueError(
            f"all {len(examples):,} validation texts are longer than the model's {max_length} positions: use shorter "
            "ones"
        )
    return short


def within_limits(
    lines: Sequence[Line], vocabularies: Pair, filters: FiltersConfig, prefixes: Sequence[Sequence[int]]
) -> tuple[list[Line], Counter[str]]:
    """The pairs no longer than those trained on, and how many each rule excludes."""
    kept, left_out, limits = [], Counter[str](), replace(filters, same=False, max_ratio=0.0)
    texts = [[words.clean(line[side]) for line in lines] for side, words in enumerate(vocabularies)]
    sizes = [map(len, words.encode(own)) for words, own in zip(vocabularies, texts, strict=True)]
    for line, source, target, *size in zip(lines, *texts, *sizes, strict=True):
        before = len(prefixes[line.corpus])
        rule = rule_for_text(limits, source, target) or rule_for_length(limits, before + size[0], size[1])
        if rule is None:
            kept.append(line)
        else:
            left_out[rule] += 1
    if lost := {line.corpus for line in lines} - {line.corpus for line in kept}:
        which = f" of corpus {min(lost) + 1}" if len(prefixes) > 1 else ""
        raise ValueError(
            f"no validation pair{which} can be used ({describe_rules(left_out)}): use others, or raise "
            "filters.max_length"
        )
    return kept, left_out


def describe_rules(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} for {RULES[rule]}" for rule, count in left_out.items())


def trained_too(
    folder: Path,
    texts: Mapping[str, Sequence[str]],
    hint: str = "remove them from one of the two",
    several: bool = False,
) -> list[str]:
    """A sentence if validation texts, given by side, are also in the training data; none if that is unknown.
    `several`: the model has several directions.
    """
    path = folder / contamination.FILE
    if not path.is_file():  # what an earlier version prepared may lack it
        return []
    trained = contamination.read(path)._replace(several=several)
    each = trained.seen_pairs(*texts.values()) if len(texts) > 1 else [trained.seen(*own) for own in texts.items()]
    found = np.any(each, axis=0)
    if not found.any():
        return []
    least = " at least" if any(trained.share(side) < 1 for side in texts) else ""
    return [
        f"{found.sum():,}{least} of {len(found):,} validation texts are also in the training data, ignoring case, "
        f"whitespace and punctuation: scores on them say little about unseen text ({hint})."
    ]


def trained_rows_too(unit: str, train: Rows, valid: Rows) -> list[str]:
    """The same of images or recordings, which are compared exactly."""
    count, every = repeated(train, valid)
    if not count:
        return []
    return [
        f"{count:,}{'' if every else ' at least'} of {len(valid):,} validation {unit} are also in the training data: "
        f"scores on them say little about unseen {unit} (remove them from one of the two)."
    ]


def sample_rows(size: int, samples: int) -> list[int]:
    """The examples shown during training: spread over all."""
    return np.linspace(0, size - 1, min(samples, size), dtype=int).tolist()


def validation_search(recipe: Any) -> DecodingConfig:
    """The search settings of a recipe for validation: fast, with one hypothesis and without guards."""
    own = replace(recipe.decoding, **UNGUARDED)  # a young model only has faults
    return replace(own, beam=recipe.training.valid_beam, rerank="none", nbest=1, sample=False)
