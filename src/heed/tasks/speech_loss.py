"""The losses of a speech recognizer: attention's cross entropy and CTC."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.data.audio.batches import SpeechBatch
from heed.models.abilities import TranscribesSpeech
from heed.nn import masks
from heed.training.loss import Loss, Part, smoothed_cross_entropy


def ctc_loss(
    logits: Float[Tensor, "b s classes"], counts: list[int], labels: Int[Tensor, " n"], label_counts: list[int]
) -> Float[Tensor, ""]:
    """-log p of the texts, summed; the blank is the last class. A text that its recording is too short for does not count."""
    exact = logits if logits.dtype == torch.float64 else logits.float()
    logp = exact.log_softmax(dim=-1).transpose(0, 1)
    blank = logits.shape[-1] - 1
    return F.ctc_loss(
        logp, labels, tuple(counts), tuple(label_counts), blank=blank, reduction="sum", zero_infinity=True
    )


@dataclass(frozen=True)
class SpeechLoss:
    """(1 - ctc) times the cross entropy of each next token, plus ctc times the loss of CTC, both summed over their tokens."""

    ctc: float = 0.3
    smoothing: float = 0.1
    parts: ClassVar = ("ctc",)

    def __call__(self, model: TranscribesSpeech, batch: SpeechBatch) -> Loss:
        memory, counts = model.encode_speech(batch.features, batch.lengths)
        valid = masks.from_lengths(counts, memory.shape[1])
        states = model.decode(batch.target, memory, valid)
        loss, _ = smoothed_cross_entropy(
            model.project(states.flatten(0, 1).index_select(0, batch.positions)), batch.expected, self.smoothing
        )
        if not self.ctc:
            return loss
        found = self._ctc(model, memory, batch)
        parts = {"ctc": Part(found.detach(), sum(batch.label_counts))}
        return Loss((1 - self.ctc) * loss.total + self.ctc * found, loss.nll, loss.count, parts)

    @staticmethod
    def _ctc(model: Any, memory: Tensor, batch: SpeechBatch) -> Tensor:
        counts = [model.state_count(frames) for frames in batch.frame_counts]
        return ctc_loss(model.ctc_logits(memory), counts, batch.labels, batch.label_counts)
