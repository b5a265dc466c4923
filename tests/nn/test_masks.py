import torch

from heed.nn import masks


def seen(mask, q):
    return mask[q].nonzero().flatten().tolist()


def test_the_last_query_stands_at_the_last_key():
    mask = masks.draw(masks.causal(), 2, 5)
    assert seen(mask, 0) == [0, 1, 2, 3]
    assert seen(mask, 1) == [0, 1, 2, 3, 4]


def test_a_pattern_is_asked_for_every_two_positions():
    mask = masks.draw(lambda q, k: (q - k).abs() <= 1, 4, 4)
    assert [seen(mask, q) for q in range(4)] == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3]]


def test_padding():
    assert masks.of_lengths(torch.tensor([1, 3]), 3).tolist() == [[True, False, False], [True, True, True]]


def test_every_query_sees_the_keys_that_are_tokens():
    valid = torch.tensor([[True, False], [True, True]])
    assert masks.of_keys(valid).expand(2, 3, 4, 2)[0, 2, 3].tolist() == [True, False]
    assert masks.of_keys(None) is None
