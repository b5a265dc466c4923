"""Rows of a weight table that split, transpose and share tensors: both directions to the bit, and the words of errors."""

import pytest
import torch
from torch import nn

from heed.convert.weight_table import WeightTable, one_row, same, transposed

DIM, LAYERS = 6, 3
FUSED = (
    ("tokens", ("transformer.wte", "lm_head")),
    ("layers.{}.attention.body.{q,k,v}", "transformer.h.{}.attn.c_attn", transposed),
    ("layers.{}.attention.body.out", "transformer.h.{}.attn.c_proj", transposed),
    ("layers.{}.norm", "transformer.h.{}.ln_1"),
)
GROUP = "encoder.albert_layer_groups.0.albert_layers.0"
SHARED = (
    ("layers.{}.attention.body.q", f"{GROUP}.attention.query"),
    ("layers.{}.attention.body.{k,v}", f"{GROUP}.attention.key_value"),
    ("layers.{}.norm", f"{GROUP}.full_layer_layer_norm"),
)


def numbers(*shape):
    return torch.randn(shape)


def fused(layers=12):
    """Weights as a GPT-2 has them: matrices of x @ w, and one for queries, keys and values."""
    weights = {"transformer.wte.weight": numbers(11, DIM)}
    for i in range(layers):
        at = f"transformer.h.{i}"
        weights |= {f"{at}.attn.c_attn.weight": numbers(DIM, 3 * DIM), f"{at}.attn.c_attn.bias": numbers(3 * DIM)}
        weights |= {f"{at}.attn.c_proj.weight": numbers(DIM, DIM), f"{at}.attn.c_proj.bias": numbers(DIM)}
        weights |= {f"{at}.ln_1.weight": numbers(DIM), f"{at}.ln_1.bias": numbers(DIM)}
    return weights


def separate(layers, parts="qkv", more=("attention.body.out.weight", "attention.body.out.bias")):
    """The names of our model."""
    names = [f"attention.body.{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    return [f"layers.{i}.{name}" for i in range(layers) for name in (*names, *more, "norm.weight", "norm.bias")]


OURS = ["tokens.weight", *separate(12)]


def equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor), name


def test_a_fused_projection_becomes_queries_keys_and_values_that_compute_the_same():
    theirs = fused()
    ours = WeightTable(*FUSED).to_ours(theirs, OURS)
    x = numbers(4, DIM)
    for i in range(12):
        weight, bias = (theirs[f"transformer.h.{i}.attn.c_attn.{kind}"] for kind in ("weight", "bias"))
        expected = (x @ weight + bias).split(DIM, dim=1)
        for part, value in zip("qkv", expected, strict=True):
            at = f"layers.{i}.attention.body.{part}"
            torch.testing.assert_close(nn.functional.linear(x, ours[f"{at}.weight"], ours[f"{at}.bias"]), value)
    assert all(tensor.is_contiguous() for tensor in ours.values())


def test_fused_weights_come_back_to_the_bit():
    theirs = fused()
    table = WeightTable(*FUSED)
    equal(table.to_theirs(table.to_ours(theirs, OURS)), theirs)


def test_separate_weights_come_back_to_the_bit():
    ours = {name: numbers(DIM, DIM) if name.endswith("weight") else numbers(DIM) for name in OURS}
    table = WeightTable(*FUSED)
    theirs = table.to_theirs(ours)
    assert theirs["transformer.h.3.attn.c_attn.weight"].shape == (DIM, 3 * DIM)
    assert all(tensor.is_contiguous() for tensor in theirs.values())
    equal(table.to_ours(theirs, OURS), ours)


def test_a_prefix_may_be_missing_in_names_that_are_split():
    theirs, table = fused(), WeightTable(*FUSED, prefix="transformer.", ignore=("*.attn.bias",))
    short = {name.removeprefix("transformer."): tensor for name, tensor in theirs.items()}
    short |= {"h.0.attn.bias": torch.ones(1, 1, 4, 4), "lm_head.weight": theirs["transformer.wte.weight"].clone()}
    equal(table.to_ours(short, OURS), table.to_ours(theirs, OURS))


@pytest.mark.parametrize("shape", [(DIM, 3 * DIM + 1), (), (DIM, 2)])
def test_a_tensor_that_does_not_split_is_refused_with_its_shape(shape):
    theirs = fused() | {"transformer.h.7.attn.c_attn.weight": numbers(*shape)}
    with pytest.raises(ValueError) as error:
        WeightTable(*FUSED).to_ours(theirs, OURS)
    assert str(error.value) == (
        f"transformer.h.7.attn.c_attn.weight has shape {shape}, which does not split into 3 equal parts for "
        "layers.{}.attention.body.q, layers.{}.attention.body.k, layers.{}.attention.body.v"
    )


