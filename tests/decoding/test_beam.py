import itertools

import pytest
import torch

from heed.decoding import limits
from heed.decoding.beam import beam_search
from tests.decoding.conftest import Counting

FIRST, LAST, VOCAB = 0, 4, 5
ALPHAS = [0.0, 0.6, 2.0]
NO_LIMIT = 10**9  # never reached, so the search runs to the maximal length


def search(model, texts, longest, **options):
    state = model.start(*texts)
    return beam_search(model, state, torch.tensor(longest), first=FIRST, last=LAST, **options)


def exhaustive(model, texts, row, longest, alpha):
    """All sequences that end at LAST or at the longest length, best first, as (score, tokens)."""
    full = torch.tensor(list(itertools.product(range(VOCAB), repeat=longest)))
    source, valid = (part[row : row + 1].expand(len(full), -1) for part in texts)
    inputs = torch.cat([torch.full_like(full[:, :1], FIRST), full[:, :-1]], dim=1)
    logp = model(source, inputs, valid).log_softmax(-1).gather(2, full[:, :, None])[:, :, 0]
    found = {}
    for tokens, parts in zip(full.tolist(), logp.tolist(), strict=True):
        end = tokens.index(LAST) + 1 if LAST in tokens else longest
        found[tuple(tokens[:end])] = sum(parts[:end]) / ((5 + end) / 6) ** alpha
    return sorted(((score, list(tokens)) for tokens, score in found.items()), reverse=True)


def log_probs_of_one_pass(model, texts, row, tokens):
    """The log probability of each token."""
    source, valid = (part[row : row + 1] for part in texts)
    logp = model(source, torch.tensor([[FIRST, *tokens[:-1]]]), valid).log_softmax(-1)[0]
    return logp[range(len(tokens)), tokens].tolist()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("nbest", [1, 3])
def test_a_wide_beam_finds_the_best_of_all(model, texts, alpha, nbest):
    longest = [4, 1, 3]
    found = search(model, texts, longest, beams=4**3 * 5, nbest=nbest, alpha=alpha)
    for row in range(3):
        best = exhaustive(model, texts, row, longest[row], alpha)[:nbest]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in best]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in best], abs=1e-10)


def allowed(tokens):
    """Whether the rules of the next test allow a sequence."""
    pairs = list(itertools.pairwise(tokens))
    short = LAST in tokens and len(tokens) <= 2
    return 1 not in tokens and not short and len(pairs) == len(set(pairs))


def test_a_wide_beam_under_rules_finds_the_best_of_what_they_allow(model, texts):
    rules = [limits.BanTokens([1]), limits.min_length(2, LAST), limits.no_repeat_ngram(2)]
    found = search(model, texts, [4, 4, 4], beams=4**3 * 5, nbest=3, rules=rules)
    for row in range(3):
        ordered = exhaustive(model, texts, row, 4, 0.6)
        best = [tokens for _, tokens in ordered if allowed(tokens)][:3]
        assert best != [tokens for _, tokens in ordered[:3]]
        assert [h.tokens for h in found[row]] == best


def test_a_wide_beam_with_a_prefix_finds_the_best_that_begins_with_it(model, texts):
    forced, longest = [[1], [3, 1, 1], []], [1, 4, 4]
    rules = [limits.BanTokens([1]), limits.no_repeat_ngram(1), limits.force_prefix(forced)]
    found = search(model, texts, longest, beams=4**3 * 5, rules=rules)
    for row, start in enumerate(forced):
        free = [
            (score, tokens)
            for score, tokens in exhaustive(model, texts, row, longest[row], 0.6)
            if tokens[: len(start)] == start
            and all(t != 1 and t not in tokens[: len(start) + i] for i, t in enumerate(tokens[len(start) :]))
        ]
        assert found[row][0].tokens == free[0][1]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_score_is_what_one_pass_gives_and_tokens_add_up(model, texts, alpha):
    beams = 4
    found = search(model, texts, [7, 9, 5], beams=beams, nbest=beams, alpha=alpha)
    for row, hypotheses in enumerate(found):
        assert len(hypotheses) == beams
        assert len({tuple(h.tokens) for h in hypotheses}) == beams
        for tokens, score, scores in hypotheses:
            assert scores == pytest.approx(log_probs_of_one_pass(model, texts, row, tokens), abs=1e-10)
            assert score == pytest.approx(sum(scores) / ((5 + len(tokens)) / 6) ** alpha, abs=1e-10)


@pytest.mark.parametrize("nbest", [1, 3])
def test_no_more_than_nbest_come_back_and_the_best_is_first(model, texts, nbest):
    for hypotheses in search(model, texts, [8, 6, 9], beams=4, nbest=nbest):
        assert len(hypotheses) == nbest
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("nbest", [1, 3])
def test_a_search_that_stops_early_misses_nothing(model, texts, nbest, alpha):
    longest = [15, 9, 12]
    early, late = Counting(model), Counting(model)
    found = search(early, texts, longest, beams=3, nbest=nbest, alpha=alpha)
    patient = search(late, texts, longest, beams=3, nbest=NO_LIMIT, alpha=alpha)
    for some, all_of_them in zip(found, patient, strict=True):
        assert [h.tokens for h in some] == [h.tokens for h in all_of_them[:nbest]]
        for one, same in zip(some, all_of_them, strict=False):  # sums of other batches, rounded otherwise
            assert [one.score, *one.scores] == pytest.approx([same.score, *same.scores], abs=1e-12)
    assert len(late.rows) == 15
    if alpha < 1:
        assert sum(early.rows) < sum(late.rows)


