"""Triton kernels that choose the next token of every beam and advance the search.

`group_maxima` reads all logits once and keeps the maximum of each group of neighbouring tokens. `advance`, one program
per sentence, reads again only the groups with the best maxima, as many as candidates: no other can hold a candidate.
"""

import triton
import triton.language as tl

from heed.kernels.decode import launch_next, wait_for_previous


@triton.jit
def apply_bans(x, columns, mask, bias_ptr, banned_ptr, last, too_short, BIAS: tl.constexpr):
    """Logits with their bias, and with -inf for banned tokens; a hypothesis that is `too_short` may not end."""
    if BIAS:
        x += tl.load(bias_ptr + columns, mask=mask, other=0.0)
    banned = tl.load(banned_ptr + columns, mask=mask, other=1) != 0
    banned = banned | (too_short & (columns == last))
    return x, tl.where(banned, float("-inf"), x)


@triton.jit(do_not_specialize=["beams"])
def group_maxima(
    logits_ptr, bias_ptr, banned_ptr, options_ptr, generated_ptr, done_ptr, maxima_ptr, chunk_maxima_ptr,
    chunk_sums_ptr, vocab, stride, groups, beams, BIAS: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """For a chunk of one row: the maximum of each group, the maximum of the chunk, and its sum of exponentials."""
    wait_for_previous(PDL)
    row, chunk = tl.program_id(0), tl.program_id(1)
    sentence = row // beams
    if tl.load(done_ptr + sentence) == 0:
        group = chunk * GROUPS + tl.arange(0, GROUPS)
        columns = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        mask = columns < vocab
        x = tl.load(logits_ptr + row.to(tl.int64) * stride + columns, mask=mask, other=float("-inf"))
        launch_next(PDL)
        last, too_short = tl.load(options_ptr), tl.load(generated_ptr + sentence) < tl.load(options_ptr + 1)
        x, allowed = apply_bans(x, columns, mask, bias_ptr, banned_ptr, last, too_short, BIAS)
        tl.store(maxima_ptr + row * groups + group, tl.max(allowed, axis=1), mask=group < groups)
        counted = tl.where(tl.load(options_ptr + 5) != 0, allowed, x)
        maximum = tl.max(tl.max(counted, axis=1), axis=0)
        finite = tl.where(maximum > float("-inf"), maximum, 0.0)
        index = row * tl.num_programs(1) + chunk
        tl.store(chunk_maxima_ptr + index, maximum)
        tl.store(chunk_sums_ptr + index, tl.sum(tl.sum(tl.exp(counted - finite), axis=1), axis=0))


@triton.jit
def top_k(values, COUNT: tl.constexpr, CANDIDATES: tl.constexpr):
    """The COUNT highest values, best first, and their indices."""
    lane, position = tl.arange(0, CANDIDATES), tl.arange(0, values.shape[0])
    best, index = tl.full([CANDIDATES], float("-inf"), tl.float32), tl.zeros([CANDIDATES], tl.int32)
    for i in range(COUNT):
        maximum, at = tl.max(values, axis=0, return_indices=True)
        best, index = tl.where(lane == i, maximum, best), tl.where(lane == i, at, index)
        values = tl.where(position == at, float("-inf"), values)
    return best, index


@triton.jit
def lookup(values, index):
    """values[index], 0 where the index is out of range."""
    match = index[:, None] == tl.arange(0, values.shape[0])[None, :]
    return tl.sum(tl.where(match, values[None, :], tl.zeros_like(values)[None, :]), axis=1)


@triton.jit
def logsumexp(chunk_maxima, chunk_sums, beam_mask):
    """The logsumexp of a row from its chunks."""
    maximum = tl.where(beam_mask, tl.max(chunk_maxima, axis=1), 0.0)
    total = tl.sum(chunk_sums * tl.exp(chunk_maxima - maximum[:, None]), axis=1)
    return maximum + tl.log(tl.where(beam_mask, total, 1.0))


@triton.jit
def candidates(
    logits_ptr, bias_ptr, banned_ptr, maxima, beam_scores, last, too_short, sentence, vocab, stride, lse,
    BIAS: tl.constexpr, BEAMS: tl.constexpr, ROWS: tl.constexpr, CANDIDATES: tl.constexpr, GROUP: tl.constexpr,
    GROUPS: tl.constexpr,
):  # fmt: skip
    """The best 2 · BEAMS candidates of a sentence: their scores, beams and tokens."""
    maxima = tl.reshape(maxima - lse[:, None] + beam_scores[:, None], [ROWS * GROUPS])
    value, index = top_k(maxima, 2 * BEAMS, CANDIDATES)
    beam, group = index // GROUPS, index % GROUPS
    columns = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    mask = (value > float("-inf"))[:, None] & (columns < vocab)
    offsets = (sentence * BEAMS + beam).to(tl.int64)[:, None] * stride + columns
    x = tl.load(logits_ptr + offsets, mask=mask, other=float("-inf"))
    x, allowed = apply_bans(x, columns, mask, bias_ptr, banned_ptr, last, too_short, BIAS)
    x = allowed - lookup(lse, beam)[:, None] + lookup(beam_scores, beam)[:, None]
    value, index = top_k(tl.reshape(x, [CANDIDATES * GROUP]), 2 * BEAMS, CANDIDATES)
    candidate = index // GROUP
    return value, lookup(beam, candidate), lookup(group, candidate) * GROUP + index % GROUP


@triton.jit
def record_finished(out_ptr, old, new, wins, rank, BEAMS: tl.constexpr, ROWS: tl.constexpr, CANDIDATES: tl.constexpr):
    """Merge newly finished hypotheses into the old ones, best first; returns the score at `rank`.

    `old` and `new` are tuples of fields, the score first.
    """
    beams, lane, dead = tl.arange(0, ROWS), tl.arange(0, CANDIDATES), float("-inf")
    beam_mask, old_score, score = beams < BEAMS, old[0], new[0]
    old_rank = beams + tl.sum((score[None, :] > old_score[:, None]).to(tl.int32), axis=1)
    new_rank = tl.sum(((old_score[None, :] >= score[:, None]) & beam_mask[None, :]).to(tl.int32), axis=1)
    same = (score[None, :] == score[:, None]) & (lane[None, :] < lane[:, None])
    new_rank += tl.sum(((score[None, :] > score[:, None]) | same).to(tl.int32), axis=1)
    stays, enters = beam_mask & (old_rank < BEAMS), wins & (new_rank < BEAMS)
    for i in tl.static_range(5):
        tl.store(out_ptr + i * BEAMS + old_rank, old[i], mask=stays)
        tl.store(out_ptr + i * BEAMS + new_rank, new[i], mask=enters)
    at_rank = tl.max(tl.where(stays & (old_rank == rank), old_score, dead), axis=0)
    return tl.maximum(at_rank, tl.max(tl.where(enters & (new_rank == rank), score, dead), axis=0))


@triton.jit
def inherit_ancestors(ptr, parent, beam_mask, generated, max_length, ROWS: tl.constexpr, POSITIONS: tl.constexpr):
    """Each beam takes over the ancestors of its parent, and then the parent itself."""
    beams = tl.arange(0, ROWS)
    for start in range(0, generated + 1, POSITIONS):
        position = start + tl.arange(0, POSITIONS)
        known, written = (position < generated)[None, :], beam_mask[:, None] & (position <= generated)[None, :]
        past = tl.load(ptr + parent[:, None] * max_length + position[None, :], mask=beam_mask[:, None] & known, other=0)
        past = tl.where((position == generated)[None, :], parent[:, None], past)
        tl.debug_barrier()  # read all before writing
        tl.store(ptr + beams[:, None] * max_length + position[None, :], past, mask=written)


@triton.jit
def continue_beams(
    beam_scores_ptr, token_ptr, history_ptr, value, beam, token, logp, ends,
    BEAMS: tl.constexpr, ROWS: tl.constexpr, CANDIDATES: tl.constexpr,
):  # fmt: skip
    """The best candidates that do not end become the beams; if too few, ended ones follow with a score of -inf."""
    lane, beams, dead = tl.arange(0, CANDIDATES), tl.arange(0, ROWS), float("-inf")
    counted, earlier, beam_mask = lane < 2 * BEAMS, lane[None, :] < lane[:, None], beams < BEAMS
    alive, ended = (counted & (ends == 0)).to(tl.int32), (counted & ends).to(tl.int32)
    ended_rank = tl.sum(alive, axis=0) + tl.sum(tl.where(earlier, ended[None, :], 0), axis=1)
    order = tl.where(ends, ended_rank, tl.sum(tl.where(earlier, alive[None, :], 0), axis=1))
    match = (tl.where(counted, order, CANDIDATES)[None, :] == beams[:, None]) & beam_mask[:, None]
    beam_scores = tl.max(tl.where(match, tl.where(ends, dead, value)[None, :], dead), axis=1)
    parent, token = (
        tl.sum(tl.where(match, beam[None, :], 0), axis=1),
        tl.sum(tl.where(match, token[None, :], 0), axis=1),
    )
    tl.store(beam_scores_ptr, beam_scores, mask=beam_mask)
    tl.store(token_ptr, token, mask=beam_mask)
    tl.store(history_ptr + beams, token.to(tl.float32), mask=beam_mask)
    tl.store(history_ptr + BEAMS + beams, parent.to(tl.float32), mask=beam_mask)
    tl.store(history_ptr + 2 * BEAMS + beams, tl.sum(tl.where(match, logp[None, :], 0.0), axis=1), mask=beam_mask)
    return beam_scores, parent


@triton.jit
def load_rows(table_ptr, row, column, beam_mask, columns, other):
    """The rows of all beams of a sentence in a table."""
    mask = beam_mask[:, None] & (column < columns)[None, :]
    return tl.load(table_ptr + row[:, None] * columns + column[None, :], mask=mask, other=other)


@triton.jit
def fields(finished_ptr, beams, beam_mask, BEAMS: tl.constexpr):
    """The fields of the finished hypotheses, the score first."""
    return (
        tl.load(finished_ptr + beams, mask=beam_mask, other=float("-inf")),
        tl.load(finished_ptr + BEAMS + beams, mask=beam_mask, other=0.0),
        tl.load(finished_ptr + 2 * BEAMS + beams, mask=beam_mask, other=0.0),
        tl.load(finished_ptr + 3 * BEAMS + beams, mask=beam_mask, other=0.0),
        tl.load(finished_ptr + 4 * BEAMS + beams, mask=beam_mask, other=0.0),
    )


@triton.jit
def advance(
    logits_ptr, bias_ptr, banned_ptr, options_ptr, prefix_ptr, penalty_ptr, maxima_ptr, chunk_maxima_ptr,
    chunk_sums_ptr, generated_ptr, done_ptr, limit_ptr, beam_scores_ptr, token_ptr, finished_ptr, history_ptr,
    ancestors_ptr, unfinished_ptr, vocab, stride, groups, chunks, max_length, BIAS: tl.constexpr, BEAMS: tl.constexpr,
    ROWS: tl.constexpr, CANDIDATES: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, CHUNKS: tl.constexpr,
    POSITIONS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Advance one sentence: record finished candidates, continue with the best others, decide whether it is done."""
    wait_for_previous(PDL)
    sentence, dead = tl.program_id(0), float("-inf")
    beams, lane, chunk, group = tl.arange(0, ROWS), tl.arange(0, CANDIDATES), tl.arange(0, CHUNKS), tl.arange(0, GROUPS)
    row, beam_mask = sentence * BEAMS + beams, beams < BEAMS
    # issue all independent loads before any of them is used
    done, generated, last = tl.load(done_ptr + sentence), tl.load(generated_ptr + sentence), tl.load(options_ptr)
    limit, min_length, rank = tl.load(limit_ptr + sentence), tl.load(options_ptr + 1), tl.load(options_ptr + 2)
    stop, force_end = tl.load(options_ptr + 3), tl.load(options_ptr + 4)
    prefix_length, beam_scores = tl.load(options_ptr + 6), tl.load(beam_scores_ptr + row, mask=beam_mask, other=dead)
    chunk_maxima = load_rows(chunk_maxima_ptr, row, chunk, beam_mask, chunks, dead)
    chunk_sums = load_rows(chunk_sums_ptr, row, chunk, beam_mask, chunks, 0.0)
    maxima = load_rows(maxima_ptr, row, group, beam_mask, groups, dead)
    finished_ptr, ancestors_ptr = finished_ptr + sentence * 5 * BEAMS, ancestors_ptr + sentence * BEAMS * max_length
    old = fields(finished_ptr, beams, beam_mask, BEAMS)
    if done == 0:
        length = generated + 1
        penalty, max_penalty = tl.load(penalty_ptr + length), tl.load(penalty_ptr + limit)
        forced = tl.where(generated < prefix_length, tl.load(prefix_ptr + tl.minimum(generated, max_length - 1)), -1)
        forced = tl.where((force_end != 0) & (length >= limit), last, forced)
        lse = logsumexp(chunk_maxima, chunk_sums, beam_mask)
        value, beam, token = candidates(
            logits_ptr, bias_ptr, banned_ptr, maxima, beam_scores, last, generated < min_length, sentence, vocab,
            stride, lse, BIAS, BEAMS, ROWS, CANDIDATES, GROUP, GROUPS,
        )  # fmt: skip
        value = tl.where(forced >= 0, tl.where(lane < BEAMS, lookup(beam_scores, lane), dead), value)
        beam, token = tl.where(forced >= 0, tl.where(lane < BEAMS, lane, 0), beam), tl.where(forced >= 0, forced, token)
        ends = (token == last) | (length + tl.zeros_like(token) >= limit)
        logp, wins = value - lookup(beam_scores, beam), ends & (lane < BEAMS) & (value > dead)
        score = tl.where(wins, value.to(tl.float64) / penalty, dead)
        lengths = length.to(tl.float64) + tl.zeros([CANDIDATES], tl.float64)
        new = (score, lengths, beam.to(tl.float64), token.to(tl.float64), logp.to(tl.float64))
        tl.debug_barrier()  # `old` must be read before it is overwritten
        worst = record_finished(finished_ptr, old, new, wins, rank, BEAMS, ROWS, CANDIDATES)
        here = history_ptr + (sentence * max_length + generated).to(tl.int64) * 3 * BEAMS
        beam_scores, parent = continue_beams(
            beam_scores_ptr + row, token_ptr + row, here, value, beam, token, logp, ends, BEAMS, ROWS, CANDIDATES
        )
        if BEAMS > 1:
            inherit_ancestors(ancestors_ptr, parent, beam_mask, generated, max_length, ROWS, POSITIONS)
        best = tl.max(beam_scores, axis=0)
        bound = best.to(tl.float64) / tl.where(stop == 0, tl.maximum(penalty, max_penalty), penalty)
        over = (best == dead) | ((worst > dead) & ((stop == 2) | (worst >= bound)))
        tl.store(generated_ptr + sentence, length)
        tl.store(done_ptr + sentence, over.to(tl.int32))
        tl.atomic_add(unfinished_ptr, 0 - over.to(tl.int32))


@triton.jit(do_not_specialize=["nbest", "steps"])
def trace(finished_ptr, history_ptr, out_ptr, nbest, steps, max_length, BEAMS: tl.constexpr):
    """Follow one hypothesis from its end back to its start: its tokens and their log-probabilities."""
    number = tl.program_id(0)
    sentence = number // nbest
    finished_ptr += sentence * 5 * BEAMS + number % nbest
    if tl.load(finished_ptr) > float("-inf"):
        last, beam = tl.load(finished_ptr + BEAMS).to(tl.int32) - 1, tl.load(finished_ptr + 2 * BEAMS).to(tl.int32)
        tokens_ptr, logps_ptr = out_ptr + number * steps, out_ptr + (tl.num_programs(0) + number) * steps
        tl.store(tokens_ptr + last, tl.load(finished_ptr + 3 * BEAMS).to(tl.float32))
        tl.store(logps_ptr + last, tl.load(finished_ptr + 4 * BEAMS).to(tl.float32))
        for back in range(0, last):
            position = last - 1 - back
            here = history_ptr + (sentence * max_length + position).to(tl.int64) * 3 * BEAMS + beam
            beam = tl.load(here + BEAMS).to(tl.int32)
            tl.store(tokens_ptr + position, tl.load(here))
            tl.store(logps_ptr + position, tl.load(here + 2 * BEAMS))
