"""Beam search: keep the best few unfinished sequences, and lengthen each by one token at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.limits import Rule, ruled
from heed.decoding.ranking import Penalty, Standing, Stop, exact, wu
from heed.decoding.steps import Hypothesis, State, Steps


class Seen(NamedTuple):
    """One step of a search: of each sentence at work its best candidates, best first.

    `beam` is the live sequence each one lengthens. At most `beams` that end count as finished, and the
    best `beams` of the others live on.
    """

    sentence: Int[Tensor, " b"]
    beam: Int[Tensor, "b n"]
    token: Int[Tensor, "b n"]
    logp: Float[Tensor, "b n"]
    ends: Bool[Tensor, "b n"]


class Live:
    """The unfinished sequences: `beams` for each sentence still at work, `logp` their log probabilities."""

    def __init__(self, longest: Int[Tensor, " b"], beams: int):
        batch, device = len(longest), longest.device
        self.beams, self.longest = beams, longest
        self.sentence = torch.arange(batch, device=device)
        self.tokens = torch.zeros(batch, beams, 0, dtype=torch.long, device=device)
        self.scores = torch.zeros(batch, beams, 0, device=device)
        self.logp = torch.full((batch, beams), -torch.inf, device=device)
        self.logp[:, 0] = 0.0  # all beams are the same now: let one of them speak

    def rows(self) -> tuple[Int[Tensor, "r t"], Int[Tensor, " r"]]:
        """What each row of the state has said, and the sentence it is of."""
        return self.tokens.flatten(0, 1), self.sentence[:, None].expand(-1, self.beams).flatten()

    def choose(self, beam: Tensor, token: Tensor, logp: Tensor) -> Tensor:
        """Go on with these; the rows of the state they came from."""
        row = torch.arange(len(beam), device=beam.device)[:, None]
        step = (logp - self.logp[row, beam])[:, :, None]
        self.tokens = torch.cat([self.tokens[row, beam], token[:, :, None]], dim=2)
        self.scores = torch.cat([self.scores[row, beam].to(step.dtype), step], dim=2)
        self.logp = logp
        return (row * self.beams + beam).flatten()

    def keep(self, rows: Tensor) -> Tensor:
        """Go on with these sentences alone; their rows in the state."""
        self.sentence, self.longest = self.sentence[rows], self.longest[rows]
        self.tokens, self.scores, self.logp = self.tokens[rows], self.scores[rows], self.logp[rows]
        return (rows[:, None] * self.beams + torch.arange(self.beams, device=rows.device)).flatten()


# log probabilities (b, beams, vocab), the likeliest candidates and their places -> other candidates and places
Pick = Callable[[Tensor, Tensor, Tensor, Live], tuple[Tensor, Tensor]]


@torch.inference_mode()
def beam_search(  # noqa: PLR0913 (the parts of a search, each by its name)
    model: Steps,
    state: State,
    longest: Int[Tensor, " b"],
    *,
    first: int,
    last: int,
    beams: int = 4,
    nbest: int = 1,
    alpha: float = 0.6,
    penalty: Penalty = wu,
    stop: Stop = exact,
    rules: Sequence[Rule] = (),
    renormalize: bool = False,
    pick: Pick | None = None,
    watch: Callable[[Seen], None] | None = None,
) -> list[list[Hypothesis]]:
    """The `nbest` best sequences for each row of `state`, best first, none longer than its `longest`.

    Best is the log probability over the length penalty. A sentence is done, and leaves the batch, when `stop` says so: if
    that is `exact`, with enough beams the answer is that of trying all. `pick` may choose other candidates than the
    likeliest: those that end and count must be the first, and no more than `beams` may live on.
    """
    live = Live(longest, beams)
    done: list[list[Hypothesis]] = [[] for _ in longest]
    state.reorder(live.sentence[:, None].expand(-1, beams).flatten())
    said = torch.full((len(longest) * beams,), first, device=longest.device)
    while len(live.sentence):
        logp = ruled(model.step(said, state), *live.rows(), rules, renormalize)
        logp = logp.unflatten(0, (-1, beams)) + live.logp[:, :, None]
        best, place = logp.flatten(1).topk(min(2 * beams, logp[0].numel()))
        if pick is not None:
            best, place = pick(logp, best, place, live)
        beam, token = place // logp.shape[-1], place % logp.shape[-1]
        length = live.tokens.shape[2] + 1
        ends = (token == last) | (length >= live.longest)[:, None]
        if watch is not None:
            watch(Seen(live.sentence, beam, token, best, ends))
        _finish(done, live, (beam, token, best), ends, penalty(length, alpha))
        best, kept = best.masked_fill(ends, -torch.inf).topk(beams)
        rows = live.choose(beam.gather(1, kept), token.gather(1, kept), best)
        going = _going(done, live, nbest, lambda n: penalty(n, alpha), stop)
        if len(going) < len(live.sentence):
            rows = rows[live.keep(going)]
        state.reorder(rows)
        said = live.tokens[:, :, -1].flatten()
    return [sorted(found, key=lambda h: -h.score)[:nbest] for found in done]


def _finish(done: list, live: Live, candidates: tuple[Tensor, Tensor, Tensor], ends: Tensor, penalty: float) -> None:
    """Note down the candidates that end, those among the best `beams` alone."""
    beam, token, logp = candidates
    counts = (ends[:, : live.beams] & (logp[:, : live.beams] > -torch.inf)).nonzero().tolist()
    for row, column in counts:
        b = beam[row, column]
        total = logp[row, column].item()
        scores = [*live.scores[row, b].tolist(), total - live.logp[row, b].item()]
        tokens = [*live.tokens[row, b].tolist(), token[row, column].item()]
        done[live.sentence[row].item()].append(Hypothesis(tokens, total / penalty, scores))


def _going(
    done: list[list[Hypothesis]], live: Live, nbest: int, penalty: Callable[[int], float], stop: Stop
) -> Int[Tensor, " n"]:
    """The rows in which the search goes on: something is unfinished, and the part that may stop it does not."""
    best, length = live.logp.max(dim=1).values.tolist(), live.tokens.shape[2]
    going = []
    for row, (sentence, longest) in enumerate(zip(live.sentence.tolist(), live.longest.tolist(), strict=True)):
        found = sorted((h.score for h in done[sentence]), reverse=True)
        now = Standing(found, best[row], length, longest, live.beams, nbest, penalty)
        if best[row] > -torch.inf and not stop(now):
            going.append(row)
    return torch.tensor(going, dtype=torch.long, device=live.longest.device)
