"""The rule that prevents loops in a search (`heed.decoding.loops`)."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heed.decoding.limits import Rule
from heed.decoding.loops import MAX_PERIOD, Repeats, TokenKinds, allowed_rows


def no_loops(kinds: TokenKinds, sources: Sequence[Repeats]) -> Rule:
    """Ban the token that would complete a loop; `sources[i]` are the repeats of the source of sentence i."""
    every = [allowed_rows(period, sources) for period in range(1, MAX_PERIOD + 1)]
    on_device: dict[torch.device, list[Tensor]] = {}

    def rule(banned: Bool[Tensor, "r vocab"], tokens: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        if tokens.device not in on_device:
            tables = [np.stack(every), *kinds]
            on_device[tokens.device] = [torch.from_numpy(table).to(tokens.device) for table in tables]
        allowed, letters, starts, syllables = on_device[tokens.device]
        has_letters, size = letters[tokens], tokens.shape[1]
        for period in range(1, min(MAX_PERIOD, size // 2) + 1):
            same = tokens[:, period:] == tokens[:, : size - period]
            run = same.flip(1).cumprod(dim=1).sum(dim=1)
            lettered = has_letters[:, size - period :].any(dim=1)
            most = torch.where(lettered, *allowed[period - 1, sentence].flip(1).unbind(1))
            rows = (run + 1 >= period * most).nonzero()[:, 0]
            banned[rows, tokens[rows, size - period]] = True
        in_word = starts[tokens].flip(1).cumsum(dim=1).flip(1) - starts[tokens].int() == 0  # none begins after it
        counts = torch.zeros_like(banned, dtype=torch.int).scatter_add_(1, tokens, (in_word & syllables[tokens]).int())
        banned |= (counts >= allowed[0, sentence, 1][:, None]) & ~starts  # one that begins a word is in the next

    return rule
