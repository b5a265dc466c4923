"""The attention of one translation as plain data, with its JSON format."""

import json
from dataclasses import asdict, dataclass, fields
from math import isfinite

import numpy as np

from heed.lab.head_roles import cross_roles, self_roles

PARTS = ("encoder", "decoder", "cross")
SIDES = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}
STATES = ("kept", "ended", "dropped")
DECIMALS = 4


@dataclass(frozen=True)
class Candidate:
    """One step of one hypothesis in the beam search."""

    token: str
    score: float  # log probability of the whole hypothesis so far
    parent: int  # index into the previous step's candidates that were kept; -1 at the first step
    state: str  # "kept", "ended" or "dropped"


@dataclass(frozen=True, eq=False)
class Look:
    """One translation from the inside: tokens, three kinds of attention, predictions, beam search and alignment.
    Attention that the model lacks has zero layers and zero heads.
    """

    source_text: str
    target_text: str
    source: list[str]  # source pieces, with the end token '</s>'
    target: list[str]  # target pieces, one per decoding step, ending with '</s>'
    inputs: list[str]  # decoder inputs: '<s>' and then target[:-1]
    encoder: np.ndarray  # (layers, heads, s, s), rows sum to 1
    decoder: np.ndarray  # (layers, heads, t, t), rows and columns are `inputs`, causal
    cross: np.ndarray  # (layers, heads, t, s), row i is the step that produced target[i]
    scores: list[float]  # log probability of each target token
    predictions: list[list[tuple[str, float]]]  # for each step the top tokens with probabilities
    search: list[list[Candidate]]  # the beam search, step by step; may be empty
    alignment: list[tuple[int, int]]  # (source word, target word), whitespace words of the two texts; may be empty
    model: str  # a one-line description of the model
    states: dict[str, np.ndarray] | None = None  # of a recurrent model: "encoder" (s, hidden), "decoder" (t, hidden)

    def __post_init__(self):
        _check_lengths(self)
        for part in PARTS:
            _check_maps(part, getattr(self, part), self.rows(part), self.columns(part))
        if np.triu(self.decoder, 1).max(initial=0.0) > 1e-3:
            raise ValueError("The decoder attention looks at later positions; a decoder may only see earlier ones.")
        _check_states(self)
        _check_search(self.search)
        _check_alignment(self)

    def rows(self, part: str) -> list[str]:
        """Return the tokens of the queries."""
        return self.target if part == "cross" else self.columns(part)

    def columns(self, part: str) -> list[str]:
        """Return the tokens of the keys."""
        return self.inputs if part == "decoder" else self.source


