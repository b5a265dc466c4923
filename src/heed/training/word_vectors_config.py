"""How word vectors are trained; without torch, for the command line."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class WordVectorsConfig:
    """How word vectors are trained."""

    method: Literal["skipgram", "glove", "fasttext"] = "skipgram"
    dim: int = 100  # numbers a word
    window: int = 5  # context size: words on either side
    epochs: int = 5  # passes over the text; of GloVe, over the counts
    rate: float = 0.05  # of AdaGrad
    batch: int = 2048  # word pairs per step
    negatives: int = 5  # words drawn against each pair; not for GloVe
    subsample: float = 1e-3  # a word of frequency f stays with probability √(subsample / f); 0 keeps all; not for GloVe
    cap: float = 100.0  # of GloVe: from this count on all pairs weigh the same
    shortest: int = 3  # n-gram of fastText
    longest: int = 6
    seed: int = 1

    def __post_init__(self):
        for name in ("dim", "window", "epochs", "batch", "negatives", "shortest"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("rate", "cap"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not 0 <= self.subsample < float("inf"):
            raise ValueError(f"subsample is {self.subsample}; it must be at least 0")
        if self.longest < self.shortest:
            raise ValueError(f"longest is {self.longest}; it must be at least shortest, {self.shortest}")