def test_a_missing_fused_tensor_is_named_once():
    theirs = fused()
    del theirs["transformer.h.7.attn.c_attn.weight"]
    with pytest.raises(ValueError, match=r"the weights lack transformer\.h\.7\.attn\.c_attn\.weight: they belong to"):
        WeightTable(*FUSED).to_ours(theirs, OURS)


def test_a_fused_tensor_of_which_our_model_has_no_part_is_unknown():
    names = [name for name in OURS if not name.endswith("body.k.bias")]
    with pytest.raises(
        ValueError, match=r"the weights hold transformer\.h\.0\.attn\.c_attn\.bias, .* and 9 more, which"
    ):
        WeightTable(*FUSED).to_ours(fused(), names)


def test_parts_that_are_missing_or_differ_in_shape_are_not_joined():
    table = WeightTable(*FUSED)
    ours = table.to_ours(fused(), OURS)
    name = "layers.2.attention.body.k.bias"
    with pytest.raises(ValueError) as error:
        table.to_theirs(ours | {name: numbers(DIM + 1)})
    parts = [f"layers.2.attention.body.{part}.bias" for part in "qkv"]
    assert str(error.value) == (
        "transformer.h.2.attn.c_attn.bias is joined from equal parts, but their shapes differ: "
        f"{parts[0]} (6,), {parts[1]} (7,), {parts[2]} (6,)"
    )
    del ours[name]
    message = rf"h\.2\.attn\.c_attn\.bias is joined from .*, but there is only {parts[0]}, {parts[2]}$"
    with pytest.raises(ValueError, match=message):
        table.to_theirs(ours)


def shared():
    return {
        f"{GROUP}.attention.query.weight": numbers(DIM, DIM), f"{GROUP}.attention.query.bias": numbers(DIM),
        f"{GROUP}.attention.key_value.weight": numbers(2 * DIM, DIM), f"{GROUP}.attention.key_value.bias": numbers(2 * DIM),
        f"{GROUP}.full_layer_layer_norm.weight": numbers(DIM), f"{GROUP}.full_layer_layer_norm.bias": numbers(DIM),
    }  # fmt: skip


def test_layers_that_share_their_weights_all_get_them_and_they_are_written_once():
    theirs, table, names = shared(), WeightTable(*SHARED), separate(LAYERS, more=())
    ours = table.to_ours(theirs, names)
    assert sorted(ours) == sorted(names)
    for i in range(LAYERS):
        assert torch.equal(ours[f"layers.{i}.attention.body.q.weight"], theirs[f"{GROUP}.attention.query.weight"])
        assert torch.equal(ours[f"layers.{i}.attention.body.v.bias"], theirs[f"{GROUP}.attention.key_value.bias"][DIM:])
    equal(table.to_theirs(ours), theirs)
    equal(table.to_ours(table.to_theirs(ours), names), ours)


def test_layers_that_differ_where_they_must_share_are_refused():
    table, names = WeightTable(*SHARED), separate(LAYERS, more=())
    ours = table.to_ours(shared(), names)
    name = "layers.2.attention.body.v.weight"
    with pytest.raises(ValueError) as error:
        table.to_theirs(ours | {name: ours[name] + 1e-6})
    assert str(error.value) == (
        f"{name} and layers.0.attention.body.v.weight differ, but {GROUP}.attention.key_value.weight is shared by all layers"
    )


def test_a_shared_tensor_that_is_missing_is_named_once():
    theirs = shared()
    del theirs[f"{GROUP}.attention.query.bias"]
    with pytest.raises(ValueError, match=rf"the weights lack {GROUP}\.attention\.query\.bias: they belong to another"):
        WeightTable(*SHARED).to_ours(theirs, separate(LAYERS, more=()))


def test_another_group_than_the_one_of_the_table_is_unknown():
    other = f"{GROUP.replace('groups.0', 'groups.1')}.attention.query.weight"
    with pytest.raises(ValueError, match=rf"the weights hold {other}, which this model does not have"):
        WeightTable(*SHARED).to_ours(shared() | {other: numbers(DIM, DIM)}, separate(LAYERS, more=()))


@pytest.mark.parametrize(
    ("layout", "shape"), [(same, (4, 5)), (one_row, (1, 7)), (transposed, (4, 5)), (transposed, (7,))]
)
def test_a_layout_is_reversible(layout, shape):
    tensor = numbers(*shape)
    assert torch.equal(layout.theirs(layout.ours(tensor)), tensor)


def test_a_row_whose_numbers_do_not_match_is_a_mistake_of_ours():
    with pytest.raises(AssertionError):
        WeightTable(("layers.{}.parts.{}.q", "h.{}.q"))
