"""Token probabilities of a text under a language model. The first token of each text is only read."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from heed.data.streams import IGNORED
from heed.evaluation.perplexity import token_nll
from heed.lab.surprisal import Surprisal, TokenSurprisal
from heed.models.outputs import check_outputs
from heed.vocabularies.vocabulary import Vocabulary


@torch.inference_mode()
def token_logprobs(model: nn.Module, texts: Sequence[Sequence[int]], pad: int) -> list[list[float]]:
    """The log probability of each token of a batch of texts but the first."""
    width, device = max(map(len, texts)), next(model.parameters()).device
    tokens = torch.tensor([[*text[:-1], *[pad] * (width - len(text))] for text in texts], device=device)
    expected = torch.tensor([[*text[1:], *[IGNORED] * (width - len(text))] for text in texts], device=device)
    nll = token_nll(model, model.hidden_states(tokens, model.start(len(texts))), expected).cpu()
    check_outputs(nll, infinite=True)
    return [[-value for value in row[: len(text) - 1]] for row, text in zip(nll.tolist(), texts, strict=True)]


@torch.inference_mode()
def surprisal(
    model: nn.Module, vocabulary: Vocabulary, text: str, ids: Sequence[int], likely: int, name: str
) -> Surprisal:
    """The surprisal of each token of a text but the first, and the `likely` most likely tokens there and after the
    last.
    """
    first, *rest = ids
    tokens = torch.tensor([[first, *rest]], device=next(model.parameters()).device)
    logits = model.project(model.hidden_states(tokens, model.start(1)))[0]
    logp = logits.double().log_softmax(dim=-1).cpu()
    best, which = logp.exp().topk(min(likely, logp.shape[-1]))
    pieces, positions = vocabulary.pieces(rest), []
    for i, (candidates, odds) in enumerate(zip(which.tolist(), best.tolist(), strict=True)):
        candidates = [(vocabulary.pieces([k])[0], p) for k, p in zip(candidates, odds, strict=True)]
        if i == len(rest):  # after the last token
            positions.append(TokenSurprisal(None, None, None, candidates))
            continue
        bits, rank = -logp[i, rest[i]].item() / math.log(2), int((logp[i] > logp[i, rest[i]]).sum()) + 1
        positions.append(TokenSurprisal(pieces[i], bits, rank, candidates))
    return Surprisal(name, text, positions)
