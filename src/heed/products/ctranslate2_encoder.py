"""CTranslate2 as an engine for encoders on the CPU. It computes token states; torch computes the heads."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.convert import ctranslate2_import
from heed.models.encoder import Encoder
from heed.products.ctranslate2_model import CTranslate2Model, unsupported
from heed.vocabularies.vocabulary import Vocabulary

Encode = Callable[..., Float[Tensor, "b t dim"]]  # as Encoder.encode_text

ENGINES = ("auto", "torch", "ctranslate2", "ctranslate2-int8")
BATCH_TOKENS = 512  # in a batch: larger ones are no faster
LEAST_TOKENS = 2048  # for which a model is converted unasked: docs/guides/encoders.md has the break-even


class EncoderEngine(CTranslate2Model):
    """The last state of each token. With engine auto, it is used only if it is worth the conversion."""

    opens = "Encoder"

    def __init__(self, model: Encoder, vocabulary: Vocabulary, kind: str | None = None, required: bool = False):
        super().__init__(model, vocabulary, kind)
        self.required = required

    def takes(self, tokens: int) -> bool:
        """Whether to use it for texts with this many tokens in total."""
        return self.ready() and (self.required or tokens >= LEAST_TOKENS)

    def start(self, texts: int) -> tuple[Encode, int]:
        """A function that encodes batches of texts, and how many batches it encodes at once."""
        try:
            opened, workers = self.pool(texts)
        except Exception as error:
            if self.required:
                raise ValueError(f"CTranslate2 cannot run this model: {error}; use engine torch") from error
            reason = str(error).strip().split("\n")[0]
            warnings.warn(f"CTranslate2 cannot run this model, using torch instead: {reason}", stacklevel=4)
            return self.model.encode_text, 1

        def encode(
            tokens: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"], segments: Int[Tensor, "b t"] | None = None
        ) -> Float[Tensor, "b t dim"]:
            return self._encode(opened, tokens, valid, segments)

        return encode, workers

    def _encode(self, opened: Any, tokens: Tensor, valid: Tensor, segments: Tensor | None) -> Tensor:
        if bool(
            ((tokens == self.vocabulary.special.pad) & valid).any()
        ):  # spelled in a text; a RoBERTa skips its position
            return self.model.encode_text(tokens, valid, segments)
        view = ctranslate2_import.ctranslate2().StorageView.from_array
        alike = segments is None or self.model.config.segments == 1
        kinds = torch.zeros_like(tokens) if alike else segments
        inputs = [np.ascontiguousarray(part.numpy(), dtype=np.int32) for part in (tokens, valid.sum(dim=1))]
        found = opened.forward_batch(*map(view, inputs), token_type_ids=kinds.tolist())
        return torch.from_numpy(np.array(found.last_hidden_state))


def encoder_engine(model: nn.Module, vocabulary: Vocabulary, engine: str) -> EncoderEngine | None:
    """The engine of this name for a model: None is torch. Raises an error if CTranslate2 is requested but
    unavailable.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    if engine == "torch":
        return None
    device, fits = next(model.parameters()).device, isinstance(model, Encoder)
    if engine == "auto":
        able = fits and device.type == "cpu" and unsupported(model) is None
        return EncoderEngine(model, vocabulary) if able else None
    if not fits:
        raise ValueError(
            f"engine is {engine!r}, but it only supports encoders, and this is a {type(model).__name__}: use torch"
        )
    if device.type != "cpu":
        raise ValueError(
            f"engine is {engine!r}, but it only runs on the CPU here, and the model is on {device}: use torch"
        )
    return EncoderEngine(model, vocabulary, engine.partition("-")[2] or None, required=True)
