"""The forward pass of one sentence as numbers, recorded from the model's own modules."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from heed.data.batching import collate
from heed.decoding.config import DecodingConfig
from heed.decoding.ranking import PENALTIES
from heed.decoding.sample import filter_top_k_top_p
from heed.models.encoder_decoder import EncoderDecoder
from heed.nn.attention import Attention, mix
from heed.nn.transformer import Layer
from heed.products.translator.attention_trace import search_one
from heed.products.translator.guards import Guards
from heed.products.translator.layer_trace import describe_sublayer, record_layer
from heed.vocabularies.vocabulary import Vocabulary

UNITS = 64  # of each vector; the eye cannot tell more apart
LIKELY = 12  # tokens that are shown for one decoding step
DECIMALS = 4


@dataclass(frozen=True)
class Query:
    """One attention query: `layer`, `head` and `row` from 0."""

    part: Literal["encoder", "decoder", "cross"] = "cross"
    layer: int = 0
    head: int = 0
    row: int = 0


@dataclass(frozen=True)
class Choice:
    """One decoding step (from 0), and sampling settings for it."""

    step: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


@dataclass(frozen=True)
class Token:
    """One token in one layer: `layer` and `row` from 0."""

    part: Literal["encoder", "decoder"] = "encoder"
    layer: int = 0
    row: int = 0


@torch.inference_mode()
def trace(
    guards: Guards,
    text: str,
    given: str | None,
    config: DecodingConfig,
    query: Query | None,
    choice: Choice | None,
    token: Token | None = None,
) -> dict[str, Any]:
    """The first model's forward pass over a text and its translation, its own or a given one, rounded to 4 decimals.

    A recurrent model has embeddings and choices only; `look` shows its states.
    """
    bundle = guards.bundle
    model, special = bundle.model, bundle.special
    source, target = bundle.encode_pairs([bundle.source.clean(text)], [given or ""])[0]
    if given is None:  # the very tokens of the search: its text may be tokenized differently
        target, special = bundle.strip(search_one(guards, source, config, []))
    batch = collate([source], [target], special).to(bundle.device)
    layer = _layer(model, token) if token else None
    attention = _attention(model, query) if query else None
    with record_layer(layer) as sublayers, _record(model, attention) as (calls, kernel_calls):
        output = model.decode(batch.target, model.encode(batch.source), batch.valid)
    result = {
        "encoder": _side(model, calls, bundle.source, batch.source[0].tolist(), first=True),
        "decoder": _side(model, calls, bundle.target, batch.target[0].tolist(), first=False),
        "dim": model.config.dim,
        "scale": float(model.scale),
        "score": _score(model.project(output[0]), [*target, special[1].last], config),
    }
    if query:
        result["query"] = _query(*kernel_calls[0], query)
    if token:
        _within("row", token.row, len(result[token.part]["ids"]))
        result["token"] = [describe_sublayer(name, own, token.row) for name, own in sublayers.items()]
    if choice:
        result["choice"] = _choice(bundle.target, model.project(output[0]), choice)
    return result


def _score(logits: Tensor, ids: list[int], config: DecodingConfig) -> dict[str, float]:
    """The score of a hypothesis: the log probability of the tokens after the forced ones, over the length penalty."""
    logp = logits.log_softmax(dim=-1)[-len(ids) :]
    total = float(sum(logp[row, token] for row, token in enumerate(ids)))
    penalty = PENALTIES[config.penalty](len(ids), config.length_penalty)
    return {"logp": round(total, 4), "penalty": round(penalty, 4), "score": round(total / penalty, 4)}


@contextmanager
def _record(model: nn.Module, attention: Attention | None) -> Iterator[tuple[dict[nn.Module, list], list]]:
    """Records (first argument, output) of the calls of embeddings, positions and layers, and the arguments of an attention kernel."""
    modules = [model.source_tokens, model.tokens]
    if isinstance(model, EncoderDecoder):
        modules += [model.source_positions, model.positions, *model.encoder.layers, *model.decoder.layers]
    calls: dict[nn.Module, list] = {module: [] for module in modules if module is not None}
    kernel_calls, kernel = [], attention and attention.kernel

    def record_call(module: nn.Module, args: tuple, output: Tensor) -> None:
        calls[module].append((args[0], output))

    def recording_kernel(*qkv: Tensor, **options: Any) -> Tensor:
        kernel_calls.append((qkv, options))
        return kernel(*qkv, **options)

    with ExitStack() as stack:
        for module in calls:
            stack.enter_context(module.register_forward_hook(record_call))
        if attention is not None:
            stack.callback(setattr, attention, "kernel", kernel)
            attention.kernel = recording_kernel
        yield calls, kernel_calls


def _side(model: nn.Module, calls: dict, vocabulary: Vocabulary, ids: list[int], first: bool) -> dict[str, Any]:
    """The encoder (`first`) or the decoder: tokens, embeddings, and of a Transformer positions and the states of all layers."""
    at = 0 if first else -1  # a table that both share is called by the encoder first
    embedded = calls[(first and model.source_tokens) or model.tokens][at][1] * model.scale
    result = {"tokens": vocabulary.pieces(ids), "ids": ids, "embeddings": _rounded(embedded[0, :, :UNITS])}
    if not isinstance(model, EncoderDecoder):
        return result
    positions = calls[(first and model.source_positions) or model.positions][at][1]
    layers = (model.encoder if first else model.decoder).layers
    states = [calls[layers[0]][0][0], *(calls[layer][0][1] for layer in layers)]
    shown = [_rounded(state[0, :, :UNITS]) for state in states]
    return {**result, "positions": _rounded(positions[:, :UNITS]), "layers": shown}


def _layer(model: nn.Module, token: Token) -> Layer:
    if not isinstance(model, EncoderDecoder):
        raise ValueError(f"a {type(model).__name__} has no attention or feed-forward layers; inspect its states")
    layers = (model.encoder if token.part == "encoder" else model.decoder).layers
    _within("layer", token.layer, len(layers))
    return layers[token.layer]


def _attention(model: nn.Module, query: Query) -> Attention:
    if not isinstance(model, EncoderDecoder):
        raise ValueError(f"a {type(model).__name__} has no attention heads; inspect its states")
    layers = (model.encoder if query.part == "encoder" else model.decoder).layers
    _within("layer", query.layer, len(layers))
    layer = layers[query.layer]
    body = (layer.cross if query.part == "cross" else layer.attention).body
    if not isinstance(body, Attention):
        raise ValueError(
            f"layer {query.layer + 1} of the {query.part} has a {type(body).__name__} instead of attention"
        )
    return body


def _query(qkv: tuple[Tensor, Tensor, Tensor], options: dict[str, Any], query: Query) -> dict[str, Any]:
    """Equations (1) and (2) for one query of one head."""
    _, heads, queries, width = qkv[0].shape
    _within("head", query.head, heads)
    _within("row", query.row, queries)
    q, k, v = (part[0, query.head] for part in qkv)
    q = q[query.row]
    scores = k @ q / math.sqrt(width)
    mask = torch.arange(len(k), device=k.device) <= (query.row if options["causal"] else len(k))
    if options["mask"] is not None:
        mask &= options["mask"].expand(1, heads, queries, len(k))[0, query.head, query.row]
    mixed, weights = mix(scores, v, mask)
    return {
        "q": _rounded(q), "k": _rounded(k), "v": _rounded(v), "scores": _rounded(scores), "mask": mask.tolist(),
        "weights": _rounded(weights), "mixed": _rounded(mixed), "width": width,
    }  # fmt: skip


def _choice(vocabulary: Vocabulary, logits: Tensor, choice: Choice) -> dict[str, Any]:
    """The most likely next tokens, with their probabilities before and after the sampling settings."""
    _within("step", choice.step, len(logits))
    if not 1e-6 <= choice.temperature < math.inf or not 0 < choice.top_p <= 1 or choice.top_k < 0:
        raise ValueError(
            f"temperature is {choice.temperature}, top_k {choice.top_k}, top_p {choice.top_p}; they must be above 0, "
            "at least 0 (0: all), and above 0 and at most 1"
        )
    logits = logits[choice.step].double()
    plain = logits.softmax(dim=-1)
    warm = (logits[None] / choice.temperature).log_softmax(dim=-1)
    sampled = filter_top_k_top_p(warm, choice.top_k, choice.top_p)[0].softmax(dim=-1)
    top = plain.topk(min(LIKELY, len(plain))).indices.tolist()
    names = [vocabulary.pieces([token])[0] for token in top]
    return {
        "step": choice.step,
        "likely": [[name, float(plain[i]), float(sampled[i])] for name, i in zip(names, top, strict=True)],
        "possible": int((sampled > 0).sum()),
        "entropy": float(torch.special.entr(plain).sum()),
    }


def _within(name: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise ValueError(f"{name} is {value}; there are {count}, counted from 0")


def _rounded(numbers: Tensor) -> list:
    return [
        [round(x, DECIMALS) for x in row] if isinstance(row, list) else round(row, DECIMALS)
        for row in numbers.double().tolist()
    ]
