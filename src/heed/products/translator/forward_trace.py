"""One sentence on its way through the machine, as numbers: embeddings, positions, layers, one query, one choice."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from heed.data.batching import Batch, collate
from heed.decoding.sample import trimmed
from heed.models.encoder_decoder import EncoderDecoder
from heed.nn import masks
from heed.nn.attention import Attention, mix
from heed.nn.transformer import PreNorm
from heed.products.translator.attention_trace import searched

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator

UNITS = 64  # of each vector; more are not told apart by eye
LIKELY = 12
DECIMALS = 4


@dataclass(frozen=True)
class Query:
    """Which query is asked for: `layer`, `head` and `row` from 0."""

    part: Literal["encoder", "decoder", "cross"] = "cross"
    layer: int = 0
    head: int = 0
    row: int = 0


@dataclass(frozen=True)
class Choice:
    """Which step of writing (from 0), and how it would be drawn from."""

    step: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


@torch.inference_mode()
def walk(
    translator: "Translator",
    text: str,
    translation: str | None = None,
    *,
    beam: int | None = None,
    query: Query | None = None,
    choice: Choice | None = None,
) -> dict[str, Any]:
    """What the first model makes of a text and its translation, its own or a given one: numbers, rounded to 4 decimals.

    A recurrent model has embeddings and choices; what it has instead of layers `look` tells.
    """
    model = translator.model
    source, target = translator.encode_pairs([translator.source.clean(text)], [translation or ""])[0]
    marks = translator.marks
    if translation is None:  # the very tokens of the search: written out and read again they may be others
        config = replace(translator.decoding, beam=beam or translator.decoding.beam)
        target, marks = translator.stripped(searched(translator, source, config, []))
    batch = collate([source], [target], marks).to(translator.device)
    sides, memory, said = _through(model, batch)
    pieces = translator.source.pieces(batch.source[0].tolist()), translator.target.pieces(batch.target[0].tolist())
    found = {
        name: {"tokens": own, "ids": side.tokens[0].tolist(), **side.told()}
        for name, own, side in zip(("encoder", "decoder"), pieces, sides, strict=True)
    }
    found |= {"dim": model.config.dim, "scale": float(model.scale)}
    if query:
        found["query"] = _asked(model, sides[query.part != "encoder"], memory, query)
    if choice:
        found["choice"] = _chosen(translator, model.project(said[0]), choice)
    return found


def _through(model: nn.Module, batch: Batch) -> tuple[tuple["_Words", "_Words"], Tensor | None, Tensor]:
    """Both sides, the memory, and what the decoder says at each place."""
    tables = model.source_tokens or model.tokens, model.tokens
    if not isinstance(model, EncoderDecoder):
        own = (batch.source, batch.target)
        words = [_Words(table, model.scale, tokens) for table, tokens in zip(tables, own, strict=True)]
        return tuple(words), None, model.trace(batch.source, batch.target, batch.valid).said
    sides = _Side(model, tables[0], batch.source, None), _Side(model, tables[1], batch.target, batch.valid)
    memory = sides[0].run(None)
    return sides, memory, sides[1].run(memory)


class _Words:
    """Tokens and their embeddings."""

    def __init__(self, table: nn.Embedding, scale: float, tokens: Tensor):
        self.tokens, self.embedded = tokens, (table(tokens) * scale)[0]

    def told(self) -> dict[str, Any]:
        return {"embeddings": _rows(self.embedded)}


class _Side(_Words):
    """The encoder or (with `valid` of the source) the decoder, layer by layer."""

    def __init__(self, model: EncoderDecoder, table: nn.Embedding, tokens: Tensor, valid: Tensor | None):
        super().__init__(table, model.scale, tokens)
        self.valid, self.writes = valid, valid is not None
        self.stack = model.decoder if self.writes else model.encoder
        places = model.positions if self.writes else model.source_positions or model.positions
        norm = model.norm if self.writes else model.source_norm or model.norm
        self.places = places(0, tokens.shape[1])
        x = (self.embedded + self.places)[None]
        self.states = [x if norm is None else norm(x)]

    def run(self, memory: Tensor | None) -> Tensor:
        limits = {"causal": True, "memory_mask": masks.key_padding(self.valid)} if self.writes else {}
        for layer in self.stack.layers:
            self.states.append(layer(self.states[-1], memory, **limits))
        return self.states[-1] if self.stack.norm is None else self.stack.norm(self.states[-1])

    def told(self) -> dict[str, Any]:
        return {
            **super().told(),
            "positions": _rows(self.places),
            "layers": [_rows(state[0]) for state in self.states],
        }


def _asked(model: nn.Module, side: _Words, memory: Tensor | None, query: Query) -> dict[str, Any]:
    """Equations (1) and (2) for one query of one head."""
    if not isinstance(side, _Side):
        raise ValueError(f"a {type(model).__name__} has no heads, whose queries could be asked for; look at its states")
    layers = side.stack.layers
    _within("layer", query.layer, len(layers))
    layer, x = layers[query.layer], side.states[query.layer]
    around = layer.attention
    if query.part == "cross":
        x, around = layer.attention(x, causal=True), layer.cross
    body = around.body
    if not isinstance(body, Attention):
        raise ValueError(f"the {query.part} does not attend in layer {query.layer + 1}: it has a {type(body).__name__}")
    x = around.norm(x) if isinstance(around, PreNorm) else x
    keys = memory if query.part == "cross" else x
    _within("head", query.head, _heads(body))
    _within("row", query.row, x.shape[1])
    q, k, v = (body._split(part(own))[0, query.head] for part, own in ((body.q, x), (body.k, keys), (body.v, keys)))
    q = q[query.row]
    scores = k @ q / math.sqrt(body.width)
    mask = torch.arange(len(k), device=k.device) <= query.row if query.part == "decoder" else scores == scores
    mixed, weights = mix(scores, v, mask)
    return {
        "q": _numbers(q), "k": _numbers(k), "v": _numbers(v), "scores": _numbers(scores), "mask": mask.tolist(),
        "weights": _numbers(weights), "mixed": _numbers(mixed), "width": body.width,
    }  # fmt: skip


def _heads(body: nn.Module) -> int:
    return body.q.out_features // body.width


def _chosen(translator: "Translator", scores: Tensor, choice: Choice) -> dict[str, Any]:
    """The likeliest next tokens as they are, and as they would be drawn from."""
    _within("step", choice.step, len(scores))
    if not 1e-6 <= choice.temperature < math.inf or not 0 < choice.top_p <= 1 or choice.top_k < 0:
        raise ValueError(
            f"temperature is {choice.temperature}, top_k {choice.top_k}, top_p {choice.top_p}; right are numbers above 0, "
            "from 0 (all) on, and above 0 up to 1"
        )
    logits = scores[choice.step].double()
    plain = logits.softmax(dim=-1)
    warm = (logits[None] / choice.temperature).log_softmax(dim=-1)
    drawn = trimmed(warm, choice.top_k, choice.top_p)[0].softmax(dim=-1)
    top = plain.topk(min(LIKELY, len(plain))).indices.tolist()
    names = [translator.target.pieces([token])[0] for token in top]
    return {
        "step": choice.step,
        "likely": [[name, float(plain[i]), float(drawn[i])] for name, i in zip(names, top, strict=True)],
        "possible": int((drawn > 0).sum()),
        "entropy": float(torch.special.entr(plain).sum()),
    }


def _within(name: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise ValueError(f"{name} is {value}; there are {count}, counted from 0")


def _rows(rows: Tensor) -> list:
    return _numbers(rows[:, :UNITS])


def _numbers(numbers: Tensor) -> list:
    return [
        [round(x, DECIMALS) for x in row] if isinstance(row, list) else round(row, DECIMALS)
        for row in numbers.double().tolist()
    ]
