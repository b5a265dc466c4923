"""The kernels of the search on the GPU, run by Triton's interpreter: step by step what plain torch gives."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

PROGRAM = """
import torch, warnings
from torch import nn
from heed.decoding.cuda import choice, kernels, weights
from heed.decoding.cuda.plain import TorchOps
from heed.decoding.cuda.buffers import KeyPool, SearchBuffers, SearchRules, Size
from heed.decoding.cuda.step import encode_sources, decode_step
from heed.decoding.ranking import PENALTIES
from heed.models.bart import Bart, BartConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.kernels import decode

warnings.simplefilter("ignore")  # of numpy: -inf - -inf of dead beams
for module in (decode, choice):  # launch order does not matter here, and each call is slow in the interpreter
    module.wait_for_previous = module.launch_next = lambda pdl: None
SIZES = {"vocab_size": 70, "dim": 32, "heads": 2, "hidden": 40, "encoder_layers": 1, "decoder_layers": 1, "max_length": 40}
usual = SearchRules(2, 3, (0, 1), (), 0, False, False, 3, 3, 0.6, PENALTIES["wu"], "exact")

def near(one, other, name):
    gap = torch.where(one == other, 0, (one - other).abs())
    assert gap.max() < 2e-5, (name, gap.max())

def check(model, ops, rules, lengths, steps):
    ops.cross_block, ops.self_block = (16, 1, 1), (2, 1)  # so that short sources and prefixes have several blocks
    torch.manual_seed(3)
    model = model.eval().requires_grad_(False)
    for weight in model.parameters(): nn.init.normal_(weight, std=0.3)
    for part in model.modules():
        if isinstance(part, nn.LayerNorm): nn.init.normal_(part.weight, mean=1, std=0.2)
    read, both = weights.read(model, torch.float32), []
    size, tokens = Size(2, rules.beams, 32), torch.randint(4, 70, (sum(lengths) + 1,)).int()
    positions = torch.cat([torch.arange(n) for n in [*lengths, 1]]).int()
    for own in (TorchOps(), ops):
        buffers = SearchBuffers(read, size, KeyPool(read, size.rows * size.max_length, len(tokens)))
        buffers.set_rules(rules)
        buffers.assign([0, lengths[0]][: len(lengths)], lengths, [steps, steps - 1][: len(lengths)])
        encode_sources(read, own, tokens, positions, max(lengths), buffers)
        both.append(buffers)
    one, other = both
    near(one.memory[: sum(lengths)], other.memory[: sum(lengths)], "memory")
    for _ in range(steps):
        assert one.unfinished > 0
        for own, buffers in zip((TorchOps(), ops), both): decode_step(read, own, buffers)
        for name in ("generated", "done", "unfinished"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name
        near(one.finished, other.finished, "finished")
        near(one.beam_scores, other.beam_scores, "beam_scores")
        alive = one.beam_scores > -torch.inf  # what dead beams hold does not matter
        for name in ("token", "ancestors"):
            assert torch.equal(getattr(one, name)[alive], getattr(other, name)[alive]), name
    assert one.unfinished == 0
    same = torch.arange(steps) < one.finished[:, 1, : rules.nbest].nan_to_num(neginf=0).reshape(-1, 1)
    near(TorchOps().trace(one, steps) * same, ops.trace(other, steps) * same, "trace")

pre, post = (TransformerConfig(**SIZES, norm=norm, tied="none") for norm in ("pre", "post"))
check(Transformer(pre), kernels.LargeBatchOps(), usual, [1, 17], 3)
check(Bart(BartConfig(**SIZES)), kernels.MediumBatchOps(), usual._replace(stop="heuristic", prefix=(7,), renormalize=True), [3], 3)
check(Transformer(post), kernels.SmallBatchOps(), usual._replace(stop="first", nbest=1, beams=2, force_end=True), [2], 3)
check(Bart(BartConfig(**SIZES)), kernels.SmallBatchOps(), usual._replace(beams=1, nbest=1, stop="first", min_length=9), [1], 3)
print("the same")
"""


def test_kernels_give_what_plain_operations_give():
    assert_same(PROGRAM)
