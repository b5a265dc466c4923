"""Heed's search by the rules of transformers' `generate`: the same sequences in the same order, with the same scores.

`generate` adds up log probabilities in float32, whatever the model is in, so that scores are the same to 1e-5.
"""

import functools

import pytest
import torch

from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.ranking import length_power, stop_exact, stop_first, stop_heuristic, wu_penalty
from heed.decoding.sample import stepwise_search
from tests.decoding.marian import LAST, LONGEST, PAD, marian, searched, sources

STOPPING = {False: stop_heuristic, True: stop_first, "never": stop_exact}
ENDING = {0.0: 1.0, 0.6: 1.2, 1.0: 1.5, 2.0: 2.0}  # for each length penalty, so that sequences of all lengths come out
BATCHES = sources(200)[1].split(100)
BEAMS = 4

model = functools.cache(marian)


def generated(model, **options):
    """What `generate` gives for all sources, as (tokens, score)."""
    common = {"max_length": LONGEST + 1, "do_sample": False, "return_dict_in_generate": True, "output_scores": True}
    options = {"num_beams": BEAMS, "num_return_sequences": BEAMS, "bad_words_ids": [[PAD]]} | common | options
    found = []
    for source in BATCHES:
        out = model.generate(source, attention_mask=(source != PAD).long(), **options)
        tokens = [[t for t in row[1:] if t != PAD] for row in out.sequences.tolist()]
        scores = out.sequences_scores.tolist() if options["num_beams"] > 1 else [None] * len(tokens)
        pairs = list(zip(tokens, scores, strict=True))
        each = options["num_return_sequences"]
        found += [pairs[i : i + each] for i in range(0, len(pairs), each)]
    return found


def ours(model, search=beam_search, rules=(), **options):
    rules = [limits.BanTokens([PAD]), *rules]
    return [own for source in BATCHES for own in searched(search, model, source, rules=rules, **options)]


def by_beam(length_penalty, early_stopping, nbest=BEAMS, rules=(), **options):
    options = {"penalty": length_power, "stop": STOPPING[early_stopping]} | options
    return ours(model(ENDING[length_penalty]), alpha=length_penalty, beams=BEAMS, nbest=nbest, rules=rules, **options)


plain = functools.cache(by_beam)  # without rules and options


def same(ours, theirs):
    assert tokens_of(ours) == tokens_of(theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert [score for _, score in own] == pytest.approx([score for _, score in other], abs=1e-5)


def tokens_of(found):
    return [[tokens for tokens, _ in hypotheses] for hypotheses in found]


def differing(one, other):
    """How many sources have another best sequence."""
    return sum(a[0][0] != b[0][0] for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("length_penalty", ENDING)
@pytest.mark.parametrize("early_stopping", STOPPING)
def test_beams_are_those_of_generate(length_penalty, early_stopping):
    theirs = generated(model(ENDING[length_penalty]), length_penalty=length_penalty, early_stopping=early_stopping)
    assert len({len(tokens) for own in theirs for tokens, _ in own}) > 5
    same(plain(length_penalty, early_stopping), theirs)


@pytest.mark.parametrize("early_stopping", STOPPING)
def test_the_best_alone_is_that_of_generate(early_stopping):
    theirs = generated(model(2.0), length_penalty=2.0, early_stopping=early_stopping, num_return_sequences=1)
    same(by_beam(2.0, early_stopping, nbest=1), theirs)


LIMITS = {
    "no_repeat_ngram_size": (2, [limits.no_repeat_ngram(2)]),
    "min_length": (6, [limits.min_length(5, LAST)]),  # they count what the decoder is given first
    # transformers ignores that the end may not be said
    "bad_words_ids": ([[PAD], [3], [17], [30], [40], [LAST]], [limits.BanTokens([3, 17, 30, 40])]),
    "forced_bos_token_id": (9, [limits.force_begin([9])]),
    "forced_eos_token_id": (LAST, [limits.force_end(torch.full((100,), LONGEST), LAST)]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_those_of_generate(name):
    value, rules = LIMITS[name]
    theirs = generated(model(1.5), length_penalty=1.0, early_stopping=False, **{name: value})
    found = by_beam(1.0, False, rules=rules)
    same(found, theirs)
    assert differing(found, plain(1.0, False)) > 20


def test_all_limits_together_are_those_of_generate():
    values = {"no_repeat_ngram_size": 1, "min_length": 8, "forced_bos_token_id": 11, "forced_eos_token_id": LAST}
    rules = [
        limits.no_repeat_ngram(1),
        limits.min_length(7, LAST),
        limits.force_begin([11]),
        LIMITS["forced_eos_token_id"][1][0],
    ]
    theirs = generated(model(1.0), length_penalty=2.0, early_stopping="never", renormalize_logits=True, **values)
    options = {"alpha": 2.0, "penalty": length_power, "beams": BEAMS, "nbest": BEAMS}
    same(ours(model(1.0), rules=rules, renormalize=True, **options), theirs)


@pytest.mark.parametrize("name", [None, *LIMITS])
def test_greedy_search_is_that_of_generate(name):
    value, rules = LIMITS.get(name, (None, []))
    given = {} if name is None else {name: value}
    theirs = generated(model(1.0), num_beams=1, num_return_sequences=1, **given)
    assert tokens_of(ours(model(1.0), stepwise_search, rules=rules)) == tokens_of(theirs)


def test_a_token_that_generate_forces_costs_nothing_and_a_prefix_its_log_probability():
    forced, prefix = (
        by_beam(1.0, False, rules=[rule]) for rule in (limits.force_begin([9]), limits.force_prefix([[9]] * 100))
    )
    assert {tokens[0] for own in [*forced, *prefix] for tokens, _ in own} == {9}
    assert differing(forced, prefix) > 20  # what the first token costs, long sequences share among more


def test_each_setting_matters():
    assert differing(plain(1.0, False), plain(1.0, True)) > 20
    assert differing(plain(2.0, False), plain(2.0, "never")) > 20
    assert differing(plain(1.0, False), by_beam(1.0, False, penalty=wu_penalty)) > 20
    whole, shared = (by_beam(1.0, False, rules=[limits.BanTokens([30])], renormalize=way) for way in (False, True))
    assert differing(whole, shared) > 5
