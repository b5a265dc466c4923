"""What is to be learned."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TaskConfig:
    """`name` says what is learned; the rest is for denoising (BART), for gap sentences (Pegasus) and for language models.

    Of a text's tokens `infill`, `mask` and `delete` are the shares that are lost that way; `permute` and `rotate` are
    probabilities. `gap_share` of the sentences are left out, chosen by `choice`, and `word_share` of the words hidden:
    `masked` of these by the mask, `swapped` by any word. `bptt`: how many tokens of a text are read, and learned from, at once.
    """

    name: Literal["translation", "denoising", "gap-sentences", "classification", "language"] = "translation"
    infill: float = 0.3
    mask: float = 0.0
    delete: float = 0.0
    permute: float = 1.0
    rotate: float = 0.0
    choice: Literal["principal", "sequential", "random", "lead"] = "principal"
    gap_share: float = 0.3
    word_share: float = 0.15
    masked: float = 0.8
    swapped: float = 0.1
    bptt: int = 35

    def __post_init__(self):
        if self.bptt < 1:
            raise ValueError(f"task.bptt is {self.bptt}; it must be at least 1")

    @property
    def one_sided(self) -> bool:
        """Whether it is learned from text alone, without translations or labels."""
        return self.name in ("denoising", "gap-sentences", "language")
