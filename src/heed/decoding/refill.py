"""Continuous refilling: waiting sentences take the places of finished ones in a running batch.

Sentences that began together are a group, with a search of its own, so that all its sequences are equally long. All
groups share the steps of the model, on one joined state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.steps import RunningSearch, Search, State, StepModel

FREE_SHARE = 0.25  # of a batch: with less free, waiting sentences are not worth a step of their own
Begin = Callable[[list[int]], tuple[State, Search]]  # the state and the search of these sentences


@dataclass
class Group:
    """Sentences that began together, the rows of each, and the rows that all of them have in the state."""

    sentences: list[int]
    running: RunningSearch
    width: int
    rows: int

    def next_rows(self) -> int:
        """The rows of the next step: those of unfinished sentences."""
        return 0 if self.running.next_step is None else len(self.running.next_step.tokens)


class RefilledBatch:
    """A batch of at most `budget` source tokens, padding included; `sizes` are those of all sentences."""

    def __init__(self, model: StepModel, begin: Begin, sizes: Sequence[int], budget: int):
        self.model, self.begin, self.sizes, self.budget = model, begin, sizes, budget
        self.waiting = sorted(range(len(sizes)), key=lambda i: -sizes[i])  # the longest first
        self.groups: list[Group] = []
        self.state: Any = None
        self.results: dict[int, list[Hypothesis]] = {}

    @torch.inference_mode()
    def run(self) -> list[list[Hypothesis]]:
        while self.waiting or self.groups:
            self._refill()
            self._step()
        return [self.results[i] for i in range(len(self.sizes))]

    def _refill(self) -> None:
        """Begin the search of as many waiting sentences as there is room for. Their first step is their own."""
        sentences = self._next_sentences()
        if not sentences:
            return
        state, search = self.begin(sentences)
        running = RunningSearch(search)
        rows = len(running.next_step.tokens)
        running.step(self.model, state)
        self.groups.append(Group(sentences, running, rows // len(sentences), rows))
        if self.state is None:
            self.state = state
        else:
            self.state = type(state).join([self.state, state])

    def _next_sentences(self) -> list[int]:
        """Waiting sentences for which there is room, or none while too few have finished."""
        if not self.waiting:
            return []
        unfinished, longest = 0, self.sizes[self.waiting[0]]
        for group in self.groups:
            unfinished += group.next_rows() // group.width
            longest = max(longest, self.sizes[group.sentences[0]])
        room = self.budget // longest
        if self.groups and room - unfinished < max(1, room * FREE_SHARE):
            return []
        count = max(room - unfinished, 0 if self.groups else 1)
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def _step(self) -> None:
        """One step of all groups, after the rows that they no longer need have left the state."""
        kept, start, changed = [], 0, False
        for group in self.groups:
            step, end = group.running.next_step, start + group.rows
            if step is None:
                self.results |= zip(group.sentences, group.running.result, strict=True)
            else:
                every = torch.arange(group.rows, device=step.tokens.device)
                kept.append(start + (every if step.rows is None else step.rows))
            changed = changed or step is None or step.rows is not None
            start, group.rows = end, group.next_rows()
        self.groups = [group for group in self.groups if group.rows]
        if not self.groups:
            self.state = None
            return
        if changed:
            self.state.reorder(torch.cat(kept))
        tokens = torch.cat([group.running.next_step.tokens for group in self.groups])
        logits = self.model.step(tokens, self.state).split([group.rows for group in self.groups])
        for group, own in zip(self.groups, logits, strict=True):
            group.running.send(own)
