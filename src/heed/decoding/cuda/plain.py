"""The operations of a step in plain torch, on any device and in any dtype: the reference for the kernels."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.cuda import buffers as fields
from heed.decoding.cuda.buffers import SearchBuffers, SelfAttentionBuffers
from heed.decoding.cuda.weights import ACTIVATIONS, DecoderWeights, Linear, Norm, StackWeights, Sublayer, Weights


class Residual(NamedTuple):
    """The residual stream: a sum, and the output of a sublayer that is not yet added to it."""

    base: Tensor
    pending: Tensor | None = None


class TorchOps:
    """The operations of a step, which faster back ends override."""

    def embed(
        self, side: StackWeights, tokens: Int[Tensor, " r"], positions: Int[Tensor, " n"], beams: int = 1
    ) -> Residual:
        """Embed tokens and positions; all beams of a sentence are at the same position."""
        x = side.tokens[tokens.long()].to(side.positions.dtype) * side.scale
        return Residual(x + side.positions[positions.repeat_interleave(beams).long()])

    def project_in(self, residual: Residual, part: Sublayer) -> tuple[Tensor, Residual]:
        """Norm, first matrix and activation of a sublayer, and the residual that its output is added to."""
        x = _layer_norm(residual.base, part.norm)
        y = self.linear(x, part.project_in)
        y = y if part.activation is None else ACTIVATIONS[part.activation](y)
        return y, Residual(x) if part.norm_residual else residual

    def project_out(self, y: Tensor, matrix: Linear, residual: Residual) -> Residual:
        return Residual(residual.base + self.linear(y, matrix))

    def final_norm(self, residual: Residual, norm: Norm | None, dtype: torch.dtype) -> Tensor:
        """The output of the last layer."""
        return _layer_norm(residual.base, norm).to(dtype)

    def self_attention(
        self, qkv: Float[Tensor, "r three"], buffers: SelfAttentionBuffers, layer: int, heads: int
    ) -> Float[Tensor, "r dim"]:
        """Each beam over its past and itself."""
        _, beams, max_length = buffers.size
        q, k, v = (part.unflatten(1, (heads, -1)) for part in qkv.chunk(3, dim=1))
        row = torch.arange(buffers.size.rows, device=q.device)
        generated = buffers.generated.long().repeat_interleave(beams)
        active = (buffers.done == 0).repeat_interleave(beams)
        keys, at = buffers.keys[layer], generated.clamp(max=max_length - 1)
        keys[row, at] = torch.where(active[:, None], qkv[:, qkv.shape[1] // 3 :], keys[row, at])
        position = torch.arange(max_length, device=q.device)
        beam_row = (row // beams * beams)[:, None] + buffers.ancestors.flatten(0, 1)
        beam_row = torch.where(position == generated[:, None], row[:, None], beam_row)
        k, v = (part.unflatten(2, (heads, -1)) for part in keys[beam_row, position].chunk(2, dim=2))
        scores = torch.einsum("rhd,rphd->rhp", q, k) * q.shape[-1] ** -0.5
        scores = scores.masked_fill((position > generated[:, None])[:, None], -torch.inf)
        return torch.einsum("rhp,rphd->rhd", scores.softmax(dim=-1), v).flatten(1)

    def cross_attention(
        self, q: Float[Tensor, "r dim"], buffers: SearchBuffers, layer: int, heads: int
    ) -> Float[Tensor, "r dim"]:
        """Each beam over the source of its sentence."""
        n, beams, _ = buffers.size
        q = q.unflatten(1, (heads, -1)).unflatten(0, (n, beams))
        k, v = (part.unflatten(1, (heads, -1)) for part in buffers.memory[:, layer].chunk(2, dim=1))
        position = torch.arange(len(buffers.memory), device=q.device)
        visible = (position >= buffers.starts[:, None]) & (position < (buffers.starts + buffers.lengths)[:, None])
        scores = torch.einsum("nbhd,shd->nbhs", q, k) * q.shape[-1] ** -0.5
        scores = scores.masked_fill(~visible[:, None, None], torch.finfo(scores.dtype).min)
        return torch.einsum("nbhs,shd->nbhd", scores.softmax(dim=-1), v).flatten(2).flatten(0, 1)

    def encoder_attention(
        self, qkv: Float[Tensor, "t three"], buffers: SearchBuffers, longest: int, heads: int
    ) -> Float[Tensor, "t dim"]:
        """Each source over itself; `longest` is an upper bound of their lengths."""
        q, k, v = (part.unflatten(1, (heads, -1)).transpose(0, 1) for part in qkv.chunk(3, dim=1))
        position = torch.arange(len(qkv), device=qkv.device)
        inside = (position[:, None] >= buffers.starts) & (position[:, None] < buffers.starts + buffers.lengths)
        sentence = torch.where(inside.any(dim=1), inside.int().argmax(dim=1), -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=sentence[:, None] == sentence)
        return y.transpose(0, 1).flatten(1)

    def logits(self, residual: Residual, weights: DecoderWeights) -> Float[Tensor, "r columns"]:
        """The logits of each next token without their bias; columns after the vocabulary are padding."""
        x = self.final_norm(residual, weights.target.final_norm, weights.dtype)
        return self.linear(x, Linear(weights.output[: weights.vocab], None)).to(weights.accumulate_dtype)

    def select(self, residual: Residual, weights: Weights, buffers: SearchBuffers) -> None:
        """Choose the next token of every beam and advance the search."""
        scores = self.logits(residual, weights)
        advance(buffers, *_candidates(scores if weights.bias is None else scores + weights.bias, buffers))

    def trace(self, buffers: SearchBuffers, steps: int) -> Float[Tensor, "2 n steps"]:
        """Follow each hypothesis from its end back to its start: its tokens and their log-probabilities."""
        finished = buffers.finished[:, :, : buffers.rules.nbest].nan_to_num(neginf=0.0)
        last, beam = finished[:, fields.LENGTH].long() - 1, finished[:, fields.BEAM].long()
        ends, out = finished[:, [fields.LAST_TOKEN, fields.LAST_LOGP]].to(buffers.history.dtype), []
        for position in range(steps - 1, -1, -1):
            choice = buffers.history[:, position].gather(2, beam[:, None].expand(-1, 3, -1))
            out.append(torch.where((position == last)[:, None], ends, choice[:, [fields.TOKEN, fields.LOGP]]))
            beam = torch.where(position < last, choice[:, fields.PARENT].long(), beam)
        return torch.stack(out[::-1], dim=3).transpose(0, 1).flatten(1, 2)

    def linear(self, x: Tensor, matrix: Linear) -> Tensor:
        return F.linear(x.to(matrix.weight.dtype), *matrix)


def _layer_norm(x: Tensor, norm: Norm | None) -> Tensor:
    return x if norm is None else F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, norm.eps)


def _candidates(scores: Float[Tensor, "r vocab"], buffers: SearchBuffers) -> tuple[Tensor, Tensor, Tensor]:
    """The best 2 · beams candidates of each sentence, best first: their scores, beams and tokens."""
    n, beams, max_length = buffers.size
    last, min_length, _, _, force_end, renormalize, prefix_length, _first = buffers.options
    generated, token = buffers.generated[:, None, None], torch.arange(scores.shape[1], device=scores.device)
    scores = scores.unflatten(0, (n, beams))
    banned = buffers.banned.bool() | ((generated < min_length) & (token == last))
    allowed = scores.masked_fill(banned, -torch.inf)
    logp = allowed - torch.where(renormalize == 1, allowed, scores).logsumexp(dim=2, keepdim=True)
    prefix = buffers.prefix[buffers.generated.clamp(max=max_length - 1)][:, None, None]
    forced = torch.where(generated < prefix_length, prefix, -1)
    forced = torch.where((force_end == 1) & (generated + 1 >= buffers.limit[:, None, None]), last, forced)
    forced_logp = torch.zeros_like(logp).masked_fill(token != forced, -torch.inf)
    total = torch.where(forced >= 0, forced_logp, logp) + buffers.beam_scores[:, :, None]
    best, index = total.flatten(1).topk(2 * beams)
    return best, index // scores.shape[2], index % scores.shape[2]


def advance(
    buffers: SearchBuffers, best: Float[Tensor, "n c"], beam: Int[Tensor, "n c"], token: Int[Tensor, "n c"]
) -> None:
    """Record finished sequences, continue with the best of the rest, mark sentences that may stop; done ones do not
    change.
    """
    active, length = buffers.done == 0, buffers.generated + 1
    ends = (token == buffers.options[0]) | (length >= buffers.limit)[:, None]
    logp = best - buffers.beam_scores.gather(1, beam)
    penalty = buffers.penalty[length.clamp(max=buffers.size.max_length)]
    finished = _finished(buffers, (best, beam, token, logp), ends, penalty)
    chosen = ends.int().sort(dim=1, stable=True).indices[:, : buffers.size.beams]  # stable: still best first
    beam_scores = best.masked_fill(ends, -torch.inf).gather(1, chosen)
    parent, token, logp = (part.gather(1, chosen) for part in (beam, token, logp))
    _record(buffers, active, parent, token, logp)
    over = (beam_scores[:, 0] == -torch.inf) | _can_stop(buffers, finished, beam_scores[:, 0].double(), penalty)
    buffers.finished.copy_(torch.where(active[:, None, None], finished, buffers.finished))
    buffers.beam_scores.copy_(torch.where(active[:, None], beam_scores, buffers.beam_scores))
    buffers.token.copy_(torch.where(active[:, None], token, buffers.token))
    buffers.generated.add_(active)
    buffers.unfinished.sub_((active & over).sum())
    buffers.done.copy_(torch.where(active & over, 1, buffers.done))


def _finished(
    buffers: SearchBuffers, candidates: tuple[Tensor, ...], ends: Tensor, penalty: Tensor
) -> Float[Tensor, "n 5 beams"]:
    """Old and new finished hypotheses, best first; of equal scores, the earlier first."""
    best, beam, token, logp = (part[:, : buffers.size.beams].double() for part in candidates)
    wins = ends[:, : buffers.size.beams] & (best > -torch.inf)
    score = (best / penalty[:, None]).masked_fill(~wins, -torch.inf)
    length = (buffers.generated + 1).double()[:, None].expand_as(score)
    new = {
        fields.SCORE: score,
        fields.LENGTH: length,
        fields.BEAM: beam,
        fields.LAST_TOKEN: token,
        fields.LAST_LOGP: logp,
    }
    both = torch.cat([buffers.finished, torch.stack([new[i] for i in range(5)], dim=1)], dim=2)
    order = both[:, fields.SCORE].sort(dim=1, descending=True, stable=True).indices[:, : buffers.size.beams]
    return both.gather(2, order[:, None].expand(-1, 5, -1))


def _record(buffers: SearchBuffers, active: Tensor, parent: Tensor, token: Tensor, logp: Tensor) -> None:
    """Append the choice of each beam to the history, and update its ancestors."""
    new = {fields.TOKEN: token.to(logp.dtype), fields.PARENT: parent.to(logp.dtype), fields.LOGP: logp}
    position = torch.arange(buffers.size.max_length, device=parent.device)
    now = (position == buffers.generated[:, None]) & active[:, None]
    step = torch.stack([new[i] for i in range(3)], dim=1)
    buffers.history.copy_(torch.where(now[:, :, None, None], step[:, None], buffers.history))
    past = buffers.ancestors.gather(1, parent[:, :, None].expand_as(buffers.ancestors))
    past = torch.where(now[:, None], parent[:, :, None].int(), past)
    buffers.ancestors.copy_(torch.where(active[:, None, None], past, buffers.ancestors))


def _can_stop(buffers: SearchBuffers, finished: Tensor, beam_scores: Tensor, penalty: Tensor) -> Tensor:
    """Which sentences have enough finished hypotheses that no beam can still beat."""
    rank, stop = buffers.options[2], buffers.options[3]
    worst = finished[:, fields.SCORE].gather(1, rank.long().expand(len(finished), 1))[:, 0]
    max_penalty = torch.maximum(penalty, buffers.penalty[buffers.limit.clamp(max=buffers.size.max_length)])
    bound = torch.where(stop == fields.HEURISTIC, beam_scores / penalty, -torch.inf)
    bound = torch.where(stop == fields.EXACT, beam_scores / max_penalty, bound)
    return (worst > -torch.inf) & (worst >= bound)
