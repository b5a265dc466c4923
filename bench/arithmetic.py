"""Medians, ratios, and the least time that a machine could need."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.rows import Shape, TrainRow, TranslateRow

BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}


class Phase(NamedTuple):
    """Work that must be over before the next can begin."""

    operations: float
    bytes: float


class Peaks(NamedTuple):
    """Operations a second by number format, and bytes a second."""

    operations: Mapping[str, float]
    bandwidth: float


def speeds(rounds: Sequence[Mapping[str, float]]) -> list[float]:
    """Tokens a second in each round."""
    return [own["tokens"] / own["seconds"] for own in rounds]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of what the rounds say, each of which had both: a machine that is slow for a while is so for both."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def best(found: Mapping[str, Sequence[float]], peers: Sequence[str]) -> str | None:
    """The peer with the highest median."""
    there = [name for name in peers if name in found]
    return max(there, key=lambda name: statistics.median(found[name])) if there else None


def floor(phases: Sequence[Phase], peaks: Peaks, number: str) -> float:
    """Seconds: in each phase operations over peak or bytes over bandwidth, whichever is more."""
    peak = peaks.operations[number]
    return sum(max(phase.operations / peak, phase.bytes / peaks.bandwidth) for phase in phases)


def widened(measured: Mapping[str, float]) -> dict[str, float]:
    """Peaks that leave no format out and make none slower than a wider one, as which it could be computed.

    Where int8 is not given it is what vector and matrix units are built for: 4 times float32 or twice bfloat16.
    """
    single = measured["float32"]
    half = max(single, measured.get("bfloat16", 0.0))
    return {"float32": single, "bfloat16": half, "int8": measured.get("int8", max(4 * single, 2 * half))}


def weights(shape: Shape) -> int:
    """How many numbers the model has."""
    d, h = shape.dim, shape.hidden
    attention, mlp, norm = 4 * (d * d + d), 2 * d * h + h + d, 2 * d
    encoder, decoder = attention + mlp + 2 * norm, 2 * attention + mlp + 3 * norm
    return shape.vocab * d + shape.layers * (encoder + decoder)


def training(row: TrainRow, lengths: Sequence[tuple[int, int]]) -> list[Phase]:
    """One step on sentences of these lengths (source, target), without padding.

    Forward and backward are three times the products of forward. Then the update, which can begin when the norm of all
    gradients is known: it reads weight, gradient and two moments, and writes all but the gradient, in float32.
    """
    s, t = (sum(own) for own in zip(*lengths, strict=True))
    shape, d = row.shape, row.shape.dim
    products = shape.layers * (_encoder(shape) * s + _decoder(shape) * t + 2 * d * d * s) + shape.vocab * d * t
    inside = shape.layers * d * sum(2 * a * a + b * b + 2 * a * b for a, b in lengths)
    count = weights(shape)
    return [Phase(3 * 2 * (products + inside), 3 * 4 * count), Phase(0.0, 7 * 4 * count)]


def translating(row: TranslateRow, number: str) -> list[Phase]:
    """The encoder and the keys of its memory; then each target token in turn.

    Every matrix is read once in a phase, and of the keys and values kept so far all; a memory once for all its beams.
    """
    shape, d, layers = row.shape, row.shape.dim, row.shape.layers
    width, kept = BYTES[number], 2 if number == "bfloat16" else 4
    rows, tokens = row.batch * row.beam, row.batch * row.source
    encoder = layers * (_encoder(shape) + 2 * d * d)
    decoder = layers * _decoder(shape) + shape.vocab * d
    read = Phase(2 * (encoder * tokens + layers * 2 * d * row.source * tokens), width * encoder)
    memory = kept * layers * 2 * d * tokens
    return [
        read,
        *(
            Phase(
                2 * rows * (decoder + layers * 2 * d * (place + row.source)),
                width * decoder + memory + kept * layers * 2 * d * rows * place,
            )
            for place in range(1, row.target + 1)
        ),
    ]


def _encoder(shape: Shape) -> int:
    """Weights of a layer that each source token meets."""
    return 4 * shape.dim**2 + 2 * shape.dim * shape.hidden


def _decoder(shape: Shape) -> int:
    """Weights of a layer that each target token meets: all but the keys and values of the memory."""
    return 6 * shape.dim**2 + 2 * shape.dim * shape.hidden
