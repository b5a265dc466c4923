"""A beam search that says given terms (dynamic beam allocation: Post and Vilar, 2018).

Beams are shared among banks, by how few tokens a sequence has left to say. A sequence with no room for more than these can say nothing
else, so that each can still be ended.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heed.decoding.beam import Live
from heed.decoding.terms import Automaton, Letters, Term, shortest

# by how many tokens are left to say: the log probability of a candidate, its place, and whether it ends
Banks = dict[int, list[tuple[float, int, bool]]]
Instead = Mapping[int, frozenset[int]]  # by the token that begins a term: those in whose place it may stand


class Constraints:
    """The terms of each sentence of a batch, for a beam search; what cannot be said within `longest` tokens is left out.

    `forced[i]` is what sentence i begins with in any case; `force_end` keeps the last place for the end mark. `instead[i]` tells
    for a token that begins a term in which tokens' place it stands: it is as likely as they are, these are not said before it, and the
    rest of a term is said at no cost. So a term comes where its place is, not where a model that never expects it minds it least.
    """

    def __init__(
        self,
        terms: Sequence[Sequence[Term]],
        letters: Letters,
        longest: Sequence[int],
        last: int,
        *,
        silent: Iterable[int] = (),
        forced: Sequence[Sequence[int]] | None = None,
        force_end: bool = False,
        instead: Sequence[Instead] | None = None,
    ):
        self.letters, self.longest, self.last = letters, longest, last
        self.instead = instead or [{}] * len(terms)
        self.rooms = [most - force_end for most in longest]
        forced, silent = forced or [()] * len(terms), frozenset(silent)
        self.starts = [len(own) for own in forced]
        each = zip(terms, self.rooms, forced, strict=True)
        self.automata = [_fitting(list(own), letters, silent, room, start) for own, room, start in each]
        self._now: dict[tuple[int, tuple[int, ...]], int] = {}
        # by a sentence and what was said: what a begun term counts for, and what is owed for it
        self._promised: dict[tuple[int, ...], tuple[float, float]] = {}

    def rule(self, banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        """No end before all is said, and nothing for which there is no room; what says a term is free of the rules before."""
        free, unsaid, over = [], [], {}
        for row, (i, number) in enumerate(zip(sentence.tolist(), self._standings(said, sentence), strict=True)):
            if (automaton := self.automata[i]) is None:
                continue
            free += [(row, token) for token in automaton.next[number]]
            unsaid += [row] if automaton.left[number] else []
            room = self.rooms[i] - said.shape[1] - 1
            if automaton.left[0] > room:
                over.setdefault((i, number, room), []).append(row)
        if free:
            banned[tuple(zip(*free, strict=True))] = False
        banned[unsaid, self.last] = True
        for (i, number, room), rows in over.items():
            banned[rows] |= self._over(self.automata[i], number, room).to(banned.device)

    def _over(self, automaton: Automaton, number: int, room: int) -> Bool[Tensor, " vocab"]:
        """The tokens after which more is left to say than there is room for."""
        over = torch.tensor([automaton.left[automaton.other(number, kind)] > room for kind in range(4)])[self._kinds]
        for token in automaton.next[number]:
            over[token] = automaton.left[automaton.step(number, token)] > room
        return over

    def pick(self, logp: Tensor, best: Tensor, place: Tensor, live: Live) -> tuple[Tensor, Tensor]:
        """Candidates by dynamic beam allocation (Post and Vilar, 2018), for the sentences that have terms.

        Beside the likeliest of all they are those of each beam, and all that say a term. First come those that end and count, then
        those that live on.
        """
        said, sentence = live.tokens, live.sentence
        if not any(self.automata[i] for i in sentence.tolist()):
            return best, place
        beams, vocab = logp.shape[1:]
        standings = self._standings(said.flatten(0, 1), sentence.repeat_interleave(beams))
        rows = [row for row, i in enumerate(sentence.tolist()) if self.automata[i] and self.instead[i]]
        logp = self._placed(logp, live, standings) if rows else logp
        likeliest = (logp.argmax(dim=-1) + vocab * torch.arange(beams, device=logp.device)).tolist()
        best, place = best.clone(), place.clone()
        for row, i in enumerate(sentence.tolist()):
            if (automaton := self.automata[i]) is None:
                continue
            numbers = standings[row * beams : (row + 1) * beams]
            say = {beam * vocab + token for beam, number in enumerate(numbers) for token in automaton.next[number]}
            places = sorted({*place[row].tolist(), *likeliest[row], *say})
            banks: Banks = {}
            for own, at in zip(logp[row].flatten()[places].tolist(), places, strict=True):
                if own > -torch.inf:
                    left = automaton.left[automaton.step(numbers[at // vocab], at % vocab)]
                    ends = at % vocab == self.last or said.shape[2] + 1 >= self.longest[i]
                    banks.setdefault(left, []).append((own, at, ends))
            chosen = _shared(banks, beams)
            best[row], place[row] = -torch.inf, 0
            best[row, : len(chosen)] = best.new_tensor([own for own, _ in chosen])
            place[row, : len(chosen)] = place.new_tensor([at for _, at in chosen])
        return best, place

    def _placed(self, logp: Tensor, live: Live, standings: list[int]) -> Tensor:
        """Terms as likely as what they stand in the place of, and that impossible. What is begun and not said is paid back."""
        sentences = live.sentence.repeat_interleave(logp.shape[1]).tolist()
        rows = list(zip(sentences, live.tokens.flatten(0, 1).tolist(), strict=True))
        known = [self._promised.get((i, *tokens), (-torch.inf, 0.0)) for i, tokens in rows]
        flat = logp.flatten(0, 1) - logp.new_tensor([debt for _, debt in known])[:, None]
        going, begun = [], []  # (row, token), and those in whose place a term begins
        alive = (live.logp > -torch.inf).flatten().tolist()
        for row, ((i, tokens), number) in enumerate(zip(rows, standings, strict=True)):
            automaton, instead = self.automata[i], self.instead[i]
            if automaton is not None and instead and alive[row] and len(tokens) >= self.starts[i]:
                own, ahead = automaton.going[number], automaton.next[number]
                going += [(row, token) for token in own]
                begun += [((row, token), sorted(instead[token] - ahead)) for token in (ahead & instead.keys()) - own]
        silent = [(row, other) for (row, _), others in begun for other in others]
        values = iter(_at(flat, [*going, *(place for place, _ in begun), *silent]).tolist())
        real = {place: next(values) for place in [*going, *(place for place, _ in begun)]}
        worth = {place: known[place[0]][0] for place in going}
        worth |= {place: _sum([next(values) for _ in others]) for place, others in begun}
        _at(flat, silent, -torch.inf)
        _at(flat, list(worth), flat.new_tensor([max(real[place], own) for place, own in worth.items()]))
        self._promised = {}
        for (row, token), own in worth.items():
            (i, tokens), automaton = rows[row], self.automata[rows[row][0]]
            if automaton.met[automaton.step(standings[row], token)] == automaton.met[standings[row]]:
                self._promised[i, *tokens, token] = own, max(0.0, own - real[row, token])
        return flat.view(logp.shape)

    @cached_property
    def _kinds(self) -> Tensor:
        return self.letters.begin + 2 * self.letters.end.long()

    def _standings(self, said: Tensor, sentence: Tensor) -> list[int]:
        """Where each row stands: one token further than in the step before."""
        now, found = {}, []
        for i, tokens in zip(sentence.tolist(), map(tuple, said.tolist()), strict=True):
            automaton, number = self.automata[i], self._now.get((i, tokens))
            if number is None and automaton is not None:
                before = self._now.get((i, tokens[:-1]))
                number = automaton.walk(tokens) if before is None else automaton.step(before, tokens[-1])
            now[i, tokens] = number = number or 0
            found.append(number)
        self._now = now
        return found


def _fitting(
    terms: list[Term], letters: Letters, silent: Iterable[int], room: int, start: Sequence[int]
) -> Automaton | None:
    """Terms for which there is room, with the longest left out while there is not; None where none is left."""
    while terms:
        automaton = Automaton(terms, letters, silent)
        if automaton.left[automaton.walk(start)] <= room - len(start):
            return automaton
        terms.remove(max(reversed(terms), key=shortest))
    return None


def _shared(banks: Banks, beams: int) -> list[tuple[float, int]]:
    """Each bank has an equal share of the beams, those with less to say first; what is left over goes to the likeliest.

    What ends must come among as many of its own bank as live on there, or could.
    """
    share = max(1, beams // len(banks)) if banks else 0
    kept, over = [], []
    for left in sorted(banks):
        banks[left].sort(key=lambda one: (-one[0], one[1]))
        alive = [(own, at, left) for own, at, ends in banks[left] if not ends]
        kept, over = [*kept, *alive[:share]], [*over, *alive[share:]]
    kept = [*kept[:beams], *sorted(over, key=lambda one: (-one[0], one[1]))[: max(0, beams - len(kept))]]
    places = max(share, beams - sum(left > 0 for _, _, left in kept))
    ended = [(own, at) for own, at, ends in banks.get(0, [])[:places] if ends]
    return ended + [(own, at) for own, at, _ in kept]


def _at(table: Tensor, places: Sequence[tuple[int, int]], put: Tensor | float | None = None) -> Tensor:
    """What stands at places, (row, column) each; with `put`, after that was put there."""
    rows, columns = torch.tensor(places, dtype=torch.long, device=table.device).reshape(-1, 2).T
    if put is not None:
        table[rows, columns] = put
    return table[rows, columns]


def _sum(logs: Sequence[float]) -> float:
    """Of probabilities, in their logarithms."""
    most = max(logs, default=-math.inf)
    return most + math.log(sum(math.exp(own - most) for own in logs)) if most > -math.inf else most
