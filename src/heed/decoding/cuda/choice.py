"""What to say next, and all that follows from it, on the card: kernels in Triton.

The first reads all scores once, and keeps of each group of neighbouring tokens its highest. The second, one program a
sentence, looks only into the groups that can hold one of the best candidates: as many groups as candidates, by their highest.
"""

import triton
import triton.language as tl

from heed.kernels.decode import follow, release


@triton.jit
def permitted(x, columns, there, bias_at, banned_at, last, early, BIAS: tl.constexpr):
    """Scores with their bias, and the same without what may not be said; `early`, it may not end."""
    if BIAS:
        x += tl.load(bias_at + columns, mask=there, other=0.0)
    banned = tl.load(banned_at + columns, mask=there, other=1) != 0
    banned = banned | (early & (columns == last))
    return x, tl.where(banned, float("-inf"), x)


@triton.jit(do_not_specialize=["beams"])
def survey(
    scores_at, bias_at, banned_at, facts_at, said_at, done_at, highest_at, tops_at, totals_at, vocab, stride, groups,
    beams, BIAS: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Of a piece of one row's scores: the highest of each group, the highest of all, and the sum of their powers."""
    follow(AHEAD)
    row, piece = tl.program_id(0), tl.program_id(1)
    sentence = row // beams
    if tl.load(done_at + sentence) == 0:
        group = piece * GROUPS + tl.arange(0, GROUPS)
        columns = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        there = columns < vocab
        x = tl.load(scores_at + row.to(tl.int64) * stride + columns, mask=there, other=float("-inf"))
        release(AHEAD)
        last, early = tl.load(facts_at), tl.load(said_at + sentence) < tl.load(facts_at + 1)
        x, allowed = permitted(x, columns, there, bias_at, banned_at, last, early, BIAS)
        tl.store(highest_at + row * groups + group, tl.max(allowed, axis=1), mask=group < groups)
        counted = tl.where(tl.load(facts_at + 5) != 0, allowed, x)
        top = tl.max(tl.max(counted, axis=1), axis=0)
        safe = tl.where(top > float("-inf"), top, 0.0)
        place = row * tl.num_programs(1) + piece
        tl.store(tops_at + place, top)
        tl.store(totals_at + place, tl.sum(tl.sum(tl.exp(counted - safe), axis=1), axis=0))


@triton.jit
def best_of(values, COUNT: tl.constexpr, LANES: tl.constexpr):
    """The COUNT highest, best first, and where they stand."""
    lane, index = tl.arange(0, LANES), tl.arange(0, values.shape[0])
    best, place = tl.full([LANES], float("-inf"), tl.float32), tl.zeros([LANES], tl.int32)
    for i in range(COUNT):
        top, at = tl.max(values, axis=0, return_indices=True)
        best, place = tl.where(lane == i, top, best), tl.where(lane == i, at, place)
        values = tl.where(index == at, float("-inf"), values)
    return best, place


@triton.jit
def picked(values, index):
    """values[index]; 0 where there is none."""
    hit = index[:, None] == tl.arange(0, values.shape[0])[None, :]
    return tl.sum(tl.where(hit, values[None, :], tl.zeros_like(values)[None, :]), axis=1)


@triton.jit
def spread_of(tops, totals, exists):
    """The logarithm of the sum of a row's powers, from its pieces."""
    top = tl.where(exists, tl.max(tops, axis=1), 0.0)
    total = tl.sum(totals * tl.exp(tops - top[:, None]), axis=1)
    return top + tl.log(tl.where(exists, total, 1.0))


@triton.jit
def candidates(
    scores_at, bias_at, banned_at, high, live, last, early, sentence, vocab, stride, spread,
    BIAS: tl.constexpr, BEAMS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr, GROUP: tl.constexpr,
    GROUPS: tl.constexpr,
):  # fmt: skip
    """The best 2 · BEAMS of a sentence: what they come to, their beams and tokens."""
    high = tl.reshape(high - spread[:, None] + live[:, None], [ROWS * GROUPS])
    value, place = best_of(high, 2 * BEAMS, LANES)
    whose, group = place // GROUPS, place % GROUPS
    columns = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    there = (value > float("-inf"))[:, None] & (columns < vocab)
    at = (sentence * BEAMS + whose).to(tl.int64)[:, None] * stride + columns
    x = tl.load(scores_at + at, mask=there, other=float("-inf"))
    x, allowed = permitted(x, columns, there, bias_at, banned_at, last, early, BIAS)
    x = allowed - picked(spread, whose)[:, None] + picked(live, whose)[:, None]
    value, place = best_of(tl.reshape(x, [LANES * GROUP]), 2 * BEAMS, LANES)
    hit = place // GROUP
    return value, picked(whose, hit), picked(group, hit) * GROUP + place % GROUP


@triton.jit
def note(found_at, old, new, wins, rank, BEAMS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr):
    """What has ended takes its place among what was found before, best first; the score at `rank` is given back.

    `old` and `new` are the fields of what was and of what is found, the score first.
    """
    beams, lane, none = tl.arange(0, ROWS), tl.arange(0, LANES), float("-inf")
    exists, was, score = beams < BEAMS, old[0], new[0]
    place = beams + tl.sum((score[None, :] > was[:, None]).to(tl.int32), axis=1)
    before = tl.sum(((was[None, :] >= score[:, None]) & exists[None, :]).to(tl.int32), axis=1)
    same = (score[None, :] == score[:, None]) & (lane[None, :] < lane[:, None])
    before += tl.sum(((score[None, :] > score[:, None]) | same).to(tl.int32), axis=1)
    stays, comes = exists & (place < BEAMS), wins & (before < BEAMS)
    for i in tl.static_range(5):
        tl.store(found_at + i * BEAMS + place, old[i], mask=stays)
        tl.store(found_at + i * BEAMS + before, new[i], mask=comes)
    one = tl.max(tl.where(stays & (place == rank), was, none), axis=0)
    return tl.maximum(one, tl.max(tl.where(comes & (before == rank), score, none), axis=0))


@triton.jit
def inherit(lineage_at, parent, exists, said, longest, ROWS: tl.constexpr, PLACES: tl.constexpr):
    """Each beam's past is its parent's, and then its parent."""
    beams = tl.arange(0, ROWS)
    for start in range(0, said + 1, PLACES):
        place = start + tl.arange(0, PLACES)
        known, kept = exists[:, None] & (place < said)[None, :], exists[:, None] & (place <= said)[None, :]
        past = tl.load(lineage_at + parent[:, None] * longest + place[None, :], mask=known, other=0)
        past = tl.where((place == said)[None, :], parent[:, None], past)
        tl.debug_barrier()  # all is read before anything is written
        tl.store(lineage_at + beams[:, None] * longest + place[None, :], past, mask=kept)


@triton.jit
def go_on(
    live_at, token_at, history_at, value, beam, token, cost, ends,
    BEAMS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Those that do not end become the beams, best first; were they too few, others follow that count for nothing."""
    lane, beams, none = tl.arange(0, LANES), tl.arange(0, ROWS), float("-inf")
    counted, earlier, exists = lane < 2 * BEAMS, lane[None, :] < lane[:, None], beams < BEAMS
    on, off = (counted & (ends == 0)).to(tl.int32), (counted & ends).to(tl.int32)
    late = tl.sum(on, axis=0) + tl.sum(tl.where(earlier, off[None, :], 0), axis=1)
    order = tl.where(ends, late, tl.sum(tl.where(earlier, on[None, :], 0), axis=1))
    hit = (tl.where(counted, order, LANES)[None, :] == beams[:, None]) & exists[:, None]
    live = tl.max(tl.where(hit, tl.where(ends, none, value)[None, :], none), axis=1)
    parent, token = tl.sum(tl.where(hit, beam[None, :], 0), axis=1), tl.sum(tl.where(hit, token[None, :], 0), axis=1)
    tl.store(live_at, live, mask=exists)
    tl.store(token_at, token, mask=exists)
    tl.store(history_at + beams, token.to(tl.float32), mask=exists)
    tl.store(history_at + BEAMS + beams, parent.to(tl.float32), mask=exists)
    tl.store(history_at + 2 * BEAMS + beams, tl.sum(tl.where(hit, cost[None, :], 0.0), axis=1), mask=exists)
    return live, parent


@triton.jit
def table(at, row, column, exists, columns, other):
    """Some rows of a table, as far as they exist."""
    there = exists[:, None] & (column < columns)[None, :]
    return tl.load(at + row[:, None] * columns + column[None, :], mask=there, other=other)


@triton.jit
def fields(found_at, beams, exists, BEAMS: tl.constexpr):
    """What was found, field by field; the score first."""
    return (
        tl.load(found_at + beams, mask=exists, other=float("-inf")),
        tl.load(found_at + BEAMS + beams, mask=exists, other=0.0),
        tl.load(found_at + 2 * BEAMS + beams, mask=exists, other=0.0),
        tl.load(found_at + 3 * BEAMS + beams, mask=exists, other=0.0),
        tl.load(found_at + 4 * BEAMS + beams, mask=exists, other=0.0),
    )


@triton.jit
def advance(
    scores_at, bias_at, banned_at, facts_at, begin_at, penalty_at, highest_at, tops_at, totals_at, said_at, done_at,
    limit_at, live_at, token_at, found_at, history_at, lineage_at, remaining_at, vocab, stride, groups, pieces, longest,
    BIAS: tl.constexpr, BEAMS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr, GROUP: tl.constexpr,
    GROUPS: tl.constexpr, PIECES: tl.constexpr, PLACES: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """One sentence: its best candidates, those that end noted down, the rest as its beams, and whether it is done."""
    follow(AHEAD)
    sentence, none = tl.program_id(0), float("-inf")
    beams, lane, piece, group = tl.arange(0, ROWS), tl.arange(0, LANES), tl.arange(0, PIECES), tl.arange(0, GROUPS)
    row, exists = sentence * BEAMS + beams, beams < BEAMS
    # all that can be read at once is asked for before any of it is looked at
    done, said, limit = tl.load(done_at + sentence), tl.load(said_at + sentence), tl.load(limit_at + sentence)
    last, least, rank, stop = tl.load(facts_at), tl.load(facts_at + 1), tl.load(facts_at + 2), tl.load(facts_at + 3)
    force_end, begins = tl.load(facts_at + 4), tl.load(facts_at + 6)
    live = tl.load(live_at + row, mask=exists, other=none)
    tops, totals = table(tops_at, row, piece, exists, pieces, none), table(totals_at, row, piece, exists, pieces, 0.0)
    high = table(highest_at, row, group, exists, groups, none)
    found_at += sentence * 5 * BEAMS
    old = fields(found_at, beams, exists, BEAMS)
    if done == 0:
        length = said + 1
        penalty, most = tl.load(penalty_at + length), tl.load(penalty_at + limit)
        forced = tl.where(said < begins, tl.load(begin_at + tl.minimum(said, longest - 1)), -1)
        forced = tl.where((force_end != 0) & (length >= limit), last, forced)
        spread = spread_of(tops, totals, exists)
        value, beam, token = candidates(
            scores_at, bias_at, banned_at, high, live, last, said < least, sentence, vocab, stride, spread,
            BIAS, BEAMS, ROWS, LANES, GROUP, GROUPS,
        )  # fmt: skip
        value = tl.where(forced >= 0, tl.where(lane < BEAMS, picked(live, lane), none), value)
        beam, token = tl.where(forced >= 0, tl.where(lane < BEAMS, lane, 0), beam), tl.where(forced >= 0, forced, token)
        ends = (token == last) | (length + tl.zeros_like(token) >= limit)
        cost, wins = value - picked(live, beam), ends & (lane < BEAMS) & (value > none)
        score = tl.where(wins, value.to(tl.float64) / penalty, none)
        lengths = length.to(tl.float64) + tl.zeros([LANES], tl.float64)
        new = (score, lengths, beam.to(tl.float64), token.to(tl.float64), cost.to(tl.float64))
        tl.debug_barrier()  # what was found is read before it is written
        worst = note(found_at, old, new, wins, rank, BEAMS, ROWS, LANES)
        here = history_at + (sentence * longest + said).to(tl.int64) * 3 * BEAMS
        live, parent = go_on(live_at + row, token_at + row, here, value, beam, token, cost, ends, BEAMS, ROWS, LANES)
        if BEAMS > 1:
            inherit(lineage_at + sentence * BEAMS * longest, parent, exists, said, longest, ROWS, PLACES)
        best = tl.max(live, axis=0)
        against = best.to(tl.float64) / tl.where(stop == 0, tl.maximum(penalty, most), penalty)
        over = (best == none) | ((worst > none) & ((stop == 2) | (worst >= against)))
        tl.store(said_at + sentence, length)
        tl.store(done_at + sentence, over.to(tl.int32))
        tl.atomic_add(remaining_at, 0 - over.to(tl.int32))


@triton.jit(do_not_specialize=["nbest", "steps"])
def trace(found_at, history_at, out_at, nbest, steps, longest, BEAMS: tl.constexpr):
    """One hypothesis from its end back to its beginning: its tokens, and what each costs."""
    number = tl.program_id(0)
    sentence = number // nbest
    own = found_at + sentence * 5 * BEAMS + number % nbest
    if tl.load(own) > float("-inf"):
        last, beam = tl.load(own + BEAMS).to(tl.int32) - 1, tl.load(own + 2 * BEAMS).to(tl.int32)
        said, costs = out_at + number * steps, out_at + (tl.num_programs(0) + number) * steps
        tl.store(said + last, tl.load(own + 3 * BEAMS).to(tl.float32))
        tl.store(costs + last, tl.load(own + 4 * BEAMS).to(tl.float32))
        for back in range(0, last):
            place = last - 1 - back
            here = history_at + (sentence * longest + place).to(tl.int64) * 3 * BEAMS + beam
            beam = tl.load(here + BEAMS).to(tl.int32)
            tl.store(said + place, tl.load(here))
            tl.store(costs + place, tl.load(here + 2 * BEAMS))
