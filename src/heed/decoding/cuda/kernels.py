"""Triton back ends of a decoding step: around cuBLAS products for many rows, with custom products for few."""

import torch
import torch.nn.functional as F
import triton
from torch import Tensor

from heed.decoding.cuda import choice
from heed.decoding.cuda.buffers import SearchBuffers, SelfAttentionBuffers
from heed.decoding.cuda.plain import Residual, TorchOps
from heed.decoding.cuda.weights import ACTIVATIONS, DecoderWeights, Linear, Norm, StackWeights, Sublayer, Weights
from heed.kernels import decode

SMALL_ROWS, MEDIUM_ROWS = 8, 128  # up to which SmallBatchOps and MediumBatchOps are faster
MAX_GROUPS = 512  # of neighbouring tokens: one program holds the maxima of all


class LargeBatchOps(TorchOps):
    """For enough rows to fill the tensor cores. `pdl`: when the next kernel may start (kernels/decode.py)."""

    pdl = 0
    self_block = (16, 1)  # keys at once and warps of self-attention
    cross_block = (32, 2, 2)  # keys at once, warps and pipeline stages of cross-attention
    chunk = (4096, 4)  # logits of one program of group_maxima, and its warps
    advance_warps = 4

    def _launch(self, warps: int = 4) -> dict:
        return {"PDL": self.pdl, "num_warps": warps} | ({"launch_pdl": True} if self.pdl else {})

    def embed(self, side: StackWeights, tokens: Tensor, positions: Tensor, beams: int = 1) -> Residual:
        dim = side.tokens.shape[1]
        out = torch.empty(len(tokens), dim, dtype=side.positions.dtype, device=tokens.device)
        decode.embed[(len(tokens),)](
            tokens, positions, side.tokens, side.positions, out, side.scale, beams, DIM=dim,
            BLOCK=triton.next_power_of_2(dim), **self._launch(1),
        )  # fmt: skip
        return Residual(out)

    def project_in(self, residual: Residual, part: Sublayer) -> tuple[Tensor, Residual]:
        x, residual = self._add_norm(residual, part.norm, 1 + part.norm_residual, part.project_in.weight.dtype)
        if part.activation == "relu" and x.is_cuda:
            return torch._addmm_activation(part.project_in.bias, x, part.project_in.weight.t()), residual
        y = self.linear(x, part.project_in)
        return (y if part.activation is None else ACTIVATIONS[part.activation](y)), residual

    def project_out(self, y: Tensor, matrix: Linear, residual: Residual) -> Residual:
        return Residual(residual.base, self.linear(y, matrix))

    def final_norm(self, residual: Residual, norm: Norm | None, dtype: torch.dtype) -> Tensor:
        return self._add_norm(residual, norm, 0, dtype)[0]

    def _add_norm(self, residual: Residual, norm: Norm | None, store: int, dtype) -> tuple[Tensor, Residual]:
        base, pending = residual
        rows, dim = base.shape
        if pending is None and (norm is None or store == 1):
            store = 0  # the residual does not change
        x, new_base = torch.empty(rows, dim, dtype=dtype, device=base.device), torch.empty_like(base) if store else base
        norm_weight, norm_bias, eps = norm or (base, base, 0.0)
        width = triton.next_power_of_2(dim)
        decode.add_norm[(rows,)](
            base, base if pending is None else pending, norm_weight, norm_bias, new_base, x, eps,
            PENDING=pending is not None, NORM=norm is not None, STORE_RESIDUAL=store, DIM=dim, BLOCK=width,
            **self._launch(max(1, min(8, width // 512))),
        )  # fmt: skip
        return x, Residual(new_base)

    def linear(self, x: Tensor, matrix: Linear) -> Tensor:
        return F.linear(x, *matrix)

    def self_attention(self, qkv: Tensor, buffers: SelfAttentionBuffers, layer: int, heads: int) -> Tensor:
        b, rows, dim = buffers, len(qkv), qkv.shape[1] // 3
        out = torch.empty(rows, dim, dtype=qkv.dtype, device=qkv.device)
        decode.self_attention[(rows, heads)](
            qkv, b.keys[layer], b.ancestors, b.generated, b.done, out, b.size.max_length, (dim // heads) ** -0.5,
            BEAMS=b.size.beams, DIM=dim, HEAD_DIM=dim // heads, BLOCK_KEYS=self.self_block[0],
            **self._launch(self.self_block[1]),
        )  # fmt: skip
        return out

    def cross_attention(self, q: Tensor, buffers: SearchBuffers, layer: int, heads: int) -> Tensor:
        return self._attend(q, buffers.memory[:, layer], buffers, heads, buffers.size.beams, buffers.size.beams)

    def encoder_attention(self, qkv: Tensor, buffers: SearchBuffers, longest: int, heads: int) -> Tensor:
        dim = qkv.shape[1] // 3
        return self._attend(qkv[:, :dim], qkv[:, dim:], buffers, heads, 0, longest)

    def _attend(self, q: Tensor, keys: Tensor, buffers: SearchBuffers, heads: int, beams: int, queries: int) -> Tensor:
        dim, block_q = q.shape[1], min(64, max(16, triton.next_power_of_2(queries)))
        block_keys, warps, stages = self.cross_block if block_q == 16 else (32, 4, 2)
        out = torch.empty(len(q), dim, dtype=q.dtype, device=q.device)
        decode.packed_attention[(buffers.size.sentences, heads, -(-queries // block_q))](
            q, keys, buffers.starts, buffers.lengths, buffers.done, out, q.stride(0), keys.stride(0),
            (dim // heads) ** -0.5, BEAMS=beams, BLOCK_Q=block_q, DIM=dim, HEAD_DIM=dim // heads, BLOCK_KEYS=block_keys,
            num_stages=stages, **self._launch(warps),
        )  # fmt: skip
        return out

    def logits(self, residual: Residual, weights: DecoderWeights) -> Tensor:
        x, matrix = self.final_norm(residual, weights.target.final_norm, weights.dtype), weights.output.t()
        if weights.dtype == torch.float32:
            return x @ matrix
        return torch.mm(x, matrix, out_dtype=torch.float32)

    def select(self, residual: Residual, weights: Weights, buffers: SearchBuffers) -> None:
        b, logits, (n, beams, max_length) = buffers, self.logits(residual, weights), buffers.size
        group = max(64, triton.next_power_of_2(-(-weights.vocab // MAX_GROUPS)))
        groups = -(-weights.vocab // group)
        chunk_groups = min(max(1, self.chunk[0] // group), triton.next_power_of_2(groups))
        chunks = -(-groups // chunk_groups)
        bias = logits if weights.bias is None else weights.bias
        common = {"BIAS": weights.bias is not None, "GROUP": group}
        maxima, chunk_maxima, chunk_sums = (
            torch.empty(b.size.rows, columns, device=logits.device) for columns in (groups, chunks, chunks)
        )
        choice.group_maxima[(b.size.rows, chunks)](
            logits, bias, b.banned, b.options, b.generated, b.done, maxima, chunk_maxima, chunk_sums, weights.vocab,
            logits.stride(0), groups, beams, GROUPS=chunk_groups, **common, **self._launch(self.chunk[1]),
        )  # fmt: skip
        choice.advance[(n,)](
            logits, bias, b.banned, b.options, b.prefix, b.penalty, maxima, chunk_maxima, chunk_sums, b.generated,
            b.done, b.limit, b.beam_scores, b.token, b.finished, b.history, b.ancestors, b.unfinished, weights.vocab,
            logits.stride(0), groups, chunks, max_length, BEAMS=beams, ROWS=triton.next_power_of_2(beams),
            CANDIDATES=triton.next_power_of_2(2 * beams), GROUPS=triton.next_power_of_2(groups),
            CHUNKS=triton.next_power_of_2(chunks), POSITIONS=32, **common, **self._launch(self.advance_warps),
        )  # fmt: skip

    def trace(self, buffers: SearchBuffers, steps: int) -> Tensor:
        b, (n, beams, max_length), nbest = buffers, buffers.size, buffers.rules.nbest
        out = torch.zeros(2, n * nbest, steps, device=b.finished.device)
        choice.trace[(n * nbest,)](b.finished, b.history, out, nbest, steps, max_length, BEAMS=beams, num_warps=1)
        return out


class MediumBatchOps(LargeBatchOps):
    """For rows that fill a few tiles: custom matrix products, which start early and include the residual sum."""

    wide_tile, deep_tile = (32, 64, 512, 8, 1), (32, 16, 512, 4, 2)  # rows, columns, depth, warps, stages

    def project_in(self, residual: Residual, part: Sublayer) -> tuple[Tensor, Residual]:
        x, residual = self._add_norm(residual, part.norm, 1 + part.norm_residual, part.project_in.weight.dtype)
        return self._matmul(x, part.project_in, part.activation), residual

    def project_out(self, y: Tensor, matrix: Linear, residual: Residual) -> Residual:
        return Residual(self._matmul(y, matrix, base=residual.base))

    def _matmul(self, x: Tensor, matrix: Linear, activation: str | None = None, base: Tensor | None = None) -> Tensor:
        (rows, dim), columns = x.shape, len(matrix.weight)
        out = torch.empty(rows, columns, dtype=x.dtype if base is None else base.dtype, device=x.device)
        block_m, block_n, block_k, warps, stages = self.wide_tile if columns > dim else self.deep_tile
        decode.matmul[(-(-columns // block_n), -(-rows // block_m))](
            x, matrix.weight, matrix.bias, x if base is None else base, out, rows, columns, ADD=base is not None,
            ACTIVATION=activation or "", DIM=dim, BLOCK_K=max(16, min(block_k, triton.next_power_of_2(dim))),
            BLOCK_M=block_m, BLOCK_N=block_n, num_stages=stages, **self._launch(warps),
        )  # fmt: skip
        return out


class SmallBatchOps(LargeBatchOps):
    """For so few rows that a product is bound by reading the matrix: norm, matrix and residual sum in one kernel."""

    weights_per_program = (4096, 16384)  # for most matrices, and for the output

    def project_in(self, residual: Residual, part: Sublayer) -> tuple[Tensor, Residual]:
        new_base = torch.empty_like(residual.base) if part.norm and part.norm_residual else None
        y = self._matvec(residual.base, part.project_in, norm=part.norm, new_base=new_base, activation=part.activation)
        return y, residual if new_base is None else Residual(new_base)

    def project_out(self, y: Tensor, matrix: Linear, residual: Residual) -> Residual:
        return Residual(self._matvec(y, matrix, base=residual.base))

    def logits(self, residual: Residual, weights: DecoderWeights) -> Tensor:
        out = torch.empty(len(residual.base), len(weights.output), device=residual.base.device)
        return self._matvec(residual.base, Linear(weights.output, None), norm=weights.target.final_norm, out=out)

    def _matvec(
        self, x: Tensor, matrix: Linear, *, norm: Norm | None = None, new_base: Tensor | None = None,
        activation: str | None = None, base: Tensor | None = None, out: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        (rows, dim), columns = x.shape, len(matrix.weight)
        if out is None:
            dtype = matrix.weight.dtype if base is None else base.dtype
            out = torch.empty(rows, columns, dtype=dtype, device=x.device)
        norm_weight, norm_bias, eps = norm or (x, x, 0.0)
        width = triton.next_power_of_2(dim)
        block_n = max(1, self.weights_per_program[columns > 8192] // width)
        decode.matvec[(-(-columns // block_n), rows)](
            x, matrix.weight, x if matrix.bias is None else matrix.bias, norm_weight, norm_bias,
            x if base is None else base, x if new_base is None else new_base, out, columns, eps,
            BIAS=matrix.bias is not None, NORM=norm is not None, STORE_RESIDUAL=new_base is not None,
            ADD=base is not None, ACTIVATION=activation or "", DIM=dim, BLOCK=width, BLOCK_N=block_n, **self._launch(4),
        )  # fmt: skip
        return out
