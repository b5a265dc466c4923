"""Gradients of embeddings added to a table in place, by Triton's interpreter: what a plain loop in float64 gives."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import torch
from heed.kernels import embedding, residual_norm
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
def whole(*shape): return torch.randint(-3, 4, shape, generator=generator)  # sums of these are exact: equal, not close
def shuffled(lengths, vocab):
    names = torch.randperm(vocab, generator=generator)[: len(lengths)]
    tokens = torch.repeat_interleave(names, torch.tensor(lengths))
    return tokens[torch.randperm(len(tokens), generator=generator)]
def plain(table, tokens, d, scale):
    table = table.double()
    for token, row in zip(tokens.tolist(), d.double(), strict=True): table[token] += scale * row
    return table
"""

RUNS = """
def cases(s):
    yield from ([s - 3, s - 2, s, s + 2, 1], [5, 3 * s - 5, 3], [2 * s + 3])
    if s == 8:
        yield from ([1], [3, 1, 5], [s], [2 * s], [s, s, 3], [5, s - 5, s, 2], [s - 1, 1, s + 1], [1] * (s + 2))
        yield from ([s, s + 4, 2], [4, 6 * s, 1], [s, 5 * s, s])
for embedding.SPAN, embedding.PIECES, kind in ((embedding.SPAN, embedding.PIECES, torch.bfloat16), (8, 2, torch.float32)):
    for lengths in cases(embedding.SPAN):
        tokens = shuffled(lengths, 50)
        table, d = whole(50, 24).to(kind), whole(len(tokens), 24).to(kind)
        wanted = plain(table, tokens, d, 0.5).to(kind)
        embedding.add_rows(table, tokens, d, 0.5)
        assert torch.equal(table, wanted), (embedding.SPAN, lengths)
print("the same")
"""

KINDS = """
embedding.SPAN, embedding.PIECES = 8, 2
tokens = shuffled([9, 1, 30, 2, 4, 1], 20)
absent = torch.ones(20, dtype=torch.bool).index_fill(0, tokens, False)
one, half = torch.float32, torch.bfloat16
for kind, d_kind, width in ((one, one, 600), (one, half, 16), (half, one, 1), (half, half, 600)):
    d, bits = draw(len(tokens), width).to(d_kind), torch.int32 if kind == one else torch.int16
    table = torch.where(absent[:, None], torch.tensor([torch.nan, -0.0]).repeat(10)[:, None], draw(20, width)).to(kind)
    wanted, found, again = plain(table, tokens, d, 1.7), table.clone(), table.clone()
    embedding.add_rows(found, tokens, d, 1.7)
    embedding.add_rows(again, tokens.int(), d.T.contiguous().T, 1.7)
    assert torch.equal(found.view(bits), again.view(bits))
    assert torch.equal(found[absent].view(bits), table[absent].view(bits))
    rtol = 1e-5 if kind == one else 2**-7  # the interpreter cuts off where a GPU rounds
    torch.testing.assert_close(found[~absent].double(), wanted[~absent], rtol=rtol, atol=1e-5)

for vocab, tokens in ((65536, [0, 32767, 32768, 65535, 5, 65535, 32768]), (70000, [69999, 5, 65541, 69999, 4463, 5])):
    table, d = whole(vocab, 4).float(), whole(len(tokens), 4).float()
    wanted = plain(table, torch.tensor(tokens), d, 1.0).float()
    embedding.add_rows(table, torch.tensor(tokens), d)
    assert torch.equal(table, wanted), vocab

table = draw(20, 4)
before = table.clone()
embedding.add_rows(table, torch.tensor([], dtype=torch.long), draw(0, 4))
assert torch.equal(table, before)
try: embedding.add_rows(table.T.contiguous().T, torch.tensor([1]), draw(1, 4))
except ValueError as error: print("the same" if "must be contiguous" in str(error) else error)
"""

DROPOUT = """
embedding.SPAN, embedding.PIECES = 8, 2
for lengths in ([1] * 12, [9, 1, 30, 2, 4, 1]):
    tokens = shuffled(lengths, 20)
    table, position_table = draw(20, 24).requires_grad_(), torch.zeros(3, 24)
    torch.manual_seed(1)
    out = embedding.embed(table, tokens, torch.zeros_like(tokens), position_table, 2.0, 0.25)
    kept, d = (out != 0).double(), draw(len(tokens), 24)
    assert 0.65 < float(kept.mean()) < 0.85
    torch.manual_seed(1)
    seed, threshold, keep_scale = residual_norm.draw_seed(0.25, table.device)
    found = torch.zeros_like(table)
    embedding.add_rows(found, tokens, d, 2.0 * keep_scale, seed, threshold)
    wanted = plain(found * 0, tokens, d * kept, 2.0 / 0.75)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-6, atol=1e-5)
    assert torch.equal(found != 0, wanted != 0)
    torch.testing.assert_close(found, torch.autograd.grad((out * d).sum(), table)[0], rtol=1e-6, atol=1e-5)
print("the same")
"""


@pytest.mark.parametrize("program", [RUNS, KINDS, DROPOUT], ids=["runs", "kinds", "dropout"])
def test_rows_added_in_place_are_those_of_a_plain_loop(program):
    assert_same(BEGIN + program)
