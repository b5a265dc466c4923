"""Losses of text to speech: frames, stop token, and guided attention."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.data.audio.voices import VoiceBatch
from heed.models.abilities import SpeaksText
from heed.nn import masks
from heed.training.loss import Loss, Part

WIDTH = 0.3  # of the diagonal along which attention is free (Tachibana et al., 2018)


@dataclass(frozen=True)
class VoiceLoss:
    """The sum over frames of the mean distance of their values, before and after the post-net, of the stop-token
    cross entropy, and of the guided-attention loss. All are sums over frames, so that parts of a batch add up.
    """

    ends: float = 1.0  # weight of the end
    end_weight: float = 5.0  # how much the one step that is the end counts against those that are not
    guided: float = 10.0  # weight of attention's distance from the diagonal
    frame_dropout: float = 0.0  # the most that a recording hides of its frames from the decoder
    parts: ClassVar = ("coarse", "ends", "attention")

    def __call__(self, model: SpeaksText, batch: VoiceBatch) -> Loss:
        memory = model.read_text(batch.tokens, batch.valid, batch.speakers)
        found = model.spoken(self._seen(batch.frames), batch.lengths, memory, batch.valid)
        reduction = batch.frames.shape[1] // found.ends.shape[1]
        real = masks.from_lengths(batch.lengths, batch.frames.shape[1])
        coarse, fine = (_distance(own, batch.frames, real) for own in (found.coarse, found.fine))
        ends = end_loss(found.ends, batch.lengths, reduction, self.end_weight)
        total, parts = coarse + fine + self.ends * ends, {"coarse": coarse, "ends": ends}
        if self.guided:
            sizes = batch.valid.sum(dim=1)
            away = sum(off_diagonal(own, batch.lengths, sizes, reduction) for own in found.attentions)
            total = total + self.guided * away
            parts["attention"] = away
        return Loss(
            total, fine.detach(), batch.count, {name: Part(own.detach(), batch.count) for name, own in parts.items()}
        )

    def _seen(self, frames: Float[Tensor, "b t outputs"]) -> Float[Tensor, "b t outputs"]:
        """The frames that were written before, some of them hidden: what comes next must then be read from the text.

        Frames are so much like those before them that a decoder which sees them all learns to repeat them, and on its own says
        nothing (Liu et al., 2020). Each recording draws how many it hides.
        """
        if not self.frame_dropout:
            return frames
        share = self.frame_dropout * torch.rand(len(frames), 1, device=frames.device)
        return frames * (torch.rand(frames.shape[:2], device=frames.device) >= share)[..., None]


def _distance(made: Tensor, frames: Tensor, real: Tensor) -> Float[Tensor, ""]:
    distance = (made.float() - frames.float()).abs().mean(dim=-1)
    return distance.masked_fill(~real, 0.0).sum()


def end_loss(
    ends: Float[Tensor, "b n"], lengths: Int[Tensor, " b"], reduction: int, weight: float
) -> Float[Tensor, ""]:
    """Cross entropy of the stop token, summed over frames; the final step counts `weight` times."""
    steps = last_steps(lengths, reduction)
    places = torch.arange(ends.shape[1], device=ends.device)
    right = (places == steps[:, None]).to(ends.dtype)
    own = F.binary_cross_entropy_with_logits(
        ends.float(), right.float(), pos_weight=ends.new_tensor(weight).float(), reduction="none"
    )
    return reduction * own.masked_fill((places > steps[:, None]) | (lengths == 0)[:, None], 0.0).sum()


def last_steps(lengths: Int[Tensor, " b"], reduction: int) -> Int[Tensor, " b"]:
    """The step that generates the last frame."""
    return (lengths - 1).clamp(min=0) // reduction


def off_diagonal(
    attention: Float[Tensor, "b h n s"], lengths: Int[Tensor, " b"], sizes: Int[Tensor, " b"], reduction: int
) -> Float[Tensor, ""]:
    """Guided attention: how much attention is far from the diagonal, averaged over steps and heads, times the frames
    of each recording.
    """
    steps = last_steps(lengths, reduction) + 1
    step, token = (torch.arange(size, device=attention.device) for size in attention.shape[2:])
    gap = step[:, None] / steps[:, None, None] - token / sizes[:, None, None]
    weight = 1 - torch.exp(-(gap**2) / (2 * WIDTH**2))
    real = (step < steps[:, None])[:, :, None] & (token < sizes[:, None])[:, None]
    away = (attention.float().mean(dim=1) * weight).masked_fill(~real, 0.0).sum(dim=(1, 2))
    return (away / steps * lengths).sum()