def reference_search(model, texts, row, longest, beams):
    """Beam search in lists: of the candidates those that end among the best `beams` are found, `beams` others live."""
    live, found = [(0.0, [])], []
    source, valid = (part[row : row + 1] for part in texts)
    while live:
        inputs = torch.tensor([[FIRST, *tokens] for _, tokens in live])
        logp = model(source.expand(len(live), -1), inputs, valid.expand(len(live), -1))[:, -1].log_softmax(-1).tolist()
        candidates = sorted(
            ((score + logp[b][t], [*tokens, t]) for b, (score, tokens) in enumerate(live) for t in range(VOCAB)),
            reverse=True,
        )
        ends = [(score, tokens) for score, tokens in candidates[:beams] if tokens[-1] == LAST or len(tokens) == longest]
        live = [(score, tokens) for score, tokens in candidates if tokens[-1] != LAST and len(tokens) < longest][:beams]
        found += [(score / ((5 + len(tokens)) / 6) ** 0.6, tokens) for score, tokens in ends]
    return sorted(found, reverse=True)


@pytest.mark.parametrize("beams", [4, 5])
def test_a_narrow_beam_finds_what_its_definition_finds(model, texts, beams):
    longest = [9, 5, 7]
    for row, hypotheses in enumerate(search(model, texts, longest, beams=beams, nbest=NO_LIMIT)):
        expected = reference_search(model, texts, row, longest[row], beams)
        assert min(len(tokens) for _, tokens in expected) < longest[row] - 1
        assert [h.tokens for h in hypotheses] == [tokens for _, tokens in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_a_narrow_beam_is_never_better_than_all(model, texts, alpha):
    for row, hypotheses in enumerate(search(model, texts, [4, 4, 3], beams=2, alpha=alpha)):
        best, _ = exhaustive(model, texts, row, [4, 4, 3][row], alpha)[0]
        assert hypotheses[0].score <= best + 1e-10


def test_sentences_that_are_done_leave_the_batch(model, texts):
    counting = Counting(model)
    search(counting, texts, [2, 6, 4], beams=3, nbest=NO_LIMIT)
    assert counting.rows == [9, 9, 6, 6, 3, 3]


@pytest.mark.parametrize("beams", [1, 4])
def test_a_batch_gives_what_its_sentences_give_alone(model, texts, beams):
    together = search(model, texts, [9, 7, 8], beams=beams, nbest=beams)
    for row in range(3):
        size = int(texts[1][row].sum())  # alone, without its padding
        alone = search(
            model, [part[row : row + 1, :size] for part in texts], [[9, 7, 8][row]], beams=beams, nbest=beams
        )
        assert [h.tokens for h in together[row]] == [h.tokens for h in alone[0]]
        assert [h.score for h in together[row]] == pytest.approx([h.score for h in alone[0]], abs=1e-10)


def test_one_beam_without_a_length_penalty_is_greedy(model, texts):
    found = search(model, texts, [8, 8, 8], beams=1, alpha=0.0)
    for row in range(3):
        words = [FIRST]
        while len(words) <= 8 and words[-1] != LAST:
            logits = model(texts[0][row : row + 1], torch.tensor([words]), texts[1][row : row + 1])
            words.append(logits[0, -1].argmax().item())
        assert found[row][0].tokens == words[1:]


def test_the_steps_of_a_search_reproduce_its_result(model, texts):
    """Replayed: of the candidates that end the first `beams` are finished, the best `beams` of the others live on."""
    seen, beams = [], 3
    found = search(model, texts, [7, 5, 6], beams=beams, on_step=seen.append)
    live = {row: [[]] for row in range(3)}
    done = {row: [] for row in range(3)}
    for step in seen:
        rows = zip(*(part.tolist() for part in step), strict=True)
        for row, *candidates in rows:
            longer = []
            for place, (beam, token, logp, ends) in enumerate(zip(*candidates, strict=True)):
                if logp == -torch.inf:
                    continue
                tokens = [*live[row][beam], token]
                if not ends:
                    longer.append(tokens)
                elif place < beams:
                    done[row].append((logp / ((5 + len(tokens)) / 6) ** 0.6, tokens))
            live[row] = longer[:beams]
    for row in range(3):
        assert max(done[row]) == (pytest.approx(found[row][0].score, abs=1e-10), found[row][0].tokens)


def test_no_sentences_give_no_answers(model, texts):
    nothing = torch.zeros(0, dtype=torch.long)
    assert beam_search(model, model.start(*texts), nothing, first=FIRST, last=LAST) == []
