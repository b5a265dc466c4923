"""Text in, text out: a model with its subwords and its search."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from heed import config as settings
from heed.data import subwords as subword_files
from heed.data.batches import collate, pad
from heed.data.subwords import FIRST, LAST, PAD, UNKNOWN, Subwords
from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.config import DecodingConfig, longest
from heed.decoding.ensemble import Ensemble
from heed.decoding.limits import Rule
from heed.decoding.sample import drawn, likeliest, one_by_one
from heed.decoding.steps import Hypothesis
from heed.models import folder as model_folder
from heed.serving.alignment import links
from heed.serving.split import split


@dataclass(frozen=True)
class Candidate:
    """One way to say it."""

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]


@dataclass(frozen=True)
class Translation:
    """The best way to say it, and the others that were asked for.

    `score` is the log probability over the length penalty. A text that had to be cut is the sum of its `parts`.
    """

    source: str
    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]
    source_tokens: list[str]
    nbest: list[Candidate]
    parts: list["Translation"] = field(repr=False)
    translator: "Translator" = field(repr=False, compare=False)

    @cached_property
    def alignment(self) -> list[tuple[int, int]]:
        """(source word, target word), read off the cross attention."""
        return self.translator.align([self])[0]

    @cached_property
    def attentions(self) -> dict[str, np.ndarray]:
        """`encoder` (layers, heads, s, s), `decoder` (layers, heads, t, t) and `cross` (layers, heads, t, s)."""
        return self.translator.attentions(self.source_tokens, self.tokens)


@dataclass(frozen=True)
class Score:
    """What a model thinks of a translation that it is shown."""

    source: str
    target: str
    logp: float
    tokens: list[str]
    token_scores: list[float]


class Translator:
    """One model, or several as one, ready to be given text."""

    def __init__(
        self,
        models: Sequence[nn.Module],
        subwords: tuple[Subwords, Subwords],
        *,
        decoding: DecodingConfig | None = None,
        max_source: int | None = None,
        facts: dict[str, Any] | None = None,
    ):
        self.models = list(models)
        self.model = self.models[0]
        self.search = self.model if len(self.models) == 1 else Ensemble(self.models)
        self.source, self.target = subwords
        self.decoding = decoding or DecodingConfig()
        self.most = self.model.config.max_length
        self.max_source = min(max_source or self.most, self.most)
        self.facts = facts or {}

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        prefix: str | Sequence[str] | None = None,
        too_long: str = "split",
        batch_tokens: int = 4096,
        **decoding: Any,
    ) -> Any:
        """Translations of texts, in their order; of one text, one translation.

        `decoding` are settings of DecodingConfig (beam, nbest, length_penalty, sample, ...). `prefix` is what a
        translation must begin with. A text of more subwords than the model allows is translated in parts, or
        refused with too_long="refuse".
        """
        if isinstance(texts, str):
            return self.translate(
                [texts], prefix=prefix and [prefix], too_long=too_long, batch_tokens=batch_tokens, **decoding
            )[0]
        chosen = settings.read(DecodingConfig, {**dataclasses.asdict(self.decoding), **decoding})
        parts, owner = self._parts(texts, too_long)
        forced = self._forced(prefix, texts, owner)
        found = self._search(parts, chosen, forced, batch_tokens)
        results: list[list[Translation]] = [[] for _ in texts]
        for i, part, hypotheses in zip(owner, parts, found, strict=True):
            results[i].append(self._translation(part, hypotheses))
        return [self._joined(text, own) for text, own in zip(texts, results, strict=True)]

    def score(self, sources: Sequence[str], targets: Sequence[str], batch_tokens: int = 4096) -> list[Score]:
        """How likely each target is, given its source."""
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources):,} sources and {len(targets):,} targets: they go in pairs")
        self._refuse_long(sources)
        ids = list(zip(self.source.encode(sources), self.target.encode(targets), strict=True))
        for number, (_, target) in enumerate(ids, 1):
            if len(target) + 1 > self.most:
                raise ValueError(f"target {number} has {len(target)} subwords; the model allows {self.most - 1}")
        results: list[Any] = [None] * len(ids)
        for rows in _by_length([len(s) + len(t) for s, t in ids], batch_tokens):
            for row, parts in zip(rows, self._forced_scores([ids[row] for row in rows]), strict=True):
                tokens = self.target.pieces([*ids[row][1], LAST])
                results[row] = Score(sources[row], targets[row], sum(parts), tokens, parts)
        return results

    def align(self, translations: Sequence[Translation], batch_tokens: int = 4096) -> list[list[tuple[int, int]]]:
        """Word alignments of translations, as (source word, target word)."""
        whole = [t.parts or [t] for t in translations]
        flat = [part for parts in whole for part in parts]
        found = iter(self.align_pairs([p.source for p in flat], [p.text for p in flat], batch_tokens))
        results = []
        for parts in whole:
            joined, source, target = [], 0, 0
            for part in parts:
                joined += [(i + source, j + target) for i, j in next(found)]
                source, target = source + len(part.source.split()), target + len(part.text.split())
            results.append(joined)
        return results

    def align_pairs(
        self, sources: Sequence[str], targets: Sequence[str], batch_tokens: int = 4096
    ) -> list[list[tuple[int, int]]]:
        """Word alignments of texts with given translations."""
        ids = list(zip(self.source.encode(sources), self.target.encode(targets), strict=True))
        results: list[list[tuple[int, int]]] = [[] for _ in ids]
        rows_with_words = [i for i, (s, t) in enumerate(ids) if s and t]
        for rows in _by_length([len(ids[i][0]) + len(ids[i][1]) for i in rows_with_words], batch_tokens):
            chosen = [ids[rows_with_words[row]] for row in rows]
            for row, (source, target), maps in zip(rows, chosen, self._cross(chosen), strict=True):
                weights = maps[: len(target), : len(source)]
                results[rows_with_words[row]] = links(weights, self.source.pieces(source), self.target.pieces(target))
        return results

    @torch.inference_mode()
    def attentions(self, source: Sequence[str], target: Sequence[str]) -> dict[str, np.ndarray]:
        """Every attention of the (first) model while it reads `source` and writes `target`, given as pieces."""
        find = self.source.processor.piece_to_id
        sources = [find(piece) for piece in source if piece != "</s>"]
        targets = [self.target.processor.piece_to_id(piece) for piece in target if piece != "</s>"]
        maps = [m[0].float().cpu().numpy() for m in self._record([(sources, targets)])]
        layers = self.model.config.encoder_layers
        return {
            "encoder": np.stack(maps[:layers]),
            "decoder": np.stack(maps[layers::2]),
            "cross": np.stack(maps[layers + 1 :: 2]),
        }

    def _parts(self, texts: Sequence[str], too_long: str) -> tuple[list[str], list[int]]:
        """Texts cut into what the model allows, and which text each part is of. Empty texts have no parts."""
        if too_long not in ("split", "refuse"):
            raise ValueError(f"too_long is {too_long!r}; it is 'split' or 'refuse'")
        if too_long == "refuse":
            self._refuse_long(texts)
        parts, owner = [], []
        for i, text in enumerate(texts):
            text = subword_files.clean(text)
            own = split(text, self._size, self.max_source) if text else []
            parts += own
            owner += [i] * len(own)
        return parts, owner

    def _size(self, text: str) -> int:
        return len(self.source.encode([text])[0]) + 1

    def _refuse_long(self, texts: Sequence[str]) -> None:
        for number, text in enumerate(texts, 1):
            if (size := self._size(text)) > self.max_source:
                raise ValueError(
                    f"text {number} has {size} subwords, and the model was made for {self.max_source}: "
                    "shorten it, or let it be translated in parts (too_long='split', --too-long split)"
                )

    def _forced(self, prefix, texts: Sequence[str], owner: Sequence[int]) -> list[list[int]] | None:
        """The tokens that each part must begin with: of a text's first part, its prefix."""
        if prefix is None:
            return None
        each = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(each) != len(texts):
            raise ValueError(f"{len(each):,} prefixes for {len(texts):,} texts: give one for each, or one for all")
        tokens = self.target.encode(each)
        return [tokens[i] if place == 0 or owner[place - 1] != i else [] for place, i in enumerate(owner)]

    def _search(
        self, parts: Sequence[str], config: DecodingConfig, forced: list[list[int]] | None, batch_tokens: int
    ) -> list[list[Hypothesis]]:
        ids = self.source.encode(parts)
        found: list[list[Hypothesis]] = [[] for _ in ids]
        for rows in _by_length([len(source) + 1 for source in ids], max(1, batch_tokens)):
            own = [forced[row] for row in rows] if forced else None
            for row, hypotheses in zip(rows, self._decode([ids[row] for row in rows], rows, config, own), strict=True):
                found[row] = hypotheses
        return found

    @torch.inference_mode()
    def _decode(
        self, sources: list[list[int]], numbers: Sequence[int], config: DecodingConfig, forced: list[list[int]] | None
    ) -> list[list[Hypothesis]]:
        tokens = torch.from_numpy(pad(sources)).to(self.device)
        state = self.search.start(tokens, tokens != PAD)
        most = torch.tensor([longest(config, len(ids) + 1, self.most) for ids in sources], device=self.device)
        if forced:
            most = torch.maximum(most, torch.tensor([len(ids) + 1 for ids in forced], device=self.device))
        common = {"first": FIRST, "last": LAST, "alpha": config.length_penalty, "rules": _rules(config, forced)}
        if config.sample:
            again = config.nbest
            state.reorder(torch.arange(len(sources), device=self.device).repeat_interleave(again))
            seeds = [config.seed * 1_000_003 + number * 1009 + k for number in numbers for k in range(again)]
            choose = drawn(seeds, temperature=config.temperature, top_k=config.top_k, top_p=config.top_p)
            if forced:
                common["rules"] = _rules(config, [ids for ids in forced for _ in range(again)])
            each = one_by_one(self.search, state, most.repeat_interleave(again), choose, **common)
            return [sum(each[i : i + again], []) for i in range(0, len(each), again)]
        if config.beam == 1:
            return one_by_one(self.search, state, most, likeliest, **common)
        return beam_search(self.search, state, most, beams=config.beam, nbest=config.nbest, **common)

    @torch.inference_mode()
    def _forced_scores(self, ids: list[tuple[list[int], list[int]]]) -> list[list[float]]:
        batch = collate([s for s, _ in ids], [t for _, t in ids]).to(self.device)
        each = [model(batch.source, batch.target, batch.valid).softmax(dim=-1) for model in self.models]
        logp = torch.stack(each).mean(dim=0).log().flatten(0, 1)[batch.places]
        scores = logp.gather(1, batch.expected[:, None])[:, 0].cpu()
        return [part.tolist() for part in scores.split([len(t) + 1 for _, t in ids])]

    @torch.inference_mode()
    def _record(self, ids: list[tuple[list[int], list[int]]]) -> list[torch.Tensor]:
        from heed.nn.attention import record

        batch = collate([s for s, _ in ids], [t for _, t in ids]).to(self.device)
        with record(self.model) as maps:
            self.model.read(batch.target, self.model.encode(batch.source, batch.valid), batch.valid)
        return maps

    def _cross(self, ids: list[tuple[list[int], list[int]]]) -> list[np.ndarray]:
        """For each pair the attention from target to source that says best which word is of which."""
        maps = self._record(ids)[self.model.config.encoder_layers + 1 :: 2]
        return list(maps[-1].mean(dim=1).float().cpu().numpy())

    def _translation(self, part: str, hypotheses: list[Hypothesis]) -> Translation:
        nbest = [
            Candidate(self.target.decode(h.tokens), h.score, self.target.pieces(h.tokens), h.scores) for h in hypotheses
        ]
        best = nbest[0]
        tokens = self.source.pieces([*self.source.encode([part])[0], LAST])
        return Translation(part, best.text, best.score, best.tokens, best.token_scores, tokens, nbest, [], self)

    def _joined(self, text: str, parts: list[Translation]) -> Translation:
        if len(parts) == 1:
            return dataclasses.replace(parts[0], source=text)
        whole = Candidate(
            " ".join(part.text for part in parts),
            sum(part.score for part in parts),
            [token for part in parts for token in part.tokens],
            [score for part in parts for score in part.token_scores],
        )
        tokens = [token for part in parts for token in part.source_tokens]
        return Translation(
            text, whole.text, whole.score, whole.tokens, whole.token_scores, tokens, [whole], parts, self
        )


