"""Search for language models: its settings, its state after the prompts, and when a text ends."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from heed import config as settings
from heed.decoding import limits
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import Rule
from heed.decoding.steps import State, StepModel
from heed.products.prompts import Prompt
from heed.products.stops import StopStrings
from heed.products.text_window import SlidingWindow, read
from heed.vocabularies.codes import codes_of
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary

NO_END = -1  # an end token that no model produces


def decoding_config(length: int, count: int, changes: dict[str, Any]) -> DecodingConfig:
    """Search settings for `count` texts of `length` tokens: sampled, unless `changes` say otherwise."""
    if length < 1 or count < 1:
        raise ValueError(f"length is {length} and count is {count}; both must be at least 1")
    values = {"beam": 1, "sample": changes.get("beam", 1) == 1, **changes, "max_length": length, "nbest": count}
    if not values["sample"] and values["beam"] == 1 and count > 1:
        raise ValueError(f"count is {count}, but greedy search gives only one text: sample, or set a beam of {count}")
    return settings.read(DecodingConfig, values)


def search_arguments(
    model: nn.Module,
    vocabulary: Vocabulary,
    decode: Callable[[Sequence[int]], str],
    prompts: Sequence[Prompt],
    config: DecodingConfig,
    one_line: bool,
    stops: StopStrings,
) -> dict[str, Any]:
    """The arguments of `search` and `steps` for prompts, which are read here."""
    start, state = _start(model, vocabulary, prompts, config.max_length)
    config, special, rules = _plan(config, vocabulary.special, one_line)
    device = next(model.parameters()).device
    most = torch.full((len(prompts),), config.max_length, device=device)
    draws = config.nbest if config.sample else 1
    ends = stops.of_rows([own.text for own in prompts], draws, decode) if stops else None
    own = {"model": start, "state": state, "config": config, "special": special, "max_lengths": most, "rules": rules}
    return own | {"keys": [(p.text,) for p in prompts], "before": [p.ids for p in prompts], "stops": ends}


@torch.inference_mode()
def _start(model: nn.Module, vocabulary: Vocabulary, prompts: Sequence[Prompt], length: int) -> tuple[StepModel, State]:
    """A model and its state after all but the last token of each prompt. It uses a sliding window if `length` more
    tokens do not fit.
    """
    texts = [own.ids for own in prompts]
    if max(map(len, texts)) + length - 1 <= model.config.max_length:
        return model, read(model, [text[:-1] for text in texts])
    window = SlidingWindow(model, set(codes_of(vocabulary).values()))
    return window, window.start(texts)


def _plan(
    config: DecodingConfig, own: SpecialTokens, one_line: bool
) -> tuple[DecodingConfig, SpecialTokens, list[Rule]]:
    """Settings, special tokens and rules of a search. min_length bans line ends, but only with `one_line` do they end
    a text.
    """
    rules = [limits.min_length(config.min_length, own.last)] if config.min_length else []
    special = own._replace(last=own.last if one_line else NO_END, before=())
    return replace(config, min_length=0, force_end=False), special, rules
