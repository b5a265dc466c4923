"""Stop strings of a generated text, however they are tokenized."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heed.decoding.steps import Stops


class StopStrings:
    """Ends a text before the first of these strings."""

    def __init__(self, strings: Sequence[str]):
        if isinstance(strings, str):
            strings = [strings]
        if "" in strings:
            raise ValueError("a stop string is empty: every text would end immediately; give at least one character")
        self.strings = tuple(strings)

    def __bool__(self) -> bool:
        return bool(self.strings)

    def found(self, text: str) -> bool:
        return any(own in text for own in self.strings)

    def cut(self, text: str) -> str:
        """The text before the first stop string."""
        return text[: min((at for own in self.strings if (at := text.find(own)) >= 0), default=len(text))]

    def settled(self, text: str) -> str:
        """The text without a suffix that may become a stop string."""
        text = self.cut(text)
        for begin in range(max(0, len(text) - max(map(len, self.strings), default=1) + 1), len(text)):
            if any(own.startswith(text[begin:]) for own in self.strings):
                return text[:begin]
        return text

    def of_rows(self, prompts: Sequence[Sequence[int]], draws: int, decode: Callable[[Sequence[int]], str]) -> Stops:
        """Whether the continuation of each row of a search has a stop string; each prompt has `draws` rows."""
        lengths = [len(decode(prompt)) for prompt in prompts]

        def ends(tokens: Tensor, sentence: Tensor) -> Tensor:
            rows = [(i // draws, own) for i, own in zip(sentence.tolist(), tokens.tolist(), strict=True)]
            texts = [decode([*prompts[i], *own])[lengths[i] :] for i, own in rows]
            return torch.tensor([self.found(text) for text in texts], device=tokens.device)

        return ends
