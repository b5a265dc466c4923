"""Learning to write the sentences that were taken out of a text, and to tell the words that were hidden in it.

(Zhang et al., 2019: gap sentences are the decoder's work, masked words the encoder's.)
"""

from dataclasses import dataclass

from torch import nn

from heed.data.batching import Batch
from heed.training.loss import Loss, smoothed_cross_entropy


@dataclass(frozen=True)
class GapSentences:
    """The decoder's cross entropy, and the encoder's on the hidden words through the same output layer."""

    smoothing: float = 0.1

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        memory = model.encode(batch.source, batch.valid)
        states = model.decode(batch.target, memory, batch.valid)
        loss, _ = smoothed_cross_entropy(
            model.project(states.flatten(0, 1).index_select(0, batch.positions)), batch.expected, self.smoothing
        )
        if batch.masked_positions is None or not len(batch.masked_positions):
            return loss
        guesses = model.project(memory.flatten(0, 1).index_select(0, batch.masked_positions))
        return loss._replace(
            total=loss.total + smoothed_cross_entropy(guesses, batch.masked_tokens, self.smoothing)[0].total
        )
