"""A text inside a model: the attention of every head and, for a language model, the likely tokens at each position."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from heed.lab.head_roles import self_roles
from heed.nn.attention import record
from heed.vocabularies.vocabulary import Vocabulary

DECIMALS = 4


@dataclass(frozen=True, eq=False)
class TextTrace:
    """`inputs` are the tokens that were read, starting with the one before the text; for each, the likely next
    tokens. An encoder has no scores and no predictions.
    """

    text: str
    inputs: list[str]
    ids: list[int]
    attention: (
        np.ndarray
    )  # (layers, heads, t, t), rows attend to columns; no layers without attention, nothing on a learned prompt
    scores: list[float]  # the log-probability of each token but the first
    predictions: list[list[tuple[str, float]]]
    model: str

    def to_json(self) -> str:
        """Attention weights are rounded to 4 decimals, the rest is exact; "roles" say what each head does."""
        data = {**vars(self), "attention": np.round(self.attention.astype(np.float64), DECIMALS).tolist()}
        data["roles"] = self_roles(self.attention, self.inputs, causal=bool(self.predictions))
        return json.dumps({"format": 1, **data}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@torch.inference_mode()
def trace_text(
    model: nn.Module, vocabulary: Vocabulary, text: str, ids: Sequence[int], likely: int, name: str
) -> TextTrace:
    """Trace a text through a model; the first of `ids` is only read."""
    tokens = torch.tensor([ids], device=next(model.parameters()).device)
    with record(model) as maps:
        hidden = model.hidden_states(tokens, model.start(1))
    size = len(ids)
    attention = torch.cat(maps).float().cpu().numpy() if maps else np.zeros((0, 0, size, size), np.float32)
    attention = attention[..., -size:, -size:]
    logp = model.project(hidden)[0].double().log_softmax(dim=-1).cpu()
    best, which = logp.exp().topk(min(likely, logp.shape[-1]))
    scores = [float(logp[i, token]) for i, token in enumerate(ids[1:])]
    predictions = [
        [(vocabulary.pieces([token])[0], p) for token, p in zip(*row, strict=True)]
        for row in zip(which.tolist(), best.tolist(), strict=True)
    ]
    return TextTrace(text, vocabulary.pieces(ids), list(ids), attention, scores, predictions, name)


@torch.inference_mode()
def trace_encoder(model: nn.Module, vocabulary: Vocabulary, text: str, ids: Sequence[int], name: str) -> TextTrace:
    """The attention of each token of a text in an encoder; `ids` include the special tokens."""
    size = len(ids)
    with record(model) as maps:
        model.encode_text(torch.tensor([ids], device=next(model.parameters()).device))
    attention = torch.cat([own[..., :size, :size] for own in maps]).float().cpu().numpy()
    return TextTrace(text, vocabulary.pieces(ids), list(ids), attention, [], [], name)
