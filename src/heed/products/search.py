"""One search for all products: sampling, greedy or beam search, according to a DecodingConfig."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from heed.decoding import limits
from heed.decoding.beam import Pick, SearchStep, beam_search
from heed.decoding.config import DecodingConfig, forced_start
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.limits import Rule
from heed.decoding.ranking import PENALTIES, STOPPING
from heed.decoding.repetition import with_repetition_penalty
from heed.decoding.sample import Choose, Step, greedy, random_sampling, search_steps, stepwise_search
from heed.decoding.steps import State, StepModel, Stops
from heed.vocabularies.vocabulary import SpecialTokens


@torch.inference_mode()
def search(  # noqa: PLR0913 (the parts of a search, each by its name)
    model: StepModel,
    state: State,
    config: DecodingConfig,
    special: SpecialTokens,
    max_lengths: Tensor,
    *,
    prefixes: Sequence[list[int]] = (),
    rules: Sequence[Rule] = (),
    keys: Sequence[tuple] = (),
    pick: Pick | None = None,
    on_step: Callable[[SearchStep], None] | None = None,
    before: Sequence[Sequence[int]] = (),
    stops: Stops | None = None,
) -> list[list[Hypothesis]]:
    """The `config.nbest` best hypotheses for each row of `state`, best first.

    Row i begins with `prefixes[i]` and has at most `max_lengths[i]` tokens. `keys[i]` is its random seed. `rules`,
    `pick` and `on_step` are those of `beam_search`; when sampling, `rules` and `stops` (which ends rows early) refer
    to samples instead of rows. Row i continues the tokens `before[i]`, the last of which has not been read yet.
    """
    begun, options = _begin(model, state, config, special, max_lengths, prefixes, rules, before, stops)
    options |= {"alpha": config.length_penalty, "penalty": PENALTIES[config.penalty]}
    if config.sample or (config.beam == 1 and on_step is None):
        each, draws = stepwise_search(*begun, chooser(config, keys), **options), config.nbest if config.sample else 1
        return [[h for draw in each[i : i + draws] for h in draw] for i in range(0, len(each), draws)]
    stop = STOPPING[config.stopping]
    if config.beam == 1:  # greedy: the first hypothesis that ends is the result
        options["alpha"], stop = 0.0, STOPPING["exact"]
    beams = {"beams": config.beam, "nbest": config.nbest, "stop": stop, "pick": pick, "on_step": on_step}
    return beam_search(*begun, **beams, **options)


def steps(  # noqa: PLR0913 (as above)
    model: StepModel,
    state: State,
    config: DecodingConfig,
    special: SpecialTokens,
    max_lengths: Tensor,
    *,
    rules: Sequence[Rule] = (),
    keys: Sequence[tuple] = (),
    before: Sequence[Sequence[int]] = (),
    stops: Stops | None = None,
) -> Iterator[Step]:
    """The same search step by step, sampled or greedy. Several samples of a text are adjacent rows."""
    begun, options = _begin(model, state, config, special, max_lengths, (), rules, before, stops)
    return search_steps(*begun, chooser(config, keys), **options)


@torch.inference_mode()
def _begin(  # noqa: PLR0913 (as above)
    model: StepModel,
    state: State,
    config: DecodingConfig,
    special: SpecialTokens,
    max_lengths: Tensor,
    prefixes: Sequence[list[int]],
    rules: Sequence[Rule],
    before: Sequence[Sequence[int]],
    stops: Stops | None,
) -> tuple[tuple[StepModel, State, Tensor], dict[str, Any]]:
    """A model, its state and the maximum lengths, with one row per sample, and the options of a search."""
    model, state = with_repetition_penalty(model, state, config.repetition_penalty, before)
    draws = config.nbest if config.sample else 1
    first = torch.tensor([own[-1] for own in before], device=max_lengths.device) if before else special.first
    if config.sample:
        state.reorder(torch.arange(len(max_lengths), device=max_lengths.device).repeat_interleave(draws))
        max_lengths = max_lengths.repeat_interleave(draws)
        prefixes = [prefix for prefix in prefixes for _ in range(draws)]
        before = [own for own in before for _ in range(draws)]
        first = first.repeat_interleave(draws) if isinstance(first, Tensor) else first
    rules = search_rules(config, special, max_lengths, prefixes, rules, before)
    options = {"first": first, "last": special.last, "rules": rules, "renormalize": config.renormalize, "stops": stops}
    return (model, state, max_lengths), options


def chooser(config: DecodingConfig, keys: Sequence[tuple]) -> Choose:
    """Picks each next token. Seeds depend only on the keys, so that the batch does not matter."""
    if not config.sample:
        return greedy
    names = ("temperature", "top_k", "top_p", "min_p", "typical_p")
    return random_sampling(sampling_seeds(config, keys), **{name: getattr(config, name) for name in names})


def sampling_seeds(config: DecodingConfig, keys: Sequence[tuple]) -> list[int]:
    """The seed of each sample of each text."""
    return [zlib.crc32(repr((config.seed, *key, draw)).encode()) for key in keys for draw in range(config.nbest)]


def search_rules(
    config: DecodingConfig,
    special: SpecialTokens,
    max_lengths: Tensor,
    prefixes: Sequence[list[int]],
    extra: Sequence[Rule],
    before: Sequence[Sequence[int]] = (),
) -> list[Rule]:
    """The rules of a search; `extra` ones come before those on how a text begins and ends, which override them."""
    start = forced_start(config, special)
    rules = [limits.BanTokens(special.never)] if special.never else []
    if config.min_length:
        rules.append(limits.min_length(len(special.before) + config.min_length, special.last))
    if config.no_repeat:
        rules.append(limits.no_repeat_ngram(config.no_repeat, before))
    rules += extra
    if any(prefixes):
        rules.append(limits.force_prefix([[*start, *prefix] for prefix in prefixes]))
    if start:
        rules.append(limits.force_begin(start))
    if config.force_end:
        rules.append(limits.force_end(max_lengths, special.last))
    return rules
