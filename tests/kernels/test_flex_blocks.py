"""FlexAttention over blocks equals gathered blocks."""

import pytest
import torch
from torch.nn.attention import flex_attention

from heed.kernels.flex_blocks import attend_flex
from heed.nn.attention import attend
from heed.nn.blocks import BlockMask, BlockPattern


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch):
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True, raising=False)


@pytest.mark.parametrize(("length", "padded", "drawn"), [(64, False, True), (61, True, False)])
def test_it_equals_gathered_blocks(drawn, length, padded):
    pattern = BlockPattern(4, 2, 3, 128)
    table = pattern.table(length, pattern.drawn(length, 1) if drawn else pattern.first_again(length))
    torch.manual_seed(0)
    parts = [torch.randn(2, 3, length, 16) for _ in range(3)]
    valid = (torch.arange(length) < torch.tensor([[length], [30]]))[:, None, None] if padded else None
    mask = BlockMask(table, 4, valid)
    with torch.inference_mode():
        torch.testing.assert_close(attend_flex(*parts, mask=mask), attend(*parts, mask=mask), rtol=0, atol=1e-6)
    assert torch.equal(attend_flex(*parts, mask=valid), attend(*parts, mask=valid))
