"""Beam search: keep the best few unfinished sequences, and extend each by one token at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.limits import Rule, apply_rules
from heed.decoding.ranking import Penalty, SearchStatus, Stop, stop_exact, wu_penalty
from heed.decoding.steps import State, StepModel, Stops
from heed.models.outputs import check_outputs


class SearchStep(NamedTuple):
    """One step of a search: the best candidates of each unfinished sentence, best first.

    `beam` is the live sequence that a candidate extends. Candidates that end are finished if they are among the first
    `beams`; the best `beams` of the others stay live.
    """

    sentence: Int[Tensor, " b"]
    beam: Int[Tensor, "b n"]
    token: Int[Tensor, "b n"]
    logp: Float[Tensor, "b n"]
    ends: Bool[Tensor, "b n"]


class LiveBeams:
    """The unfinished sequences, `beams` for each unfinished sentence; `logp` are their log-probabilities."""

    def __init__(self, longest: Int[Tensor, " b"], beams: int):
        batch, device = len(longest), longest.device
        self.beams, self.longest = beams, longest
        self.sentence = torch.arange(batch, device=device)
        self.tokens = torch.zeros(batch, beams, 0, dtype=torch.long, device=device)
        self.scores = torch.zeros(batch, beams, 0, device=device)
        self.logp = torch.full((batch, beams), -torch.inf, device=device)
        self.logp[:, 0] = 0.0  # all beams are equal at first: only one of them counts

    def rows(self) -> tuple[Int[Tensor, "r t"], Int[Tensor, " r"]]:
        """The tokens of each row of the state, and its sentence."""
        return self.tokens.flatten(0, 1), self.sentence[:, None].expand(-1, self.beams).flatten()

    def extend(self, beam: Tensor, token: Tensor, logp: Tensor) -> Tensor:
        """Continue with these candidates; returns the rows of the state that they extend."""
        row = torch.arange(len(beam), device=beam.device)[:, None]
        step = (logp - self.logp[row, beam])[:, :, None]
        self.tokens = torch.cat([self.tokens[row, beam], token[:, :, None]], dim=2)
        self.scores = torch.cat([self.scores[row, beam].to(step.dtype), step], dim=2)
        self.logp = logp
        return (row * self.beams + beam).flatten()

    def keep(self, rows: Tensor) -> Tensor:
        """Continue with these sentences only; returns their rows of the state."""
        self.sentence, self.longest = self.sentence[rows], self.longest[rows]
        self.tokens, self.scores, self.logp = self.tokens[rows], self.scores[rows], self.logp[rows]
        return (rows[:, None] * self.beams + torch.arange(self.beams, device=rows.device)).flatten()


# log-probabilities (b, beams, vocab), those of the best candidates, and their flat indices -> the same of other candidates
Pick = Callable[[Tensor, Tensor, Tensor, LiveBeams], tuple[Tensor, Tensor]]


@torch.inference_mode()
def beam_search(  # noqa: PLR0913 (the parts of a search, each by its name)
    model: StepModel,
    state: State,
    longest: Int[Tensor, " b"],
    *,
    first: int | Tensor,
    last: int,
    beams: int = 4,
    nbest: int = 1,
    alpha: float = 0.6,
    penalty: Penalty = wu_penalty,
    stop: Stop = stop_exact,
    rules: Sequence[Rule] = (),
    renormalize: bool = False,
    pick: Pick | None = None,
    on_step: Callable[[SearchStep], None] | None = None,
    stops: Stops | None = None,
    scored: bool = False,
) -> list[list[Hypothesis]]:
    """The `nbest` best sequences for each row of `state`, best first, none longer than its `longest`.

    The score is the log-probability over the length penalty. A sentence is done, and leaves the batch, when `stop`
    says so; with `stop_exact` and enough beams the result is that of exhaustive search. `pick` may choose other
    candidates than the most likely: candidates that end must come first, and at most `beams` may stay live. `stops`
    says which end early. `scored`: `model` returns scores, none above 0, that are added unchanged.
    """
    live = LiveBeams(longest, beams)
    done: list[list[Hypothesis]] = [[] for _ in longest]
    state.reorder(live.sentence[:, None].expand(-1, beams).flatten())
    previous = torch.as_tensor(first, device=longest.device).expand(len(longest)).repeat_interleave(beams)
    while len(live.sentence):
        logp = apply_rules(model.step(previous, state), *live.rows(), rules, renormalize, scored)
        logp = logp.unflatten(0, (-1, beams)) + live.logp[:, :, None]
        best, index = logp.flatten(1).topk(min(2 * beams, logp[0].numel()))  # NaN counts as the largest
        check_outputs(best, infinite=True)
        if pick is not None:
            best, index = pick(logp, best, index, live)
        beam, token = index // logp.shape[-1], index % logp.shape[-1]
        length = live.tokens.shape[2] + 1
        ends = (token == last) | (length >= live.longest)[:, None]
        ends = ends if stops is None else ends | _stopped(live, beam, token, stops)
        if on_step is not None:
            on_step(SearchStep(live.sentence, beam, token, best, ends))
        _finish(done, live, (beam, token, best), ends, penalty(length, alpha))
        best, kept = best.masked_fill(ends, -torch.inf).topk(beams)
        rows = live.extend(beam.gather(1, kept), token.gather(1, kept), best)
        unfinished = _unfinished(done, live, nbest, lambda n: penalty(n, alpha), stop)
        if len(unfinished) < len(live.sentence):
            rows = rows[live.keep(unfinished)]
        state.reorder(rows)
        previous = live.tokens[:, :, -1].flatten()
    return [sorted(hypotheses, key=lambda h: -h.score)[:nbest] for hypotheses in done]


def _stopped(live: LiveBeams, beam: Tensor, token: Tensor, stops: Stops) -> Bool[Tensor, "b n"]:
    """Which candidates end early."""
    row = torch.arange(len(beam), device=beam.device)[:, None]
    tokens = torch.cat([live.tokens[row, beam], token[:, :, None]], dim=2)
    sentence = live.sentence[:, None].expand(-1, beam.shape[1])
    return stops(tokens.flatten(0, 1), sentence.flatten()).view(token.shape)


def _finish(
    done: list, live: LiveBeams, candidates: tuple[Tensor, Tensor, Tensor], ends: Tensor, penalty: float
) -> None:
    """Add the candidates that end to `done`, if they are among the best `beams`."""
    beam, token, logp = candidates
    finished = (ends[:, : live.beams] & (logp[:, : live.beams] > -torch.inf)).nonzero().tolist()
    for row, column in finished:
        b = beam[row, column]
        total = logp[row, column].item()
        scores = [*live.scores[row, b].tolist(), total - live.logp[row, b].item()]
        tokens = [*live.tokens[row, b].tolist(), token[row, column].item()]
        done[live.sentence[row].item()].append(Hypothesis(tokens, total / penalty, scores))


def _unfinished(
    done: list[list[Hypothesis]], live: LiveBeams, nbest: int, penalty: Callable[[int], float], stop: Stop
) -> Int[Tensor, " n"]:
    """The rows of sentences that still have a live sequence and are not stopped."""
    best, length = live.logp.max(dim=1).values.tolist(), live.tokens.shape[2]
    unfinished = []
    for row, (sentence, longest) in enumerate(zip(live.sentence.tolist(), live.longest.tolist(), strict=True)):
        finished = sorted((h.score for h in done[sentence]), reverse=True)
        status = SearchStatus(finished, best[row], length, longest, live.beams, nbest, penalty)
        if best[row] > -torch.inf and not stop(status):
            unfinished.append(row)
    return torch.tensor(unfinished, dtype=torch.long, device=live.longest.device)