def _rules(config: DecodingConfig, forced: list[list[int]] | None) -> list[Rule]:
    rules = [limits.never([PAD, UNKNOWN, FIRST])]
    if config.min_length:
        rules.append(limits.at_least(config.min_length, LAST))
    if config.no_repeat:
        rules.append(limits.no_repeat(config.no_repeat))
    if forced and any(forced):
        rules.append(limits.prefix(forced))
    return rules


def _by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Rows of near-equal lengths that together hold no more than `budget`; the longest first."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if rows and lengths[rows[0]] * (len(rows) + 1) > budget:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def load(folders: str | Path | Sequence[str | Path], device: str = "auto") -> Translator:
    """The translator of a run folder or a model folder; of several, an ensemble."""
    paths = [_model_folder(Path(f)) for f in ([folders] if isinstance(folders, str | Path) else folders)]
    place = choose_device(device)
    facts = [model_folder.read_config(path) for path in paths]
    models = [model_folder.load(path).to(place) for path in paths]
    subwords = [_subwords(path, fact) for path, fact in zip(paths, facts, strict=True)]
    for path, pair in zip(paths[1:], subwords[1:], strict=True):
        if [part.model for part in pair] != [part.model for part in subwords[0]]:
            raise ValueError(f"{paths[0]} and {path} have different subwords: an ensemble needs the same in all")
    decoding = settings.read(DecodingConfig, facts[0].get("decoding", {}), f"{paths[0]}/config.json: decoding.")
    return Translator(
        models, subwords[0], decoding=decoding, max_source=facts[0].get("max_source"), facts=facts[0]
    )


def choose_device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError("device is 'cuda', but torch sees no GPU here; use --device cpu")
        # cuDNN's attention builds a plan for each new shape, and text has many: 142 ms a step against 32
        torch.backends.cuda.enable_cudnn_sdp(False)
        return device
    except RuntimeError:
        raise ValueError(f"device is {name!r}; it is auto, cpu or cuda (cuda:1 for the second)") from None


def _model_folder(path: Path) -> Path:
    """A run's model is in its folder `model`."""
    if not path.is_dir():
        raise ValueError(f"{path}: no such folder")
    if (path / "recipe.toml").is_file() and not (path / model_folder.CONFIG).is_file():
        if not (path / "model" / model_folder.CONFIG).is_file():
            raise ValueError(f"{path} has no model yet: its training has not come to its first validation")
        return path / "model"
    return path


def _subwords(folder: Path, facts: dict[str, Any]) -> tuple[Subwords, Subwords]:
    names = facts.get("subwords")
    if not names:
        raise ValueError(f"{folder}/config.json names no subwords: it cannot read text")
    source = subword_files.load(folder / names["source"])
    same = names["source"] == names["target"]
    return source, source if same else subword_files.load(folder / names["target"])
