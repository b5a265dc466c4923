"""Replaced-token detection: texts in, words that ELECTRA believes were replaced out."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.data.entities import OUTSIDE
from heed.data.tagged import Words
from heed.models.encoder_heads import HEADS
from heed.models.package import Package
from heed.products.product import single
from heed.products.tagger import TaggedText, Tagger

REPLACED = "S-REPLACED"  # each word by itself, not a run of them as one


class ReplacedDetector(Tagger):
    """A discriminator as a tagger of replaced words. A word is replaced if one of its subwords is."""

    noun, verbs, reads = "a discriminator", ("tag",), ("text",)

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "ReplacedDetector":
        own = single(packages, names, cls.noun)
        if "replaced" not in HEADS[own.model.config.head]:
            raise ValueError(
                f"{names[0]} has no replaced-token detection head (its head is {own.model.config.head!r}): it cannot "
                "tag; use heed fill"
            )
        return cls(own.model.eval(), own.processors["text"], [OUTSIDE, REPLACED], facts=own.facts)

    def _text(self, text: str, words: Words, logits: Float[Tensor, "_ k"], windows: int) -> TaggedText:
        logits, first = logits.clone(), [place for place in words.first if place is not None]
        for start, end in pairwise([*first, len(logits)]):
            logits[start] = logits[start + int(logits[start:end, 1].argmax())]
        return super()._text(text, words, logits, windows)

    def token_logits(self, tokens: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"]) -> Float[Tensor, "b t k"]:
        found = self.model.detect_replaced(tokens, valid)
        return torch.stack([torch.zeros_like(found), found], dim=-1)  # their softmax is the sigmoid
