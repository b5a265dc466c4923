"""Looking into a translator at work: its attentions, its alignments, its search."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from heed.data.batching import collate
from heed.decoding.beam import SearchStep, beam_search
from heed.decoding.config import DecodingConfig, max_output_length
from heed.decoding.ranking import STOPPING
from heed.lab.attention import Candidate, Look
from heed.models.encoder_decoder import Trace
from heed.products.translator.alignment import agreement, links, merged
from heed.products.translator.search_options import searching
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator

Ids = tuple[list[int], list[int]]


@torch.inference_mode()
def recorded(model: nn.Module, pairs: Sequence[Ids], marks: tuple[SpecialTokens, SpecialTokens]) -> Trace:
    """What there is to see of a model as it reads and writes these pairs."""
    batch = collate([s for s, _ in pairs], [t for _, t in pairs], marks).to(next(model.parameters()).device)
    return model.trace(batch.source, batch.target, batch.valid)


class Inside(NamedTuple):
    """Of one pair the attentions, (layers, heads, q, k) each, and its log probabilities (t, vocab); of a recurrent model
    the states of its encoder and its decoder, (tokens, hidden). A model without an attention has no layers of it.
    """

    maps: dict[str, np.ndarray]
    logp: Tensor
    states: dict[str, np.ndarray] | None


def stacked(model: nn.Module, pair: Ids, marks: tuple[SpecialTokens, SpecialTokens]) -> Inside:
    """What there is to see of one pair."""
    seen = recorded(model, [pair], marks)
    with torch.inference_mode():
        logp = model.project(seen.said[0]).log_softmax(dim=-1)
    s, t = len(marks[0].before) + len(pair[0]) + 1, seen.said.shape[1]
    sizes = {"encoder": (s, s), "decoder": (t, t), "cross": (t, s)}
    maps = {
        name: _numbers(torch.cat(own)) if own else np.zeros((0, 0, *sizes[name])) for name, own in seen.maps.items()
    }
    return Inside(maps, logp, seen.states and {name: _numbers(own[0]) for name, own in seen.states.items()})


def _numbers(tensor: Tensor) -> np.ndarray:
    return tensor.float().cpu().numpy()


class AlignmentRows(NamedTuple):
    """Where alignments are read: in a decoder layer (0 is the first), in the rows that produced each token, or
    (`after`) in those that take it as input, by when the model knows what it has written (Chen et al., 2020).
    """

    layer: int
    after: bool

    def of(self, cross: Sequence[Tensor]) -> np.ndarray:
        """(b, t, s), the mean of the heads, row i for target token i."""
        layer = min(self.layer, len(cross) - 1)  # a recurrent decoder looks once, however many layers it has
        weights = _numbers(cross[layer].mean(dim=1))
        return weights[:, 1:] if self.after else weights[:, :-1]


def aligned(model: nn.Module, pairs: Sequence[Ids], subwords: Pair, rows: AlignmentRows) -> list[list[tuple[int, int]]]:
    """Word alignments of a batch of pairs."""
    cross = recorded(model, pairs, _marks(subwords)).maps["cross"]
    if not cross:
        raise ValueError(
            "the model has no attention to its source (model.attention is 'off'), so it cannot align words"
        )
    return [links(table) for table in _tables(rows.of(cross), pairs, subwords)]


def choose_rows(model: nn.Module, pairs: Sequence[Ids], subwords: Pair) -> AlignmentRows:
    """The rows in which words choose each other most often: no gold alignments are needed to tell."""
    cross = recorded(model, pairs, _marks(subwords)).maps["cross"]
    if not cross:
        return AlignmentRows(0, after=False)
    every = [AlignmentRows(layer, after) for layer in reversed(range(len(cross))) for after in (False, True)]
    return max(every, key=lambda rows: np.mean([agreement(t) for t in _tables(rows.of(cross), pairs, subwords)]))


def _marks(subwords: Pair) -> tuple[SpecialTokens, SpecialTokens]:
    return subwords[0].marks, subwords[1].marks


def _tables(weights: np.ndarray, pairs: Sequence[Ids], subwords: Pair) -> list[np.ndarray]:
    """(target words, source words) of each pair; the marks are left out."""
    left, top = (len(part.marks.before) for part in subwords)
    tables = []
    for row, (source, target) in enumerate(pairs):
        pieces = subwords[0].pieces(source), subwords[1].pieces(target)
        tables.append(merged(weights[row, top : top + len(target), left : left + len(source)], *pieces))
    return tables


def look(translator: "Translator", text: str, target: str | None, config: DecodingConfig, name: str) -> Look:
    """All there is to see of one translation, the model's own or a given one."""
    text = translator.source.clean(text)
    source, ids = translator.encode_pairs([text], [target or ""])[0]
    seen: list[SearchStep] = []
    if target is None:
        ids = searched(translator, source, config, seen)
    said, marks = (ids, translator.marks) if target is not None else translator.stripped(ids)
    first, last, before = marks[1].first, marks[1].last, marks[1].before
    parts, logp, states = stacked(translator.model, (source, said), marks)
    pair, pieces = (translator.source, translator.target), translator.target.pieces
    top = logp.exp().topk(min(8, logp.shape[-1]))
    target_text = translator.target.decode(said)
    return Look(
        source_text=text,
        target_text=target_text,
        source=translator.source_pieces(source),
        target=pieces([*before, *said, last]),
        inputs=pieces([first, *before, *said]),
        **parts,
        scores=[float(logp[i, token]) for i, token in enumerate([*before, *said, last])],
        predictions=[
            [(pieces([token])[0], p) for token, p in zip(tokens, probabilities, strict=True)]
            for tokens, probabilities in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ],
        search=_steps(seen, config.beam, pieces),
        alignment=aligned(translator.model, [(source, said)], pair, translator.alignment_rows)[0]
        if said and source and parts["cross"].size
        else [],
        model=name,
        states=states,
    )


@torch.inference_mode()
def searched(translator: "Translator", source: list[int], config: DecodingConfig, seen: list[SearchStep]) -> list[int]:
    """What the search says, each of its steps put into `seen`."""
    state = translator.start([source])
    most = torch.tensor([max_output_length(config, len(source) + 1, translator.longest)], device=translator.device)
    parts, stop = searching(config, translator.marks[1], [[]], most), STOPPING[config.stopping]
    if config.beam == 1:  # one beam is greedy: the first end is the end
        parts, stop = {**parts, "alpha": 0.0}, STOPPING["exact"]
    found = beam_search(translator.search, state, most, beams=config.beam, stop=stop, on_step=seen.append, **parts)
    return found[0][0].tokens


def _steps(seen: Sequence[SearchStep], beams: int, pieces) -> list[list[Candidate]]:
    """A search as the page draws it: which candidates lived on, ended, or were dropped at each step."""
    steps = []
    for number, step in enumerate(seen):
        own = zip(
            step.beam[0].tolist(), step.token[0].tolist(), step.logp[0].tolist(), step.ends[0].tolist(), strict=True
        )
        kept, found = 0, []
        for place, (beam, token, logp, ends) in enumerate(own):
            if not math.isfinite(logp):
                continue
            state = "dropped"
            if ends and place < beams:
                state = "ended"
            elif not ends and kept < beams:
                state, kept = "kept", kept + 1
            found.append(Candidate(pieces([token])[0], logp, beam if number else -1, state))
        steps.append(found)
    return steps
