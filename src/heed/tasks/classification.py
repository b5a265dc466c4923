"""Learning to tell which of a few labels a text has."""

from dataclasses import dataclass

from torch import nn

from heed.data.batching import LabelledBatch
from heed.training.loss import Loss, smoothed_cross_entropy


@dataclass(frozen=True)
class Classification:
    """Cross entropy with label smoothing."""

    smoothing: float = 0.0

    def __call__(self, model: nn.Module, batch: LabelledBatch) -> Loss:
        return smoothed_cross_entropy(model(batch.source, batch.valid), batch.labels, self.smoothing)[0]
