"""Explanations of recommendations: attention over the history, and the influence of each item on the score."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from heed.nn.attention import record
from heed.vocabularies.ragged import RaggedRows, as_ragged


class HistoryTrace(NamedTuple):
    """`attention` is that of the position where the next item is predicted: one for all recommendations, and 0 for
    items too old to be read. `influence` is how much the score of each recommendation falls without each item of the
    history, compared with the mean score of all items.
    """

    attention: Float[Tensor, "layers heads n"]
    influence: Float[Tensor, "k n"]


@torch.inference_mode()
def trace_history(
    model: Any, states: Callable[[RaggedRows], Tensor], history: Sequence[int], items: Sequence[int], longest: int
) -> HistoryTrace:
    """Explain recommendations of `items` after a history; the model reads its last `longest` items."""
    read = list(history[-longest:])
    asked = [*read, model.mask] if model.fills_masks else read
    with record(model) as maps:
        model.item_states(torch.tensor([asked], device=model.items.weight.device))
    attention = torch.stack([own[0, :, -1, : len(read)] for own in maps]).float().cpu()
    unread = len(history) - len(read)
    return HistoryTrace(
        torch.nn.functional.pad(attention, (unread, 0)), _influence(model, states, history, items, longest)
    )


def _influence(
    model: Any, states: Callable[[RaggedRows], Tensor], history: Sequence[int], items: Sequence[int], longest: int
) -> Float[Tensor, "k n"]:
    recent = list(history[-longest - 1 :])  # the first is read when one of the others is not there
    without = [recent[:place] + recent[place + 1 :] for place in range(len(recent))]
    rows = [recent, *(row for row in without if row)]
    scores = _above_mean(model, states(as_ragged(rows)), items)
    if len(history) == 1:  # without it there is nothing to go by, and no item is above the mean
        return scores[:1].T.float().cpu()
    found = (scores[:1] - scores[1:]).T.float().cpu()
    return torch.nn.functional.pad(found, (len(history) - len(recent), 0))


def _above_mean(model: Any, states: Tensor, items: Sequence[int]) -> Float[Tensor, "n k"]:
    """The scores of some items minus the mean of all: a shift of all scores does not change the order."""
    weight, bias = model.item_weights()
    chosen = torch.tensor(list(items), device=weight.device)
    found = states @ (weight[chosen] - weight.mean(dim=0)).T
    return found if bias is None else found + bias[chosen] - bias.mean()