def to_json(look: Look) -> str:
    """Write a look as one JSON object; attention weights and states are rounded to 4 decimals, the rest is exact.

    The keys are "format": 1, the fields of `Look`, "states" only of recurrent models, and "roles" of heads. Arrays become nested lists,
    tuples lists, and candidates objects with the keys "token", "score", "parent" and "state".
    """
    data = {"format": 1} | {field.name: getattr(look, field.name) for field in fields(look)}
    maps = {part: np.round(np.asarray(data[part], np.float64), DECIMALS) for part in PARTS}
    data |= {part: own.tolist() for part, own in maps.items()}
    if data.pop("states") is not None:
        data["states"] = {name: _rounded(values) for name, values in look.states.items()}
    data["roles"] = {
        "encoder": self_roles(maps["encoder"], look.source, causal=False),
        "decoder": self_roles(maps["decoder"], look.inputs, causal=True),
        "cross": cross_roles(maps["cross"], look.source, look.target, look.alignment),
    }
    data["search"] = [[asdict(candidate) for candidate in step] for step in look.search]
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_json(text: str) -> Look:
    """Read what `to_json` wrote."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("format") != 1:
        raise ValueError('This is not a file written by heed look: it should be a JSON object with "format": 1.')
    names = [field.name for field in fields(Look) if field.name != "states"]
    missing = [name for name in names if name not in data]
    if missing:
        raise ValueError(f"The file lacks {', '.join(missing)}; it needs {', '.join(names)}.")
    values = {name: data[name] for name in names}
    sizes = {"source": len(values["source"]), "target": len(values["target"])}
    for part, (rows, columns) in SIDES.items():
        maps = np.asarray(values[part], np.float32)
        values[part] = maps if maps.size else np.zeros((0, 0, sizes[rows], sizes[columns]), np.float32)
    if "states" in data:
        values["states"] = {name: np.asarray(rows, np.float32) for name, rows in data["states"].items()}
    values["scores"] = [float(score) for score in values["scores"]]
    values["predictions"] = [[(token, float(p)) for token, p in step] for step in values["predictions"]]
    values["search"] = [
        [Candidate(item["token"], float(item["score"]), int(item["parent"]), item["state"]) for item in step]
        for step in values["search"]
    ]
    values["alignment"] = [(int(source), int(target)) for source, target in values["alignment"]]
    return Look(**values)


def _rounded(numbers: np.ndarray) -> list:
    return np.round(np.asarray(numbers, np.float64), DECIMALS).tolist()


def _check_lengths(look: Look):
    steps = len(look.target)
    if not look.source or not steps:
        raise ValueError("At least one source token and one target token are needed.")
    for name in ("inputs", "scores", "predictions"):
        count = len(getattr(look, name))
        if count != steps:
            raise ValueError(f"There are {steps} target tokens but {count} {name}; there should be one per step.")
    if look.inputs[1:] != look.target[:-1]:
        raise ValueError("The decoder inputs should be the start token and then the target tokens but the last.")
    for step, (token, score) in enumerate(zip(look.target, look.scores, strict=True)):
        if not isfinite(score):
            raise ValueError(f"The score of target token {step}, {token!r}, is {score}; it should be a finite number.")


def _check_maps(part: str, maps: np.ndarray, rows: list[str], columns: list[str]):
    if maps.shape == (0, 0, len(rows), len(columns)):
        return  # the model has no such attention
    if maps.ndim != 4 or maps.shape[2:] != (len(rows), len(columns)) or 0 in maps.shape:
        right = f"it should be (layers, heads, {len(rows)}, {len(columns)}) for these tokens."
        raise ValueError(f"The {part} attention has shape {maps.shape}; {right}")
    if not np.isfinite(maps).all() or maps.min() < 0:
        raise ValueError(f"The {part} attention has negative or non-finite weights; they should lie between 0 and 1.")
    worst = float(np.abs(maps.sum(-1, dtype=np.float64) - 1).max())
    if worst > 5e-3 + 1e-4 * len(columns):
        row = f"A row of the {part} attention"
        raise ValueError(f"{row} is {worst:.3f} away from the sum 1; every row should sum to 1.")


def _check_states(look: Look):
    for name, states in (look.states or {}).items():
        tokens = {"encoder": look.source, "decoder": look.inputs}[name]
        if states.ndim != 2 or len(states) != len(tokens) or not np.isfinite(states).all():
            right = f"it should be ({len(tokens)}, hidden) finite numbers."
            raise ValueError(f"The states of the {name} have shape {states.shape}; {right}")


def _check_search(search: list[list[Candidate]]):
    kept = 0
    for step, candidates in enumerate(search):
        for number, candidate in enumerate(candidates):
            where = f"Candidate {number} of search step {step}, {candidate.token!r},"
            if candidate.state not in STATES:
                raise ValueError(f"{where} has the state {candidate.state!r}; it should be one of {', '.join(STATES)}.")
            if not isfinite(candidate.score):
                raise ValueError(f"{where} has the score {candidate.score}; leave out what the search never reached.")
            if not (candidate.parent == -1 if step == 0 else 0 <= candidate.parent < kept):
                right = "-1 at the first step" if step == 0 else f"one of the {kept} kept before, counted from 0"
                raise ValueError(f"{where} has the parent {candidate.parent}; it should be {right}.")
        kept = sum(candidate.state == "kept" for candidate in candidates)


def _check_alignment(look: Look):
    words = len(look.source_text.split()), len(look.target_text.split())
    for pair in look.alignment:
        if not all(0 <= index < count for index, count in zip(pair, words, strict=True)):
            raise ValueError(f"The alignment pair {pair} is outside the {words[0]} source and {words[1]} target words.")
