"""Constrained beam search: translations that contain given terms (dynamic beam allocation: Post and Vilar, 2018).

Beams are divided among banks by the number of missing term tokens. A sequence that has room only for these may
contain nothing else, so that every sequence can be completed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heed.decoding.beam import LiveBeams
from heed.decoding.terms import Automaton, Term, TokenEdges, min_tokens

# by the number of missing tokens: the log-probability of a candidate, its flat index, and whether it ends
Banks = dict[int, list[tuple[float, int, bool]]]
Replaced = Mapping[int, frozenset[int]]  # by the first token of a term: the tokens that the term may replace


class Constraints:
    """The terms of each sentence of a batch, for a beam search; terms that do not fit into `longest` tokens are dropped.

    `forced[i]` is the forced prefix of sentence i; `force_end` reserves the last position for the end token.
    `replaced[i]` names the tokens that a term of sentence i replaces: the term is as likely as they are, they are
    banned before it, and the rest of the term costs nothing. So a term appears where it belongs, not where an
    unprepared model finds it least unlikely.
    """

    def __init__(
        self,
        terms: Sequence[Sequence[Term]],
        edges: TokenEdges,
        longest: Sequence[int],
        last: int,
        *,
        silent: Iterable[int] = (),
        forced: Sequence[Sequence[int]] | None = None,
        force_end: bool = False,
        replaced: Sequence[Replaced] | None = None,
    ):
        self.edges, self.longest, self.last = edges, longest, last
        self.replaced = replaced or [{}] * len(terms)
        self.capacity = [most - force_end for most in longest]
        forced, silent = forced or [()] * len(terms), frozenset(silent)
        self.prefix_lengths = [len(prefix) for prefix in forced]
        sentences = zip(terms, self.capacity, forced, strict=True)
        self.automata = [_fitting(list(own), edges, silent, capacity, prefix) for own, capacity, prefix in sentences]
        self._states: dict[tuple[int, tuple[int, ...]], int] = {}  # by sentence and tokens, of the last step
        # by a sentence and tokens that end within a term: the score the term gets, and how much of it is borrowed
        self._borrowed: dict[tuple[int, ...], tuple[float, float]] = {}

    def rule(self, banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        """Ban the end before all terms are met, and tokens without room for the rest; allow term tokens even if
        banned.
        """
        allowed, incomplete, tight = [], [], {}
        for row, (i, state) in enumerate(zip(sentence.tolist(), self._states_of(tokens, sentence), strict=True)):
            if (automaton := self.automata[i]) is None:
                continue
            allowed += [(row, token) for token in automaton.term_tokens[state]]
            incomplete += [row] if automaton.remaining[state] else []
            room = self.capacity[i] - tokens.shape[1] - 1
            if automaton.remaining[0] > room:
                tight.setdefault((i, state, room), []).append(row)
        if allowed:
            banned[tuple(zip(*allowed, strict=True))] = False
        banned[incomplete, self.last] = True
        for (i, state, room), rows in tight.items():
            banned[rows] |= self._without_room(self.automata[i], state, room).to(banned.device)

    def _without_room(self, automaton: Automaton, state: int, room: int) -> Bool[Tensor, " vocab"]:
        """The tokens after which more is missing than there is room for."""
        by_kind = [automaton.remaining[automaton.step_other(state, kind)] > room for kind in range(4)]
        without = torch.tensor(by_kind)[self._kinds]
        for token in automaton.term_tokens[state]:
            without[token] = automaton.remaining[automaton.step(state, token)] > room
        return without

    def pick(self, logp: Tensor, best: Tensor, index: Tensor, live: LiveBeams) -> tuple[Tensor, Tensor]:
        """Candidates by dynamic beam allocation (Post and Vilar, 2018), for the sentences that have terms.

        They are chosen from the most likely overall, the most likely of each beam, and all that begin or continue a
        term. Those that end come first, then those that stay live.
        """
        tokens, sentence = live.tokens, live.sentence
        if not any(self.automata[i] for i in sentence.tolist()):
            return best, index
        beams, vocab = logp.shape[1:]
        states = self._states_of(tokens.flatten(0, 1), sentence.repeat_interleave(beams))
        if any(self.automata[i] and self.replaced[i] for i in sentence.tolist()):
            logp = self._with_replacements(logp, live, states)
        most_likely = (logp.argmax(dim=-1) + vocab * torch.arange(beams, device=logp.device)).tolist()
        best, index = best.clone(), index.clone()
        for row, i in enumerate(sentence.tolist()):
            if (automaton := self.automata[i]) is None:
                continue
            own = states[row * beams : (row + 1) * beams]
            in_terms = {
                beam * vocab + token for beam, state in enumerate(own) for token in automaton.term_tokens[state]
            }
            candidates = sorted({*index[row].tolist(), *most_likely[row], *in_terms})
            banks: Banks = {}
            for score, at in zip(logp[row].flatten()[candidates].tolist(), candidates, strict=True):
                if score > -torch.inf:
                    missing = automaton.remaining[automaton.step(own[at // vocab], at % vocab)]
                    ends = at % vocab == self.last or tokens.shape[2] + 1 >= self.longest[i]
                    banks.setdefault(missing, []).append((score, at, ends))
            chosen = _allocate(banks, beams)
            best[row], index[row] = -torch.inf, 0
            best[row, : len(chosen)] = best.new_tensor([score for score, _ in chosen])
            index[row, : len(chosen)] = index.new_tensor([at for _, at in chosen])
        return best, index

    def _with_replacements(self, logp: Tensor, live: LiveBeams, states: list[int]) -> Tensor:
        """Scores in which terms are as likely as the tokens they replace, and these impossible.

        What a term borrows is paid back if the sequence abandons the term.
        """
        sentences = live.sentence.repeat_interleave(logp.shape[1]).tolist()
        rows = list(zip(sentences, live.tokens.flatten(0, 1).tolist(), strict=True))
        begun = [self._borrowed.get((i, *tokens), (-torch.inf, 0.0)) for i, tokens in rows]
        flat = logp.flatten(0, 1) - logp.new_tensor([borrowed for _, borrowed in begun])[:, None]
        continuing, starting = (
            [],
            [],
        )  # cells (row, token); for those that start a term, also the tokens that it replaces
        alive = (live.logp > -torch.inf).flatten().tolist()
        for row, ((i, tokens), state) in enumerate(zip(rows, states, strict=True)):
            automaton, replaced = self.automata[i], self.replaced[i]
            if automaton is not None and replaced and alive[row] and len(tokens) >= self.prefix_lengths[i]:
                inner, terms = automaton.continuing[state], automaton.term_tokens[state]
                continuing += [(row, token) for token in inner]
                starting += [((row, t), sorted(replaced[t] - terms)) for t in (terms & replaced.keys()) - inner]
        banned = [(row, other) for (row, _), others in starting for other in others]
        cells = [*continuing, *(cell for cell, _ in starting)]
        values = iter(_cells(flat, [*cells, *banned]).tolist())
        actual = {cell: next(values) for cell in cells}
        lent = {cell: begun[cell[0]][0] for cell in continuing}
        lent |= {cell: _log_sum([next(values) for _ in others]) for cell, others in starting}
        _cells(flat, banned, -torch.inf)
        _cells(flat, list(lent), flat.new_tensor([max(actual[cell], score) for cell, score in lent.items()]))
        self._borrowed = {}
        for (row, token), score in lent.items():
            (i, tokens), automaton = rows[row], self.automata[rows[row][0]]
            if automaton.met[automaton.step(states[row], token)] == automaton.met[states[row]]:
                self._borrowed[i, *tokens, token] = score, max(0.0, score - actual[row, token])
        return flat.view(logp.shape)

    @cached_property
    def _kinds(self) -> Tensor:
        return self.edges.extends + 2 * self.edges.closes.long()

    def _states_of(self, tokens: Tensor, sentence: Tensor) -> list[int]:
        """The automaton state of each row, one token after that of the last step."""
        states, found = {}, []
        for i, prefix in zip(sentence.tolist(), map(tuple, tokens.tolist()), strict=True):
            automaton, state = self.automata[i], self._states.get((i, prefix))
            if state is None and automaton is not None:
                before = self._states.get((i, prefix[:-1]))
                state = automaton.run(prefix) if before is None else automaton.step(before, prefix[-1])
            states[i, prefix] = state = state or 0
            found.append(state)
        self._states = states
        return found


def _fitting(
    terms: list[Term], edges: TokenEdges, silent: Iterable[int], capacity: int, prefix: Sequence[int]
) -> Automaton | None:
    """The terms that fit, after dropping the longest until they do; None if none is left."""
    while terms:
        automaton = Automaton(terms, edges, silent)
        if automaton.remaining[automaton.run(prefix)] <= capacity - len(prefix):
            return automaton
        terms.remove(max(reversed(terms), key=min_tokens))
    return None


def _allocate(banks: Banks, beams: int) -> list[tuple[float, int]]:
    """An equal share of the beams for each bank, those with less missing first; the rest goes to the most likely. A
    candidate that ends must be among as many of its bank as stay live there, or could.
    """
    share = max(1, beams // len(banks)) if banks else 0
    kept, over = [], []
    for missing in sorted(banks):
        banks[missing].sort(key=lambda candidate: (-candidate[0], candidate[1]))
        alive = [(score, at, missing) for score, at, ends in banks[missing] if not ends]
        kept, over = [*kept, *alive[:share]], [*over, *alive[share:]]
    over.sort(key=lambda candidate: (-candidate[0], candidate[1]))
    kept = [*kept[:beams], *over[: max(0, beams - len(kept))]]
    complete = max(share, beams - sum(missing > 0 for _, _, missing in kept))
    ended = [(score, at) for score, at, ends in banks.get(0, [])[:complete] if ends]
    return ended + [(score, at) for score, at, _ in kept]


def _cells(table: Tensor, cells: Sequence[tuple[int, int]], value: Tensor | float | None = None) -> Tensor:
    """The values of cells, given as (row, column); with `value`, after setting them."""
    rows, columns = torch.tensor(cells, dtype=torch.long, device=table.device).reshape(-1, 2).T
    if value is not None:
        table[rows, columns] = value
    return table[rows, columns]


def _log_sum(logs: Sequence[float]) -> float:
    """The logarithm of a sum of probabilities, given their logarithms."""
    most = max(logs, default=-math.inf)
    return most + math.log(sum(math.exp(value - most) for value in logs)) if most > -math.inf else most
