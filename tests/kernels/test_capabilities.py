"""Fast paths serve classes that declare them, and no subclass of these: it may compute something else."""

import pytest
from torch import nn

from heed.decoding.cuda import weights
from heed.kernels import fused_model, fused_stack
from heed.models.bart import Bart, BartConfig
from heed.models.m2m100 import M2M100, M2M100Config
from heed.models.marian import Marian, MarianConfig
from heed.models.mbart import MBart, MBartConfig
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.attention import Attention
from heed.nn.capabilities import declares
from heed.nn.transformer import MLP, Layer, PostNorm, Stack

SIZES = {"vocab_size": 20, "dim": 32, "heads": 2, "hidden": 40, "encoder_layers": 1, "decoder_layers": 1}
CHECKS = [fused_model.supports, fused_model.supports_packing, weights.supports]


class OtherForward(Transformer):
    def forward(self, source, target, valid=None):
        return -super().forward(source, target, valid)


class OtherEncode(Transformer):
    def encode(self, source, valid=None):
        return -super().encode(source, valid)


class Declared(OtherEncode):
    capabilities = ("packed",)


class OtherNorm(nn.LayerNorm):
    def forward(self, x):
        return -super().forward(x)


def model(kind=Transformer):
    return kind(TransformerConfig(**SIZES))


@pytest.mark.parametrize("check", CHECKS)
def test_a_subclass_that_computes_something_else_is_refused(check):
    assert check(model())
    assert not check(model(OtherForward))
    assert not check(model(OtherEncode))


def test_a_subclass_may_declare_capabilities_itself():
    assert declares(model(Declared), "packed") and not declares(model(Declared), "fused")
    assert fused_model.supports_packing(model(Declared)) and not fused_model.supports(model(Declared))


@pytest.mark.parametrize(
    ("kind", "config"),
    [(Bart, BartConfig), (Marian, MarianConfig), (Pegasus, PegasusConfig), (M2M100, M2M100Config)],
    ids=lambda x: x.__name__,
)
def test_models_declare_what_they_support(kind, config):
    made = kind(config(**SIZES))
    assert all(check(made) for check in CHECKS)


def test_mbart_is_trained_fast_and_searched_by_torch():
    made = MBart(MBartConfig(**SIZES))
    assert [check(made) for check in CHECKS] == [True, True, False]


def test_heads_of_another_width_are_packed_and_not_fused():
    changed = model()
    for layer in (*changed.encoder.layers, *changed.decoder.layers):
        for part in layer.sublayers():
            if isinstance(part.body, Attention):
                part.body = Attention(changed.config.dim, changed.config.heads, head_dim=32)
    assert [check(changed) for check in CHECKS] == [False, True, False]


def test_a_model_without_positions_is_trained_and_searched_fast():
    made = Transformer(TransformerConfig(**SIZES, positions="none"))
    assert all(check(made) for check in CHECKS)


@pytest.mark.parametrize("kind", [Stack, Layer, PostNorm, Attention, MLP])
def test_a_subclass_of_any_part_is_refused(kind):
    changed = model()
    part = next(part for part in changed.modules() if type(part) is kind)
    part.__class__ = type("Other", (kind,), {})
    for check in (*CHECKS, fused_stack.supports, fused_stack.supports_packing):
        assert not check(changed), check


@pytest.mark.parametrize("check", [fused_model.supports, weights.supports])
def test_another_norm_is_refused(check):
    changed, bart = model(), Bart(BartConfig(**SIZES))
    changed.decoder.layers[0].mlp.norm = bart.source_norm = OtherNorm(32)
    assert not check(changed) and not check(bart)
