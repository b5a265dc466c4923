import torch

from heed.nn import masks


def seen(mask, q):
    return mask[q].nonzero().flatten().tolist()


def test_the_last_query_is_at_the_last_key():
    mask = masks.build(masks.causal(), 2, 5)
    assert seen(mask, 0) == [0, 1, 2, 3]
    assert seen(mask, 1) == [0, 1, 2, 3, 4]


def test_a_pattern_is_evaluated_for_every_pair_of_positions():
    mask = masks.build(lambda q, k: (q - k).abs() <= 1, 4, 4)
    assert [seen(mask, q) for q in range(4)] == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3]]


def test_lengths_become_a_mask():
    assert masks.from_lengths(torch.tensor([1, 3]), 3).tolist() == [[True, False, False], [True, True, True]]


def test_every_query_sees_the_keys_that_are_tokens():
    valid = torch.tensor([[True, False], [True, True]])
    assert masks.key_padding(valid).expand(2, 3, 4, 2)[0, 2, 3].tolist() == [True, False]
    assert masks.key_padding(None) is None
