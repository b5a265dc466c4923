import torch

from heed.nn import cache as cache_module
from heed.nn.cache import Cache, DecoderState, LayerCache, StackCache


def keys_and_values(rows=2, length=3):
    return torch.randn(rows, 2, length, 4), torch.randn(rows, 2, length, 4)


def test_keys_and_values_are_kept_in_order():
    cache, (k, v) = Cache(), keys_and_values()
    for t in range(3):
        assert len(cache) == t
        keys, values = cache.append(k[:, :, t : t + 1], v[:, :, t : t + 1])
    assert torch.equal(keys, k)
    assert torch.equal(values, v)


@torch.inference_mode()
def test_room_after_the_keys_changes_nothing(monkeypatch):
    monkeypatch.setattr(cache_module, "ROOM", 3)
    cache, (k, v), seen = Cache(), keys_and_values(3, 20), []
    order = torch.tensor([2, 0, 0])
    for t in range(20):
        cache.append(k[:, :, t : t + 1], v[:, :, t : t + 1])
        if t in (4, 9):
            cache.reorder(order)
            k, v = (torch.cat([part[order, :, : t + 1], part[:, :, t + 1 :]], dim=2) for part in (k, v))
        if t == 12:
            cache.drop(2)
        first = 2 if t >= 12 else 0
        seen.append((cache.k, cache.k.clone()))
        assert torch.equal(cache.k, k[:, :, first : t + 1]) and torch.equal(cache.v, v[:, :, first : t + 1])
    assert all(torch.equal(held, then) for held, then in seen), "what was returned stays as it was"
    assert len({held.data_ptr() for held, _ in seen}) < 12, "not all are copied at each step"


def test_caches_of_inference_can_be_used_outside_of_it_and_gradients_flow():
    cache, (k, v) = Cache(), keys_and_values()
    with torch.inference_mode():
        for t in range(2):
            cache.append(k[:, :, t : t + 1], v[:, :, t : t + 1])
    keys, _ = cache.append(k[:, :, 2:].requires_grad_(), v[:, :, 2:])
    assert torch.equal(keys, k) and keys.requires_grad


def test_an_empty_cache_is_still_a_cache():
    assert len(Cache()) == 0
    assert Cache()


def test_every_layer_has_its_own_caches():
    stack = StackCache(2)
    assert [type(layer) for layer in stack] == [LayerCache] * 2
    stack[0].attention.append(*keys_and_values())
    assert (stack.length, len(stack[0].cross), len(stack[1].attention)) == (3, 0, 0)


def test_reordering_a_state_reorders_all_it_holds():
    stack, caches = StackCache(2), []
    for layer in stack:
        for cache, length in ((layer.attention, 3), (layer.cross, 5)):
            caches.append((cache, cache.append(*keys_and_values(2, length))))
    memory, valid, rows = (
        torch.randn(2, 5, 8),
        torch.tensor([[True] * 5, [True] * 4 + [False]]),
        torch.tensor([1, 1, 0]),
    )
    state = DecoderState(memory, valid, stack)
    state.reorder(rows)
    assert torch.equal(state.memory, memory[rows])
    assert torch.equal(state.valid, valid[rows])
    for cache, (k, v) in caches:
        assert torch.equal(cache.k, k[rows])
        assert torch.equal(cache.v, v[rows])


def test_empty_caches_are_not_reordered():
    state = DecoderState(torch.randn(2, 5, 8), None, StackCache(1))
    state.reorder(torch.tensor([1]))
    assert (len(state.memory), state.valid, state.cache.length) == (1, None, 0)
