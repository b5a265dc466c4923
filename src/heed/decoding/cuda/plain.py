"""The operations of a step in plain torch: on any device, in any number format. What the kernels must equal."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.cuda.buffers import (
    BEAM,
    COST,
    EXACT,
    HEURISTIC,
    LENGTH,
    PARENT,
    PART,
    SAID,
    SCORE,
    TOKEN,
    SearchBuffers,
)
from heed.decoding.cuda.weights import Linear, Norm, Side, Sublayer, Weights
from heed.models.encoder_decoder import ACTIVATIONS


class Stream(NamedTuple):
    """What the sublayers add to: a sum, and what is still to be added to it."""

    base: Tensor
    more: Tensor | None = None


class Plain:
    """Each operation on its own."""

    def embed(self, side: Side, tokens: Int[Tensor, " r"], places: Int[Tensor, " n"], beams: int = 1) -> Stream:
        """Each token with its position, of which all beams of a sentence have the same."""
        places = places.repeat_interleave(beams)
        return Stream(side.tokens[tokens.long()].to(side.places.dtype) * side.scale + side.places[places.long()])

    def into(self, stream: Stream, part: Sublayer) -> tuple[Tensor, Stream]:
        """The first matrix of a sublayer, and what its last is to be added to."""
        x = _normed(stream.base, part.norm)
        y = self.linear(x, part.into)
        y = y if part.activation is None else ACTIVATIONS[part.activation](y)
        return y, Stream(x) if part.keeps else stream

    def back(self, y: Tensor, matrix: Linear, stream: Stream) -> Stream:
        return Stream(stream.base + self.linear(y, matrix))

    def end(self, stream: Stream, norm: Norm | None, dtype: torch.dtype) -> Tensor:
        """What the last layer gives."""
        return _normed(stream.base, norm).to(dtype)

    def attend_own(
        self, qkv: Float[Tensor, "r three"], room: SearchBuffers, layer: int, heads: int
    ) -> Float[Tensor, "r dim"]:
        """Each beam over its past and itself."""
        _, beams, longest = room.size
        q, k, v = (part.unflatten(1, (heads, -1)) for part in qkv.chunk(3, dim=1))
        row, said = torch.arange(room.size.rows, device=q.device), room.said.long().repeat_interleave(beams)
        working = (room.done == 0).repeat_interleave(beams)
        keys, at = room.keys[layer], said.clamp(max=longest - 1)
        keys[row, at] = torch.where(working[:, None], qkv[:, qkv.shape[1] // 3 :], keys[row, at])
        place = torch.arange(longest, device=q.device)
        whose = (row // beams * beams)[:, None] + room.lineage.flatten(0, 1)
        whose = torch.where(place == said[:, None], row[:, None], whose)
        k, v = (part.unflatten(2, (heads, -1)) for part in keys[whose, place].chunk(2, dim=2))
        scores = torch.einsum("rhd,rphd->rhp", q, k) * q.shape[-1] ** -0.5
        scores = scores.masked_fill((place > said[:, None])[:, None], -torch.inf)
        return torch.einsum("rhp,rphd->rhd", scores.softmax(dim=-1), v).flatten(1)

    def attend_memory(
        self, q: Float[Tensor, "r dim"], room: SearchBuffers, layer: int, heads: int
    ) -> Float[Tensor, "r dim"]:
        """Each beam over the source of its sentence."""
        n, beams, _ = room.size
        q = q.unflatten(1, (heads, -1)).unflatten(0, (n, beams))
        k, v = (part.unflatten(1, (heads, -1)) for part in room.memory[:, layer].chunk(2, dim=1))
        place = torch.arange(len(room.memory), device=q.device)
        own = (place >= room.starts[:, None]) & (place < (room.starts + room.lengths)[:, None])
        scores = torch.einsum("nbhd,shd->nbhs", q, k) * q.shape[-1] ** -0.5
        scores = scores.masked_fill(~own[:, None, None], torch.finfo(scores.dtype).min)
        return torch.einsum("nbhs,shd->nbhd", scores.softmax(dim=-1), v).flatten(2).flatten(0, 1)

    def attend_source(
        self, qkv: Float[Tensor, "t three"], room: SearchBuffers, longest: int, heads: int
    ) -> Float[Tensor, "t dim"]:
        """Each source over itself; none has more than `longest` tokens."""
        q, k, v = (part.unflatten(1, (heads, -1)).transpose(0, 1) for part in qkv.chunk(3, dim=1))
        place = torch.arange(len(qkv), device=qkv.device)
        within = (place[:, None] >= room.starts) & (place[:, None] < room.starts + room.lengths)
        number = torch.where(within.any(dim=1), within.int().argmax(dim=1), -1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=number[:, None] == number)
        return mixed.transpose(0, 1).flatten(1)

    def choose(self, stream: Stream, weights: Weights, room: SearchBuffers) -> None:
        """The next token of every beam, and all that follows from it."""
        x = self.end(stream, weights.target.last, weights.dtype)
        scores = self.linear(x, Linear(weights.output[: weights.vocab], None)).to(weights.stream)
        advance(room, *_best(scores if weights.bias is None else scores + weights.bias, room))

    def trace(self, room: SearchBuffers, steps: int) -> Float[Tensor, "2 n steps"]:
        """Each hypothesis from its end back to its beginning: its tokens, and what each costs."""
        found = room.found[:, :, : room.rules.nbest].nan_to_num(neginf=0.0)
        last, beam = found[:, LENGTH].long() - 1, found[:, BEAM].long()
        ends, out = found[:, [TOKEN, PART]].to(room.history.dtype), []
        for place in range(steps - 1, -1, -1):
            own = room.history[:, place].gather(2, beam[:, None].expand(-1, 3, -1))
            out.append(torch.where((place == last)[:, None], ends, own[:, [SAID, COST]]))
            beam = torch.where(place < last, own[:, PARENT].long(), beam)
        return torch.stack(out[::-1], dim=3).transpose(0, 1).flatten(1, 2)

    def linear(self, x: Tensor, matrix: Linear) -> Tensor:
        return F.linear(x.to(matrix.weight.dtype), *matrix)


def _normed(x: Tensor, norm: Norm | None) -> Tensor:
    return x if norm is None else F.layer_norm(x, x.shape[-1:], norm.gain, norm.shift, norm.eps)


def _best(scores: Float[Tensor, "r vocab"], room: SearchBuffers) -> tuple[Tensor, Tensor, Tensor]:
    """Of each sentence its best 2 · beams candidates, best first: what they come to, their beams and tokens."""
    n, beams, longest = room.size
    last, least, _, _, force_end, renormalize, begins, _first = room.facts
    said, token = room.said[:, None, None], torch.arange(scores.shape[1], device=scores.device)
    scores = scores.unflatten(0, (n, beams))
    banned = room.banned.bool() | ((said < least) & (token == last))
    allowed = scores.masked_fill(banned, -torch.inf)
    logp = allowed - torch.where(renormalize == 1, allowed, scores).logsumexp(dim=2, keepdim=True)
    forced = torch.where(said < begins, room.opening[room.said.clamp(max=longest - 1)][:, None, None], -1)
    forced = torch.where((force_end == 1) & (said + 1 >= room.limit[:, None, None]), last, forced)
    certain = torch.zeros_like(logp).masked_fill(token != forced, -torch.inf)
    total = torch.where(forced >= 0, certain, logp) + room.live[:, :, None]
    best, place = total.flatten(1).topk(2 * beams)
    return best, place // scores.shape[2], place % scores.shape[2]


def advance(
    room: SearchBuffers, best: Float[Tensor, "n c"], beam: Int[Tensor, "n c"], token: Int[Tensor, "n c"]
) -> None:
    """Note down what ends, go on with the best of the rest, and stop where it is time; what is done stays as it is."""
    working, length = room.done == 0, room.said + 1
    ends = (token == room.facts[0]) | (length >= room.limit)[:, None]
    cost = best - room.live.gather(1, beam)
    penalty = room.penalty[length.clamp(max=room.size.longest)]
    found = _found(room, (best, beam, token, cost), ends, penalty)
    kept = ends.int().sort(dim=1, stable=True).indices[:, : room.size.beams]  # best first already, so the order stays
    live = best.masked_fill(ends, -torch.inf).gather(1, kept)
    parent, token, cost = (part.gather(1, kept) for part in (beam, token, cost))
    _remember(room, working, parent, token, cost)
    over = (live[:, 0] == -torch.inf) | _stops(room, found, live[:, 0].double(), penalty)
    room.found.copy_(torch.where(working[:, None, None], found, room.found))
    room.live.copy_(torch.where(working[:, None], live, room.live))
    room.token.copy_(torch.where(working[:, None], token, room.token))
    room.said.add_(working)
    room.remaining.sub_((working & over).sum())
    room.done.copy_(torch.where(working & over, 1, room.done))


def _found(
    room: SearchBuffers, candidates: tuple[Tensor, ...], ends: Tensor, penalty: Tensor
) -> Float[Tensor, "n 5 beams"]:
    """What has ended, old and new, best first; of equals, what was found first."""
    best, beam, token, cost = (part[:, : room.size.beams].double() for part in candidates)
    wins = ends[:, : room.size.beams] & (best > -torch.inf)
    score = (best / penalty[:, None]).masked_fill(~wins, -torch.inf)
    length = (room.said + 1).double()[:, None].expand_as(score)
    fields = {SCORE: score, LENGTH: length, BEAM: beam, TOKEN: token, PART: cost}
    both = torch.cat([room.found, torch.stack([fields[i] for i in range(5)], dim=1)], dim=2)
    order = both[:, SCORE].sort(dim=1, descending=True, stable=True).indices[:, : room.size.beams]
    return both.gather(2, order[:, None].expand(-1, 5, -1))


def _remember(room: SearchBuffers, working: Tensor, parent: Tensor, token: Tensor, cost: Tensor) -> None:
    """What each beam chose, and where its past stands now."""
    fields = {SAID: token.to(cost.dtype), PARENT: parent.to(cost.dtype), COST: cost}
    place = torch.arange(room.size.longest, device=parent.device)
    now = (place == room.said[:, None]) & working[:, None]
    step = torch.stack([fields[i] for i in range(3)], dim=1)
    room.history.copy_(torch.where(now[:, :, None, None], step[:, None], room.history))
    past = room.lineage.gather(1, parent[:, :, None].expand_as(room.lineage))
    past = torch.where(now[:, None], parent[:, :, None].int(), past)
    room.lineage.copy_(torch.where(working[:, None, None], past, room.lineage))


def _stops(room: SearchBuffers, found: Tensor, live: Tensor, penalty: Tensor) -> Tensor:
    """Where nothing that is unfinished needs to be waited for."""
    rank, stop = room.facts[2], room.facts[3]
    least = found[:, SCORE].gather(1, rank.long().expand(len(found), 1))[:, 0]
    most = torch.maximum(penalty, room.penalty[room.limit.clamp(max=room.size.longest)])
    against = torch.where(stop == EXACT, live / most, torch.where(stop == HEURISTIC, live / penalty, -torch.inf))
    return (least > -torch.inf) & (least >= against)
