"""Rows of one source share its encoder output, and give the logits of a pass over each row alone."""

import pytest
import torch

from heed.models.seq2seq import Seq2Seq, Seq2SeqConfig

REORDERS = {  # rows that are kept at each step, and the rows that each source has then
    "beams": ([[0, 0, 0, 1, 1, 1, 2, 2, 2], [1, 0, 0, 5, 5, 4, 6, 7, 8], [3, 4, 3, 8, 8, 6]], [3, 3, 3]),
    "a source leaves and beams stay": ([[0, 0, 1, 1, 2, 2], [1, 0, 4, 4], [3, 2]], [2, 2, 2]),
    "unequal numbers of rows": ([[0, 0, 1, 1, 2, 2], [1, 3, 2], [2, 1, 0], [0, 0, 1, 1]], [2, 1, 1, 2]),
    "a source twice": ([[2, 2, 0, 0, 2, 2], [5, 4, 0, 1], [0, 2]], [2, 2, 1]),
}

RECURRENT = {
    "bahdanau": {},
    "input feeding": {"attention": "content", "order": "luong", "feeding": True},
    "without attention": {"attention": "off"},
}


@pytest.fixture(scope="module", params=["transformer", *RECURRENT])
def any_model(request, model):
    if request.param == "transformer":
        return model
    torch.manual_seed(0)
    config = Seq2SeqConfig(vocab_size=5, dim=8, hidden=8, **RECURRENT[request.param])
    return Seq2Seq(config).double().eval().requires_grad_(False)


@pytest.mark.parametrize(("kept", "widths"), REORDERS.values(), ids=REORDERS)
def test_any_order_of_rows_gives_the_logits_of_one_pass(any_model, texts, kept, widths):
    model, (source, valid) = any_model, texts
    state, owner, tokens = model.start(source, valid), torch.arange(3), torch.zeros(3, 0, dtype=torch.long)
    for step, (rows, width) in enumerate(zip(map(torch.tensor, kept), widths, strict=True)):
        state.reorder(rows)
        owner, tokens = owner[rows], tokens[rows]
        shared, memory = (state.source, state.source.values) if hasattr(state, "source") else (state, state.memory)
        if memory is not None:
            assert shared.width == width
            assert len(memory) * width == len(rows)
        tokens = torch.cat([tokens, (torch.arange(len(rows)) + step)[:, None] % 4], dim=1)
        logits = model.step(tokens[:, -1], state)
        expected = model(source[owner], tokens, valid[owner])[:, -1]
        assert torch.allclose(logits, expected, atol=1e-10)


def test_beams_that_change_places_copy_nothing_of_their_source(model, texts):
    state = model.start(*texts)
    state.reorder(torch.arange(3).repeat_interleave(2))
    model.step(torch.zeros(6, dtype=torch.long), state)
    memory, keys = state.memory, state.cache[0].cross.k
    state.reorder(torch.tensor([1, 0, 2, 2, 5, 4]))
    assert state.memory is memory
    assert state.cache[0].cross.k.data_ptr() == keys.data_ptr()
