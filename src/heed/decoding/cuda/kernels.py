"""The operations of a step by kernels: for many rows around a library's matrix products, for few rows with their own."""

import torch
import torch.nn.functional as F
import triton
from torch import Tensor

from heed.decoding.cuda import choice
from heed.decoding.cuda.buffers import SearchBuffers
from heed.decoding.cuda.plain import Plain, Stream
from heed.decoding.cuda.weights import Linear, Norm, Side, Sublayer, Weights
from heed.kernels import decode
from heed.models.encoder_decoder import ACTIVATIONS

FEW, SOME = 8, 128  # rows up to which a matrix is read once a row, and once a tile of rows
MOST_GROUPS = 512  # of neighbouring tokens, of which a kernel has all the highest at hand


class Many(Plain):
    """For rows that fill the matrix units. `ahead`: when a kernel may begin (kernels/decode.py)."""

    ahead = 0
    own = (16, 1)  # places at once and warps of the attention to what was said
    memory = (32, 2, 2)  # the same of the attention to the source, and how far its loads run ahead
    piece = (4096, 4)  # scores that one program looks at, and its warps
    turn = 4  # warps that advance a sentence

    def _more(self, warps: int = 4) -> dict:
        """How a kernel is launched."""
        return {"AHEAD": self.ahead, "num_warps": warps} | ({"launch_pdl": True} if self.ahead else {})

    def embed(self, side: Side, tokens: Tensor, places: Tensor, beams: int = 1) -> Stream:
        dim = side.tokens.shape[1]
        out = torch.empty(len(tokens), dim, dtype=side.places.dtype, device=tokens.device)
        width = triton.next_power_of_2(dim)
        decode.embed[(len(tokens),)](
            tokens, places, side.tokens, side.places, out, side.scale, beams, DIM=dim, WIDTH=width, **self._more(1)
        )
        return Stream(out)

    def into(self, stream: Stream, part: Sublayer) -> tuple[Tensor, Stream]:
        x, stream = self._settle(stream, part.norm, 1 + part.keeps, part.into.weight.dtype)
        if part.activation == "relu" and x.is_cuda:
            return torch._addmm_activation(part.into.bias, x, part.into.weight.t()), stream
        y = self.linear(x, part.into)
        return (y if part.activation is None else ACTIVATIONS[part.activation](y)), stream

    def back(self, y: Tensor, matrix: Linear, stream: Stream) -> Stream:
        return Stream(stream.base, self.linear(y, matrix))

    def end(self, stream: Stream, norm: Norm | None, dtype: torch.dtype) -> Tensor:
        return self._settle(stream, norm, 0, dtype)[0]

    def _settle(self, stream: Stream, norm: Norm | None, keep: int, dtype: torch.dtype) -> tuple[Tensor, Stream]:
        base, more = stream
        rows, dim = base.shape
        if more is None and (norm is None or keep == 1):
            keep = 0  # what is there is what is to be kept
        x, kept = torch.empty(rows, dim, dtype=dtype, device=base.device), torch.empty_like(base) if keep else base
        gain, shift, eps = norm or (base, base, 0.0)
        width = triton.next_power_of_2(dim)
        decode.settle[(rows,)](
            base, base if more is None else more, gain, shift, kept, x, eps, MORE=more is not None,
            NORM=norm is not None, KEEP=keep, DIM=dim, WIDTH=width, **self._more(max(1, min(8, width // 512))),
        )  # fmt: skip
        return x, Stream(kept)

    def linear(self, x: Tensor, matrix: Linear) -> Tensor:
        return F.linear(x, *matrix)

    def attend_own(self, qkv: Tensor, room: SearchBuffers, layer: int, heads: int) -> Tensor:
        rows, dim = len(qkv), qkv.shape[1] // 3
        out = torch.empty(rows, dim, dtype=qkv.dtype, device=qkv.device)
        decode.attend_own[(rows, heads)](
            qkv, room.keys[layer], room.lineage, room.said, room.done, out, room.size.longest, (dim // heads) ** -0.5,
            BEAMS=room.size.beams, DIM=dim, WIDTH=dim // heads, PLACES=self.own[0], **self._more(self.own[1]),
        )  # fmt: skip
        return out

    def attend_memory(self, q: Tensor, room: SearchBuffers, layer: int, heads: int) -> Tensor:
        return self._attend(q, room.memory[:, layer], room, heads, room.size.beams, room.size.beams)

    def attend_source(self, qkv: Tensor, room: SearchBuffers, longest: int, heads: int) -> Tensor:
        dim = qkv.shape[1] // 3
        return self._attend(qkv[:, :dim], qkv[:, dim:], room, heads, 0, longest)

    def _attend(self, q: Tensor, keys: Tensor, room: SearchBuffers, heads: int, beams: int, longest: int) -> Tensor:
        dim, rows = q.shape[1], min(64, max(16, triton.next_power_of_2(longest)))
        places, warps, stages = self.memory if rows == 16 else (32, 4, 2)
        out = torch.empty(len(q), dim, dtype=q.dtype, device=q.device)
        decode.attend[(room.size.sentences, heads, -(-longest // rows))](
            q, keys, room.starts, room.lengths, room.done, out, q.stride(0), keys.stride(0), (dim // heads) ** -0.5,
            BEAMS=beams, ROWS=rows, DIM=dim, WIDTH=dim // heads, PLACES=places, num_stages=stages, **self._more(warps),
        )  # fmt: skip
        return out

    def _scores(self, stream: Stream, weights: Weights) -> Tensor:
        x, matrix = self.end(stream, weights.target.last, weights.dtype), weights.output.t()
        if weights.dtype == torch.float32:
            return x @ matrix
        return torch.mm(x, matrix, out_dtype=torch.float32)

    def choose(self, stream: Stream, weights: Weights, room: SearchBuffers) -> None:
        """The next token of every beam, and all that follows from it."""
        scores, (n, beams, longest) = self._scores(stream, weights), room.size
        group = max(64, triton.next_power_of_2(-(-weights.vocab // MOST_GROUPS)))
        groups = -(-weights.vocab // group)
        each = min(max(1, self.piece[0] // group), triton.next_power_of_2(groups))
        pieces = -(-groups // each)
        bias = scores if weights.bias is None else weights.bias
        alike = {"BIAS": weights.bias is not None, "GROUP": group}
        highest, tops, totals = (
            torch.empty(room.size.rows, number, device=scores.device) for number in (groups, pieces, pieces)
        )
        choice.survey[(room.size.rows, pieces)](
            scores, bias, room.banned, room.facts, room.said, room.done, highest, tops, totals, weights.vocab,
            scores.stride(0), groups, beams, GROUPS=each, **alike, **self._more(self.piece[1]),
        )  # fmt: skip
        choice.advance[(n,)](
            scores, bias, room.banned, room.facts, room.opening, room.penalty, highest, tops, totals, room.said, room.done,
            room.limit, room.live, room.token, room.found, room.history, room.lineage, room.remaining, weights.vocab,
            scores.stride(0), groups, pieces, longest, BEAMS=beams, ROWS=triton.next_power_of_2(beams),
            LANES=triton.next_power_of_2(2 * beams), GROUPS=triton.next_power_of_2(groups),
            PIECES=triton.next_power_of_2(pieces), PLACES=32, **alike, **self._more(self.turn),
        )  # fmt: skip

    def trace(self, room: SearchBuffers, steps: int) -> Tensor:
        (n, beams, longest), nbest = room.size, room.rules.nbest
        out = torch.zeros(2, n * nbest, steps, device=room.found.device)
        choice.trace[(n * nbest,)](room.found, room.history, out, nbest, steps, longest, BEAMS=beams, num_warps=1)
        return out


class Some(Many):
    """For rows that fill a few tiles: products by kernels of our own, which begin early and add at once."""

    wide, deep = (32, 64, 512, 8, 1), (32, 16, 512, 4, 2)  # rows, columns, depth, warps and loads ahead of a tile

    def into(self, stream: Stream, part: Sublayer) -> tuple[Tensor, Stream]:
        x, stream = self._settle(stream, part.norm, 1 + part.keeps, part.into.weight.dtype)
        return self._tile(x, part.into, part.activation), stream

    def back(self, y: Tensor, matrix: Linear, stream: Stream) -> Stream:
        return Stream(self._tile(y, matrix, base=stream.base))

    def _tile(self, x: Tensor, matrix: Linear, activation: str | None = None, base: Tensor | None = None) -> Tensor:
        (rows, dim), columns = x.shape, len(matrix.weight)
        out = torch.empty(rows, columns, dtype=x.dtype if base is None else base.dtype, device=x.device)
        tall, each, step, warps, stages = self.wide if columns > dim else self.deep
        decode.tile[(-(-columns // each), -(-rows // tall))](
            x, matrix.weight, matrix.bias, x if base is None else base, out, rows, columns, ADD=base is not None,
            ACTIVATION=activation or "", DIM=dim, STEP=max(16, min(step, triton.next_power_of_2(dim))), ROWS=tall,
            COLUMNS=each, num_stages=stages, **self._more(warps),
        )  # fmt: skip
        return out


class Few(Many):
    """For rows so few that a matrix product is the reading of a matrix: norm, matrix and sum are one kernel."""

    share = (4096, 16384)  # weights that one program reads: of most matrices, and of the output

    def into(self, stream: Stream, part: Sublayer) -> tuple[Tensor, Stream]:
        kept = torch.empty_like(stream.base) if part.norm and part.keeps else None
        y = self._vector(stream.base, part.into, norm=part.norm, kept=kept, activation=part.activation)
        return y, stream if kept is None else Stream(kept)

    def back(self, y: Tensor, matrix: Linear, stream: Stream) -> Stream:
        return Stream(self._vector(y, matrix, base=stream.base))

    def _scores(self, stream: Stream, weights: Weights) -> Tensor:
        out = torch.empty(len(stream.base), len(weights.output), device=stream.base.device)
        return self._vector(stream.base, Linear(weights.output, None), norm=weights.target.last, out=out)

    def _vector(
        self, x: Tensor, matrix: Linear, *, norm: Norm | None = None, kept: Tensor | None = None,
        activation: str | None = None, base: Tensor | None = None, out: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        (rows, dim), columns, weight = x.shape, len(matrix.weight), matrix.weight
        if out is None:
            dtype = weight.dtype if base is None else base.dtype
            out = torch.empty(rows, columns, dtype=dtype, device=x.device)
        gain, shift, eps = norm or (x, x, 0.0)
        width = triton.next_power_of_2(dim)
        each = max(1, self.share[columns > 8192] // width)
        decode.vector[(-(-columns // each), rows)](
            x, weight, x if matrix.bias is None else matrix.bias, gain, shift, x if base is None else base,
            x if kept is None else kept, out, columns, eps, BIAS=matrix.bias is not None, NORM=norm is not None,
            KEEP=kept is not None, ADD=base is not None, ACTIVATION=activation or "", DIM=dim, WIDTH=width,
            COLUMNS=each, **self._more(4),
        )  # fmt: skip
        return out
