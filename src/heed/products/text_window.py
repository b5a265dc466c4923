"""Read texts of different lengths into one state, and continue beyond a model's positions."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.decoding.steps import State

DROPPED = 4  # a quarter of the positions is freed when they are used up


def read(model: nn.Module, texts: Sequence[Sequence[int]]) -> State:
    """The state after each text. Texts of equal length are read together, without padding."""
    device, groups = next(model.parameters()).device, {}
    for row, text in enumerate(texts):
        groups.setdefault(len(text), []).append(row)
    states = []
    for length, rows in groups.items():
        state = model.start(len(rows))
        tokens = torch.tensor([[*texts[row]] for row in rows], dtype=torch.long, device=device)
        if length or getattr(model.config, "prompt_length", 0):  # vectors before a text are read with it
            for part in tokens.split(getattr(state, "segment", None) or max(1, length), dim=1):
                model.hidden_states(part, state)
        states.append(state)
    if len(states) == 1:
        return states[0]
    joined = type(states[0]).join(states, [len(rows) for rows in groups.values()])
    order = torch.tensor([row for rows in groups.values() for row in rows], device=device)
    joined.reorder(order.argsort())
    return joined


@dataclass
class WindowState:
    """The state of a model, and the tokens in the window of each row."""

    state: Any
    windows: list[list[int]]

    def reorder(self, rows: Tensor) -> None:
        self.state.reorder(rows)
        self.windows = [list(self.windows[row]) for row in rows.tolist()]


class SlidingWindow:
    """A model with a sliding window beyond its positions. When they are used up, the oldest quarter of the window is
    dropped and the rest is read again. A first token among `kept`, a control code, stays first.
    """

    def __init__(self, model: nn.Module, kept: Set[int] = frozenset()):
        self.model, self.most, self.kept = model, model.config.max_length, kept

    def start(self, texts: Sequence[Sequence[int]]) -> WindowState:
        """The state after all but the last token of each text, of which the last tokens that fit are read."""
        windows = [self._last(text, self.most)[:-1] for text in texts]
        return WindowState(read(self.model, windows), windows)

    def step(self, tokens: Int[Tensor, " b"], state: WindowState) -> Float[Tensor, "b vocab"]:
        for window, token in zip(state.windows, tokens.tolist(), strict=True):
            window.append(token)
        if max(map(len, state.windows)) > self.most:
            size = max(1, self.most - self.most // DROPPED)
            state.windows = [w if len(w) <= self.most else self._last(w, size) for w in state.windows]
            state.state = read(self.model, [window[:-1] for window in state.windows])
        return self.model.step(tokens, state.state)

    def _last(self, text: Sequence[int], size: int) -> list[int]:
        """The last `size` tokens, the first of them a control code if the text begins with one."""
        if len(text) <= size:
            return list(text)
        code = [*text[:1]] if text[0] in self.kept and size > 1 else []
        return [*code, *text[len(text) - size + len(code) :]]
